"""The part of the picture that the objective looks at: undistorted, around the person, at a working size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.geometry.camera import cropped, undistorted
from mocap2ctrl.types import Camera, Masks
from mocap2ctrl.video.decode import Image, working_size

OBJECTIVE_PIXELS = 160 * 90
"""Area of a silhouette: Vondrak 2012, section 7."""
MARGIN = 0.08
"""Around the person's box over the clip, as a share of its longer side."""
WIDENING = 0.5
"""A picture may grow by this share of its size on each side when it is undistorted."""
BORDER_POINTS = 64


@dataclass(frozen=True, eq=False)
class Undistortion:
    """How to undistort pictures by one camera.

    Attributes:
        camera: the ideal pinhole that sees the result; its picture holds all that the lens saw, within reason.
        across, down: (h, w) where each pixel of the result is in the distorted picture; None: there is no distortion.
    """

    camera: Camera
    across: npt.NDArray[np.float32] | None
    down: npt.NDArray[np.float32] | None

    def masks(self, masks: Masks) -> Masks:
        """Undistorts (T, H, W) masks; a pixel is set when it is more than half inside."""
        if self.across is None:
            return masks
        warped = [cv2.remap(m.astype(np.uint8) * 255, self.across, self.down, cv2.INTER_LINEAR) > 127 for m in masks]
        return np.stack(warped)

    def images(self, images: Image) -> Image:
        """Undistorts (T, H, W, 3) frames; black where the lens did not see."""
        if self.across is None:
            return images
        return np.stack([cv2.remap(image, self.across, self.down, cv2.INTER_LINEAR) for image in images])


def undistortion(camera: Camera) -> Undistortion:
    """Prepares the undistortion of a camera's pictures."""
    if not np.any(camera.distortions) and not camera.fisheye:
        return Undistortion(undistorted(camera), None, None)
    left, top, right, bottom = _seen_box(camera)
    ideal = undistorted(camera)
    matrix = np.array(ideal.matrix)
    matrix[:2, 2] -= (left, top)
    ideal = replace(ideal, matrix=matrix, size=(right - left, bottom - top))
    make = cv2.fisheye.initUndistortRectifyMap if camera.fisheye else cv2.initUndistortRectifyMap
    own, coefficients = np.array(camera.matrix), _coefficients(camera)
    across, down = make(own, coefficients, np.eye(3), matrix, ideal.size, cv2.CV_32FC1)
    return Undistortion(ideal, across, down)


def _coefficients(camera: Camera) -> npt.NDArray[np.float64]:
    return np.array(camera.distortions) if len(camera.distortions) else np.zeros(4)


def _seen_box(camera: Camera) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of what the lens sees, in pixels of the ideal pinhole with the same matrix."""
    width, height = camera.size
    t = np.linspace(0.0, 1.0, BORDER_POINTS)
    x = np.concatenate([t, t, 0 * t, 0 * t + 1]) * (width - 1)
    y = np.concatenate([0 * t, 0 * t + 1, t, t]) * (height - 1)
    points = np.stack([x, y], axis=1)[:, None]
    undistort = cv2.fisheye.undistortPoints if camera.fisheye else cv2.undistortPoints
    ideal = undistort(points, np.array(camera.matrix), _coefficients(camera), P=np.array(camera.matrix))[:, 0]
    ideal = ideal[np.all(np.isfinite(ideal), axis=1)]
    if len(ideal) == 0:
        return 0, 0, width, height
    low = np.clip(ideal.min(axis=0), [-WIDENING * width, -WIDENING * height], 0.0)
    high = np.clip(ideal.max(axis=0) + 1, [width, height], [(1 + WIDENING) * width, (1 + WIDENING) * height])
    return int(np.floor(low[0])), int(np.floor(low[1])), int(np.ceil(high[0])), int(np.ceil(high[1]))


def person_box(masks: Masks) -> tuple[int, int, int, int]:
    """Left, top, width, height of the person's box over all masks, with a margin, inside the picture."""
    height, width = masks.shape[1:]
    rows, columns = (np.flatnonzero(np.any(masks, axis=axes)) for axes in ((0, 2), (0, 1)))
    margin = max(1, round(MARGIN * max(np.ptp(rows), np.ptp(columns))))
    left, top = max(0, int(columns[0]) - margin), max(0, int(rows[0]) - margin)
    right, bottom = min(width, int(columns[-1]) + 1 + margin), min(height, int(rows[-1]) + 1 + margin)
    return left, top, right - left, bottom - top


def working_region(masks: Masks, camera: Camera) -> tuple[Masks, Camera]:
    """Masks and camera of the person's box, reduced to at most 160x90 pixels of area.

    Args:
        masks: (T, H, W), of which one holds a pixel.
        camera: the ideal pinhole whose pictures they are.
    """
    left, top, width, height = person_box(masks)
    size = working_size((width, height), OBJECTIVE_PIXELS)
    part = masks[:, top : top + height, left : left + width]
    return reduced_masks(part, size), cropped(camera, left, top, width, height, size)


def reduced_masks(masks: Masks, size: tuple[int, int]) -> Masks:
    """Masks at another width and height: a pixel is set when at least half of its area is."""
    if masks.shape[:0:-1] == size:
        return masks
    levels = (cv2.resize(m.astype(np.float32), size, interpolation=cv2.INTER_AREA) for m in masks)
    return np.stack([level >= 0.5 for level in levels])
