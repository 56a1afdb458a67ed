"""Random walks on a control graph, which visit its skills about equally (Liu 2016, §5.4, §6.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mocap2ctrl.graph.fragments import ControlGraph


class Step(NamedTuple):
    """A fragment of a walk; `restart` if the body is placed at its reference, because no edge led here."""

    fragment: str
    restart: bool


def first_fragments(graph: ControlGraph) -> tuple[str, ...]:
    """Where walks may begin: fragments that none leads to, or else the first of all."""
    led_to = {other for after in graph.successors.values() for other in after}
    return tuple(name for name in graph.fragments if name not in led_to) or (next(iter(graph.fragments)),)


def random_walk(graph: ControlGraph, rng: np.random.Generator) -> Iterator[Step]:
    """An endless walk. At a fork the skill that was visited least is the likeliest to be next; at an end it begins anew."""
    visits: Counter[str] = Counter()
    begins = first_fragments(graph)
    step = Step(_choose(graph, begins, visits, rng), True)
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
    """A walk in which each of the fragments `learned` is visited at least `visits` times, or of `longest` fragments."""
    missing = dict.fromkeys(learned, visits)
    walk = []
    for step in random_walk(graph, rng):
        walk.append(step)
        if step.fragment in missing:
            missing[step.fragment] -= 1
            if missing[step.fragment] <= 0:
                del missing[step.fragment]
        if not missing or len(walk) >= longest:
            return walk
    return walk
