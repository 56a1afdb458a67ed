"""Linear feedback at the entry of states: how far a body is from where the state was entered before moves the state's targets.

This is ours; Vondrak's states know of balance feedback alone. When a state is entered, the deviation of the whole body from the
state's reference, a vector of 10 + 2J numbers, times a gain is what the targets are moved by as long as the state acts.
The numbers of a deviation, in this order: the root's height (m), its rotation from the reference (rad) and velocity (m/s) in the
controller's heading frame, its angular velocity in its own frame (rad/s), the hinges' angles (rad) and rates (rad/s). An action's
numbers: a rotation of the root's target in the heading frame, and offsets of the angles of waist, hips, knees and ankles, rad.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.compiled_rotations import multiply, rotation_difference
from mocap2ctrl.types import Array, frozen_array

ROOT_ACTIONS = ("root.x", "root.y", "root.z")
WAIST = ("abdomen", "chest")
WAIST_MOVES = ("flexion", "lateral_bend", "rotation")
LEG = {
    "thigh": ("flexion", "abduction", "internal_rotation"),
    "shank": ("flexion",),
    "foot": ("dorsiflexion", "inversion"),
}
ACTIONS = 18
"""Numbers of an action."""

LARGEST_RAD = 0.5
"""No number of an action is larger: far from the reference the linear law says nothing any more."""


@dataclass(frozen=True, eq=False)
class EntryFeedback:
    """The feedback of one state.

    Attributes:
        height: of the root when the state is entered, metres.
        root_rotation: (3,) rotation vector of the root in the heading frame.
        velocities: (6 + J,) root's velocity in the heading frame (m/s), angular velocity in its own (rad/s), hinges' rates (rad/s).
        angles: (J,) of the hinges, radians.
        gain: (18, 10 + 2J) action of a deviation.
    """

    height: float
    root_rotation: Array
    velocities: Array
    angles: Array
    gain: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "angles", frozen_array(self.angles, (None,), "angles"))
        joints = len(self.angles)
        object.__setattr__(self, "root_rotation", frozen_array(self.root_rotation, (3,), "root_rotation"))
        object.__setattr__(self, "velocities", frozen_array(self.velocities, (6 + joints,), "velocities"))
        object.__setattr__(self, "gain", frozen_array(self.gain, (ACTIONS, deviation_size(joints)), "gain"))


class FeedbackArrays(NamedTuple):
    """The feedback of P machines of M states for compiled code; arrays of no rows where no state has one.

    Attributes:
        gain: (P, M, 18, 10 + 2J) action of a deviation, both in the world.
        reference: (P, M, 11 + 2J) root's height and world orientation, world velocities, angles, rates.
        moves: (15, J) angles' offsets of an action without its root.
    """

    gain: Array
    reference: Array
    moves: Array

    def of(self, which: npt.NDArray[np.int64]) -> FeedbackArrays:
        """Those of the machines `which` (N,); one may come several times."""
        if not len(self.gain):
            return self
        return FeedbackArrays(self.gain[which], self.reference[which], self.moves)


NO_FEEDBACK = FeedbackArrays(np.zeros((0, 0, 0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0)))


def deviation_size(joints: int) -> int:
    """Numbers of a deviation of a body of J hinges."""
    return 10 + 2 * joints


@lru_cache(maxsize=4)
def hinge_actions(character: Character) -> tuple[tuple[str, ...], Array]:
    """Names of the 15 actions but the root's, and what each moves the angles by, (15, J): the waist's is shared by two segments."""
    groups = [(f"waist.{move}", [f"{segment}.{move}" for segment in WAIST]) for move in WAIST_MOVES]
    for segment, moves in LEG.items():
        groups += [(name, [name]) for side in SIDES for move in moves for name in (f"{side}_{segment}.{move}",)]
    moves_by = np.zeros((len(groups), len(character.hinges)))
    for row, (_, hinges) in zip(moves_by, groups, strict=True):
        for hinge in hinges:
            row[character.hinge_names.index(hinge)] = 1.0 / len(hinges)
    return tuple(name for name, _ in groups), moves_by


def action_names(character: Character) -> tuple[str, ...]:
    """Of all 18."""
    return (*ROOT_ACTIONS, *hinge_actions(character)[0])


def entered_at(qpos: Array, qvel: Array, heading: float, gain: Array) -> EntryFeedback:
    """The feedback by `gain` of a state that is entered with qpos (7 + J,) and qvel (6 + J,) by a controller of `heading`."""
    turn = rotations.yaw(-heading)
    velocities = np.concatenate([rotations.rotate(turn, qvel[:3]), qvel[3:]])
    rotation = rotations.to_rotation_vector(rotations.multiply(turn, qpos[3:7]))
    return EntryFeedback(float(qpos[2]), rotation, velocities, qpos[7:], gain)


def deviations(feedback: EntryFeedback, qpos: npt.ArrayLike, qvel: npt.ArrayLike, heading: float) -> Array:
    """(N, 10 + 2J) deviations of states (N, 7 + J), (N, 6 + J) from the reference of `feedback`."""
    q, v = np.asarray(qpos, float), np.asarray(qvel, float)
    turn = rotations.yaw(-heading)
    inverse = rotations.conjugate(rotations.from_rotation_vector(feedback.root_rotation))
    off = rotations.to_rotation_vector(rotations.multiply(rotations.multiply(turn, q[:, 3:7]), inverse))
    velocities = np.concatenate([rotations.rotate(turn, v[:, :3]), v[:, 3:]], axis=1) - feedback.velocities
    parts = (q[:, 2:3] - feedback.height, off, velocities[:, :6], q[:, 7:] - feedback.angles, velocities[:, 6:])
    return np.concatenate(parts, axis=1)


def feedback_arrays(
    machines: list[list[EntryFeedback | None]], headings: npt.ArrayLike, character: Character
) -> FeedbackArrays:
    """What compiled code needs of P machines of M states, whose heading frames are turned by `headings` (P,)."""
    if all(feedback is None for states in machines for feedback in states):
        return NO_FEEDBACK
    joints = len(character.hinges)
    shape = (len(machines), len(machines[0]))
    gain, reference = np.zeros((*shape, ACTIONS, deviation_size(joints))), np.zeros((*shape, 11 + 2 * joints))
    reference[..., 1] = 1.0
    for p, (states, heading) in enumerate(zip(machines, np.atleast_1d(headings), strict=True)):
        turn = rotations.yaw(float(heading))
        matrix = rotations.rotate(turn, np.eye(3)).T
        for m, feedback in enumerate(states):
            if feedback is None:
                continue
            world = feedback.gain.copy()
            world[:3] = matrix @ world[:3]
            for columns in (slice(1, 4), slice(4, 7)):
                world[:, columns] = world[:, columns] @ matrix.T
            gain[p, m] = world
            velocities = feedback.velocities
            reference[p, m] = np.concatenate([
                [feedback.height],
                rotations.multiply(turn, rotations.from_rotation_vector(feedback.root_rotation)),
                rotations.rotate(turn, velocities[:3]), velocities[3:6], feedback.angles, velocities[6:],
            ])  # fmt: skip
    return FeedbackArrays(gain, reference, np.ascontiguousarray(hinge_actions(character)[1]))


@njit
def entry_action(feedback, p, state, qpos, qvel, action):  # type: ignore[no-untyped-def]
    """Writes the action (18,) of a body that enters `state` with qpos (7 + J,) and qvel (6 + J,), in the world, to `action`."""
    joints = qpos.shape[0] - 7
    reference, gain = feedback.reference[p, state], feedback.gain[p, state]
    deviation = np.empty(10 + 2 * joints)
    deviation[0] = qpos[2] - reference[0]
    rotation_difference(qpos[3:7], reference[1:5], deviation[1:4])
    for k in range(6):
        deviation[4 + k] = qvel[k] - reference[5 + k]
    for j in range(joints):
        deviation[10 + j] = qpos[7 + j] - reference[11 + j]
        deviation[10 + joints + j] = qvel[6 + j] - reference[11 + joints + j]
    for a in range(gain.shape[0]):
        total = 0.0
        for k in range(deviation.shape[0]):
            total += gain[a, k] * deviation[k]
        action[a] = min(max(total, -LARGEST_RAD), LARGEST_RAD)


@njit
def move_targets(feedback, action, root, angles):  # type: ignore[no-untyped-def]
    """Moves a state's world root target (4,) and angle targets (J,), in place, by an action (18,)."""
    angle = np.sqrt(action[0] * action[0] + action[1] * action[1] + action[2] * action[2])
    turn, turned = np.empty(4), np.empty(4)
    scale = np.sin(0.5 * angle) / angle if angle > 1e-12 else 0.5
    turn[0] = np.cos(0.5 * angle)
    for k in range(3):
        turn[1 + k] = scale * action[k]
    multiply(turn, root, turned)
    root[:] = turned
    for a in range(feedback.moves.shape[0]):
        for j in range(angles.shape[0]):
            angles[j] += action[3 + a] * feedback.moves[a, j]
