"""From key postures to motions of a character: smooth curves through the keys, and legs that reach where the feet are put."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
from scipy.interpolate import PchipInterpolator

from exercises.movements import MOVEMENTS, Key
from exercises.posture import Arm, Foot, Posture, posture_of
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.inverse_kinematics import PointTargets, reach
from mocap2ctrl.types import Array, MotionClip

FPS = 30.0
VARIANTS = 5
"""Performances of each movement."""

ABDOMEN_SHARE = 0.45
"""Of the trunk's angles; the chest has the rest."""
FOOT_WEIGHT, PELVIS_WEIGHT = 1.0, 0.05
"""Where hips and feet cannot both be where they should, the feet are."""
STAY_ARMS, STAY_LEGS = 10.0, 1e-4
"""m^2 / rad^2: arms and trunk stay as the posture has them; legs only prefer it."""
SWAY_DEG = {"abdomen": 3.0, "chest": 3.0, "head": 7.0, "upper_arm": 6.0, "forearm": 6.0, "hand": 10.0}
PELVIS_SWAY_DEG = 3.0
ITERATIONS = 10


def exercise_clips(character: Character) -> list[MotionClip]:
    """Every movement, `VARIANTS` times; the same ones each time that it is called."""
    clips = []
    for name, movement in MOVEMENTS.items():
        for number in range(VARIANTS):
            rng = np.random.default_rng([zlib.crc32(name.encode()), number])
            clips.append(perform(movement(rng), character, f"{name}_{number + 1}", rng))
    return clips


def perform(keys: list[Key], character: Character, name: str, rng: np.random.Generator | None = None) -> MotionClip:
    """The motion near `keys`: without overshoot, within the joints' limits, facing x, on the ground z = 0.

    Args:
        keys: in the order of their times, the first at 0.
        character: who performs.
        name: of the clip.
        rng: of what nobody says of a posture and nobody holds still: every joint is off by a little, and sways. Without it the
            postures are kept to.
    """
    times = np.array([time for time, _ in keys])
    curve = PchipInterpolator(times, np.array([posture.numbers() for _, posture in keys]))
    posture = posture_of(curve(np.arange(int(times[-1] * FPS) + 1) / FPS))
    count = len(posture.drop)
    sway = {name: _sway(rng, count, PELVIS_SWAY_DEG) for name in ("tip", "list_left", "turn")}
    posture = replace(posture, **{name: getattr(posture, name) + angle for name, angle in sway.items()})
    swayed = np.stack([_sway(rng, count, _sway_deg(hinge)) for hinge in character.hinge_names], axis=1)
    wanted = _preferred(posture, character) + np.radians(swayed)
    angles = np.clip(wanted, character.lower_limits, character.upper_limits)
    position, orientation = _pelvis(posture, character)
    targets = _targets(posture, character, position, orientation)
    stay = np.full(angles.shape, STAY_ARMS)
    stay[:, [_is_leg(hinge) for hinge in character.hinge_names]] = STAY_LEGS
    reached = reach(
        character, (position, orientation, angles), targets, angles, stay_weight=stay, iterations=ITERATIONS
    )
    provenance = {"made": "tools/exercises", "movement": name}
    return MotionClip(name, FPS, *reached, provenance=provenance)


def _sway(rng: np.random.Generator | None, count: int, degrees: float) -> Array:
    """(T,) an offset and two slow waves, together of a standard deviation of `degrees`."""
    if rng is None:
        return np.zeros(count)
    times = np.arange(count) / FPS
    waves = np.array([np.sin(2.0 * np.pi * (rng.uniform(0.2, 1.2) * times + rng.random())) for _ in range(2)])
    sizes = degrees * rng.standard_normal(3) * [0.8, 0.6, 0.6]
    return np.asarray(sizes[0] + sizes[1:] @ waves)


def _sway_deg(hinge: str) -> float:
    return next((degrees for part, degrees in SWAY_DEG.items() if part in hinge), 0.0)


def _is_leg(hinge: str) -> bool:
    return hinge.split(".", maxsplit=1)[0].endswith(("thigh", "shank", "foot"))


def _preferred(posture: Posture, character: Character) -> Array:
    """(T, J) radians; the legs are guesses."""
    degrees: dict[str, Array | float] = {"head.flexion": posture.nod}
    for part, share in (("abdomen", ABDOMEN_SHARE), ("chest", 1.0 - ABDOMEN_SHARE)):
        degrees |= {
            f"{part}.flexion": share * posture.bend,
            f"{part}.lateral_bend": share * -posture.lean,
            f"{part}.rotation": share * posture.twist,
        }
    for side in SIDES:
        degrees |= _arm(side, getattr(posture, f"{side}_arm")) | _leg(side, getattr(posture, f"{side}_foot"), posture)
    columns = [np.broadcast_to(degrees.get(hinge, 0.0), posture.drop.shape) for hinge in character.hinge_names]
    return np.radians(np.stack(columns, axis=1))


def _arm(side: str, arm: Arm) -> dict[str, Array | float]:
    return {
        f"{side}_upper_arm.abduction": arm.aside,
        f"{side}_upper_arm.flexion": arm.forward,
        f"{side}_upper_arm.internal_rotation": arm.inward,
        f"{side}_forearm.flexion": arm.elbow,
        f"{side}_hand.radial_deviation": arm.cocked,
    }


def _leg(side: str, foot: Foot, posture: Posture) -> dict[str, Array | float]:
    """A knee that is bent about as much as hip and foot are near each other."""
    shorter = np.clip(posture.drop + foot.lift, 0.0, 0.4)
    knee = np.degrees(2.0 * np.arccos(np.clip(1.0 - shorter / 0.5, 0.0, 1.0)))
    return {
        f"{side}_thigh.flexion": 0.5 * knee + posture.tip,
        f"{side}_shank.flexion": knee + 5.0,
        f"{side}_foot.dorsiflexion": 0.5 * knee - foot.heel,
        f"{side}_toes.extension": np.where(foot.lift > 0.0, 0.0, foot.heel),
    }


def _pelvis(posture: Posture, character: Character) -> tuple[Array, Array]:
    """(T, 3) and (T, 4): where the hips are wanted."""
    stand = np.asarray(character.zero_pose().root_position)[2]
    position = np.stack([-posture.back, posture.shift, -posture.drop], axis=1) * character.height_m
    position[:, 2] += stand
    tip = rotations.about_axis((0.0, 1.0, 0.0), np.radians(posture.tip))
    lean = rotations.about_axis((-1.0, 0.0, 0.0), np.radians(posture.list_left))
    turn = rotations.yaw(np.radians(posture.turn))
    return position, rotations.multiply(turn, rotations.multiply(tip, lean))


def _targets(posture: Posture, character: Character, position: Array, orientation: Array) -> PointTargets:
    """Three points of the pelvis, and of each foot."""
    corners = 0.1 * np.eye(3)
    segment, local = [0, 0, 0], [corners]
    world = [position[:, None] + rotations.rotate(orientation[:, None], corners)]
    for side, sign in zip(SIDES, (1.0, -1.0) if SIDES[0] == "left" else (-1.0, 1.0), strict=True):
        index = character.segment_index(f"{side}_foot")
        points = _foot_points(character, index)
        hip = np.asarray(character.segments[character.segment_index(f"{side}_thigh")].offset)
        segment += [index] * len(points)
        local.append(points)
        world.append(_placed(points, getattr(posture, f"{side}_foot"), sign, hip, character))
    weight = np.array([PELVIS_WEIGHT] * 3 + [FOOT_WEIGHT] * (len(segment) - 3))
    return PointTargets(np.array(segment), np.concatenate(local), np.concatenate(world, axis=1), weight)


def _foot_points(character: Character, foot: int) -> Array:
    """(3, 3) the ankle and both ends of the ball, in the foot's frame."""
    return np.array([np.zeros(3), *(capsule.end for capsule in character.segments[foot].capsules)])


def _placed(points: Array, foot: Foot, sign: float, hip: Array, character: Character) -> Array:
    """(T, 3, 3) world places of a foot's points: its heel turned up about the ball, which rests where it is put."""
    capsules = character.segments[character.segment_index("left_foot")].capsules
    ball = points[1:].mean(axis=0)
    height = character.height_m
    place = np.stack([foot.ahead * height, hip[1] + sign * foot.aside * height, foot.lift * height], axis=1)
    place += [ball[0], 0.0, capsules[0].radius]
    turn = rotations.yaw(sign * np.radians(foot.out))
    raised = rotations.about_axis((0.0, 1.0, 0.0), np.radians(foot.heel))
    return np.asarray(place[:, None] + rotations.rotate(rotations.multiply(turn, raised)[:, None], points - ball))
