"""Where the camera stands: as near as the motion allows, or anywhere that people hold theirs."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.camera import to_camera, world_to_camera
from mocap2ctrl.types import Array, Camera

VIEWS = {"side": -90.0, "oblique": -45.0, "frontal": 0.0}
MARGIN = 0.04
HEIGHT_M = (1.25, 1.45)
FIELD_OF_VIEW_DEG = (52.0, 58.0)
NEAREST_M, FARTHEST_M = 0.5, 60.0

ANY_HEIGHT_M = (0.8, 2.0)
ANY_FIELD_OF_VIEW_DEG = (46.0, 72.0)
"""Of the longer side: from a phone's wide end, uncropped, to half a standard zoom."""
ANY_RETREAT = (1.0, 1.6)
"""How many times as far as the nearest place."""
ANY_ROLL_DEG = 1.5
ANY_AIM, ANY_AIM_DEG = 0.8, 7.0
"""By what share of the room around the motion, and by which angle, the camera may miss its middle."""


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
    camera = _pinhole(name, size, focal)
    return _centred(camera, azimuth_deg, height, _nearest(camera, azimuth_deg, height, centres, radii), centres, radii)


def random_camera(
    name: str, azimuth_deg: float, centres: Array, radii: Array, size: tuple[int, int], rng: np.random.Generator
) -> Camera:
    """A camera as somebody may hold it: any height, lens and distance, a little askew, the motion somewhere in the picture.

    Arguments as in `place_camera`; `rng` draws all that the azimuth does not say.
    """
    height, retreat = rng.uniform(*ANY_HEIGHT_M), rng.uniform(*ANY_RETREAT)
    focal = 0.5 * max(size) / np.tan(np.radians(0.5 * rng.uniform(*ANY_FIELD_OF_VIEW_DEG)))
    roll, aim = np.radians(rng.uniform(-ANY_ROLL_DEG, ANY_ROLL_DEG)), rng.uniform(-ANY_AIM, ANY_AIM, 2)
    camera = _pinhole(name, size, focal)
    distance = retreat * _nearest(camera, azimuth_deg, height, centres, radii)
    camera = _turned(_centred(camera, azimuth_deg, height, distance, centres, radii), 2, roll)
    for part in (1.0, 0.7, 0.4, 0.0):
        missed = camera
        box = extent(camera, centres, radii)
        if box is not None:
            room = np.maximum(np.minimum(box[:2], np.array(size) - box[2:]) - MARGIN * np.array(size), 0.0)
            across, down = part * aim * np.minimum(np.arctan(room / focal), np.radians(ANY_AIM_DEG) / ANY_AIM)
            missed = _turned(_turned(camera, 1, float(across)), 0, float(down))
        if _holds(missed, centres, radii):
            break
    return missed


def _pinhole(name: str, size: tuple[int, int], focal: float) -> Camera:
    matrix = np.array([[focal, 0.0, 0.5 * (size[0] - 1)], [0.0, focal, 0.5 * (size[1] - 1)], [0.0, 0.0, 1.0]])
    return Camera(name, size, matrix, np.zeros(3), np.zeros(3), np.zeros(4))


def _turned(camera: Camera, axis: int, angle: float) -> Camera:
    """The camera at the same place, turned about one of its own axes (right, down, forward), radians."""
    turn = rotations.to_matrix(rotations.about_axis(np.eye(3)[axis], -angle))
    vector = rotations.to_rotation_vector(rotations.from_matrix(turn @ world_to_camera(camera)))
    return Camera(camera.name, camera.size, camera.matrix, vector, turn @ camera.translation, camera.distortions)


def _holds(camera: Camera, centres: Array, radii: Array) -> bool:
    """Whether all balls are in the picture, with a margin."""
    box = extent(camera, centres, radii)
    room = np.array([*camera.size, *camera.size]) * np.array([MARGIN, MARGIN, 1.0 - MARGIN, 1.0 - MARGIN])
    return box is not None and bool(np.all(box[:2] >= room[:2]) and np.all(box[2:] <= room[2:]))


def _nearest(camera: Camera, azimuth_deg: float, height: float, centres: Array, radii: Array) -> float:
    """The least distance from the motion's middle, metres, from which a level camera keeps all balls in the picture."""
    near, far = NEAREST_M, FARTHEST_M
    for _ in range(40):
        distance = 0.5 * (near + far)
        fits = _holds(_centred(camera, azimuth_deg, height, distance, centres, radii), centres, radii)
        near, far = (near, distance) if fits else (distance, far)
    return far


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
