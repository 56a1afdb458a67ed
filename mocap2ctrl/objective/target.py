"""The evidence that a controller is fitted to: a reference clip's markers, sampled at the objective's frame rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import (
    centre_of_mass,
    evaluation_points,
    marker_layout,
    points_world,
    segment_frames,
)
from mocap2ctrl.character.model import Character
from mocap2ctrl.types import Array, MotionClip


@dataclass(frozen=True, eq=False)
class MarkerTarget:
    """Three markers a segment over time (Eq. 10).

    Attributes:
        fps: frames a second; the first frame is at time 0.
        markers: (T, 3 S, 3) world positions, metres.
        points: (T, E, 3) evaluation points, for errors in reports.
        com: (T, 3) centre of mass, metres.
    """

    fps: float
    markers: Array
    points: Array
    com: Array

    def __len__(self) -> int:
        return len(self.markers)


def marker_target(character: Character, clip: MotionClip) -> MarkerTarget:
    """The markers of `clip`, at the clip's own rate."""
    positions, orientations = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    segment, local = marker_layout(character)
    markers = points_world(positions, orientations, segment, local)
    points = evaluation_points(character, positions, orientations)
    return MarkerTarget(clip.fps, markers, points, centre_of_mass(character, positions, orientations))


def joint_error(simulated: Array, reference: Array) -> Array:
    """(..., E) Euclidean distances in cm between evaluation points (..., E, 3): DESIGN's joint error before averaging."""
    return np.asarray(100.0 * np.linalg.norm(np.asarray(simulated) - np.asarray(reference), axis=-1))
