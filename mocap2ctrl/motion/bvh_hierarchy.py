"""The HIERARCHY of a BVH file: joints, their offsets, and the channels in the order in which a frame lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mocap2ctrl.motion.text import Words

MAX_JOINTS = 2000
MAX_DEPTH = 200
MAX_NAME = 100
MAX_MAGNITUDE = 1e7
MAX_CHANNELS = 6
AXES = {"X": 0, "Y": 1, "Z": 2}
_CHANNEL = re.compile(r"([xyz])[_.]?(pos|rot|scale)(ition|ation)?", re.I)
_KINDS = {"pos": "position", "rot": "rotation", "scale": "scale"}
_WHOLE = re.compile(r"\d{1,3}")
_KEYWORDS = ("ROOT", "JOINT", "END", "OFFSET", "CHANNELS", "MOTION", "{", "}")


@dataclass
class Joint:
    """A joint as it is being read.

    Attributes:
        name: in the file; a tip (End Site) is called `<parent>:tip`.
        parent: index of the parent, -1 for a root.
        is_tip: an End Site.
        line: that it begins in.
        offset: from the parent at rest; None until it was read.
        channels: `Xposition` to `Zrotation`, and `Xscale` to `Zscale`, in order; None until they were read.
    """

    name: str
    parent: int
    is_tip: bool
    line: int
    offset: list[float] | None = None
    channels: list[str] | None = None


@dataclass
class Hierarchy:
    """Joints, parents before children, and sentences on what had to be overlooked."""

    joints: list[Joint] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Numbers in a frame."""
        return sum(len(joint.channels or ()) for joint in self.joints)

    def unique(self, name: str) -> str:
        """The name, numbered if another joint has it: `Hips#2`."""
        self.names[name] = count = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"


def read_hierarchy(words: Words) -> Hierarchy:
    """All up to and including the word MOTION.

    Raises:
        MotionFileError: with file, line and cause.
    """
    if words.word("HIERARCHY").upper() != "HIERARCHY":
        raise words.fail("not a BVH file; it must begin with HIERARCHY")
    tree, open_joints = Hierarchy(), list[int]()
    while True:
        keyword = words.word("ROOT, JOINT, End Site or MOTION")
        upper = keyword.upper()
        if upper in ("ROOT", "JOINT") or upper.startswith("END"):
            tree.joints.append(_read_opening(words, upper, tree, open_joints))
            open_joints.append(len(tree.joints) - 1)
        elif upper == "OFFSET" and open_joints:
            tree.joints[open_joints[-1]].offset = [read_number(words, "OFFSET") for _ in range(3)]
        elif upper == "CHANNELS" and open_joints:
            joint = tree.joints[open_joints[-1]]
            joint.channels = _read_channels(words, joint, tree.warnings)
        elif keyword == "}" and open_joints:
            _close(words, tree.joints[open_joints.pop()])
        elif upper == "MOTION" and tree.joints and not open_joints:
            return tree
        else:
            raise words.fail(
                f"unexpected {keyword[:40]!r}; a joint block or MOTION should follow, with matching braces"
            )


def read_number(words: Words, expected: str) -> float:
    """The next word as a number of bounded size.

    Raises:
        MotionFileError: it is none.
    """
    word = words.word(expected)
    try:
        value = float(word)
    except ValueError:
        raise words.fail(f"{word[:40]!r} where a number ({expected}) should be") from None
    if not abs(value) <= MAX_MAGNITUDE:
        raise words.fail(f"{word[:40]!r} as {expected}; allowed are finite numbers up to {MAX_MAGNITUDE:g}")
    return value


def _read_opening(words: Words, keyword: str, tree: Hierarchy, open_joints: list[int]) -> Joint:
    joints = tree.joints
    if (keyword == "ROOT") != (not open_joints):
        raise words.fail(f"{keyword} is out of place; every JOINT lies inside a ROOT, and no ROOT inside another")
    if len(joints) >= MAX_JOINTS or len(open_joints) >= MAX_DEPTH:
        raise words.fail(f"more than {MAX_JOINTS} joints or {MAX_DEPTH} levels; this is not a human skeleton")
    line = words.line
    parent = open_joints[-1] if open_joints else -1
    if parent >= 0 and joints[parent].is_tip:
        raise words.fail("an End Site must not hold joints")
    rest = words.rest_of_line()
    brace = rest.index("{") if "{" in rest else len(rest)
    name = " ".join(rest[:brace]).strip("\"' ")[:MAX_NAME]
    words.push(rest[brace:])
    if words.word("'{'") != "{":
        raise words.fail("'{' is missing")
    if keyword.startswith("END"):
        return Joint(tree.unique(f"{joints[parent].name}:tip"), parent, True, line)
    return Joint(tree.unique(name or f"joint {len(joints) + 1}"), parent, False, line)


def _read_channels(words: Words, joint: Joint, warnings: list[str]) -> list[str]:
    """The names that follow; their number in the file is often wrong, and the names are what frames are read by."""
    if joint.channels is not None:
        raise words.fail(f"CHANNELS of {joint.name!r} are given twice")
    line, said = words.line, None
    if _WHOLE.fullmatch(words.peek() or ""):
        said = int(words.word("the number of channels"))
    channels: list[str] = []
    while (match := _CHANNEL.fullmatch(words.peek() or "")) is not None:
        words.word("a channel name")
        channels.append(match[1].upper() + _KINDS[match[2].lower()])
    _check_channels(words, joint, said, channels)
    if said not in (None, len(channels)):
        warnings.append(
            f"line {line}: CHANNELS of {joint.name!r} are said to be {said}, but {len(channels)} are named; the names are believed"
        )
    return channels


def _check_channels(words: Words, joint: Joint, said: int | None, channels: list[str]) -> None:
    scales = sum(channel.endswith("scale") for channel in channels)
    if (count := max(said or 0, len(channels))) > MAX_CHANNELS + scales:
        raise words.fail(f"{count} channels; allowed are 0 to {MAX_CHANNELS}")
    word = words.peek() or "}"
    if len(channels) < (said or 1) and not word.upper().startswith(_KEYWORDS):
        raise words.fail(f"channel {word[:40]!r}; allowed are Xposition … Zrotation")
    if said and not channels:
        raise words.fail(f"CHANNELS {said} of {joint.name!r} without names; allowed are Xposition … Zrotation")
    if len(set(channels)) != len(channels):
        raise words.fail(f"a channel is listed twice in {joint.name!r}: {' '.join(channels)}")
    if joint.is_tip and channels:
        raise words.fail(f"the End Site {joint.name!r} has channels; make it a JOINT")


def _close(words: Words, joint: Joint) -> None:
    """A joint without CHANNELS is one that does not move; one without OFFSET is told where it is by its channels."""
    joint.channels = joint.channels or []
    if joint.offset is None:
        if joint.parent >= 0 and sum(channel.endswith("position") for channel in joint.channels) < 3:
            raise words.fail(f"joint {joint.name!r} has no OFFSET", joint.line)
        joint.offset = [0.0, 0.0, 0.0]
