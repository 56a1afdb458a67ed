"""Keypoints drawn on what a camera saw: small dots, one colour a side."""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.scene import HALO, Part, Scene, Size

LEFT, RIGHT, MIDDLE = (64, 160, 255), (255, 110, 64), (245, 245, 245)
FINE = 4
"""Binary places of a pixel's coordinates."""


def draw_keypoints(image: Image, scene: Scene, frame: int, part: Part, size: Size) -> None:
    """Draw the keypoints of silhouette `frame` on the picture of a part (H, W, 3), RGB, in place: left blue, right orange.

    The less a detector trusts a point, the smaller its dot.
    """
    seen = scene.silhouettes.keypoints
    if seen is None:
        return
    fx, fy, cx, cy = scene.view(part, size).pinhole
    own = scene.silhouettes.camera.matrix
    slopes = (seen.pixels[frame] - own[:2, 2]) / np.diag(own)[:2]
    radius = max(2.0, size[1] / 160)
    for name, place, confidence in zip(seen.names, slopes * (fx, fy) + (cx, cy), seen.confidence[frame], strict=True):
        inside = np.all((place > -radius) & (place < np.array(size) + radius))
        if confidence > 0 and inside:
            colour = LEFT if name.startswith("left_") else RIGHT if name.startswith("right_") else MIDDLE
            _dot(image, place, radius * (0.5 + 0.5 * confidence) + 1.0, HALO)
            _dot(image, place, radius * (0.5 + 0.5 * confidence), colour)


def _dot(image: Image, place: np.ndarray, radius: float, colour: tuple[int, int, int]) -> None:
    scale = 1 << FINE
    centre = (round(float(place[0]) * scale), round(float(place[1]) * scale))
    cv2.circle(image, centre, round(radius * scale), colour, -1, cv2.LINE_AA, FINE)
