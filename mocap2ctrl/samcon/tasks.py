"""A graph's fragments as the sampler takes them: targets, wanted end, policy."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ACTION_FEATURES, STATE_FEATURES, ControlFragment
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.features import Actions
from mocap2ctrl.samcon.sampling import Task
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.foot_height import foot_of
from mocap2ctrl.types import Array


def reference_snapshot(fragment: ControlFragment, frame: int) -> Array:
    """(K,) the reference at a frame, as a snapshot of `PdRollouts`; velocities are differences of neighbouring frames."""
    last = len(fragment.targets)
    frame = range(last + 1)[frame]
    before, after = max(frame - 1, 0) if frame == last else frame, frame if frame == last else frame + 1
    position, orientation = fragment.reference_root_position, fragment.reference_root_orientation
    change = rotations.multiply(orientation[after], rotations.conjugate(orientation[before]))
    spin = rotations.to_rotation_vector(change) / fragment.frame_s
    rates = (fragment.reference_angles[after] - fragment.reference_angles[before]) / fragment.frame_s
    local = rotations.rotate(rotations.conjugate(orientation[frame]), spin)
    velocity = (position[after] - position[before]) / fragment.frame_s
    parts = [[0.0], position[frame], orientation[frame], fragment.reference_angles[frame], velocity, local, rates]
    return np.concatenate(parts)


def task_of(fragment: ControlFragment, cost: Cost, actions: Actions, deviation_rad: float) -> Task:
    """The fragment with its policy, or with none: a = 0 with deviations alike.

    Of `actions` the first 11 are those of the feedback; a policy leaves any others at 0.
    """
    size, policy = len(actions.names), fragment.policy
    gain, offset, deviation = np.zeros((size, STATE_FEATURES)), np.zeros(size), np.zeros(size)
    if policy is None:
        deviation[:] = deviation_rad
    else:
        gain[:ACTION_FEATURES], offset[:ACTION_FEATURES] = policy.gain, policy.offset
        deviation[:ACTION_FEATURES] = np.sqrt(policy.variance)
    return Task(
        targets=fragment.targets,
        steps_per_target=round(fragment.frame_s / PD_TIME_STEP_S),
        reference=cost.ends(reference_snapshot(fragment, -1)[None]),
        gain=gain,
        offset=offset,
        deviation=deviation,
        foot=None if fragment.touchdown is None else foot_of(cost.character, fragment.touchdown),
    )
