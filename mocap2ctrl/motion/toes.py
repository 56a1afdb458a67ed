"""Toes that bend where the ground is: a foot that rolls over its ball would push them through it.

Many skeletons have no toes, and others' are not as long as the character's.
"""

from __future__ import annotations

import numpy as np

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import SIDES, Character, Segment
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.inverse_kinematics import State
from mocap2ctrl.types import Array

SOLE_DOWN = (0.05, 0.3)
"""Cosine of the sole's tilt below which toes are left as they are, and above which they yield to the ground."""
GENTLE_RAD = np.radians(2.0)


def bent_toes(character: Character, state: State) -> Array:
    """The angles (T, J) of a motion on the ground z = 0, with toes that do not sink into it, within their limits."""
    positions, orientations = segment_frames(character, *state)
    angles = state[2].copy()
    for side in SIDES:
        index, foot = character.segment_index(f"{side}_toes"), character.segment_index(f"{side}_foot")
        toes = character.segments[index]
        column = int(np.flatnonzero(character.hinge_segment == index)[0])
        forward, left, up = (rotations.rotate(orientations[:, foot], axis)[:, 2] for axis in np.eye(3))
        needed = _level(toes, positions[:, index, 2], np.abs(left)) - np.arcsin(np.clip(forward, -1.0, 1.0))
        share = np.clip((up - SOLE_DOWN[0]) / (SOLE_DOWN[1] - SOLE_DOWN[0]), 0.0, 1.0)
        gap = needed - GENTLE_RAD - angles[:, column]
        angles[:, column] += share * 0.5 * (gap + np.hypot(gap, GENTLE_RAD))
    return np.clip(angles, character.lower_limits, character.upper_limits)


def _level(toes: Segment, height: Array, tilt: Array) -> Array:
    """(T,) least elevation in radians at which toes stay above the ground.

    Their joint is at `height` (T,), and the sine of their sideways tilt is `tilt` (T,).
    """
    ends = np.array([end for capsule in toes.capsules for end in (capsule.start, capsule.end)])
    radius = max(capsule.radius for capsule in toes.capsules)
    reach, width = max(float(np.max(ends[:, 0])), 1e-6), float(np.max(np.abs(ends[:, 1])))
    return np.asarray(np.arcsin(np.clip((radius + width * tilt - height) / reach, -1.0, 1.0)))
