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

# Rotations that bring an axis to z and keep the frame right-handed: cyclic exchanges of the axes, half turns for negative ones.
_TO_Z_UP: dict[str, Array] = {
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "y": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "z": np.eye(3),
}
_TO_Z_UP |= {f"-{axis}": np.diag([1.0, -1.0, -1.0]) @ turn for axis, turn in _TO_Z_UP.items()}
UP_AXES = tuple(_TO_Z_UP)
_AXIS_NAMES = "xyz"
_CLEAR = 0.8
LYING = 0.8
"""Leg lengths by which the lowest joint of a body rises and falls only if what was taken for up is none."""
LIKELY_HEIGHTS_M = (0.8, 2.4)


@dataclass(frozen=True)
class Scale:
    """What a file's numbers mean.

    Attributes:
        unit: its name, `unknown` where the body's height fits none.
        unit_m: metres a unit.
        up: the up axis, `-y` for example.
        leg: hip to knee to ankle in file units.
        said: which of `unit` and `up` the user or the format states; the others are inferred.
        warnings: doubts.
    """

    unit: str
    unit_m: float
    up: str
    leg: float
    said: frozenset[str]
    warnings: tuple[str, ...]


def infer_scale(
    source: SourceMotion, joints: JointMap, path: str, unit: tuple[str, float] | None = None, up: str | None = None
) -> Scale:
    """The unit and up axis of a motion, where they are not given: `unit` as name and metres.

    Raises:
        MotionFileError: the legs have no length.
    """
    leg = leg_length(source, joints)
    if not leg > 0:
        raise MotionFileError(f"{path}: the legs have no length; the skeleton's offsets are zero")
    up_axis, warnings = (up, _doubt_up(source, joints, up)) if up is not None else _infer_up(source, joints)
    name, metres, doubt = (
        _infer_unit(source, leg) if unit is None else (*unit, _giant(leg / LEG_SHARE * unit[1], unit[0]))
    )
    said = {"unit": unit is not None or source.unit_m is not None, "up": up is not None or source.up is not None}
    return Scale(name, metres, up_axis, leg, frozenset(what for what, known in said.items() if known), warnings + doubt)


def _giant(height_m: float, unit: str) -> tuple[str, ...]:
    low, high = LIKELY_HEIGHTS_M
    if low <= height_m <= high:
        return ()
    return (
        f"in the unit that was given, {unit}, the body is {height_m:.3g} m tall; leave --unit out to have it inferred",
    )


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


def _doubt_up(source: SourceMotion, joints: JointMap, up: str) -> tuple[str, ...]:
    """What speaks against the up axis that was given: the file's format, or else how the body stands."""
    if source.up is not None:
        if up == source.up:
            return ()
        return (
            f"the up axis that was given, {up}, is not the one that the file states, {source.up}; leave --up out to use that",
        )
    inferred, uncertain = _infer_up(source, joints)
    if uncertain or up == inferred:
        return ()
    return (
        f"with the up axis that was given, {up}, the body does not stand: it seems to along {inferred}; leave --up out to have "
        "it inferred",
    )


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
    """The axis that the body stands along in motion, else in its rest pose."""
    if source.up is not None:
        return source.up, ()
    moving = _body_axis(source.positions, joints)
    rest = _body_axis(rest_positions(source)[None], joints)
    lying = _clear_axis(rest) if _clear_axis(rest) != _clear_axis(moving) and _lies(source, joints, moving) else None
    for axis in (lying, _clear_axis(moving), _clear_axis(rest)):
        if axis is not None:
            upside_down = axis.startswith("-") and rest[_AXIS_NAMES.index(axis[-1])] > 0.0
            return axis[-1] if upside_down else axis, ()
    axis = _AXIS_NAMES[int(np.argmax(moving + rest + np.array([0.0, 0.2, 0.1])))]
    return axis, (f"the up axis is uncertain, since the body hardly stands in this file; {axis} was taken: see --up",)


def _clear_axis(direction: Array) -> str | None:
    """The axis that a direction (3,) is near to, `-y` for example; None if none."""
    axis = int(np.argmax(np.abs(direction)))
    return None if abs(direction[axis]) <= _CLEAR else f"{'-' if direction[axis] < 0.0 else ''}{_AXIS_NAMES[axis]}"


def _lies(source: SourceMotion, joints: JointMap, direction: Array) -> bool:
    """Whether the body, which points along `direction`, travels or is carried along it: it crawls, and does not stand.

    Somebody who stands keeps the lowest joint at one height; the lowest joint of somebody who crawls goes with the body.
    """
    heights = source.positions @ direction
    lowest = np.min(heights[:, list(joints.limbs.values())], axis=1)
    return float(np.percentile(lowest, 95) - np.percentile(lowest, 5)) > LYING * leg_length(source, joints)


def _body_axis(positions: Array, joints: JointMap) -> Array:
    """(3,) mean direction from the ankles to the shoulders, shorter than 1 where it varies."""
    ankles = 0.5 * (positions[:, joints.limbs["left", "ankle"]] + positions[:, joints.limbs["right", "ankle"]])
    shoulders = 0.5 * (positions[:, joints.limbs["left", "shoulder"]] + positions[:, joints.limbs["right", "shoulder"]])
    direction = shoulders - ankles
    length = np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(np.mean(direction / np.maximum(length, 1e-12), axis=0))
