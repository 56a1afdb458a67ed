"""Cycles that come back to themselves: feedback at the entry of their states, by a periodic linear quadratic regulator.

This is ours. A fitted cycle multiplies small errors, mostly to the side. How a state's end answers to how it was entered, and to
what its targets are moved by, finite differences of the simulation tell; Riccati's recursion round the cycle gives the gain of
each state that brings the body back with the least action. Contacts make these slopes good for small errors only, and they differ
from one time round to the next; so several regulators are made, and the one that stands longest is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mocap2ctrl.control.closed_loop import Rollouts, run, start_step, start_vector
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.control.entry_feedback import (
    ACTIONS,
    EntryFeedback,
    deviation_size,
    deviations,
    entered_at,
    feedback_arrays,
)
from mocap2ctrl.control.watch import seconds_up
from mocap2ctrl.fit.structure import cycle_states, with_way_in
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.coordinates import ROOT_DOFS
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array

WATCH_S, LONG_S = 60.0, 600.0
"""So long all regulators are watched, and the best of them."""
LONGEST_STATE_S = 4.0
"""What has not left a state by then never does."""
FALLEN = 0.6
"""Share of the root's first height below which the body has fallen."""
ENTRIES = (1, 2, 3, 4)
"""The first entries of a state over which slopes and references are averaged: one regulator each."""
EFFORTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Costs of an action, (1/rad)^2: one regulator each."""
LOOK_S = 0.1
"""How often it is looked whether one has fallen."""
ACTION_DIFFERENCE_RAD = 0.01
BEFORE_FALL = 6
"""The last entries before a fall are not the cycle any more."""
SETTLING = 30
"""Times round the cycle after which Riccati's recursion stands still."""
DISCOUNT = 0.98
DECIMALS = 5
"""Of gains: people read the file."""
PUSH_SEGMENT, PUSH_S, PUSHES_EVERY_S, PUSH_N = "chest", 0.2, 2.0, 10.0
PUSHED, GOLDEN_ANGLE = 8, np.pi * (3.0 - np.sqrt(5.0))
"""Runs with pushes, the n-th of n times `PUSH_N` and turned by the golden angle from the one before."""


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


def stabilised(engine: Engine, controller: Controller) -> tuple[Controller, float]:
    """`controller` with feedback in the states of its cycle, or as it is if that does not stand longer.

    Also for how long it then stands, seconds, up to `LONG_S`. The first time round is still on its way to what the cycle comes back
    to, and far from it for a linear law; so, where that stands longer, the feedback begins with the second (`with_way_in`).
    """
    cycle = cycle_states(controller)
    entered = [(index, start) for index, start in entries(engine, controller) if index in cycle][:-BEFORE_FALL]
    visits = {i: [start for index, start in entered if index == i][: max(ENTRIES)] for i in cycle}
    fewest = min((len(starts) for starts in visits.values()), default=0)
    found = {i: [slopes(engine, controller, i, start) for start in visits[i][:fewest]] for i in cycle}
    best = _longest(engine, [controller, *_regulators(controller, found)])
    if best[1] < LONG_S and fewest > 1:
        entering = with_way_in(controller)
        later = {i: found[before][1:] for i, before in zip(cycle_states(entering), cycle, strict=True)}
        best = max(best, _longest(engine, list(_regulators(entering, later))), key=lambda regulator: regulator[1])
    return best


def _regulators(controller: Controller, found: Mapping[int, Sequence[Slopes]]) -> Iterator[Controller]:
    """By the slopes of the cycle's states at their first entries, with more or fewer of them averaged, and costs of actions."""
    fewest = min((len(slopes_) for slopes_ in found.values()), default=0)
    uses = sorted({min(use, fewest) for use in ENTRIES}) if fewest else []
    for use, effort in itertools.product(uses, EFFORTS):
        yield regulated(controller, {i: mean_slopes(slopes_[:use]) for i, slopes_ in found.items()}, effort)


def _longest(engine: Engine, candidates: Sequence[Controller]) -> tuple[Controller, float]:
    """The one of several of one structure that stands longest, and for how long, seconds."""
    upright = survival(engine, candidates, [()] * len(candidates), WATCH_S)
    if upright.max() < WATCH_S:
        return candidates[int(np.argmax(upright))], float(upright.max())
    return _lasting(engine, [c for c, t in zip(candidates, upright, strict=True) if t >= WATCH_S])


def _lasting(engine: Engine, standing: Sequence[Controller]) -> tuple[Controller, float]:
    """The one that bears pushes longest of those that stand for `LONG_S`, or else the one that stands longest."""
    sequences = growing_pushes(engine.character.segment_index(PUSH_SEGMENT))
    runs = [(c, pushes) for c in standing for pushes in sequences]
    pushed = survival(engine, [c for c, _ in runs], [p for _, p in runs], WATCH_S)
    best, longest = standing[0], 0.0
    for k in np.argsort(-pushed.reshape(len(standing), -1).mean(axis=1), kind="stable"):
        upright_s = float(survival(engine, [standing[k]], [()], LONG_S)[0])
        if upright_s > longest:
            best, longest = standing[k], upright_s
        if upright_s >= LONG_S:
            break
    return best, longest


def entries(engine: Engine, controller: Controller) -> Iterator[tuple[int, Array]]:
    """Each state's index and start vector (K,) as the controller enters it, until it falls, or for `WATCH_S`."""
    program = compile_program([controller], engine.character, engine.time_step_s)
    start, index = start_vector(controller.start), 0
    height = start[2]
    while start_step(start) * engine.time_step_s < WATCH_S and start[2] > FALLEN * height:
        yield index, start
        following = int(program.next_state[index])
        end = start_step(start) + round(LONGEST_STATE_S / engine.time_step_s)
        final = run(engine, program, start, end, stride=end + 1, stop_at_state=following)
        if final.diverged[0] or start_step(final.final[0]) == end:
            return
        start, index = final.final[0], following


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


def regulated(controller: Controller, found: Mapping[int, Slopes], effort: float, rounds: int = SETTLING) -> Controller:
    """`controller` with the feedback of least cost: deviations by `weights`, actions by `effort`, summed over the cycle's future.

    Args:
        controller: whose cycle, or chain, is regulated.
        found: slopes of each of its states, in their order.
        effort: cost of an action's square, 1/rad^2.
        rounds: times round a cycle; 1 for a chain, whose future ends with the entry behind the last of these states.
    """
    order = list(found)
    joints = len(found[order[0]].reference.angles)
    cost = np.eye(deviation_size(joints)) * weights(joints)
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


def survival(
    engine: Engine, controllers: Sequence[Controller], pushes: Sequence[Sequence[Push]], seconds: float
) -> Array:
    """(P,) how long each of P controllers of one structure stays upright under its pushes, up to `seconds`."""
    program = compile_program(controllers, engine.character, engine.time_step_s)
    starts = np.array([start_vector(c.start) for c in controllers])
    low, stride = FALLEN * starts[:, 2], round(LOOK_S / engine.time_step_s)

    def falls(rollouts: Rollouts, which: npt.NDArray[np.int64]) -> Array:
        fallen = ~(rollouts.qpos[..., 2] > low[which, None])
        times = (rollouts.first_frame + np.argmax(fallen, axis=1)) * stride * engine.time_step_s
        return np.where(fallen.any(axis=1), times, np.inf)

    return seconds_up(engine, program, starts, pushes, seconds, stride=stride, falls=falls)


def growing_pushes(segment: int) -> list[list[Push]]:
    """`PUSHED` sequences of pushes that grow by `PUSH_N` from one to the next."""
    sequences = []
    for first in range(PUSHED):
        angles = 2.0 * np.pi * first / PUSHED + GOLDEN_ANGLE * np.arange(int(WATCH_S / PUSHES_EVERY_S))
        sequences.append(
            [
                Push(segment, PUSH_N * n * np.array([np.cos(angle), np.sin(angle), 0.0]), n * PUSHES_EVERY_S, PUSH_S)
                for n, angle in enumerate(angles[1:], start=1)
            ]
        )
    return sequences
