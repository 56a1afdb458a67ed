"""One door to the motion files that other programs read: the name's suffix chooses the writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CaptureError, ConfigError
from mocap2ctrl.evaluation.mjcf import write_motion_mjcf
from mocap2ctrl.files import refuse_existing
from mocap2ctrl.fit.capture import PRIOR, TARGET, Capture, check_place, holds_capture, make_folder
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.motion.csv_writer import write_csv
from mocap2ctrl.motion.glb_writer import write_glb
from mocap2ctrl.motion.npz import write_motion
from mocap2ctrl.types import MotionClip

WRITERS: Mapping[str, Callable[[Path, MotionClip, Character], None]] = {
    ".bvh": write_bvh,
    ".glb": write_glb,
    ".npz": write_motion,
    ".csv": write_csv,
    ".xml": write_motion_mjcf,
}
OWN_FILES = (TARGET, PRIOR, "motion.npz", "motion.bvh")
"""What a capture holds under such suffixes, or would be taken for its own."""


def export_motion(path: Path | str, clip: MotionClip, character: Character) -> None:
    """Writes `clip` to a file, whole or not at all; an existing one is replaced.

    Raises:
        ConfigError: no writer has the name's suffix; CaptureError: its folder cannot be made.
    """
    file = Path(path)
    writer = _writer(file)
    make_folder(file.parent)
    writer(file, clip, character)


def check_outputs(outputs: Sequence[Path | str], *, overwrite: bool, option: str = "-o") -> tuple[Path, ...]:
    """The files to be written, which `option` names, if they can be; nothing is changed.

    Raises:
        ConfigError: none is named, one twice, one of unknown suffix, or one that exists and may not be replaced.
        CaptureError: a folder cannot be made, or the file is a capture's own.
    """
    files = tuple(Path(output) for output in outputs)
    if not files:
        raise ConfigError(f"no output is named; give {option} with a name that ends in {_suffixes()}")
    for file in files:
        _writer(file)
        check_place(file.parent)
        if file.name.lower() in OWN_FILES and holds_capture(file.parent):
            raise CaptureError(f"{file}: belongs to the capture; choose another {option}")
    if len({file.resolve() for file in files}) < len(files):
        raise ConfigError(f"an output is named twice: {', '.join(map(str, files))}; leave one out")
    refuse_existing(*files, overwrite=overwrite, option=option)
    return files


def performed(
    capture: Capture, run: MotionClip, *, seconds: float | None = None, fps: float | None = None
) -> MotionClip:
    """A simulation of a capture's controller as it is written to files: at the input's own rate, on its clock.

    Args:
        capture: whose controller was simulated.
        run: the simulation, from its start.
        seconds: how much of it; all if not given.
        fps: another rate than that of the capture's reference.
    """
    clip = resample(run, capture.reference.fps if fps is None else fps)
    if seconds is not None:
        clip = clip.cut(0, int(np.floor(seconds * clip.fps + 1e-6)) + 1)
    told = {"simulated_from": capture.folder.name, "reference": dict(capture.reference.provenance)}
    return replace(clip, name=capture.reference.name, start_s=capture.reference.start_s, provenance=told)


def _writer(file: Path) -> Callable[[Path, MotionClip, Character], None]:
    writer = WRITERS.get(file.suffix.lower())
    if writer is None:
        raise ConfigError(f"{file}: unknown kind of motion file; allowed are names that end in {_suffixes()}")
    return writer


def _suffixes() -> str:
    *others, last = WRITERS
    return f"{', '.join(others)} or {last} (MuJoCo)"
