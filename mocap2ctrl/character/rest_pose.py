"""The pose in which other programs expect a skeleton to be bound: upright, facing x, arms out to the sides, palms down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, frozen_array

RAISED = tuple(f"{side}_upper_arm.abduction" for side in SIDES)
"""The hinges that stand at 90 degrees; all others are at zero."""


@dataclass(frozen=True, eq=False)
class RestPose:
    """A character in T-pose, soles on the ground.

    A segment's rotation from its rest is the product of turns about its hinges' `axes`, by how far their angles are from
    `angles`: the product of exponentials.

    Attributes:
        angles: (J,) radians.
        positions: (S, 3) world, metres.
        orientations: (S, 4) world.
        axes: (J, 3) of the hinges, world.
    """

    angles: Array
    positions: Array
    orientations: Array
    axes: Array

    def __post_init__(self) -> None:
        for name, shape in (
            ("angles", (None,)),
            ("positions", (None, 3)),
            ("orientations", (None, 4)),
            ("axes", (None, 3)),
        ):
            object.__setattr__(self, name, frozen_array(getattr(self, name), shape, name))


@lru_cache(maxsize=8)
def rest_pose(character: Character) -> RestPose:
    """The T-pose of `character`; the zero pose for one without arms that can be raised to the sides."""
    zero = character.zero_pose()
    angles = np.where(np.isin(character.hinge_names, RAISED), 0.5 * np.pi, 0.0)
    positions, orientations = segment_frames(character, zero.root_position, zero.root_orientation, angles)
    axes = []
    for index, segment in enumerate(character.segments[1:], start=1):
        frame = orientations[segment.parent]
        for hinge, angle in zip(segment.hinges, angles[character.hinge_segment == index], strict=True):
            axes.append(rotations.rotate(frame, hinge.axis))
            frame = rotations.multiply(frame, rotations.about_axis(hinge.axis, angle))
    return RestPose(angles, positions, orientations, np.array(axes))
