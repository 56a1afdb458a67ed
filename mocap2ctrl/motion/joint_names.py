"""What joint names say: side and part of the body, in the spelling of many programs."""

from __future__ import annotations

import re

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.motion.source import SourceMotion

LIMB_NAMES: dict[str, tuple[str, ...]] = {
    "hip": ("upleg", "upperleg", "thigh", "thighbend", "femur", "hip", "legupper", "leg"),
    "knee": ("knee", "lowleg", "lowerleg", "shin", "calf", "shank", "tibia", "leglower", "leg"),
    "ankle": ("ankle", "foot", "talus"),
    "toe": ("toebase", "toe", "toes", "ball", "foottoe", "bigtoe", "metatarsal", "metatarsals", "mtp", "foot"),
    "shoulder": (
        *("upperarm", "uparm", "uarm", "arm", "humerus", "armupper", "shldr", "shldrbend", "upperarmbend", "acromial"),
        "shoulder",
    ),
    "elbow": (
        *("elbow", "forearm", "forearmbend", "lowarm", "lowerarm", "farm", "larm", "radius", "ulna", "armlower"),
        "arm",
    ),
    "wrist": ("wrist", "hand"),
}
"""By part: names without side, prefix, blanks, digits and punctuation, most telling first.

Mixamo, MotionBuilder, LaFAN1, Rokoko, Perception Neuron: UpLeg, Leg, Foot, ToeBase, Arm, ForeArm, Hand. Xsens, 100STYLE, Biovision:
Hip, Knee, Ankle, Toe, Shoulder, Elbow, Wrist; so SMPL, Kinect, Second Life and Advanced Skeleton. Biped, Unreal, Character Creator:
Thigh, Calf, Foot, Toe0 or ball, UpperArm, Forearm or lowerarm. Rigify: thigh, shin, foot, toe, upper_arm, forearm. VRM: UpperLeg,
LowerLeg. OptiTrack: UArm, FArm. CMU's ASF, Vicon: femur, tibia, humerus, radius. Poser, DAZ: Shldr, ShldrBend. OpenSim: talus, mtp.
"""

_PARTS_NAMES = frozenset(name for names in LIMB_NAMES.values() for name in names)
_SIDE_WORDS = {"left": "left", "right": "right", "l": "left", "r": "right", "lf": "left", "rt": "right", "lt": "left"}
_SUFFIXES = ("joint", "jnt", "bone", "bn", "jt")
_PREFIXES = frozenset(
    (
        *(
            "mixamorig",
            "bip",
            "biped",
            "valve",
            "def",
            "org",
            "mch",
            "rig",
            "character",
            "skeleton",
            "humanoid",
            "j",
            "b",
            "c",
        ),
        *("m", "f", "n", "avg", "sk", "cc", "base", "sec", "robot", "actor", "solving"),
    )
)
_HELPERS = frozenset(
    (
        *("ik", "ctrl", "pole", "target", "twist", "roll", "nub", "end", "effector", "helper", "aim", "corrective"),
        *("muscle", "in"),
    )
)
"""Words of joints that only help others, and lie beside those that they are named after."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+")


def side_and_name(name: str) -> tuple[str | None, str]:
    """A joint's side (None: midline) and its name in lower-case letters without side, prefix and punctuation."""
    words = _words(name)
    if len(words) == 1:
        return _glued(words[0])
    place = _side_place(words)
    if place is None:
        return None, "".join(_without_suffixes(_without_prefixes(words)))
    side, before, after = _SIDE_WORDS[words[place]], words[:place], words[place + 1 :]
    whole = "".join(_without_prefixes(before) + after)
    if not _HELPERS.isdisjoint(words):
        return side, whole
    for part in ("".join(after), "".join(_without_prefixes(before))):
        if rank(part, _PARTS_NAMES) is not None:
            return side, part
    return (side, whole) if whole else (None, "".join(words))


def rank(name: str, known: tuple[str, ...] | frozenset[str]) -> int | None:
    """How telling a name is among the `known`, 0 the most; None if it is not one of them, with or without `joint` behind it."""
    order = list(known)
    if name in known:
        return order.index(name)
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and (stem := name.removesuffix(suffix)) in known:
            return len(order) + order.index(stem)
    return None


def sided_names(source: SourceMotion, side: str) -> dict[int, str]:
    """The names of a side's joints, without side and prefix, by index."""
    parsed = ((i, side_and_name(name)) for i, name in enumerate(source.joint_names) if not source.is_tip[i])
    return {i: name for i, (on, name) in parsed if on == side}


def midline_names(source: SourceMotion) -> dict[int, str]:
    """The names of the joints that are on neither side, by index."""
    parsed = ((i, side_and_name(name)) for i, name in enumerate(source.joint_names) if not source.is_tip[i])
    return {i: name for i, (on, name) in parsed if on is None}


def _words(name: str) -> list[str]:
    """Lower-case words of a name: `Skeleton_01:LUArm` is l, u, arm."""
    words: list[str] = []
    for word in _WORD.findall(re.split(r"[:|/]", name)[-1]):
        if word in ("LU", "LF", "RU", "RF"):
            words += [word[0].lower(), word[1].lower()]
        else:
            words.append(word.lower())
    return words


def _without_prefixes(words: list[str]) -> list[str]:
    first = next((i for i, word in enumerate(words) if word not in _PREFIXES), len(words))
    return words[first:]


def _without_suffixes(words: list[str]) -> list[str]:
    """Without what says `joint`, or that it is in the middle."""
    count = len(words)
    while count > 1 and words[count - 1] in (*_SUFFIXES, "m", "c"):
        count -= 1
    return words[:count]


def _side_place(words: list[str]) -> int | None:
    for whole in (True, False):
        for place, word in enumerate(words):
            if word in _SIDE_WORDS and (len(word) > 2) == whole:
                return place
    return None


def _glued(word: str) -> tuple[str | None, str]:
    """A side that is written without a gap: `lfemur`, `leftarm`, `handr`."""
    for side in SIDES:
        for mark in (side, side[0]):
            for rest in (word.removeprefix(mark), word.removesuffix(mark)):
                if rest and rest != word and (len(mark) > 1 or rank(rest, _PARTS_NAMES) is not None):
                    return side, rest
    return None, word
