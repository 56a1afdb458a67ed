"""Reads TRC files (track row column): Motion Analysis' and OpenSim's text of marker or keypoint positions."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.marker_track import MarkerTrack
from mocap2ctrl.motion.source import frame_rate
from mocap2ctrl.types import Array

UNITS_M = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 0.001, "in": 0.0254, "inch": 0.0254, "ft": 0.3048}
FPS_RANGE = (1.0, 10000.0)
MAX_MARKERS = 2000
MAX_MAGNITUDE = 1e7
RATE_TOLERANCE = 0.02
"""By how much the header's rate may differ from that of the times before it is said."""


def parse_trc(text: str, source: str, name: str) -> MarkerTrack:
    """The points in TRC `text`; `source` is named in errors.

    Raises:
        MotionFileError: with file, line and cause, for anything that is not a complete, consistent TRC.
    """
    lines = text.splitlines()
    head = _header(lines, source)
    labels = _labels(lines, source)
    rows = _rows(lines, source, 2 + 3 * len(labels))
    fps, warnings = _rate(head, rows[:, 1], source)
    declared = head.get("NUMFRAMES", "")
    if declared.isdigit() and int(declared) != len(rows):
        warnings.append(f"the header says NumFrames {declared[:12]}, but {len(rows)} rows follow; all are used")
    points = {label: rows[:, 2 + 3 * i : 5 + 3 * i] for i, label in enumerate(labels)}
    unit = head.get("UNITS", "").lower()
    if unit and unit not in UNITS_M:
        raise MotionFileError(f"{source}, line 3: Units {unit[:20]!r}; allowed are {', '.join(UNITS_M)}")
    return MarkerTrack(source, name, "trc", points, fps, UNITS_M.get(unit), None, tuple(warnings))


def _header(lines: list[str], source: str) -> dict[str, str]:
    """The second and third line: keys, in capitals, and their values."""
    if len(lines) < 6 or not lines[0].lstrip().lower().startswith("pathfiletype"):
        raise MotionFileError(f"{source}: not a complete TRC; five lines of header, then a row a frame, are expected")
    keys, values = lines[1].split(), lines[2].split()
    if len(values) < len(keys):
        raise MotionFileError(f"{source}, line 3: {len(values)} values for the {len(keys)} keys of line 2")
    return {key.upper(): value for key, value in zip(keys, values, strict=False)}


def _labels(lines: list[str], source: str) -> list[str]:
    """The markers' labels, in order; each has three columns."""
    words = [word.strip() for word in lines[3].split("\t")] if "\t" in lines[3] else lines[3].split()
    labels = [word for word in words if word][2:]
    if not labels or len(labels) > MAX_MARKERS:
        raise MotionFileError(f"{source}, line 4: {len(labels)} labels of points; allowed are 1 to {MAX_MARKERS}")
    if len(set(labels)) != len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise MotionFileError(f"{source}, line 4: the label {twice[:40]!r} is given twice; rename one")
    return labels


def _rows(lines: list[str], source: str, width: int) -> Array:
    """(T, width) numbers, NaN where a cell is empty, and where a point is at the origin, which means unseen."""
    rows = []
    for number, line in enumerate(lines[5:], 6):
        if not line.strip():
            continue
        cells = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
        if len(cells) > width and any(cell.strip() for cell in cells[width:]):
            raise MotionFileError(f"{source}, line {number}: {len(cells)} columns; the header names {width}")
        row = [_number(cell, source, number) for cell in cells[:width]]
        if len(row) < 2 or not np.isfinite(row[1]):
            raise MotionFileError(f"{source}, line {number}: a row without frame number and time")
        rows.append(row + [np.nan] * (width - len(row)))
    if not rows:
        raise MotionFileError(f"{source}: no rows of points; the file is cut off")
    table = np.array(rows)
    places = table[:, 2:].reshape(len(table), -1, 3)
    places[np.all(places == 0.0, axis=-1)] = np.nan
    return np.concatenate([table[:, :2], places.reshape(len(table), -1)], axis=1)


def _number(cell: str, source: str, line: int) -> float:
    if not cell.strip():
        return np.nan
    try:
        value = float(cell)
    except ValueError:
        raise MotionFileError(f"{source}, line {line}: {cell.strip()[:40]!r} where a number should be") from None
    if np.isnan(value):
        return np.nan
    if not abs(value) <= MAX_MAGNITUDE:
        raise MotionFileError(
            f"{source}, line {line}: {cell.strip()[:40]!r}; allowed are numbers up to {MAX_MAGNITUDE:g}"
        )
    return value


def _rate(head: dict[str, str], times: Array, source: str) -> tuple[float, list[str]]:
    """Frames a second: of the times where they run evenly, else of the header."""
    try:
        stated = float(head.get("DATARATE", ""))
    except ValueError:
        stated = np.nan
    low, high = FPS_RANGE
    steps = np.diff(times)
    if len(steps) and np.any(steps <= 0.0):
        row = int(np.flatnonzero(steps <= 0.0)[0])
        raise MotionFileError(f"{source}: time {times[row + 1]:g} s follows {times[row]:g} s; rows must go on in time")
    step = float(np.median(steps)) if len(steps) else np.nan
    even = len(steps) > 0 and np.all(np.abs(steps - step) < 0.5 * step)
    rate = frame_rate((times[-1] - times[0]) / len(steps)) if even else stated  # single times are rounded
    if not low <= rate <= high:
        raise MotionFileError(
            f"{source}: neither DataRate ({head.get('DATARATE', 'missing')[:20]}) nor the times tell a rate of "
            f"{low:g} to {high:g} frames a second"
        )
    if even and abs(stated - rate) <= RATE_TOLERANCE * rate:
        return stated, []
    if even:
        return rate, [
            f"by its times the file has {rate:.4g} frames a second, by its header {stated:g}; the times were used"
        ]
    return rate, ["the times are uneven; the rate of the header was used"]
