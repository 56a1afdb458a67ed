"""Steering of learned gaits: what a gentle push from the side makes the feedback do is done without a push (Liu 2016, §6.1).

The paper: "the character turns when gentle sideways pushes are applied […] we can record the corresponding actions under external
pushes and add them voluntarily to the action vectors in order to make the character turn in moderate speed".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.planning import PathPlanner, Place
from mocap2ctrl.samcon.run import GraphRun, run_graph
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array

GENTLE_N = (10.0, 5.0, 2.5)
"""Pushes that are tried: the first that is stood on both sides is recorded."""
BEGIN_S, END_S = 1.5, 6.0
"""Of what is recorded."""
SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)
TRIED_S = 10.0
"""How long a skill must stand full turns to both sides for its actions to be used, and the shares of them that are tried."""


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
    """Steering of all learned cycles of a graph.

    An action is half the difference of the mean ones under a steady push of 10 N on the chest to the left and to the right, of 5 or
    2.5 N where that is not stood; or the largest share of it under which the skill stands full turns. Which side that is, is tried:
    what withstands a push to the left may well turn to the right without it.
    """
    actions: dict[str, Array] = {}
    rates: dict[str, float] = {}
    for skill in dict.fromkeys(fragment.skill for fragment in graph.fragments.values()):
        names = [name for name, fragment in graph.fragments.items() if fragment.skill == skill]
        cycle = names[0] in graph.successors[names[-1]]
        if cycle and all(graph.fragments[name].policy is not None for name in names):
            recorded = _recorded(graph, character, skill)
            stood = _largest_that_stands(graph, character, skill, recorded) if recorded else None
            if stood is not None:
                share, rate = stood
                actions |= {name: share * np.sign(rate) * action for name, action in recorded.items()}
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


def _recorded(graph: ControlGraph, character: Character, skill: str) -> dict[str, Array]:
    for force in GENTLE_N:
        runs = [_pushed(graph, character, skill, side * force) for side in (1.0, -1.0)]
        if all(done.fell_at_s is None for done in runs):
            left, right = (_mean_actions(done) for done in runs)
            return {name: 0.5 * (left[name] - right[name]) for name in left.keys() & right.keys()}
    return {}


def _pushed(graph: ControlGraph, character: Character, skill: str, force_n: float) -> GraphRun:
    """A run along x under a steady force to the left on the chest."""
    push = Push(character.segment_index("chest"), np.array([0.0, force_n, 0.0]), 0.0, END_S)
    (done,) = run_graph(
        graph, character, [PathPlanner(graph, [skill])], END_S, pushes=[push], places=[Place(0.0, 0.0, 0.0)]
    )
    return done


def _turned(done: GraphRun) -> float:
    """Change of heading, radians."""
    headings = np.unwrap(rotations.heading(done.clip.root_orientation))
    return float(headings[-1] - headings[0])


def _mean_actions(done: GraphRun) -> dict[str, Array]:
    """Of each fragment, from `BEGIN_S` on."""
    taken: dict[str, list[Array]] = {}
    for entry in done.performed:
        if entry.at_s >= BEGIN_S:
            taken.setdefault(entry.fragment, []).append(entry.action)
    return {name: np.mean(actions, axis=0) for name, actions in taken.items()}
