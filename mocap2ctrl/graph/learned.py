"""Graphs that are there already as parts of a new one: fragments stay, cycles can be left and entered (Liu 2016, §6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from mocap2ctrl.errors import GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph
from mocap2ctrl.graph.skills import Frames, Skill
from mocap2ctrl.motion.clips import at_times, close_loop
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.types import MotionClip


def rings(graph: ControlGraph) -> dict[str, tuple[str, ...]]:
    """Names of the fragments of each skill that is a ring of them, in order."""
    skills: dict[str, list[str]] = {}
    for name, fragment in graph.fragments.items():
        skills.setdefault(fragment.skill, []).append(name)
    return {
        skill: tuple(names)
        for skill, names in skills.items()
        if all(after in graph.successors.get(before, ()) for before, after in pairwise([*names, names[0]]))
    }


def cycles_of(graph: ControlGraph) -> tuple[Skill, ...]:
    """The skills of a graph that are rings of fragments, as motions that are cut where their fragments are."""
    pieces = {skill: tuple(graph.fragments[name] for name in names) for skill, names in rings(graph).items()}
    return tuple(Skill(skill, close_loop(_laid(skill, ring)), pieces=ring) for skill, ring in pieces.items())


def united(graphs: Sequence[tuple[str, ControlGraph]]) -> ControlGraph:
    """One graph of several, each with the name of its file; without ways from one to another.

    Raises:
        GraphError: they are of different bodies or gains, or two have a skill of the same name.
    """
    (file, first), *others = graphs
    fragments, successors = dict(first.fragments), dict(first.successors)
    for other_file, other in others:
        for what, mine, its in (("bodies", first.character, other.character), ("gains", first.gains, other.gains)):
            if mine != its:
                raise GraphError(
                    f"{file} and {other_file} are for different {what}; a graph has one: learn them for the same"
                )
        both = {f.skill for f in fragments.values()} & {f.skill for f in other.fragments.values()}
        if both:
            raise GraphError(
                f"{other_file}: the skill {min(both)!r} is in another graph, too; learn it by another name"
            )
        fragments.update(other.fragments)
        successors.update(other.successors)
    if not others:
        return first
    provenance = {"united": {name: dict(graph.provenance) for name, graph in graphs}}
    return replace(first, fragments=fragments, successors=successors, provenance=provenance)


def _laid(name: str, fragments: Sequence[ControlFragment]) -> MotionClip:
    """The references of fragments as one loop: each is laid at the end of the one before."""
    parts = [_frames(fragments[0])]
    for fragment in fragments[1:]:
        position, orientation, pose = _frames(fragment)
        before, facing = parts[-1][0][-1], parts[-1][1][-1]
        turn = rotations.yaw(rotations.heading(facing) - rotations.heading(orientation[0]))
        travel = rotations.rotate(turn, position - position[0]) + before * np.array([1.0, 1.0, 0.0])
        travel[:, 2] = position[:, 2]
        parts.append((travel[1:], rotations.multiply(turn, orientation)[1:], pose[1:]))
    positions, orientations, angles = (np.concatenate(values) for values in zip(*parts, strict=True))
    upright = rotations.continuous(rotations.normalise(orientations))
    return MotionClip(name, 1.0 / PD_TIME_STEP_S, positions, upright, angles, loop=True)


def _frames(fragment: ControlFragment) -> Frames:
    """A fragment's reference, a servo step apart."""
    clip = MotionClip(
        fragment.name, 1.0 / fragment.frame_s, fragment.reference_root_position, fragment.reference_root_orientation,
        fragment.reference_angles,
    )  # fmt: skip
    times_s = np.linspace(0.0, fragment.duration_s, round(fragment.duration_s / PD_TIME_STEP_S) + 1)
    dense = at_times(clip, times_s)
    return dense.root_position, dense.root_orientation, dense.angles
