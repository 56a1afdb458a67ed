"""Writes a clip as BVH: the character's rest pose, y up, z forward, x left, centimetres.

A joint with three hinges gets its three rotation channels in the hinges' order; with one or two, those and the missing
ones at zero. The root has Xposition Yposition Zposition Yrotation Xrotation Zrotation. So any reader that follows the
channel order gets the character's motion back.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from mocap2ctrl.character.model import Character, Segment
from mocap2ctrl.files import write_text
from mocap2ctrl.types import Array, MotionClip

CENTIMETRES = 100.0
_FILE_AXES = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
"""World (x forward, y left, z up) to file (x left, y up, z forward)."""

# The usual names, so that other programs map them without help.
JOINT_NAMES = {
    "pelvis": "Hips",
    "abdomen": "Spine",
    "chest": "Chest",
    "head": "Neck",
    "upper_arm": "Arm",
    "forearm": "ForeArm",
    "hand": "Hand",
    "thigh": "UpLeg",
    "shank": "Leg",
    "foot": "Foot",
    "toes": "ToeBase",
}


def write_bvh(path: Path | str, clip: MotionClip, character: Character) -> None:
    """Write `clip` to a BVH file, under a temporary name first, so that a reader never sees half a file."""
    lines = ["HIERARCHY", *_joint_lines(character, 0, 0), "MOTION", f"Frames: {len(clip)}"]
    lines.append(f"Frame Time: {1.0 / clip.fps:.9f}")
    lines += [" ".join(f"{value:.6f}" for value in row) for row in _rows(clip, character)]
    write_text(path, "\n".join(lines) + "\n")


def joint_name(segment: str) -> str:
    """Name of a segment's joint in the file: `LeftForeArm` for `left_forearm`."""
    side, _, part = segment.partition("_")
    if side in ("left", "right"):
        return side.capitalize() + JOINT_NAMES.get(part, part.title().replace("_", ""))
    return JOINT_NAMES.get(segment, segment.title().replace("_", ""))


def _joint_lines(character: Character, index: int, depth: int) -> list[str]:
    """The block of a joint and of those below it; depth first, in the character's order."""
    segment, tab = character.segments[index], "  " * depth
    offset = np.zeros(3) if index == 0 else segment.offset
    channels = "Yrotation Xrotation Zrotation" if index == 0 else " ".join(name for name, _ in _channels(segment))
    head = "6 Xposition Yposition Zposition" if index == 0 else "3"
    lines = [
        f"{tab}{'JOINT' if index else 'ROOT'} {joint_name(segment.name)}",
        f"{tab}{{",
        f"{tab}  OFFSET {_file_vector(offset)}",
        f"{tab}  CHANNELS {head} {channels}",
    ]
    children = _children(character, index)
    for child in children:
        lines += _joint_lines(character, child, depth + 1)
    if not children:
        lines += [f"{tab}  End Site", f"{tab}  {{", f"{tab}    OFFSET {_file_vector(segment.tip)}", f"{tab}  }}"]
    return [*lines, f"{tab}}}"]


def _children(character: Character, index: int) -> list[int]:
    return [i for i, segment in enumerate(character.segments) if segment.parent == index]


def _depth_first(character: Character, index: int = 0) -> list[int]:
    return [index, *(i for child in _children(character, index) for i in _depth_first(character, child))]


def _file_vector(vector: Array) -> str:
    return " ".join(f"{value:.6f}" for value in CENTIMETRES * (_FILE_AXES @ vector))


def _channels(segment: Segment) -> list[tuple[str, float]]:
    """Channel names in order, each with the sign of its hinge about the file's axis, 0 where there is no hinge."""
    channels = []
    for hinge in segment.hinges:
        axis = _FILE_AXES @ hinge.axis
        index = int(np.argmax(np.abs(axis)))
        channels.append((f"{'XYZ'[index]}rotation", float(np.sign(axis[index]))))
    used = {name for name, _ in channels}
    return channels + [(f"{a}rotation", 0.0) for a in "XYZ" if f"{a}rotation" not in used]


def _rows(clip: MotionClip, character: Character) -> Array:
    """(T, channels) values: centimetres and degrees."""
    to_file = Rotation.from_matrix(_FILE_AXES)
    root = to_file * Rotation.from_quat(clip.root_orientation[:, [1, 2, 3, 0]]) * to_file.inv()
    euler = np.degrees(np.unwrap(np.radians(root.as_euler("YXZ", degrees=True)), axis=0))
    columns = [CENTIMETRES * clip.root_position @ _FILE_AXES.T, euler]
    degrees = np.degrees(clip.angles)
    for index in _depth_first(character)[1:]:
        segment = character.segments[index]
        first = int(np.flatnonzero(character.hinge_segment == index)[0]) if segment.hinges else 0
        for number, (_, sign) in enumerate(_channels(segment)):
            columns.append(sign * degrees[:, [first + number]] if sign else np.zeros((len(clip), 1)))
    return np.concatenate(columns, axis=1)
