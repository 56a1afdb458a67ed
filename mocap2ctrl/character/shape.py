"""The body as the eye sees it: the character's capsules, and flesh that joins them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import points_world
from mocap2ctrl.character.model import SIDES, Capsule, Character, Segment
from mocap2ctrl.geometry.camera import world_to_camera
from mocap2ctrl.geometry.rasteriser import pinhole_parameters
from mocap2ctrl.types import Array, Camera

TRUNK = ("pelvis", "abdomen", "chest")
"""Segments that a stout build makes thick."""

BARE = ("hand", "foot", "toes")
"""Segments that are as thick in wide clothes as in tight ones."""

THICK_M = 0.06
"""Metres that a girth of 2 adds all round on a body of `TALL_M`, and to others in proportion.

Clothes lie as thick on arms as on trunks, and masks that are wide are so everywhere.
"""
TALL_M = 1.75

RELAXED = 0.8
"""Length of a hand whose fingers hang, as a share of a stretched one's; collision shapes are stretched."""


@dataclass(frozen=True, eq=False)
class BodyShape:
    """The C capsules of a character that can be seen, flat.

    Attributes:
        owner: (C,) segment that each belongs to.
        local: (C, 2, 3) ends in that segment's frame, metres.
        radii: (C,) metres, of girth 1.
        worn: (C,) metres that a girth of 2 adds; 0 where nobody wears clothes.
        trunk: (C,) metres that a build of 2 adds: a trunk's own radii, and 0 elsewhere.
    """

    owner: npt.NDArray[np.int64]
    local: Array
    radii: Array
    worn: Array
    trunk: Array

    def radii_at(self, girth: float) -> Array:
        """(C,) metres, of a body of such a girth: 1 is the character's own; see `thickness`."""
        return np.asarray(self.radii + self.worn * (girth - 1.0))


@lru_cache(maxsize=8)
def body_shape(character: Character) -> BodyShape:
    """The shape of `character`, with waist, shoulders and hips filled in, which collision shapes leave open, and relaxed hands."""
    owner: list[int] = []
    wide: list[bool] = []
    capsules: list[Capsule] = []
    for index, segment in enumerate(character.segments):
        waist, joints = _flesh(character, index)
        for here, grows in (([*_relaxed(segment), *waist], segment.name in TRUNK), (joints, False)):
            capsules += here
            owner += [index] * len(here)
            wide += [grows] * len(here)
    local = np.array([[capsule.start, capsule.end] for capsule in capsules])
    radii = np.array([capsule.radius for capsule in capsules])
    clothed = np.array([not character.segments[index].name.endswith(BARE) for index in owner])
    return BodyShape(np.array(owner), local, radii, clothed * thickness(character, 2.0), np.array(wide) * radii)


def thickness(character: Character, girth: float) -> float:
    """Metres that a girth adds all round, but to hands and feet."""
    return (girth - 1.0) * THICK_M * (character.height_m / TALL_M)


def _relaxed(segment: Segment) -> list[Capsule]:
    """The capsules of a segment; a hand's own, which is the first, as short as relaxed fingers make it."""
    if not segment.name.endswith("hand"):
        return list(segment.capsules)
    own = [Capsule(c.start, c.start + RELAXED * (c.end - c.start), c.radius) for c in segment.capsules[:1]]
    return [*own, *segment.capsules[1:]]


def capsule_ends(shape: BodyShape, positions: Array, orientations: Array) -> Array:
    """World positions (..., C, 2, 3) of the capsules' ends, from segment positions (..., S, 3) and orientations (..., S, 4)."""
    segment = np.repeat(shape.owner, 2)
    ends = points_world(positions, orientations, segment, shape.local.reshape(-1, 3))
    return ends.reshape(*ends.shape[:-2], -1, 2, 3)


class SeenBody(NamedTuple):
    """A shape and the camera that sees it, as compiled functions take them.

    Attributes:
        turn, shift: (3, 3) and (3,) world to camera.
        pinhole: (4,) focal lengths and principal point, pixels.
        owner, local, radii, worn, trunk: the capsules as in `BodyShape`, radii with the person's girth.
    """

    turn: Array
    shift: Array
    pinhole: Array
    owner: npt.NDArray[np.int64]
    local: Array
    radii: Array
    worn: Array
    trunk: Array


def seen_body(character: Character, camera: Camera, girth: float = 1.0) -> SeenBody:
    """The arrays of `character`'s shape, of a girth, seen by `camera`, an ideal pinhole."""
    shape = body_shape(character)
    return SeenBody(  # copies throughout: read-only arrays are another type to numba
        turn=np.array(world_to_camera(camera)),
        shift=np.array(camera.translation),
        pinhole=pinhole_parameters(camera),
        owner=np.array(shape.owner),
        local=np.array(shape.local),
        radii=shape.radii_at(girth),
        worn=np.array(shape.worn),
        trunk=np.array(shape.trunk),
    )


def _flesh(character: Character, index: int) -> tuple[list[Capsule], list[Capsule]]:
    """Capsules that close the waist, and those that join shoulders and hips to the trunk."""
    part = character.segments[index]
    waist: list[Capsule] = []
    joints: list[Capsule] = []
    if part.name.startswith(SIDES):
        return waist, joints
    for child in (s for s in character.segments if s.parent == index):
        if child.name.startswith(SIDES):
            root = child.offset * np.array([1.0, 0.35, 0.9])
            joints.append(Capsule(root, child.offset, 1.12 * child.capsules[0].radius))
        elif child.group == part.group or part.parent < 0:
            near = (part.capsules[0], child.capsules[0])
            half = 0.5 * (abs(near[0].start[1]) + abs(near[1].start[1])) * np.array([0.0, 1.0, 0.0])
            radius = 0.94 * min(capsule.radius for capsule in near)
            waist.append(Capsule(child.offset - half, child.offset + half, radius))
    return waist, joints
