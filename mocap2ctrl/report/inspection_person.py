"""What silhouettes and a camera say of a person without a track: how tall, how far, and along which path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.geometry.camera import on_plane, to_camera
from mocap2ctrl.report.camera import VideoCamera
from mocap2ctrl.report.scene import Scene
from mocap2ctrl.track.start import rough_travel
from mocap2ctrl.types import Array

QUARTILES = (25.0, 75.0)
"""A person crouches in some frames and lifts the arms in others."""


@dataclass(frozen=True, eq=False)
class SeenPerson:
    """A person over T frames; NaN in frames without evidence.

    Attributes:
        times_s: (T,) in the input.
        tall_px: (T,) from top to bottom, pixels of the picture.
        tall_m: (T,) the same in metres, at the depth of `path_m`.
        soles_m: (T, 2) where the lowest pixel is on the ground; who jumps seems to be further away.
        path_m: (T, 2) where the middle of the body is, above the ground, at a depth that is linear in time.
        depth_m: (T,) of the path, from the camera along its view.
    """

    times_s: Array
    tall_px: Array
    tall_m: Array
    soles_m: Array
    path_m: Array
    depth_m: Array

    @property
    def heights_m(self) -> tuple[float, float]:
        """How tall the person is by this camera in a low quarter and in a high quarter of the frames, metres."""
        low, high = np.nanpercentile(self.tall_m, QUARTILES)
        return float(low), float(high)

    @property
    def reach_m(self) -> float:
        """How far the path leads from its start, metres."""
        return float(np.max(np.linalg.norm(self.path_m - self.path_m[0], axis=1)))


def seen_person(scene: Scene, start_s: float, pixels: float = 1.0) -> SeenPerson:
    """Measures the silhouettes of a scene.

    Args:
        scene: what the camera saw.
        start_s: the first silhouette's time in the input, seconds.
        pixels: of the input's picture for one of the scene's.
    """
    silhouettes = scene.silhouettes
    left, top, right, bottom = scene.boxes.T
    soles = on_plane(scene.camera, np.column_stack([0.5 * (left + right), bottom]))
    travel = rough_travel(silhouettes)
    depth = to_camera(scene.camera, travel)[:, 2]
    tall_px = bottom - top
    return SeenPerson(
        times_s=start_s + np.arange(len(silhouettes)) / silhouettes.fps,
        tall_px=pixels * tall_px,
        tall_m=tall_px * depth / VideoCamera(scene.camera).pinhole[1],
        soles_m=soles[:, :2],
        path_m=travel[:, :2],
        depth_m=depth,
    )
