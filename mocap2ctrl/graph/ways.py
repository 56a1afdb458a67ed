"""Ways between learned cycles, drafted from what both have learned.

A way is a chain of fragments that leaves one cycle and arrives in another. Two learned cycles are two controllers; between them
targets, references and policies are blended with the share of the second that the motion has there, in phase (`graph.blend`). A
policy is a = M s + â with absolute s, so that a blend of two is one that takes a blend of both actions. Ours: Liu 2016 learns
transitions like all else, from blended motion alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mocap2ctrl.errors import GraphError
from mocap2ctrl.graph.blend import blended, passed_s, share_of
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.graph.learned import cycles_of, rings
from mocap2ctrl.graph.pieces import Cut, fragments_of, nearest_state
from mocap2ctrl.graph.skills import Skill
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S


@dataclass(frozen=True)
class Way:
    """A chain of fragments from one cycle to another.

    Attributes:
        name: the skill that its fragments are of.
        chain: names of its fragments, in order.
        source, target: names of the cycles.
        leave: number of the fragment of the first in whose place it begins.
        arrive: number of the fragment of the second that follows it.
    """

    name: str
    chain: tuple[str, ...]
    source: str
    target: str
    leave: int
    arrive: int


def ways(graph: ControlGraph) -> tuple[Way, ...]:
    """All chains of a skill of their own that one cycle leads to, and that lead to another."""
    cycles = rings(graph)
    place = {name: (cycle, i) for cycle, names in cycles.items() for i, name in enumerate(names)}
    chains: dict[str, list[str]] = {}
    for name, fragment in graph.fragments.items():
        if name not in place:
            chains.setdefault(fragment.skill, []).append(name)
    found = []
    for skill, chain in chains.items():
        before = [name for name, after in graph.successors.items() if chain[0] in after]
        after = graph.successors.get(chain[-1], ())
        linked = all(graph.successors.get(a) == (b,) for a, b in pairwise(chain))
        if linked and len(before) == len(after) == 1 and before[0] in place and after[0] in place:
            source, last = place[before[0]]
            target, arrive = place[after[0]]
            leave = (last + 1) % len(cycles[source])
            found.append(Way(skill, tuple(chain), source, target, leave, arrive))
    return tuple(found)


def moved(graph: ControlGraph, way: Way, leave: int, arrive: int) -> tuple[ControlGraph, Way]:
    """The graph with a way that begins and ends at other fragments of its cycles, and that way."""
    names = rings(graph)
    before, after = names[way.source], names[way.target]
    successors = {name: tuple(n for n in others if n != way.chain[0]) for name, others in graph.successors.items()}
    successors[before[leave - 1]] += (way.chain[0],)
    successors[way.chain[-1]] = (after[arrive],)
    return replace(graph, successors=successors), replace(way, leave=leave, arrive=arrive)


def drafted(graph: ControlGraph, way: Way) -> dict[str, ControlFragment]:
    """The fragments of a way between two learned cycles, with blended targets, references and policies.

    They keep their number and their lengths.

    Raises:
        GraphError: a cycle is not learned.
    """
    cycles = {skill.name: skill for skill in cycles_of(graph)}
    source, target = cycles[way.source], cycles[way.target]
    old = [graph.fragments[name] for name in way.chain]
    steps = round(old[0].duration_s / PD_TIME_STEP_S)
    division = Cut(len(old), steps)
    begin, end = source.begins_s[way.leave], target.begins_s[way.arrive]
    count = division.count * division.steps
    frames = blended(source, begin, target, end, division.seconds, count)
    held = blended(_held(source), begin, _held(target), end, division.seconds, count)
    pieces = fragments_of(way.name, frames, division, 0, held[2])
    at = np.arange(division.count) / division.count
    ours, theirs = passed_s(source, target, division.seconds, np.append(at, 1.0))
    share = share_of(at + 0.5 / division.count)
    chain = {}
    for k, (name, piece) in enumerate(zip(way.chain, pieces, strict=True)):
        first = _policy(source, begin + ours[k])
        second = _policy(target, end + theirs[k] - theirs[-1])
        chain[name] = replace(piece, name=name, policy=_mixed(first, second, float(share[k])))
    return chain


def _held(cycle: Skill) -> Skill:
    """A cycle whose motion is its targets, each for the end of its servo step, instead of its reference."""
    held = np.concatenate([np.repeat(f.targets, round(f.frame_s / PD_TIME_STEP_S), axis=0) for f in cycle.pieces])
    return Skill(cycle.name, replace(cycle.clip, angles=np.concatenate([held[-1:], held])))


def _policy(cycle: Skill, time_s: float) -> FeedbackPolicy:
    """That of the fragment whose begin is nearest a moment of a cycle."""
    nearest = cycle.pieces[nearest_state(cycle.begins_s, time_s, cycle)]
    if nearest.policy is None:
        raise GraphError(f"the fragment {nearest.name!r} has no policy; ways are drafted between learned cycles")
    return nearest.policy


def _mixed(first: FeedbackPolicy, second: FeedbackPolicy, share: float) -> FeedbackPolicy:
    """What takes a blend of both actions."""
    values = (
        (1.0 - share) * a + share * b
        for a, b in (
            (first.gain, second.gain),
            (first.offset, second.offset),
            (first.variance, second.variance),
        )
    )
    return FeedbackPolicy(*values)
