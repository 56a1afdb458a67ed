"""Medians of frames, pixel by pixel, over those in which nothing covers a pixel."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import Floats
from mocap2ctrl.video.decode import Image

MEDIAN_FRAMES = 40
FEWEST_SEEN = 3
"""Frames in which a pixel must be free of the moving body to count as seen."""
BAND = 32


def masked_median(
    images: Image, bodies: Sequence[Masks] | Masks | None, most: int = MEDIAN_FRAMES
) -> tuple[Floats, Masks]:
    """Each pixel's median over at most so many frames in which no body covers it, and the pixels without enough of them.

    Args:
        images: (T, H, W, 3).
        bodies: (T, h, w), of any size; None: nothing is covered.
        most: frames.
    """
    chosen = np.unique(np.linspace(0, len(images) - 1, most).astype(int))
    height, width = images.shape[1:3]
    if bodies is None:
        return median_where(images[chosen]), np.zeros((height, width), bool)
    covered = np.stack([enlarged(bodies[i], (width, height)) for i in chosen])
    hidden = np.count_nonzero(~covered, axis=0) < FEWEST_SEEN
    return median_where(images[chosen], ~covered), hidden


def median_where(images: Image, wanted: Masks | None = None) -> Floats:
    """(H, W, 3) median over the frames (T, H, W, 3) in which a pixel is wanted (T, H, W); of all where it never is."""
    result = np.empty(images.shape[1:], np.float32)
    for top in range(0, len(result), BAND):
        rows = slice(top, top + BAND)
        covered = None if wanted is None else ~wanted[:, rows] & np.any(wanted[:, rows], axis=0)
        result[rows] = _median(images[:, rows], covered)
    return result


def _median(values: Image, covered: Masks | None) -> Floats:
    if covered is not None:
        values = np.where(covered[..., None], np.uint8(255), values)  # these come last
    # Sorting short integers along the last axis is sixteen times as fast as sorting bytes along the first.
    ordered = np.sort(np.moveaxis(values, 0, -1).astype(np.int16), axis=-1)
    if covered is None or not covered.any():
        low, high = ordered[..., (len(values) - 1) // 2], ordered[..., len(values) // 2]
    else:
        count = np.count_nonzero(~covered, axis=0)[..., None, None]
        low, high = (np.take_along_axis(ordered, index, axis=-1)[..., 0] for index in ((count - 1) // 2, count // 2))
    return np.asarray(0.5 * (low.astype(np.float32) + high), np.float32)


def enlarged(mask: Masks, size: tuple[int, int]) -> Masks:
    """A mask at another width and height, of nearest pixels."""
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0)
