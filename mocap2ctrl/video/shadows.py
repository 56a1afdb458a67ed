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

from mocap2ctrl.types import Array, Masks
from mocap2ctrl.video.background import GRADIENT_FLOOR, Background, Box, Floats, intensity_of, slope

BRIGHTEST, DARKEST, DARKEST_TEXTURED = 0.97, 0.5, 0.4
"""Factors of a cast shadow's intensity: at most; at least; at least where it has the background's texture."""
RED, BLUE = (0.90, 1.04), (0.90, 1.12)
"""Factors of red and blue, relative to that."""
LEVELS = 2.0
"""Grey levels by which an average colour may be off, in addition."""
LEVELS_OF_NOISE = 0.5
"""Or so many standard deviations of the background's colour: a codec's errors are alike in a whole block."""
SAME, OTHER = 0.25, -0.2
"""Evidence of texture above which it is the background's, and below which it is another."""
SURROUNDINGS = 6.0
"""Standard deviation of the window over which evidence is gathered, pixels."""
NOISE_ENERGY = 1.0
"""Square of a gradient that means nothing, grey levels a pixel; what the clip's noise and codec add comes on top."""
WINDOW = 5
SMALLEST_SHARE = 0.00015
THIN, REGROWTH = 1, 2
"""Pixels that are taken off a piece and given back, so that a body's blurred outline is no part of it; and then added."""
OPEN = 0.3
"""Least share of a shadow's rim that is background."""
RIM = 4
"""Pixels; the outline of a shadow is blurred by the lamp's width and the lens."""


def cast_shadow(background: Background, where: Box, distance: Floats, colour: Floats, *, gone: bool = False) -> Masks:
    """(h, w) foreground pixels that are cast shadow.

    Args:
        background: the model.
        where: the rows and columns that are looked at.
        distance: (h, w) squared distance over the threshold.
        colour: (h, w, 3) smoothed frame.
        gone: look for shadows in the background that are not in the frame, instead.
    """
    still = background.colour[where]
    dark, lit = (still, colour) if gone else (colour, still)
    foreground = distance > 1.0
    tinted, evidence = _like_background(dark, lit, foreground, np.sqrt(np.diag(background.covariance)))
    height, width = background.colour.shape[:2]
    pieces = _open_pieces(tinted & (evidence > OTHER), foreground, SMALLEST_SHARE * height * width)
    return np.asarray(pieces | (tinted & (cv2.dilate(pieces.astype(np.uint8), _square(REGROWTH)) > 0)))


def _like_background(dark: Floats, lit: Floats, foreground: Masks, noise: Array) -> tuple[Masks, Floats]:
    """Foreground with the background's tint, darker; and the evidence of its texture, from -1 (another) to 1 (the same)."""
    inside = foreground.astype(np.uint8)
    total = cv2.merge([np.maximum(_blur(inside.astype(np.float32)), 1e-3)] * 3)
    means = [cv2.divide(_blur(cv2.copyTo(image, inside)), total) for image in (dark, lit)]
    factor = np.asarray(intensity_of(means[0]) / np.maximum(intensity_of(means[1]), 1.0), np.float32)
    seen, behind = (cv2.split(mean) for mean in means)
    tinted = foreground & (factor > DARKEST_TEXTURED) & (factor < BRIGHTEST)
    for channel, (low, high) in ((0, RED), (2, BLUE)):
        expected = factor * behind[channel]
        levels = max(LEVELS, LEVELS_OF_NOISE * float(noise[channel]))
        tinted &= (seen[channel] > low * expected - levels) & (seen[channel] < high * expected + levels)
    meaningless = NOISE_ENERGY + max(0.0, float(noise[3] ** 2 + noise[4] ** 2) - 2.0 * GRADIENT_FLOOR**2)
    evidence = _texture_evidence(intensity_of(dark), intensity_of(lit), factor, tinted, meaningless)
    return tinted & ((factor > DARKEST) | (evidence > SAME)), evidence


def _texture_evidence(dark: Floats, lit: Floats, factor: Floats, tinted: Masks, noise: float) -> Floats:
    """How much better a gradient is explained by the background's, scaled, than by none at all.

    With g the gradient and e the expected one, |g|² - |g - e|² = 2 g·e - |e|² is |e|² for the same texture and -|e|² for a
    smooth surface. It is averaged over the surroundings, and set against the average of |e|² and of the noise.
    """
    inside = cv2.erode(tinted.astype(np.uint8), _square(1)).astype(np.float32)  # without edges, which are of no texture
    slopes = [[slope(i, *step) for step in ((1, 0), (0, 1))] for i in (dark, lit)]
    expected = [factor * behind for behind in slopes[1]]
    energy = inside * (expected[0] * expected[0] + expected[1] * expected[1])
    gain = 2.0 * inside * (slopes[0][0] * expected[0] + slopes[0][1] * expected[1]) - energy
    against = _surroundings(energy) + noise * _surroundings(inside) + 1e-6
    return np.asarray(_surroundings(np.clip(gain, -energy, energy)) / against, np.float32)


def _surroundings(image: Floats) -> Floats:
    width = 2 * round(0.85 * SURROUNDINGS) + 1  # two box filters of this width are nearly a Gaussian
    return np.asarray(cv2.blur(cv2.blur(image, (width, width)), (width, width)), np.float32)


def _blur(image: Floats) -> Floats:
    return np.asarray(cv2.blur(image, (WINDOW, WINDOW)), np.float32)


def _open_pieces(like: Masks, foreground: Masks, least: float) -> Masks:
    """The compact pieces of a mask, of a certain size, of whose rim a good part is background."""
    compact = cv2.morphologyEx(like.astype(np.uint8), cv2.MORPH_OPEN, _square(THIN))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(compact)
    kept = np.zeros(like.shape, bool)
    for label in (np.flatnonzero(stats[1:, cv2.CC_STAT_AREA] >= least) + 1).tolist():
        left, top, width, height, _ = stats[label].tolist()
        around = slice(max(0, top - RIM), top + height + RIM), slice(max(0, left - RIM), left + width + RIM)
        piece = labels[around] == label
        near, far = (cv2.dilate(piece.astype(np.uint8), _square(reach)) > 0 for reach in (RIM - 1, RIM))
        if np.mean(~foreground[around][far & ~near]) > OPEN:
            kept[around] |= piece
    return kept


def _square(reach: int) -> npt.NDArray[np.uint8]:
    return np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
