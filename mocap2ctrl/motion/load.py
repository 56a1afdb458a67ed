"""`load_motion`: from a file of any supported kind to a clip of the character, with what was inferred on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mocap2ctrl.character.kinematics import centre_of_mass, clip_frames, lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import MotionFileError, past_the_end, reversed_range
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion import clips
from mocap2ctrl.motion.anatomy import Body, knees_bend_backwards
from mocap2ctrl.motion.calibration import calibration_frames
from mocap2ctrl.motion.contacts import FEET, contacts
from mocap2ctrl.motion.cycles import repeatable
from mocap2ctrl.motion.facing import facing, feet_forwards, mirrored
from mocap2ctrl.motion.feet import Feet
from mocap2ctrl.motion.formats import find_motion, parse_motion, read_bytes
from mocap2ctrl.motion.in_place import Belt, on_belt
from mocap2ctrl.motion.joint_errors import joint_errors_cm, limb_error_cm
from mocap2ctrl.motion.joint_map import chosen_joints, joint_map_text
from mocap2ctrl.motion.names import JointMap, map_joints, named_joints
from mocap2ctrl.motion.retarget import retarget
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.stated import NOTHING_STATED, Stated
from mocap2ctrl.motion.trees import carrier, person
from mocap2ctrl.motion.units import LEG_SHARE, Scale, infer_scale, z_up
from mocap2ctrl.types import Array, MotionClip

TRAVEL_M = 0.5
STILL_M_S = 0.15
STILL_RAD_S = 1.5
STILL_S = 0.1
FLOATING_M = 0.05
MOSTLY = 0.5

SUPPORT_MARGIN_M = 0.05
BACKWARDS = -0.5
"""Mean cosine between feet and front below which the front is taken for the back."""


@dataclass(frozen=True, eq=False)
class LoadedMotion:
    """A motion file as the character performs it.

    Attributes:
        clip: at the file's rate unless another was asked for.
        source_points: (T, E, 3) the source's joints at the character's evaluation points, scaled into our world,
            metres; NaN where it has no such joint.
        kind: of file, as in `kinds.KINDS`.
        unit: of the file: m, cm, inch, cmu (1/0.45 inch), …
        unit_m: its metres.
        up: the file's up axis: x, y, z, or a negative one, `-y`.
        scale: our metres for one file unit.
        travels: the root leaves its place by more than half a metre.
        belt: ground that moves under the body: of a treadmill, or a clip in place; and whether its travel was put back.
        height: of the body in file units, from the length of its legs.
        joints: the file's name of the joint, or labels of the markers, of each part of the body, for example `left knee`.
        how: how the joint of each part was found: `map` (given), `name` or `shape` of the skeleton.
        said: which of `unit`, `up` and `rate` were given, the first two also if the file's format states them.
        facing: where the body faces in the first frame, in the file's axes: `+z`, or `+z, 30° towards +x`.
        carrier: the name of the joint that carries the body about: the first from the root outwards that leaves its place.
        joint_map: a joint map of this file to be corrected, as text.
        joint_errors_cm: mean and 95th percentile of the distance from the source at each joint that it has.
        limb_error_cm: mean distance of wrists, ankles and head from where the source's directions put them on the body's
            own bones; NaN where it has none.
        feet: slide and height while in contact, before and after the feet were planted, and when they stand, on the
            clock of the file, as `clip.times_s`.
        warnings: what a user should know.
    """

    clip: MotionClip
    source_points: Array
    kind: str
    unit: str
    unit_m: float
    up: str
    scale: float
    travels: bool
    belt: Belt
    height: float
    joints: Mapping[str, str]
    how: Mapping[str, str]
    said: frozenset[str]
    facing: str
    carrier: str
    joint_map: str
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
    stated: Stated = NOTHING_STATED,
) -> LoadedMotion:
    """Reads a motion file and retargets it.

    Args:
        path: a motion file of any kind in `kinds.KINDS`, or the bare name of a DeepMimic clip in
            pybullet_data (`humanoid3d_walk`).
        character: who shall move.
        fps: rate of the clip; the file's own if not given.
        time_range: seconds of the file to use, from its start; all if not given.
        cycles: how often a loop is repeated, or the best cycle of a motion that is none.
        belt: of motions in place: `auto` puts the travel back that feet which slide back tell, a number that speed in m/s;
            by default the motion is left as it is, and a belt is told, which `none` does not look for.
        stated: what the user says of the file because the file does not.

    Raises:
        ConfigError: what is stated is not allowed.
        MotionFileError: the file, the range or the number of cycles cannot be used; says why.
    """
    joint_map_name = stated.joint_map_name
    stated = stated.checked()
    file = find_motion(path)
    data = read_bytes(file)
    parsed = parse_motion(data, file, stated)
    whole = person(stated.rated(parsed, str(file)), stated.joints)
    given = chosen_joints(whole, stated.joints, joint_map_name)
    joints = map_joints(whole, str(file), given)
    scale = infer_scale(whole, joints, str(file), stated.unit_m, stated.up)
    source, warnings = _prepared(whole, joints, time_range, str(file))
    seen = Body(source, joints, *z_up(source, scale.up))
    body, side_warnings = _right_handed(seen)
    factor = _leg(character) / scale.leg
    unbelted, under = on_belt(body, factor, belt, str(file))
    moved = retarget(unbelted, character, factor)
    points = moved.points
    told = {"belt": str(belt)} if under.put_back else {}
    provenance = {**_provenance(file, data, source, scale, time_range, stated), **told}
    clip = replace(moved.clip, start_s=source.start_s, provenance=provenance)
    told_of_cycle: tuple[str, ...] = ()
    if cycles > 1 and not clip.loop:
        clip, points, told_of_cycle = repeatable(clip, points, character, str(file))
    clip, points = _timed(clip, points, fps, cycles, str(file))
    clip = replace(clip, ends_standing=ends_standing(clip, character))
    named = named_joints(source, joints)
    reach = np.linalg.norm(clip.root_position[:, :2] - clip.root_position[0, :2], axis=1)
    return LoadedMotion(
        clip=clip,
        source_points=_read_only(points),
        kind=source.format,
        unit=scale.unit,
        unit_m=scale.unit_m,
        up=scale.up,
        scale=factor,
        travels=bool(np.max(reach) > TRAVEL_M),
        belt=under,
        height=scale.leg / LEG_SHARE,
        joints={part: source.labels.get(name, name) for part, name in named.items()},
        how={part: joints.how[part] for part in named},
        said=scale.said | ({"rate"} if parsed.rate_doubt else set()),
        facing=facing(body, scale.up, left_handed=body is not seen),
        carrier=source.joint_names[carrier(source, joints.pelvis)],
        joint_map=joint_map_text(source, named, file.name),
        joint_errors_cm=joint_errors_cm(character, clip, points),
        limb_error_cm=limb_error_cm(character, clip, points),
        feet=moved.feet.later(source.start_s),
        warnings=(
            *source.warnings,
            *joints.warnings,
            *warnings,
            *scale.warnings,
            *side_warnings,
            *under.warnings,
            *moved.warnings,
            *told_of_cycle,
            *_ground_warnings(clip, character),
        ),
    )


def _prepared(
    source: SourceMotion, joints: JointMap, time_range: tuple[float, float] | None, path: str
) -> tuple[SourceMotion, tuple[str, ...]]:
    """The frames to use, and warnings: the time range, or all but a calibration pose in front."""
    start, stop = (0, len(source)) if time_range is None else _frame_range(source, time_range, path)
    told = past_the_end(time_range, source.end_s, 1.0 / source.fps)
    pose = calibration_frames(source, joints) if start == 0 else 0
    if pose:
        what = "the first frame is" if pose == 1 else f"the first {pose} frames are"
        left_out = (
            f"{what} a calibration pose (T-pose), far from the next; {'it was' if pose == 1 else 'they were'} left out"
        )
        return source.cut(pose, max(stop, pose + 1)), (*told, left_out)
    return source.cut(start, stop), told


def _frame_range(source: SourceMotion, time_range: tuple[float, float], path: str) -> tuple[int, int]:
    start_s, end_s = time_range
    first, last = source.start_s, source.end_s
    if end_s <= start_s:
        raise MotionFileError(reversed_range(path, start_s, end_s))
    if not 0.0 <= start_s < last or end_s <= first:
        raise MotionFileError(
            f"{path}: time range {start_s:g} to {end_s:g} s; the file runs from {first:g} to {last:g} s"
        )
    start = max(start_s - first, 0.0)
    return round(start * source.fps), round((min(end_s, last) - first) * source.fps) + 1


def _leg(character: Character) -> float:
    shank, foot = (character.segments[character.segment_index(name)] for name in ("left_shank", "left_foot"))
    return float(np.linalg.norm(shank.offset) + np.linalg.norm(foot.offset))


def _provenance(
    file: Path,
    data: bytes,
    source: SourceMotion,
    scale: Scale,
    time_range: tuple[float, float] | None,
    stated: Stated,
) -> dict[str, object]:
    return {
        "file": file.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "format": source.format,
        "fps": source.fps,
        "unit": scale.unit,
        "up": scale.up,
        "time_range_s": None if time_range is None else list(time_range),
        "stated": stated.as_json(),
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
    return timed, clips.values_at(points, clip.fps, np.arange(len(timed)) / timed.fps)


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


def _right_handed(body: Body) -> tuple[Body, tuple[str, ...]]:
    """The body, or its mirror image where only that one's knees bend as knees do; and doubts about its sides."""
    if not knees_bend_backwards(body):
        exchanged = "the knees bend forwards: left and right, or the handedness of the axes, may be exchanged"
        if body.source.format != "bvh":
            return body, (exchanged,)
        return mirrored(body), (f"{exchanged}; the axes were taken for left-handed ones, see docs/motion-files.md",)
    if feet_forwards(body) < BACKWARDS:
        return body, ("the feet point backwards: left and right, or the handedness of the axes, may be exchanged",)
    return body, ()
