"""A camera above a level ground, in the few numbers that an uncalibrated video can tell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, Camera


class GroundView(NamedTuple):
    """A camera over the world's origin that looks along y.

    Attributes:
        focal: focal length as a share of the picture's longer side.
        height_m: of the lens above the ground.
        tilt: downwards, radians.
        roll: clockwise as the camera's owner sees it, radians: the horizon then falls to the left in the picture.
    """

    focal: float
    height_m: float
    tilt: float
    roll: float

    def axes(self) -> Array:
        """(3, 3) world to camera: right, down and forward in the world."""
        sine, cosine = np.sin(self.tilt), np.cos(self.tilt)
        level = np.array([[1.0, 0.0, 0.0], [0.0, -sine, -cosine], [0.0, cosine, -sine]])
        sine, cosine = np.sin(self.roll), np.cos(self.roll)
        return np.asarray(np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]]) @ level)

    def camera(self, size: tuple[int, int], name: str) -> Camera:
        """The pinhole with its principal point at the middle of pictures of this width and height."""
        turn, focal = self.axes(), self.focal * max(size)
        return Camera(
            name=name,
            size=size,
            matrix=np.array([[focal, 0.0, 0.5 * (size[0] - 1)], [0.0, focal, 0.5 * (size[1] - 1)], [0.0, 0.0, 1.0]]),
            rotation=rotations.to_rotation_vector(rotations.from_matrix(turn)),
            translation=-turn @ np.array([0.0, 0.0, self.height_m]),
        )

    def field_of_view_deg(self, size: tuple[int, int]) -> float:
        """Horizontal angle of view."""
        return float(np.degrees(2.0 * np.arctan(0.5 * size[0] / (self.focal * max(size)))))
