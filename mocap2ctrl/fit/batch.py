"""Algorithm 2: CMA-ES over the free parameters of problems with fixed structure, several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.control.controller import Controller
from mocap2ctrl.fit.cmaes import Search
from mocap2ctrl.fit.judgement import TERMS, Judgement
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Evaluator, Problem, decode
from mocap2ctrl.fit.worker import Task
from mocap2ctrl.objective.terms import Objective
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
    search = _SideBySide(pool.evaluator, problems, rngs, first_sigma)
    for generation in range(1, generations + 1):
        pool.evaluate(search.ask(), generation, search.tell)
        label, cost, terms = search.leader()
        on_generation(Generation(label, generation, generations, pool.evaluations, cost, terms, diverged=pool.diverged))
    return search.results()


def weights_of(objective: Objective) -> Array:
    """(N,) factors of the first N of `TERMS`: all, or without keypoints all but these.

    What there is no evidence for is left out, not multiplied by 0: a longer sum has another order, and other bits.
    """
    names = TERMS if objective.rays is not None else TERMS[: TERMS.index("keypoints")]
    return np.array([getattr(objective.weights, name) for name in names])


class _SideBySide:
    """Searches of several problems, generation by generation."""

    def __init__(
        self, evaluator: Evaluator, problems: Sequence[Problem], rngs: Sequence[np.random.Generator], first_sigma: float
    ) -> None:
        self._evaluator, self._problems = evaluator, problems
        self._weights = weights_of(evaluator.objective)
        self._specs = [evaluator.spec(problem) for problem in problems]
        self._searches = [Search(len(spec), rng, first_sigma) for spec, rng in zip(self._specs, rngs, strict=True)]
        self._best: list[tuple[float, Array, Array]] = [(np.inf, np.zeros(0), np.zeros(0))] * len(problems)
        self._asked: list[Array] = []

    def ask(self) -> Iterator[Task]:
        """The next population of each, made when it is asked for."""
        self._asked = []
        for problem, spec, search in zip(self._problems, self._specs, self._searches, strict=True):
            self._asked.append(spec.values(search.ask()))
            yield problem, self._asked[-1]

    def tell(self, i: int, judgement: Judgement) -> None:
        """Lets search number `i` learn from its population."""
        costs = judgement.terms[:, : len(self._weights)] @ self._weights
        self._searches[i].tell(costs)
        j = int(np.argmin(costs))
        if costs[j] < self._best[i][0]:
            self._best[i] = (float(costs[j]), self._asked[i][j], judgement.terms[j])

    def leader(self) -> tuple[str, float, dict[str, float]]:
        """Label, cost and terms of the best so far."""
        i = min(range(len(self._problems)), key=lambda i: self._best[i][0])
        return self._problems[i].label, self._best[i][0], _named(self._best[i][2])

    def results(self) -> list[BatchResult]:
        """The best of each."""
        character, prior = self._evaluator.engine.character, self._evaluator.prior
        return [
            BatchResult(problem, decode(problem, spec.feasible(x), character, prior, spec), cost, _named(terms))
            for problem, spec, (cost, x, terms) in zip(self._problems, self._specs, self._best, strict=True)
        ]


def _named(terms: Array) -> dict[str, float]:
    return {name: float(v) for name, v in zip(TERMS, terms, strict=True)}
