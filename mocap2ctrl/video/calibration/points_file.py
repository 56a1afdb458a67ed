"""Points files: where a user sees joints, or known places, in frames of a video. TOML, or JSON of the same structure.

[[frame]]                         # as many as there are
time_s = 0.4                      # or frame = 12; for the reader only
left_ankle = [412.0, 820.5]       # pixels of the video as shown, from the upper left; as many joints as can be seen
head = [438.0, 310.0]

[[point]]                         # none, or four and more: places that were measured
pixel = [120.0, 700.0]
world = [0.0, 2.5, 0.0]           # metres, z up, 0 on the ground
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from mocap2ctrl.errors import CameraError
from mocap2ctrl.files import write_text
from mocap2ctrl.types import Array

WHEN = ("time_s", "frame")
LEAST_JOINTS = 6
LEAST_POINTS = 4
FARTHEST_PX = 65536.0


@dataclass(frozen=True, eq=False)
class SeenPoints:
    """What a points file says.

    Attributes:
        when: of each frame, for messages.
        joints: (F, E, 2) pixels of the evaluation points; NaN where one was not given.
        pixels: (M, 2) of known places.
        world: (M, 3) those places, metres.
    """

    when: tuple[str, ...]
    joints: Array
    pixels: Array
    world: Array


def load_points(path: str | Path, names: Sequence[str]) -> SeenPoints:
    """Reads a points file.

    Args:
        path: the file; .json is JSON, anything else TOML.
        names: of the evaluation points, in their order.

    Raises:
        CameraError: it cannot be used; says why.
    """
    data = _parsed(Path(path))
    unknown = sorted(set(data) - {"frame", "point"})
    if unknown:
        raise CameraError(f"{path}: unknown table {unknown[0]!r}; allowed are [[frame]] and [[point]]")
    frames, points = _tables(data, "frame", path), _tables(data, "point", path)
    joints = np.array([_joints(table, names, f"{path}: frame {i + 1}") for i, table in enumerate(frames)])
    known = [_known_place(table, f"{path}: point {i + 1}") for i, table in enumerate(points)]
    if not frames and not points:
        raise CameraError(f"{path}: holds no points; give [[frame]] with joint = [x, y], or [[point]] of known places")
    if points and len(points) < LEAST_POINTS:
        raise CameraError(f"{path}: {len(points)} known places; give none, or {LEAST_POINTS} and more")
    when = tuple(f"{k} {table[k]}" if (k := _when(table)) else f"{i + 1}" for i, table in enumerate(frames))
    return SeenPoints(
        when,
        joints.reshape(-1, len(names), 2),
        np.array([pixel for pixel, _ in known]).reshape(-1, 2),
        np.array([world for _, world in known]).reshape(-1, 3),
    )


def save_joints(path: str | Path, time_s: float, joints: Mapping[str, tuple[float, float]]) -> None:
    """Writes one frame's joints as a file that `load_points` reads.

    Raises:
        OSError: the file cannot be written.
    """
    pixels = {name: [round(x, 1), round(y, 1)] for name, (x, y) in joints.items()}
    write_text(path, tomli_w.dumps({"frame": [{"time_s": round(time_s, 3), **pixels}]}))


def _parsed(file: Path) -> dict[str, Any]:
    try:
        text = file.read_bytes().decode("utf-8-sig")
        data = json.loads(text) if file.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as error:
        raise CameraError(f"{file}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:  # of both parsers, and of text that is not UTF-8
        raise CameraError(f"{file}: is no TOML or JSON file of points ({' '.join(str(error).split())})") from error
    if not isinstance(data, dict):
        raise CameraError(f"{file}: holds a {type(data).__name__}; expected the tables frame and point")
    return data


def _tables(data: Mapping[str, Any], key: str, path: str | Path) -> list[dict[str, Any]]:
    tables = data.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise CameraError(f"{path}: {key} is no list of tables; write [[{key}]] above each")
    return tables


def _when(table: Mapping[str, Any]) -> str | None:
    return next((key for key in WHEN if key in table), None)


def _joints(table: Mapping[str, Any], names: Sequence[str], where: str) -> Array:
    pixels = np.full((len(names), 2), np.nan)
    for name, value in table.items():
        if name in WHEN:
            continue
        if name not in names:
            raise CameraError(f"{where}: no joint {name!r}; allowed are {', '.join(names)}")
        pixels[names.index(name)] = _numbers(value, 2, f"{where}: {name}", "a pixel [x, y]")
    given = int(np.isfinite(pixels[:, 0]).sum())
    if given < LEAST_JOINTS:
        raise CameraError(f"{where}: {given} joints; give {LEAST_JOINTS} or more, ankles and head among them")
    return pixels


def _known_place(table: Mapping[str, Any], where: str) -> tuple[Array, Array]:
    if set(table) != {"pixel", "world"}:
        raise CameraError(f"{where}: has {', '.join(sorted(table)) or 'nothing'}; expected pixel and world")
    pixel = _numbers(table["pixel"], 2, f"{where}: pixel", "[x, y]")
    return pixel, _numbers(table["world"], 3, f"{where}: world", "[x, y, z] in metres, z up")


def _numbers(value: Any, count: int, where: str, meaning: str) -> Array:
    good = isinstance(value, list) and len(value) == count and all(type(v) in (int, float) for v in value)
    array = np.array(value, float) if good else np.full(count, np.nan)
    if not np.all(np.abs(array) <= FARTHEST_PX):
        raise CameraError(f"{where} is {str(value)[:60]}; expected {meaning}")
    return array
