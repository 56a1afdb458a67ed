"""`mocap2ctrl fit`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mocap2ctrl.cli.options import add_json, note, number, print_json, whole

if TYPE_CHECKING:
    from mocap2ctrl.api import FitResult

EPILOG = """examples:
  mocap2ctrl fit walk.bvh                              writes captures/walk
  mocap2ctrl fit humanoid3d_walk --cycles 2 -o walk    a clip that pybullet ships
  mocap2ctrl fit walk.bvh --budget quick --time-range 0 2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "input", metavar="INPUT", help="a .bvh, a DeepMimic .txt, or the name of a clip in pybullet_data"
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="the capture folder (default: captures/<input's name>)")
    parser.add_argument("--budget", default="default", help="quick, default or thorough")
    parser.add_argument("--method", choices=("incremental", "batch"), help="Algorithm 3 (default) or 2 of Vondrak 2012")
    parser.add_argument("--seed", type=whole(0, 2**31), default=1, help="of all random numbers (default: 1)")
    parser.add_argument(
        "--workers", type=whole(1, 1024), help="processes (default: all cores); does not change the result"
    )
    parser.add_argument("--engine", default="mujoco", help="physics engine (default: mujoco)")
    parser.add_argument("--prior", default="auto", metavar="auto|NAME|none", help="pose prior (auto: none for mocap)")
    parser.add_argument("--height", type=number(0.8, 2.4), metavar="M", help="body height (default: 1.75)")
    parser.add_argument(
        "--time-range", nargs=2, type=number(0.0, 1e6), metavar=("A", "B"), help="seconds of the input to use"
    )
    parser.add_argument("--fps", type=number(10, 120), help="frames a second that the objective looks at (default: 30)")
    parser.add_argument("--cycles", type=whole(1, 100), default=1, help="repeat a loop so often (default: 1)")
    parser.add_argument(
        "--torque-limit", type=number(0.01, 10.0), default=1.0, metavar="F", help="factor on the torque bounds"
    )
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted fit")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing capture")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Fits, then says what came out and where it lies."""
    from dataclasses import replace

    from mocap2ctrl import api
    from mocap2ctrl.cli.progress import FitDisplay
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.fit.config import budget

    if options.resume and options.overwrite:
        raise ConfigError("--resume and --overwrite were both given; choose one")
    config = budget(options.budget)
    if options.method:
        config = replace(config, method=options.method)
    with FitDisplay() as display:
        result = api.fit(
            options.input,
            options.output,
            config=config,
            seed=options.seed,
            workers=options.workers,
            engine=options.engine,
            prior=options.prior,
            height_m=options.height,
            time_range=tuple(options.time_range) if options.time_range else None,
            fps=options.fps,
            cycles=options.cycles,
            torque_scale=options.torque_limit,
            resume=options.resume,
            overwrite=options.overwrite,
            command=options.command_line,
            on_progress=display.progress,
            on_input=display.input,
        )
    for warning in result.warnings:
        note(f"note: {warning}")
    evaluation, outcome = result.evaluation, result.outcome
    if options.json:
        print_json(
            {
                "capture": str(result.capture.folder),
                "joint_error_cm": evaluation.joint_error_cm,
                "silhouette_iou": None,
                "fell": evaluation.fell,
                "states": len(result.capture.finished_controller().states),
                "evaluations": outcome.evaluations,
                "wall_s": round(outcome.wall_s, 2),
                "core_s": round(outcome.core_s, 2),
            }
        )
    else:
        _print_summary(result)
    if outcome.interrupted:
        note("interrupted: the controller is the best so far; go on with --resume")
        return 130
    return 0


def _print_summary(result: FitResult) -> None:
    evaluation, outcome, folder = result.evaluation, result.outcome, result.capture.folder
    fell = f"fell at {evaluation.fell_at_s:.2f} s" if evaluation.fell_at_s is not None else "no fall"
    print(
        f"joint error {evaluation.joint_error_cm:.1f} cm ({evaluation.root_aligned_error_cm:.1f} cm root-aligned), {fell}\n"
        f"{len(result.capture.finished_controller().states)} states, {outcome.evaluations:,} evaluations, "
        f"{outcome.wall_s:.0f} s ({outcome.core_s / 60:.1f} core-minutes)\n"
        f"look at {folder / 'overlay.mp4'} and {folder / 'report.html'}; the controller is {folder / 'controller.json'}"
    )
