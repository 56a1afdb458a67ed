"""Calibration poses in front of a motion: a T-pose, far from where the motion begins, in one frame or held for some."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.types import Array

FEWEST_FRAMES = 10
LONGEST_S = 5.0
"""A pose that is held for longer in front belongs to the motion, unless it is one frame."""
LONGEST_SHARE = 0.5
JUMP = 0.1
"""Of the body's size: how far a joint must at least jump from the pose into the motion."""
OUTLIER = 5.0
"""How often larger than nearly all other steps that jump is."""
STILL = 0.01
"""Of the jump: how far joints may move while the pose is held."""


def calibration_frames(source: SourceMotion, joints: Collection[int] = ()) -> int:
    """How many frames in front are a calibration pose, held still, from which the body jumps into the motion; mostly 0.

    Args:
        source: the motion.
        joints: those of the body; all if none is given. What else lies in a file may jump as it likes.
    """
    if len(source) < FEWEST_FRAMES:
        return 0
    positions = source.positions[:, sorted(joints)] if joints else source.positions
    steps = np.max(np.linalg.norm(np.diff(positions, axis=0), axis=-1), axis=1)
    most = max(1, int(min(LONGEST_SHARE * len(source), LONGEST_S * source.fps)))
    first = int(np.argmax(steps[:most]))
    others = np.delete(steps, first)
    size = _size(positions[0])
    if steps[first] <= JUMP * size or steps[first] <= OUTLIER * np.percentile(others, 99):
        return 0
    return first + 1 if np.all(steps[:first] <= STILL * steps[first]) else 0


def _size(pose: Array) -> float:
    """The longest side of the box around a pose (N, 3)."""
    return float(np.max(np.ptp(pose, axis=0)))
