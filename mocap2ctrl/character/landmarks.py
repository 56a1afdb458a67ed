"""Points of a body that detectors and people can point at, where they are on a character, and how exactly that is known.

A detector's joint is a place in a picture that people have agreed on, not a joint centre: its hips lie on the surface, its head is
a nose and ears. `sigma_m` holds how far the two are apart, and how far detectors err, together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.types import Array

_JOINTS_M = {
    "pelvis": 0.06,
    "neck": 0.05,
    "head": 0.05,
    "shoulder": 0.05,
    "elbow": 0.04,
    "wrist": 0.04,
    "hip": 0.07,
    "knee": 0.045,
    "ankle": 0.045,
}
"""Standard deviations, metres, of the character's own evaluation points."""

_PLACES: dict[str, tuple[str, tuple[float, float, float], float]] = {
    "nose": ("head", (0.39, 0.0, 0.54), 0.05),
    "head_top": ("head", (0.03, 0.0, 1.0), 0.06),
    "eye": ("head", (0.32, 0.1, 0.62), 0.05),
    "ear": ("head", (0.08, 0.26, 0.57), 0.05),
    "big_toe": ("toes", (0.8, -0.45, 0.0), 0.05),
    "small_toe": ("toes", (0.35, 0.6, 0.0), 0.05),
    "heel": ("foot", (-0.26, 0.0, -0.26), 0.05),
}
"""Segment, place in its frame in units of its length (of the left side), and standard deviation in metres.

Measured off the character's own head and shoes.
"""

_MIDDLE = ("pelvis", "neck", "head", "nose", "head_top")

LANDMARKS = tuple(
    name
    for part in (*_JOINTS_M, *_PLACES)
    for name in ((part,) if part in _MIDDLE else tuple(f"{side}_{part}" for side in SIDES))
)
"""Names of all of them; the character's evaluation points are among them."""


class Landmarks(NamedTuple):
    """K points on a body.

    Attributes:
        segment: (K,) that each belongs to.
        local: (K, 3) in that segment's frame, metres.
        sigma_m: (K,) standard deviation of what is seen from the point, metres.
    """

    segment: npt.NDArray[np.int64]
    local: Array
    sigma_m: Array


def landmarks_of(character: Character, names: tuple[str, ...]) -> Landmarks:
    """Where the points called `names` are on `character`.

    Raises:
        Mocap2CtrlError: there is no such point.
    """
    found = [_landmark(character, name) for name in names]
    segment, local, sigma = zip(*found, strict=True) if found else ((), (), ())
    return Landmarks(np.array(segment, np.int64), np.array(local).reshape(-1, 3), np.array(sigma, float))


def _landmark(character: Character, name: str) -> tuple[int, Array, float]:
    side = next((side for side in SIDES if name.startswith(f"{side}_")), "")
    part = name.removeprefix(f"{side}_")
    if name not in LANDMARKS:
        raise Mocap2CtrlError(f"there is no point {name!r} on a body; known are {', '.join(LANDMARKS)}")
    if part in _JOINTS_M:
        point = next(p for p in character.evaluation_points if p.name == name)
        return point.segment, np.asarray(point.at), _JOINTS_M[part]
    owner, place, sigma = _PLACES[part]
    index = character.segment_index(owner if owner == "head" else f"{side}_{owner}")
    length = float(np.linalg.norm(character.segments[index].tip))
    mirror = np.array([1.0, -1.0 if side == "right" else 1.0, 1.0])
    return index, length * mirror * np.array(place), sigma
