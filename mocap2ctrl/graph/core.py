"""What of a graph can be walked forever: its strongly connected core, and the one-way roads into it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.graph.fragments import ControlFragment

Successors = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Core:
    """Which fragments stay.

    Attributes:
        kept: names, in order: from each a walk can go on forever.
        dead_ends: left out, because no way leads from them into the core.
        unreachable: left out, because no way leads from the core to them.
    """

    kept: tuple[str, ...]
    dead_ends: tuple[str, ...]
    unreachable: tuple[str, ...]


def find_core(fragments: Mapping[str, ControlFragment], successors: Successors, one_way: Collection[str] = ()) -> Core:
    """The largest strongly connected part with a loop in it, and the roads there from the skills `one_way`."""
    names = list(fragments)
    core = _largest_loop(names, successors)
    before = _reversed(successors)
    leads_in, reached = reachable(core, before), reachable(core, successors)
    roads = reachable([name for name in names if fragments[name].skill in one_way], successors)
    kept = core | (leads_in & roads)
    return Core(
        kept=tuple(n for n in names if n in kept),
        dead_ends=tuple(n for n in names if n not in kept and n not in leads_in),
        unreachable=tuple(n for n in names if n not in kept and n in leads_in and n not in reached),
    )


def beginnings(successors: Successors) -> tuple[str, ...]:
    """Fragments that follow no other: where the one-way roads into a graph, its rising skills, begin."""
    entered = {other for after in successors.values() for other in after}
    return tuple(name for name in successors if name not in entered)


def reachable(starts: Collection[str], successors: Successors) -> set[str]:
    """The fragments `starts`, and all that can be reached from them."""
    found, open_ = set(starts), list(starts)
    while open_:
        new = [name for name in successors.get(open_.pop(), ()) if name not in found]
        found.update(new)
        open_ += new
    return found


def comes_back(name: str, successors: Successors) -> bool:
    """Whether a walk from a fragment can come back to it; not so on one-way roads."""
    return name in reachable(successors.get(name, ()), successors)


def _largest_loop(names: list[str], successors: Successors) -> set[str]:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    index = {name: i for i, name in enumerate(names)}
    edges = [(index[a], index[b]) for a, after in successors.items() for b in after]
    if not edges:
        return set()
    rows, columns = np.array(edges).T
    matrix = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(names), len(names)))
    _, label = connected_components(matrix, directed=True, connection="strong")
    looped = label[rows][label[rows] == label[columns]]  # a single fragment without an edge to itself is no loop
    if not len(looped):
        return set()
    sizes = np.bincount(label) * np.isin(np.arange(label.max() + 1), looped)
    return {name for name, part in zip(names, label, strict=True) if part == int(np.argmax(sizes))}


def _reversed(successors: Successors) -> dict[str, tuple[str, ...]]:
    before: dict[str, tuple[str, ...]] = {name: () for name in successors}
    for name, after in successors.items():
        for other in after:
            before[other] += (name,)
    return before
