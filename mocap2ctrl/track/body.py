"""The tracker's factors of the body as a character of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mocap2ctrl.character.kinematics import lowest_points, segment_frames
from mocap2ctrl.character.model import Character, parse_character
from mocap2ctrl.character.shape import TRUNK
from mocap2ctrl.track.tree import BUILD, limb_factors
from mocap2ctrl.types import Array

IN_SEGMENT = ("tip", "marker", "com", "gyration")


def reshaped(character: Character, body: Array) -> Character:
    """`character` with the lengths of its limbs and the radii of its trunk changed by the factors `body` (G,) of `BODY`.

    Masses stay, and so do all other radii: the girth is that of the clothes.
    """
    factors = limb_factors(character, body)
    by_name = dict(zip(character.segment_names, factors, strict=True))
    wide = {name: float(body[BUILD]) if name in TRUNK else 1.0 for name in by_name}
    segments = [_reshaped_segment(entry, by_name, wide[entry["name"]]) for entry in character.description["segment"]]
    points = [
        {**entry, "at": _times(entry["at"], by_name[entry["segment"]])}
        for entry in character.description["evaluation_point"]
    ]
    description = {**character.description, "segment": segments, "evaluation_point": points}
    return _standing(parse_character(description, character.name))


def _reshaped_segment(entry: Mapping[str, Any], factors: Mapping[str, float], wide: float) -> dict[str, Any]:
    own = factors[entry["name"]]
    capsules = [
        {"from": _times(c["from"], own), "to": _times(c["to"], own), "radius": wide * c["radius"]}
        for c in entry["capsules"]
    ]
    inside = {key: _times(entry[key], own) for key in IN_SEGMENT}
    return {
        **entry,
        **inside,
        "capsules": capsules,
        "offset": _times(entry["offset"], factors.get(entry["parent"], 1.0)),
    }


def _times(values: Any, factor: float) -> list[float]:
    return [float(v) * float(factor) for v in values]


def _standing(character: Character) -> Character:
    """The character with its root so high that the soles of the zero pose are on the ground."""
    pose = character.zero_pose()
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    sunk = float(np.min(lowest_points(character, *frames)))
    root, *others = character.description["segment"]
    x, y, z = root["offset"]
    root = {**root, "offset": [x, y, z - sunk / character.height_m]}
    return parse_character({**character.description, "segment": [root, *others]}, character.name)
