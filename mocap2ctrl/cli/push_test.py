"""`mocap2ctrl push-test`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.options import add_engine, add_environment, add_json, given, note, number, print_json, whole

if TYPE_CHECKING:
    from mocap2ctrl.evaluation.push_test import PushTest

SIDES = ("front", "rear", "left", "right")

EPILOG = """examples:
  mocap2ctrl push-test captures/walk
  mocap2ctrl push-test learned.json --skill walk
  mocap2ctrl push-test captures/walk --torque-limit 0.75 --json
  mocap2ctrl push-test captures/walk --environment slope-up --engine bullet --max-force 200

The protocol is that of Vondrak 2012, section 6.1: a force on the chest's centre of mass for 0.4 s every 4 s for 40 s, from a side
of the body as it faces, at three phases of the cycle. It is for controllers that go round in a cycle. One that ends (a chain) gets
one push within its clip, at three moments, and must not fall before it ends; what it survives is no match for the paper's.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "capture",
        metavar="CAPTURE|GRAPH",
        type=given,
        help="a folder that mocap2ctrl fit has written, or a learned graph (.json)",
    )
    parser.add_argument("--skill", metavar="NAME", help="of a graph: which learned cycle (default: its first)")
    add_engine(parser)
    add_environment(parser)
    parser.add_argument("--torque-limit", type=number(0.01, 10.0), metavar="F", help="scale the torque bounds")
    parser.add_argument("--step", type=number(0.1, 1000.0), metavar="N", default=10.0, help="newtons (default: 10)")
    parser.add_argument(
        "--max-force", type=number(0.1, 1e4), metavar="N", default=1000.0, help="where to stop, newtons (default: 1000)"
    )
    parser.add_argument("--workers", type=whole(1, 256), help="threads (default: all cores); they change no number")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Pushes harder and harder, and tells what was survived."""
    from mocap2ctrl import api
    from mocap2ctrl.cli.progress import StepDisplay
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.evaluation.push_test import push_test
    from mocap2ctrl.fit.crew import default_workers
    from mocap2ctrl.graph.file import is_graph_file

    if is_graph_file(Path(options.capture)):
        return _push_graph(options)
    if options.skill is not None:
        raise ConfigError(f"--skill is for graphs (FILE.json) only, which {options.capture} is not; leave it out")
    capture = api.load(options.capture)
    with StepDisplay("push-test") as display:
        result = push_test(
            capture,
            engine=options.engine,
            torque_limit=options.torque_limit,
            environment=options.environment,
            step_n=options.step,
            max_force_n=options.max_force,
            workers=options.workers or default_workers(),
            on_progress=lambda share, what: display.step(what, share),
        )
    return _tell(options, result, options.engine or capture.engine_name)


def _push_graph(options: argparse.Namespace) -> int:
    """The same of a learned cycle, on level ground in MuJoCo."""
    from mocap2ctrl.cli.progress import StepDisplay
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.fit.crew import default_workers
    from mocap2ctrl.graph.file import read_graph
    from mocap2ctrl.samcon.push_test import push_test_graph

    for name in ("engine", "environment"):
        if getattr(options, name) is not None:
            raise ConfigError(
                f"--{name} is for captures only; graphs are pushed in MuJoCo on level ground, so leave it out"
            )
    graph = read_graph(Path(options.capture))
    with StepDisplay("push-test") as display:
        result = push_test_graph(
            graph,
            skill=options.skill,
            torque_limit=options.torque_limit,
            step_n=options.step,
            max_force_n=options.max_force,
            workers=options.workers or default_workers(),
            on_progress=lambda share, what: display.step(what, share),
        )
    return _tell(options, result, "mujoco")


def _tell(options: argparse.Namespace, result: PushTest, engine: str) -> int:
    """What was survived, for people or programs."""
    from dataclasses import asdict

    for line in _notes(result):
        note(f"note: {line}")
    if options.json:
        asked = {"engine": engine, "skill": options.skill, "torque_limit": options.torque_limit}
        print_json({**asdict(result), **asked})
        return 0
    print(f"protocol  {result.protocol}")
    print(f"engine    {engine}, {result.environment}")
    for side in SIDES:
        least = getattr(result, f"{side}_n")
        if least is not None:
            phases = ", ".join(f"{n:g}" for n in result.by_phase_n[side])
            print(f"{side:<6} {least:6g} N    by phase {phases}")
    return 0


def _notes(result: PushTest) -> list[str]:
    """What a user should know of the numbers."""
    if result.front_n is None:
        return [
            f"without a push it falls at {result.undisturbed_s:.2f} s of {result.seconds:g}, so none was tried: it has to "
            "stand first"
        ]
    notes = []
    if not result.cyclic:
        notes.append(
            f"the controller ends, or falls by itself (it was up for {result.undisturbed_s:.1f} s): a single push within the clip, "
            "not the paper's 40 s; those are for cycles that go on, see fit --cyclic"
        )
    ended = [side for side in SIDES if getattr(result, f"{side}_n") + result.step_n > result.max_force_n]
    if ended:
        notes.append(
            f"the search ended at --max-force {result.max_force_n:g} N from {', '.join(ended)}; more may be survived"
        )
    return notes
