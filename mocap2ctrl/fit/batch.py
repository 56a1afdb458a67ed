"""Algorithm 2: searches over the free parameters of problems with fixed structure, several side by side.

CMA-ES, as in the paper, and descents by Gauss and Newton's way from where it arrived, ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mocap2ctrl.control.controller import Controller
from mocap2ctrl.fit.cmaes import Search
from mocap2ctrl.fit.descent import Descent
from mocap2ctrl.fit.judgement import TERMS, Judgement, Task
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Evaluator, Problem, decode
from mocap2ctrl.objective.terms import Objective, Weights
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
        weights: by which they make up E.
        stages: how many stages the fit has.
        diverged: simulations so far that had to be stopped.
    """

    label: str
    generation: int
    generations: int
    evaluations: int
    cost: float
    terms: dict[str, float]
    weights: Weights
    stages: int = 1
    diverged: int = 0

    def within(self, begun: int, planned: int) -> Generation:
        """The same as one of `planned` generations, of which `begun` were before its search."""
        return replace(self, generation=begun + self.generation, generations=planned)


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The best of one problem.

    Attributes:
        problem: what was optimised.
        controller: the best found.
        cost: its E over the problem's window.
        terms: its unweighted terms by name.
        z: (N,) its normalised parameters.
    """

    problem: Problem
    controller: Controller
    cost: float
    terms: dict[str, float]
    z: Array


def optimise(
    pool: EvaluationPool,
    problems: Sequence[Problem],
    rngs: Sequence[np.random.Generator],
    generations: int,
    first_sigma: float,
    on_generation: Callable[[Generation], None],
) -> list[BatchResult]:
    """Runs CMA-ES for each problem; their populations share the workers (Algorithm 2, lines 8-18)."""
    searches = [
        _Evolution(pool.evaluator, problem, rng, first_sigma) for problem, rng in zip(problems, rngs, strict=True)
    ]
    return _run(pool, searches, generations, on_generation)


def descend(
    pool: EvaluationPool,
    problems: Sequence[Problem],
    starts: Sequence[Array],
    rngs: Sequence[np.random.Generator],
    steps: int,
    on_generation: Callable[[Generation], None],
) -> list[BatchResult]:
    """Descends so many steps from normalised parameters (N,) of each problem; each step is two populations."""
    searches = [
        _Slope(pool.evaluator, problem, start, rng) for problem, start, rng in zip(problems, starts, rngs, strict=True)
    ]
    return _run(pool, searches, 2 * steps, on_generation)


def _run(
    pool: EvaluationPool,
    searches: Sequence[_ProblemSearch],
    generations: int,
    on_generation: Callable[[Generation], None],
) -> list[BatchResult]:
    def settled(number: int) -> None:
        leader = min(searches, key=lambda search: search.best_after(number).cost)
        cost, _, terms = leader.best_after(number)
        on_generation(generation_of(pool, leader.problem.label, number, generations, cost, terms))

    pool.search(searches, generations, settled)
    return [search.result() for search in searches]


def generation_of(
    pool: EvaluationPool, label: str, number: int, generations: int, cost: float, terms: Array
) -> Generation:
    """What is told of a pool's generation whose best has `cost` and the unweighted terms (len(TERMS),)."""
    weights = pool.evaluator.objective.weights
    return Generation(
        label, number, generations, pool.evaluations, cost, _named(terms), weights, diverged=pool.diverged
    )


def weights_of(objective: Objective) -> Array:
    """(N,) factors of the first N of `TERMS`: all, or without keypoints all but these.

    What there is no evidence for is left out, not multiplied by 0: a longer sum has another order, and other bits.
    """
    names = TERMS if objective.rays is not None else TERMS[: TERMS.index("keypoints")]
    return np.array([getattr(objective.weights, name) for name in names])


class _Best(NamedTuple):
    """The best normalised parameters so far, their cost and their unweighted terms."""

    cost: float
    z: Array
    terms: Array


class _ProblemSearch:
    """The search of one problem; see `fit.round.Asker`."""

    def __init__(self, evaluator: Evaluator, problem: Problem) -> None:
        self.problem = problem
        self._character, self._prior = evaluator.engine.character, evaluator.prior
        self._weights = weights_of(evaluator.objective)
        self._spec = evaluator.spec(problem)
        self._asked = np.zeros((0, len(self._spec)))
        self._bests: list[_Best] = []

    def ask(self) -> Task:
        """The next population."""
        self._asked, residuals = self._next()
        return Task(self.problem, self._spec.values(self._asked), residuals)

    def digest(self, judgement: Judgement) -> Judgement:
        """What of an answer is kept."""
        return judgement

    def tell(self, judgement: Judgement) -> None:
        """What it came to."""
        costs = self._costs(judgement)
        self._hear(costs, judgement)
        j = int(np.argmin(costs))
        found = _Best(float(costs[j]), self._asked[j], judgement.terms[j])
        best = self._bests[-1] if self._bests else found
        self._bests.append(found if found.cost < best.cost else best)

    def best_after(self, generation: int) -> _Best:
        """The best of the first generations."""
        return self._bests[generation - 1]

    def result(self) -> BatchResult:
        """The best of all."""
        cost, z, terms = self._bests[-1]
        values = self._spec.feasible(self._spec.values(z))
        controller = decode(self.problem, values, self._character, self._prior, self._spec)
        return BatchResult(self.problem, controller, cost, _named(terms), z)

    def _costs(self, judgement: Judgement) -> Array:
        return np.asarray(judgement.terms[:, : len(self._weights)] @ self._weights)

    def _next(self) -> tuple[Array, bool]:
        """(P, N) normalised parameters, and whether residuals are wanted."""
        raise NotImplementedError

    def _hear(self, costs: Array, judgement: Judgement) -> None:
        raise NotImplementedError


class _Evolution(_ProblemSearch):
    """CMA-ES."""

    def __init__(self, evaluator: Evaluator, problem: Problem, rng: np.random.Generator, first_sigma: float) -> None:
        super().__init__(evaluator, problem)
        self._search = Search(len(self._spec), rng, first_sigma)

    def _next(self) -> tuple[Array, bool]:
        return self._search.ask(), False

    def _hear(self, costs: Array, judgement: Judgement) -> None:
        self._search.tell(costs)


class _Slope(_ProblemSearch):
    """A descent."""

    def __init__(self, evaluator: Evaluator, problem: Problem, start: Array, rng: np.random.Generator) -> None:
        super().__init__(evaluator, problem)
        self._search = Descent(start, rng)

    def digest(self, judgement: Judgement) -> Judgement:
        if judgement.residuals is None:
            return judgement
        steps = self._search.steps(self._costs(judgement), judgement.residuals)
        return replace(judgement, residuals=None, steps=steps)

    def _next(self) -> tuple[Array, bool]:
        return self._search.ask()

    def _hear(self, costs: Array, judgement: Judgement) -> None:
        self._search.tell(costs, judgement.steps)


def _named(terms: Array) -> dict[str, float]:
    return {name: float(v) for name, v in zip(TERMS, terms, strict=True)}
