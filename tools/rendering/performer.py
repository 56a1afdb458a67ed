"""Somebody who is not our character: other proportions, flesh and clothes, drawn from a seed, and the same motion on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import clip_frames, lowest_points, points_world, segment_frames
from mocap2ctrl.character.model import Character, parse_character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.inverse_kinematics import PointTargets, reach
from mocap2ctrl.types import Array, MotionClip
from rendering.wardrobe import Solid, clothes, palette, pattern

LENGTH_SPREAD = 0.06
GIRTH_SPREAD = 0.15
HEIGHT_SPREAD = 0.012
DEEPEST_M = 0.004
"""How far a sole may sink into the ground, however deep the clip's does."""

LENGTHS = (
    *("pelvis", "abdomen", "chest", "head", "upper_arm", "forearm", "hand", "thigh", "shank", "foot"),
    *("shoulders", "hips"),
)
GIRTHS = ("trunk", "arm", "leg")
FEET = ("left_foot", "left_toes", "right_foot", "right_toes")

LEFT_LEG = ("left_thigh", "left_shank")

STAY_WEIGHT = 3e-3
"""m^2 / rad^2, as in retargeting."""
HELD_M = 0.15
"""How far from its joint the direction of a segment is held."""


@dataclass(frozen=True, eq=False)
class Performer:
    """A dressed body.

    Attributes:
        character: the skeleton, with the hinges of the standard one and other lengths.
        lengths: factor of each length in `LENGTHS`.
        girths: factor of each girth in `GIRTHS`.
        solids: flesh and clothes, group by group.
        colours: (materials, 2, 3) reflectances.
        pattern: (3,) of the shirt: kind, period in metres, share.
    """

    character: Character
    lengths: Mapping[str, float]
    girths: Mapping[str, float]
    solids: tuple[Solid, ...]
    colours: Array
    pattern: Array

    @cached_property
    def kind(self) -> npt.NDArray[np.int64]:
        """(N, 2) group and material of the solids."""
        groups = list(dict.fromkeys(solid.group for solid in self.solids))
        return np.array([(groups.index(solid.group), solid.material) for solid in self.solids])

    @cached_property
    def segment(self) -> npt.NDArray[np.int64]:
        """(N,) segment of each solid."""
        return np.array([self.character.segment_index(solid.segment) for solid in self.solids])

    @cached_property
    def ends(self) -> Array:
        """(N, 2, 3) in the segments' frames, metres."""
        scale = np.array([self._scale(solid) for solid in self.solids])
        return np.array([(solid.start, solid.end) for solid in self.solids]) * scale[:, None]

    @cached_property
    def radii(self) -> Array:
        """(N, 2) at the ends, metres."""
        return np.array([np.multiply(solid.radii, self._scale(solid)[0]) for solid in self.solids])

    @cached_property
    def head(self) -> Array:
        """(4,) the head's joint in the upright pose, and the head's size."""
        return np.array([*self._upright[0][self.character.segment_index("head")], self.lengths["head"]])

    @cached_property
    def _upright(self) -> tuple[Array, Array]:
        pose = self.character.zero_pose()
        return segment_frames(self.character, pose.root_position, pose.root_orientation, pose.angles)

    def _scale(self, solid: Solid) -> Array:
        """(3,) factors of a solid's places across, across and along its segment; the first is its radii's, too."""
        part = without_side(solid.segment)
        if part in ("foot", "toes"):
            return np.full(3, self.lengths["foot"])
        if part in ("hand", "head"):
            return np.full(3, self.lengths[part])
        girth = self.girths[{"upper_arm": "arm", "forearm": "arm", "thigh": "leg", "shank": "leg"}.get(part, "trunk")]
        return np.array([girth, girth, self.lengths[part]])

    def posed(self, positions: Array, orientations: Array) -> tuple[Array, Array]:
        """`shape` (N, 14) and `rest` (N, 12) of `solids.py` for segment frames (S, 3) and (S, 4)."""
        place, turn = positions[self.segment], orientations[self.segment]
        matrices = rotations.to_matrix(turn)
        ends = np.einsum("nij,nkj->nki", matrices, self.ends) + place[:, None]
        cuts = np.array([solid.cut for solid in self.solids])
        offset = cuts[:, 3] * np.array([self._scale(solid)[2] for solid in self.solids])
        normal = np.einsum("nij,nj->ni", matrices, cuts[:, :3])
        offset = np.where(np.any(normal, axis=1), offset + np.sum(normal * place, axis=1), 1.0)
        blend, folds = ([getattr(solid, name) for solid in self.solids] for name in ("blend", "folds"))
        shape = np.column_stack([ends.reshape(-1, 6), self.radii, blend, normal, offset, folds])
        cloth = np.array([self.character.segment_index(s.cloth_of or s.segment) for s in self.solids])
        inverse = rotations.to_matrix(orientations[cloth]).transpose(0, 2, 1)
        shift = self._upright[0][cloth] - np.einsum("nij,nj->ni", inverse, positions[cloth])
        return np.ascontiguousarray(shape), np.column_stack([inverse.reshape(-1, 9), shift])

    def spheres(self, clip: MotionClip) -> tuple[Array, Array]:
        """Centres (T, M, 3) and radii (M,) of balls that hold the body's extremes."""
        frames = clip_frames(self.character, clip)
        centres = points_world(*frames, np.repeat(self.segment, 2), self.ends.reshape(-1, 3))
        folds = np.repeat([solid.folds for solid in self.solids], 2)
        return centres, self.radii.reshape(-1) + folds

    def lowest_foot(self, clip: MotionClip) -> Array:
        """(T,) height of the soles' lowest point, metres."""
        centres, radii = self.spheres(clip)
        shoes = np.repeat([solid.segment in FEET for solid in self.solids], 2)
        return np.asarray(np.min(centres[:, shoes, 2] - radii[shoes], axis=1))


def without_side(segment: str) -> str:
    """`left_thigh` and `right_thigh` as `thigh`."""
    return segment.removeprefix("left_").removeprefix("right_")


def draw_performer(character: Character, rng: np.random.Generator) -> Performer:
    """A body within the spreads above, as tall as `character` to about a percent, and its clothes."""
    while True:
        lengths = dict(zip(LENGTHS, 1.0 + LENGTH_SPREAD * rng.uniform(-1.0, 1.0, len(LENGTHS)), strict=True))
        skeleton = _skeleton(character, lengths)
        if abs(_height(skeleton) / _height(character) - 1.0) < HEIGHT_SPREAD:
            break
    build = 0.5 * GIRTH_SPREAD * rng.uniform(-1.0, 1.0)
    girths = {name: 1.0 + build + 0.5 * GIRTH_SPREAD * rng.uniform(-1.0, 1.0) for name in GIRTHS}
    dress = clothes(long_sleeves=bool(rng.random() < 0.5))
    look = pattern(rng)
    return Performer(skeleton, lengths, girths, dress, palette(rng), look)


def _height(character: Character) -> float:
    names = ("abdomen", "chest", "head")
    rise = sum(float(character.segments[character.segment_index(name)].offset[2]) for name in names)
    return character.standing_height_m + rise + float(character.segments[character.segment_index("head")].tip[2])


def _ankle_height(character: Character) -> float:
    """Of the ankle above the ground in the upright pose, metres."""
    legs = sum(float(character.segments[character.segment_index(name)].tip[2]) for name in LEFT_LEG)
    return character.standing_height_m + legs


def _skeleton(character: Character, lengths: Mapping[str, float]) -> Character:
    """The character with its segments' lengths multiplied; radii and masses as they were."""
    factor = {**lengths, "toes": lengths["foot"]}
    entries, leg = [], _ankle_height(character) / character.height_m * lengths["foot"]
    for entry in character.description["segment"]:
        part, parent = without_side(entry["name"]), without_side(entry["parent"])
        offset = np.array(entry["offset"], float) * factor.get(parent, 1.0)
        if part == "upper_arm":
            offset[1] *= factor["shoulders"] / factor["chest"]
        if part == "thigh":
            offset[1] *= factor["hips"] / factor["pelvis"]
        tip = np.array(entry["tip"], float) * factor[part]
        if entry["name"] in LEFT_LEG:
            leg -= float(tip[2])
        entries.append({**entry, "offset": offset, "tip": tip})
    entries[0]["offset"] = np.array([0.0, 0.0, leg])
    points = [
        {**point, "at": np.array(point["at"], float) * factor[without_side(point["segment"])]}
        for point in character.description["evaluation_point"]
    ]
    description = {**character.description, "segment": entries, "evaluation_point": points, "name": "performer"}
    return parse_character(description, "the performer")


def perform(performer: Performer, character: Character, clip: MotionClip) -> MotionClip:
    """The motion of `clip`, which `character` performs, on the performer.

    The ankles stay where they are, so that feet do not slide, and the legs do the rest; then each frame is lifted or lowered
    until the lowest point of the soles is at the height that it has in the clip.
    """
    frames = clip_frames(character, clip)
    theirs = performer.character
    rise = np.array([0.0, 0.0, theirs.standing_height_m - character.standing_height_m])
    ankle_rise = np.array([0.0, 0.0, _ankle_height(theirs) - _ankle_height(character)])
    targets = _targets(character, frames, rise, ankle_rise)
    start = (clip.root_position + rise, clip.root_orientation, clip.angles)
    position, orientation, angles = reach(theirs, start, targets, clip.angles, stay_weight=STAY_WEIGHT)
    motion = replace(clip, root_position=position, root_orientation=orientation, angles=angles)
    feet = [character.segment_index(name) for name in FEET]
    wanted = np.maximum(np.min(lowest_points(character, *frames)[:, feet], axis=1), -DEEPEST_M)
    lift = np.zeros_like(position)
    lift[:, 2] = wanted - performer.lowest_foot(motion)
    return replace(motion, root_position=position + lift)


def _targets(character: Character, frames: tuple[Array, Array], rise: Array, ankle_rise: Array) -> PointTargets:
    """Three points each that hold the place and the direction of pelvis and feet."""
    segment, local, world, weight = [], [], [], []
    for name, shift, importance in (
        ("pelvis", rise, 0.5),
        ("left_foot", ankle_rise, 4.0),
        ("right_foot", ankle_rise, 4.0),
    ):
        index = character.segment_index(name)
        for corner in HELD_M * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]):
            segment.append(index)
            local.append(corner)
            world.append(frames[0][:, index] + shift + rotations.rotate(frames[1][:, index], corner))
            weight.append(importance)
    return PointTargets(np.array(segment), np.array(local), np.stack(world, axis=1), np.array(weight))
