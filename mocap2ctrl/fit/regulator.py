"""A linear quadratic regulator for the entries of states, by finite differences of the simulation. Ours.

How a state's end answers to how it was entered, and to what its targets are moved by, finite differences tell; Riccati's recursion
gives each state the gain that brings the body back with the least action: round a cycle, or along a chain.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mocap2ctrl.control.closed_loop import run, start_step
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.control.entry_feedback import (
    ACTIONS,
    EntryFeedback,
    deviation_size,
    deviations,
    entered_at,
    feedback_arrays,
)
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.coordinates import ROOT_DOFS
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.types import Array

LONGEST_STATE_S = 4.0
"""What has not left a state by then never does."""
ACTION_DIFFERENCE_RAD = 0.01
KINDS = ("height", "tilt", "turn", "velocity", "spin", "angles", "rates")
"""Of a deviation's numbers."""
SETTLING = 30
"""Times round the cycle after which Riccati's recursion stands still."""
DISCOUNT = 0.98
DECIMALS = 5
"""Of gains: people read the file."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """A state as it was entered, and how the entry of the next one answers.

    Attributes:
        reference: what was entered, without a gain.
        by_deviation: (X, X) deviation at the next state's entry by the one at this state's.
        by_action: (X, 18) the same by the action.
    """

    reference: EntryFeedback
    by_deviation: Array
    by_action: Array


def slopes(engine: Engine, controller: Controller, index: int, start: Array, scale: float = 1.0) -> Slopes:
    """Central differences of the next state's entry, about state number `index` entered at `start` (K,); `scale` times as wide."""
    character, dt, heading = engine.character, engine.time_step_s, controller.heading
    joints = len(character.hinges)
    size = deviation_size(joints)
    steps = scale * np.concatenate([differences(joints), np.full(ACTIONS, ACTION_DIFFERENCE_RAD)])
    reference = entered_at(*_coordinates(start, joints), heading, np.zeros((ACTIONS, size)))
    starts = np.tile(start, (2 * len(steps) + 1, 1))  # the last one as it was
    answers: list[EntryFeedback | None] = [None] * len(starts)
    for k, (number, sign) in enumerate(itertools.product(range(len(steps)), (1.0, -1.0))):
        if number < size:
            _move(starts[k], number, sign * steps[number], heading, joints)
        else:  # an action of one number, as the answer to a height that is off by that much
            gain = np.zeros((ACTIONS, size))
            gain[number - size, 0] = 1.0
            answers[k] = replace(reference, height=reference.height - sign * steps[number], gain=gain)
    machines = [[answer if i == index else None for i in range(len(controller.states))] for answer in answers]
    program = compile_program([controller] * len(starts), character, dt)
    program = program._replace(feedback=feedback_arrays(machines, np.full(len(starts), heading), character))
    end = start_step(start) + round(LONGEST_STATE_S / dt)
    finals = run(engine, program, starts, end, stride=end + 1, stop_at_state=int(program.next_state[index])).final
    qpos, qvel = _coordinates(finals, joints)
    off = deviations(entered_at(qpos[-1], qvel[-1], heading, reference.gain), qpos, qvel, heading)
    by = ((off[0:-1:2] - off[1:-1:2]) / (2.0 * steps[:, None])).T
    by = np.where(np.isfinite(by).all(axis=0), by, 0.0)  # what throws the body over tells no slope
    return Slopes(reference, by[:, :size], by[:, size:])


def differences(joints: int) -> Array:
    """(10 + 2J,) steps of the differences of a deviation: m, rad, m/s, rad/s."""
    return np.concatenate([[0.004], np.full(3, 0.006), np.full(3, 0.02), np.full(3, 0.04),
                           np.full(joints, 0.006), np.full(joints, 0.06)])  # fmt: skip


def weights(joints: int) -> Array:
    """(10 + 2J,) what the square of a deviation's number costs at each entry: 1/m^2, 1/rad^2, s^2/m^2, s^2/rad^2."""
    return np.concatenate([[20.0], [10.0, 10.0, 5.0], [5.0, 8.0, 3.0], np.full(3, 0.3),
                           np.full(joints, 0.5), np.full(joints, 0.002)])  # fmt: skip


def kinds(joints: int) -> npt.NDArray[np.int64]:
    """(10 + 2J,) of which of `KINDS` each number of a deviation is."""
    return np.repeat(np.arange(len(KINDS)), (1, 2, 1, 3, 3, joints, joints))


def _coordinates(starts: Array, joints: int) -> tuple[Array, Array]:
    """Qpos (..., 7 + J) and qvel (..., 6 + J) of start vectors (..., K)."""
    return starts[..., : 7 + joints], starts[..., 7 + joints : 7 + joints + ROOT_DOFS + joints]


def _move(start: Array, number: int, by: float, heading: float, joints: int) -> None:
    """Moves a start vector (K,), in place, so that this number of its deviation grows by `by`."""
    qpos, qvel = _coordinates(start, joints)
    axis = rotations.rotate(rotations.yaw(heading), np.eye(3)[(number - 1) % 3])
    if number == 0:
        qpos[2] += by
    elif number < 4:
        qpos[3:7] = rotations.multiply(rotations.from_rotation_vector(by * axis), qpos[3:7])
    elif number < 7:
        qvel[:3] += by * axis
    elif number < 10:
        qvel[number - 4] += by
    elif number < 10 + joints:
        qpos[number - 3] += by
    else:
        qvel[number - 4 - joints] += by


def mean_slopes(found: Sequence[Slopes]) -> Slopes:
    """The mean of several entries of one state."""
    first = found[0].reference
    reference = replace(
        first,
        height=float(np.mean([s.reference.height for s in found])),
        root_rotation=np.mean([s.reference.root_rotation for s in found], axis=0),
        velocities=np.mean([s.reference.velocities for s in found], axis=0),
        angles=np.mean([s.reference.angles for s in found], axis=0),
    )
    by_deviation = np.mean([s.by_deviation for s in found], axis=0)
    return Slopes(reference, by_deviation, np.mean([s.by_action for s in found], axis=0))


def regulated(
    controller: Controller,
    found: Mapping[int, Slopes],
    effort: float,
    rounds: int = SETTLING,
    costs: Array | None = None,
) -> Controller:
    """`controller` with the feedback of least cost: of deviations and of actions, summed over the cycle's future.

    Args:
        controller: whose cycle, or chain, is regulated.
        found: slopes of each of its states, in their order.
        effort: cost of an action's square, 1/rad^2.
        rounds: times round a cycle; 1 for a chain, whose future ends with the entry behind the last of these states.
        costs: (10 + 2J,) of a deviation's squares; `weights` by default.
    """
    order = list(found)
    joints = len(found[order[0]].reference.angles)
    cost = np.diag(weights(joints) if costs is None else costs)
    value = dict.fromkeys(order, cost)
    gain: dict[int, Array] = {}
    for index, following in list(zip(order, [*order[1:], order[0]], strict=True))[::-1] * rounds:
        a, b, after = found[index].by_deviation, found[index].by_action, DISCOUNT * value[following]
        gain[index] = np.asarray(-np.linalg.solve(effort * np.eye(ACTIONS) + b.T @ after @ b, b.T @ after @ a), float)
        closed = a + b @ gain[index]
        value[index] = np.asarray(cost + effort * gain[index].T @ gain[index] + closed.T @ after @ closed)
    return controller.with_states(
        [
            replace(state, feedback=replace(found[i].reference, gain=gain[i].round(DECIMALS))) if i in gain else state
            for i, state in enumerate(controller.states)
        ]
    )
