"""Reads BVH files, whatever program wrote them; refuses what cannot be trusted.

Where exporters disagree: position channels *replace* OFFSET; rotation channels are applied in the order listed, each
about an axis of the frame that the one before leaves; End Sites are kept as tips. All skeletons of a file are kept.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.bvh_frames import read_frames
from mocap2ctrl.motion.bvh_hierarchy import AXES, Joint, read_hierarchy
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.text import Words, decoded
from mocap2ctrl.types import Array

MAX_CHARACTERS = 250_000_000
"""What takes two gigabytes to read; half an hour of sixty joints at 120 frames a second."""
_NUMBER_WITH_COMMA = re.compile(r"(?m)^[ \t]*(?:OFFSET\s|Frame\s*Time\b|[-+]?\d)[^\n]*\d,[ \t]?[-+.\d]", re.I)
_NUMBER_WITH_POINT = re.compile(r"\d\.\d")


def read_bvh(path: Path | str) -> SourceMotion:
    """The motion in a BVH file, in the file's unit and axes.

    Raises:
        MotionFileError: with file, line and cause, for anything that is not a complete, consistent BVH file.
    """
    path = Path(path)
    try:
        text = decoded(path.read_bytes())
    except OSError as error:
        raise MotionFileError(f"{path}: cannot be read ({error.strerror or error})") from error
    return parse_bvh(text, str(path), path.stem)


def parse_bvh(text: str, source: str, name: str) -> SourceMotion:
    """The motion in BVH `text`; `source` is named in errors.

    Raises:
        MotionFileError: with file, line and cause, for anything that is not a complete, consistent BVH file.
    """
    if len(text) > MAX_CHARACTERS:
        raise MotionFileError(f"{source}: more than {MAX_CHARACTERS // 10**6} MB; cut the file into shorter ones")
    text, comma = _with_points(text)
    words = Words(text, source)
    hierarchy = read_hierarchy(words)
    joints = hierarchy.joints
    frames = read_frames(words, hierarchy.width, len(joints))
    offsets = np.array([joint.offset for joint in joints], dtype=float)
    collapsed = _collapsed(joints, offsets, frames.rows)
    positions, orientations = _forward_kinematics(joints, offsets, frames.rows, collapsed)
    return SourceMotion(
        name=name,
        joint_names=tuple(joint.name for joint in joints),
        parents=tuple(joint.parent for joint in joints),
        offsets=offsets,
        is_tip=tuple(joint.is_tip for joint in joints),
        positions=positions,
        orientations=orientations,
        fps=frames.fps,
        rate_doubt=frames.rate_doubt,
        format="bvh",
        warnings=(
            *comma,
            *hierarchy.warnings,
            *frames.warnings,
            *_collapse_warning(joints, collapsed),
            *_scale_warning(joints),
        ),
    )


def _with_points(text: str) -> tuple[str, tuple[str, ...]]:
    """Decimal commas, as some countries' systems write them, as points, where there is no point beside them."""
    if "," not in text or not _NUMBER_WITH_COMMA.search(text):
        return text, ()
    if _NUMBER_WITH_POINT.search(text):
        return text.replace(",", " "), ()
    return text.replace(",", "."), ("the numbers are written with decimal commas",)


def _collapsed(joints: list[Joint], offsets: Array, rows: Array) -> set[int]:
    """Joints whose position channels are zero in every frame, though they have an OFFSET: these channels are meant on top of it."""
    found, column = set(), 0
    for index, joint in enumerate(joints):
        count = len(joint.channels or ())
        places = [column + i for i, channel in enumerate(joint.channels or ()) if channel.endswith("position")]
        column += count
        if joint.parent >= 0 and len(places) == 3 and np.any(offsets[index]) and not np.any(rows[:, places]):
            found.add(index)
    return found


def _collapse_warning(joints: list[Joint], collapsed: set[int]) -> tuple[str, ...]:
    if not collapsed:
        return ()
    names = ", ".join(joints[index].name for index in sorted(collapsed)[:3])
    more = f" and {len(collapsed) - 3} more" if len(collapsed) > 3 else ""
    return (f"the position channels of {names}{more} are zero throughout; their OFFSET was taken instead",)


def _scale_warning(joints: list[Joint]) -> tuple[str, ...]:
    scaled = [joint.name for joint in joints if any(channel.endswith("scale") for channel in joint.channels or ())]
    return (f"the scale channels of {', '.join(scaled[:3])} are left out; bones keep their lengths",) if scaled else ()


def _forward_kinematics(joints: list[Joint], offsets: Array, rows: Array, collapsed: set[int]) -> tuple[Array, Array]:
    """World positions (T, N, 3) and orientations (T, N, 4)."""
    frames, column = len(rows), 0
    positions = np.zeros((frames, len(joints), 3))
    orientations = np.zeros((frames, len(joints), 4))
    for index, joint in enumerate(joints):
        local_position = np.tile(offsets[index], (frames, 1))
        local_orientation = np.tile(rotations.IDENTITY_QUATERNION, (frames, 1))
        for channel in joint.channels or ():
            axis, values = AXES[channel[0]], rows[:, column]
            if channel.endswith("position"):
                if index not in collapsed:
                    local_position[:, axis] = values
            elif channel.endswith("rotation"):
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
