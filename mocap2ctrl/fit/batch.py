"""Algorithm 2: CMA-ES over the free parameters of problems with fixed structure, several side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.control.controller import Controller
from mocap2ctrl.fit.cmaes import Search
from mocap2ctrl.fit.judgement import TERMS
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Problem, decode
from mocap2ctrl.types import Array


@dataclass(frozen=True, eq=False)
class Generation:
    """What happened in one generation, for logs and progress.

    Attributes:
        label: of the problem whose best it reports.
        generation: number, from 1.
        generations: planned.
        evaluations: simulations so far in the whole fit.
        cost: E of the best so far, over its window.
        terms: its unweighted terms by name.
        stages: how many stages the fit has.
        diverged: simulations so far that had to be stopped.
    """

    label: str
    generation: int
    generations: int
    evaluations: int
    cost: float
    terms: dict[str, float]
    stages: int = 1
    diverged: int = 0


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The best of one problem.

    Attributes:
        problem: what was optimised.
        controller: the best found.
        cost: its E over the problem's window.
        terms: its unweighted terms by name.
    """

    problem: Problem
    controller: Controller
    cost: float
    terms: dict[str, float]


def optimise(
    pool: EvaluationPool,
    problems: Sequence[Problem],
    rngs: Sequence[np.random.Generator],
    generations: int,
    first_sigma: float,
    on_generation: Callable[[Generation], None],
) -> list[BatchResult]:
    """Runs a search for each problem, all in step, so that their populations share the workers (Algorithm 2, lines 8-18)."""
    evaluator = pool.evaluator
    weights = evaluator.objective.weights
    factors = np.array([getattr(weights, name) for name in TERMS])
    specs = [evaluator.spec(problem) for problem in problems]
    searches = [Search(len(spec), rng, first_sigma) for spec, rng in zip(specs, rngs, strict=True)]
    best: list[tuple[float, Array, Array]] = [(np.inf, np.zeros(0), np.zeros(0))] * len(problems)
    for generation in range(1, generations + 1):
        values = [spec.values(search.ask()) for spec, search in zip(specs, searches, strict=True)]
        results = pool.evaluate(list(zip(problems, values, strict=True)), generation)
        for i, (search, judgement) in enumerate(zip(searches, results, strict=True)):
            costs = judgement.terms @ factors
            search.tell(costs)
            j = int(np.argmin(costs))
            if costs[j] < best[i][0]:
                best[i] = (float(costs[j]), values[i][j], judgement.terms[j])
        leader = min(range(len(problems)), key=lambda i: best[i][0])
        on_generation(
            Generation(
                problems[leader].label,
                generation,
                generations,
                pool.evaluations,
                best[leader][0],
                _named(best[leader][2]),
                diverged=pool.diverged,
            )
        )
    return [
        BatchResult(
            problem,
            decode(problem, spec.feasible(x), evaluator.engine.character, evaluator.prior, spec),
            cost,
            _named(terms),
        )
        for problem, spec, (cost, x, terms) in zip(problems, specs, best, strict=True)
    ]


def _named(terms: Array) -> dict[str, float]:
    return {name: float(v) for name, v in zip(TERMS, terms, strict=True)}
