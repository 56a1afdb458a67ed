"""The MOTION of a BVH file: how many frames, how fast, and the numbers; what the header says is held against the rows."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.motion.bvh_hierarchy import MAX_MAGNITUDE
from mocap2ctrl.motion.source import frame_rate
from mocap2ctrl.motion.text import Words
from mocap2ctrl.types import Array

USUAL_FPS = (24.0, 25.0, 30.0, 50.0, 60.0, 90.0, 100.0, 120.0, 240.0)
FPS_RANGE = (4.0, 2000.0)
"""Frame rates that a human motion can plausibly have been sampled at."""

MISCOUNT = 1e-3
"""Share of the rows by which some exporters miscount; one row at least, in a file of ENOUGH_ROWS."""
ENOUGH_ROWS = 10
"""From so many rows on the motion itself tells whether further rows carry it on."""
SEAM = 3.0
"""How much larger than the largest step before it the step to the first surplus row may be."""

MAX_POSES = 20_000_000
"""Frames times joints: an hour at 120 frames a second of 46 joints, about a gigabyte."""

_ENTRY = re.compile(r"(frame\s*time|frames)\s*[:=]?\s*([-+.\d]\S*|$)(?:\s*s(?:ec\w*)?\b)?", re.I)


@dataclass(frozen=True)
class Frames:
    """The numbers of a MOTION.

    Attributes:
        rows: (T, channels) in the file's units and degrees.
        fps: frames a second, NaN where the file's rate cannot be true.
        rate_doubt: why it cannot; empty where it can.
        warnings: what had to be overlooked.
    """

    rows: Array
    fps: float
    rate_doubt: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """Numbers one after another, and the count and the line of each row."""

    values: Array
    counts: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.counts)


def read_frames(words: Words, width: int, joints: int) -> Frames:
    """All that follows the word MOTION, for a skeleton of `width` channels.

    Raises:
        MotionFileError: with file, line and cause.
    """
    header = _read_header(words)
    if width == 0:
        raise words.fail("the skeleton has no channels, so nothing can move")
    header_line = words.line
    table = _read_table(words, joints)
    rows = _shaped(words, table, width, header.frames)
    warnings = _counted(words, rows, table, header.frames, header_line)
    fps, doubt = _rate(header)
    return Frames(rows, fps, doubt, warnings)


@dataclass(frozen=True)
class _Header:
    """What the header says, None for what it does not, and the line of Frame Time, or where it should be."""

    frames: int | None
    frame_time: float | None
    line: int


def _read_header(words: Words) -> _Header:
    """`Frames: N` and `Frame Time: S` in any order, case and spacing; None for what is missing."""
    frames: int | None = None
    frame_time: float | None = None
    place = words.line
    while (word := words.peek()) is not None and word[0].isalpha():
        line = " ".join(words.rest_of_line())
        entries = _ENTRY.findall(line)
        left = _ENTRY.sub("", line).split()
        if not entries or (left and left[0][0].isalpha()):
            raise words.fail("'Frames: <number>' and 'Frame Time: <seconds>' should stand here, then the rows")
        for name, on_line in entries:
            value = on_line or words.word(f"the number of {name!r}")
            if name.lower() == "frames":
                frames = _whole(words, value)
            else:
                frame_time, place = _number(words, value, "Frame Time"), words.line
        words.push(left)
    return _Header(frames, frame_time, place)


def _number(words: Words, word: str, name: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise words.fail(f"{word[:40]!r} where the number of '{name}' should stand here") from None


def _whole(words: Words, word: str) -> int:
    value = _number(words, word, "Frames")
    if not (value.is_integer() and value >= 1):
        raise words.fail(f"Frames is {word[:40]}; it must be a whole number from 1")
    return int(value)


def _rate(header: _Header) -> tuple[float, str]:
    """The rate and, where it cannot be true, why not and what it may have been meant to be."""
    low, high = FPS_RANGE
    frame_time = header.frame_time
    if frame_time is None:
        return np.nan, f"line {header.line}: no Frame Time follows"
    if 1.0 / high <= frame_time <= 1.0 / low:
        return frame_rate(frame_time), ""
    meant = ""
    if frame_time in USUAL_FPS:
        meant = f"; perhaps {frame_time:g} fps were meant"
    elif low <= frame_time <= 1000.0 / low:
        meant = f"; perhaps {frame_time:g} ms were meant, which are {1000.0 / frame_time:.4g} fps"
    return np.nan, (
        f"line {header.line}: Frame Time is {frame_time:g} s; allowed are {1 / high:g} to {1 / low:g} s "
        f"({low:g} to {high:g} fps){meant}"
    )


def _read_table(words: Words, joints: int) -> _Table:
    values, counts, lines = array("d"), array("q"), array("q")
    most = MAX_POSES // joints
    for line in words.lines():
        row = line.split()
        before = len(values)
        try:
            values.extend(map(float, row))
        except ValueError:
            row = _without_comment(words, row)
            del values[before:]
            values.extend(map(float, row))
        if "_" in line:  # which Python, but nobody else, allows in numbers
            raise words.fail(f"{_odd_word(row)[:40]!r} where a number (a channel value) should be")
        counts.append(len(row))
        lines.append(words.line)
        if len(counts) > most:
            raise words.fail(f"more than {most} frames of {joints} joints; cut the file into shorter ones")
    return _checked(words, _Table(np.frombuffer(values), np.array(counts, int), np.array(lines, int)))


def _without_comment(words: Words, row: list[str]) -> list[str]:
    """The numbers in front of a comment.

    Raises:
        MotionFileError: the first word that is no number begins none.
    """
    odd = _odd_word(row)
    if not odd.startswith(("#", "//", ";")):
        raise words.fail(f"{odd[:40]!r} where a number (a channel value) should be")
    return row[: row.index(odd)]


def _odd_word(row: list[str]) -> str:
    for word in row:
        try:
            float(word)
        except ValueError:
            return word
    return next(word for word in row if "_" in word)


def _checked(words: Words, table: _Table) -> _Table:
    """The table, if its numbers are finite and of bounded size."""
    bad = np.flatnonzero(~(np.abs(table.values) <= MAX_MAGNITUDE))
    if len(bad):
        row = int(np.searchsorted(np.cumsum(table.counts), bad[0], side="right"))
        raise words.fail(
            f"'{table.values[bad[0]]:g}' as a channel value; allowed are finite numbers up to {MAX_MAGNITUDE:g}",
            int(table.lines[row]),
        )
    return table


def _shaped(words: Words, table: _Table, width: int, frames: int | None) -> Array:
    """The rows (T, width); frames that share lines, or are broken over several, are told apart by their count."""
    odd = np.flatnonzero(table.counts != width)
    if not len(odd):
        return table.values.reshape(-1, width)
    if frames is not None and len(table) != frames and len(table.values) == frames * width:
        return table.values.reshape(-1, width)
    row = int(odd[0])
    count = int(table.counts[row])
    cause = f"{count} values in this frame; the skeleton has {width} channels"
    if row == len(table) - 1 and count < width:
        cause += "; the file is truncated, copy it again or remove this row"
    elif len(odd) == len(table) > 1 and np.all(table.counts == count):
        cause += ", and so it is in every frame: CHANNELS of some joint are not those that were exported"
    raise words.fail(cause, int(table.lines[row]))


def _counted(words: Words, rows: Array, table: _Table, frames: int | None, header_line: int) -> tuple[str, ...]:
    """Warnings on a header that miscounts, where the rows leave no doubt that it does.

    Raises:
        MotionFileError: rows are missing, or there are some that do not carry on the motion.
    """
    count = len(rows)
    if count == 0:
        raise words.fail("no rows of motion follow", header_line)
    if frames is None:
        return (f"the header does not say Frames; {count} rows follow, and all are used",)
    said = f"the header says Frames: {frames}, but {count} rows follow"
    if count == frames:
        return ()
    if count < frames:
        if count >= ENOUGH_ROWS and frames - count <= max(1, MISCOUNT * frames):
            return (f"{said}; all are used",)
        raise words.fail(
            f"{count} rows of motion, but the header says Frames: {frames}; the file is truncated: copy it again, or write "
            f"Frames: {count} to use what is there"
        )
    if frames >= ENOUGH_ROWS and _carries_on(rows, frames):
        return (f"{said} and carry on the motion; all are used",)
    raise words.fail(
        f"more rows of motion than the header says (Frames: {frames}); correct the header or remove the rows",
        int(table.lines[min(frames, len(table) - 1)]),
    )


def _carries_on(rows: Array, frames: int) -> bool:
    """The step from the last row that was counted to the next is like those before it; angles may jump by whole turns."""
    steps = np.diff(rows[: frames + 1], axis=0)
    steps = np.linalg.norm(np.abs(steps - 360.0 * np.round(steps / 360.0)), axis=1)
    return bool(steps[-1] <= SEAM * np.max(steps[:-1]) + 1e-6)
