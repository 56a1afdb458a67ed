"""`export-graph`: from captures and motion files to a control graph, with what is to be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import permutations

from mocap2ctrl import __version__
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.graph.build import BuiltGraph, build_graph, way_names
from mocap2ctrl.graph.core import comes_back, reachable
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.skills import Skill, on_contacts
from mocap2ctrl.graph.sources import Input, load_skills, refuse_unknown
from mocap2ctrl.graph.symmetry import symmetrised
from mocap2ctrl.graph.transitions import (
    BLEND_S,
    NEAR_M,
    Nearness,
    Transition,
    given,
    nearness,
    proposed,
    window_length,
)


@dataclass(frozen=True)
class GraphOptions:
    """How a graph is made.

    Attributes:
        height_m: of the body, where no input brings one.
        cyclic: skills that must be cycles.
        once: skills that are not to be made cycles.
        symmetric: skills to be made of one stride and its mirror image.
        phase_reset: skills whose fragments end on touchdowns.
        rising: skills that only lead into the graph.
        transitions: moments of two skills each, `("walk:0.5", "run:0.2")`.
        propose: whether transitions are proposed where skills are near.
        within_m: how near.
        blend_s: length of a transition; longer where speeds ask for it.
        gains: name of the PD gain set; that of the graph that is grown, or `locomotion`, if not given.
    """

    height_m: float | None = None
    cyclic: Sequence[str] = ()
    once: Sequence[str] = ()
    symmetric: Sequence[str] = ()
    phase_reset: Sequence[str] = ()
    rising: Sequence[str] = ()
    transitions: Sequence[Sequence[str]] = ()
    propose: bool = True
    within_m: float = NEAR_M
    blend_s: float = BLEND_S
    gains: str | None = None


@dataclass(frozen=True, eq=False)
class ExportedGraph:
    """A graph with all that it was made of.

    Attributes:
        built: the graph, and what was left out.
        character: whose it is.
        skills: the reference motions.
        transitions: the ways between them, as proposed or given; `ways` are those that the graph has.
        near: distances between all their moments; None for a single skill.
        shortened: why transitions are shorter than was asked for, if they are.
    """

    built: BuiltGraph
    character: Character
    skills: tuple[Skill, ...]
    transitions: tuple[Transition, ...]
    near: Nearness | None
    shortened: str = ""

    @property
    def ways(self) -> tuple[Transition, ...]:
        """The transitions that are in the graph."""
        named = zip(way_names(self.transitions), self.transitions, strict=True)
        return tuple(way for name, way in named if name not in self.built.lost)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know."""
        core, lost = self.built.core, self.built.lost
        said = [
            f"skill {skill.name!r} is performed once: {skill.doubt}; --cyclic {skill.name} takes it as a cycle"
            for skill in self.skills
            if skill.doubt
        ]
        said += [self.shortened] if self.shortened else []
        names = [skill.name for skill in self.skills]
        for name in lost:
            if name in names:
                said.append(
                    f"skill {name!r} is left out: no walk through the graph passes it twice; give it --transition"
                )
            else:
                said.append(f"the transition {name!r} is left out: it begins or ends where no walk passes twice")
        for parts, why in ((core.dead_ends, "lead nowhere"), (core.unreachable, "cannot be reached")):
            left = [name for name in parts if name.rpartition("/")[0] not in lost]
            if left:
                said.append(f"{len(left)} fragments {why}, and are left out: {', '.join(left)}")
        return tuple(said)


def export_graph(inputs: Sequence[Input], options: GraphOptions) -> ExportedGraph:
    """Makes a control graph.

    Raises:
        Mocap2CtrlError: an input or an option cannot be used; says why.
    """
    loaded = load_skills(
        inputs, height_m=options.height_m, cyclic=options.cyclic, once=options.once, rising=options.rising
    )
    skills, character, onto = loaded.skills, loaded.character, loaded.graph
    sources = {entry.name: entry.source for entry in inputs}
    new = [skill.name for skill in skills if not skill.pieces]
    refuse_unknown("--symmetric", options.symmetric, new)
    refuse_unknown("--phase-reset", options.phase_reset, new)
    skills = tuple(symmetrised(s, character) if s.name in options.symmetric else s for s in skills)
    skills = tuple(on_contacts(s, character) if s.name in options.phase_reset else s for s in skills)
    window_s = window_length(skills, options.blend_s)
    near = nearness(skills, character, window_s) if len(skills) > 1 else None
    ways = tuple(given({s.name: s for s in skills}, character, ends, window_s) for ends in options.transitions)
    if near is not None and options.propose:
        known = {(way.source, way.target) for way in ways}
        known |= _linked(onto, skills)
        found = proposed(skills, near, window_s, options.within_m)
        ways += tuple(
            way for way in found if (way.source, way.target) not in known and way.target not in options.rising
        )
    built = build_graph(
        skills,
        ways,
        character,
        gains=_gains(options, onto),
        one_way=[*options.rising, *_roads(onto)],
        provenance={
            "mocap2ctrl": __version__,
            "skills": [_told(skill, sources.get(skill.name)) for skill in skills],
            "transitions": [asdict(way) for way in ways],
            **({"grown_from": dict(onto.provenance)} if onto else {}),
        },
        onto=onto,
    )
    shortened = ""
    if ways and window_s < options.blend_s:
        shortened = f"skills are compared over {window_s:.2f} s, not {options.blend_s:g} s: one is too short for more"
    return ExportedGraph(built, character, skills, ways, near, shortened)


def _gains(options: GraphOptions, onto: ControlGraph | None) -> str:
    """The gain set that is asked for, or that of the graph that is grown."""
    if onto is not None and options.gains not in (None, onto.gains):
        raise ConfigError(f"--gains {options.gains}: the graph has been made for {onto.gains}; leave --gains out")
    return options.gains or (onto.gains if onto else "locomotion")


def _roads(onto: ControlGraph | None) -> set[str]:
    """Skills of a graph to which no walk comes back: they stay one-way."""
    if onto is None:
        return set()
    return {fragment.skill for name, fragment in onto.fragments.items() if not comes_back(name, onto.successors)}


def _linked(onto: ControlGraph | None, skills: Sequence[Skill]) -> set[tuple[str, str]]:
    """Cycles of a graph that is grown, from the first of which its own ways lead to the second."""
    cycles = [skill for skill in skills if skill.pieces]
    if onto is None:
        return set()
    reached = {skill.name: reachable([skill.pieces[0].name], onto.successors) for skill in cycles}
    return {(a.name, b.name) for a, b in permutations(cycles, 2) if b.pieces[0].name in reached[a.name]}


def _told(skill: Skill, source: str | None) -> dict[str, object]:
    return {
        "name": skill.name,
        "input": source,
        "cyclic": skill.cyclic,
        "symmetric": skill.symmetric,
        **({"touchdowns_s": {down.foot: down.time_s for down in skill.contacts}} if skill.contacts else {}),
        "duration_s": skill.duration_s,
        "motion": dict(skill.clip.provenance),
    }
