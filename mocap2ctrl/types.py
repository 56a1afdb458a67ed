"""Values that travel between floors. All are frozen; their arrays are float64, checked on entry and read-only.

World frame: z up, x forward, y left; metres, kilograms, seconds, radians; quaternions (w, x, y, z).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import Mocap2CtrlError

Array = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]


def frozen_array(value: npt.ArrayLike, shape: tuple[int | None, ...], name: str) -> Array:
    """A read-only float64 copy of `value`, checked against `shape` (None: any length) and for finiteness."""
    array = np.array(value, dtype=np.float64)
    wanted = tuple("*" if n is None else n for n in shape)
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        raise Mocap2CtrlError(f"{name} has shape {array.shape}; expected {wanted}")
    if not np.all(np.isfinite(array)):
        raise Mocap2CtrlError(f"{name} holds NaN or infinite values; expected finite numbers")
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Pose:
    """One configuration of a character.

    Attributes:
        root_position: (3,) world position of the pelvis origin, metres.
        root_orientation: (4,) world orientation of the pelvis, unit quaternion wxyz.
        angles: (J,) joint angles in the character's order, radians.
    """

    root_position: Array
    root_orientation: Array
    angles: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "root_position", frozen_array(self.root_position, (3,), "root_position"))
        object.__setattr__(self, "root_orientation", frozen_array(self.root_orientation, (4,), "root_orientation"))
        object.__setattr__(self, "angles", frozen_array(self.angles, (None,), "angles"))


@dataclass(frozen=True, eq=False)
class SimState:
    """A pose and its velocities: what a simulation starts from.

    Attributes:
        pose: the configuration.
        root_velocity: (3,) world velocity of the pelvis origin, m/s.
        root_angular_velocity: (3,) world angular velocity of the pelvis, rad/s.
        joint_velocities: (J,) rad/s.
    """

    pose: Pose
    root_velocity: Array
    root_angular_velocity: Array
    joint_velocities: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "root_velocity", frozen_array(self.root_velocity, (3,), "root_velocity"))
        object.__setattr__(
            self, "root_angular_velocity", frozen_array(self.root_angular_velocity, (3,), "root_angular_velocity")
        )
        size = len(self.pose.angles)
        object.__setattr__(self, "joint_velocities", frozen_array(self.joint_velocities, (size,), "joint_velocities"))


@dataclass(frozen=True, eq=False)
class MotionClip:
    """A motion of a character, sampled evenly in time.

    Attributes:
        name: short name, for reports.
        fps: frames a second.
        root_position: (T, 3) metres, world.
        root_orientation: (T, 4) unit quaternions wxyz, world.
        angles: (T, J) radians, in the character's joint order.
        loop: the clip is one period of a cyclic motion; the root's travel is carried on from period to period.
        ends_standing: the last frame is statically stable, so the stability term (Eq. 11) applies.
        provenance: where it came from; plain JSON values.
        start_s: time of the first frame in the file or video that it came from, seconds.
    """

    name: str
    fps: float
    root_position: Array
    root_orientation: Array
    angles: Array
    loop: bool = False
    ends_standing: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)
    start_s: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.fps) and self.fps > 0):
            raise Mocap2CtrlError(f"fps is {self.fps}; expected a positive number")
        if not np.isfinite(self.start_s):
            raise Mocap2CtrlError(f"start_s is {self.start_s}; expected seconds")
        object.__setattr__(self, "root_position", frozen_array(self.root_position, (None, 3), "root_position"))
        frames = len(self.root_position)
        if frames == 0:
            raise Mocap2CtrlError("a motion clip needs at least one frame")
        object.__setattr__(
            self, "root_orientation", frozen_array(self.root_orientation, (frames, 4), "root_orientation")
        )
        object.__setattr__(self, "angles", frozen_array(self.angles, (frames, None), "angles"))

    def __len__(self) -> int:
        return len(self.root_position)

    @property
    def duration_s(self) -> float:
        """Time from the first to the last frame, seconds."""
        return (len(self) - 1) / self.fps

    @property
    def times_s(self) -> Array:
        """(T,) times of the frames in the source, seconds."""
        return np.asarray(self.start_s + np.arange(len(self)) / self.fps)

    def pose(self, frame: int) -> Pose:
        """The pose at `frame` (negative counts from the end)."""
        return Pose(self.root_position[frame], self.root_orientation[frame], self.angles[frame])

    def cut(self, start: int, stop: int | None = None) -> MotionClip:
        """Frames `start` up to, not including, `stop`; no longer a loop."""
        part = slice(start, stop)
        return replace(
            self,
            root_position=self.root_position[part],
            root_orientation=self.root_orientation[part],
            angles=self.angles[part],
            loop=False,
            start_s=self.start_s + part.indices(len(self))[0] / self.fps,
        )


@dataclass(frozen=True, eq=False)
class Camera:
    """A calibrated camera: the pinhole model of OpenCV, with the keys of Pose2Sim's files.

    A world point X is at R X + t in the camera's frame (x right, y down, z forward). Pixel (0, 0) is the centre of the first one.

    Attributes:
        name: for messages.
        size: width and height of its images, pixels.
        matrix: (3, 3) focal lengths and principal point, pixels.
        rotation: (3,) Rodrigues vector of R, world to camera, radians.
        translation: (3,) t, metres.
        distortions: (N,) OpenCV's coefficients: k1, k2, p1, p2 and on, or k1 to k4 of a fisheye; empty for an ideal camera.
        fisheye: which of the two models the distortions belong to.
    """

    name: str
    size: tuple[int, int]
    matrix: Array
    rotation: Array
    translation: Array
    distortions: Array = field(default_factory=lambda: np.zeros(0))
    fisheye: bool = False

    def __post_init__(self) -> None:
        for name, shape in (("matrix", (3, 3)), ("rotation", (3,)), ("translation", (3,)), ("distortions", (None,))):
            object.__setattr__(self, name, frozen_array(getattr(self, name), shape, f"camera {self.name}: {name}"))


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Where named points of a person's body are in each frame, as a detector, or somebody's clicks, say.

    Attributes:
        names: of K points, as in `character/landmarks.py`.
        pixels: (T, K, 2) in pixels of the silhouettes; of no meaning where the confidence is 0.
        confidence: (T, K) from 0, not seen, to 1.
        scale: pixels of the video to one of the silhouettes', for errors in reports.
        provenance: where they came from; plain JSON values.
    """

    names: tuple[str, ...]
    pixels: Array
    confidence: Array
    scale: float = 1.0
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.names)
        object.__setattr__(self, "confidence", frozen_array(self.confidence, (None, count), "keypoints' confidence"))
        frames = len(self.confidence)
        object.__setattr__(self, "pixels", frozen_array(self.pixels, (frames, count, 2), "keypoints' pixels"))
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise Mocap2CtrlError(f"keypoints' scale is {self.scale}; expected a positive number")
        if np.any(self.confidence < 0) or np.any(self.confidence > 1):
            raise Mocap2CtrlError("keypoints' confidence is outside 0 to 1")

    def __len__(self) -> int:
        return len(self.confidence)

    def at(self, frames: npt.ArrayLike) -> Keypoints:
        """Those of some frames, by index (F,)."""
        index = np.asarray(frames)
        return replace(self, pixels=self.pixels[index], confidence=self.confidence[index])


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """Where a person is in each frame of a video, with the camera that sees the masks.

    Attributes:
        name: for reports.
        fps: frames a second; the first frame is at time 0.
        masks: (T, H, W) bool, true where the person is, read-only; a mask without a pixel is a frame without evidence.
        camera: an ideal pinhole whose images are the masks.
        provenance: where they came from; plain JSON values.
        ground_velocity: (2,) m/s along world x and y, of the ground that bears the person by the camera: a treadmill's belt.
            World positions of bodies are on that ground; the camera sees them moved by `carried`.
        keypoints: points of the body in the same frames; None without.
    """

    name: str
    fps: float
    masks: Masks
    camera: Camera
    provenance: Mapping[str, Any] = field(default_factory=dict)
    ground_velocity: Array = field(default_factory=lambda: np.zeros(2))
    keypoints: Keypoints | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.fps) and self.fps > 0):
            raise Mocap2CtrlError(f"fps is {self.fps}; expected a positive number")
        object.__setattr__(self, "ground_velocity", frozen_array(self.ground_velocity, (2,), "ground_velocity"))
        masks = np.array(self.masks, dtype=bool)
        width, height = self.camera.size
        if masks.ndim != 3 or len(masks) == 0 or masks.shape[1:] != (height, width):
            raise Mocap2CtrlError(
                f"masks have shape {masks.shape}; expected (frames, {height}, {width}), the camera's size"
            )
        if self.camera.fisheye or np.any(self.camera.distortions):
            raise Mocap2CtrlError("the camera of silhouettes has lens distortion; undistort the masks first")
        if self.keypoints is not None and len(self.keypoints) != len(masks):
            raise Mocap2CtrlError(f"keypoints are of {len(self.keypoints)} frames, the masks of {len(masks)}")
        masks.setflags(write=False)
        object.__setattr__(self, "masks", masks)

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def times_s(self) -> Array:
        """(T,) of the frames."""
        return np.asarray(np.arange(len(self)) / self.fps)

    def carried(self, times_s: Array) -> Array:
        """(N, 3) how far the ground has moved by the camera since time 0, metres.

        By Galileo's relativity, a body on ground that moves steadily before a camera is one on ground at rest, seen by a
        camera that moves the other way; so nothing but what is seen depends on it.
        """
        return np.asarray(np.asarray(times_s)[:, None] * np.append(self.ground_velocity, 0.0))
