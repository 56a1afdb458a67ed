"""Exports a capture to MuJoCo: its character as a plain model, and what its controller does as keyframes and arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CaptureError, ConfigError
from mocap2ctrl.evaluation.replay import replay
from mocap2ctrl.files import write_arrays, write_text
from mocap2ctrl.fit.capture import Capture, check_place, holds_capture, make_folder
from mocap2ctrl.simulation.engine import TIME_STEP_S, Engine
from mocap2ctrl.simulation.mjcf_keys import Keys, key_arrays, keys_of, keys_of_motion, mjcf_with_keys
from mocap2ctrl.types import MotionClip

DEFAULT_NAME = "mujoco.xml"
COORDINATES = "metres, kilograms, seconds, radians; quaternions wxyz"


@dataclass(frozen=True, eq=False)
class MjcfExport:
    """What was written.

    Attributes:
        model, motion: the MJCF file, and the arrays beside it.
        keys: the motion.
        fps: keyframes a second.
        diverged: whether the simulation had to be stopped; the motion then ends there.
    """

    model: Path
    motion: Path
    keys: Keys
    fps: float
    diverged: bool


def export_mjcf(
    capture: Capture,
    engine: Engine,
    model: Path | None = None,
    *,
    fps: float | None = None,
    seconds: float | None = None,
    overwrite: bool = False,
) -> MjcfExport:
    """Simulates a capture's controller in `engine`, and writes `model` and, beside it, an .npz of the same name.

    Args:
        capture: with a controller.
        engine: where to simulate.
        model: a name that ends in .xml; `mujoco.xml` in the capture if not given.
        fps: keyframes a second, a divisor of the engine's rate; the rate that the fit looked at if not given.
        seconds: how long; the clip if not given.
        overwrite: replace files that are there.

    Raises:
        CaptureError: there is no controller, or no room for the files.
        ConfigError: `fps` is no divisor of the engine's rate.
    """
    controller = capture.finished_controller()
    model = capture.folder / DEFAULT_NAME if model is None else model
    motion = model.with_suffix(".npz")
    _check_room(model, motion, overwrite)
    rate = 1.0 / engine.time_step_s
    fps = capture.config.fps if fps is None else fps
    stride = _stride(fps, rate)
    run = replay(engine, controller, capture.reference.duration_s if seconds is None else seconds, fps=rate)
    keys = keys_of(run.clip, controller.start, stride)
    about = (
        f"{capture.folder.name}, simulated in {engine.name} from its controller; {COORDINATES}; "
        f"key frame_N is at N / {fps:g} s"
    )
    make_folder(model.parent)
    write_text(model, mjcf_with_keys(capture.character, keys, engine.time_step_s, about))
    write_arrays(motion, key_arrays(capture.character, keys))
    return MjcfExport(model, motion, keys, fps, run.diverged)


def write_motion_mjcf(path: Path | str, clip: MotionClip, character: Character) -> None:
    """Writes any motion, simulated or not, as `character` on its ground with a keyframe a frame; whole or not at all."""
    about = (
        f"{clip.name}: {COORDINATES}; key frame_N is at N / {clip.fps:g} s, its velocities are those of the poses; "
        f"begins {clip.start_s:g} s into its source{'; a loop' if clip.loop else ''}"
    )
    write_text(path, mjcf_with_keys(character, keys_of_motion(clip), TIME_STEP_S, about))


def _check_room(model: Path, motion: Path, overwrite: bool) -> None:
    if model.suffix != ".xml":
        raise CaptureError(f"{model}: is no name of an MJCF file; give -o a name that ends in .xml")
    check_place(model.parent)
    if motion.exists() and not model.exists() and holds_capture(motion.parent):  # captures hold .npz, but no .xml
        raise CaptureError(f"{motion}: belongs to the capture; choose another -o")
    for path in (model, motion):
        if path.is_dir():
            raise CaptureError(f"{path}: is a folder; choose another -o")
        if path.exists() and not overwrite:
            raise CaptureError(f"{path}: is there already; use --overwrite, or another -o")


def _stride(fps: float, rate: float) -> int:
    """Steps between keyframes."""
    stride = round(rate / fps)
    if stride < 1 or abs(stride * fps - rate) > 1e-6 * rate:
        raise ConfigError(f"fps is {fps:g}; allowed is a divisor of the simulation's rate, {rate:g} steps a second")
    return stride
