"""Which fragment comes next: a given order of skills, a random walk, or the way to a point (Liu 2016, §6.2)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mocap2ctrl.errors import GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.core import reachable
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph

HORIZON_S = 2.5
"""How far the greedy planner looks ahead along the references."""
END_SHARE = 0.1
"""What a metre at the end of the look ahead counts beside one of the least distance: of ways that all lead away it chooses."""
FULL_TURN_RAD = np.radians(20.0)
BEAM = 40
"""Ways that the look ahead keeps after each fragment."""


@dataclass(frozen=True)
class Place:
    """Where a character is, from above.

    Attributes:
        x, y: metres, world.
        heading: radians about the vertical, 0 along x.
    """

    x: float
    y: float
    heading: float

    def moved(self, travel: Place) -> Place:
        """After a travel that is given in the frame of this place."""
        c, s = np.cos(self.heading), np.sin(self.heading)
        return Place(
            float(self.x + c * travel.x - s * travel.y),
            float(self.y + s * travel.x + c * travel.y),
            self.heading + travel.heading,
        )


class Planner(Protocol):
    """Walks a graph."""

    def first(self) -> str:
        """The fragment to begin with."""

    def next(self, current: str, place: Place) -> str:
        """The fragment after `current`, whose end the character has reached at `place`."""

    def turn(self, place: Place) -> float:
        """How hard to turn there, from -1, to the right, to 1, to the left; of steering, see `samcon.steering`."""


def travel(fragment: ControlFragment) -> Place:
    """How far a fragment's reference goes, in the heading frame of its begin."""
    position = fragment.reference_root_position
    headings = rotations.heading(fragment.reference_root_orientation)
    x, y, _ = rotations.rotate(rotations.yaw(-headings[0]), position[-1] - position[0])
    turned = (headings[-1] - headings[0] + np.pi) % (2.0 * np.pi) - np.pi
    return Place(float(x), float(y), float(turned))


class RandomPlanner:
    """Follows each way out of a fragment with the same probability."""

    def __init__(self, graph: ControlGraph, seed: int = 0) -> None:
        _check_endless(graph)
        self._successors = graph.successors
        self._rng = np.random.default_rng(seed)
        self._starts = _starts(graph)

    def first(self) -> str:
        """See `Planner`."""
        return self._starts[int(self._rng.integers(len(self._starts)))]

    def next(self, current: str, place: Place) -> str:
        """See `Planner`."""
        after = self._successors[current]
        return after[int(self._rng.integers(len(after)))] if len(after) > 1 else after[0]

    def turn(self, place: Place) -> float:
        """See `Planner`: straight on."""
        return 0.0


class PathPlanner:
    """Performs skills in a given order, each for one cycle or pass, over and over; goes from one to the next the shortest way."""

    def __init__(self, graph: ControlGraph, path: Sequence[str]) -> None:
        """A walk along `path`, names of skills.

        Raises:
            GraphError: there is no such skill, or no way from one to the next, or back to the first.
        """
        _check_endless(graph)
        self._graph, self._path = graph, tuple(path)
        sizes: dict[str, int] = {}
        for fragment in graph.fragments.values():
            sizes[fragment.skill] = sizes.get(fragment.skill, 0) + 1
        for skill in self._path:
            if skill not in sizes:
                what = f"there is no skill {skill!r} in the graph" if skill else "the path has an empty name"
                raise GraphError(f"{what}; there are {', '.join(sizes)}")
        self._sizes = sizes
        self._left_s = {skill: _seconds_to(graph, skill) for skill in dict.fromkeys(self._path)}
        for here, there in zip(self._path, (*self._path[1:], self._path[0]), strict=True):
            if here != there and not any(self._reaches(name, there) for name in self._of(here)):
                raise GraphError(f"no way leads from skill {here!r} to {there!r}; give a path that the graph has")
        self._index, self._passed = 0, 0

    def _of(self, skill: str) -> list[str]:
        return [name for name, fragment in self._graph.fragments.items() if fragment.skill == skill]

    def _reaches(self, name: str, skill: str) -> bool:
        return any(np.isfinite(self._left_s[skill][other]) for other in self._graph.successors[name])

    def first(self) -> str:
        """See `Planner`."""
        self._index, self._passed = 0, 0
        return self._of(self._path[0])[0]

    def next(self, current: str, place: Place) -> str:
        """See `Planner`."""
        wanted, after = self._path[self._index], self._graph.successors[current]
        if self._graph.fragments[current].skill == wanted:
            self._passed += 1
            inside = [name for name in after if self._graph.fragments[name].skill == wanted]
            if self._passed < self._sizes[wanted] and inside:
                return inside[0]
            self._index, self._passed = (self._index + 1) % len(self._path), 0
            wanted = self._path[self._index]
            if inside and self._graph.fragments[current].skill == wanted:
                return inside[0]
        return min(after, key=lambda name: self._left_s[wanted][name])

    def turn(self, place: Place) -> float:
        """See `Planner`: straight on."""
        return 0.0


class GoalPlanner:
    """Steers to a point: takes the way whose references come nearest to it (Liu 2016, §6.2: a simple greedy planner)."""

    def __init__(self, graph: ControlGraph, goal: tuple[float, float], horizon_s: float = HORIZON_S) -> None:
        """A walk to `goal`, metres, world."""
        _check_endless(graph)
        self.goal = goal
        self._graph, self._horizon_s = graph, horizon_s
        self._travel = {name: travel(fragment) for name, fragment in graph.fragments.items()}

    def first(self) -> str:
        """See `Planner`."""
        return _starts(self._graph)[0]

    def next(self, current: str, place: Place) -> str:
        """See `Planner`."""
        after = self._graph.successors[current]
        if len(after) == 1:
            return after[0]
        return min(after, key=lambda name: self._cost_m(name, place))

    def turn(self, place: Place) -> float:
        """See `Planner`: towards the goal, fully if it is more than `FULL_TURN_RAD` aside."""
        aside = np.arctan2(self.goal[1] - place.y, self.goal[0] - place.x) - place.heading
        return float(np.clip(((aside + np.pi) % (2.0 * np.pi) - np.pi) / FULL_TURN_RAD, -1.0, 1.0))

    def _cost_m(self, first: str, place: Place) -> float:
        """Of the best way that begins with a fragment: how near it comes, and where it ends; a beam search."""
        ended: list[float] = []
        ahead = [(first, place, 0.0, np.inf)]
        while ahead:
            reached: list[tuple[float, str, Place, float, float]] = []
            for name, here, passed_s, nearest in ahead:
                there = here.moved(self._travel[name])
                away = float(np.hypot(there.x - self.goal[0], there.y - self.goal[1]))
                near = min(nearest, away)
                passed = passed_s + self._graph.fragments[name].duration_s
                if passed >= self._horizon_s:
                    ended.append(near + END_SHARE * away)
                else:
                    reached.append((near + END_SHARE * away, name, there, passed, near))
            best = sorted(reached, key=lambda way: way[0])[:BEAM]
            ahead = [
                (other, here, passed_s, near)
                for _, name, here, passed_s, near in best
                for other in self._graph.successors[name]
            ]
        return min(ended)


class ChasePlanner(GoalPlanner):
    """Steers to the nearest other character, wherever it was when it last chose its way (§6.2: to run into each other)."""

    def __init__(self, graph: ControlGraph, number: int, places: dict[int, Place]) -> None:
        """The character `number` of those whose planners share `places`."""
        super().__init__(graph, (0.0, 0.0))
        self._number, self._places = number, places

    def next(self, current: str, place: Place) -> str:
        """See `Planner`."""
        self._places[self._number] = place
        others = [(p.x, p.y) for number, p in self._places.items() if number != self._number]
        if others:
            self.goal = min(others, key=lambda at: np.hypot(at[0] - place.x, at[1] - place.y))
        return super().next(current, place)


def _check_endless(graph: ControlGraph) -> None:
    """Whether a walk never ends.

    Raises:
        GraphError: it does, at a fragment that nothing follows.
    """
    for name in graph.fragments:
        if not graph.successors.get(name):
            raise GraphError(
                f"nothing follows the fragment {name!r}, so a walk would end there; export-graph leaves such out"
            )


def _starts(graph: ControlGraph) -> list[str]:
    """Fragments to begin with: those to which a walk can come back; one-way roads are for after a fall."""
    return [name for name in graph.fragments if name in reachable(graph.successors[name], graph.successors)]


def _seconds_to(graph: ControlGraph, skill: str) -> dict[str, float]:
    """For each fragment, the least seconds from its begin to the begin of one of `skill`; infinite without a way (Dijkstra)."""
    before: dict[str, list[str]] = {name: [] for name in graph.fragments}
    for name, after in graph.successors.items():
        for other in after:
            before[other].append(name)
    best = {name: 0.0 if f.skill == skill else np.inf for name, f in graph.fragments.items()}
    queue = [(0.0, name) for name, seconds in best.items() if seconds == 0.0]
    while queue:
        seconds, name = heapq.heappop(queue)
        if seconds > best[name]:
            continue
        for other in before[name]:
            longer = seconds + graph.fragments[other].duration_s
            if longer < best[other]:
                best[other] = longer
                heapq.heappush(queue, (longer, other))
    return best
