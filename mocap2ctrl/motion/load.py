"""`load_motion`: from a file of any supported kind to a clip of the character, with what was inferred on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mocap2ctrl.character.kinematics import centre_of_mass, clip_frames, lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion import clips
from mocap2ctrl.motion.anatomy import Body, knees_bend_backwards
from mocap2ctrl.motion.bvh import parse_bvh
from mocap2ctrl.motion.contacts import FEET, contacts
from mocap2ctrl.motion.cycles import repeatable
from mocap2ctrl.motion.deepmimic import deepmimic_directory, parse_deepmimic
from mocap2ctrl.motion.feet import Feet
from mocap2ctrl.motion.in_place import Belt, on_belt
from mocap2ctrl.motion.joint_errors import joint_errors_cm, limb_error_cm
from mocap2ctrl.motion.names import map_joints, named_joints
from mocap2ctrl.motion.retarget import retarget
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.units import LEG_SHARE, Scale, infer_scale, z_up
from mocap2ctrl.types import Array, MotionClip

TRAVEL_M = 0.5
STILL_M_S = 0.15
STILL_RAD_S = 1.5
STILL_S = 0.1
FLOATING_M = 0.05
MOSTLY = 0.5

SUPPORT_MARGIN_M = 0.05


@dataclass(frozen=True, eq=False)
class LoadedMotion:
    """A motion file as the character performs it.

    Attributes:
        clip: at the file's rate unless another was asked for.
        source_points: (T, E, 3) the source's joints at the character's evaluation points, scaled into our world,
            metres; NaN where it has no such joint.
        kind: `bvh` or `deepmimic`.
        unit: of the file: m, cm, inch, cmu (1/0.45 inch), …
        up: the file's up axis: x, y or z.
        scale: our metres for one file unit.
        travels: the root leaves its place by more than half a metre.
        belt: ground that moves under the body: of a treadmill, or a clip in place; and whether its travel was put back.
        height: of the body in file units, from the length of its legs.
        joints: the file's name of the joint of each part of the body, for example `left knee`.
        joint_errors_cm: mean and 95th percentile of the distance from the source at each joint that it has.
        limb_error_cm: mean distance of wrists, ankles and head from where the source's directions put them on the body's
            own bones; NaN where it has none.
        feet: slide and height while in contact, before and after the feet were planted, and when they stand, in seconds of
            the part that was read.
        warnings: what a user should know.
    """

    clip: MotionClip
    source_points: Array
    kind: str
    unit: str
    up: str
    scale: float
    travels: bool
    belt: Belt
    height: float
    joints: Mapping[str, str]
    joint_errors_cm: Mapping[str, tuple[float, float]]
    limb_error_cm: float
    feet: Feet
    warnings: tuple[str, ...]


def load_motion(
    path: Path | str,
    character: Character,
    *,
    fps: float | None = None,
    time_range: tuple[float, float] | None = None,
    cycles: int = 1,
    belt: str | float | None = None,
) -> LoadedMotion:
    """Reads a motion file and retargets it.

    Args:
        path: a BVH or DeepMimic file, or the bare name of a DeepMimic clip in pybullet_data (`humanoid3d_walk`).
        character: who shall move.
        fps: rate of the clip; the file's own if not given.
        time_range: seconds of the file to use, from its start; all if not given.
        cycles: how often a loop is repeated, or the best cycle of a motion that is none.
        belt: of motions in place: `auto` puts the travel back that feet which slide back tell, a number that speed in m/s;
            by default the motion is left as it is, and a belt is told, which `none` does not look for.

    Raises:
        MotionFileError: the file, the range or the number of cycles cannot be used; says why.
    """
    file = _find(path)
    data = _bytes(file)
    whole = _parse(data, file)
    joints = map_joints(whole, str(file))
    scale = infer_scale(whole, joints, str(file))
    source, warnings = _prepared(whole, time_range, str(file))
    body = Body(source, joints, *z_up(source, scale.up))
    factor = _leg(character) / scale.leg
    body, under = on_belt(body, factor, belt, str(file))
    moved = retarget(body, character, factor)
    points = moved.points
    told = {"belt": str(belt)} if under.put_back else {}
    clip = replace(moved.clip, provenance={**_provenance(file, data, source, scale, time_range), **told})
    if cycles > 1 and not clip.loop:
        clip, points = repeatable(clip, points, character, str(file))
    clip, points = _timed(clip, points, fps, cycles, str(file))
    clip = replace(clip, ends_standing=ends_standing(clip, character))
    reach = np.linalg.norm(clip.root_position[:, :2] - clip.root_position[0, :2], axis=1)
    return LoadedMotion(
        clip=clip,
        source_points=_read_only(points),
        kind=source.format,
        unit=scale.unit,
        up=scale.up,
        scale=factor,
        travels=bool(np.max(reach) > TRAVEL_M),
        belt=under,
        height=scale.leg / LEG_SHARE,
        joints=named_joints(source, joints),
        joint_errors_cm=joint_errors_cm(character, clip, points),
        limb_error_cm=limb_error_cm(character, clip, points),
        feet=moved.feet,
        warnings=(
            *source.warnings,
            *warnings,
            *scale.warnings,
            *_side_warnings(body),
            *under.warnings,
            *_ground_warnings(clip, character),
        ),
    )


def _find(path: Path | str) -> Path:
    file = Path(path)
    if file.is_file():
        return file
    folder = deepmimic_directory()
    if folder is not None and file.name == str(path):
        for name in (file.name, f"{file.name}.txt", f"humanoid3d_{file.name}.txt"):
            if (folder / name).is_file():
                return folder / name
    if file.is_dir():
        raise MotionFileError(f"{path}: is a folder; give a .bvh or a DeepMimic .txt file")
    hint = "" if folder is not None else "; DeepMimic's clips are found by name once pybullet is installed"
    raise MotionFileError(f"{path}: no such file{hint}")


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise MotionFileError(f"{file}: cannot be read ({error.strerror or error})") from error


def _parse(data: bytes, file: Path) -> SourceMotion:
    """Chooses the reader by what the file holds."""
    text = data.decode("utf-8-sig", errors="replace")
    start = text.lstrip()[:20].upper()
    if start.startswith("HIERARCHY"):
        return parse_bvh(text, str(file), file.stem)
    if start.startswith("{"):
        return parse_deepmimic(text, str(file), file.stem)
    if file.suffix.lower() == ".bvh":
        return parse_bvh(text, str(file), file.stem)
    raise MotionFileError(
        f"{file}: not a motion file; allowed are BVH (begins with HIERARCHY) and DeepMimic JSON (begins with '{{')"
    )


def _prepared(
    source: SourceMotion, time_range: tuple[float, float] | None, path: str
) -> tuple[SourceMotion, tuple[str, ...]]:
    """The frames to use, and warnings: the time range, or all but a calibration pose in front."""
    start, stop = (0, len(source)) if time_range is None else _frame_range(source, time_range, path)
    if start == 0 and _starts_with_calibration_pose(source):
        return source.cut(1, max(stop, 2)), (
            "the first frame is a calibration pose (T-pose), far from the second; it was left out",
        )
    return source.cut(start, stop), ()


def _frame_range(source: SourceMotion, time_range: tuple[float, float], path: str) -> tuple[int, int]:
    start_s, end_s = time_range
    length = (len(source) - 1) / source.fps
    if not 0.0 <= start_s < end_s or start_s >= length:
        raise MotionFileError(f"{path}: time range {start_s:g} to {end_s:g} s; the file runs from 0 to {length:g} s")
    return round(start_s * source.fps), round(min(end_s, length) * source.fps) + 1


def _starts_with_calibration_pose(source: SourceMotion) -> bool:
    """The first frame differs from the second far more than any others do."""
    if len(source) < 10:
        return False
    relative = source.positions - source.positions[:, :1]
    size = np.max(np.ptp(relative[0], axis=0))
    jumps = np.max(np.linalg.norm(np.diff(source.positions, axis=0), axis=-1), axis=1)
    return bool(jumps[0] > 0.1 * size and jumps[0] > 5.0 * np.percentile(jumps[1:], 99))


def _leg(character: Character) -> float:
    shank, foot = (character.segments[character.segment_index(name)] for name in ("left_shank", "left_foot"))
    return float(np.linalg.norm(shank.offset) + np.linalg.norm(foot.offset))


def _provenance(
    file: Path, data: bytes, source: SourceMotion, scale: Scale, time_range: tuple[float, float] | None
) -> dict[str, object]:
    return {
        "file": file.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "format": source.format,
        "fps": source.fps,
        "unit": scale.unit,
        "up": scale.up,
        "time_range_s": None if time_range is None else list(time_range),
    }


def _timed(clip: MotionClip, points: Array, fps: float | None, cycles: int, path: str) -> tuple[MotionClip, Array]:
    """The clip and the source's points, repeated and resampled."""
    if fps is not None and not 0.0 < fps < np.inf:
        raise MotionFileError(f"{path}: fps is {fps:g}; it must be a positive number")
    if cycles != 1:
        if cycles < 1 or not clip.loop:
            raise MotionFileError(f"{path}: cycles is {cycles}; only a loop can be repeated, a whole number of times")
        points = _repeat_points(points, clip, cycles)
        clip = clips.repeat(clip, cycles)
    if fps is None:
        return clip, points
    timed = clips.resample(clip, fps)
    position = np.minimum(np.arange(len(timed)) / timed.fps * clip.fps, len(clip) - 1)
    before = np.minimum(position.astype(int), max(len(clip) - 2, 0))
    after = np.minimum(before + 1, len(clip) - 1)
    share = (position - before)[:, None, None]
    return timed, (1.0 - share) * points[before] + share * points[after]


def _repeat_points(points: Array, clip: MotionClip, cycles: int) -> Array:
    turn = clips.cycle_turn(clip)
    start, end = clip.root_position[0], clip.root_position[-1] * np.array([1.0, 1.0, 0.0])
    end[2] = start[2]
    total, origin, parts = rotations.IDENTITY_QUATERNION, start, [points[:1]]
    for _ in range(cycles):
        parts.append(origin + rotations.rotate(total, points[1:] - start))
        origin = origin + rotations.rotate(total, end - start)
        total = rotations.multiply(turn, total)
    return np.concatenate(parts)


def _read_only(points: Array) -> Array:
    points = np.array(points)
    points.setflags(write=False)
    return points


def ends_standing(clip: MotionClip, character: Character) -> bool:
    """The last tenth of a second is slow, and the centre of mass stands above the feet that touch the ground."""
    count = max(2, round(STILL_S * clip.fps) + 1)
    if len(clip) < count:
        return False
    tail = clip.cut(len(clip) - count)
    v = clips.velocities(tail)
    if np.max(np.linalg.norm(v.root, axis=1)) > STILL_M_S or np.max(np.abs(v.joints)) > STILL_RAD_S:
        return False
    touching = contacts(tail, character, height_m=0.04)[-1]
    feet = [i for i in map(character.segment_index, FEET) if touching[i]]
    if not feet:
        return False
    positions, orientations = segment_frames(character, *_last(tail))
    com = centre_of_mass(character, positions, orientations)[:2]
    tips = positions + rotations.rotate(orientations, np.array([s.tip for s in character.segments]))
    support = np.concatenate([positions[feet, :2], tips[feet, :2]])
    low, high = support.min(axis=0) - SUPPORT_MARGIN_M, support.max(axis=0) + SUPPORT_MARGIN_M
    return bool(np.all((com >= low) & (com <= high)))


def _last(clip: MotionClip) -> tuple[Array, Array, Array]:
    return clip.root_position[-1], clip.root_orientation[-1], clip.angles[-1]


def _ground_warnings(clip: MotionClip, character: Character) -> tuple[str, ...]:
    """A body that floats most of the time cannot be simulated as it was captured."""
    positions, orientations = clip_frames(character, clip)
    floating = float(np.mean(np.min(lowest_points(character, positions, orientations), axis=1) > FLOATING_M))
    if floating <= MOSTLY:
        return ()
    return (
        f"in {100 * floating:.0f} % of the frames the body floats more than {100 * FLOATING_M:g} cm above the ground",
    )


def _side_warnings(body: Body) -> tuple[str, ...]:
    if knees_bend_backwards(body):
        return ()
    return ("the knees bend forwards: left and right, or the handedness of the axes, may be exchanged",)
