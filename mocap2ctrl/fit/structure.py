"""Structures of controllers: chains of stages, exits on touchdown, cycles (Vondrak §4.1.3, §5.1.3).

The two transformations of Algorithm 4, as plain functions: T_perp moves exits on time to the touchdowns that are near them, T_inf
closes a chain whose touchdowns repeat to a cycle. What they give is still to be optimised.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.control.controller import EXIT_TIME_RANGE_S, Controller
from mocap2ctrl.types import Array

REACH_S = 0.2
"""An exit on time may move so far to a touchdown (§5.1.3)."""

SWING_S = 0.15
"""A foot that was in the air for less did not swing; it chattered, and putting it down is no event to wait for."""

SIDES = ("left", "right")


class Step(NamedTuple):
    """One state of a chain that is to be grown.

    Attributes:
        end_frame: where it ends, in the target's frames.
        contact: `left` or `right` where the touchdown of that foot ends it; empty for an end on time.
    """

    end_frame: int
    contact: str = ""


class Touchdown(NamedTuple):
    """A foot that comes down after a swing.

    Attributes:
        frame: the first one in which it is loaded again.
        side: `left` or `right`.
    """

    frame: int
    side: str


def chain_steps(frames: int, fps: float, stage_s: float, errors: Array | None = None) -> list[Step]:
    """Stages of `stage_s` or a little more in the mean over `frames` frames (Algorithm 3, line 1), all left on time.

    Args:
        frames: of the clip.
        fps: frames a second.
        stage_s: T_s, seconds.
        errors: (T, T) what a state costs from one frame to a later one, of which the sum is to be least; None for equal stages.
    """
    return [Step(end) for end in _ends(0, frames - 1, stages_of(frames, fps, stage_s), errors)]


def stages_of(frames: int, fps: float, stage_s: float) -> int:
    """How many stages of `stage_s` or a little more there are in `frames` frames, none longer or shorter than `state_frames`."""
    shortest, longest = state_frames(fps)
    wanted = max(int((frames - 1) / fps / stage_s + 1e-9), -(-(frames - 1) // longest))
    return max(1, min(wanted, (frames - 1) // shortest))


def state_frames(fps: float) -> tuple[int, int]:
    """Frames that a state which is left on time has at least and at most."""
    least_s, most_s = EXIT_TIME_RANGE_S
    return math.ceil(least_s * fps - 1e-9), int(most_s * fps + 1e-9)


def _ends(begin: int, end: int, count: int, errors: Array | None) -> list[int]:
    """Last frames of `count` states between two frames: those with the least errors; equal ones where none are allowed."""
    best = None if errors is None else _best_ends(errors[begin : end + 1, begin : end + 1], count)
    if best is None:
        return [begin + round((end - begin) * (k + 1) / count) for k in range(count)]
    return [begin + at for at in best]


def _best_ends(errors: Array, count: int) -> list[int] | None:
    """Last frames of `count` states from the first frame to the last whose errors (T, T) sum to the least: Bellman's way."""
    frames = len(errors)
    least = np.full((count + 1, frames), np.inf)
    least[0, 0] = 0.0
    begun = np.zeros((count + 1, frames), dtype=int)
    for states in range(1, count + 1):
        sums = least[states - 1][:, None] + errors
        begun[states], least[states] = sums.argmin(axis=0), sums.min(axis=0)
    if not np.isfinite(least[-1, -1]):
        return None
    ends = [frames - 1]
    for states in range(count, 1, -1):
        ends.append(int(begun[states, ends[-1]]))
    return ends[::-1]


def touchdowns(loaded: npt.NDArray[np.bool_], fps: float) -> list[Touchdown]:
    """When each foot comes down after `SWING_S` in the air or more, in order of time.

    Args:
        loaded: (T, 2) whether the left and the right foot carry load.
        fps: frames a second.
    """
    swing = max(1, round(SWING_S * fps))
    found = []
    for side, name in enumerate(SIDES):
        on = loaded[:, side]
        found += [Touchdown(t, name) for t in range(swing, len(on)) if on[t] and not np.any(on[t - swing : t])]
    return sorted(found, key=lambda touchdown: touchdown.frame)


def on_contacts(ends: Sequence[int], found: Sequence[Touchdown], fps: float, errors: Array | None = None) -> list[Step]:
    """T_perp: the same number of states, with the ends nearest to touchdowns moved there, and the others placed anew between.

    An end moves by `REACH_S` at most, and only where one touchdown alone is so near to it: two feet that land together are two
    changes of contact within the paper's window. Touchdowns that leave the states between too little time move none.

    Args:
        ends: last frame of each state of the chain, ascending; the last one is the clip's end and stays.
        found: touchdowns of the chain's own simulation.
        fps: of the frames.
        errors: see `chain_steps`.
    """
    reach = REACH_S * fps
    fixed: dict[int, Touchdown] = {}
    for touchdown in found:
        nearest = min(range(len(ends) - 1), key=lambda i: abs(ends[i] - touchdown.frame), default=None)
        if nearest is None or abs(ends[nearest] - touchdown.frame) > reach:
            continue
        rivals = [other for other in found if other is not touchdown and abs(other.frame - touchdown.frame) <= reach]
        if not rivals and nearest not in fixed:
            fixed[nearest] = touchdown
    pins, last = [(-1, 0)], (len(ends) - 1, ends[-1])
    for i, touchdown in sorted(fixed.items()):
        pin = (i, touchdown.frame)
        if _room(pins[-1], pin, fps) and _room(pin, last, fps):
            pins.append(pin)
    if len(pins) == 1:
        return [Step(end) for end in ends]
    steps: list[Step] = []
    for (before, begin), (at, end) in itertools.pairwise([*pins, last]):
        *others, there = _ends(begin, end, at - before, errors)
        steps += [*map(Step, others), Step(there, fixed[at].side if at in fixed else "")]
    return steps


def _room(before: tuple[int, int], after: tuple[int, int], fps: float) -> bool:
    """Whether the states between two ends, an index and a frame each, are all as long as one that is left on time."""
    return after[1] - before[1] >= (after[0] - before[0]) * state_frames(fps)[0]


def repeats(controller: Controller) -> tuple[int, int] | None:
    """Where a chain repeats itself: indices a < b of two states left on the same foot's touchdown, one cycle apart.

    The states a+1 .. b are the cycle, and state b may lead back to a+1. Of several such pairs the one whose states resemble the
    ones a cycle later most: poses that differ least, and no exit on another contact. None where no foot comes down twice.
    """
    states = controller.states
    landings = [i for i, state in enumerate(states) if state.exit.kind in SIDES]
    best: tuple[float, int, int] | None = None
    for a in landings:
        b = next((j for j in landings if j > a and states[j].exit.kind == states[a].exit.kind), None)
        if b is None or not any(states[j].exit.kind in SIDES for j in range(a + 1, b)):
            continue
        pairs = [(i, i + b - a) for i in range(a + 1, b + 1) if i + b - a < len(states) - 1]
        if any(states[j].exit.kind in SIDES and states[i].exit.kind != states[j].exit.kind for i, j in pairs):
            continue
        unlike = float(np.mean([_unlike(controller, i, j) for i, j in pairs])) if pairs else np.inf
        if best is None or unlike < best[0]:
            best = (unlike, a, b)
    return None if best is None else best[1:]


def closed(controller: Controller, a: int, b: int) -> Controller:
    """T_inf: the chain up to state b, which leads back to state a+1; what came after is dropped."""
    states = list(controller.states[: b + 1])
    states[b] = replace(states[b], exit=replace(states[b].exit, to=states[a + 1].name))
    return controller.with_states(states)


def cycle_states(controller: Controller) -> tuple[int, ...]:
    """Indices of the states that come again and again; none for a chain."""
    index = {state.name: i for i, state in enumerate(controller.states)}
    seen: list[int] = []
    at = 0
    while at not in seen:
        seen.append(at)
        exit_ = controller.states[at].exit
        if exit_.kind == "never":
            return ()
        at = index[exit_.to]
    return tuple(seen[seen.index(at) :])


def with_way_in(controller: Controller) -> Controller:
    """The same motion by a machine that goes through copies of its cycle's states once before it stays in the cycle.

    The copies keep their names and their place; the cycle comes behind all, under numbers that are free.
    """
    cycle, states = cycle_states(controller), list(controller.states)
    taken = {state.name for state in states}
    free = (str(n) for n in itertools.count(len(states) + 1) if str(n) not in taken)
    names = {states[i].name: next(free) for i in cycle}
    again = [replace(states[i], name=names[states[i].name]) for i in cycle]
    again = [replace(state, exit=replace(state.exit, to=names[state.exit.to])) for state in again]
    last = states[cycle[-1]]
    states[cycle[-1]] = replace(last, exit=replace(last.exit, to=names[last.exit.to]))
    return controller.with_states([*states, *again])


def _unlike(controller: Controller, i: int, j: int) -> float:
    """Root mean square difference of two states' target angles, radians."""
    a, b = (controller.states[k].target.angles for k in (i, j))
    return float(np.sqrt(np.mean((a - b) ** 2)))
