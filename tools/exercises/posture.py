"""Postures as a trainer would say them: where the feet stand, how low the hips are, what trunk and arms do."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

import numpy as np

from mocap2ctrl.types import Array


@dataclass(frozen=True)
class Arm:
    """An arm's angles in degrees, of the hinges of those names; all zero hangs down.

    Attributes:
        aside: shoulder abduction; 90 is level, 180 overhead.
        forward: shoulder flexion.
        inward: internal rotation; a raised elbow points its forearm up at -90.
        elbow: flexion.
        cocked: radial deviation of the wrist.
    """

    aside: float = 6.0
    forward: float = 0.0
    inward: float = 0.0
    elbow: float = 12.0
    cocked: float = 0.0


@dataclass(frozen=True)
class Foot:
    """Where a foot is, on its own side of the hips; lengths are fractions of body height, angles degrees.

    Attributes:
        ahead: of the hip.
        aside: outwards of the hip.
        lift: of the ball above the ground.
        out: how far the toes point outwards.
        heel: how far the heel is turned up about the ball.
    """

    ahead: float = 0.0
    aside: float = 0.01
    lift: float = 0.0
    out: float = 8.0
    heel: float = 0.0


@dataclass(frozen=True)
class Posture:
    """A whole body; lengths are fractions of body height, angles degrees.

    Attributes:
        left_arm, right_arm, left_foot, right_foot: limbs.
        drop: how much lower the hips are than standing.
        back: how far the hips are behind the point that the feet are placed from.
        shift: how far the hips are to the left of it.
        tip: of the pelvis forward.
        list_left: of the pelvis to its left.
        turn: of the pelvis to its left about the vertical.
        bend, lean, twist: of the trunk forward, to its left, and about itself to the left; chest and abdomen share them.
        nod: of the head forward.
    """

    left_arm: Arm = field(default_factory=Arm)
    right_arm: Arm = field(default_factory=Arm)
    left_foot: Foot = field(default_factory=Foot)
    right_foot: Foot = field(default_factory=Foot)
    drop: float = 0.005
    back: float = 0.0
    shift: float = 0.0
    tip: float = 0.0
    list_left: float = 0.0
    turn: float = 0.0
    bend: float = 0.0
    lean: float = 0.0
    twist: float = 0.0
    nod: float = 0.0

    def numbers(self) -> Array:
        """(P,) all numbers, in one order."""
        parts = [np.atleast_1d(part) for part in astuple(self)]
        return np.concatenate(parts).astype(float)


def posture_of(numbers: Array) -> Posture:
    """The posture of numbers (..., P); with more than one row its fields are arrays (...,)."""
    columns = list(np.moveaxis(np.asarray(numbers, float), -1, 0))
    limbs = [_take(columns, kind) for kind in (Arm, Arm, Foot, Foot)]
    return Posture(*limbs, *columns)


def _take(columns: list[Array], kind: type) -> object:
    count = len(kind.__dataclass_fields__)
    values, columns[:count] = columns[:count], []
    return kind(*values)
