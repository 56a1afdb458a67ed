"""From skills and transitions to a control graph: motions between transition states become chains of fragments (Liu 2016, §4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.graph.blend import blended
from mocap2ctrl.graph.body import digest
from mocap2ctrl.graph.core import Core, find_core
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph
from mocap2ctrl.graph.pieces import PIECE_S, Cut, cut, fragments_of, led, nearest_state, stretches, transition_states
from mocap2ctrl.graph.skills import Frames, Skill
from mocap2ctrl.graph.symmetry import mirrored
from mocap2ctrl.graph.transitions import Transition, check_names
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.types import Array

Chain = list[ControlFragment]


@dataclass(frozen=True, eq=False)
class BuiltGraph:
    """A graph as it was made.

    Attributes:
        graph: what can be walked forever.
        core: which fragments stayed, and which did not, and why.
        lost: skills of which nothing stayed.
    """

    graph: ControlGraph
    core: Core
    lost: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _CutSkill:
    """A skill as chains of fragments: chain i begins at transition state i and ends at the next.

    Attributes:
        skill: what was cut.
        states_s: (B,) seconds.
        chains: B of a cycle, B - 1 of another motion.
    """

    skill: Skill
    states_s: Array
    chains: tuple[Chain, ...]

    def begins(self, state: int) -> tuple[str, ...]:
        """The fragment that begins at a state; none at the end of what is no cycle."""
        return (self.chains[state][0].name,) if state < len(self.chains) else ()

    def ends(self, state: int) -> tuple[str, ...]:
        """The fragment that ends at a state; none at the beginning of what is no cycle."""
        return (self.chains[state - 1][-1].name,) if state > 0 or self.skill.cyclic else ()


def build_graph(
    skills: Sequence[Skill],
    transitions: Sequence[Transition],
    character: Character,
    *,
    gains: str = "locomotion",
    one_way: Collection[str] = (),
    piece_s: float = PIECE_S,
    provenance: Mapping[str, object] | None = None,
    onto: ControlGraph | None = None,
) -> BuiltGraph:
    """Cuts skills at their transition states, blends transitions, and keeps what can be walked forever.

    Args:
        skills: reference motions.
        transitions: between them.
        character: for whom the graph is.
        gains: name of the PD gain set.
        one_way: skills that need not be reached, only lead somewhere: rising after a fall.
        piece_s: wished length of a fragment.
        provenance: where the skills come from.
        onto: a graph that stays as it is, and is grown; those of `skills` that have pieces are its.

    Raises:
        GraphError: nothing in it can be repeated, or a name is not allowed.
    """
    names = way_names(transitions)
    check_names([*(skill.name for skill in skills), *names])
    servo = pd_gains(character, gains)
    lead_s = servo.damping / servo.stiffness
    fragments: dict[str, ControlFragment] = dict(onto.fragments) if onto else {}
    edges = [(a, b) for a, after in onto.successors.items() for b in after] if onto else []
    parts: dict[str, tuple[_CutSkill, list[int]]] = {}
    for skill in skills:
        part, states = _cut_skill(skill, _wanted(skill, transitions), character, piece_s, lead_s)
        parts[skill.name] = part, states
        if skill.pieces:
            continue
        for chain in part.chains:
            _add(chain, fragments, edges)
        for state in range(len(part.states_s)):
            edges += [(a, b) for a in part.ends(state) for b in part.begins(state)]
    for name, way in zip(names, transitions, strict=True):
        (source, leave), (target, enter) = (
            _end(parts[skill], transitions, way, skill) for skill in (way.source, way.target)
        )
        division = cut(way.blend_s, piece_s)
        ends = source.skill, source.states_s[leave], target.skill, target.states_s[enter]
        frames = blended(*ends, way.blend_s, division.count * division.steps)
        chain = fragments_of(name, frames, division, 0, led(frames[2], lead_s))
        _add(chain, fragments, edges)
        edges += [(a, chain[0].name) for a in source.ends(leave)] + [(chain[-1].name, b) for b in target.begins(enter)]
    doubts = "".join(f"skill {skill.name!r}: {skill.doubt}; " for skill in skills if skill.doubt)
    return _walkable(fragments, edges, character, gains, one_way, provenance or {}, doubts)


def _add(chain: Chain, fragments: dict[str, ControlFragment], edges: list[tuple[str, str]]) -> None:
    """A chain into the graph; each of its fragments is followed by the next."""
    fragments.update((fragment.name, fragment) for fragment in chain)
    edges.extend((a.name, b.name) for a, b in pairwise(chain))


def way_names(transitions: Sequence[Transition]) -> list[str]:
    """`walk-run`, and `walk-run-2` for the next between the same skills."""
    names: list[str] = []
    for way in transitions:
        name = f"{way.source}-{way.target}"
        count = sum((other.source, other.target) == (way.source, way.target) for other in transitions[: len(names)])
        names.append(name if count == 0 else f"{name}-{count + 1}")
    return names


def _wanted(skill: Skill, transitions: Sequence[Transition]) -> list[tuple[Transition, float]]:
    """Times in a skill at which transitions begin or end, with the transition; see `_end`."""
    wanted = []
    for way in transitions:
        if way.source == skill.name:
            wanted.append((way, way.leave_s))
        if way.target == skill.name:
            wanted.append((way, way.arrive_s))
    return wanted


def _cut_skill(
    skill: Skill, wanted: Sequence[tuple[Transition, float]], character: Character, piece_s: float, lead_s: Array
) -> tuple[_CutSkill, list[int]]:
    """A skill in pieces, and the transition state of each wish."""
    if skill.pieces:
        chosen = [nearest_state(skill.begins_s, time, skill) for _, time in wanted]
        return _CutSkill(skill, skill.begins_s, tuple([piece] for piece in skill.pieces)), chosen
    contacts = skill.contacts
    states_s, index = transition_states(skill, [*(down.time_s for down in contacts), *(time for _, time in wanted)])
    feet = dict(zip(index[: len(contacts)], (down.foot for down in contacts), strict=True))
    chains: list[Chain] = []
    known: list[tuple[Frames, Cut]] = []
    for number, (start, stop) in enumerate(stretches(skill, states_s)):
        half = number - len(states_s) // 2
        if skill.symmetric and half >= 0:
            frames, division = mirrored(skill, known[half][0], character), known[half][1]
        else:
            division = cut(stop - start, piece_s)
            frames = skill.at(np.linspace(start, stop, division.count * division.steps + 1))
        known.append((frames, division))
        first = sum(map(len, chains))
        chain = fragments_of(skill.name, frames, division, first, led(frames[2], lead_s))
        chain[-1] = replace(chain[-1], touchdown=feet.get((number + 1) % len(states_s)))
        chains.append(chain)
    return _CutSkill(skill, states_s, tuple(chains)), [int(i) for i in index[len(contacts) :]]


def _end(
    part: tuple[_CutSkill, list[int]], transitions: Sequence[Transition], way: Transition, skill: str
) -> tuple[_CutSkill, int]:
    """The skill that a transition leaves, or enters, and the transition state there."""
    ways = [other for other, _ in _wanted(part[0].skill, transitions)]
    return part[0], part[1][next(i for i, other in enumerate(ways) if other is way)]


def _walkable(
    fragments: Mapping[str, ControlFragment],
    edges: Sequence[tuple[str, str]],
    character: Character,
    gains: str,
    one_way: Collection[str],
    provenance: Mapping[str, object],
    doubts: str,
) -> BuiltGraph:
    """The graph without what cannot be walked forever."""
    successors = {name: tuple(b for a, b in edges if a == name) for name in fragments}
    core = find_core(fragments, successors, one_way)
    if not core.kept:
        raise GraphError(
            f"{doubts}nothing can be repeated: no skill is a cycle, and no transitions lead round; name a cycle with --cyclic, or "
            "give --transition"
        )
    kept = set(core.kept)
    graph = ControlGraph(
        character=digest(character),
        gains=gains,
        fragments={name: fragments[name] for name in core.kept},
        successors={name: tuple(other for other in successors[name] if other in kept) for name in core.kept},
        provenance=provenance,
        description=character.description,
    )
    stayed = {fragment.skill for fragment in graph.fragments.values()}
    return BuiltGraph(
        graph, core, tuple(s for s in dict.fromkeys(f.skill for f in fragments.values()) if s not in stayed)
    )
