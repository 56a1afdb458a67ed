"""From distances to one person's clean mask in each frame: hysteresis, morphology, and the part that stays consistent in time."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
from skimage.filters import apply_hysteresis_threshold
from skimage.morphology import remove_small_holes, remove_small_objects

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import Background, Floats, squared_distance
from mocap2ctrl.video.decode import Image, Progress
from mocap2ctrl.video.shadows import cast_shadow

CEILING, SMOOTHING = 4.0, 1.0
"""Squared distances, over the threshold, are cut off there and smoothed with this standard deviation, pixels."""
WEAK, STRONG = 1.0, 2.5
"""Squared distances over the threshold: a weak pixel counts where it is joined to a strong one."""
SPECK_SHARE = 0.00006
"""Parts smaller than this share of the picture are noise."""
RIM = 2
"""Pixels at a mask's edge that may be half background: the lens, the smoothing, and the shutter."""
EDGE_SMOOTHING = 1.2
"""Of a mask's edge, standard deviation in pixels."""
LIMB = 0.2
"""Longest piece, in heights of all that is seen, that is given back to a limb."""
HOLE_SHARE = 0.0002
"""Holes smaller than this share of the picture are filled."""


def raw_masks(
    background: Background, images: Image, *, shadows_in_background: bool = False, progress: Progress | None = None
) -> Masks:
    """(T, H, W) foreground of each frame without shadows, specks and small holes.

    Args:
        background: the model.
        images: (T, H, W, 3).
        shadows_in_background: the picture of the scene may hold somebody's shadow.
        progress: told how far it is.
    """
    masks = np.empty(images.shape[:3], bool)
    for t, image in enumerate(images):
        distance, colour = squared_distance(background, image)
        distance = cv2.GaussianBlur(np.minimum(distance, CEILING), (0, 0), SMOOTHING)
        shadow = cast_shadow(background, distance, colour)
        if shadows_in_background:
            shadow |= cast_shadow(background, distance, colour, gone=True)
        shadow = without_limbs(shadow, distance)
        masks[t] = half_covered(clean(distance, shadow), shadow, np.linalg.norm(colour - background.colour, axis=-1))
        if progress:
            progress("subtracting the background", (t + 1) / len(images))
    return bridged(masks)


def clean(distance: Floats, shadow: Masks) -> Masks:
    """Foreground (H, W) from squared distances over the threshold."""
    mask = apply_hysteresis_threshold(np.where(shadow, 0.0, distance), WEAK, STRONG)
    mask = remove_small_objects(mask, max_size=max(3, round(SPECK_SHARE * mask.size)))
    closed = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, disc(1)) > 0
    filled = remove_small_holes(closed, max_size=round(HOLE_SHARE * mask.size))
    opened = cv2.morphologyEx(filled.astype(np.uint8), cv2.MORPH_OPEN, disc(1)) > 0
    return np.asarray(opened)


def without_limbs(shadow: Masks, distance: Floats) -> Masks:
    """Gives back what was taken for shadow between body above and body below: a grey trouser leg above a grey floor."""
    body = cv2.morphologyEx(((distance > 1.0) & ~shadow).astype(np.uint8), cv2.MORPH_OPEN, disc(2))
    rows = np.flatnonzero(np.any(body, axis=1))
    if len(rows) == 0:
        return shadow
    length = 2 * round(LIMB * (rows[-1] - rows[0]) / 2) + 1
    column = np.ones((length, 1), np.uint8)
    return np.asarray(shadow & (cv2.morphologyEx(body, cv2.MORPH_CLOSE, column) == 0))


def half_covered(mask: Masks, shadow: Masks, difference: Floats) -> Masks:
    """Takes off the rim where a pixel shows less than half of the body.

    A pixel's colour is a mixture of the body's and the background's there, so its difference from the background is that of
    the nearest whole pixel of the body, times its share.

    Args:
        mask: (H, W).
        shadow: (H, W) what was taken off as shadow; towards it the rim stays.
        difference: (H, W) of the frame's colour from the background's.
    """
    rim = mask & (cv2.erode((mask | shadow).astype(np.uint8), disc(RIM)) == 0)
    whole = cv2.dilate(np.where(mask, difference, 0.0).astype(np.float32), disc(RIM))
    trimmed = mask & ~(rim & (difference < 0.5 * whole))
    return np.asarray(cv2.GaussianBlur(trimmed.astype(np.float32), (0, 0), EDGE_SMOOTHING) > 0.5)


def disc(radius: int) -> npt.NDArray[np.uint8]:
    """A round structuring element."""
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), np.uint8)


def bridged(masks: Masks) -> Masks:
    """Pixels that are set both a frame before and a frame after are set; nothing is taken away."""
    result = masks.copy()
    result[1:-1] |= masks[:-2] & masks[2:]
    return result
