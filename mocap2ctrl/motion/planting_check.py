"""Planting that is never worse than what it began with: contacts whose feet slide more or are farther off are left alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.motion.feet import Standing, standing_of, traces
from mocap2ctrl.motion.inverse_kinematics import State
from mocap2ctrl.motion.planting import plant
from mocap2ctrl.motion.runs import runs
from mocap2ctrl.types import Array, Masks, MotionClip

MORE_CM_S, MORE_MM = 2.0, 5.0
"""By how much more a contact may slide, or be off the ground, than before; one that hardly did either may do so a little."""
ROUNDS = 3
"""Contacts that are worse are let go; if that does not help, their feet; and if that does not, all."""

Spell = tuple[int, int, int]
"""Side, first frame and last, the last not included."""


def planted_or_left(clip: MotionClip, character: Character, standing: Masks) -> tuple[State, tuple[str, ...]]:
    """`plant`, without the contacts that it makes worse, which are told.

    Args:
        clip: the motion, on the ground.
        character: the body.
        standing: (T, 2, 2) whether heel and ball of the left and the right foot stand.

    Returns:
        root positions, root orientations and angles; and warnings.
    """
    state = (clip.root_position, clip.root_orientation, clip.angles)
    before, held = traces(character, state, clip.fps), standing
    told: dict[Spell, str] = {}
    for _ in range(ROUNDS):
        planted = plant(clip, character, held)
        worse = _worse(before, traces(character, planted, clip.fps), standing, clip.fps)
        if not worse:
            return planted, tuple(told.values())
        again = {side for side, first, last in worse if (side, first, last) in told}
        told = worse | told | {(side, 0, len(clip)): f"the {SIDES[side]} foot was not planted at all" for side in again}
        held = _without(held, [*worse, *((side, 0, len(clip)) for side in again)])
    return state, ("feet could not be planted without making them slide or float; they were left as they were",)


def _worse(before: tuple[Array, Array], after: tuple[Array, Array], standing: Masks, fps: float) -> dict[Spell, str]:
    """The contacts that slide more than before, or are farther from the ground, and a sentence on each."""
    found = {}
    for side, name in enumerate(SIDES):
        for first, last in runs(np.any(standing[:, side], axis=1)):
            part = _only(standing, (side, first, last))
            was, now = standing_of(before, part), standing_of(after, part)
            if _more(was, now):
                found[side, first, last] = (
                    f"the {name} foot was left as it was from {first / fps:.2f} to {(last - 1) / fps:.2f} s: planted, it "
                    f"would slide {_cm_s(was)} → {_cm_s(now)} cm/s, and be {was.height_mm:.0f} → {now.height_mm:.0f} mm off "
                    "the ground"
                )
    return found


def _more(was: Standing, now: Standing) -> bool:
    slid = (now.slide_cm_s or 0.0) > (was.slide_cm_s or 0.0) + MORE_CM_S
    return slid or (now.height_mm or 0.0) > (was.height_mm or 0.0) + MORE_MM


def _cm_s(standing: Standing) -> str:
    return "–" if standing.slide_cm_s is None else f"{standing.slide_cm_s:.0f}"


def _only(standing: Masks, spell: Spell) -> npt.NDArray[np.bool_]:
    side, first, last = spell
    part = np.zeros_like(standing)
    part[first:last, side] = standing[first:last, side]
    return part


def _without(standing: Masks, left: list[Spell]) -> npt.NDArray[np.bool_]:
    held = standing.copy()
    for side, first, last in left:
        held[first:last, side] = False
    return held
