"""Reads the points of C3D files, by the library `c3d`: the only module that imports it."""

from __future__ import annotations

import io
import warnings
from typing import Any

import c3d
import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.marker_track import MarkerTrack
from mocap2ctrl.motion.trc import UNITS_M
from mocap2ctrl.types import Array

FPS_RANGE = (1.0, 10000.0)
BLOCK = 512
PROCESSORS = (84, 85, 86)
"""Intel, DEC, MIPS: the fourth byte of the parameters."""
MAX_POINTS = 5000
MAX_MAGNITUDE = 1e7
WIDTHS_M = (0.03, 0.2)
MARKER_RADIUS_M = 0.007


def looks_like_c3d(head: bytes) -> bool:
    """The first byte counts to the parameters' block, the second is 0x50, and the parameters name the processor.

    The second byte alone is the P of many files, such as PNG.
    """
    if len(head) < 2 or head[1] != 0x50 or head[0] < 2:
        return False
    processor = (head[0] - 1) * BLOCK + 3
    return processor < len(head) and head[processor] in PROCESSORS


def parse_c3d(data: bytes, source: str, name: str) -> MarkerTrack:
    """The points in a C3D file; `source` is named in errors.

    Raises:
        MotionFileError: damaged, or without points.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the library's own; what matters is checked here
            return _track(c3d.Reader(io.BytesIO(data)), len(data), source, name)
    except MotionFileError:
        raise
    except Exception as error:  # the library raises many kinds on damaged files
        raise MotionFileError(f"{source}: not a readable C3D; it is damaged or cut off") from error


def _track(reader: Any, size: int, source: str, name: str) -> MarkerTrack:
    """The points that the library's reader of a file of `size` bytes finds."""
    _check(reader, size, source)
    rows = np.array([points[:, :4] for _, points, _ in reader.read_frames(copy=True)], dtype=float)
    if rows.ndim != 3 or len(rows) == 0:
        raise MotionFileError(f"{source}: no frames; the file is cut off")
    declared, unit = int(reader.frame_count), _text(reader, "POINT:UNITS").lower()
    notes = [f"the header says {declared} frames, but {len(rows)} are there"] if declared != len(rows) else []
    if unit not in UNITS_M:
        notes.append(f"the unit of length is {unit!r}; millimetres were taken")
    points: dict[str, Array] = {}
    for label, place in zip(reader.point_labels, _places(rows, source).transpose(1, 0, 2), strict=False):
        plain = "".join(letter for letter in label if letter.isprintable()).strip()
        if plain:
            points.setdefault(plain, place)  # of a label that is given twice, the first
    return MarkerTrack(
        source,
        name,
        "c3d",
        points,
        fps=float(reader.point_rate),
        unit_m=UNITS_M.get(unit, 0.001),
        up={"+X": "x", "+Y": "y", "+Z": "z"}.get(_text(reader, "POINT:Y_SCREEN").upper()),
        warnings=tuple(notes),
        half_widths_m=_half_widths(reader),
    )


def _check(reader: Any, size: int, source: str) -> None:
    """That the header does not ask for more than the file holds."""
    points, rate = int(reader.point_used), float(reader.point_rate)
    if not 1 <= points <= MAX_POINTS:
        raise MotionFileError(f"{source}: {points} points; a C3D with 1 to {MAX_POINTS} is needed")
    if not FPS_RANGE[0] <= rate <= FPS_RANGE[1]:
        raise MotionFileError(f"{source}: {rate:g} frames a second; allowed is {FPS_RANGE[0]:g} to {FPS_RANGE[1]:g}")
    if points * 8 > size:
        raise MotionFileError(f"{source}: {points} points do not fit into {size} bytes; the file is damaged")


def _text(reader: Any, name: str) -> str:
    """A parameter's text, empty where there is none."""
    parameter = reader.get(name)
    return "" if parameter is None else str(parameter.string_value).strip()


def _half_widths(reader: Any) -> dict[str, float]:
    """Half the widths of knees, ankles and elbows, as Plug-in Gait keeps them in mm, and the radius of a marker: metres."""
    found = {}
    for side in SIDES:
        for part in ("knee", "ankle", "elbow"):
            parameter = reader.get(f"PROCESSING:{side[0]}{part}WIDTH".upper())
            width = 0.0 if parameter is None else 0.001 * float(parameter.float_value)
            if WIDTHS_M[0] < width < WIDTHS_M[1]:
                found[f"{side} {part}"] = 0.5 * width + MARKER_RADIUS_M
    return found


def _places(rows: Array, source: str) -> Array:
    """(T, N, 3) places, NaN where the residual is negative or the point lies at the origin: it was not seen."""
    places = rows[..., :3].copy()
    unseen = (rows[..., 3] < 0.0) | np.all(places == 0.0, axis=-1) | ~np.isfinite(places).all(axis=-1)
    places[unseen] = np.nan
    if np.any(np.abs(places) > MAX_MAGNITUDE):
        raise MotionFileError(f"{source}: a point further than {MAX_MAGNITUDE:g} from the origin; the file is damaged")
    return places
