"""Cycles that come back to themselves: feedback at the entry of their states, by a periodic linear quadratic regulator.

This is ours. A fitted cycle multiplies small errors, mostly to the side. How a state's end answers to how it was entered, and to
what its targets are moved by, finite differences of the simulation tell; Riccati's recursion round the cycle gives the gain of
each state that brings the body back with the least action. Contacts make these slopes good for small errors only, and they differ
from one time round to the next; so several regulators are made, and the one that stands longest is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mocap2ctrl.control.closed_loop import Rollouts, run, start_step, start_vector
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.control.watch import seconds_up
from mocap2ctrl.fit.cmaes import Search
from mocap2ctrl.fit.regulator import KINDS, LONGEST_STATE_S, Slopes, kinds, mean_slopes, regulated, slopes, weights
from mocap2ctrl.fit.structure import cycle_states, with_way_in
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array

WATCH_S, LONG_S = 60.0, 600.0
"""So long all regulators are watched, and the best of them."""
FALLEN = 0.6
"""Share of the root's first height below which the body has fallen."""
ENTRIES = (1, 2, 3, 4)
"""The first entries of a state over which slopes and references are averaged: one regulator each."""
EFFORTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Costs of an action, (1/rad)^2: one regulator each."""
WIDTHS = (2.0, 4.0)
"""Of differences that are wider than usual."""
DRAWS, REFINED, GENERATIONS, POPULATION = 144, 2, 20, 16
"""How many costs are drawn, at how many of these a search begins, and for how long it goes on."""
USUAL_EFFORT, EFFORT_VARIES, COSTS_VARY, STEP = 10.0, 1.5, 0.7, 0.4
"""Middle of the costs of actions; standard deviations of the logarithms of this and other costs, and the search's share of them."""
SETTLED = 12
"""Times round the cycle after which Riccati's recursion has settled enough to tell."""
SEED = 2012
LOOK_S = 0.1
"""How often it is looked whether one has fallen."""
BEFORE_FALL = 6
"""The last entries before a fall are not the cycle any more."""
PUSH_SEGMENT, PUSH_S, PUSHES_EVERY_S, PUSH_N = "chest", 0.2, 2.0, 10.0
PUSHED, GOLDEN_ANGLE = 8, np.pi * (3.0 - np.sqrt(5.0))
"""Runs with pushes, the n-th of n times `PUSH_N` and turned by the golden angle from the one before."""


def stabilised(
    engine: Engine, controller: Controller, alive: Callable[[], None] = lambda: None
) -> tuple[Controller, float]:
    """`controller` with feedback in the states of its cycle, or as it is if that does not stand longer.

    Also for how long it then stands, seconds, up to `LONG_S`. The first time round is still on its way to what the cycle comes back
    to, and far from it for a linear law; so, where that stands longer, the feedback begins with the second (`with_way_in`). Where
    that does not stand for `LONG_S` either, costs are searched for, too. `alive` is called now and then; it may raise.
    """
    cycle = cycle_states(controller)
    entered = [(index, start) for index, start in entries(engine, controller) if index in cycle][:-BEFORE_FALL]
    visits = {i: [start for index, start in entered if index == i][: max(ENTRIES)] for i in cycle}
    fewest = min((len(starts) for starts in visits.values()), default=0)

    def answers(width: float) -> dict[int, list[Slopes]]:
        found: dict[int, list[Slopes]] = {}
        for i in cycle:
            alive()
            found[i] = [slopes(engine, controller, i, start, width) for start in visits[i][:fewest]]
        return found

    found = answers(1.0)
    best = _longest(engine, [controller, *_regulators(controller, _means(found))])
    if best[1] >= LONG_S or fewest < 2:
        return best
    entering = with_way_in(controller)

    def later(found: Mapping[int, Sequence[Slopes]]) -> list[dict[int, Slopes]]:
        return _means({i: found[before][1:] for i, before in zip(cycle_states(entering), cycle, strict=True)})

    means = later(found)
    best = _longer(best, _longest(engine, list(_regulators(entering, means))))
    if best[1] >= LONG_S:
        return best
    for width in WIDTHS:
        means += later(answers(width))
    return _longer(best, _searched(engine, entering, means, alive))


def _means(found: Mapping[int, Sequence[Slopes]]) -> list[dict[int, Slopes]]:
    """Of the slopes of each state at its first entries the means over `ENTRIES` of them, or over all that there are."""
    fewest = min((len(slopes_) for slopes_ in found.values()), default=0)
    uses = sorted({min(use, fewest) for use in ENTRIES}) if fewest else []
    return [{i: mean_slopes(slopes_[:use]) for i, slopes_ in found.items()} for use in uses]


def _regulators(controller: Controller, found: Iterable[Mapping[int, Slopes]]) -> Iterator[Controller]:
    """By each of some slopes of the cycle's states, and each of the costs of actions."""
    for by, effort in itertools.product(found, EFFORTS):
        yield regulated(controller, by, effort)


def _longest(engine: Engine, candidates: Sequence[Controller]) -> tuple[Controller, float]:
    """The one of several of one structure that stands longest, and for how long, seconds."""
    upright = survival(engine, candidates, [()] * len(candidates), WATCH_S)
    if upright.max() < WATCH_S:
        return candidates[int(np.argmax(upright))], float(upright.max())
    return _lasting(engine, [c for c, t in zip(candidates, upright, strict=True) if t >= WATCH_S])


def _longer(one: tuple[Controller, float], other: tuple[Controller, float]) -> tuple[Controller, float]:
    return other if other[1] > one[1] else one


def _searched(
    engine: Engine, controller: Controller, found: Sequence[Mapping[int, Slopes]], alive: Callable[[], None]
) -> tuple[Controller, float]:
    """Of regulators with any costs the one that stands longest, and for how long: the best of draws, or what CMA-ES makes of those.

    Args:
        engine: in which they are to stand.
        controller: whose cycle is regulated.
        found: slopes of its states, of several kinds, of which one is drawn too.
        alive: called before each generation.
    """
    rng = np.random.default_rng(SEED)
    scale = np.append(np.full(len(KINDS), COSTS_VARY), EFFORT_VARIES)
    draws = [(int(rng.integers(len(found))), scale * rng.standard_normal(len(scale))) for _ in range(DRAWS)]
    made = [_by_costs(controller, found[which], costs) for which, costs in draws]
    upright = survival(engine, made, [()] * len(made), WATCH_S)
    best = made[int(np.argmax(upright))], float(upright.max())
    for k in np.argsort(-upright, kind="stable")[:REFINED]:
        which, costs = draws[k]
        search = Search(len(costs), rng, STEP, POPULATION)
        for _ in range(GENERATIONS):
            alive()
            made = [_by_costs(controller, found[which], costs + scale * z) for z in search.ask()]
            upright = survival(engine, made, [()] * len(made), LONG_S)
            search.tell(-upright)
            best = _longer(best, (made[int(np.argmax(upright))], float(upright.max())))
            if best[1] >= LONG_S:
                return best
    return best


def _by_costs(controller: Controller, found: Mapping[int, Slopes], costs: Array) -> Controller:
    """The regulator with usual costs times e to the power of `costs` (8,): of each of `KINDS`, and of actions."""
    joints = len(controller.states[0].target.angles)
    *by_kind, effort = np.exp(costs)
    deviation = weights(joints) * np.array(by_kind)[kinds(joints)]
    return regulated(controller, found, USUAL_EFFORT * effort, SETTLED, deviation)


def _lasting(engine: Engine, standing: Sequence[Controller]) -> tuple[Controller, float]:
    """The one that bears pushes longest of those that stand for `LONG_S`, or else the one that stands longest."""
    sequences = growing_pushes(engine.character.segment_index(PUSH_SEGMENT))
    runs = [(c, pushes) for c in standing for pushes in sequences]
    pushed = survival(engine, [c for c, _ in runs], [p for _, p in runs], WATCH_S)
    best, longest = standing[0], 0.0
    for k in np.argsort(-pushed.reshape(len(standing), -1).mean(axis=1), kind="stable"):
        upright_s = float(survival(engine, [standing[k]], [()], LONG_S)[0])
        if upright_s > longest:
            best, longest = standing[k], upright_s
        if upright_s >= LONG_S:
            break
    return best, longest


def entries(engine: Engine, controller: Controller) -> Iterator[tuple[int, Array]]:
    """Each state's index and start vector (K,) as the controller enters it, until it falls, or for `WATCH_S`."""
    program = compile_program([controller], engine.character, engine.time_step_s)
    start, index = start_vector(controller.start), 0
    height = start[2]
    while start_step(start) * engine.time_step_s < WATCH_S and start[2] > FALLEN * height:
        yield index, start
        following = int(program.next_state[index])
        end = start_step(start) + round(LONGEST_STATE_S / engine.time_step_s)
        final = run(engine, program, start, end, stride=end + 1, stop_at_state=following)
        if final.diverged[0] or start_step(final.final[0]) == end:
            return
        start, index = final.final[0], following


def survival(
    engine: Engine, controllers: Sequence[Controller], pushes: Sequence[Sequence[Push]], seconds: float
) -> Array:
    """(P,) how long each of P controllers of one structure stays upright under its pushes, up to `seconds`."""
    program = compile_program(controllers, engine.character, engine.time_step_s)
    starts = np.array([start_vector(c.start) for c in controllers])
    low, stride = FALLEN * starts[:, 2], round(LOOK_S / engine.time_step_s)

    def falls(rollouts: Rollouts, which: npt.NDArray[np.int64]) -> Array:
        fallen = ~(rollouts.qpos[..., 2] > low[which, None])
        times = (rollouts.first_frame + np.argmax(fallen, axis=1)) * stride * engine.time_step_s
        return np.where(fallen.any(axis=1), times, np.inf)

    return seconds_up(engine, program, starts, pushes, seconds, stride=stride, falls=falls)


def growing_pushes(segment: int) -> list[list[Push]]:
    """`PUSHED` sequences of pushes that grow by `PUSH_N` from one to the next."""
    sequences = []
    for first in range(PUSHED):
        angles = 2.0 * np.pi * first / PUSHED + GOLDEN_ANGLE * np.arange(int(WATCH_S / PUSHES_EVERY_S))
        sequences.append(
            [
                Push(segment, PUSH_N * n * np.array([np.cos(angle), np.sin(angle), 0.0]), n * PUSHES_EVERY_S, PUSH_S)
                for n, angle in enumerate(angles[1:], start=1)
            ]
        )
    return sequences
