"""Where skills come from: what a fitted controller does, or a motion file as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.evaluation.metrics import fall_time
from mocap2ctrl.evaluation.replay import replay
from mocap2ctrl.evaluation.video import ground_rule
from mocap2ctrl.fit.capture import Capture, holds_capture, load_capture
from mocap2ctrl.fit.inputs import input_name, is_video_input
from mocap2ctrl.graph.body import character_of, digest
from mocap2ctrl.graph.file import is_graph_file, read_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.learned import cycles_of, united
from mocap2ctrl.graph.skills import Skill, make_skill
from mocap2ctrl.graph.transitions import check_names
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.npz import read_body_and_motion
from mocap2ctrl.simulation.choose import make_engine
from mocap2ctrl.types import MotionClip


@dataclass(frozen=True, eq=False)
class Loaded:
    """What a graph is to be made of.

    Attributes:
        skills: those of the inputs, in order.
        character: their one body.
        graph: the graph among the inputs, which is to be grown, if there is one; several are one.
    """

    skills: tuple[Skill, ...]
    character: Character
    graph: ControlGraph | None = None


@dataclass(frozen=True)
class Input:
    """What a skill is made from, as it was named.

    Attributes:
        name: of the skill.
        source: a capture's folder, a motion file, a motion `.npz`, the name of a DeepMimic clip, or a graph.
    """

    name: str
    source: str


def parse_input(text: str) -> Input:
    """`NAME=INPUT`, or `INPUT`, whose own name the skill then has."""
    name, mark, source = text.partition("=")
    return Input(name, source) if mark and name and source else Input(input_name(text), text)


def load_skills(
    inputs: Sequence[Input],
    *,
    height_m: float | None = None,
    cyclic: Sequence[str] = (),
    once: Sequence[str] = (),
    rising: Sequence[str] = (),
) -> Loaded:
    """The skills of all inputs, on one body: that of captures, motion archives and graphs, or the built-in one.

    Of a graph, its cycles are skills.

    Args:
        inputs: where the skills come from.
        height_m: of the body, where no input brings one.
        cyclic: names of skills that must be cycles.
        once: names of skills that are not to be made cycles.
        rising: names of skills that get up, which are none either.

    Raises:
        Mocap2CtrlError: an input cannot be used, or two are of different bodies.
    """
    graph, inputs = _graph_among(inputs)
    cycles = cycles_of(graph) if graph else ()
    names = [entry.name for entry in inputs]
    check_names([*names, *({f.skill for f in graph.fragments.values()} if graph else ())])
    refuse_unknown("--cyclic", cyclic, names)
    refuse_unknown("--once", once, names)
    refuse_unknown("--rising", rising, names)
    bodied = {entry.name: read for entry in inputs for read in [_with_body(Path(entry.source))] if read is not None}
    body = {f"the graph's {cycle.name}": (cycle.clip, character_of(graph)) for cycle in cycles} if graph else {}
    character = _common({**body, **bodied}, height_m)
    skills = list(cycles)
    for entry in inputs:
        read = bodied.get(entry.name)
        clip = load_motion(entry.source, character).clip if read is None else read[0]
        wanted = True if entry.name in cyclic else False if entry.name in (*once, *rising) else None
        skills.append(make_skill(entry.name, clip, character, cyclic=wanted))
    return Loaded(tuple(skills), character, graph)


def _graph_among(inputs: Sequence[Input]) -> tuple[ControlGraph | None, list[Input]]:
    """The graph that is to be grown, and the other inputs; several graphs become one, without ways between them yet.

    Raises:
        ConfigError: one is given a name.
        GraphError: a file is damaged, or graphs cannot be one.
    """
    graphs = [entry for entry in inputs if is_graph_file(Path(entry.source))]
    for entry in graphs:
        if entry.name != input_name(entry.source):
            raise ConfigError(
                f"{entry.name}={entry.source}: a graph's skills have names already; leave {entry.name}= out"
            )
    read = [(entry.source, read_graph(Path(entry.source))) for entry in graphs]
    return united(read) if read else None, [entry for entry in inputs if entry not in graphs]


def refuse_unknown(option: str, names: Sequence[str], skills: Sequence[str]) -> None:
    """Whether an option names skills that there are.

    Raises:
        ConfigError: it does not.
    """
    for name in names:
        if name not in skills:
            there = (
                f"there are {', '.join(skills)}"
                if skills
                else "there are none; give a motion or a capture, as NAME=FILE"
            )
            raise ConfigError(f"{option} {name}: there is no such skill among those that are added; {there}")


def _with_body(source: Path) -> tuple[MotionClip, Character] | None:
    """Motion and body of a capture or a motion archive; None of a file that is to be retargeted."""
    if source.is_dir() and holds_capture(source):
        capture = load_capture(source)
        return performance(capture), capture.character
    if source.suffix.lower() == ".npz":
        character, clip = read_body_and_motion(source)
        return clip, character
    if source.is_dir() or is_video_input(source):
        raise ConfigError(f"{source}: is neither a capture nor a motion file; fit it first: mocap2ctrl fit {source}")
    return None


def _common(bodied: dict[str, tuple[MotionClip, Character]], height_m: float | None) -> Character:
    """The one body of all inputs."""
    if not bodied:
        return load_character(height_m=height_m)
    (first, (_, character)), *others = bodied.items()
    for name, (_, other) in others:
        if digest(other) != digest(character):
            raise GraphError(
                f"skills {first!r} and {name!r} are of different bodies, of {character.height_m:g} and {other.height_m:g} m; a "
                "graph has one: fit them with the same --height, or convert one to a motion file"
            )
    if height_m is not None and height_m != character.height_m:
        raise ConfigError(
            f"--height {height_m:g}: skill {first!r} brings a body of {character.height_m:g} m; leave --height out"
        )
    return character


def performance(capture: Capture) -> MotionClip:
    """What a capture's controller does, for as long as the motion lasts that it was fitted to; a loop if that is one.

    Raises:
        GraphError: it falls.
    """
    engine = make_engine(capture.engine_name, capture.character, torque_scale=capture.torque_scale)
    reference, seconds, fps = capture.reference, capture.reference.duration_s, 1.0 / engine.time_step_s
    run = replay(engine, capture.finished_controller(), seconds + 2.0 / fps, fps=fps)
    dense = resample(replace(reference, loop=False), fps)
    fell_at = fall_time(capture.character, run, dense, seconds, ground=ground_rule(capture))
    if fell_at is not None:
        raise GraphError(
            f"{capture.folder}: its controller falls at {fell_at:.2f} s, so it shows no skill; fit it again, or give the motion "
            "that it was fitted to"
        )
    clip = run.clip.cut(0, round(seconds * fps) + 1)
    told = {"simulated_from": capture.folder.name, "reference": dict(reference.provenance)}
    return replace(clip, name=capture.folder.name, loop=reference.loop, provenance=told)
