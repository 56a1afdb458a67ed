"""Any skeleton's motion as the character's: directions and twists from the source, lengths from the character.

1. Each segment takes its anatomical orientation (`anatomy.py`), and the hinge angles follow, within their limits.
2. The root's path is scaled by leg length, so that a step fits the leg that makes it.
3. Least squares pull the joints to where the source's directions put them on bones of the character's lengths, and the
   ankles to where the source has them, scaled, so that feet stand still where they stood still.
4. The whole clip is shifted onto the ground.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d, uniform_filter1d

from mocap2ctrl.character.kinematics import lowest_points, points_world, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.anatomy import Body, segment_orientations
from mocap2ctrl.motion.contacts import FEET
from mocap2ctrl.motion.hinges import hinge_angles
from mocap2ctrl.motion.inverse_kinematics import PointTargets, reach
from mocap2ctrl.motion.names import SIDES
from mocap2ctrl.types import Array, MotionClip

STAY_WEIGHT = 3e-3
"""m^2 / rad^2: a tenth of a radian weighs like half a centimetre at one point."""

ANKLE_WEIGHT = 4.0
GROUND_PERCENTILE = 25.0
CONTACT_BAND_M = 0.04
DEEPEST_M = 0.02
"""Penetration that is left alone."""
MIN_ON_FEET = 0.1
LIFT_SMOOTHING_S = 0.1

HEAD_EVALUATION_SHARE = 0.1 / 0.172
"""The head's evaluation point on the way from the neck to the top of the head (humanoid.toml)."""


def retarget(body: Body, character: Character, scale: float) -> tuple[MotionClip, Array]:
    """The character's motion, facing x above the origin at first, and the source's evaluation points in its world.

    Args:
        body: the source, z up.
        character: who shall move.
        scale: character's metres a file unit.

    Returns:
        the clip, and (T, E, 3) metres, NaN where the source has no such joint.
    """
    root, yaw = _scaled_root(body, scale)
    points = _place(source_points(body, character), root, scale, yaw)
    orientations = {name: rotations.multiply(yaw, q) for name, q in segment_orientations(body).items()}
    root_world = _place(_pelvis(body), root, scale, yaw)
    angles = _angles(character, orientations)
    ankles = np.stack([_place(body.at(side, "ankle"), root, scale, yaw) for side in SIDES], axis=1)
    targets = _targets(character, orientations, root_world, angles, ankles)
    state = reach(character, root_world, orientations["pelvis"], angles, targets, STAY_WEIGHT)
    shift = ground_shift(character, *state, body.source.fps)
    clip = MotionClip(
        name=body.source.name,
        fps=body.source.fps,
        root_position=state[0] + shift,
        root_orientation=rotations.continuous(state[1]),
        angles=state[2],
        loop=body.source.loop,
    )
    return clip, points + shift[:, None]


def _pelvis(body: Body) -> Array:
    return 0.5 * (body.at("left", "hip") + body.at("right", "hip"))


def _scaled_root(body: Body, scale: float) -> tuple[Array, Array]:
    """The point (3,) in file units that becomes the origin, and the turn (4,) that makes the first frame face x."""
    start = _pelvis(body)[0] * np.array([1.0, 1.0, 0.0])
    facing = rotations.rotate(segment_orientations(body)["pelvis"][0], np.array([1.0, 0.0, 0.0]))
    if np.hypot(facing[0], facing[1]) < 0.3:
        facing = rotations.rotate(segment_orientations(body)["pelvis"][0], np.array([0.0, 0.0, 1.0]))
    return start, rotations.yaw(-np.arctan2(facing[1], facing[0]))


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
            points[:, index] = body.positions[:, joint]
        elif point.name == "pelvis":
            points[:, index] = _pelvis(body)
        elif point.name == "neck" and joints.neck is not None:
            points[:, index] = body.positions[:, joints.neck]
        elif point.name == "head" and joints.head is not None and joints.neck is not None:
            tip = body.top_of_head()
            if tip is not None:
                neck = body.positions[:, joints.neck]
                points[:, index] = neck + HEAD_EVALUATION_SHARE * (body.positions[:, tip] - neck)
    return points


def _angles(character: Character, orientations: dict[str, Array]) -> Array:
    """(T, J) angles that bring each segment to its orientation, zero for segments without one; within the limits."""
    columns = []
    for segment in character.segments[1:]:
        parent = orientations.get(character.segments[segment.parent].name)
        child = orientations.get(segment.name)
        if parent is None or child is None:
            columns.append(np.zeros((len(orientations["pelvis"]), len(segment.hinges))))
        else:
            relative = rotations.multiply(rotations.conjugate(parent), child)
            columns.append(hinge_angles(segment.hinges, relative))
    return np.clip(np.concatenate(columns, axis=1), character.lower_limits, character.upper_limits)


def _targets(
    character: Character, orientations: dict[str, Array], root: Array, angles: Array, ankles: Array
) -> PointTargets:
    """Where the joints belong: source directions on the character's bones, from `root` (T, 3) on; `ankles` (T, 2, 3) given."""
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
            local.append(0.5 * segment.tip + segment.marker)
            weight.append(0.5)
    return np.array(segments), np.array(local), np.array(weight)


def ground_shift(
    character: Character, root_position: Array, root_orientation: Array, angles: Array, fps: float
) -> Array:
    """(T, 3) the vertical shift that puts the motion on the ground.

    It is one constant, from the frames in which a foot is the lowest part of the body, plus a smooth lift where the body,
    lying or rolling, would sink deeper than `DEEPEST_M` because it is thicker than the source's skeleton.
    """
    positions, orientations = segment_frames(character, root_position, root_orientation, angles)
    heights = lowest_points(character, positions, orientations)
    lowest = np.min(heights, axis=1)
    feet = np.min(heights[:, [character.segment_index(name) for name in FEET]], axis=1)
    on_feet = feet <= lowest + 1e-9
    level = _standing_level(feet[on_feet] if np.mean(on_feet) > MIN_ON_FEET else lowest)
    shift = np.zeros((len(lowest), 3))
    shift[:, 2] = _smooth_lift(level - DEEPEST_M - lowest, fps) - level
    return shift


def _standing_level(lowest: Array) -> float:
    """The height at which the lowest point of the body (T,) rests."""
    floor = np.percentile(lowest, 3.0)
    return float(np.percentile(lowest[lowest <= floor + CONTACT_BAND_M], GROUND_PERCENTILE))


def _smooth_lift(depth: Array, fps: float) -> Array:
    """A smooth curve (T,) that is never below `depth` and never negative."""
    if np.max(depth) <= 0.0:
        return np.zeros(len(depth))
    reach = max(1, round(LIFT_SMOOTHING_S * fps))
    size = 2 * reach + 1
    return np.asarray(uniform_filter1d(maximum_filter1d(np.maximum(depth, 0.0), size), size))
