"""From a motion file, or a capture, to the formats of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mocap2ctrl.character.model import HEIGHT_RANGE_M, Character, load_character
from mocap2ctrl.errors import ConfigError, past_the_end, reversed_range
from mocap2ctrl.evaluation.export import check_outputs, export_motion, performed
from mocap2ctrl.evaluation.replay import replay
from mocap2ctrl.fit.capture import Capture, holds_capture, load_capture
from mocap2ctrl.fit.inputs import MOTION_OPTIONS, is_video_input
from mocap2ctrl.motion import clips
from mocap2ctrl.motion.kinds import KINDS_TEXT, MOTION_SUFFIXES
from mocap2ctrl.motion.load import ends_standing, load_motion
from mocap2ctrl.motion.npz import read_body_and_motion
from mocap2ctrl.motion.stated import NOTHING_STATED, Stated
from mocap2ctrl.simulation.choose import make_engine
from mocap2ctrl.types import MotionClip


@dataclass(frozen=True, eq=False)
class Converted:
    """A motion as it was written.

    Attributes:
        files: the outputs.
        clip: the motion in them.
        character: whose it is.
        kind: what it was made from: `simulation` or `reference` of a capture, `npz`, or the format of a motion file.
        warnings: what a user should know.
    """

    files: tuple[Path, ...]
    clip: MotionClip
    character: Character
    kind: str
    warnings: tuple[str, ...]


def convert(
    source: Path | str,
    outputs: Path | str | Sequence[Path | str],
    *,
    reference: bool = False,
    height_m: float | None = None,
    time_range: tuple[float, float] | None = None,
    fps: float | None = None,
    cycles: int = 1,
    mirror: bool = False,
    stated: Stated = NOTHING_STATED,
    overwrite: bool = False,
) -> Converted:
    """Writes a motion for other programs: .bvh, .glb, .npz, .csv, or .xml for MuJoCo.

    Args:
        source: a motion file of any kind that `load_motion` reads, a motion `.npz`, or a capture's folder.
        outputs: one name or several; the suffix says the format.
        reference: of a capture, the motion that its controller was fitted to, instead of what the controller does.
        height_m: of the body; a motion file is retargeted to it, another motion is scaled with its body.
        time_range: seconds of the motion to use, on the clock of the file or video that it came from.
        fps: frames a second; the input's own if not given. A loop gets the nearest rate that divides its period evenly, which
            a warning tells.
        cycles: how often a loop is repeated.
        mirror: exchange left and right.
        stated: what is said of a motion file because it does not say it, or not truly; its `fps` is `fps` if not given.
        overwrite: replace files that are there.

    Raises:
        Mocap2CtrlError: the source, an option or an output cannot be used; says why, and nothing is written.
    """
    files = check_outputs([outputs] if isinstance(outputs, str | Path) else outputs, overwrite=overwrite)
    if any(file.exists() and Path(source).exists() and file.samefile(source) for file in files):
        raise ConfigError(f"{source}: is the input; choose another -o")
    if height_m is not None and not HEIGHT_RANGE_M[0] <= height_m <= HEIGHT_RANGE_M[1]:
        low, high = HEIGHT_RANGE_M
        raise ConfigError(f"height is {height_m:g}; allowed are {low} to {high} metres")
    read = _read(Path(source), reference, fps, stated)
    if read is None:
        character = load_character(height_m=height_m)
        stated = stated if stated.fps is not None else replace(stated, fps=fps)
        loaded = load_motion(source, character, time_range=time_range, cycles=cycles, stated=stated)
        clip, kind, warnings = loaded.clip, loaded.kind, loaded.warnings
    else:
        clip, character, kind = read
        warnings = past_the_end(time_range, clip.times_s[-1], 1.0 / clip.fps)
        clip = clip if time_range is None else _part(clip, time_range)
        clip, character = _scaled(clips.repeat(clip, cycles), character, height_m)
    clip = clips.mirror(clip, character) if mirror else clip
    if fps is not None:
        clip = clips.resample(clip, fps)
        warnings = (*warnings, *_rate_warnings(clip, fps))
    clip = replace(clip, ends_standing=ends_standing(clip, character))
    for file in files:
        export_motion(file, clip, character)
    return Converted(files, clip, character, kind, warnings)


def _read(source: Path, reference: bool, fps: float | None, stated: Stated) -> tuple[MotionClip, Character, str] | None:
    """Motion, body and kind of what is on one of our bodies already; None for a motion file that is to be retargeted."""
    if source.is_dir() and holds_capture(source):
        _refuse_stated(stated, f"{source}: is a capture")
        capture = load_capture(source)
        if reference:
            return capture.reference, capture.character, "reference"
        return _simulated(capture, fps), capture.character, "simulation"
    if reference:
        raise ConfigError(f"{source}: is no capture; --reference goes with a folder that mocap2ctrl fit has written")
    if source.suffix.lower() == ".npz":
        _refuse_stated(stated, f"{source}: states unit, axes and joints itself")
        character, clip = read_body_and_motion(source)
        return clip, character, "npz"
    if source.is_dir():
        raise ConfigError(f"{source}: is a folder but no capture; give a motion file ({KINDS_TEXT}), or a capture")
    if is_video_input(source):
        raise ConfigError(
            f"{source}: has the name of a video or masks, which are fitted first: mocap2ctrl fit {source}; a motion file ends in "
            f"{', '.join(sorted(MOTION_SUFFIXES))}"
        )
    return None


def _refuse_stated(stated: Stated, what: str) -> None:
    for name in MOTION_OPTIONS:
        if getattr(stated, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{what}; {flag} goes with other programs' motion files only, leave it out")


def _rate_warnings(clip: MotionClip, fps: float) -> tuple[str, ...]:
    """That a loop is not at the rate that was asked for."""
    if np.isclose(clip.fps, fps, rtol=1e-9):
        return ()
    return (
        f"--fps {fps:g}: a loop keeps its period, a whole number of frames; it is at {clip.fps:.6g} frames a second. "
        "A part of it (--time-range) is no loop, and obeys",
    )


def _simulated(capture: Capture, fps: float | None) -> MotionClip:
    """What the controller does now, for as long as the motion lasts that it was fitted to."""
    engine = make_engine(capture.engine_name, capture.character, torque_scale=capture.torque_scale)
    seconds = capture.reference.duration_s
    run = replay(engine, capture.finished_controller(), seconds + engine.time_step_s, fps=1.0 / engine.time_step_s)
    return performed(capture, run.clip, seconds=seconds, fps=fps)


def _part(clip: MotionClip, time_range: tuple[float, float]) -> MotionClip:
    """What lies between two times on the source's clock."""
    (start_s, end_s), first, last = time_range, clip.times_s[0], clip.times_s[-1]
    if end_s <= start_s:
        raise ConfigError(reversed_range("the motion", start_s, end_s))
    if start_s >= last or end_s <= first:
        raise ConfigError(f"time range {start_s:g} to {end_s:g} s; the motion runs from {first:g} to {last:g} s")
    begin, end = max(start_s, first) - first, min(end_s, last) - first
    return clip.cut(round(begin * clip.fps), round(end * clip.fps) + 1)


def _scaled(clip: MotionClip, character: Character, height_m: float | None) -> tuple[MotionClip, Character]:
    """The motion on a body of the same proportions and another height, steps and all."""
    if height_m is None:
        return clip, character
    factor = height_m / character.height_m
    return replace(clip, root_position=factor * np.asarray(clip.root_position)), character.scaled(height_m)
