"""Reads DeepMimic's motion text: JSON with one row of 44 numbers a frame, on a skeleton that the format fixes.

The skeleton is the public `humanoid3d` (also `humanoid.urdf` in pybullet_data, there times four): metres, y up, x
forward, so z points right. Its wrists and toes do not move; the sole is 5 cm below the ankle.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.source import SourceMotion, frame_rate
from mocap2ctrl.types import Array

ROW_LENGTH = 44
MAX_FRAME_S = 0.5
MAX_POSITION_M = 1e4
QUATERNION_LENGTHS = (0.5, 1.5)
"""Public clips hold interpolated quaternions up to 15 % off unit length, to be normalised; worse is refused."""

# name, parent, offset in metres, degrees of freedom (4: quaternion, 1: hinge about z, 0: fixed); in the order of a row.
_SKELETON: tuple[tuple[str, str, tuple[float, float, float], int], ...] = (
    ("root", "", (0.0, 0.0, 0.0), 4),
    ("chest", "root", (0.0, 0.236151, 0.0), 4),
    ("neck", "chest", (0.0, 0.223894, 0.0), 4),
    ("right_hip", "root", (0.0, 0.0, 0.084887), 4),
    ("right_knee", "right_hip", (0.0, -0.421546, 0.0), 1),
    ("right_ankle", "right_knee", (0.0, -0.409870, 0.0), 4),
    ("right_shoulder", "chest", (-0.024050, 0.243500, 0.183110), 4),
    ("right_elbow", "right_shoulder", (0.0, -0.274788, 0.0), 1),
    ("left_hip", "root", (0.0, 0.0, -0.084887), 4),
    ("left_knee", "left_hip", (0.0, -0.421546, 0.0), 1),
    ("left_ankle", "left_knee", (0.0, -0.409870, 0.0), 4),
    ("left_shoulder", "chest", (-0.024050, 0.243500, -0.183110), 4),
    ("left_elbow", "left_shoulder", (0.0, -0.274788, 0.0), 1),
    ("right_wrist", "right_elbow", (0.0, -0.258947, 0.0), 0),
    ("left_wrist", "left_elbow", (0.0, -0.258947, 0.0), 0),
    ("neck:tip", "neck", (0.0, 0.280000, 0.0), 0),
    ("right_ankle:tip", "right_ankle", (0.133500, -0.050000, 0.0), 0),
    ("left_ankle:tip", "left_ankle", (0.133500, -0.050000, 0.0), 0),
)


def deepmimic_directory() -> Path | None:
    """The folder of DeepMimic's clips in the installed pybullet_data, without importing it; None if not installed."""
    spec = find_spec("pybullet_data")
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "data" / "motions"
        if folder.is_dir():
            return folder
    return None


def read_deepmimic(path: Path | str) -> SourceMotion:
    """The motion in a DeepMimic text file.

    Raises:
        MotionFileError: with the file and the cause, for anything else.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise MotionFileError(f"{path}: cannot be read ({error.strerror or error})") from error
    return parse_deepmimic(text, str(path), path.stem)


def parse_deepmimic(text: str, source: str, name: str) -> SourceMotion:
    """The motion in DeepMimic `text`; `source` is named in errors."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:  # plain ValueError: a number of thousands of digits
        where = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise MotionFileError(f"{source}{where}: not valid JSON; a DeepMimic motion is one JSON object") from error
    rows = _rows(data, source)
    loop = str(data.get("Loop", "none")).lower()
    if loop not in ("none", "wrap"):
        raise MotionFileError(f"{source}: Loop is {loop[:20]!r}; allowed are 'none' and 'wrap'")
    rows, fps = _evenly_sampled(rows)
    positions, orientations = _forward_kinematics(rows)
    names = tuple(entry[0] for entry in _SKELETON)
    return SourceMotion(
        name=name,
        joint_names=names,
        parents=tuple(names.index(entry[1]) if entry[1] else -1 for entry in _SKELETON),
        offsets=np.array([entry[2] for entry in _SKELETON]),
        is_tip=tuple(entry[0].endswith(":tip") for entry in _SKELETON),
        positions=positions,
        orientations=orientations,
        fps=fps,
        format="deepmimic",
        loop=loop == "wrap",
        up="y",
        unit_m=1.0,
    )


def _rows(data: Any, source: str) -> Array:
    frames = data.get("Frames") if isinstance(data, dict) else None
    if not isinstance(frames, list) or not frames:
        raise MotionFileError(f"{source}: no list 'Frames'; a DeepMimic motion holds at least one frame")
    for index, row in enumerate(frames):
        if not isinstance(row, list) or len(row) != ROW_LENGTH:
            given = f"{len(row)} numbers" if isinstance(row, list) else type(row).__name__
            raise MotionFileError(
                f"{source}: frame {index} is {given}; the humanoid3d skeleton has {ROW_LENGTH} numbers a frame (clips of "
                "other characters, such as atlas, dog3d or laikago, are on skeletons that are not in the file)"
            )
        if not all(isinstance(value, int | float) and abs(value) <= MAX_POSITION_M for value in row):
            raise MotionFileError(f"{source}: frame {index} holds a value that is not a finite number")
    rows = np.array(frames, dtype=float)
    _check_durations(rows, source)
    _check_quaternions(rows, source)
    return rows


def _check_durations(rows: Array, source: str) -> None:
    durations = rows[:-1, 0]
    bad = np.flatnonzero((durations <= 0.0) | (durations > MAX_FRAME_S))
    if len(bad):
        raise MotionFileError(
            f"{source}: frame {bad[0]} lasts {durations[bad[0]]:g} s; allowed is more than 0, at most {MAX_FRAME_S} s"
        )


def _quaternion_columns() -> list[slice]:
    column, columns = 4, []
    for _, _, _, freedom in _SKELETON:
        if freedom == 4:
            columns.append(slice(column, column + 4))
        column += freedom
    return columns


def _check_quaternions(rows: Array, source: str) -> None:
    for columns in _quaternion_columns():
        length = np.linalg.norm(rows[:, columns], axis=1)
        bad = np.flatnonzero((length < QUATERNION_LENGTHS[0]) | (length > QUATERNION_LENGTHS[1]))
        if len(bad):
            raise MotionFileError(
                f"{source}: frame {bad[0]}, numbers {columns.start + 1} to {columns.stop}: a quaternion of length "
                f"{length[bad[0]]:.3g}; it must be 1"
            )


def _evenly_sampled(rows: Array) -> tuple[Array, float]:
    """The rows at about their median frame duration, interpolated where durations differ, and the frame rate."""
    durations = rows[:-1, 0] if len(rows) > 1 else np.maximum(rows[:1, 0], 1.0 / 30.0)
    step = float(np.median(durations))
    rows = rows.copy()
    for columns in _quaternion_columns():
        rows[:, columns] = rotations.continuous(rotations.normalise(rows[:, columns]))
    if len(rows) == 1 or np.all(np.abs(durations - step) < 1e-4):
        return rows, frame_rate(step)
    times = np.concatenate([[0.0], np.cumsum(durations)])
    count = max(1, round(times[-1] / step))  # whole steps, so that a loop keeps its period
    wanted = np.linspace(0.0, times[-1], count + 1)
    return np.stack([np.interp(wanted, times, column) for column in rows.T], axis=1), frame_rate(times[-1] / count)


def _forward_kinematics(rows: Array) -> tuple[Array, Array]:
    """World positions (T, N, 3) and orientations (T, N, 4)."""
    names = [entry[0] for entry in _SKELETON]
    positions = np.zeros((len(rows), len(names), 3))
    orientations = np.zeros((len(rows), len(names), 4))
    column = 4
    for index, (_, parent, offset, freedom) in enumerate(_SKELETON):
        if freedom == 4:
            local = rotations.normalise(rows[:, column : column + 4])
        else:
            angle = rows[:, column] if freedom else np.zeros(len(rows))
            local = rotations.about_axis((0.0, 0.0, 1.0), angle)
        column += freedom
        if not parent:
            positions[:, index], orientations[:, index] = rows[:, 1:4], local
            continue
        above = names.index(parent)
        positions[:, index] = positions[:, above] + rotations.rotate(orientations[:, above], offset)
        orientations[:, index] = rotations.multiply(orientations[:, above], local)
    return positions, orientations
