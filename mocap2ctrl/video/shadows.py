"""Cast shadows: the background, darker, with its tint and its texture; in one piece, in the open, and not too dark.

A shadow multiplies the colour behind it by nearly the same factor in red, green and blue (a little more blue is left under
the sky), and its gradient by that factor too. So pixels are taken for shadow when, on average over the foreground around
them, the factor of intensity is between a half and one, the factors of red and blue relative to it are near one, and
the gradient is the background's, scaled. Grey cloth before a plain grey wall passes this test; so the piece must lie in the
open as well: a good part of its rim must be background, as of a shadow on the ground, and unlike a dark piece inside the body.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import LUMA, Background, Floats

DARKEST, BRIGHTEST = 0.5, 0.97
"""Factors of a cast shadow's intensity."""
RED, BLUE = (0.90, 1.04), (0.90, 1.12)
"""Factors of red and blue, relative to that."""
LEVELS = 2.0
"""Grey levels by which an average colour may be off, in addition."""
TEXTURE = 4.0
"""Mean difference between the gradient and the background's, scaled; grey levels a pixel."""
WINDOW = 5
TEXTURED_SHARE = 0.3
"""Least share of a piece that has the background's texture; the outlines of shadows on shadows do not."""
SMALLEST_SHARE = 0.00015
REGROWTH = 1
"""Pixels that are taken off a piece and given back, so that a body's blurred outline is no part of it."""
OPEN = 0.3
"""Least share of a shadow's rim that is background."""
RIM = 4
"""Pixels; the outline of a shadow is blurred by the lamp's width and the lens."""


def cast_shadow(background: Background, distance: Floats, colour: Floats) -> Masks:
    """(H, W) foreground pixels that are cast shadow.

    Args:
        background: the model.
        distance: (H, W) squared distance over the threshold.
        colour: (H, W, 3) smoothed frame, its exposure undone.
    """
    result = np.zeros(distance.shape, bool)
    box = _box(distance > 1.0)
    if box is None:
        return result
    foreground = distance[box] > 1.0
    tinted, textured = _like_background(colour[box], background.mean[box], foreground)
    pieces = _pieces(tinted, textured, foreground, SMALLEST_SHARE * distance.size)
    result[box] = pieces | (tinted & (cv2.dilate(pieces.astype(np.uint8), _square(REGROWTH)) > 0))
    return result


def _box(mask: Masks) -> tuple[slice, slice] | None:
    rows, columns = np.flatnonzero(np.any(mask, axis=1)), np.flatnonzero(np.any(mask, axis=0))
    if len(rows) == 0:
        return None
    margin = 2 * WINDOW
    low, left = max(0, rows[0] - margin), max(0, columns[0] - margin)
    return slice(low, rows[-1] + 1 + margin), slice(left, columns[-1] + 1 + margin)


def _like_background(colour: Floats, mean: Floats, foreground: Masks) -> tuple[Masks, Masks]:
    """Foreground with the background's tint, darker; and with its texture."""
    weight = foreground.astype(np.float32)
    total = np.maximum(_blur(weight), 1e-3)[..., None]
    seen, behind = (_blur(image * weight[..., None]) / total for image in (colour, mean[..., :3]))
    factor = (seen @ LUMA) / np.maximum(behind @ LUMA, 1.0)
    tinted = foreground & (factor > DARKEST) & (factor < BRIGHTEST)
    for channel, (low, high) in ((0, RED), (2, BLUE)):
        expected = factor * behind[..., channel]
        tinted &= seen[..., channel] > low * expected - LEVELS
        tinted &= seen[..., channel] < high * expected + LEVELS
    intensity = colour @ LUMA
    across = cv2.Sobel(intensity, cv2.CV_32F, 1, 0, scale=0.125) - factor * mean[..., 3]
    down = cv2.Sobel(intensity, cv2.CV_32F, 0, 1, scale=0.125) - factor * mean[..., 4]
    return tinted, _blur(np.hypot(across, down)) < TEXTURE


def _blur(image: Floats) -> Floats:
    return np.asarray(cv2.blur(image, (WINDOW, WINDOW)), np.float32)


def _pieces(tinted: Masks, textured: Masks, foreground: Masks, least: float) -> Masks:
    """The compact pieces with the background's tint that have its texture inside, and lie in the open."""
    compact = cv2.morphologyEx(tinted.astype(np.uint8), cv2.MORPH_OPEN, _square(REGROWTH))
    inside = cv2.erode(compact, _square(1)) > 0
    count, labels, stats, _ = cv2.connectedComponentsWithStats(compact)
    kept = np.zeros(tinted.shape, bool)
    for label in range(1, count):
        left, top, width, height, area = (int(v) for v in stats[label])
        if area < least:
            continue
        around = slice(max(0, top - RIM), top + height + RIM), slice(max(0, left - RIM), left + width + RIM)
        piece = labels[around] == label
        core = piece & inside[around]
        if core.any() and np.mean(textured[around][core]) < TEXTURED_SHARE:
            continue
        near, far = (cv2.dilate(piece.astype(np.uint8), _square(reach)) > 0 for reach in (RIM - 1, RIM))
        if np.mean(~foreground[around][far & ~near]) > OPEN:
            kept[around] |= piece
    return kept


def _square(reach: int) -> npt.NDArray[np.uint8]:
    return np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
