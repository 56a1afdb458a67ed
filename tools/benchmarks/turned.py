"""The balancing man's camera, turned to where it sees what does not move.

The reference was triangulated from four views. Fixed points of the room, triangulated from the other three, come out a constant
way off where this one sees them: it has been turned since it was calibrated. Everything that is seen by it is off by as much.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.camera import camera_centre, project, undistorted
from mocap2ctrl.types import Array, Camera
from mocap2ctrl.video.camera_file import load_camera

TURNED, OTHERS = "cam_03", ("cam_01", "cam_02", "cam_04")
SEEN_PX = {
    "cam_01": ((786.5, 1279.7), (510.8, 1035.3), (66.0, 1059.3), (947.7, 1424.8), (666.8, 1520.3)),
    "cam_02": ((803.0, 1269.8), (824.0, 1065.3), (415.2, 1037.3), (630.2, 1343.2), (272.3, 1316.2)),
    "cam_03": ((142.0, 1268.0), (520.3, 1501.0), (912.0, 1229.0), (60.7, 1059.0), (260.7, 970.3)),
    "cam_04": ((487.3, 1135.3), (324.8, 1464.8), (885.0, 1428.8), (609.0, 921.5), (829.7, 858.7)),
}
"""By hand, in the eleventh frame of each view: nuts of the deck's left front, left rear and right rear bracket, and the middles of
the left and the right post's upper rim."""


def room_points(calibration: Path) -> Array:
    """(5, 3) the fixed points as the other three cameras see them, metres."""
    cameras = [undistorted(load_camera(f"{calibration}:{name}")) for name in OTHERS]
    seen = np.stack([SEEN_PX[name] for name in OTHERS])

    def off(places: Array) -> Array:
        return np.concatenate(
            [project(camera, places.reshape(-1, 3)) - px for camera, px in zip(cameras, seen, strict=True)]
        ).ravel()

    return np.asarray(least_squares(off, np.zeros(15)).x.reshape(-1, 3))


def turned_camera(calibration: Path) -> Camera:
    """The camera `TURNED`, where it stands, turned until it sees the fixed points where they are."""
    camera, places = load_camera(f"{calibration}:{TURNED}"), room_points(calibration)
    centre = camera_centre(camera)

    def turned(vector: Array) -> Camera:
        return replace(
            camera, rotation=vector, translation=-rotations.to_matrix(rotations.from_rotation_vector(vector)) @ centre
        )

    found = least_squares(
        lambda vector: (project(undistorted(turned(vector)), places) - SEEN_PX[TURNED]).ravel(), camera.rotation
    )
    return turned(found.x)
