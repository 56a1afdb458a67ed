"""Anatomical frames of a source body: the world orientation that each of the character's segments should take.

A source joint's own axes say little by themselves (exporters choose them freely), but each is fixed in its bone. So the
bone's anatomical axes are found once, in the joint's own frame, from the geometry of the whole motion, and snapped to a
joint axis that is close; then the joint's orientation carries them through time. Limbs take their direction from joint
positions, and their twist from the plane in which knee and elbow bend, or, where the limb is nearly straight, from the
same axis carried by the bone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.rotations import unit
from mocap2ctrl.motion.names import JointMap
from mocap2ctrl.motion.source import SourceMotion, rest_positions
from mocap2ctrl.types import Array

SNAP = np.cos(np.radians(35.0))
STRAIGHT = 0.03
"""Mean sine of the knees' bend, to either side of zero, that straight legs reach by noise and over-extension."""
BEND_FADE = (0.10, 0.40)
"""Bend in radians below which its plane is noise, and above which it alone decides the twist."""

REST_UPRIGHT = 0.985
"""How upright the legs of a rest pose must be for it to say how the foot stands; a cosine."""
PITCH_RANGE = (-0.2, 0.9)

DEFAULT_SOLE_PITCH = np.arctan2(0.027, 0.081)


@dataclass(frozen=True)
class Body:
    """A source motion, z up, with its joints mapped.

    Attributes:
        source, joints: the skeleton.
        positions: (T, N, 3), z up, file units.
        orientations: (T, N, 4), z up.
        to_z_up: (4,) the rotation from the file's axes.
    """

    source: SourceMotion
    joints: JointMap
    positions: Array
    orientations: Array
    to_z_up: Array

    def at(self, side: str, part: str) -> Array:
        """(T, 3) positions of a limb's joint."""
        return np.asarray(self.positions[:, self.joints.limbs[side, part]])

    def tip_of(self, joint: int) -> int | None:
        """The farthest descendant of a joint, None if none stands clear of it: a fingertip, the end of the toes."""
        names = self.source.joint_names
        below = [i for i in range(len(names)) if i != joint and joint in self.source.ancestors(i)]
        below = [i for i in below if "thumb" not in names[i].lower()]
        if not below:
            return None
        reach = np.median(np.linalg.norm(self.positions[:, below] - self.positions[:, [joint]], axis=-1), axis=0)
        best = int(np.argmax(reach))
        return below[best] if reach[best] > 1e-6 else None

    def end_of_foot(self, side: str) -> int | None:
        """The joint of the toes or, where there is none, the far end of the foot; None where it has none."""
        toe = self.joints.limb(side, "toe")
        return self.tip_of(self.joints.limbs[side, "ankle"]) if toe is None else toe

    def top_of_head(self) -> int | None:
        """The head's tip, None where there is none or where it does not lie above (some exporters invent End Sites)."""
        head = self.joints.head
        tip = None if head is None else self.tip_of(head)
        if tip is None:
            return None
        line = unit(self.positions[:, tip] - self.positions[:, head])
        trunk = unit(self.positions[:, head] - _middle(self, "hip"))
        return tip if np.mean(np.sum(line * trunk, axis=-1)) > 0.5 else None

    def local(self, joint: int, vectors: Array) -> Array:
        """World vectors (T, 3) in a joint's own frame."""
        return rotations.rotate(rotations.conjugate(self.orientations[:, joint]), vectors)

    def carried(self, joint: int, axis: Array) -> Array:
        """(T, 3) world directions of an axis fixed in a joint's frame."""
        return rotations.rotate(self.orientations[:, joint], axis)


def frame_from(z: Array, y: Array) -> Array:
    """Quaternions (T, 4) of frames whose z axis is `z` (T, 3) and whose y axis is as near to `y` as may be.

    Where `z` or `y` vanish or are parallel, any frame that is near.
    """
    z = unit(z)
    z = np.where(np.linalg.norm(z, axis=-1, keepdims=True) < 0.5, np.array([0.0, 0.0, 1.0]), z)
    x = np.cross(y, z)
    spare = np.cross(np.eye(3)[np.argmin(np.abs(z), axis=-1)], z)
    x = unit(np.where(np.linalg.norm(x, axis=-1, keepdims=True) < 1e-9, spare, x))
    return rotations.from_matrix(np.stack([x, np.cross(z, x), z], axis=-1))


def segment_orientations(body: Body) -> dict[str, Array]:
    """World orientation (T, 4) of every segment of the humanoid, by name; hands and toes are absent where unknown."""
    lateral = unit(body.at("left", "hip") - body.at("right", "hip"))
    pelvis = _trunk_frame(body, body.joints.pelvis, lateral, _chest_base(body) - _middle(body, "hip"))
    across = unit(body.at("left", "shoulder") - body.at("right", "shoulder"))
    if body.joints.chest == body.joints.pelvis:
        chest = pelvis
    else:
        chest = _trunk_frame(body, body.joints.chest, across, _above_chest(body) - body.positions[:, body.joints.chest])
    frames = {"pelvis": pelvis, "abdomen": rotations.slerp(pelvis, chest, np.full(len(pelvis), 0.5)), "chest": chest}
    frames["head"] = _head_frame(body, chest)
    for side in SIDES:
        frames.update(_arm_frames(body, side, chest))
        frames.update(_leg_frames(body, side, pelvis))
    return frames


def _middle(body: Body, part: str) -> Array:
    return 0.5 * (body.at("left", part) + body.at("right", part))


def _chest_base(body: Body) -> Array:
    if body.joints.chest == body.joints.pelvis:
        return _middle(body, "shoulder")
    return np.asarray(body.positions[:, body.joints.chest])


def _above_chest(body: Body) -> Array:
    neck = body.joints.neck
    return _middle(body, "shoulder") if neck is None else np.asarray(body.positions[:, neck])


def knees_bend_backwards(body: Body) -> bool:
    """Whether the knees bend the way that knees do, given which side is left; straight legs do not say."""
    across = body.at("left", "hip") - body.at("right", "hip")
    sines = []
    for side in SIDES:
        thigh = body.at(side, "knee") - body.at(side, "hip")
        shank = body.at(side, "ankle") - body.at(side, "knee")
        sines.append(np.sum(np.cross(unit(thigh), unit(shank)) * unit(across), axis=-1))
    return float(np.mean(sines)) >= -STRAIGHT


def _fixed_axis(body: Body, joint: int, directions: Array) -> Array:
    """The axis (3,) in the joint's frame along which world `directions` (T, 3) point on average, snapped when close."""
    mean = unit(np.mean(body.local(joint, unit(directions)), axis=0))
    nearest = int(np.argmax(np.abs(mean)))
    if abs(mean[nearest]) < SNAP:
        return mean
    return np.asarray(np.sign(mean[nearest]) * np.eye(3)[nearest])


def _trunk_frame(body: Body, joint: int, lateral: Array, upward: Array) -> Array:
    """World orientation (T, 4) of a trunk segment that moves with `joint`."""
    up = _fixed_axis(body, joint, upward)
    along = rotations.rotate(body.orientations[:, joint], up)
    left = _fixed_axis(body, joint, lateral - along * np.sum(lateral * along, axis=-1, keepdims=True))
    if abs(left @ up) > 0.99:
        return frame_from(upward, lateral)
    return frame_from(body.carried(joint, up), body.carried(joint, left))


def _head_frame(body: Body, chest: Array) -> Array:
    joint = body.joints.head
    if joint is None:
        return chest
    tip = body.top_of_head()
    chest_up = rotations.rotate(chest, np.array([0.0, 0.0, 1.0]))
    upward = chest_up if tip is None else body.positions[:, tip] - body.positions[:, joint]
    return _trunk_frame(body, joint, rotations.rotate(chest, np.array([0.0, 1.0, 0.0])), upward)


def _arm_frames(body: Body, side: str, chest: Array) -> dict[str, Array]:
    shoulder, elbow = body.joints.limbs[side, "shoulder"], body.joints.limbs[side, "elbow"]
    upper = unit(body.at(side, "elbow") - body.at(side, "shoulder"))
    wrist = body.joints.limb(side, "wrist")
    end = body.tip_of(elbow) if wrist is None else wrist
    lower = upper if end is None else unit(body.positions[:, end] - body.at(side, "elbow"))
    fallback = _swung(chest, upper)
    axis = _bend_axis(body, shoulder, upper, lower, sign=-1.0, fallback=fallback)
    frames = {f"{side}_upper_arm": frame_from(-upper, axis), f"{side}_forearm": frame_from(-lower, axis)}
    tip = None if wrist is None else body.tip_of(wrist)
    if wrist is not None and tip is not None:
        frames[f"{side}_hand"] = frame_from(-(body.positions[:, tip] - body.at(side, "wrist")), axis)
    return frames


def _leg_frames(body: Body, side: str, pelvis: Array) -> dict[str, Array]:
    hip = body.joints.limbs[side, "hip"]
    thigh = unit(body.at(side, "knee") - body.at(side, "hip"))
    shank = unit(body.at(side, "ankle") - body.at(side, "knee"))
    axis = _bend_axis(body, hip, thigh, shank, sign=1.0, fallback=_swung(pelvis, thigh))
    frames = {f"{side}_thigh": frame_from(-thigh, axis), f"{side}_shank": frame_from(-shank, axis)}
    frames.update(_foot_frames(body, side, frames[f"{side}_shank"]))
    return frames


def _swung(parent: Array, direction: Array) -> Array:
    """(T, 3) the parent's y axis, carried along the shortest turn from the parent's down to `direction` (T, 3)."""
    down = rotations.rotate(parent, np.array([0.0, 0.0, -1.0]))
    left = rotations.rotate(parent, np.array([0.0, 1.0, 0.0]))
    half = down + direction
    turn = rotations.normalise(
        np.concatenate([np.sum(half * down, axis=-1, keepdims=True) + 1e-9, np.cross(down, half)], axis=-1)
    )
    return rotations.rotate(turn, left)


def _bend_axis(body: Body, joint: int, upper: Array, lower: Array, *, sign: float, fallback: Array) -> Array:
    """World y axis (T, 3) of a limb with a hinge in its middle: `sign` +1 for a knee, -1 for an elbow."""
    normal = sign * np.cross(upper, lower)
    bend = np.linalg.norm(normal, axis=-1)
    local = body.local(joint, normal * bend[:, None])
    total = np.sum(local, axis=0)
    if np.linalg.norm(total) > 0.02 * len(local) * BEND_FADE[1] and np.linalg.norm(total) > 0.5 * np.sum(bend**2):
        carried = body.carried(joint, unit(total))
    else:
        carried = fallback
    low, high = BEND_FADE
    angle = np.arctan2(bend, np.sum(upper * lower, axis=-1))
    ease = np.clip((angle - low) / (high - low), 0.0, 1.0)
    weight = (ease * ease * (3.0 - 2.0 * ease))[:, None]
    return unit(weight * unit(normal) + (1.0 - weight) * carried)


def _foot_frames(body: Body, side: str, shank: Array) -> dict[str, Array]:
    ankle = body.joints.limbs[side, "ankle"]
    toe, end = body.joints.limb(side, "toe"), body.end_of_foot(side)
    if end is None:
        return {}
    direction = unit(body.positions[:, end] - body.positions[:, ankle])
    down = rotations.rotate(shank, np.array([0.0, 0.0, -1.0]))
    if np.median(np.sum(direction * down, axis=-1)) > np.cos(np.radians(25.0)):
        return {}
    toe_local = unit(np.mean(body.local(ankle, direction), axis=0))
    left = np.mean(body.local(ankle, rotations.rotate(shank, np.array([0.0, 1.0, 0.0]))), axis=0)
    up_local = _sole_up(body, ankle, end, np.cross(toe_local, unit(left - toe_local * (left @ toe_local))))
    left_local = unit(np.cross(up_local, toe_local))
    foot = frame_from(body.carried(ankle, up_local), body.carried(ankle, left_local))
    frames = {f"{side}_foot": foot}
    if toe is not None and (tip := body.tip_of(toe)) is not None:
        frames[f"{side}_toes"] = _toe_frame(body, toe, tip, foot)
    return frames


def _sole_up(body: Body, ankle: int, end: int, above_toes: Array) -> Array:
    """What is up (3,) in the ankle's frame when the sole is flat.

    It is the rest pose's up, if it stands straight on its soles; else the mean up of frames in which ankle and toe are
    both near the lowest height they reach; else what stands on the line to the toes, `above_toes` (3,), and a usual pitch.
    """
    rest = rotations.rotate(body.to_z_up, rest_positions(body.source))
    legs = [rest[body.joints.limbs[side, "hip"]] - rest[body.joints.limbs[side, "ankle"]] for side in SIDES]
    line = rest[end] - rest[ankle]
    pitch = np.arctan2(-line[2], np.hypot(line[0], line[1]))
    up = np.array([0.0, 0.0, 1.0])
    if min(unit(leg)[2] for leg in legs) > REST_UPRIGHT and PITCH_RANGE[0] < pitch < PITCH_RANGE[1]:
        return np.asarray(rotations.rotate(rotations.conjugate(body.to_z_up), up))
    heel, toe = body.positions[:, ankle], body.positions[:, end]
    length = float(np.median(np.linalg.norm(toe - heel, axis=-1)))
    band = 0.12 * length
    flat = (heel[:, 2] < np.percentile(heel[:, 2], 2) + band) & (toe[:, 2] < np.percentile(toe[:, 2], 2) + band)
    if np.count_nonzero(flat) >= 3:
        return unit(np.mean(body.local(ankle, np.tile(up, (len(flat), 1)))[flat], axis=0))
    toe_local = unit(np.mean(body.local(ankle, toe - heel), axis=0))
    return np.asarray(np.cos(DEFAULT_SOLE_PITCH) * above_toes - np.sin(DEFAULT_SOLE_PITCH) * toe_local)


def _toe_frame(body: Body, toe: int, tip: int, foot: Array) -> Array:
    """World orientation of the toes: bent against the foot as in the source, straight in the median frame."""
    line = unit(body.positions[:, tip] - body.positions[:, toe])
    in_foot = rotations.rotate(rotations.conjugate(foot), line)
    bend = np.unwrap(np.arctan2(in_foot[:, 2], in_foot[:, 0]))
    bend = bend - np.median(bend)
    return rotations.multiply(foot, rotations.about_axis(np.array([0.0, -1.0, 0.0]), bend))
