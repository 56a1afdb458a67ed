"""What unit and axes a file's points have: as the file says, if that makes a person who stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.marker_track import MarkerTrack, Points, seen
from mocap2ctrl.motion.units import to_z_up
from mocap2ctrl.types import Array

LEG_M = (0.35, 1.3)
"""From the pelvis' landmarks over the knee to the ankle: a child's, and a giant's."""
CLEAR = 0.8
"""Cosine between the body and an axis, on average, from which on the body tells which axis is up."""
_USUAL_UP = {"c3d": "z", "trc": "y"}
_LOW = ("ankle", "lateral ankle", "heel", "toe")
_HIGH = ("hip", "asis", "psis", "shoulder", "acromion")


@dataclass(frozen=True, eq=False)
class Metric:
    """Points in metres, z up.

    Attributes:
        points: (T, 3) by landmark.
        unit_m: metres a unit of the file.
        up: the file's up axis; if it points down there, the motion was turned over.
        notes: where the file was not believed.
    """

    points: Points
    unit_m: float
    up: str
    notes: tuple[str, ...]


def in_metres(track: MarkerTrack, marks: Points) -> Metric:
    """Landmarks' places (T, 3) in metres, z up.

    Raises:
        MotionFileError: they fit no person in any unit.
    """
    unit_m, doubts = _unit(track, marks)
    up, downwards, more = _up(track, marks)
    turn = to_z_up(up) @ np.diag(_half_turn(up) if downwards else np.ones(3))
    return Metric({name: places @ turn.T * unit_m for name, places in marks.items()}, unit_m, up, (*doubts, *more))


def _middle(marks: Points, parts: tuple[str, ...]) -> Array:
    """(T, 3) the mean of the landmarks of both sides that are seen."""
    there = [marks[f"{side} {part}"] for side in SIDES for part in parts if f"{side} {part}" in marks]
    return np.asarray(np.mean(there, axis=0))


def _unit(track: MarkerTrack, marks: Points) -> tuple[float, tuple[str, ...]]:
    """Metres a unit: as the file says, unless the body would be no person's."""
    pelvis = _middle(marks, ("hip", "asis", "psis"))
    knee, ankle = _middle(marks, ("knee", "lateral knee")), _middle(marks, ("ankle", "lateral ankle"))
    lengths = np.linalg.norm(knee - pelvis, axis=-1) + np.linalg.norm(ankle - knee, axis=-1)
    if not np.isfinite(lengths).any():
        raise MotionFileError(f"{track.source}: pelvis, knees and ankles are never seen together")
    leg = float(np.nanmedian(lengths))
    if track.unit_m is not None and LEG_M[0] < leg * track.unit_m < LEG_M[1]:
        return track.unit_m, ()
    for unit_m in (1.0, 0.01, 0.001):
        if LEG_M[0] < leg * unit_m < LEG_M[1]:
            said = (
                "states none"
                if track.unit_m is None
                else f"states {track.unit_m:g} m, in which a leg is {leg * track.unit_m:.3g} m"
            )
            return unit_m, (f"{unit_m:g} m was taken as unit of length from the legs' size; the file {said}",)
    raise MotionFileError(
        f"{track.source}: a leg {leg:.3g} units long fits no person in m, cm or mm; are the labels right?"
    )


def _up(track: MarkerTrack, marks: Points) -> tuple[str, bool, tuple[str, ...]]:
    """The up axis, whether it points down, and doubts: as the file says, else by the body where it stands."""
    body = _body_axis(marks)
    if track.up is not None:
        doubts = (f"the file says that {track.up} is up, but the body lies along {body}; is it so?",)
        return track.up, False, doubts if body not in (None, track.up) else ()
    if body is None:
        up = _USUAL_UP[track.format]
        return up, False, (f"the body hardly stands in this file; {up} was taken as the up axis",)
    down = body.startswith("-")
    return body[-1], down, (f"the {body[-1]} axis points down; the motion was turned over",) if down else ()


def _body_axis(marks: Points) -> str | None:
    """The axis, `z` or `-z` and so on, along which the body lies from its feet upwards; None where it varies."""
    line = _middle(marks, _HIGH) - _middle(marks, _LOW)
    line = line[seen(line)]
    length = np.linalg.norm(line, axis=-1, keepdims=True)
    mean = np.mean(line / np.maximum(length, 1e-12), axis=0) if len(line) else np.zeros(3)
    axis = int(np.argmax(np.abs(mean)))
    if abs(mean[axis]) < CLEAR:
        return None
    return ("-" if mean[axis] < 0.0 else "") + "xyz"[axis]


def _half_turn(up: str) -> Array:
    """The diagonal of half a turn that reverses an axis."""
    return np.where(np.arange(3) == ("xyz".index(up) + 1) % 3, 1.0, -1.0)
