"""Robustness as an objective: a chain that has been fitted is made to stand in worlds that differ from its own. This is ours.

First its states get feedback on how they are entered, by the regulator of `fit/stabilise.py` with the chain's end as horizon: in
the fit's own world nothing deviates, so there it changes nothing. Of regulators with several costs of action the one is taken with
which the worlds cost least. Then the states are opened again, a few at a time, with the next ones in sight, and descend over the
residuals of all worlds side by side, each from its own snapshots; what falls costs most, so that goes first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from mocap2ctrl.control.controller import Controller
from mocap2ctrl.fit.incremental import Growth, Stage, window_cost
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Evaluator
from mocap2ctrl.fit.refine import descended, open_problem
from mocap2ctrl.fit.stabilise import EFFORTS, FALLEN, entries, regulated, slopes
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.worlds import World

WORLDS = (
    World("slippery, hard, rising", friction=0.8, contacts="hard", lean_degrees=(-2.0, 0.0)),
    World("gripping, soft, falling", friction=1.25, contacts="soft", lean_degrees=(2.0, 0.0)),
    World("weak, hard, falling to the left", strength=0.9, contacts="hard", lean_degrees=(0.0, 2.0)),
    World("strong, soft, falling to the right", strength=1.1, contacts="soft", lean_degrees=(0.0, -2.0)),
    World("shoved", shove_n=50.0, seed=1),
    World("shoved otherwise", shove_n=50.0, seed=2),
)
WORLD_WEIGHT = 1.0
"""Of all of them together beside the fit's own."""

OPEN, AHEAD = 2, 3
"""States that are open at a time, and those behind them that a window sees: who stumbles falls a step later."""

HARDENED = 3 * 2**29
"""In the seeds of these searches, beside those of `fit/refine.py`."""


def hardened(pool: EvaluationPool, stages: Iterable[Stage], growth: Growth) -> Iterator[Stage]:
    """`stages` of a chain, and then one for each sweep, with the best controller so far; the last tells what became of it.

    A sweep is kept where the worlds cost less by it, and E over the clip is at most 1 + `robust_delta` of what it was.
    """
    config, sweeps = growth.config, growth.config.sweeps
    for last in stages:
        yield replace(last, stages=last.stages + sweeps + 1)
    count, end = last.stages + sweeps + 1, len(pool.evaluator.objective.target) - 1 + growth.stability_frames
    best, cost, most = last.controller, last.cost, (1.0 + config.robust_delta) * last.cost
    own = pool.evaluator
    tell = growth.on_generation
    growth = replace(growth, on_generation=lambda g: tell(replace(g, stages=count)))
    with pool.judging_in(WORLDS, WORLD_WEIGHT):
        before = standing(pool.evaluator, best)
        best = min([best, *regulators(own.engine, best)], key=lambda c: window_cost(pool.evaluator, c, end))
        everywhere = window_cost(pool.evaluator, best, end)
        for sweep in range(sweeps):
            yield Stage(last.index + 1 + sweep, count, last.end_s, best, cost, False)
            swept = _swept(pool, best, growth, sweep)
            costs = window_cost(own, swept, end), window_cost(pool.evaluator, swept, end)
            if not (costs[0] <= most and costs[1] < everywhere):
                break
            best, (cost, everywhere) = swept, costs
        after = standing(pool.evaluator, best)
    told = (
        f"robust: stands in {after} of {len(WORLDS) + 1} worlds, {before} before, E {cost:.2f} against {last.cost:.2f}"
    )
    yield Stage(count - 1, count, last.end_s, best, cost, False, told)


def standing(evaluator: Evaluator, controller: Controller) -> int:
    """In how many places a controller stands to the clip's end: its markers' mean height falls never below `FALLEN` of theirs."""
    target, count = evaluator.objective.target, 0
    heights = target.markers[..., 2].mean(axis=1)
    for rollouts in evaluator.rollouts(controller, len(target) - 1):
        higher = evaluator.objective.marker_errors(rollouts, 0, len(target) - 1)[0, :, :, 2].mean(axis=1)
        count += bool(np.all(heights + higher > FALLEN * heights))
    return count


def regulators(engine: Engine, controller: Controller) -> list[Controller]:
    """A chain with feedback in all states but the first, whose entry is known, and the last; one for each cost of action."""
    ends = len(controller.states) - 1
    entered = itertools.takewhile(lambda entry: entry[0] < ends, entries(engine, controller))
    found = {i: slopes(engine, controller, i, start) for i, start in entered if i > 0}
    return [regulated(controller, found, effort, rounds=1) for effort in EFFORTS] if found else []


def _swept(pool: EvaluationPool, controller: Controller, growth: Growth, sweep: int) -> Controller:
    """The chain after its states have descended from the first to the last, `OPEN` at a time, all but the last one twice."""
    for first in range(max(len(controller.states) - OPEN, 0) + 1):
        problem = open_problem(pool, controller, first, growth, OPEN, AHEAD)
        controller = descended(pool, problem, growth, [first, HARDENED + sweep], -(-growth.config.descents // 2))
    return controller
