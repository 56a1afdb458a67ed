"""`mocap2ctrl export-mjcf`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.options import add_json, note, number, print_json

if TYPE_CHECKING:
    from mocap2ctrl.fit.capture import Capture

EPILOG = """examples:
  mocap2ctrl export-mjcf captures/walk
  mocap2ctrl export-mjcf captures/walk -o walk.xml --fps 120
"""
DEFAULT_NAME = "mujoco.xml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument("capture", metavar="CAPTURE", help="a folder that mocap2ctrl fit has written")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.xml",
        help=f"the model; its motion as arrays goes to FILE.npz (default: CAPTURE/{DEFAULT_NAME})",
    )
    parser.add_argument(
        "--fps",
        type=number(1.0, 1000.0),
        help="keyframes a second, a divisor of the simulation's rate (default: the fit's)",
    )
    parser.add_argument("--seconds", type=number(0.01, 3600.0), help="how long (default: the clip)")
    parser.add_argument("--engine", help="simulate in this engine instead of the one it was fitted in")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Simulates controller.json, and writes model and motion."""
    from mocap2ctrl import api
    from mocap2ctrl.evaluation.replay import replay
    from mocap2ctrl.files import write_arrays, write_text
    from mocap2ctrl.fit.capture import make_folder
    from mocap2ctrl.simulation.mjcf_keys import key_arrays, keys_of, mjcf_with_keys

    capture = api.load(options.capture)
    model, motion = _places(options, capture)
    engine, controller = api.engine_for(capture, options.engine), capture.finished_controller()
    fps = options.fps or capture.config.fps
    stride = _stride(fps, 1.0 / engine.time_step_s)
    seconds = options.seconds or capture.reference.duration_s
    run_ = replay(engine, controller, seconds, fps=1.0 / engine.time_step_s)
    if run_.diverged:
        note(f"note: the simulation diverged; the motion ends at {run_.clip.duration_s:.2f} s")
    keys = keys_of(run_.clip, controller.start, stride)
    about = (
        f"{capture.folder.name}, simulated in {engine.name} from its controller; "
        f"metres, kilograms, seconds, radians; quaternions wxyz; key frame_N is at N / {fps:g} s"
    )
    make_folder(model.parent)
    write_text(model, mjcf_with_keys(capture.character, keys, engine.time_step_s, about))
    write_arrays(motion, key_arrays(capture.character, keys))
    if options.json:
        print_json(
            {
                "model": str(model),
                "motion": str(motion),
                "keys": len(keys.time_s),
                "fps": fps,
                "seconds": float(keys.time_s[-1]),
                "diverged": run_.diverged,
            }
        )
        return 0
    print(f"wrote {model}: the character, {len(keys.time_s)} keyframes at {fps:g} a second")
    print(f"wrote {motion}: time, qpos, qvel")
    return 0


def _places(options: argparse.Namespace, capture: Capture) -> tuple[Path, Path]:
    """Where model and motion go.

    Raises:
        CaptureError: they cannot, or something is there.
    """
    from mocap2ctrl.errors import CaptureError
    from mocap2ctrl.fit.capture import check_place, holds_capture

    model = Path(options.output) if options.output else capture.folder / DEFAULT_NAME
    motion = model.with_suffix(".npz")
    if model.suffix != ".xml":
        raise CaptureError(f"{model}: is no name of an MJCF file; give -o a name that ends in .xml")
    check_place(model.parent)
    for path in (model, motion):
        if path.is_dir():
            raise CaptureError(f"{path}: is a folder; choose another -o")
        if (
            path.exists()
            and path.name != Path(DEFAULT_NAME).with_suffix(path.suffix).name
            and holds_capture(path.parent)
        ):
            raise CaptureError(f"{path}: belongs to a capture; choose another -o")
        if path.exists() and not options.overwrite:
            raise CaptureError(f"{path}: is there already; use --overwrite, or another -o")
    return model, motion


def _stride(fps: float, rate: float) -> int:
    """Steps between keyframes.

    Raises:
        ConfigError: not a whole number of them.
    """
    from mocap2ctrl.errors import ConfigError

    stride = round(rate / fps)
    if stride < 1 or abs(stride * fps - rate) > 1e-6 * rate:
        raise ConfigError(f"--fps {fps:g}: allowed is a divisor of the simulation's rate, {rate:g} steps a second")
    return stride
