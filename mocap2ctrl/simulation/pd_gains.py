"""Gains of PD servos: the sets of Liu 2016, scaled to a character.

The paper's numbers are for its own body. Stiffness and damping here are multiplied by the ratio of mass times height squared,
which is how inertias of bodies of one shape compare, so that joints keep the paper's natural frequencies and damping. A joint whose
own inertia is too small for its spring, k_p Δt² > I, is given less of both: I is what it moves in the zero pose (hands, toes,
feet about their long axis). The spring is explicit in time, and one that a step cannot resolve is noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.types import Array

PAPER_MASS_KG, PAPER_HEIGHT_M = 62.0, 1.7
"""The paper's human model (Liu 2016, §6)."""

LEGS = ("hip", "knee", "ankle", "toe")
WAIST = ("spine",)
"""The paper's waist; the character's groups of hinges."""

USUAL = (500.0, 50.0)
GAIN_SETS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "locomotion": {},
    "stunts": dict.fromkeys(WAIST, (2000.0, 100.0)) | dict.fromkeys(LEGS, (1000.0, 50.0)),
}
"""k_p (N m/rad) and k_d (N m s/rad) by group, `USUAL` where a group is not named: sets (a) and (b) of Liu 2016, §6."""


@dataclass(frozen=True, eq=False)
class PdGains:
    """Gains of all hinges.

    Attributes:
        stiffness: (J,) k_p, N m/rad.
        damping: (J,) k_d, N m s/rad.
    """

    stiffness: Array
    damping: Array


def pd_gains(character: Character, name: str = "locomotion", time_step_s: float = PD_TIME_STEP_S) -> PdGains:
    """The set of gains called `name`, scaled to `character` and cut to what steps of `time_step_s` resolve.

    Raises:
        EngineError: no such set.
    """
    if name not in GAIN_SETS:
        raise EngineError(f"there are no PD gains {name!r}; choose one of {', '.join(GAIN_SETS)}")
    groups = [character.groups[g] for g in character.hinge_group]
    paper = np.array([GAIN_SETS[name].get(group, USUAL) for group in groups]).T
    size = (character.mass_kg / PAPER_MASS_KG) * (character.height_m / PAPER_HEIGHT_M) ** 2
    stiffness, damping = size * paper
    share = np.minimum(1.0, hinge_inertias(character) / (stiffness * time_step_s**2))
    return PdGains(share * stiffness, share * damping)


def hinge_inertias(character: Character) -> Array:
    """(J,) kg m^2: inertia of all that each hinge moves in the zero pose about its axis, armature included."""
    pose = character.zero_pose()
    origins, _ = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    inertias = []
    for hinge, moved in zip(character.hinges, character.hinge_segment, strict=True):
        total = character.armature
        for index in descendants(character, int(moved)):
            segment = character.segments[index]
            arm = np.cross(hinge.axis, origins[index] + segment.com - origins[moved])
            own = np.sum(hinge.axis**2 * segment.inertia)  # frames are parallel in the zero pose
            total += float(own + segment.mass * np.sum(arm**2))
        inertias.append(total)
    return np.array(inertias)


def descendants(character: Character, segment: int) -> list[int]:
    """Indices of a segment and all that hang on it."""
    found = [segment]
    for index, other in enumerate(character.segments):
        if index > segment and other.parent in found:
            found.append(index)
    return found
