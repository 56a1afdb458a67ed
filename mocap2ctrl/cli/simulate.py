"""`mocap2ctrl simulate`."""

from __future__ import annotations

import argparse
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.options import add_engine, add_environment, add_json, given, number, print_json, whole
from mocap2ctrl.cli.simulate_graph import add_graph_arguments, is_graph
from mocap2ctrl.cli.simulate_graph import run as run_graph

if TYPE_CHECKING:
    from mocap2ctrl.character.model import Character
    from mocap2ctrl.simulation.pushes import Push

PUSH_AT_S, PUSH_FOR_S = 0.5, 0.4

EPILOG = """examples:
  mocap2ctrl simulate captures/walk --seconds 5
  mocap2ctrl simulate captures/walk --push 100 0 0 --push-at 0.5
  mocap2ctrl simulate captures/walk --torque-limit 0.75 --motion weak.glb
  mocap2ctrl simulate captures/walk --environment stairs --seconds 3
  mocap2ctrl simulate captures/walk --diverged 1        again what diverged during the fit
  mocap2ctrl simulate learned.json --path walk,walk,run --seconds 20
  mocap2ctrl simulate learned.json --characters 4
  mocap2ctrl simulate learned.json --engine bullet      in another engine than it was learned in
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "capture",
        metavar="CAPTURE|GRAPH",
        type=given,
        help="a folder that mocap2ctrl fit has written, or a graph.json of export-graph or learn",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="where to write (default: CAPTURE/simulations/<options>, GRAPH.simulations/<options>)",
    )
    parser.add_argument("--seconds", type=number(0.01, 3600.0), help="how long (default: the clip; 10 s of a graph)")
    parser.add_argument(
        "--push",
        nargs=3,
        type=number(-1e4, 1e4),
        metavar=("X", "Y", "Z"),
        help="force on the chest in newtons, world axes",
    )
    parser.add_argument("--push-at", type=number(0.0, 3600.0), metavar="S", help="when (default: 0.5 s)")
    parser.add_argument("--push-for", type=number(0.01, 60.0), metavar="S", help="how long (default: 0.4 s)")
    parser.add_argument(
        "--push-every", type=number(0.01, 3600.0), metavar="S", help="again after so long (default: once)"
    )
    add_environment(parser)
    parser.add_argument("--torque-limit", type=number(0.01, 10.0), metavar="F", help="scale the torque bounds")
    add_engine(parser, "fitted or learned")
    parser.add_argument(
        "--diverged",
        type=whole(1, 9999),
        metavar="N",
        help="instead of the controller, simulate again the fit's N-th simulation that diverged, up to there",
    )
    parser.add_argument(
        "--motion",
        action="append",
        default=[],
        metavar="FILE",
        help="write the motion there, too: a name that ends in .glb, .csv, .xml, .bvh or .npz; several are allowed",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a --motion FILE that is there")
    parser.add_argument("--no-video", action="store_true", help="leave the video out")
    add_graph_arguments(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Simulates, and writes the motion and a video."""
    from dataclasses import replace

    from mocap2ctrl import api
    from mocap2ctrl.errors import CaptureError
    from mocap2ctrl.evaluation.export import check_outputs, export_motion, performed
    from mocap2ctrl.evaluation.metrics import fall_time
    from mocap2ctrl.evaluation.video import ground_rule
    from mocap2ctrl.fit.capture import check_place, holds_capture, make_folder
    from mocap2ctrl.motion.clips import resample
    from mocap2ctrl.report.overlay import write_overlay

    if is_graph(options):
        _refuse_push_times(options)
        return run_graph(options)
    if options.diverged is not None:
        from mocap2ctrl.cli.diverged import run as simulate_diverged

        return simulate_diverged(options)
    _refuse_push_times(options)
    capture = api.load(options.capture)
    folder = Path(options.output) if options.output else capture.folder / "simulations" / _label(options)
    check_place(folder)
    if holds_capture(folder):
        raise CaptureError(f"{folder}: is a capture, whose own motion and video would be lost; choose another -o")
    wanted = check_outputs(options.motion, overwrite=options.overwrite, option="--motion") if options.motion else ()
    seconds = options.seconds or capture.reference.duration_s
    pushes = pushes_of(options, capture.character, seconds)
    replay = api.simulate(
        capture,
        seconds,
        fps=api.EVALUATION_FPS,
        pushes=pushes,
        torque_limit=options.torque_limit,
        engine=options.engine,
        environment=options.environment,
    )
    reference = replace(capture.reference, loop=False)
    dense = resample(reference, replay.clip.fps)
    fell_at = fall_time(capture.character, replay, dense, seconds, ground=ground_rule(capture))
    make_folder(folder)
    for file in (folder / "motion.npz", folder / "motion.bvh", *wanted):
        export_motion(file, performed(capture, replay.clip), capture.character)
    if not options.no_video:
        write_overlay(
            folder / "overlay.mp4",
            capture.character,
            reference,
            replay.clip,
            environment=replay.environment,
            pushes=replay.pushes,
        )
    if options.json:
        engine = options.engine or capture.engine_name
        said = {"seconds": replay.clip.duration_s, "fell": fell_at is not None, "fell_at_s": fell_at, "engine": engine}
        print_json({**said, "environment": replay.environment.name})
        return 0
    print(f"simulated {replay.clip.duration_s:.2f} s, {'no fall' if fell_at is None else f'fell at {fell_at:.2f} s'}")
    print(f"look at {folder / ('motion.bvh' if options.no_video else 'overlay.mp4')}")
    return 0


def _refuse_push_times(options: argparse.Namespace) -> None:
    from mocap2ctrl.errors import ConfigError

    for name in ("push_at", "push_for", "push_every"):
        if options.push is None and getattr(options, name) is not None:
            raise ConfigError(f"--{name.replace('_', '-')} goes with --push X Y Z only; give that too, or leave it out")


def _push_times(options: argparse.Namespace) -> tuple[float, float]:
    """When the push begins, and how long it lasts, seconds."""
    return (
        PUSH_AT_S if options.push_at is None else options.push_at,
        PUSH_FOR_S if options.push_for is None else options.push_for,
    )


def pushes_of(options: argparse.Namespace, character: Character, seconds: float) -> tuple[Push, ...]:
    """What `--push` and its companions say, of a simulation of some seconds.

    Raises:
        ConfigError: nothing would be felt of it, or one push would overlap the next.
    """
    import numpy as np

    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.simulation.pushes import Push

    if options.push is None:
        return ()
    at_s, for_s = _push_times(options)
    if at_s >= seconds:
        raise ConfigError(
            f"the push at {at_s:g} s would come after the end: {seconds:.2f} s are simulated; give an earlier --push-at, or "
            "more --seconds"
        )
    chest = character.segment_index("chest")
    every_s = np.inf if options.push_every is None else options.push_every
    if every_s < for_s:
        raise ConfigError(
            f"a push of {for_s:g} s every {every_s:g} s would overlap the next; give a longer --push-every"
        )
    return (Push(chest, np.array(options.push), at_s, for_s, every_s),)


def _push_label(options: argparse.Namespace) -> str:
    """`--push` and its companions in a folder's name, so that no simulation replaces another."""
    force = "_".join(f"{v:g}" for v in options.push)
    at_s, for_s = _push_times(options)
    again = f"_every_{options.push_every:g}s" if options.push_every else ""
    return f"push_{force}_at_{at_s:g}s_for_{for_s:g}s{again}"


def _environment_label(name: str) -> str:
    """An environment's name in a folder's name; of a file with a number for its place, so that two of one name are told apart."""
    if not name.endswith(".toml"):
        return name
    place = hashlib.sha256(str(Path(name).resolve()).encode()).hexdigest()[:6]
    stem = re.sub(r"[^\w.+-]+", "_", Path(name).stem)[:80]
    return f"{stem}-{place}"


def label_parts(options: argparse.Namespace) -> list[str]:
    """Parts of a folder's name from the options that captures and graphs share."""
    parts = []
    if options.seconds:
        parts.append(f"{options.seconds:g}s")
    if options.push:
        parts.append(_push_label(options))
    if options.environment:
        parts.append(_environment_label(options.environment))
    if options.torque_limit:
        parts.append(f"torque_{options.torque_limit:g}")
    return parts


def _label(options: argparse.Namespace) -> str:
    return "-".join([*label_parts(options), *([options.engine] if options.engine else [])]) or "replay"
