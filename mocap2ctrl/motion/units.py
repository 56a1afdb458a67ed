"""Infers a file's up axis and length unit, and turns its motion z up. Formats that state them are believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.names import JointMap
from mocap2ctrl.motion.source import SourceMotion, rest_positions
from mocap2ctrl.types import Array

LEG_SHARE = 0.491
"""Hip to knee to ankle, as a share of body height (Winter, figure 4.1)."""

# Unit, metres, and the body heights in that unit that speak for it; CMU's unit is 1/0.45 inch.
UNITS: tuple[tuple[str, float, float, float], ...] = (
    ("m", 1.0, 0.8, 2.4),
    ("ft", 0.3048, 2.6, 7.9),
    ("dm", 0.1, 8.0, 17.0),
    ("cmu", 0.0254 / 0.45, 17.0, 38.0),
    ("inch", 0.0254, 38.0, 85.0),
    ("cm", 0.01, 85.0, 240.0),
    ("mm", 0.001, 800.0, 2400.0),
)

# Rotations that bring an axis to z and keep the frame right-handed: cyclic exchanges of the axes.
_TO_Z_UP: dict[str, Array] = {
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "y": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "z": np.eye(3),
}
_AXIS_NAMES = "xyz"
_CLEAR = 0.8


@dataclass(frozen=True)
class Scale:
    """What a file's numbers mean: unit name, metres a unit, up axis, leg length in file units, and doubts."""

    unit: str
    unit_m: float
    up: str
    leg: float
    warnings: tuple[str, ...]


def infer_scale(source: SourceMotion, joints: JointMap, path: str) -> Scale:
    """The unit and up axis of a motion.

    Raises:
        MotionFileError: the legs have no length.
    """
    leg = leg_length(source, joints)
    if not leg > 0:
        raise MotionFileError(f"{path}: the legs have no length; the skeleton's offsets are zero")
    up, warnings = _infer_up(source, joints)
    unit, unit_m, doubt = _infer_unit(source, leg)
    return Scale(unit, unit_m, up, leg, warnings + doubt)


def leg_length(source: SourceMotion, joints: JointMap) -> float:
    """Hip to knee to ankle in file units, averaged over the sides, the median over time."""
    total = np.zeros(len(source))
    for side in ("left", "right"):
        hip, knee, ankle = (source.positions[:, joints.limbs[side, part]] for part in ("hip", "knee", "ankle"))
        total += np.linalg.norm(knee - hip, axis=1) + np.linalg.norm(ankle - knee, axis=1)
    return float(np.median(total) / 2.0)


def to_z_up(up: str) -> Array:
    """(3, 3) the rotation that brings the axis `up` to z."""
    return _TO_Z_UP[up]


def z_up(source: SourceMotion, up: str) -> tuple[Array, Array, Array]:
    """Positions (T, N, 3) and orientations (T, N, 4) with z up, in file units; and the turn (4,) that made them so."""
    turn = _TO_Z_UP[up]
    quaternion = rotations.from_matrix(turn)
    return source.positions @ turn.T, rotations.multiply(quaternion, source.orientations), quaternion


def _infer_unit(source: SourceMotion, leg: float) -> tuple[str, float, tuple[str, ...]]:
    if source.unit_m is not None:
        name = next((name for name, metres, _, _ in UNITS if metres == source.unit_m), "file")
        return name, source.unit_m, ()
    height = leg / LEG_SHARE
    for name, metres, low, high in UNITS:
        if low <= height < high:
            return name, metres, ()
    doubt = f"a body {height:.3g} file units tall fits no known unit; the motion is scaled by its leg length"
    return "unknown", 1.75 / height, (doubt,)


def _infer_up(source: SourceMotion, joints: JointMap) -> tuple[str, tuple[str, ...]]:
    if source.up is not None:
        return source.up, ()
    moving = _body_axis(source.positions, joints)
    rest = _body_axis(rest_positions(source)[None], joints)
    for direction in (moving, rest):
        axis = int(np.argmax(direction))
        if direction[axis] > _CLEAR:
            return _AXIS_NAMES[axis], ()
    axis = int(np.argmax(moving + rest + np.array([0.0, 0.2, 0.1])))
    up = _AXIS_NAMES[axis]
    return up, (f"the up axis is uncertain, since the body hardly stands in this file; {up} was taken",)


def _body_axis(positions: Array, joints: JointMap) -> Array:
    """(3,) mean direction from the ankles to the shoulders, shorter than 1 where it varies."""
    ankles = 0.5 * (positions[:, joints.limbs["left", "ankle"]] + positions[:, joints.limbs["right", "ankle"]])
    shoulders = 0.5 * (positions[:, joints.limbs["left", "shoulder"]] + positions[:, joints.limbs["right", "shoulder"]])
    direction = shoulders - ankles
    length = np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(np.mean(direction / np.maximum(length, 1e-12), axis=0))
