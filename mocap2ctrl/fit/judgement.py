"""What evaluating a population comes to: cost terms, which simulations diverged, and, where a search asks for them, residuals."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.fit.problem import Evaluator, Problem
from mocap2ctrl.types import Array

TERMS = ("markers", "velocity", "stability", "prior", "contact", "silhouette", "keypoints")


LARGE, SMALL = 6, 3
"""Parameter vectors a task: large ones hide the cost of a message, small ones let all workers end at the same time."""


def portions(count: int) -> list[slice]:
    """Cuts `count` parameter vectors into tasks: two thirds of them large, the rest small; the same for any number of workers."""
    large = 2 * count // (3 * LARGE)
    cuts = [*range(0, large * LARGE, LARGE), *range(large * LARGE, count, SMALL), count]
    return [slice(begin, end) for begin, end in itertools.pairwise(cuts)]


class Task(NamedTuple):
    """What is to be evaluated.

    Attributes:
        problem: one batch optimisation.
        values: (P, N) parameter vectors of it.
        residuals: whether these are wanted beside the cost terms.
    """

    problem: Problem
    values: Array
    residuals: bool = False


@dataclass(frozen=True, eq=False)
class Judgement:
    """Of P parameter vectors.

    Attributes:
        terms: (P, len(TERMS)) unweighted cost terms.
        diverged: (P,) whether the simulation was stopped for divergence.
        residuals: (P, R) `objective.residuals`, where they were asked for.
        steps: (K, N) what a search has made of them, which is what a journal keeps in their place.
    """

    terms: Array
    diverged: npt.NDArray[np.bool_]
    residuals: Array | None = None
    steps: Array | None = None

    def __len__(self) -> int:
        return len(self.terms)


def joined(judgements: list[Judgement]) -> Judgement:
    """One judgement of all the vectors, in their order."""
    residuals = [j.residuals for j in judgements if j.residuals is not None]
    return Judgement(
        np.concatenate([j.terms for j in judgements]),
        np.concatenate([j.diverged for j in judgements]),
        np.concatenate(residuals) if residuals else None,
    )


def judge(evaluator: Evaluator, task: Task) -> Judgement:
    """Simulates and judges a task's parameter vectors."""
    terms, diverged, residuals = evaluator.judge(task.problem, task.values, with_residuals=task.residuals)
    return Judgement(np.stack([term.value for term in terms], axis=1), np.array(diverged), residuals)
