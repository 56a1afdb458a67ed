"""Light that changes during a clip, undone before anything is compared: exposure, mains flicker, a cloud before the sun.

Each frame is divided by a smooth field of gains against the clip's median frame. The field is fitted to the pixels that agree with
it, from the previous frame's field on: a person and a cast shadow are too small and too different to bend it.
"""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.video.background import Floats, largest_of_three
from mocap2ctrl.video.decode import Image, working_size

SMALL_PIXELS = 80 * 45
"""Area of the frames that the fields are fitted on."""
REFERENCE_FRAMES = 24
AGREEING = 0.1
"""Log gains farther than this from the field are of something else than light."""
REACH = 0.09
"""Standard deviation of the window that a field is the mean over, in widths."""
ROUNDS = 3
FEWEST = 0.02
"""Weight in a window below which the frame's own gain counts."""
DARKEST, BRIGHTEST = 16.0, 245.0
"""Grey levels outside of which a pixel says nothing about light."""
STEADY = 0.004
"""Log gains below this are not worth undoing."""
UNIFORM = 0.012
"""Spread of a field below which one gain for each colour does."""
CHANGING = 0.08
"""Log gain from which a user is told."""


def steady_light(images: Image) -> tuple[Image, float]:
    """Frames (T, H, W, 3) in the light of their median, and how far the light went from it: the largest log gain.

    Frames in that light already stay as they are.
    """
    height, width = images.shape[1:3]
    size = working_size((width, height), SMALL_PIXELS)
    small = np.stack([cv2.resize(image, size, interpolation=cv2.INTER_AREA) for image in images])
    chosen = np.unique(np.linspace(0, len(small) - 1, REFERENCE_FRAMES).astype(int))
    reference = np.median(small[chosen], axis=0).astype(np.float32)
    result, field, largest = images, np.zeros_like(reference), 0.0
    for t, frame in enumerate(small):
        field = _field(frame.astype(np.float32), reference, field)
        change = float(np.max(np.abs(field)))
        if change > STEADY:
            result = images.copy() if result is images else result
            result[t] = _relit(images[t], field)
            largest = max(largest, change)
    return result, largest


def _field(frame: Floats, reference: Floats, start: Floats) -> Floats:
    """(h, w, 3) log gains from a frame to the reference."""
    lowest, highest = -largest_of_three(-np.minimum(frame, reference)), largest_of_three(np.maximum(frame, reference))
    usable = (lowest > DARKEST) & (highest < BRIGHTEST)
    if np.count_nonzero(usable) < 50:
        return np.zeros_like(start)
    ratio = np.log(np.maximum(reference, 1.0)) - np.log(np.maximum(frame, 1.0))
    common = np.median(ratio[usable] - start[usable], axis=0)
    field = start + common.astype(np.float32)
    for _ in range(ROUNDS):
        agrees = usable & (largest_of_three(np.abs(ratio - field)) < AGREEING)
        if np.count_nonzero(agrees) < 50:
            break
        weight = agrees.astype(np.float32)
        total = _window(weight)[..., None]
        mean = (_window(ratio * weight[..., None]) + FEWEST * field) / (total + FEWEST)
        field = np.asarray(mean, np.float32)
    return np.asarray(field, np.float32)


def _window(image: Floats) -> Floats:
    reach = 2 * round(1.7 * REACH * image.shape[1]) + 1  # two box filters of this width are nearly a Gaussian
    return np.asarray(cv2.blur(cv2.blur(image, (reach, reach)), (reach, reach)), np.float32)


def _relit(image: Image, field: Floats) -> Image:
    if np.ptp(field, axis=(0, 1)).max() < UNIFORM:
        levels = np.arange(256)[:, None] * np.exp(field.mean(axis=(0, 1)))
        table = np.clip(np.rint(levels), 0, 255).astype(np.uint8)[None]
        return np.asarray(cv2.LUT(image, table), np.uint8)
    gain = cv2.resize(np.exp(field), image.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return np.asarray(cv2.multiply(image, gain, dtype=cv2.CV_8U), np.uint8)
