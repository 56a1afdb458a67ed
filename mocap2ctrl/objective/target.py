"""The evidence that a controller is fitted to, at the objective's frame rate: a clip's markers, and a video's silhouettes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mocap2ctrl.character.kinematics import centre_of_mass, clip_frames, evaluation_points, marker_layout, points_world
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry.masks import masks_at_rate
from mocap2ctrl.objective.flight import Momentum, flight_momentum
from mocap2ctrl.types import Array, Camera, Keypoints, Masks, MotionClip, Silhouettes


@dataclass(frozen=True, eq=False)
class MarkerTarget:
    """Three markers a segment over time (Eq. 10).

    Attributes:
        fps: frames a second; the first frame is at time 0.
        markers: (T, 3 S, 3) world positions, metres.
        points: (T, E, 3) evaluation points, for errors in reports.
        com: (T, 3) centre of mass, metres.
        momentum: that flights ask for; None for a motion that does not fly.
    """

    fps: float
    markers: Array
    points: Array
    com: Array
    momentum: Momentum | None = None

    def __len__(self) -> int:
        return len(self.markers)


def marker_target(character: Character, clip: MotionClip) -> MarkerTarget:
    """The markers of `clip`, at the clip's own rate."""
    positions, orientations = clip_frames(character, clip)
    segment, local = marker_layout(character)
    markers = points_world(positions, orientations, segment, local)
    points = evaluation_points(character, positions, orientations)
    com = centre_of_mass(character, positions, orientations)
    momentum = flight_momentum(character, positions, orientations, com, clip.fps)
    return MarkerTarget(clip.fps, markers, points, com, momentum)


@dataclass(frozen=True, eq=False)
class SilhouetteTarget:
    """Where a person is in each frame (Eq. 9).

    Attributes:
        fps: frames a second; the first frame is at time 0.
        masks: (T, H, W) true where the person is; a mask without a pixel is a frame without evidence.
        camera: the ideal pinhole that sees them.
        carried: (T, 3) how far the ground has moved by the camera since time 0, metres.
        girth: of the character's shape, as stout as the person (`BodyShape.radii_at`).
        keypoints: points of the body in the same frames; None without.
    """

    fps: float
    masks: Masks
    camera: Camera
    carried: Array
    girth: float = 1.0
    keypoints: Keypoints | None = None

    def __len__(self) -> int:
        return len(self.masks)

    @cached_property
    def last_seen(self) -> int:
        """The last frame with evidence: what the body is to look like past the end (Eq. 11)."""
        seen = np.flatnonzero(self.masks.any(axis=(1, 2)))
        return int(seen[-1]) if len(seen) else len(self.masks) - 1


def silhouette_target(silhouettes: Silhouettes, girth: float, fps: float) -> SilhouetteTarget:
    """Silhouettes of any rate at `fps`."""
    masks = masks_at_rate(silhouettes.masks, silhouettes.fps, fps)
    carried = silhouettes.carried(np.arange(len(masks)) / fps)
    points = silhouettes.keypoints
    if points is not None:  # those of the nearest frame: between two, left and right may have been taken for each other
        frames = np.rint(np.arange(len(masks)) * silhouettes.fps / fps).astype(int)
        points = points.at(np.minimum(frames, len(points) - 1))
    return SilhouetteTarget(fps, masks, silhouettes.camera, carried, girth, points)


def joint_error(simulated: Array, reference: Array) -> Array:
    """(..., E) Euclidean distances in cm between evaluation points (..., E, 3): DESIGN's joint error before averaging."""
    return np.asarray(100.0 * np.linalg.norm(np.asarray(simulated) - np.asarray(reference), axis=-1))
