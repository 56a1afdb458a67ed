"""What evaluating a population comes to: cost terms, and which simulations diverged."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class Judgement:
    """Of P parameter vectors.

    Attributes:
        terms: (P, len(TERMS)) unweighted cost terms.
        diverged: (P,) whether the simulation was stopped for divergence.
    """

    terms: Array
    diverged: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.terms)


def joined(judgements: list[Judgement]) -> Judgement:
    """One judgement of all the vectors, in their order."""
    return Judgement(np.concatenate([j.terms for j in judgements]), np.concatenate([j.diverged for j in judgements]))


def judge(evaluator: Evaluator, problem: Problem, values: Array) -> Judgement:
    """Simulates and judges parameter vectors (P, N) of `problem`."""
    terms, diverged = evaluator.judge(problem, values)
    return Judgement(np.stack([term.value for term in terms], axis=1), np.array(diverged))
