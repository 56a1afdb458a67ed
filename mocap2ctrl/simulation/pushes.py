"""Pushes: forces from outside on a schedule, which engines' loops know as a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array

ROW = 7
"""First step, steps, steps from start to start, segment, force: a push as loops know it."""
NEVER_AGAIN = 2.0**40

DIRECTIONS = {"front": (-1.0, 0.0, 0.0), "rear": (1.0, 0.0, 0.0), "left": (0.0, -1.0, 0.0), "right": (0.0, 1.0, 0.0)}
"""Where a push comes from, and its direction in the heading frame: x forward, y left."""


@dataclass(frozen=True, eq=False)
class Push:
    """A force on a segment's centre of mass, once or again and again.

    Attributes:
        segment: index of the segment.
        force: (3,) N, world.
        start_s, duration_s: seconds of simulated time.
        period_s: from one start to the next; infinite for a single push.
    """

    segment: int
    force: Array
    start_s: float
    duration_s: float
    period_s: float = np.inf

    def starts_before(self, end_s: float) -> Array:
        """(N,) when it begins, up to `end_s`, seconds."""
        if not np.isfinite(self.period_s):
            return np.array([self.start_s])[: int(self.start_s < end_s)]
        return np.arange(self.start_s, end_s, self.period_s)

    def row(self, time_step_s: float) -> list[float]:
        """What a loop with such steps has to know of it: `ROW` numbers."""
        first, steps = round(self.start_s / time_step_s), round(self.duration_s / time_step_s)
        period = round(self.period_s / time_step_s) if np.isfinite(self.period_s) else NEVER_AGAIN
        return [first, steps, period, self.segment, *self.force]


def force_from(side: str, newtons: float, heading: float) -> Array:
    """(3,) N, world: a horizontal push from a side of a body that faces `heading`; see `DIRECTIONS`."""
    return rotations.rotate(rotations.yaw(heading), newtons * np.array(DIRECTIONS[side]))


def push_table(common: Sequence[Push], own: Sequence[Sequence[Push]], machines: int, time_step_s: float) -> Array:
    """(P, N, ROW) pushes of P simulations: those that are `common` to all, and each one's `own`; unused rows last no step."""
    each = [[*common, *(own[p] if own else ())] for p in range(machines)]
    table = np.zeros((machines, max((len(rows) for rows in each), default=0), ROW))
    table[..., 2] = 1.0
    for rows, pushes in zip(table, each, strict=True):
        for row, push in zip(rows, pushes, strict=False):
            row[:] = push.row(time_step_s)
    return table
