"""`mocap2ctrl simulate GRAPH`: walks a control graph."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.options import note, number, print_json, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mocap2ctrl.character.model import Character
    from mocap2ctrl.graph.fragments import ControlGraph
    from mocap2ctrl.graph.planning import Place, Planner
    from mocap2ctrl.samcon.run import GraphRun
    from mocap2ctrl.samcon.steering import Steering
    from mocap2ctrl.simulation.environment import Environment
    from mocap2ctrl.simulation.pushes import Push
    from mocap2ctrl.types import MotionClip

SECONDS = 10.0
CIRCLE_M = 1.2
"""Radius of the circle on which characters begin, facing its middle, for each of them."""
OPTIONS = ("path", "seed", "goal", "characters")
ENGINE = "mujoco"
"""In which graphs are learned."""
NOT_FOR_GRAPHS = ("diverged",)


def add_graph_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of graphs."""
    group = parser.add_argument_group("for graphs")
    group.add_argument("--path", metavar="A,B,…", help="skills to perform, over and over (default: a random walk)")
    group.add_argument("--seed", type=whole(0, 2**32 - 1), help="of the random walk (default: 0)")
    group.add_argument("--goal", metavar="X,Y", help="steer to that point, metres, instead")
    group.add_argument(
        "--characters",
        type=whole(1, 16),
        metavar="N",
        help="so many on one ground, facing each other; they collide (default: 1)",
    )


def is_graph(options: argparse.Namespace) -> bool:
    """Whether what is to be simulated is a graph's file.

    Raises:
        ConfigError: it is none, but an option is for graphs only.
    """
    from mocap2ctrl.errors import ConfigError

    graph = Path(options.capture).suffix.lower() == ".json" and not Path(options.capture).is_dir()
    for name in NOT_FOR_GRAPHS if graph else OPTIONS:
        if getattr(options, name) is not None:
            what = "captures" if graph else "graphs (FILE.json)"
            raise ConfigError(f"--{name} is for {what} only, which {options.capture} is not; leave it out")
    return graph


def run(options: argparse.Namespace) -> int:
    """Simulates, and writes motions and a video."""
    from mocap2ctrl.errors import CaptureError
    from mocap2ctrl.evaluation.export import check_outputs, export_motion
    from mocap2ctrl.fit.capture import check_place, holds_capture, make_folder
    from mocap2ctrl.graph.body import character_of
    from mocap2ctrl.graph.file import read_graph

    path = Path(options.capture)
    folder = Path(options.output) if options.output else path.with_suffix(".simulations") / _label(options)
    check_place(folder)
    if holds_capture(folder):
        raise CaptureError(f"{folder}: is a capture, whose own motion and video would be lost; choose another -o")
    wanted = check_outputs(options.motion, overwrite=options.overwrite, option="--motion") if options.motion else ()
    graph = read_graph(path)
    character = character_of(graph, str(path))
    runs, pushes = _simulated(options, graph, character)
    lacking = sum(fragment.policy is None for fragment in graph.fragments.values())
    if lacking:
        note(f"note: {lacking} of {len(graph.fragments)} fragments have no feedback; mocap2ctrl learn learns it")
    make_folder(folder)
    names = ["motion"] if len(runs) == 1 else [f"motion_{who + 1}" for who in range(len(runs))]
    for who, (name, done) in enumerate(zip(names, runs, strict=True)):
        for file in (folder / f"{name}.npz", folder / f"{name}.bvh", *(wanted if who == 0 else ())):
            export_motion(file, _told(done, path, who), character)
    video = None if options.no_video else _write_video(folder, character, runs, pushes)
    _tell(options, runs, video or folder / f"{names[0]}.bvh")
    return 0


def _simulated(
    options: argparse.Namespace, graph: ControlGraph, character: Character
) -> tuple[tuple[GraphRun, ...], tuple[Push, ...]]:
    """What each character does, and the pushes on the first one."""
    from mocap2ctrl.cli.simulate import pushes_of
    from mocap2ctrl.graph.planning import GoalPlanner
    from mocap2ctrl.samcon.run import run_graph
    from mocap2ctrl.samcon.steering import record_steering
    from mocap2ctrl.simulation.engine_stage import check_stage

    seconds, places, engine = options.seconds or SECONDS, _circle(options.characters or 1), options.engine or ENGINE
    check_stage(engine, len(places))
    planners, environment = _planners(options, graph, places), _environment(options, len(places))
    pushes, steering = pushes_of(options, character, seconds), None
    if any(isinstance(planner, GoalPlanner) for planner in planners):
        steering = record_steering(graph, character)
        _note_steering(steering)
    runs = run_graph(
        graph,
        character,
        planners,
        seconds,
        pushes=pushes,
        torque_scale=options.torque_limit or 1.0,
        places=places,
        steering=None if steering is None else steering.actions,
        environment=environment,
        engine=engine,
    )
    return runs, pushes


def _environment(options: argparse.Namespace, count: int) -> Environment:
    """Where `--environment` says."""
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.simulation.environment import LEVEL
    from mocap2ctrl.simulation.environment_file import load_environment

    if options.environment is None:
        return LEVEL
    if count > 1:
        raise ConfigError("--environment is for one character; leave --characters out")
    return load_environment(options.environment)


def _note_steering(steering: Steering) -> None:
    """How fast skills can be steered, for the person at the terminal."""
    import numpy as np

    rates = [f"{skill} by {np.degrees(rate):.0f} degrees a second" for skill, rate in steering.rates.items()]
    note(
        f"note: steers {', '.join(rates)}"
        if rates
        else "note: no skill stands being steered; only ways of the graph turn"
    )


def _told(done: GraphRun, path: Path, who: int) -> MotionClip:
    """The motion as it is written, with where it comes from."""
    from dataclasses import replace

    return replace(done.clip, name=path.stem, provenance={"simulated_from": path.name, "character": who + 1})


def _write_video(folder: Path, character: Character, runs: Sequence[GraphRun], pushes: Sequence[Push]) -> Path:
    """The references of what was performed beside the motion; or all characters together."""
    from mocap2ctrl.report.overlay import write_overlay
    from mocap2ctrl.report.stage import write_stage_video

    video = folder / ("overlay.mp4" if len(runs) == 1 else "stage.mp4")
    if len(runs) == 1:
        done = runs[0]
        write_overlay(
            video,
            character,
            done.reference,
            done.clip,
            caption=lambda time_s: _performed_at(done, time_s),
            environment=done.environment,
            pushes=pushes,
        )
    else:
        write_stage_video(video, character, [done.clip for done in runs])
    return video


def _performed_at(done: GraphRun, time_s: float) -> str:
    """The name of the fragment that is performed at a time."""
    return next((entry.fragment for entry in reversed(done.performed) if entry.at_s <= time_s + 1e-9), "")


def _tell(options: argparse.Namespace, runs: Sequence[GraphRun], look_at: Path) -> None:
    falls = [done.fell_at_s for done in runs]
    fell_at = min((at for at in falls if at is not None), default=None)
    seconds = runs[0].clip.duration_s
    said: dict[str, object] = {"seconds": seconds, "fell": fell_at is not None, "fell_at_s": fell_at}
    said["environment"] = runs[0].environment.name
    said |= {"engine": options.engine or ENGINE, "folder": str(look_at.parent)}
    said["fragments"] = sum(len(done.performed) for done in runs)
    if len(runs) > 1:
        said |= {"all_fell_at_s": falls, "met": [[other + 1 for other in done.met] for done in runs]}
    goal = _point(options.goal)
    if goal is not None:
        said["nearest_m"] = min(_nearest_m(done, goal) for done in runs)
    if options.json:
        print_json(said)
        return
    print(f"simulated {seconds:.2f} s in {said['engine']}, {said['fragments']} fragments")
    for index, done in enumerate(runs):
        who = f"character {index + 1}: " if len(runs) > 1 else ""
        met = f", met {', '.join(str(other + 1) for other in done.met)}" if done.met else ""
        print(f"{who}{'no fall' if done.fell_at_s is None else f'fell at {done.fell_at_s:.2f} s'}{met}")
    if goal is not None:
        print(f"came within {said['nearest_m']:.2f} m of {options.goal}")
    print(f"look at {look_at}")


def _nearest_m(done: GraphRun, goal: tuple[float, float]) -> float:
    import numpy as np

    return float(np.min(np.linalg.norm(done.clip.root_position[:, :2] - np.array(goal), axis=1)))


def _planners(options: argparse.Namespace, graph: ControlGraph, places: Sequence[Place]) -> list[Planner]:
    """One a character, as the options say; several who are told nothing run into each other."""
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.graph.planning import ChasePlanner, GoalPlanner, PathPlanner, RandomPlanner

    given = [name for name in ("path", "seed", "goal") if getattr(options, name) is not None]
    if len(given) > 1:
        raise ConfigError(f"--{given[0]} and --{given[1]} both say which way to go; give one of them")
    numbers, goal = range(len(places)), _point(options.goal)
    if options.path is not None:
        skills = [skill.strip() for skill in options.path.split(",")]
        return [PathPlanner(graph, skills) for _ in numbers]
    if goal is not None:
        return [GoalPlanner(graph, goal) for _ in numbers]
    if len(places) > 1 and options.seed is None:
        shared = dict(enumerate(places))
        return [ChasePlanner(graph, number, shared) for number in numbers]
    return [RandomPlanner(graph, (options.seed or 0) + number) for number in numbers]


def _point(text: str | None) -> tuple[float, float] | None:
    """The point that `--goal` names."""
    from mocap2ctrl.errors import ConfigError

    if text is None:
        return None
    try:
        x, y = (number(-1e4, 1e4)(part) for part in text.split(","))
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise ConfigError(f"--goal {text}: is no point; allowed is X,Y in metres, such as 5,-2") from error
    return x, y


def _circle(count: int) -> list[Place]:
    """Where characters begin: evenly on a circle, facing its middle; one alone at the origin, along x."""
    import numpy as np

    from mocap2ctrl.graph.planning import Place

    if count == 1:
        return [Place(0.0, 0.0, 0.0)]
    radius, angles = CIRCLE_M * count, 2.0 * np.pi * np.arange(count) / count + np.pi
    return [Place(float(radius * np.cos(a)), float(radius * np.sin(a)), float(a + np.pi)) for a in angles]


def _label(options: argparse.Namespace) -> str:
    """The folder's name, from the options that matter."""
    from mocap2ctrl.cli.simulate import label_parts

    named = {"": options.path, "seed_": options.seed, "to_": options.goal, "characters_": options.characters}
    parts = [name + re.sub(r"[^\w.+-]+", "_", str(value)) for name, value in named.items() if value is not None]
    return "-".join([*parts, *label_parts(options), *([options.engine] if options.engine else [])]) or "random"
