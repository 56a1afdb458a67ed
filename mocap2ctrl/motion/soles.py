"""What of the character's feet touches the ground: heel and ball of each, how high they are, and whether they can stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import points_world
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, Masks

UPRIGHT = (0.75, 0.3)
"""Cosine of the sole's tilt beyond which heel or ball cannot be what the foot stands on."""
RAISED_M = 0.012
"""A heel that is higher than the ball by this does not stand."""


@dataclass(frozen=True, eq=False)
class Sole:
    """What of a foot touches the ground.

    Attributes:
        segment: of the foot.
        local: (2, C, 3) in its frame: of heel and ball, the ends of the foot's C capsules.
        radius: (2, C) of those ends.
    """

    segment: int
    local: Array
    radius: Array


def soles(character: Character) -> tuple[Sole, ...]:
    """The left and the right foot's."""
    found = []
    for side in SIDES:
        index = character.segment_index(f"{side}_foot")
        capsules = character.segments[index].capsules
        ends = [sorted((c.start, c.end), key=lambda end: float(end[0])) for c in capsules]
        radius = np.array([[c.radius for c in capsules]] * 2)
        found.append(Sole(index, np.array(ends).transpose(1, 0, 2), radius))
    return tuple(found)


def sole_heights(sole: Sole, positions: Array, orientations: Array) -> Array:
    """(T, 2) height of the lowest point of heel and ball above z = 0."""
    ends = sole.local.reshape(-1, 3)
    world = points_world(positions, orientations, [sole.segment] * len(ends), ends)[..., 2]
    return np.asarray(np.min(world.reshape(len(world), *sole.radius.shape) - sole.radius, axis=-1))


def sole_middles(sole: Sole, positions: Array, orientations: Array) -> Array:
    """(T, 2, 3) the middles of heel and ball."""
    return points_world(positions, orientations, [sole.segment] * 2, np.mean(sole.local, axis=1))


def turned_to_ground(character: Character, positions: Array, orientations: Array) -> Masks:
    """(T, 2, 2) whether heel and ball of each foot could be what it stands on.

    Who kneels, sits or lies keeps feet still and low that stand on nothing; those are left as they are.
    """
    turned = []
    for sole in soles(character):
        up = rotations.rotate(orientations[:, sole.segment], np.array([0.0, 0.0, 1.0]))[:, 2]
        heel, ball = sole_heights(sole, positions, orientations).T
        turned.append(np.stack([(up > UPRIGHT[0]) & (heel < ball + RAISED_M), up > UPRIGHT[1]], axis=1))
    return np.stack(turned, axis=1)
