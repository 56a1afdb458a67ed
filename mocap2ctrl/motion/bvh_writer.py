"""Writes a clip as BVH: the character in T-pose, y up, z forward, x left, centimetres.

The hierarchy's offsets are those of the T-pose, in which all rotations are zero. A joint with three hinges has its three rotation
channels in the hinges' order; with one or two, those and the missing ones at zero. The root has Xposition Yposition Zposition
Yrotation Xrotation Zrotation, and an offset of zero. So any reader that follows the channel order gets the character's motion
back. The format has no place for the time at which a motion begins: files start at time 0.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.character.rest_pose import rest_pose
from mocap2ctrl.files import write_text
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, MotionClip

CENTIMETRES = 100.0
FILE_ORDER = (1, 2, 0)
"""World (x forward, y left, z up) to file (x left, y up, z forward), as glTF has it too: the axes change places."""

ROOT_ORDER = "YXZ"

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
    lines.append(f"Frame Time: {1.0 / clip.fps:.12f}")
    lines += [" ".join(f"{value:.6f}" for value in row) for row in _rows(clip, character)]
    write_text(path, "\n".join(lines) + "\n")


def joint_name(segment: str) -> str:
    """Name of a segment's joint in the file: `LeftForeArm` for `left_forearm`."""
    side, _, part = segment.partition("_")
    if side in SIDES:
        return side.capitalize() + JOINT_NAMES.get(part, part.title().replace("_", ""))
    return JOINT_NAMES.get(segment, segment.title().replace("_", ""))


def _joint_lines(character: Character, index: int, depth: int) -> list[str]:
    """The block of a joint and of those below it; depth first, in the character's order."""
    segment, rest, tab = character.segments[index], rest_pose(character), "  " * depth
    offset = rest.positions[index] - rest.positions[segment.parent] if index else np.zeros(3)
    order = _order(character, index) if index else ROOT_ORDER
    channels = [*([f"{axis}position" for axis in "XYZ"] if not index else ()), *(f"{axis}rotation" for axis in order)]
    lines = [
        f"{tab}{'JOINT' if index else 'ROOT'} {joint_name(segment.name)}",
        f"{tab}{{",
        f"{tab}  OFFSET {_file_vector(offset)}",
        f"{tab}  CHANNELS {len(channels)} {' '.join(channels)}",
    ]
    children = [i for i, other in enumerate(character.segments) if other.parent == index]
    for child in children:
        lines += _joint_lines(character, child, depth + 1)
    if not children:
        tip = rotations.rotate(rest.orientations[index], segment.tip)
        lines += [f"{tab}  End Site", f"{tab}  {{", f"{tab}    OFFSET {_file_vector(tip)}", f"{tab}  }}"]
    return [*lines, f"{tab}}}"]


def _file_vector(vector: Array) -> str:
    return " ".join(f"{CENTIMETRES * vector[axis]:.6f}" for axis in FILE_ORDER)


def _file_axes(character: Character, index: int) -> Array:
    """(H, 3) axes of a segment's hinges in the T-pose, in the file's frame."""
    return np.asarray(rest_pose(character).axes[character.hinge_segment == index][:, FILE_ORDER])


def _order(character: Character, index: int) -> str:
    """Three axes, in the order in which a segment's rotation channels are applied."""
    own = ["XYZ"[int(np.argmax(np.abs(axis)))] for axis in _file_axes(character, index)]
    return "".join(dict.fromkeys([*own, *"XYZ"]))


def _rows(clip: MotionClip, character: Character) -> Array:
    """(T, channels) values: centimetres and degrees."""
    positions, orientations = clip_frames(character, clip)
    columns = [CENTIMETRES * positions[:, 0, FILE_ORDER], _euler_degrees(orientations[:, 0], ROOT_ORDER)]
    for index, segment in enumerate(character.segments[1:], start=1):
        axes = _file_axes(character, index)
        channel = np.argmax(np.abs(axes), axis=-1)
        if len(set(channel)) == len(axes) and np.all(np.max(np.abs(axes), axis=-1) > 1.0 - 1e-9):
            columns.append(_hinge_degrees(clip, character, index))
        else:  # hinges of a character whose axes are no coordinate axes
            turned = _from_rest(character, index, orientations[:, segment.parent], orientations[:, index])
            columns.append(_euler_degrees(turned, _order(character, index)))
    return np.concatenate(columns, axis=1)


def _hinge_degrees(clip: MotionClip, character: Character, index: int) -> Array:
    """(T, 3) a segment's channels where each of its hinges is one: how far they are from rest, as smooth as they move."""
    own, order = character.hinge_segment == index, _order(character, index)
    turned = np.degrees(clip.angles - rest_pose(character).angles)[:, own]
    values = np.zeros((len(clip), 3))
    for axis, angle in zip(_file_axes(character, index), turned.T, strict=True):
        which = int(np.argmax(np.abs(axis)))
        values[:, order.index("XYZ"[which])] = np.sign(axis[which]) * angle
    return values


def _from_rest(character: Character, index: int, parent: Array, own: Array) -> Array:
    """(T, 4) a segment's rotation from its rest in its parent's, from world orientations (T, 4) of both."""
    rest, above = rest_pose(character).orientations, character.segments[index].parent
    local = rotations.multiply(rotations.conjugate(parent), own)
    return rotations.multiply(rest[above], rotations.multiply(local, rotations.conjugate(rest[index])))


def _euler_degrees(orientations: Array, order: str) -> Array:
    """(T, 3) angles of orientations (T, 4) about the file's axes, without jumps where two ways of telling them meet."""
    file = orientations[:, [1 + axis for axis in FILE_ORDER]]
    matrices = Rotation.from_quat(np.concatenate([file, orientations[:, :1]], axis=1))
    with warnings.catch_warnings():  # at a gimbal lock the third angle is free, and zero is as good as any
        warnings.simplefilter("ignore", UserWarning)
        angles = matrices.as_euler(order, degrees=True)
    for t in range(1, len(angles)):
        first, middle, last = angles[t]
        ways = np.array([[first, middle, last], [first + 180.0, 180.0 - middle, last + 180.0]])
        ways -= 360.0 * np.round((ways - angles[t - 1]) / 360.0)
        angles[t] = ways[np.argmin(np.abs(ways - angles[t - 1]).sum(axis=1))]
    return np.asarray(angles)
