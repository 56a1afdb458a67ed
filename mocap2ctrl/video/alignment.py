"""Small shifts of the whole picture (a tripod on a wooden floor, image stabilisation), undone before the subtraction."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.video.decode import Image

CORNERS = 150
QUALITY = 0.01
FEWEST = 8
AGREE_PX = 1.0
"""Corners that moved like the median, within this, are of the scene; others are of the person."""
MOST_SHARE = 0.02
"""Shifts above this share of the width are not a small shift."""
LEAST_PX = 0.1


class Aligner:
    """Finds how far frames are shifted against a picture of the scene, by its corners."""

    def __init__(self, picture: Image) -> None:
        self._picture = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
        self._most = MOST_SHARE * self._picture.shape[1]
        corners = cv2.goodFeaturesToTrack(self._picture, CORNERS, QUALITY, max(4, self._picture.shape[1] // 40))
        self._corners = np.zeros((0, 1, 2), np.float32) if corners is None else corners

    def shift(self, image: Image) -> npt.NDArray[np.float64]:
        """(2,) how far right and down the scene is in a frame, pixels; 0 where the corners do not agree."""
        if len(self._corners) < FEWEST:
            return np.zeros(2)
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        moved, found, _ = cv2.calcOpticalFlowPyrLK(
            self._picture, grey, self._corners, None, winSize=(11, 11), maxLevel=1
        )
        steps = (moved - self._corners)[found[:, 0] > 0, 0].astype(float)
        if len(steps) < FEWEST:
            return np.zeros(2)
        agreeing = np.linalg.norm(steps - np.median(steps, axis=0), axis=1) < AGREE_PX
        if np.count_nonzero(agreeing) < max(FEWEST, 0.5 * len(steps)):
            return np.zeros(2)
        mean = steps[agreeing].mean(axis=0)
        return mean if np.linalg.norm(mean) <= self._most else np.zeros(2)


def align(images: Image, picture: Image) -> tuple[Image, float]:
    """Frames (T, H, W, 3) with their shifts against a picture undone, and the largest shift, pixels.

    Frames that are shifted by a tenth of a pixel or less stay as they are.
    """
    aligner = Aligner(picture)
    shifts = np.stack([aligner.shift(image) for image in images])
    lengths = np.linalg.norm(shifts, axis=1)
    if np.all(lengths <= LEAST_PX):
        return images, 0.0
    result = images.copy()
    for t in np.flatnonzero(lengths > LEAST_PX):
        result[t] = translated(images[t], -shifts[t])
    return result, float(lengths.max())


def translated(image: Image, shift: npt.NDArray[np.float64]) -> Image:
    """A frame moved right and down by `shift` pixels; its border is repeated."""
    height, width = image.shape[:2]
    matrix = np.array([[1.0, 0.0, shift[0]], [0.0, 1.0, shift[1]]])
    moved = cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(moved, np.uint8)
