"""`mocap2ctrl fit`."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.input_options import add_input_arguments, input_options
from mocap2ctrl.cli.options import add_json, counted, engine_name, note, number, print_json, whole

if TYPE_CHECKING:
    from mocap2ctrl.api import FitResult
    from mocap2ctrl.fit.crew import Crew

EPILOG = """examples:
  mocap2ctrl fit walk.mp4                              writes captures/walk; the camera is in walk.toml. Without a file
                                                       of that name it is sample footage, as are jump.mp4 and spinkick.mp4
  mocap2ctrl fit walk.mp4 --camera studio.toml:left --background empty.jpg --height 1.82
  mocap2ctrl fit clip.mp4 --keypoints openpose_json/   points of the body beside the silhouettes
  mocap2ctrl fit masks.npz:walk --camera walk.toml --fps 30
  mocap2ctrl fit walk.bvh
  mocap2ctrl fit odd.bvh --joint-map inspect/odd/joint-map.toml --unit cm --up z
  mocap2ctrl fit humanoid3d_walk --cycles 2 -o walk    a clip that pybullet ships
  mocap2ctrl fit walk.bvh --budget quick --time-range 0 2
  mocap2ctrl fit walk.bvh --scheduler tcp://10.0.0.1:8786
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    seen = add_input_arguments(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help="the capture folder (default: captures/<input's name>)")
    parser.add_argument("--budget", default="default", help="quick, default or thorough")
    parser.add_argument(
        "--method",
        choices=("incremental", "batch", "growth"),
        help="Algorithm 3 (default) or 2 of Vondrak 2012; growth: Algorithm 3 from a video's silhouettes alone",
    )
    parser.add_argument(
        "--refine",
        action="store_true",
        help="then make exits on time to exits on contact, and steps that repeat to a cycle, where the motion suffers "
        "little by it (Algorithm 4)",
    )
    parser.add_argument(
        "--cyclic",
        action="store_true",
        help="refine, and close the cycle even where the motion suffers: a controller that goes on and on",
    )
    parser.add_argument(
        "--robust",
        action="store_true",
        help="then make it stand in other worlds too: other friction, slopes, shoves, weaker and stronger muscles",
    )
    parser.add_argument("--seed", type=whole(0, 2**31), default=1, help="of all random numbers (default: 1)")
    parser.add_argument(
        "--workers",
        type=whole(1, 1024),
        help="processes on this machine (default: all cores); does not change the result",
    )
    parser.add_argument(
        "--scheduler",
        metavar="tcp://HOST:PORT|mpi",
        help="evaluate on a Dask cluster, or in an MPI job, instead of processes on this machine; see docs/running.md",
    )
    parser.add_argument(
        "--engine", type=engine_name, default="mujoco", help="physics engine: mujoco (default) or bullet"
    )
    parser.add_argument(
        "--also-in",
        type=engine_name,
        metavar="ENGINE",
        help="judge every controller in this engine too: the result performs in both",
    )
    parser.add_argument(
        "--prior",
        default="auto",
        metavar="auto|NAME|none",
        help="pose prior (auto: for a video the likeliest, else none)",
    )
    parser.add_argument(
        "--cycles",
        type=whole(1, 100),
        default=1,
        help="repeat a motion's loop, or its best cycle, so often (default: 1)",
    )
    parser.add_argument(
        "--torque-limit", type=number(0.01, 10.0), default=1.0, metavar="F", help="factor on the torque bounds"
    )
    seen.add_argument("--allow-ground", action="store_true", help="lying, rolling or crawling on the ground is no fall")
    seen.add_argument("--reference", metavar="FILE", help="the true motion, to print errors at the end; see evaluate")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with an interrupted fit; also, with --refine, --cyclic or --robust, with a finished one without",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing capture, which is deleted once the new input has been accepted",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Fits, then says what came out and where it lies."""
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.fit.crew import open_crew

    if options.resume and options.overwrite:
        raise ConfigError("--resume and --overwrite were both given; choose one")
    if options.robust and options.cyclic:
        raise ConfigError("--robust is for chains; the cycle of --cyclic has its own feedback: give one of them")
    if options.method not in (None, "incremental"):
        _refuse_beyond_growth(options)
    with open_crew(options.workers, options.scheduler) as crew:
        crew.start()
        return _fit(options, crew)


def _refuse_beyond_growth(options: argparse.Namespace) -> None:
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.fit.config import BEYOND_GROWTH

    given = [f"--{name}" for name in BEYOND_GROWTH if getattr(options, name)]
    if given:
        go = "go" if len(given) > 1 else "goes"
        raise ConfigError(
            f"{' and '.join(given)} {go} with --method incremental, not with {options.method}; leave one of them out"
        )


def _fit(options: argparse.Namespace, crew: Crew) -> int:
    """Loads what a fit needs, which takes a second, while workers do the same."""
    from dataclasses import replace

    from mocap2ctrl import api
    from mocap2ctrl.cli.progress import FitDisplay
    from mocap2ctrl.fit.config import budget

    config = budget(options.budget)
    if options.method:
        config = replace(config, method=options.method)
    if options.refine or options.cyclic:
        config = replace(config, refine=True, cyclic=options.cyclic)
    config = replace(config, robust=options.robust)
    with FitDisplay() as display:
        result = api.fit(
            options.input,
            options.output,
            config=config,
            seed=options.seed,
            workers=options.workers,
            scheduler=options.scheduler,
            crew=crew,
            engine=options.engine,
            also_in=options.also_in,
            prior=options.prior,
            **input_options(options),
            cycles=options.cycles,
            torque_scale=options.torque_limit,
            allow_ground=options.allow_ground,
            reference=options.reference,
            resume=options.resume,
            overwrite=options.overwrite,
            command=options.command_line,
            on_progress=display.progress,
            on_input=display.input,
            on_preparation=display.preparation,
        )
    for warning in result.warnings:
        if warning not in display.told:
            note(f"note: {warning}")
    evaluation, outcome = result.evaluation, result.outcome
    for told in outcome.told:
        note(f"note: {told}")
    if outcome.earlier is not None:
        note(f"note: the controller that was there is kept as {outcome.earlier}")
    if outcome.diverged:
        first = shlex.join(["mocap2ctrl", "simulate", str(result.capture.folder), "--diverged", "1"])
        note(f"{outcome.diverged:,} of {outcome.evaluations:,} simulations diverged; see the first again with: {first}")
    if options.json:
        print_json(
            {
                "capture": str(result.capture.folder),
                "joint_error_cm": evaluation.joint_error_cm,
                "silhouette_iou": evaluation.silhouette_iou,
                "fell": evaluation.fell,
                "elsewhere": {
                    name: {"joint_error_cm": other.joint_error_cm, "fell": other.fell, "fell_at_s": other.fell_at_s}
                    for name, other in result.elsewhere.items()
                },
                "states": len(result.capture.finished_controller().states),
                "evaluations": outcome.evaluations,
                "recorded": outcome.recorded,
                "diverged": outcome.diverged,
                "interrupted": outcome.interrupted,
                "wall_s": round(outcome.wall_s, 2),
                "core_s": round(outcome.core_s, 2),
            }
        )
    else:
        _print_summary(result)
    if outcome.interrupted:
        note(f"interrupted; {result.capture.folder} holds the best controller so far; {_go_on(options)}")
        return 130
    return 0


def kept(options: argparse.Namespace) -> str:
    """What an interruption leaves, in words. It may have come while modules were loading, which are not to be asked then."""
    folder_of = getattr(sys.modules.get("mocap2ctrl.api"), "capture_folder", None)
    folder = None if folder_of is None else folder_of(options.input, options.output)
    if folder is not None and (options.resume or _begun_by(options.command_line, folder)):
        return f"{folder} holds what there is; {_go_on(options)}"
    return "nothing is kept: the fit had not begun"


def _begun_by(command: str, folder: Path) -> bool:
    """Whether a folder holds the fit of a command, and not what was there before."""
    from mocap2ctrl.errors import Mocap2CtrlError
    from mocap2ctrl.fit.capture import load_settings

    try:
        run, _ = load_settings(folder)
    except Mocap2CtrlError:
        return False
    return bool(run.get("command") == command)


def _go_on(options: argparse.Namespace) -> str:
    instead = " in place of --overwrite" if options.overwrite else ""
    return f"go on with the same command and --resume{instead}"


def _print_summary(result: FitResult) -> None:
    from mocap2ctrl.evaluation.metrics import verdict

    evaluation, outcome, folder = result.evaluation, result.outcome, result.capture.folder
    states = counted(len(result.capture.finished_controller().states), "state")
    fell = f"fell at {evaluation.fell_at_s:.2f} s" if evaluation.fell_at_s is not None else "no fall"
    if evaluation.silhouette_iou is not None:
        print(
            f"silhouettes overlap by {evaluation.silhouette_iou:.3f}, the track's by {evaluation.track_silhouette_iou:.3f}"
        )
    if evaluation.joint_error_cm is not None:
        aligned = f"{evaluation.root_aligned_error_cm:.1f} cm root-aligned"
        print(f"joint error {evaluation.joint_error_cm:.1f} cm ({aligned}), {fell}")
    else:
        print(f"{evaluation.track_error_cm:.1f} cm from the track, {fell}")
    if evaluation.track_joint_error_cm is not None:
        aligned = f"{evaluation.track_root_aligned_error_cm:.1f} cm root-aligned"
        print(f"of that the track: {evaluation.track_joint_error_cm:.1f} cm ({aligned})")
    for name, other in result.elsewhere.items():
        print(f"in engine {name}: {verdict(other)}")
    earlier = f"{outcome.recorded:,} of them by earlier runs; this one took " if outcome.recorded else ""
    print(
        f"{states}, {outcome.evaluations:,} evaluations, {earlier}"
        f"{outcome.wall_s:.0f} s ({outcome.core_s / 60:.1f} core-minutes)\n"
        f"look at {folder / 'overlay.mp4'} and {folder / 'report.html'}; the controller is {folder / 'controller.json'}"
    )
