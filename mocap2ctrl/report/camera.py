"""Who looks at the body: a virtual camera that follows it from three quarters, or the camera that took a video."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.geometry.camera import camera_centre, world_to_camera
from mocap2ctrl.types import Array, Camera

AZIMUTH_FROM_TRAVEL = np.radians(116.0)
"""The camera stands to the right of the direction of travel and looks back a little: people walk from left to right."""

FIELD_OF_VIEW = np.radians(30.0)
MARGIN_M = 0.16
FOLLOW_SIGMA_S = 0.35
PARTED = 1.2
"""Two bodies are seen by one camera while each is nearer to their middle than so many body heights."""

Size = tuple[int, int]
Pinhole = tuple[float, float, float, float]


class Viewpoint(ABC):
    """A pinhole as the renderer needs it. The first pixel's centre is (0, 0)."""

    size: Size
    """Image width and height, pixels."""

    @property
    @abstractmethod
    def eye(self) -> Array:
        """(3,) where it is in the world, metres."""

    @property
    @abstractmethod
    def axes(self) -> Array:
        """(3, 3) rows are the image's right, down and forward directions in the world."""

    @property
    @abstractmethod
    def pinhole(self) -> Pinhole:
        """Focal lengths and principal point in x and y, pixels."""

    def to_camera(self, points_world: npt.ArrayLike) -> Array:
        """Points (..., 3) in the camera's frame: right, down, forward; metres."""
        return np.asarray((np.asarray(points_world, float) - self.eye) @ self.axes.T)

    def to_pixels(self, points_camera: Array) -> Array:
        """Pixel coordinates (..., 2) of points (..., 3) in the camera's frame, in front of it."""
        return np.asarray(self.pinhole[:2] * points_camera[..., :2] / points_camera[..., 2:] + self.pinhole[2:])

    def project(self, points_world: npt.ArrayLike) -> Array:
        """Pixel coordinates (..., 2) of world points (..., 3) in front of the camera."""
        return self.to_pixels(self.to_camera(points_world))


@dataclass(frozen=True, eq=False)
class VideoCamera(Viewpoint):
    """The camera of a video: an ideal pinhole without skew.

    Attributes:
        camera: as its file says.
        size: image width and height, pixels; the camera's.
    """

    camera: Camera
    size: Size = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.camera.size)

    @cached_property
    def eye(self) -> Array:
        """(3,) where it is in the world, metres."""
        return camera_centre(self.camera)

    @cached_property
    def axes(self) -> Array:
        """(3, 3) rows are the image's right, down and forward directions in the world."""
        return world_to_camera(self.camera)

    @cached_property
    def pinhole(self) -> Pinhole:
        """Focal lengths and principal point in x and y, pixels."""
        m = self.camera.matrix
        return float(m[0, 0]), float(m[1, 1]), float(m[0, 2]), float(m[1, 2])


@dataclass(frozen=True, eq=False)
class VirtualCamera(Viewpoint):
    """A pinhole camera without roll.

    Attributes:
        position: (3,) world, metres.
        azimuth: direction of view about world z from x, radians.
        pitch: downward tilt, radians.
        focal_px: focal length, pixels.
        size: image width and height, pixels.
    """

    position: Array
    azimuth: float
    pitch: float
    focal_px: float
    size: tuple[int, int]

    @property
    def eye(self) -> Array:
        """(3,) where it is in the world, metres."""
        return self.position

    @cached_property
    def axes(self) -> Array:
        """(3, 3) rows are the image's right, down and forward directions in the world."""
        ca, sa, cp, sp = np.cos(self.azimuth), np.sin(self.azimuth), np.cos(self.pitch), np.sin(self.pitch)
        return np.array([[sa, -ca, 0.0], [-sp * ca, -sp * sa, -cp], [cp * ca, cp * sa, -sp]])

    @property
    def pinhole(self) -> Pinhole:
        """Focal lengths and principal point in x and y, pixels."""
        return self.focal_px, self.focal_px, (self.size[0] - 1) / 2.0, (self.size[1] - 1) / 2.0

    def moved_to(self, target: npt.ArrayLike, distance: float) -> VirtualCamera:
        """Return the same camera, looking at `target` (3,) from `distance` metres."""
        return replace(self, position=np.asarray(target, float) - distance * self.axes[2])


def camera_path(
    reference_root: Array,
    simulated_root: Array,
    *,
    height_m: float,
    extent_m: tuple[float, float],
    fps: float,
    size: Size,
) -> list[VirtualCamera]:
    """One camera a frame, for both panels.

    The distance is fixed so that the whole motion fits; the camera moves only in the ground plane, on a smoothed path
    half-way between the two bodies.

    Args:
        reference_root: (N, 3) root positions to follow, metres.
        simulated_root: (N, 3) likewise.
        height_m: body height, for the framing.
        extent_m: how far limbs reach sideways from the root, and the highest point that must be seen, metres.
        fps: frames a second of the paths; 0 for moments far apart, where the camera must not be smoothed.
        size: panel width and height, pixels.
    """
    middle = 0.5 * (reference_root + simulated_root)[:, :2]
    path = smoothed(middle, FOLLOW_SIGMA_S * fps)
    apart = max(np.abs(root[:, :2] - path).max() for root in (reference_root, simulated_root))
    bottom_m, top_m = -0.1 * height_m, max(extent_m[1], 0.6 * height_m) + MARGIN_M
    half_width = extent_m[0] + min(apart, PARTED * height_m)
    width, height = size
    focal = 0.5 * height / np.tan(0.5 * FIELD_OF_VIEW)
    distance = 0.2 * height_m + max(0.5 * (top_m - bottom_m) * focal * 2 / height, half_width * focal * 2 / width)
    camera = VirtualCamera(
        position=np.zeros(3),
        azimuth=_travel_heading(middle, height_m) + AZIMUTH_FROM_TRAVEL,
        pitch=float(np.radians(7.0)),
        focal_px=float(focal),
        size=size,
    )
    look_height = 0.5 * (top_m + bottom_m)
    return [camera.moved_to((x, y, look_height), float(distance)) for x, y in path]


def parting(reference_root: Array, simulated_root: Array, reach_m: float, sigma: float) -> Array:
    """(2, N, 2) where cameras of their own stand from the common one, of bodies farther than `reach_m` from their middle, metres.

    Zero while they are together; then each camera goes with its body, which stays as far from the centre of its picture.
    """
    middle = 0.5 * (reference_root + simulated_root)[:, :2]
    shifts = []
    for root in (reference_root, simulated_root):
        away = root[:, :2] - middle
        far = np.linalg.norm(away, axis=1, keepdims=True)
        beyond = np.maximum(1.0 - reach_m / np.maximum(far, reach_m), 0.0)
        shifts.append(smoothed(beyond * away, sigma) if np.any(beyond) else np.zeros_like(away))
    return np.stack(shifts)


def pixel_windows(camera: Viewpoint, ends_camera: Array, radii: Array) -> npt.NDArray[np.int64]:
    """(C, 4) pixel windows (left, top, right, bottom), half open and cut to the image, around capsules.

    Args:
        camera: whose image it is.
        ends_camera: (C, 2, 3) capsule ends in the camera's frame, metres, in front of the camera.
        radii: (C,) metres.
    """
    depth = ends_camera[..., 2:]
    pixel = camera.to_pixels(ends_camera)
    grow = np.array(camera.pinhole[:2]) * radii[:, None, None] / (depth - radii[:, None, None]) + 1.0
    low = np.floor((pixel - grow).min(axis=1))
    high = np.ceil((pixel + grow).max(axis=1)) + 1.0
    return np.concatenate([np.clip(low, 0, camera.size), np.clip(high, 0, camera.size)], axis=1).astype(np.int64)


def _travel_heading(path: Array, height_m: float) -> float:
    """Direction of the path's farthest point from its start; world x if the body stays where it is."""
    offsets = path - path[0]
    far = offsets[np.argmax(np.linalg.norm(offsets, axis=1))]
    return float(np.arctan2(far[1], far[0])) if np.linalg.norm(far) > 0.35 * height_m else 0.0


def smoothed(path: Array, sigma: float) -> Array:
    """(N, K) path, Gaussian-smoothed in time, its ends extended by point reflection: it neither lags nor jumps."""
    pad = min(len(path) - 1, int(np.ceil(3.0 * sigma)))
    if pad < 1:
        return path
    before, after = 2.0 * path[:1] - path[pad:0:-1], 2.0 * path[-1:] - path[-2 : -2 - pad : -1]
    padded = np.concatenate([before, path, after])
    taps = cv2.getGaussianKernel(2 * pad + 1, sigma)[:, 0]
    return np.stack([np.convolve(column, taps, mode="valid") for column in padded.T], axis=1)
