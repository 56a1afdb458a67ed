"""Algorithm 2: CMA-ES over the free parameters of problems with fixed structure, several side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    """Runs a search for each problem; their populations share the workers (Algorithm 2, lines 8-18)."""
    searches = [
        _ProblemSearch(pool.evaluator, problem, rng, first_sigma) for problem, rng in zip(problems, rngs, strict=True)
    ]

    def settled(number: int) -> None:
        leader = min(searches, key=lambda search: search.best_after(number).cost)
        cost, _, terms = leader.best_after(number)
        label = leader.problem.label
        on_generation(
            Generation(label, number, generations, pool.evaluations, cost, _named(terms), diverged=pool.diverged)
        )

    pool.search(searches, generations, settled)
    return [search.result() for search in searches]


def weights_of(objective: Objective) -> Array:
    """(N,) factors of the first N of `TERMS`: all, or without keypoints all but these.

    What there is no evidence for is left out, not multiplied by 0: a longer sum has another order, and other bits.
    """
    names = TERMS if objective.rays is not None else TERMS[: TERMS.index("keypoints")]
    return np.array([getattr(objective.weights, name) for name in names])


class _Best(NamedTuple):
    """The best parameter vector so far, its cost and its unweighted terms."""

    cost: float
    values: Array
    terms: Array


class _ProblemSearch:
    """The search of one problem; see `fit.round.Asker`."""

    def __init__(self, evaluator: Evaluator, problem: Problem, rng: np.random.Generator, first_sigma: float) -> None:
        self.problem = problem
        self._character, self._prior = evaluator.engine.character, evaluator.prior
        self._weights = weights_of(evaluator.objective)
        self._spec = evaluator.spec(problem)
        self._search = Search(len(self._spec), rng, first_sigma)
        self._asked = np.zeros((0, len(self._spec)))
        self._bests: list[_Best] = []

    def ask(self) -> Task:
        """The next population."""
        self._asked = self._spec.values(self._search.ask())
        return self.problem, self._asked

    def tell(self, judgement: Judgement) -> None:
        """What it came to."""
        costs = judgement.terms[:, : len(self._weights)] @ self._weights
        self._search.tell(costs)
        j = int(np.argmin(costs))
        found = _Best(float(costs[j]), self._asked[j], judgement.terms[j])
        best = self._bests[-1] if self._bests else found
        self._bests.append(found if found.cost < best.cost else best)

    def best_after(self, generation: int) -> _Best:
        """The best of the first generations."""
        return self._bests[generation - 1]

    def result(self) -> BatchResult:
        """The best of all."""
        cost, values, terms = self._bests[-1]
        controller = decode(self.problem, self._spec.feasible(values), self._character, self._prior, self._spec)
        return BatchResult(self.problem, controller, cost, _named(terms))


def _named(terms: Array) -> dict[str, float]:
    return {name: float(v) for name, v in zip(TERMS, terms, strict=True)}
