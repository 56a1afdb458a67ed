"""When the feet of a gait come down: where its fragments must end for contacts to reset its phase (Liu 2016, §6.1)."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.graph.fragments import FEET
from mocap2ctrl.motion.clips import at_times
from mocap2ctrl.motion.runs import runs
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.foot_height import foot_heights, foot_of
from mocap2ctrl.types import MotionClip

ON_GROUND_M = 0.002
"""How far above the ground, or above where it usually rests if that is higher, a foot still stands."""
RESTS_PERCENT, NEAR_M = 10.0, 0.05
"""Share of a foot's heights that are below where it rests, and how high that may be: a foot that rests higher stands on nothing."""
GAP_S = 0.05
"""A foot that leaves the ground for less has not left it."""
SWING_S = 0.1
"""A foot must have been in the air for this long before it comes down."""


class Touchdown(NamedTuple):
    """A foot that comes down in each period of a loop: its segment, and when, seconds from the loop's begin."""

    foot: str
    time_s: float


def touchdowns(loop: MotionClip, character: Character) -> tuple[Touchdown, ...]:
    """When the longest stance of each foot begins, in order of time; a foot that does not swing has no touchdown.

    A foot that scuffs the ground in mid-swing does not come down: only the longest contact of a period counts.

    Args:
        loop: one period, closed.
        character: whose motion it is.
    """
    count = round(loop.duration_s / PD_TIME_STEP_S)
    times_s = np.arange(count) * loop.duration_s / count
    dense = at_times(loop, times_s)
    qpos = np.concatenate([dense.root_position, dense.root_orientation, dense.angles], axis=1)
    found = []
    for name in FEET:
        heights = foot_heights(foot_of(character, name), qpos)
        rests_m = max(0.0, float(np.percentile(heights, RESTS_PERCENT)))
        stands = (heights <= rests_m + ON_GROUND_M) & (rests_m < NEAR_M)
        if (begin := _longest_stance(stands)) is not None:
            found.append(Touchdown(name, float(times_s[begin])))
    return tuple(sorted(found, key=lambda touchdown: touchdown.time_s))


def _longest_stance(stands: np.ndarray) -> int | None:
    """The sample at which the longest stance begins of a foot that stands in those samples of a period; None without a swing."""
    swings = [(a, b) for a, b in runs(np.tile(~stands, 3)) if b - a >= GAP_S / PD_TIME_STEP_S]
    swings = [(a, b) for a, b in swings if a > 0 and b < 3 * len(stands)]
    stances = [(after[0] - before[1], before) for before, after in pairwise(swings)]
    if not stances:
        return None
    _, (lifted, down) = max(stances, key=lambda stance: (stance[0], -stance[1][1]))
    return down % len(stands) if down - lifted >= SWING_S / PD_TIME_STEP_S else None
