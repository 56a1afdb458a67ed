"""Cast shadows: the background, darker, with its tint and its texture; in one piece, in the open, and not too dark.

A shadow multiplies the colour behind it by nearly the same factor in red, green and blue (a little more blue is left under
the sky), and its gradient by that factor too. So pixels are taken for shadow when the factor of intensity, averaged over the
foreground around them, is between a half and one, those of red and blue relative to it are near one, and the gradient
does not speak for another surface (`_texture_evidence`). Grey cloth before a plain grey wall passes this test; so the piece
must lie in the open as well: a good part of its rim must be background, as of a shadow on the ground, and unlike a
dark piece inside the body.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import LUMA, Background, Floats, features

BRIGHTEST, DARKEST, DARKEST_TEXTURED = 0.97, 0.5, 0.4
"""Factors of a cast shadow's intensity: at most; at least; at least where it has the background's texture."""
RED, BLUE = (0.90, 1.04), (0.90, 1.12)
"""Factors of red and blue, relative to that."""
LEVELS = 2.0
"""Grey levels by which an average colour may be off, in addition."""
SAME, OTHER = 0.25, -0.2
"""Evidence of texture above which it is the background's, and below which it is another."""
SURROUNDINGS = 6.0
"""Standard deviation of the window over which evidence is gathered, pixels."""
NOISE_ENERGY = 1.0
"""Square of a gradient that means nothing, grey levels a pixel."""
WINDOW = 5
SMALLEST_SHARE = 0.00015
THIN, REGROWTH = 1, 2
"""Pixels that are taken off a piece and given back, so that a body's blurred outline is no part of it; and then added."""
OPEN = 0.3
"""Least share of a shadow's rim that is background."""
RIM = 4
"""Pixels; the outline of a shadow is blurred by the lamp's width and the lens."""


def cast_shadow(background: Background, distance: Floats, colour: Floats, *, gone: bool = False) -> Masks:
    """(H, W) foreground pixels that are cast shadow.

    Args:
        background: the model.
        distance: (H, W) squared distance over the threshold.
        colour: (H, W, 3) smoothed frame, its exposure undone.
        gone: look for shadows in the background that are not in the frame, instead.
    """
    result = np.zeros(distance.shape, bool)
    box = _box(distance > 1.0)
    if box is None:
        return result
    foreground = distance[box] > 1.0
    dark, lit = colour[box], background.mean[box]
    if gone:
        dark, lit = background.colour[box], features(colour[box])
    tinted, evidence = _like_background(dark, lit, foreground)
    pieces = _open_pieces(tinted & (evidence > OTHER), foreground, SMALLEST_SHARE * distance.size)
    result[box] = pieces | (tinted & (cv2.dilate(pieces.astype(np.uint8), _square(REGROWTH)) > 0))
    return result


def _box(mask: Masks) -> tuple[slice, slice] | None:
    rows, columns = np.flatnonzero(np.any(mask, axis=1)), np.flatnonzero(np.any(mask, axis=0))
    if len(rows) == 0:
        return None
    margin = 2 * WINDOW
    low, left = max(0, rows[0] - margin), max(0, columns[0] - margin)
    return slice(low, rows[-1] + 1 + margin), slice(left, columns[-1] + 1 + margin)


def _like_background(colour: Floats, mean: Floats, foreground: Masks) -> tuple[Masks, Floats]:
    """Foreground with the background's tint, darker; and the evidence of its texture, from -1 (another) to 1 (the same)."""
    weight = foreground.astype(np.float32)
    total = np.maximum(_blur(weight), 1e-3)[..., None]
    seen, behind = (_blur(image * weight[..., None]) / total for image in (colour, mean[..., :3]))
    factor = np.asarray((seen @ LUMA) / np.maximum(behind @ LUMA, 1.0), np.float32)
    tinted = foreground & (factor > DARKEST_TEXTURED) & (factor < BRIGHTEST)
    for channel, (low, high) in ((0, RED), (2, BLUE)):
        expected = factor * behind[..., channel]
        tinted &= seen[..., channel] > low * expected - LEVELS
        tinted &= seen[..., channel] < high * expected + LEVELS
    evidence = _texture_evidence(colour @ LUMA, factor[..., None] * mean[..., 3:], tinted)
    return tinted & ((factor > DARKEST) | (evidence > SAME)), evidence


def _texture_evidence(intensity: Floats, expected: Floats, tinted: Masks) -> Floats:
    """How much better a gradient is explained by the background's, scaled, than by none at all.

    With g the gradient and e the expected one, |g|² - |g - e|² = 2 g·e - |e|² is |e|² for the same texture and -|e|² for a
    smooth surface. It is averaged over the surroundings, and set against the average of |e|² and of the noise.
    """
    across = cv2.Sobel(intensity, cv2.CV_32F, 1, 0, scale=0.125)
    down = cv2.Sobel(intensity, cv2.CV_32F, 0, 1, scale=0.125)
    inside = cv2.erode(tinted.astype(np.uint8), _square(1)).astype(np.float32)  # without edges, which are of no texture
    energy = np.sum(expected**2, axis=-1) * inside
    gain = 2.0 * (across * expected[..., 0] + down * expected[..., 1]) * inside - energy
    against = _surroundings(energy) + NOISE_ENERGY * _surroundings(inside) + 1e-6
    return np.asarray(_surroundings(np.clip(gain, -energy, energy)) / against, np.float32)


def _surroundings(image: Floats) -> Floats:
    return np.asarray(cv2.GaussianBlur(image, (0, 0), SURROUNDINGS), np.float32)


def _blur(image: Floats) -> Floats:
    return np.asarray(cv2.blur(image, (WINDOW, WINDOW)), np.float32)


def _open_pieces(like: Masks, foreground: Masks, least: float) -> Masks:
    """The compact pieces of a mask, of a certain size, of whose rim a good part is background."""
    compact = cv2.morphologyEx(like.astype(np.uint8), cv2.MORPH_OPEN, _square(THIN))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(compact)
    kept = np.zeros(like.shape, bool)
    for label in range(1, count):
        left, top, width, height, area = (int(v) for v in stats[label])
        if area < least:
            continue
        around = slice(max(0, top - RIM), top + height + RIM), slice(max(0, left - RIM), left + width + RIM)
        piece = labels[around] == label
        near, far = (cv2.dilate(piece.astype(np.uint8), _square(reach)) > 0 for reach in (RIM - 1, RIM))
        if np.mean(~foreground[around][far & ~near]) > OPEN:
            kept[around] |= piece
    return kept


def _square(reach: int) -> npt.NDArray[np.uint8]:
    return np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
