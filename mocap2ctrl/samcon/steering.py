"""Steering of learned gaits: what must be added to a gait's actions for it to turn is found by regression.

Liu 2016, §6.1, records what the feedback does under a gentle sideways push, and does it without one. A policy that is hardened
withstands such pushes and hardly turns. Ours: many bodies perform the gait, each with small offsets of its own, and how fast they
turn is regressed on these offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.learned import rings
from mocap2ctrl.graph.planning import PathPlanner, Place
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.run import GraphRun, run_graph
from mocap2ctrl.samcon.sampling import Sampler
from mocap2ctrl.samcon.tasks import reference_snapshot, task_of
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.types import Array

PAIRS, DEVIATION_RAD, SEED = 150, np.radians(3.0), 1
"""Bodies with offsets of this σ, and as many with the opposite ones."""
PERIODS, LEAST_S = 3, 4.0
"""Cycles that a body does, or as many as last so long; the first is not looked at."""
RIDGE = 0.05
STRONGEST_RAD = 0.3
"""Root mean square length of a fragment's steering, of which shares are tried."""
SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)
TRIED_S = 10.0
"""How long a skill must stand full turns to both sides for its steering to be used, and the shares of it that are tried."""


@dataclass(frozen=True, eq=False)
class Steering:
    """What turns a character.

    Attributes:
        actions: (11,) of each fragment: added to its action, they turn it to the left, and their opposite to the right; radians.
        rates: by skill, how fast it turns to either side, rad/s; skills that stood no turn are missing.
    """

    actions: Mapping[str, Array]
    rates: Mapping[str, float]


def record_steering(graph: ControlGraph, character: Character) -> Steering:
    """Steering of all learned cycles of a graph: of what turns them most, the largest share with which they stand full turns."""
    actions: dict[str, Array] = {}
    rates: dict[str, float] = {}
    for skill, names in rings(graph).items():
        if all(graph.fragments[name].policy is not None for name in names):
            found = _turning_actions(graph, character, names)
            stood = _largest_that_stands(graph, character, skill, found) if found else None
            if stood is not None:
                share, rate = stood
                actions |= {name: share * np.sign(rate) * action for name, action in found.items()}
                rates[skill] = abs(rate)
    return Steering(actions, rates)


class _Turning(PathPlanner):
    """Performs one skill and turns all the while."""

    def __init__(self, graph: ControlGraph, skill: str, how_hard: float) -> None:
        super().__init__(graph, [skill])
        self._how_hard = how_hard

    def turn(self, place: Place) -> float:
        """See `Planner`."""
        return self._how_hard


def _largest_that_stands(
    graph: ControlGraph, character: Character, skill: str, actions: Mapping[str, Array]
) -> tuple[float, float] | None:
    """The share of the actions, and how fast they turn to the left, rad/s."""
    for share in SHARES:
        runs = [
            run_graph(graph, character, [_Turning(graph, skill, side * share)], TRIED_S, steering=actions)[0]
            for side in (1.0, -1.0)
        ]
        if all(done.fell_at_s is None for done in runs):
            return share, (_turned(runs[0]) - _turned(runs[1])) / (2.0 * TRIED_S)
    return None


def _turning_actions(graph: ControlGraph, character: Character, names: Sequence[str]) -> dict[str, Array]:
    """(11,) of each fragment of a cycle, that make it turn to the left; nothing if the bodies fall."""
    with PdRollouts(character, pd_gains(character, graph.gains)) as rollouts:
        sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
        half = np.random.default_rng(SEED).normal(0.0, DEVIATION_RAD, (PAIRS, len(names), len(sampler.actions.names)))
        offsets = np.concatenate([half, -half])
        rates, stand = _turn_rates(graph, sampler, names, offsets)
    inputs, turned = offsets[stand].reshape(-1, offsets[0].size), rates[stand]
    if len(turned) < PAIRS:
        return {}
    square = inputs.T @ inputs + RIDGE * len(inputs) * DEVIATION_RAD**2 * np.eye(inputs.shape[1])
    slope = np.linalg.solve(square, inputs.T @ (turned - turned.mean())).reshape(len(names), -1)
    if not slope.any():
        return {}
    slope *= STRONGEST_RAD / np.sqrt(np.mean(np.sum(slope**2, axis=1)))
    return dict(zip(names, slope, strict=True))


def _turn_rates(
    graph: ControlGraph, sampler: Sampler, names: Sequence[str], offsets: Array
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """(N,) radians a second that bodies turn to the left with offsets (N, F, 11) to a cycle's actions, and who stands."""
    tasks = [task_of(graph.fragments[name], sampler.cost, sampler.actions, 0.0) for name in names]
    period_s = sum(graph.fragments[name].duration_s for name in names)
    periods = max(PERIODS, round(LEAST_S / period_s))
    states = np.tile(reference_snapshot(graph.fragments[names[0]], 0), (len(offsets), 1))
    stand, headings, steps = np.ones(len(offsets), dtype=bool), [], np.zeros(len(offsets), np.int64)
    for period in range(periods):
        for number, task in enumerate(tasks):
            policies = replace(task, offset=task.offset + offsets[:, number])
            done = sampler.follow(states, policies)
            states, stand = np.where(done.stands[:, None], done.finals, states), stand & done.stands
            steps += done.steps * (period > 0)
        headings.append(rotations.heading(states[:, 4:8]))
    turned = np.unwrap(np.array(headings), axis=0)
    return (turned[-1] - turned[0]) / (steps * PD_TIME_STEP_S), stand


def _turned(done: GraphRun) -> float:
    """Change of heading, radians."""
    headings = np.unwrap(rotations.heading(done.clip.root_orientation))
    return float(headings[-1] - headings[0])
