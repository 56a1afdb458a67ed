"""Any skeleton's motion as the character's: directions and twists from the source, lengths from the character.

1. Each segment takes its anatomical orientation (`anatomy.py`), and the hinge angles follow, within their limits.
2. The root's path is scaled by leg length, so that a step fits the leg that makes it.
3. Least squares pull the joints to where the source's directions put them on bones of the character's lengths, and the
   ankles to where the source has them, scaled, so that feet stand still where they stood still.
4. The whole clip is shifted onto the ground.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d, maximum_filter1d

from mocap2ctrl.character.kinematics import points_world, segment_frames
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.anatomy import Body, segment_orientations
from mocap2ctrl.motion.clips import facing_x
from mocap2ctrl.motion.feet import Feet, feet_of
from mocap2ctrl.motion.footfalls import footfalls, on_ground
from mocap2ctrl.motion.ground import ground_shift
from mocap2ctrl.motion.hinges import all_hinge_angles
from mocap2ctrl.motion.inverse_kinematics import PointTargets, State, reach
from mocap2ctrl.motion.planting_check import planted_or_left
from mocap2ctrl.motion.soles import turned_to_ground
from mocap2ctrl.motion.toes import bent_toes
from mocap2ctrl.types import Array, Masks, MotionClip

STAY_WEIGHT = 3e-3
"""m^2 / rad^2: a tenth of a radian weighs like half a centimetre at one point."""

FASTEST_RAD_S = 25.0
CALMING_S = 0.08
CALMING_WEIGHT = 0.1
CALMING_ROUNDS = 4

ADULT_M = 1.75
HORIZONTAL = np.array([1.0, 1.0, 0.0])
ANKLE_WEIGHT = 4.0

HEAD_EVALUATION_SHARE = 0.1 / 0.172
"""The head's evaluation point on the way from the neck to the top of the head (humanoid.toml)."""


@dataclass(frozen=True, eq=False)
class Retargeted:
    """A source's motion as the character performs it.

    Attributes:
        clip: facing x above the origin at first.
        points: (T, E, 3) the source's evaluation points in the character's world, metres; NaN where it has no such joint.
        feet: how they stand, before and after they were planted.
        warnings: contacts that could not be planted.
    """

    clip: MotionClip
    points: Array
    feet: Feet
    warnings: tuple[str, ...]


def retarget(body: Body, character: Character, scale: float) -> Retargeted:
    """The character's motion, facing x above the origin at first.

    Args:
        body: the source, z up.
        character: who shall move.
        scale: character's metres a file unit.
    """
    if character.height_m == ADULT_M:
        return _retargeted(body, character, scale)
    # All lengths and speeds in this floor are adults': smaller and taller bodies' motions are those of adults, scaled.
    size = character.height_m / ADULT_M
    adult = _retargeted(body, character.scaled(ADULT_M), scale / size)
    clip = replace(adult.clip, root_position=size * adult.clip.root_position)
    return Retargeted(clip, size * adult.points, adult.feet.scaled(size), adult.warnings)


def _retargeted(body: Body, character: Character, scale: float) -> Retargeted:
    """`retarget` for a character as tall as an adult."""
    fps = body.source.fps
    frames = segment_orientations(body)
    origin, yaw = _pelvis(body)[0] * HORIZONTAL, rotations.yaw(-rotations.heading(frames["pelvis"][0]))
    points = _place(source_points(body, character), origin, scale, yaw)
    orientations = {name: rotations.multiply(yaw, q) for name, q in frames.items()}
    root_world = _place(_pelvis(body), origin, scale, yaw)
    angles = _angles(character, orientations)
    ankles = np.stack([_place(body.at(side, "ankle"), origin, scale, yaw) for side in SIDES], axis=1)
    targets = _targets(character, orientations, root_world, angles, ankles)
    state = reach(character, (root_world, orientations["pelvis"], angles), targets, angles, stay_weight=STAY_WEIGHT)
    state = _calmed(character, state, targets, fps)
    posed = segment_frames(character, *state)
    standing = _standing(body, character, posed, scale)
    shift = ground_shift(character, *posed, standing, fps)
    state = (state[0] + shift, rotations.continuous(state[1]), state[2])
    standing = on_ground(standing, character, posed[0] + shift[:, None], posed[1], fps)
    before = MotionClip(body.source.name, fps, *state, loop=body.source.loop)
    planted, warnings = planted_or_left(before, character, standing)
    angles = bent_toes(character, planted)
    after = replace(before, root_position=planted[0], root_orientation=rotations.continuous(planted[1]), angles=angles)
    feet = feet_of(character, state, planted, standing, fps)
    return Retargeted(*facing_x(after, points + shift[:, None]), feet, warnings)


def _standing(body: Body, character: Character, posed: tuple[Array, Array], scale: float) -> Masks:
    """(T, 2, 2) whether heel and ball of each foot stand, by the source's own joints; `posed` are the body's segments."""
    tracks = []
    for side in SIDES:
        ankle = body.joints.limbs[side, "ankle"]
        end = body.end_of_foot(side)
        toes = posed[0][:, character.segment_index(f"{side}_toes")] if end is None else scale * body.positions[:, end]
        tracks.append(np.stack([scale * body.positions[:, ankle], toes], axis=1))
    return footfalls(np.stack(tracks, axis=1), turned_to_ground(character, *posed), body.source.fps)


def _calmed(character: Character, state: State, targets: PointTargets, fps: float) -> State:
    """Slow down hinges that turn faster than people do: near a singular pose, two may swing against each other."""
    for _ in range(CALMING_ROUNDS):
        angles = state[2]
        fast = np.abs(np.diff(angles, axis=0, prepend=angles[:1])) * fps > FASTEST_RAD_S
        if not np.any(fast):
            break
        size = 2 * max(2, round(CALMING_S * fps)) + 1
        near = maximum_filter1d(fast.astype(float), size, axis=0) > 0.0
        smooth = gaussian_filter1d(angles, max(1.0, 0.5 * CALMING_S * fps), axis=0, mode="nearest")
        rows = np.flatnonzero(np.any(near, axis=1))
        preferred = np.where(near, smooth, angles)[rows]
        stay = np.where(near, CALMING_WEIGHT, STAY_WEIGHT)[rows]
        start = (state[0][rows], state[1][rows], preferred)
        calmer = reach(character, start, targets.at(rows), preferred, stay_weight=stay, iterations=4)
        state = (state[0].copy(), state[1].copy(), state[2].copy())
        for part, values in zip(state, calmer, strict=True):
            part[rows] = values
    return state


def _pelvis(body: Body) -> Array:
    return 0.5 * (body.at("left", "hip") + body.at("right", "hip"))


def _place(points: Array, origin: Array, scale: float, yaw: Array) -> Array:
    return rotations.rotate(yaw, (points - origin) * scale)


def source_points(body: Body, character: Character) -> Array:
    """(T, E, 3) positions, z up in file units, of the source's joints that correspond to the evaluation points."""
    joints = body.joints
    points = np.full((len(body.positions), len(character.evaluation_points), 3), np.nan)
    for index, point in enumerate(character.evaluation_points):
        side, _, part = point.name.partition("_")
        joint = joints.limb(side, part) if side in SIDES else None
        if joint is not None:
            if body.source.joint_names[joint] not in body.source.guessed:
                points[:, index] = body.positions[:, joint]
        elif point.name == "pelvis":
            points[:, index] = _pelvis(body)
        elif point.name == "neck" and joints.neck is not None and "neck" not in body.source.guessed:
            points[:, index] = body.positions[:, joints.neck]
        elif point.name == "head" and joints.head is not None and joints.neck is not None:
            tip = body.top_of_head()
            if tip is not None:
                neck = body.positions[:, joints.neck]
                points[:, index] = neck + HEAD_EVALUATION_SHARE * (body.positions[:, tip] - neck)
    return points


def _angles(character: Character, orientations: dict[str, Array]) -> Array:
    """(T, J) angles that bring each segment to its orientation, zero for segments without one; within the limits."""
    frames = len(orientations["pelvis"])
    columns = [np.zeros((frames, len(segment.hinges))) for segment in character.segments[1:]]
    known, joints = [], []
    for index, segment in enumerate(character.segments[1:]):
        parent = orientations.get(character.segments[segment.parent].name)
        child = orientations.get(segment.name)
        if parent is not None and child is not None:
            known.append(index)
            joints.append((segment.hinges, rotations.multiply(rotations.conjugate(parent), child)))
    for index, angles in zip(known, all_hinge_angles(joints), strict=True):
        columns[index] = angles
    return np.clip(np.concatenate(columns, axis=1), character.lower_limits, character.upper_limits)


def _targets(
    character: Character, orientations: dict[str, Array], root: Array, angles: Array, ankles: Array
) -> PointTargets:
    """Where the joints belong: source directions on the character's bones, from `root` (T, 3); `ankles` (T, 2, 3)."""
    _, posed = segment_frames(character, root, orientations["pelvis"], angles)
    turned = np.stack([orientations.get(s.name, posed[:, i]) for i, s in enumerate(character.segments)], axis=1)
    places = [root]
    for segment in character.segments[1:]:
        parent = segment.parent
        places.append(places[parent] + rotations.rotate(turned[:, parent], segment.offset))
        if segment.name.endswith("_foot"):
            places[-1] = ankles[:, SIDES.index(segment.name.removesuffix("_foot"))]
    segments, local, weight = _reach_points(character)
    world = points_world(np.stack(places, axis=1), turned, segments, local)
    return PointTargets(segments, local, world, weight)


def _reach_points(character: Character) -> tuple[npt.NDArray[np.int64], Array, Array]:
    """Segments (N,), local places (N, 3) and weights (N,) of the points that inverse kinematics moves."""
    segments, local, weight = [], [], []
    for index, segment in enumerate(character.segments):
        part = segment.name.removeprefix("left_").removeprefix("right_")
        segments.append(index)
        local.append(np.zeros(3))
        weight.append(ANKLE_WEIGHT if part == "foot" else 1.0)
        if part in ("hand", "toes", "head"):
            segments.append(index)
            local.append(segment.tip)
            weight.append(0.5)
        if part in ("foot", "head", "chest"):
            segments.append(index)
            mirrored = np.array([1.0, -1.0 if segment.name.startswith("right") else 1.0, 1.0])
            local.append(0.5 * segment.tip + mirrored * segment.marker)
            weight.append(0.5)
    return np.array(segments), np.array(local), np.array(weight)
