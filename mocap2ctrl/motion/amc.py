"""Reads Acclaim motions (AMC, as CMU and HDM05 publish them) on the skeleton of their ASF.

A bone becomes the joint at its start. An AMC holds no rate: 120 frames a second are those of the collections.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.asf import (
    ROTATIONS,
    AcclaimReader,
    AcclaimSkeleton,
    Line,
    fixed_axis_rotation,
    parse_asf,
)
from mocap2ctrl.motion.source import SourceMotion, rest_positions
from mocap2ctrl.types import Array

USUAL_FPS = 120.0
SPANS_M = (0.8, 2.6)
"""The rest pose of a body spans as much; a unit that gives another size is not believed."""
SKELETON_BYTES = 1 << 24


@dataclass
class _Motion:
    """The rows of an AMC: by bone, its values and the frames in which it has them."""

    numbers: list[int] = field(default_factory=list)
    values: dict[str, list[list[float]]] = field(default_factory=dict)
    frames: dict[str, list[int]] = field(default_factory=dict)
    degrees: bool | None = None


def looks_like_amc(head: bytes) -> bool:
    """Whether a file's first bytes are an AMC's: its keywords, or a frame's number and the root."""
    words = [w for line in head.decode("utf-8-sig", "replace").splitlines() for w in line.split("#", 1)[0].split()]
    return bool(words) and (
        words[0].upper() in (":FULLY-SPECIFIED", ":DEGREES", ":RADIANS")
        or (words[0].isdigit() and words[1:2] == ["root"])
    )


def read_amc(text: str, file: Path, skeleton: Path | str | None, fps: float | None) -> SourceMotion:
    """The motion in AMC `text` of `file`.

    Args:
        text: its content.
        file: where it lies; named in errors.
        skeleton: the ASF; found beside the file if not given.
        fps: frames a second; 120 if not given.

    Raises:
        MotionFileError: no skeleton, or either file is damaged, or they do not belong together.
    """
    asf, found = find_skeleton(file, skeleton)
    bones = parse_asf(_asf_text(asf), str(asf))
    motion = parse_amc(text, str(file), bones, name=file.stem, fps=fps)
    if found is None:
        return motion
    return replace(motion, warnings=(f"the skeleton is {asf.name}, {found}", *motion.warnings))


def find_skeleton(file: Path, skeleton: Path | str | None) -> tuple[Path, str | None]:
    """The ASF of an AMC, and how it was found: None if it was given.

    CMU's `01_02.amc` goes with `01.asf`, HDM05's `HDM_bd_walk_001_120.amc` with `HDM_bd.asf`.

    Raises:
        MotionFileError: there is none, or which one is meant cannot be told.
    """
    if skeleton is not None:
        if not Path(skeleton).is_file():
            raise MotionFileError(f"{skeleton}: no such skeleton file; give the .asf of {file.name}")
        return Path(skeleton), None
    try:
        beside = {entry.stem: entry for entry in sorted(file.parent.iterdir()) if entry.suffix.lower() == ".asf"}
    except OSError:  # a folder whose files may be read, but not listed
        beside = {}
    stem = file.stem
    while stem:
        if stem in beside:
            return beside[stem], "by its name"
        stem = stem.rpartition("_")[0]
    if len(beside) == 1:
        return next(iter(beside.values())), "the only .asf beside it"
    names = ", ".join(entry.name for entry in beside.values()) or "none"
    raise MotionFileError(
        f"{file}: an AMC needs its skeleton, and which .asf is meant cannot be told (beside it: {names[:200]}); "
        "give it with --skeleton FILE.asf"
    )


def _asf_text(asf: Path) -> str:
    try:
        with asf.open("rb") as stream:
            data = stream.read(SKELETON_BYTES + 1)
    except OSError as error:
        raise MotionFileError(f"{asf}: cannot be read ({error.strerror or error})") from error
    if len(data) > SKELETON_BYTES:
        raise MotionFileError(f"{asf}: is too large for a skeleton; give the .asf")
    return data.decode("utf-8-sig", errors="replace")


def parse_amc(text: str, source: str, skeleton: AcclaimSkeleton, *, name: str, fps: float | None) -> SourceMotion:
    """The motion in AMC `text` on a skeleton; `source` is named in errors."""
    reader = AcclaimReader(source)
    motion = _read_frames(reader, text, skeleton)
    stride = _stride(reader, motion.numbers)
    rows, warnings = _rows(reader, motion, skeleton)
    degrees = skeleton.degrees if motion.degrees is None else motion.degrees
    positions, orientations = _forward_kinematics(skeleton, rows, degrees)
    offsets = np.array([np.zeros(3), *(skeleton.bones[bone.parent].vector for bone in skeleton.bones[1:])])
    ends = [i for i in range(1, len(skeleton.bones)) if not any(bone.parent == i for bone in skeleton.bones)]
    tips = [positions[:, i] + rotations.rotate(orientations[:, i], skeleton.bones[i].vector) for i in ends]
    if fps is None:
        warnings.append(f"an AMC holds no rate; {USUAL_FPS:g} frames a second were taken (--fps states another)")
    if stride > 1:
        warnings.append(f"every {stride}th frame is there, so the rate is a {stride}th of the recording's")
    whole = SourceMotion(
        name=name,
        joint_names=(*(bone.name for bone in skeleton.bones), *(f"{skeleton.bones[i].name}:tip" for i in ends)),
        parents=(*(bone.parent for bone in skeleton.bones), *ends),
        offsets=np.concatenate([offsets, [skeleton.bones[i].vector for i in ends]]) if ends else offsets,
        is_tip=(False,) * len(skeleton.bones) + (True,) * len(ends),
        positions=np.concatenate([positions, np.stack(tips, axis=1)], axis=1) if ends else positions,
        orientations=np.concatenate([orientations, orientations[:, ends]], axis=1),
        fps=(USUAL_FPS if fps is None else fps) / stride,
        format="amc",
        warnings=tuple(warnings),
    )
    return _with_unit(whole, skeleton.unit_m)


def _read_frames(reader: AcclaimReader, text: str, skeleton: AcclaimSkeleton) -> _Motion:
    motion = _Motion()
    width = {bone.name: len(bone.freedoms) for bone in skeleton.bones}
    for line in reader.lines(text):
        first = line.words[0]
        if first.startswith(":"):
            if first.upper() in (":DEGREES", ":RADIANS"):
                motion.degrees = first.upper() == ":DEGREES"
        elif len(line.words) == 1 and first.isascii() and first.isdigit():
            if len(first) > 9 or (motion.numbers and int(first) <= motion.numbers[-1]):
                raise reader.fail(line.number, f"frame {first[:20]} follows frame {motion.numbers[-1:] or ''}")
            motion.numbers.append(int(first))
        else:
            _read_bone(reader, line, motion, width)
    if not motion.numbers:
        raise MotionFileError(f"{reader.path}: no frames; the file is empty or cut off")
    return motion


def _read_bone(reader: AcclaimReader, line: Line, motion: _Motion, width: dict[str, int]) -> None:
    name, values = line.words[0].lower(), line.words[1:]
    if not motion.numbers:
        raise reader.fail(line.number, "values before the first frame's number")
    if name not in width:
        raise reader.fail(line.number, f"bone {name[:40]!r} is not in the skeleton; is it the .asf of this .amc?")
    if len(values) != width[name]:
        raise reader.fail(line.number, f"{len(values)} values for {name!r}, which has {width[name]} in the skeleton")
    frames = motion.frames.setdefault(name, [])
    if frames and frames[-1] == len(motion.numbers) - 1:
        raise reader.fail(line.number, f"bone {name!r} is given twice in one frame")
    frames.append(len(motion.numbers) - 1)
    motion.values.setdefault(name, []).append(reader.numbers(values, line.number, name))


def _stride(reader: AcclaimReader, numbers: list[int]) -> int:
    """The step of the frame numbers: 1, or more in a file that was thinned out."""
    steps = np.diff(numbers) if len(numbers) > 1 else np.ones(1, int)
    odd = np.flatnonzero(steps != steps[0])
    if len(odd):
        at = int(odd[0])
        raise MotionFileError(
            f"{reader.path}: frame {numbers[at + 1]} follows frame {numbers[at]}; frames are missing, cut the file there"
        )
    return int(steps[0])


def _rows(reader: AcclaimReader, motion: _Motion, skeleton: AcclaimSkeleton) -> tuple[dict[str, Array], list[str]]:
    """(T, values) of every bone that moves; where a frame lacks a bone, it stays as it was; and warnings."""
    count, rows, warnings = len(motion.numbers), {}, []
    for bone in skeleton.bones:
        if not bone.freedoms:
            continue
        frames = motion.frames.get(bone.name, [])
        if bone.name == "root" and len(frames) < count:
            first = next(i for i in range(count) if i not in set(frames))
            raise MotionFileError(f"{reader.path}: frame {motion.numbers[first]} has no root; the file is cut off")
        if not frames:
            rows[bone.name] = np.zeros((count, len(bone.freedoms)))
            warnings.append(f"bone {bone.name!r} does not move in this file; it stays as the skeleton has it")
            continue
        latest = np.maximum(np.searchsorted(frames, np.arange(count), side="right") - 1, 0)
        rows[bone.name] = np.array(motion.values[bone.name])[latest]
        if len(frames) < count:
            warnings.append(f"bone {bone.name!r} is missing in {count - len(frames)} frames; it stays as it was there")
    return rows, warnings


def _forward_kinematics(skeleton: AcclaimSkeleton, rows: dict[str, Array], degrees: bool) -> tuple[Array, Array]:
    """World positions (T, N, 3) of the bones' starts and their orientations (T, N, 4)."""
    count = len(rows["root"])
    positions = np.zeros((count, len(skeleton.bones), 3))
    orientations = np.zeros((count, len(skeleton.bones), 4))
    for index, bone in enumerate(skeleton.bones):
        values = rows.get(bone.name, np.zeros((count, 0)))
        turns = [column for column, freedom in enumerate(bone.freedoms) if freedom in ROTATIONS]
        angles = np.radians(values[:, turns]) if degrees else values[:, turns]
        own = fixed_axis_rotation([bone.freedoms[column] for column in turns], angles)
        local = rotations.multiply(bone.frame, rotations.multiply(own, rotations.conjugate(bone.frame)))
        if bone.parent < 0:
            shifts = [(column, "xyz".index(f[1])) for column, f in enumerate(bone.freedoms) if f not in ROTATIONS]
            positions[:, index] = skeleton.root_position
            for column, axis in shifts:
                positions[:, index, axis] += values[:, column]
            orientations[:, index] = local
        else:
            above = orientations[:, bone.parent]
            start = rotations.rotate(above, skeleton.bones[bone.parent].vector)
            positions[:, index] = positions[:, bone.parent] + start
            orientations[:, index] = rotations.normalise(rotations.multiply(above, local))
    return positions, orientations


def _with_unit(source: SourceMotion, unit_m: float) -> SourceMotion:
    """The unit that the skeleton states, where it makes a body of a person's size; else it is inferred."""
    span = float(np.max(np.ptp(rest_positions(source), axis=0))) * unit_m
    if SPANS_M[0] <= span <= SPANS_M[1]:
        return replace(source, unit_m=unit_m)
    doubt = f"by the skeleton's unit of length the body would span {span:.3g} m; the unit is taken from its height"
    return replace(source, warnings=(*source.warnings, doubt))
