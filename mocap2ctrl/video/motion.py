"""What moves in a clip, before there is any background: where bodies move."""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import largest_of_three
from mocap2ctrl.video.decode import Image, working_size

SMALL_PIXELS = 160 * 90
"""Area of the frames on which motion is looked for."""

STRIDE_S = 0.25
"""A moving pixel differs from the frames this long before and after."""
LEVELS, NOISES = 15.0, 6.0
"""It differs by so many grey levels, and by so many standard deviations of the clip's noise."""
GATHER = 7
"""Moving pixels so close to each other (pixels of the small frames) are of one body."""
MARGIN = 5
PART_SHARE = 0.0014
"""Least share of the picture that moves in one place to count as a body."""


def reduced_images(images: Image) -> Image:
    """(T, h, w, 3) the clip at about 160x90 pixels."""
    height, width = images.shape[1:3]
    size = working_size((width, height), SMALL_PIXELS)
    return np.stack([cv2.resize(image, size, interpolation=cv2.INTER_AREA) for image in images])


def without_specks(mask: Masks, share: float) -> Masks:
    """The connected parts of a mask that hold at least `share` of the picture, after an opening of 2x2 pixels."""
    opened = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(opened)
    large = [i for i in range(1, count) if stats[i, cv2.CC_STAT_AREA] >= share * mask.size]
    return np.isin(labels, large)


def moving_bodies(images: Image, fps: float) -> Masks:
    """(T, h, w) where bodies are that move, at about 160x90 pixels, with a margin; coarse, and filled.

    A pixel moves when it differs from both a frame before and a frame after, so what was uncovered behind a body does not count.
    """
    small = reduced_images(images)
    change = np.stack([change_at(small, t, fps) for t in range(len(small))])
    level = max(LEVELS, NOISES * 1.4826 * float(np.median(change)))
    return np.stack([_filled(c > level) for c in change])


def change_at(images: Image, t: int, fps: float) -> Image:
    """(H, W) grey levels by which a frame of (T, H, W, 3) differs both from one before and from one after."""
    stride, last = max(1, round(STRIDE_S * fps)), len(images) - 1
    before = t - stride if t >= stride else min(t + 2 * stride, last)
    after = t + stride if t + stride <= last else max(t - 2 * stride, 0)
    changes = (largest_of_three(cv2.absdiff(images[t], images[other])) for other in (before, after))
    return np.asarray(np.minimum(*changes), np.uint8)


def _filled(moving: Masks) -> Masks:
    """Moving pixels that are near to each other, gathered and filled, with a margin."""
    seeds = without_specks(moving, 4 / moving.size).astype(np.uint8)
    near = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * GATHER + 1, 2 * GATHER + 1))
    outlines, _ = cv2.findContours(cv2.dilate(seeds, near), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    result = np.zeros(moving.shape, np.uint8)
    for outline in outlines:
        body = cv2.drawContours(np.zeros_like(result), [outline], -1, 1, -1)
        if np.count_nonzero(seeds & body) >= PART_SHARE * moving.size:
            result |= body
    return np.asarray(cv2.dilate(cv2.erode(result, near), np.ones((MARGIN, MARGIN), np.uint8)) > 0)
