"""First guesses for a state from a reference: the servo's closed form, fitted to the reference over the state's time.

A servo of rate alpha approaches its target q_d as q(t) = q_d + (q_0 - q_d) e^{-k t}. Asking that it pass from the reference's
angle at the state's beginning to the one at its end gives q_d; the target exaggerates the pose, as the paper's do.
"""

from __future__ import annotations

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import ControlState, Exit, TargetPose
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.types import Array, MotionClip

ALPHA = 0.1
"""Algorithm 2, line 3."""

LONGEST_REACH = 1.5
"""How much further than the reference moved in the state a target may lie, as a multiple: keeps short states from wild targets."""


def reference_state(
    name: str, clip: MotionClip, root_rotations: Array, begin_s: float, end_s: float, character: Character
) -> ControlState:
    """A state that follows `clip` from `begin_s` to `end_s`, if the servos had their way.

    Args:
        name: of the state.
        clip: the reference.
        root_rotations: (T, 3) its unwrapped root rotations in the heading frame.
        begin_s, end_s: seconds on the clip's time line; past its end the last frame holds.
        character: whose joint limits and alpha groups apply.
    """
    rate = -np.log(1.0 - ALPHA) / TIME_STEP_S
    decay = np.exp(-rate * (end_s - begin_s))
    reach = min(1.0 / (1.0 - decay), LONGEST_REACH)
    first, last = _sample(clip.angles, clip.fps, begin_s), _sample(clip.angles, clip.fps, end_s)
    angles = np.clip(first + reach * (last - first), character.lower_limits, character.upper_limits)
    first, last = _sample(root_rotations, clip.fps, begin_s), _sample(root_rotations, clip.fps, end_s)
    return ControlState(
        name=name,
        target=TargetPose(first + reach * (last - first), angles),
        alpha=np.full(len(character.groups), ALPHA),
        balance=np.zeros(3),
        exit=Exit(),
    )


def previous_state(name: str, previous: ControlState | None, first: TargetPose, character: Character) -> ControlState:
    """A state that goes on like the one before it (Algorithm 3 without a reference); the very first holds the pose `first`."""
    return ControlState(
        name=name,
        target=first if previous is None else previous.target,
        alpha=np.full(len(character.groups), ALPHA),
        balance=np.zeros(3),
        exit=Exit(),
    )


def heading_rotations(clip: MotionClip, heading: float) -> Array:
    """(T, 3) unwrapped rotation vectors of the clip's root in the heading frame."""
    return rotations.unwrapped_rotation_vectors(rotations.multiply(rotations.yaw(-heading), clip.root_orientation))


def _sample(values: Array, fps: float, time_s: float) -> Array:
    position = min(max(time_s * fps, 0.0), len(values) - 1.0)
    i = min(int(position), len(values) - 2) if len(values) > 1 else 0
    j = min(i + 1, len(values) - 1)
    fraction = position - i
    return np.asarray((1.0 - fraction) * values[i] + fraction * values[j])
