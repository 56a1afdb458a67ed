"""A skeleton from joint centres: orientations from anatomical geometry, bone lengths from medians.

A limb's frame is its parent's, carried along the shortest turn onto the bone, unless markers on both sides of a joint tell its
hinge; so noise in a straight limb does not spin it. How knees and elbows bend is `anatomy`'s to tell, as for any skeleton. What is
not marked of the upper body hangs from what is: an upright trunk over the pelvis, arms down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from mocap2ctrl.character.model import SIDES, load_character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.rotations import unit
from mocap2ctrl.motion.anatomy import DEFAULT_SOLE_PITCH, frame_from
from mocap2ctrl.motion.joint_centres import JointCentres
from mocap2ctrl.types import Array

UP = np.array([0.0, 0.0, 1.0])
LEFT = np.array([0.0, 1.0, 0.0])
FLAT_BAND = 0.12
"""A foot lies flat while ankle and toe are as near to the lowest heights they reach, as a share of its length."""
MIN_FLAT = 3
PLAUSIBLE_DIP = (0.0, 0.75)
HEEL_TRUST = 0.2
"""Radians: the line from ankle to toe dips as much; heel and toe tell the sole to within as much."""


@dataclass(eq=False)
class PointSkeleton:
    """Joints in the order in which they were added, parents first.

    Attributes:
        names, parents: of the joints; an end without a rotation of its own is called `<parent>:tip`.
        positions, orientations: (T, 3) and (T, 4) of each, metres, z up.
        guessed: names of joints that are not marked.
    """

    names: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    positions: list[Array] = field(default_factory=list)
    orientations: list[Array] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)

    def add(self, name: str, parent: str, position: Array, orientation: Array, *, guessed: bool = False) -> None:
        """One more joint."""
        self.parents.append(self.names.index(parent) if parent else -1)
        self.names.append(name)
        self.positions.append(position)
        self.orientations.append(orientation)
        if guessed:
            self.guessed.append(name)


@dataclass(frozen=True)
class _Proportions:
    """Lengths of the body, metres, for a leg of given length: from the package's own character."""

    trunk: float
    chest_share: float
    shoulder: Array
    upper_arm: float
    forearm: float


def skeleton_of(centres: JointCentres, leg_m: float) -> PointSkeleton:
    """The skeleton of a body whose legs, at least, are seen in every frame.

    Args:
        centres: joint centres without gaps.
        leg_m: from hip to ankle, metres; the size of what is not seen follows from it.
    """
    body, sizes = PointSkeleton(), _proportions(leg_m)
    chest = _add_trunk(body, centres, sizes)
    _add_head(body, centres)
    for side in SIDES:
        _add_arm(body, centres, side, chest, sizes)
        _add_leg(body, centres, side)
    return body


def _proportions(leg_m: float) -> _Proportions:
    at = _offsets()
    size = leg_m / float(np.linalg.norm(at["left_shank"]) + np.linalg.norm(at["left_foot"]))
    trunk = float(at["abdomen"][2] + at["chest"][2] + at["head"][2])
    return _Proportions(
        trunk=trunk * size,
        chest_share=1.0 - float(at["head"][2]) / trunk,
        shoulder=(at["left_upper_arm"] - at["head"]) * size,
        upper_arm=float(np.linalg.norm(at["left_forearm"])) * size,
        forearm=float(np.linalg.norm(at["left_hand"])) * size,
    )


@cache
def _offsets() -> dict[str, Array]:
    """(3,) of each joint of the package's own character from its parent's, by segment."""
    return {segment.name: np.asarray(segment.offset) for segment in load_character().segments}


def _add_trunk(body: PointSkeleton, centres: JointCentres, sizes: _Proportions) -> Array:
    """Pelvis, chest and neck; returns the chest's orientation."""
    hips = 0.5 * (centres.points["left hip"] + centres.points["right hip"])
    neck = centres.points.get("neck")
    guessed = neck is None
    neck = hips + sizes.trunk * UP if neck is None else neck
    lateral, line = centres.left["pelvis"], neck - hips
    pelvis = frame_from(line, lateral)
    if "pelvis" in centres.up:
        # The pelvis leans as its markers do; how they sit on it is taken out by the mean direction of the trunk.
        own = frame_from(centres.up["pelvis"], lateral)
        mean = np.mean(rotations.rotate(rotations.conjugate(own), unit(line)), axis=0) * np.array([1.0, 0.0, 1.0])
        pelvis = frame_from(rotations.rotate(own, unit(mean)), lateral)
    length = float(np.median(np.linalg.norm(line, axis=-1)))
    waist = hips + sizes.chest_share * length * rotations.rotate(pelvis, UP)
    chest = frame_from(neck - waist, centres.left.get("chest", lateral))
    body.add("pelvis", "", hips, pelvis)
    body.add("chest", "pelvis", waist, chest, guessed=guessed)
    head_left = centres.left.get("head", rotations.rotate(chest, LEFT))
    top = centres.points.get("head top", neck + rotations.rotate(chest, UP))
    head = frame_from(centres.up.get("head", top - neck), head_left)
    body.add("neck", "chest", neck, head, guessed=guessed)
    return chest


def _add_head(body: PointSkeleton, centres: JointCentres) -> None:
    top = centres.points.get("head top")
    if top is None:
        return
    neck, turn = body.positions[2], body.orientations[2]
    body.add("head", "neck", neck + 0.4 * (top - neck), turn)
    body.add("head:tip", "head", top, turn)


def _add_arm(body: PointSkeleton, centres: JointCentres, side: str, chest: Array, sizes: _Proportions) -> None:
    seen = {part: centres.points.get(f"{side} {part}") for part in ("shoulder", "elbow", "wrist", "hand")}
    shoulder, elbow, wrist = seen["shoulder"], seen["elbow"], seen["wrist"]
    arm_guessed = elbow is None
    if shoulder is None:
        mirrored = sizes.shoulder * np.array([1.0, 1.0 if side == "left" else -1.0, 1.0])
        shoulder = body.positions[2] + rotations.rotate(chest, mirrored)
    if elbow is None:
        elbow, wrist = shoulder - sizes.upper_arm * UP, shoulder - (sizes.upper_arm + sizes.forearm) * UP
    upper = _swung(chest, elbow - shoulder)
    body.add(f"{side} shoulder", "chest", shoulder, upper, guessed=seen["shoulder"] is None)
    lower = upper if wrist is None else _swung(upper, wrist - elbow)
    body.add(f"{side} elbow", f"{side} shoulder", elbow, lower, guessed=arm_guessed)
    if wrist is not None:
        body.add(f"{side} wrist", f"{side} elbow", wrist, lower, guessed=arm_guessed)
        if seen["hand"] is not None and not arm_guessed:
            body.add(f"{side} wrist:tip", f"{side} wrist", seen["hand"], lower)


def _add_leg(body: PointSkeleton, centres: JointCentres, side: str) -> None:
    hip, knee, ankle = (centres.points[f"{side} {part}"] for part in ("hip", "knee", "ankle"))
    hinge = centres.left.get(f"{side} knee")
    thigh = _swung(body.orientations[0], knee - hip) if hinge is None else frame_from(hip - knee, hinge)
    shank = _swung(thigh, ankle - knee)
    body.add(f"{side} hip", "pelvis", hip, thigh)
    body.add(f"{side} knee", f"{side} hip", knee, shank)
    toe = centres.points.get(f"{side} toe")
    if toe is None:
        body.add(f"{side} ankle", f"{side} knee", ankle, shank)
        return
    foot = _foot(
        ankle, toe, centres.points.get(f"{side} heel"), centres.left.get(f"{side} toe", rotations.rotate(shank, LEFT))
    )
    body.add(f"{side} ankle", f"{side} knee", ankle, foot)
    body.add(f"{side} toe", f"{side} ankle", toe, foot)


def _swung(parent: Array, direction: Array) -> Array:
    """A frame (T, 4) turned by the shortest way so that its down points along `direction` (T, 3)."""
    down, direction = rotations.rotate(parent, -UP), unit(direction)
    axis = np.cross(down, direction)
    cosine = np.sum(down * direction, axis=-1, keepdims=True)
    turn = np.concatenate([1.0 + cosine + 1e-9, axis], axis=-1)
    return rotations.normalise(rotations.multiply(rotations.normalise(turn), parent))


def _foot(ankle: Array, toe: Array, heel: Array | None, left: Array) -> Array:
    """The foot's frame (T, 4): its sole level while it lies flat on the ground."""
    pitched = frame_from(np.cross(toe - ankle, left), left)  # x along the line from ankle to toe
    dip, known = float(DEFAULT_SOLE_PITCH), PLAUSIBLE_DIP
    if heel is not None:
        sole = rotations.rotate(rotations.conjugate(pitched), toe - heel)
        dip = float(np.median(np.arctan2(sole[:, 2], sole[:, 0])))
        known = (dip - HEEL_TRUST, dip + HEEL_TRUST)
    measured = _dip_when_flat(ankle, toe)
    if measured is not None and known[0] < measured < known[1]:
        dip = measured
    return rotations.multiply(pitched, rotations.about_axis(-LEFT, dip))


def _dip_when_flat(ankle: Array, toe: Array) -> float | None:
    """By how much the line from ankle to toe dips below the ground's plane; None where the foot never lies flat."""
    line = toe - ankle
    length = np.linalg.norm(line, axis=-1)
    band = FLAT_BAND * float(np.median(length))
    flat = np.all([place[:, 2] < np.percentile(place[:, 2], 5.0) + band for place in (ankle, toe)], axis=0)
    if np.count_nonzero(flat) < MIN_FLAT:
        return None
    return float(np.median(np.arcsin(np.clip(-line[flat, 2] / np.maximum(length[flat], 1e-9), -1.0, 1.0))))
