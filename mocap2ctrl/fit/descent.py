"""Gauss and Newton's descent as ask and tell, damped as Levenberg and Marquardt do, with derivatives from finite differences.

A window of a fit is a sum of squares of a hundred parameters whose simulations take a millisecond each: differences cost a hundred
of them, and a step on them goes where CMA-ES needs hundreds of generations to go. What they cannot see is another basin: there a
descent that has come to rest is thrown, by chance, to begin again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.types import Array

DAMPINGS = 10.0 ** np.arange(-2, 4)
"""Factors on the present damping that are tried side by side: none depends on what another came to."""

DAMPING_RANGE = (1e-4, 1e3)
DIAGONAL_FLOOR = 1e-2
"""Of the mean diagonal: parameters that change nothing are damped like others."""

RIDGE = 1e-3
LONGEST_STEP = 1.5
"""In spreads, for each parameter."""

DIFFERENCES = (0.05, 0.2)
"""In spreads. Short ones are exact, long ones look over the jumps that contacts make; they are taken in turns."""

RUINED = 4.0
RUINED_FLOOR = 50.0
"""A difference whose cost exceeds this multiple of the present one, plus this, is a fall and no slope."""

SMALL_GAIN = 0.003
PATIENCE = 3
"""So many steps that gain less than this share, one after the other, are the end of a descent."""

THROW = 0.5
"""Standard deviation of a throw, in spreads."""


@dataclass(frozen=True, eq=False)
class _Point:
    """Where a descent is.

    Attributes:
        z: (N,) normalised coordinates.
        cost: E.
    """

    z: Array
    cost: float


class Descent:
    """Populations in turns: the present point and its neighbours, of which residuals are asked; then steps, of which costs are.

    Random numbers come only from `rng`, and only for throws.

    Attributes:
        best, best_value: (N,) coordinates of the least cost so far, and that cost.
    """

    def __init__(self, start: Array, rng: np.random.Generator) -> None:
        """Begins at `start`, (N,) normalised coordinates."""
        self._rng = rng
        self._here = _Point(np.array(start, float), np.inf)
        self.best, self.best_value = self._here.z, np.inf
        self._asked: Array = np.zeros((0, len(start)))
        self._looking = True
        self._turn = 0
        self._begin()

    def _begin(self) -> None:
        """At another point nothing is known of its surroundings."""
        self._damping, self._idle = 0.1, 0

    def ask(self) -> tuple[Array, bool]:
        """(P, N) the next population, and whether residuals are wanted."""
        if self._looking:
            self._asked = np.vstack([self._here.z, self._here.z + np.diag(self._differences())])
        return self._asked, self._looking

    def steps(self, costs: Array, residuals: Array) -> Array:
        """(K, N) the points to try after the first population, from its costs (P,) and residuals (P, R)."""
        here, around = residuals[0], residuals[1:]
        slope = (around - here) / self._differences()[:, None]
        slope[~(costs[1:] < RUINED * costs[0] + RUINED_FLOOR)] = 0.0
        hessian, gradient = slope @ slope.T, slope @ here
        diagonal = np.diag(hessian) + DIAGONAL_FLOOR * np.trace(hessian) / len(hessian)
        ridge = RIDGE * np.eye(len(hessian))
        moves = [
            -np.linalg.solve(hessian + np.diag(damping * diagonal) + ridge, gradient + RIDGE * self._here.z)
            for damping in self._dampings()
        ]
        return np.asarray(self._here.z + np.clip(moves, -LONGEST_STEP, LONGEST_STEP))

    def tell(self, costs: Array, steps: Array | None = None) -> None:
        """Costs (P,) of what was asked; after a look around, with the steps that follow."""
        costs = np.where(np.isnan(costs), np.inf, costs)
        self._remember(costs)
        if self._looking:
            if steps is None:
                raise ValueError("a population of neighbours was told without the steps that follow from it")
            self._here = _Point(self._here.z, float(costs[0]))
            self._asked, self._looking = steps, False
        else:
            self._take(costs)
            self._looking = True
            self._turn += 1

    def _take(self, costs: Array) -> None:
        """The best step, if it is one; else shorter steps, and at the end a throw."""
        i = int(np.argmin(costs))
        gain = self._here.cost - float(costs[i])
        if gain > 0.0:
            self._here = _Point(self._asked[i], float(costs[i]))
            self._damping = float(np.clip(self._dampings()[i], *DAMPING_RANGE))
        else:
            self._damping = min(10.0 * self._damping, DAMPING_RANGE[1])
        self._idle = 0 if gain > SMALL_GAIN * abs(self._here.cost) else self._idle + 1
        if self._idle == PATIENCE:
            self._here = _Point(self.best + THROW * self._rng.standard_normal(len(self.best)), np.inf)
            self._begin()

    def _remember(self, costs: Array) -> None:
        i = int(np.argmin(costs))
        if costs[i] < self.best_value:
            self.best, self.best_value = self._asked[i].copy(), float(costs[i])

    def _dampings(self) -> Array:
        return np.asarray(self._damping * DAMPINGS)

    def _differences(self) -> Array:
        """(N,) to one side and the other in turns."""
        side = 1.0 if self._turn % 2 == 0 else -1.0
        length = DIFFERENCES[0] if self._idle == 0 else DIFFERENCES[self._turn // 2 % len(DIFFERENCES)]
        return np.full(len(self._here.z), side * length)
