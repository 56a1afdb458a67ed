"""A background that changes: OpenCV's mixture of Gaussians for each pixel (Zivkovic 2004), for leaves, water and screens."""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.types import Masks
from mocap2ctrl.video.decode import Image, Progress
from mocap2ctrl.video.masks import bridged, disc

WARM_UPS = 2
"""How often the clip is shown before masks are taken, so that the first frames know as much as the last."""
DEVIATIONS = 4.0
COMMON = 0.65
"""A pixel's most frequent colours are background until they make up this share of the clip; somebody passes by in less."""
FOREGROUND = 255


def mixture_masks(images: Image, progress: Progress | None = None) -> Masks:
    """(T, H, W) foreground without shadows, specks and cracks.

    Args:
        images: (T, H, W, 3).
        progress: told how far it is.
    """
    rate = 1.0 / (len(images) * (WARM_UPS + 1))
    model = cv2.createBackgroundSubtractorMOG2(len(images) * WARM_UPS, DEVIATIONS**2, detectShadows=True)
    model.setBackgroundRatio(COMMON)
    for number, image in enumerate(image for _ in range(WARM_UPS) for image in images[::-1]):
        model.apply(image, learningRate=max(rate, 1.0 / (number + 1)))
    masks = np.empty(images.shape[:3], bool)
    for t, image in enumerate(images):
        found = np.asarray(model.apply(image, learningRate=0.0) == FOREGROUND, np.uint8)
        whole = cv2.morphologyEx(cv2.medianBlur(found, 5), cv2.MORPH_CLOSE, disc(3))
        masks[t] = cv2.morphologyEx(whole, cv2.MORPH_OPEN, disc(1)) > 0
        if progress:
            progress("subtracting the background", (t + 1) / len(images))
    return bridged(masks)
