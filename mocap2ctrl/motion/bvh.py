"""Reads BVH files: any channel order, rotation-first roots, any white space; refuses what it cannot trust.

Where exporters disagree: position channels *replace* OFFSET; rotation channels are applied in the order listed, each
about an axis of the frame that the one before leaves; End Sites are kept as tips.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.source import SourceMotion, frame_rate
from mocap2ctrl.types import Array

FPS_RANGE = (4.0, 2000.0)
"""Frame rates that a human motion can plausibly have been sampled at."""

SURPLUS_ROWS = 1e-3
"""Rows beyond the header's count that are overlooked, as a share of it: some exporters miscount by one."""

MAX_JOINTS = 2000
MAX_DEPTH = 200
MAX_MAGNITUDE = 1e7
_AXES = {"X": 0, "Y": 1, "Z": 2}
_CONFLICT_MARKERS = ("<<<<<<<", "=======", ">>>>>>>")


@dataclass
class _Joint:
    name: str
    parent: int
    is_tip: bool
    line: int
    offset: list[float] | None = None
    channels: list[str] | None = None


@dataclass
class _Tokens:
    """The file's words with their line numbers; the only reader of the text."""

    path: str
    lines: list[str]
    row: int = 0
    waiting: list[str] = field(default_factory=list)

    def fail(self, cause: str, row: int | None = None) -> MotionFileError:
        return MotionFileError(f"{self.path}, line {self.row if row is None else row}: {cause}")

    def next_line(self) -> list[str] | None:
        while self.row < len(self.lines):
            self.row += 1
            text = self.lines[self.row - 1].strip()
            if text.startswith(_CONFLICT_MARKERS):
                raise self.fail("a version-control conflict marker; resolve the conflict or export the file again")
            if text:
                return text.split()
        return None

    def word(self, expected: str) -> str:
        if not self.waiting:
            line = self.next_line()
            if line is None:
                raise self.fail(f"the file ends where {expected} should follow; it is truncated")
            self.waiting = line
        return self.waiting.pop(0)

    def rest_of_line(self) -> list[str]:
        rest, self.waiting = self.waiting, []
        return rest

    def number(self, expected: str) -> float:
        return self.parse(self.word(expected), expected)

    def parse(self, word: str, expected: str) -> float:
        try:
            value = float(word)
        except ValueError:
            raise self.fail(f"{word[:40]!r} where a number ({expected}) should be") from None
        if not abs(value) <= MAX_MAGNITUDE:
            raise self.fail(f"{word[:40]!r} as {expected}; allowed are finite numbers up to {MAX_MAGNITUDE:g}")
        return value


def read_bvh(path: Path | str) -> SourceMotion:
    """The motion in a BVH file, in the file's unit and axes.

    Raises:
        MotionFileError: with file, line and cause, for anything that is not a complete, consistent BVH file.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise MotionFileError(f"{path}: cannot be read ({error.strerror or error})") from error
    return parse_bvh(text, str(path), path.stem)


def parse_bvh(text: str, source: str, name: str) -> SourceMotion:
    """The motion in BVH `text`; `source` is named in errors."""
    tokens = _Tokens(source, text.splitlines())
    joints = _read_hierarchy(tokens)
    rows, fps, warnings = _read_motion(tokens, sum(len(joint.channels or ()) for joint in joints))
    offsets = np.array([joint.offset for joint in joints], dtype=float)
    positions, orientations = _forward_kinematics(joints, offsets, rows)
    return SourceMotion(
        name=name,
        joint_names=tuple(joint.name for joint in joints),
        parents=tuple(joint.parent for joint in joints),
        offsets=offsets,
        is_tip=tuple(joint.is_tip for joint in joints),
        positions=positions,
        orientations=orientations,
        fps=fps,
        format="bvh",
        warnings=warnings,
    )


def _read_hierarchy(tokens: _Tokens) -> list[_Joint]:
    if tokens.word("HIERARCHY").upper() != "HIERARCHY":
        raise tokens.fail("not a BVH file; it must begin with HIERARCHY")
    joints: list[_Joint] = []
    open_joints: list[int] = []
    while True:
        keyword = tokens.word("ROOT, JOINT, End Site or MOTION")
        upper = keyword.upper()
        if upper in ("ROOT", "JOINT", "END"):
            joints.append(_read_opening(tokens, upper, joints, open_joints))
            open_joints.append(len(joints) - 1)
        elif upper == "OFFSET" and open_joints:
            joints[open_joints[-1]].offset = [tokens.number("OFFSET") for _ in range(3)]
        elif upper == "CHANNELS" and open_joints:
            joints[open_joints[-1]].channels = _read_channels(tokens, joints[open_joints[-1]])
        elif keyword == "}" and open_joints:
            _check_closed(tokens, joints[open_joints.pop()])
        elif upper == "MOTION" and joints and not open_joints:
            return joints
        else:
            raise tokens.fail(
                f"unexpected {keyword[:40]!r}; a joint block or MOTION should follow, with matching braces"
            )


def _read_opening(tokens: _Tokens, keyword: str, joints: list[_Joint], open_joints: list[int]) -> _Joint:
    if (keyword == "ROOT") != (not joints) or (keyword != "ROOT" and not open_joints):
        raise tokens.fail(f"{keyword} is out of place; a file holds one ROOT, and every JOINT lies inside it")
    if len(joints) >= MAX_JOINTS or len(open_joints) >= MAX_DEPTH:
        raise tokens.fail(f"more than {MAX_JOINTS} joints or {MAX_DEPTH} levels; this is not a human skeleton")
    line = tokens.row
    parent = open_joints[-1] if open_joints else -1
    if parent >= 0 and joints[parent].is_tip:
        raise tokens.fail("an End Site must not hold joints")
    words = tokens.rest_of_line()
    brace = "{" in words
    words = words[: words.index("{")] if brace else words
    if not brace and tokens.word("'{'") != "{":
        raise tokens.fail("'{' is missing")
    if keyword == "END":
        return _Joint(f"{joints[parent].name}:tip", parent, True, line, channels=[])
    name = " ".join(words)
    if not name:
        raise tokens.fail("a joint without a name", line)
    if (namesakes := sum(joint.name.split("#")[0] == name for joint in joints)) > 0:
        name = f"{name}#{namesakes + 1}"
    return _Joint(name, parent, False, line)


def _read_channels(tokens: _Tokens, joint: _Joint) -> list[str]:
    word = tokens.word("the number of channels")
    if joint.is_tip or joint.channels is not None:
        raise tokens.fail(f"CHANNELS of {joint.name!r} is out of place or given twice")
    if word not in ("0", "1", "2", "3", "4", "5", "6"):
        raise tokens.fail(f"{word[:40]!r} channels; allowed are 0 to 6")
    channels = []
    for _ in range(int(word)):
        channel = tokens.word("a channel name")
        if channel[1:].lower() not in ("position", "rotation") or channel[:1].upper() not in _AXES:
            raise tokens.fail(f"channel {channel[:40]!r}; allowed are Xposition … Zrotation")
        channels.append(channel[0].upper() + channel[1:].lower())
    if len(set(channels)) != len(channels):
        raise tokens.fail(f"a channel is listed twice: {channels}")
    return channels


def _check_closed(tokens: _Tokens, joint: _Joint) -> None:
    if joint.offset is None:
        raise tokens.fail(f"joint {joint.name!r} has no OFFSET", joint.line)
    if joint.channels is None:
        raise tokens.fail(f"joint {joint.name!r} has no CHANNELS", joint.line)


def _read_motion(tokens: _Tokens, width: int) -> tuple[Array, float, tuple[str, ...]]:
    """The (T, width) channel values, the frame rate, and warnings."""
    frames = _read_header(tokens, "Frames", ["FRAMES:"])
    if not (frames.is_integer() and frames >= 1):
        raise tokens.fail(f"Frames is {frames:g}; it must be a whole number from 1")
    frame_time = _read_header(tokens, "Frame Time", ["FRAME", "TIME:"])
    low, high = FPS_RANGE
    if not 1.0 / high <= frame_time <= 1.0 / low:
        raise tokens.fail(
            f"Frame Time is {frame_time:g} s; allowed are {1 / high:g} to {1 / low:g} s ({low:g} to {high:g} fps); "
            "correct it to the rate that the motion was recorded at"
        )
    if width == 0:
        raise tokens.fail("the skeleton has no channels, so nothing can move")
    rows = list(_read_rows(tokens, width, int(frames)))
    if len(rows) < frames:
        raise tokens.fail(f"{len(rows)} rows of motion, but the header says Frames: {frames:g}; the file is truncated")
    return np.array(rows), frame_rate(frame_time), _surplus_warning(len(rows), int(frames))


def _surplus_warning(rows: int, frames: int) -> tuple[str, ...]:
    if rows == frames:
        return ()
    return (f"the header says Frames: {frames}, but {rows} rows follow; all are used",)


def _read_header(tokens: _Tokens, name: str, words: list[str]) -> float:
    line = [word for word in (tokens.next_line() or []) for word in word.replace(":", ": ").split()]
    if [word.upper() for word in line[:-1]] != words:
        raise tokens.fail(f"'{name}: <number>' should stand here")
    return tokens.parse(line[-1], name)


def _read_rows(tokens: _Tokens, width: int, frames: int) -> Iterator[list[float]]:
    allowed = frames + int(frames * SURPLUS_ROWS)
    count = 0
    while (line := tokens.next_line()) is not None:
        count += 1
        if count > allowed:
            raise tokens.fail(
                f"more rows of motion than the header says (Frames: {frames}); correct the header or remove the rows"
            )
        if len(line) != width:
            raise tokens.fail(f"{len(line)} values in this frame; the skeleton has {width} channels")
        yield [tokens.parse(word, "a channel value") for word in line]


def _forward_kinematics(joints: list[_Joint], offsets: Array, rows: Array) -> tuple[Array, Array]:
    """World positions (T, N, 3) and orientations (T, N, 4)."""
    frames, column = len(rows), 0
    positions = np.zeros((frames, len(joints), 3))
    orientations = np.zeros((frames, len(joints), 4))
    for index, joint in enumerate(joints):
        local_position = np.tile(offsets[index], (frames, 1))
        local_orientation = np.tile(rotations.IDENTITY_QUATERNION, (frames, 1))
        for channel in joint.channels or ():
            axis, values = _AXES[channel[0]], rows[:, column]
            if channel.endswith("position"):
                local_position[:, axis] = values
            else:
                turn = rotations.about_axis(np.eye(3)[axis], np.radians(values))
                local_orientation = rotations.multiply(local_orientation, turn)
            column += 1
        if joint.parent < 0:
            positions[:, index], orientations[:, index] = local_position, local_orientation
        else:
            parent = orientations[:, joint.parent]
            positions[:, index] = positions[:, joint.parent] + rotations.rotate(parent, local_position)
            orientations[:, index] = rotations.normalise(rotations.multiply(parent, local_orientation))
    return positions, orientations
