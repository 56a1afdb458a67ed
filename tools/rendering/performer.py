"""Somebody who is not our character: other proportions, flesh and clothes, drawn from a seed, and the same motion on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import lowest_points, points_world, segment_frames
from mocap2ctrl.character.model import Character, parse_character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.inverse_kinematics import PointTargets, State, reach
from mocap2ctrl.types import Array, MotionClip
from rendering import solids

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

PATTERNS = (solids.PLAIN, solids.PLAIN, solids.STRIPES, solids.CHECKS)
STAY_WEIGHT = 3e-3
NO_CUT = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Solid:
    """A tapered capsule in a segment's frame (of a body of 1.75 m, metres): see `solids.py`."""

    segment: str
    group: str
    material: int
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radii: tuple[float, float]
    blend: float = 0.03
    folds: float = 0.0
    cut: tuple[float, float, float, float] = NO_CUT
    cloth_of: str | None = None
    """The segment that its pattern and folds move with, if not its own."""


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
        frames = segment_frames(self.character, clip.root_position, clip.root_orientation, clip.angles)
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
    long_sleeves = bool(rng.random() < 0.5)
    pattern = np.array([rng.choice(PATTERNS), rng.uniform(0.05, 0.09), rng.uniform(0.3, 0.55)])
    return Performer(skeleton, lengths, girths, _dressed(long_sleeves), _palette(rng), pattern)


def _height(character: Character) -> float:
    names = ("abdomen", "chest", "head")
    rise = sum(float(character.segments[character.segment_index(name)].offset[2]) for name in names)
    return character.standing_height_m + rise + float(character.segments[character.segment_index("head")].tip[2])


def _skeleton(character: Character, lengths: Mapping[str, float]) -> Character:
    """The character with its segments' lengths multiplied; radii and masses as they were."""
    factor = {**lengths, "toes": lengths["foot"]}
    entries, legs = [], 0.0
    for entry in character.description["segment"]:
        part, parent = without_side(entry["name"]), without_side(entry["parent"])
        offset = np.array(entry["offset"], float) * factor.get(parent, 1.0)
        if part == "upper_arm":
            offset[1] *= factor["shoulders"] / factor["chest"]
        if part == "thigh":
            offset[1] *= factor["hips"] / factor["pelvis"]
        tip = np.array(entry["tip"], float) * factor[part]
        if entry["name"] in ("left_thigh", "left_shank"):
            legs -= tip[2]
        entries.append({**entry, "offset": offset, "tip": tip})
    ankle = character.description["segment"][0]["offset"][2] + sum(
        e["tip"][2] for e in character.description["segment"] if e["name"] in ("left_thigh", "left_shank")
    )
    entries[0]["offset"] = np.array([0.0, 0.0, legs + factor["foot"] * ankle])
    points = [
        {**point, "at": np.array(point["at"], float) * factor[without_side(point["segment"])]}
        for point in character.description["evaluation_point"]
    ]
    description = {**character.description, "segment": entries, "evaluation_point": points, "name": "performer"}
    return parse_character(description, "the performer")


def perform(performer: Performer, character: Character, clip: MotionClip) -> MotionClip:
    """The motion of `clip`, which `character` performs, on the performer.

    The ankles stay where they are, so that feet do not slide, the legs do the rest, and then each frame is lifted or lowered
    until the lowest point of the soles is at the height that it has in the clip.
    """
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    theirs = performer.character
    rise = np.array([0.0, 0.0, theirs.standing_height_m - character.standing_height_m])
    ankle_rise = rise * 0.0
    ankle_rise[2] = _ankle_height(performer, character) * (performer.lengths["foot"] - 1.0)
    segment, local, world, weight = [], [], [], []
    for name, shift, importance in (
        ("pelvis", rise, 0.5),
        ("left_foot", ankle_rise, 4.0),
        ("right_foot", ankle_rise, 4.0),
    ):
        index = character.segment_index(name)
        for corner in (np.zeros(3), np.array([0.15, 0.0, 0.0]), np.array([0.0, 0.15, 0.0])):
            segment.append(index)
            local.append(corner)
            world.append(frames[0][:, index] + shift + rotations.rotate(frames[1][:, index], corner))
            weight.append(importance)
    targets = PointTargets(np.array(segment), np.array(local), np.stack(world, axis=1), np.array(weight))
    start: State = (clip.root_position + rise, clip.root_orientation, clip.angles)
    moved = reach(theirs, start, targets, clip.angles, stay_weight=STAY_WEIGHT)
    motion = replace(clip, root_position=moved[0], root_orientation=moved[1], angles=moved[2])
    feet = [character.segment_index(name) for name in FEET]
    wanted = np.maximum(np.min(lowest_points(character, *frames)[:, feet], axis=1), -DEEPEST_M)
    lift = np.zeros_like(motion.root_position)
    lift[:, 2] = wanted - performer.lowest_foot(motion)
    return replace(motion, root_position=motion.root_position + lift)


def _ankle_height(performer: Performer, character: Character) -> float:
    legs = sum(float(character.segments[character.segment_index(n)].tip[2]) for n in ("left_thigh", "left_shank"))
    return character.standing_height_m + legs


def _palette(rng: np.random.Generator) -> Array:
    """(materials, 2, 3) linear reflectances, drawn from what people wear."""
    skin, hair = np.array(
        rng.choice(
            [
                [[0.62, 0.40, 0.30], [0.09, 0.05, 0.03]],
                [[0.60, 0.38, 0.27], [0.22, 0.14, 0.07]],
                [[0.52, 0.31, 0.21], [0.03, 0.02, 0.015]],
                [[0.33, 0.18, 0.11], [0.012, 0.011, 0.011]],
                [[0.17, 0.09, 0.055], [0.012, 0.011, 0.011]],
            ]
        )
    )
    shirts = [
        [0.55, 0.08, 0.07],
        [0.62, 0.62, 0.58],
        [0.06, 0.16, 0.38],
        [0.10, 0.22, 0.12],
        [0.55, 0.36, 0.08],
        [0.2, 0.2, 0.21],
    ]
    trousers = [[0.055, 0.085, 0.17], [0.035, 0.035, 0.04], [0.30, 0.23, 0.15], [0.16, 0.16, 0.15]]
    first, second = rng.permutation(len(shirts))[:2]
    leg = np.array(rng.choice(trousers))
    shoe = rng.choice([[0.05, 0.05, 0.05], [0.55, 0.55, 0.53], [0.20, 0.09, 0.05], [0.06, 0.10, 0.25]])
    lips = skin * np.array([0.85, 0.5, 0.5])
    pairs = [
        (skin, lips),
        (hair, hair),
        (shirts[first], shirts[second]),
        (leg, 1.8 * leg + 0.02),
        (shoe, [0.6, 0.6, 0.57]),
    ]
    return np.array(pairs, float) * rng.uniform(0.9, 1.1, (5, 1, 1))


def _dressed(long_sleeves: bool) -> tuple[Solid, ...]:
    parts = [*_head(), *_torso(), *_hips()]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        parts += [*_arm(side, sign, long_sleeves), *_leg(side, sign), *_shoe(side, sign)]
    order = list(dict.fromkeys(solid.group for solid in parts))
    return tuple(sorted(parts, key=lambda solid: order.index(solid.group)))


def _head() -> list[Solid]:
    def skin(start, end, radii, blend=0.025):
        return Solid("head", "face", solids.SKIN, start, end, radii, blend)

    def hair(start, end, radii, cut):
        return Solid("head", "hair", solids.HAIR, start, end, radii, 0.03, 0.003, cut)

    hairline, nape = (0.92, 0.0, -0.392, -0.041), (0.9, 0.0, -0.436, -0.072)
    return [
        skin((-0.012, 0.0, -0.03), (0.008, 0.0, 0.12), (0.060, 0.054)),
        skin((-0.025, 0.0, 0.208), (0.022, 0.0, 0.214), (0.077, 0.074)),
        skin((0.03, 0.0, 0.19), (0.05, 0.0, 0.108), (0.064, 0.036), 0.04),
        skin((0.03, 0.028, 0.13), (0.03, -0.028, 0.13), (0.036, 0.036)),
        skin((0.092, 0.0, 0.195), (0.108, 0.0, 0.162), (0.008, 0.013), 0.015),
        skin((0.004, 0.076, 0.165), (-0.004, 0.08, 0.198), (0.010, 0.016), 0.01),
        skin((0.004, -0.076, 0.165), (-0.004, -0.08, 0.198), (0.010, 0.016), 0.01),
        hair((-0.030, 0.0, 0.214), (0.022, 0.0, 0.217), (0.087, 0.083), hairline),
        hair((-0.045, 0.0, 0.20), (-0.048, 0.0, 0.145), (0.076, 0.06), nape),
    ]


def _torso() -> list[Solid]:
    def shirt(segment, start, end, radii, blend=0.05, folds=0.0035, cut=NO_CUT):
        return Solid(segment, "shirt", solids.SHIRT, start, end, radii, blend, folds, cut)

    hem, collar = (0.0, 0.0, -1.0, 0.085), (0.25, 0.0, 0.968, 0.297)
    return [
        shirt("chest", (-0.005, -0.062, 0.135), (-0.005, 0.062, 0.135), (0.110, 0.110)),
        shirt("chest", (-0.004, -0.060, 0.04), (-0.004, 0.060, 0.04), (0.108, 0.108), 0.07),
        shirt("chest", (-0.012, -0.088, 0.205), (-0.012, 0.088, 0.205), (0.078, 0.078)),
        shirt("chest", (-0.016, -0.02, 0.262), (-0.010, -0.15, 0.222), (0.054, 0.058), 0.05),
        shirt("chest", (-0.016, 0.02, 0.262), (-0.010, 0.15, 0.222), (0.054, 0.058), 0.05),
        shirt("chest", (-0.018, 0.0, 0.25), (-0.008, 0.0, 0.29), (0.072, 0.062), 0.04, 0.001, collar),
        shirt("abdomen", (-0.003, -0.060, 0.06), (-0.003, 0.060, 0.06), (0.109, 0.109), 0.07),
        shirt("pelvis", (-0.006, 0.052, 0.09), (-0.008, 0.074, -0.11), (0.111, 0.122), 0.05, 0.004, hem),
        shirt("pelvis", (-0.006, -0.052, 0.09), (-0.008, -0.074, -0.11), (0.111, 0.122), 0.05, 0.004, hem),
    ]


def _hips() -> list[Solid]:
    def trousers(start, end, radii):
        return Solid("pelvis", "trousers", solids.TROUSERS, start, end, radii, 0.02, 0.002)

    return [
        trousers((0.0, -0.07, 0.0), (0.0, 0.07, 0.0), (0.094, 0.094)),
        trousers((-0.024, -0.065, -0.045), (-0.024, 0.065, -0.045), (0.086, 0.086)),
    ]


def _arm(side: str, sign: float, long_sleeves: bool) -> list[Solid]:
    upper, fore, hand = (f"{side}_{part}" for part in ("upper_arm", "forearm", "hand"))
    skin, limb = solids.SKIN, f"{side} arm"
    sleeve = dict(material=solids.SHIRT, blend=0.03, folds=0.004)
    parts = [
        Solid(upper, limb, skin, (0.0, -0.008 * sign, -0.025), (0.0, 0.0, -0.325), (0.048, 0.040)),
        Solid(fore, limb, skin, (0.0, 0.0, 0.0), (0.0, 0.0, -0.11), (0.041, 0.042)),
        Solid(fore, limb, skin, (0.0, 0.0, -0.11), (0.0, 0.0, -0.255), (0.042, 0.028)),
        Solid(hand, limb, skin, (-0.018, 0.0, -0.02), (-0.024, 0.0, -0.085), (0.020, 0.019), 0.02),
        Solid(hand, limb, skin, (0.018, 0.0, -0.02), (0.022, 0.0, -0.085), (0.021, 0.019), 0.02),
        Solid(hand, limb, skin, (-0.024, 0.0, -0.085), (-0.014, -0.03 * sign, -0.155), (0.017, 0.010), 0.02),
        Solid(hand, limb, skin, (0.020, 0.0, -0.085), (0.014, -0.03 * sign, -0.165), (0.017, 0.010), 0.02),
        Solid(hand, limb, skin, (0.022, 0.0, -0.03), (0.046, -0.012 * sign, -0.095), (0.017, 0.010), 0.015),
    ]
    if long_sleeves:
        return [
            *parts,
            Solid(
                upper,
                "shirt",
                start=(0.0, -0.016 * sign, -0.024),
                end=(0.0, 0.0, -0.325),
                radii=(0.059, 0.055),
                **sleeve,
            ),
            Solid(
                fore,
                f"{side} sleeve",
                start=(0.0, 0.0, 0.01),
                end=(0.0, 0.0, -0.25),
                radii=(0.057, 0.046),
                cut=(0.0, 0.0, -1.0, 0.238),
                **sleeve,
            ),
        ]
    return [
        *parts,
        Solid(
            upper,
            "shirt",
            start=(0.0, -0.016 * sign, -0.024),
            end=(0.0, 0.0, -0.26),
            radii=(0.059, 0.071),
            cut=(0.0, 0.0, -1.0, 0.195),
            **sleeve,
        ),
    ]


def _leg(side: str, sign: float) -> list[Solid]:
    thigh, shank = f"{side}_thigh", f"{side}_shank"
    cloth = dict(material=solids.TROUSERS)
    hem = (0.0, 0.0, -1.0, 0.405)
    lap = (0.0, 0.0, -1.0, 0.085)  # where the shirt lies on the thigh
    return [
        Solid(
            thigh, "shirt", solids.SHIRT, (0.0, 0.0, 0.0), (0.0, 0.0, -0.11), (0.103, 0.107), 0.05, 0.004, lap, "pelvis"
        ),
        Solid(
            thigh,
            "trousers",
            start=(0.0, -0.004 * sign, -0.02),
            end=(0.005, 0.0, -0.26),
            radii=(0.094, 0.081),
            blend=0.025,
            folds=0.003,
            **cloth,
        ),
        Solid(
            thigh,
            "trousers",
            start=(0.005, 0.0, -0.26),
            end=(0.004, 0.0, -0.428),
            radii=(0.081, 0.069),
            blend=0.02,
            folds=0.0035,
            **cloth,
        ),
        Solid(
            shank,
            f"{side} shank",
            start=(0.002, 0.0, 0.0),
            end=(-0.014, 0.0, -0.14),
            radii=(0.068, 0.069),
            blend=0.03,
            folds=0.0035,
            **cloth,
        ),
        Solid(
            shank,
            f"{side} shank",
            start=(-0.014, 0.0, -0.14),
            end=(-0.006, 0.0, -0.43),
            radii=(0.069, 0.061),
            blend=0.03,
            folds=0.004,
            cut=hem,
            **cloth,
        ),
    ]


def _shoe(side: str, sign: float) -> list[Solid]:
    foot, toes = f"{side}_foot", f"{side}_toes"

    def shoe(segment, start, end, radii, blend=0.015):
        turned = [(x, sign * y, z) for x, y, z in (start, end)]
        return Solid(segment, f"{side} shoe", solids.SHOE, turned[0], turned[1], radii, blend)

    return [
        shoe(foot, (-0.033, 0.012, -0.0433), (0.135, 0.024, -0.0448), (0.025, 0.0235)),
        shoe(foot, (-0.033, -0.012, -0.0433), (0.135, -0.022, -0.0448), (0.025, 0.0235)),
        shoe(foot, (-0.012, 0.0, 0.02), (-0.006, 0.0, -0.03), (0.042, 0.038), 0.02),
        shoe(foot, (0.01, 0.0, -0.012), (0.115, -0.002, -0.036), (0.040, 0.030), 0.02),
        shoe(toes, (-0.01, 0.022, 0.0018), (0.038, 0.014, 0.0), (0.0233, 0.0215)),
        shoe(toes, (-0.01, -0.021, 0.0018), (0.046, -0.012, 0.0), (0.0233, 0.0215)),
        shoe(toes, (-0.02, 0.0, 0.008), (0.03, -0.002, 0.003), (0.029, 0.024)),
    ]
