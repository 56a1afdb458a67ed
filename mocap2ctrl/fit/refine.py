"""Algorithm 4: exits on time become exits on contact, chains that repeat themselves become cycles (Vondrak §5.1.3).

Before that, and this is ours, states that growth has frozen are opened again: from the first to the last, a few at a time, each
with the states behind it in sight.

The paper optimises a transformed controller as a whole. A state that begins at another moment is another state, so after T_perp
the chain is grown once more, along the new structure, from the reference. After T_inf the states of the cycle are optimised
together, by descent alone, over windows that reach farther and farther past the clip's end: the reference, carried on period by
period, tells what a cycle is to come back to. What brings it back, in the end, is feedback (`fit/stabilise.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mocap2ctrl.control.controller import Controller
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.fit.batch import Generation
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.fit.config import FitConfig
from mocap2ctrl.fit.incremental import Growth, Stage, descended, grow, opened_label, window_cost
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Problem, frame_after, state_entry_snapshots, states_problem
from mocap2ctrl.fit.stabilise import LONG_S, WATCH_S, stabilised
from mocap2ctrl.fit.structure import Step, closed, cycle_states, on_contacts, repeats, touchdowns
from mocap2ctrl.motion.cycles import carried_past
from mocap2ctrl.objective.target import MarkerTarget, marker_target
from mocap2ctrl.objective.terms import Weights
from mocap2ctrl.simulation.engine import load_threshold_n

NO_CONTACTS = "exits on contact: left out, for no foot comes down near an exit"
ROBUST = "the cycle: left out, for what is to be robust is a chain"
NO_CYCLE = "the cycle: left out, for the motion does not repeat itself, or no foot comes down twice"

CYCLE, REOPENED = 2**31, 2**30
"""In the seeds of a cycle's searches, and of sweeps, where those of growth have the number of the start."""

OPEN = 2
"""States that are open at a time in a sweep."""

PASSES = 3
"""So often a sweep goes over the chain."""

AHEAD = (2, 1)
"""How many states behind those that are open it looks to, in turns."""

MOMENTUM = 0.02
"""Share of its weight that the velocity has here: growth needs it for what its window does not show, these windows show that."""

ENOUGH_CYCLES = 3
"""From fewer a chain does not come near enough to what a cycle comes back to."""

AHEAD_S = (0.0, 1.25, 3.75)
"""So far past the clip's end the windows reach in which a cycle is optimised, one after the other."""


@dataclass(frozen=True, eq=False)
class _Found:
    """A controller, and what is known of it.

    Attributes:
        controller: itself.
        cost: its E over the clip by `refined_weights`.
        upright_s: for how long it stands without pushes, if watched, seconds.
        way: E before the first pass of its sweeps, and after each.
    """

    controller: Controller
    cost: float
    upright_s: float = np.nan
    way: tuple[float, ...] = ()


def refine(pool: EvaluationPool, steps: list[Step], growth: Growth, capture: Capture) -> Iterator[Stage]:
    """The stages of a chain's growth along `steps`, and then those of its refinement, each with the best controller so far.

    A transformed controller takes the place of the one before it where its E is at most 1 + delta of that one's (§5.1.3), a
    cycle, and the contacts that it needs, also where one was asked for.
    """
    chain, config = len(steps), growth.config
    stages = 2 * chain + 2
    tell = growth.on_generation
    growth = replace(growth, on_generation=lambda g: tell(replace(g, stages=stages)))
    for last in grow(pool, steps, growth):
        yield replace(last, stages=stages)
    best, end_s = reopened(pool, last.controller, growth), last.end_s
    yield Stage(chain, stages, end_s, best.controller, best.cost, False)

    def reached(index: int, told: str = "") -> Stage:
        return Stage(index, stages, end_s, best.controller, best.cost, False, told)

    told = NO_CONTACTS
    moved = contact_steps(pool, best.controller, growth)
    if any(step.contact for step in moved):
        for grown in grow(pool, moved, growth):
            if grown.index + 1 < grown.stages:
                yield reached(chain + 1 + grown.index)
        other = reopened(pool, grown.controller, growth, () if config.cyclic else best.way)
        best, told = _judged(best, other, config, "exits on contact")
    yield reached(2 * chain, told)
    cycle = None if config.robust else cyclic(pool, best, growth, capture)
    told = ROBUST if config.robust else NO_CYCLE
    if cycle is not None:
        best, told = _judged(best, cycle, config, "the cycle")
        told += f"; it stands for {cycle.upright_s:.0f} s{' or more' if cycle.upright_s >= LONG_S else ''}"
        few = capture.silhouettes is None and int(capture.run.get("cycles", 1)) < ENOUGH_CYCLES
        if config.cyclic and few and cycle.upright_s < WATCH_S:
            told += f"; from more of the motion, such as --cycles {ENOUGH_CYCLES}, cycles are made that stand longer"
    yield reached(stages - 1, told)


def _judged(before: _Found, after: _Found, config: FitConfig, what: str) -> tuple[_Found, str]:
    """The one of the two that is kept, and a sentence about it."""
    taken = config.cyclic or after.cost < (1.0 + config.delta) * before.cost
    return (
        after if taken else before,
        f"{what}: {'taken' if taken else 'left out'}, E {after.cost:.2f} against {before.cost:.2f}",
    )


def reopened(pool: EvaluationPool, controller: Controller, growth: Growth, rival: tuple[float, ...] = ()) -> _Found:
    """A chain whose states were opened again, `PASSES` times for each sweep that the configuration allows.

    From the first to the last, `OPEN` states in a row descend together, over the time in which they and those behind them act; then
    the first of them is frozen, and one behind them is opened. What lowers E is kept. It ends early where neither way of `AHEAD`
    lowers it, and where E is not within delta of what it was, after as many passes, on the way of a `rival`.
    """
    end = len(pool.evaluator.objective.target) - 1 + growth.stability_frames
    firsts = range(max(len(controller.states) - OPEN, 0) + 1)
    passes, begun = PASSES * growth.config.sweeps, 0

    def tell(g: Generation) -> None:
        growth.on_generation(g.within(begun * g.generations, passes * len(firsts) * g.generations))

    told = replace(growth, on_generation=tell)
    with pool.weighing(refined_weights(growth.config)):
        least, idle = window_cost(pool.evaluator, controller, end), 0
        way = [least]
        for number in range(passes):
            swept = controller
            for first in firsts:
                problem = open_problem(pool, swept, first, AHEAD[number % len(AHEAD)], growth)
                swept = descended(pool, problem, told, [first, REOPENED + number])
                begun += 1
            cost = window_cost(pool.evaluator, swept, end)
            if cost < least:
                controller, least, idle = swept, cost, 0
            else:
                idle += 1
            way.append(least)
            behind = rival and least >= (1.0 + growth.config.delta) * rival[min(number + 1, len(rival) - 1)]
            if behind or idle == len(AHEAD):
                break
    return _Found(controller, least, way=tuple(way))


def refined_weights(config: FitConfig) -> Weights:
    """Lambda of Eq. (8) by which states are opened again, and refinements judged."""
    return replace(config.weights, velocity=MOMENTUM * config.weights.velocity)


def open_problem(pool: EvaluationPool, controller: Controller, first: int, ahead: int, growth: Growth) -> Problem:
    """Optimise `OPEN` states from number `first` on, until `ahead` states behind them have acted, or to the end."""
    evaluator, states = pool.evaluator, len(controller.states)
    end = len(evaluator.objective.target) - 1
    free = tuple(range(first, min(first + OPEN, states)))
    behind = first + OPEN + ahead
    if behind < states:
        entered, *_ = state_entry_snapshots(evaluator, controller, behind, end)
        end = min(frame_after(entered, evaluator.stride), end)
    else:
        end += growth.stability_frames
    return states_problem(evaluator, controller, free, end, growth.config.spreads, opened_label(free))


def contact_steps(pool: EvaluationPool, controller: Controller, growth: Growth) -> list[Step]:
    """T_perp of a chain by its own simulation in the first engine."""
    evaluator = pool.evaluator
    target, character = evaluator.objective.target, evaluator.engine.character
    rollouts = next(evaluator.rollouts(controller, len(target) - 1))
    loaded = rollouts.load[0] > load_threshold_n(character)
    loaded[0] = True  # no step has told yet whether the feet stand
    entered = [int(np.argmax(rollouts.state[0] >= i)) for i in range(1, int(rollouts.state[0].max()) + 1)]
    return on_contacts([*entered, len(target) - 1], touchdowns(loaded, target.fps), target.fps, growth.errors)


def cyclic(pool: EvaluationPool, chain: _Found, growth: Growth, capture: Capture) -> _Found | None:
    """T_inf: the chain as a cycle, its states optimised and stabilised; None where a chain or reference does not repeat itself."""
    where = repeats(chain.controller)
    target = None if where is None else carried_target(capture)
    if where is None or target is None:
        return None
    controller = closed(chain.controller, *where)
    free, frames, config = tuple(sorted(cycle_states(controller))), len(pool.evaluator.objective.target), growth.config
    with pool.judging_by(target):
        for k, ahead_s in enumerate(AHEAD_S if capture.silhouettes is None else AHEAD_S[:1]):
            window = frames - 1 + round(ahead_s * config.fps)
            label = f"cycle to {window / target.fps:.2f} s"
            problem = states_problem(pool.evaluator, controller, free, window, config.spreads, label)
            controller = descended(pool, problem, growth, [k, CYCLE])
    controller, upright_s = stabilised(pool.evaluator.engine, controller, growth.alive)
    with pool.weighing(refined_weights(config)):
        cost = window_cost(pool.evaluator, controller, frames - 1)
    return _Found(controller, cost, upright_s)


def carried_target(capture: Capture) -> MarkerTarget | None:
    """The capture's markers and, behind the clip's end, its last period again; None for a motion without period."""
    try:
        return marker_target(capture.character, carried_past(capture.objective_clip, capture.character, AHEAD_S[-1]))
    except MotionFileError:
        return None
