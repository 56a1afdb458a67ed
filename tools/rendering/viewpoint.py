"""Where the camera stands: as near as the motion allows."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.camera import to_camera
from mocap2ctrl.types import Array, Camera

VIEWS = {"side": -90.0, "oblique": -45.0, "frontal": 0.0}
MARGIN = 0.04
HEIGHT_M = (1.25, 1.45)
FIELD_OF_VIEW_DEG = (52.0, 58.0)
NEAREST_M, FARTHEST_M = 0.5, 60.0


def place_camera(
    name: str, azimuth_deg: float, centres: Array, radii: Array, size: tuple[int, int], rng: np.random.Generator
) -> Camera:
    """The nearest camera at an azimuth, level at its sides, that keeps all balls in the picture, with a margin.

    Args:
        name: of the camera.
        azimuth_deg: from the motion to the camera, 0 straight ahead (x), counterclockwise from above.
        centres, radii: (N, 3) and (N,) the balls, metres.
        size: of the picture.
        rng: draws height and field of view.
    """
    height = rng.uniform(*HEIGHT_M)
    focal = 0.5 * size[0] / np.tan(np.radians(0.5 * rng.uniform(*FIELD_OF_VIEW_DEG)))
    matrix = np.array([[focal, 0.0, 0.5 * (size[0] - 1)], [0.0, focal, 0.5 * (size[1] - 1)], [0.0, 0.0, 1.0]])
    near, far = NEAREST_M, FARTHEST_M
    for _ in range(40):
        distance = 0.5 * (near + far)
        camera = _centred(
            Camera(name, size, matrix, np.zeros(3), np.zeros(3), np.zeros(4)),
            azimuth_deg,
            height,
            distance,
            centres,
            radii,
        )
        box = extent(camera, centres, radii)
        room = np.array([*size, *size]) * np.array([MARGIN, MARGIN, 1.0 - MARGIN, 1.0 - MARGIN])
        fits = box is not None and np.all(box[:2] >= room[:2]) and np.all(box[2:] <= room[2:])
        near, far = (near, distance) if fits else (distance, far)
    return _centred(camera, azimuth_deg, height, far, centres, radii)


def extent(camera: Camera, centres: Array, radii: Array) -> Array | None:
    """Left, top, right and bottom of the balls' pictures, pixels; None if one is too near."""
    seen = to_camera(camera, centres)
    depth = seen[..., 2] - radii
    if np.any(depth < 0.2):
        return None
    across = seen[..., :2] / seen[..., 2:]
    reach = (radii / depth * np.sqrt(1.0 + np.max(across**2, axis=-1)))[..., None]
    focal, centre = camera.matrix[[0, 1], [0, 1]], camera.matrix[:2, 2]
    low, high = (focal * (across + sign * reach) + centre for sign in (-1.0, 1.0))
    return np.concatenate([low.reshape(-1, 2).min(axis=0), high.reshape(-1, 2).max(axis=0)])


def _centred(
    camera: Camera, azimuth_deg: float, height: float, distance: float, centres: Array, radii: Array
) -> Camera:
    """The camera at a distance from the motion's middle, shifted sideways and pitched until the motion is in the middle."""
    azimuth = np.radians(azimuth_deg)
    outward = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    points = centres.reshape(-1, 3)
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0)) * np.array([1.0, 1.0, 0.0])
    aside, pitch = 0.0, 0.0
    for _ in range(6):
        camera = _looking(camera, middle + distance * outward + aside * right + (0.0, 0.0, height), azimuth, pitch)
        box = extent(camera, centres, radii)
        if box is None:
            break
        off = 0.5 * (box[:2] + box[2:]) - camera.matrix[:2, 2]
        aside += float(off[0] / camera.matrix[0, 0]) * distance
        pitch += float(np.arctan(off[1] / camera.matrix[1, 1]))
    return camera


def _looking(camera: Camera, place: Array, azimuth: float, pitch: float) -> Camera:
    """The camera at `place`, turned against `azimuth` and down by `pitch`, radians."""
    forward = np.array([-np.cos(azimuth) * np.cos(pitch), -np.sin(azimuth) * np.cos(pitch), -np.sin(pitch)])
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    turn = np.stack([right, np.cross(forward, right), forward])
    vector = rotations.to_rotation_vector(rotations.from_matrix(turn))
    return Camera(camera.name, camera.size, camera.matrix, vector, -turn @ place, camera.distortions)
