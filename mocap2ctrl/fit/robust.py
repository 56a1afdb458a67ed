"""Robustness as an objective: a chain that has been fitted gets feedback with which it stands in worlds that differ from its own.

This is ours. The feedback is that of `fit/stabilise.py`, on how a state is entered, with the chain's end as the regulator's
horizon. In the fit's own world nothing deviates, so there it changes nothing. Contacts make slopes rough: which difference and
which cost of action make a good gain differs from state to state. So there are several regulators, and all are simulated in worlds
that are drawn. First the one is taken with which E is least there; then, state by state from the first to the last, the gain of any
of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from mocap2ctrl.control.controller import Controller
from mocap2ctrl.fit.batch import generation_of, weights_of
from mocap2ctrl.fit.incremental import Growth, Stage
from mocap2ctrl.fit.judgement import Task
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Evaluator, states_problem
from mocap2ctrl.fit.regulator import regulated, slopes
from mocap2ctrl.fit.stabilise import FALLEN, entries
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.worlds import drawn_worlds

IN_WORLDS = "robust"
"""Begins the labels of searches whose costs are means over drawn worlds."""

WORLDS, WORLDS_SEED = {"mujoco": 48, "bullet": 16}, 2012
"""How many are drawn, the same for all fits; in Bullet a world takes longer, and 40 MB of each process."""

SCALES, EFFORTS = (1.0, 2.0, 4.0), (1.0, 10.0, 100.0)
"""Factors on the differences, and costs of an action, (1/rad)^2: one regulator for each pair."""


def hardened(pool: EvaluationPool, stages: Iterable[Stage], growth: Growth) -> Iterator[Stage]:
    """`stages` of a chain, then one for the regulators and one for each sweep over its states; the last tells what became of it.

    As many sweeps as `sweeps` says, fewer where one changes nothing.
    """
    more, tell = 1 + growth.config.sweeps, growth.on_generation
    for last in stages:
        yield replace(last, stages=last.stages + more)
    count = last.stages + more
    growth = replace(growth, on_generation=lambda g: tell(replace(g, stages=count)))
    chain = last.controller
    choices = [chain, *regulators(pool.evaluator.engine, chain)]
    worlds = min(WORLDS[place.engine.name] for place in pool.evaluator.places)
    with pool.judging_in(drawn_worlds(worlds, np.random.default_rng(WORLDS_SEED)), float(worlds)):
        best = _cheapest(pool, choices, 0, growth, IN_WORLDS)
        for sweep in range(growth.config.sweeps):
            yield Stage(last.index + 1 + sweep, count, last.end_s, best, last.cost, False, label=IN_WORLDS)
            before = best
            for state in range(1, len(chain.states) - 1):
                options = [best, *(_with_feedback_of(best, choice, state) for choice in choices)]
                best = _cheapest(pool, options, state, growth, f"{IN_WORLDS}: state {state + 1}")
            if best is before:
                break
        stood, stands = (standing(pool.evaluator, controller) for controller in (chain, best))
        places = len(pool.evaluator.places)
    told = f"robust: stands in {stands} of {places} worlds, its own among them, without feedback in {stood}"
    yield Stage(count - 1, count, last.end_s, best, last.cost, False, told)


def regulators(engine: Engine, controller: Controller) -> list[Controller]:
    """A chain with feedback in all states but the first, whose entry is known, and the last; one for each scale and effort."""
    ends = len(controller.states) - 1
    found = itertools.takewhile(lambda entry: entry[0] < ends, entries(engine, controller))
    entered = [(i, start) for i, start in found if i > 0]
    if not entered:
        return []
    slopes_by = [{i: slopes(engine, controller, i, start, scale) for i, start in entered} for scale in SCALES]
    return [regulated(controller, by, effort, rounds=1) for by in slopes_by for effort in EFFORTS]


def standing(evaluator: Evaluator, controller: Controller) -> int:
    """In how many places a controller stands to the clip's end: its markers' mean height falls never below `FALLEN` of theirs."""
    target, count = evaluator.objective.target, 0
    heights = target.markers[..., 2].mean(axis=1)
    for rollouts in evaluator.rollouts(controller, len(target) - 1):
        higher = evaluator.objective.marker_errors(rollouts, 0, len(target) - 1)[0, :, :, 2].mean(axis=1)
        count += bool(np.all(heights + higher > FALLEN * heights))
    return count


def _with_feedback_of(controller: Controller, other: Controller, state: int) -> Controller:
    states = list(controller.states)
    states[state] = replace(states[state], feedback=other.states[state].feedback)
    return controller.with_states(states)


def _cheapest(
    pool: EvaluationPool, options: Sequence[Controller], state: int, growth: Growth, label: str
) -> Controller:
    """The first of those options, alike up to state number `state`, that cost least in all places from its entry to the end."""
    evaluator, spreads = pool.evaluator, growth.config.spreads
    end = len(evaluator.objective.target) - 1 + growth.stability_frames
    problem = states_problem(evaluator, options[0], (state,), end, spreads, label)
    as_they_are = evaluator.spec(problem).mean[None]
    found = pool.evaluate([Task(replace(problem, controller=option), as_they_are) for option in options])
    terms = np.concatenate([judgement.terms for judgement in found])
    weights = weights_of(evaluator.objective)
    costs = terms[:, : len(weights)] @ weights
    i, states = int(np.argmin(costs)), len(options[0].states)
    growth.on_generation(generation_of(pool, label, state + 1, states, float(costs[i]), terms[i]))
    return options[i]
