"""Random walks on a control graph, which visit its skills about equally (Liu 2016, §5.4, §6.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mocap2ctrl.graph.core import beginnings, comes_back, reachable
from mocap2ctrl.graph.fragments import ControlGraph

BEYOND = 15
"""Fragments that a walk goes on for after a one-way road, before it is begun anew: about two steps of a gait."""


class Step(NamedTuple):
    """A fragment of a walk; `restart` if the body is placed at its reference, because no edge led here."""

    fragment: str
    restart: bool


def first_fragments(graph: ControlGraph) -> tuple[str, ...]:
    """Where walks may begin, so that all can be reached: fragments that none leads to, and the first of each ring on its own."""
    begins = list(beginnings(graph.successors))
    reached = reachable(begins, graph.successors)
    for name in graph.fragments:
        if name not in reached:
            begins.append(name)
            reached |= reachable([name], graph.successors)
    return tuple(begins)


def random_walk(graph: ControlGraph, rng: np.random.Generator, begin: str | None = None) -> Iterator[Step]:
    """An endless walk, from `begin` if given. At a fork the skill that was visited least is the likeliest to be next.

    At an end it begins anew.
    """
    visits: Counter[str] = Counter()
    begins = first_fragments(graph)
    step = Step(begin or _choose(graph, begins, visits, rng), True)
    while True:
        visits[graph.fragments[step.fragment].skill] += 1
        yield step
        after = graph.successors.get(step.fragment, ())
        step = Step(_choose(graph, after or begins, visits, rng), not after)


def _choose(graph: ControlGraph, names: Sequence[str], visits: Counter[str], rng: np.random.Generator) -> str:
    if len(names) == 1:
        return names[0]
    weights = np.array([1.0 / (1.0 + visits[graph.fragments[name].skill]) ** 2 for name in names])
    return names[int(rng.choice(len(names), p=weights / weights.sum()))]


def learning_walk(
    graph: ControlGraph, learned: Sequence[str], visits: int, longest: int, rng: np.random.Generator
) -> list[Step]:
    """A walk in which each of the fragments `learned` is visited at least `visits` times, or of `longest` fragments.

    A one-way road, such as a rising skill, is begun anew once nothing that is ahead lacks visits: after `BEYOND` fragments more, so
    that who has come to its end must also be able to go on.
    """
    missing = dict.fromkeys(learned, visits)
    ahead = {name: reachable([name], graph.successors) for name in graph.fragments}
    walk: list[Step] = []
    for begin in first_fragments(graph):
        one_way = not comes_back(begin, graph.successors)
        while len(walk) < longest and any(missing.get(name) for name in ahead[begin]):
            beyond = BEYOND if one_way else 0
            for step in random_walk(graph, rng, begin):
                if not any(missing.get(name) for name in ahead[step.fragment]):
                    if step.restart or beyond == 0:
                        break
                    beyond -= 1
                if len(walk) >= longest:
                    break
                walk.append(step)
                if missing.get(step.fragment):
                    missing[step.fragment] -= 1
    return walk


def parts(walk: Sequence[Step]) -> list[list[Step]]:
    """A walk cut where it begins anew."""
    begins = [index for index, step in enumerate(walk) if step.restart]
    return [list(walk[a:b]) for a, b in zip(begins, [*begins[1:], len(walk)], strict=True)]
