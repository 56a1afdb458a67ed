"""What a state is worth: for each fragment, a quadratic form of the state and of what pushes the body, by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array

FARTHEST = 5.0
"""Standard deviations to which features are cut."""
FORGETTING = 0.85
"""Weight of all that was fitted before, whenever something is fitted anew."""
RIDGE = 2.0
NEW = 0.8
"""Share of the most that can be had, that all is worth before anything is known."""


@dataclass(frozen=True, eq=False)
class _Fit:
    """Of one fragment: mean and spread of the inputs, the normal equations, their solution."""

    mean: Array
    spread: Array
    square: Array
    product: Array
    weights: Array

    def quadratic(self, inputs: Array) -> Array:
        """(N, 1 + D + D (D + 1) / 2) the terms of a quadratic form of standardised inputs (N, D)."""
        return quadratic((inputs - self.mean) / self.spread)


def quadratic(z: Array) -> Array:
    """(N, 1 + D + D (D + 1) / 2) the terms of a quadratic form of z (N, D), which is cut to 5."""
    z = np.clip(z, -FARTHEST, FARTHEST)
    row, column = np.triu_indices(z.shape[1])
    return np.concatenate([np.ones((len(z), 1)), z, z[:, row] * z[:, column]], axis=1)


class Critic:
    """V of F fragments. What is known only in a simulation, such as the push to come, may be among its inputs.

    That a critic knows of causes which no action has makes advantages less noisy, and biases no gradient (Mao et al. 2019, Variance
    reduction for reinforcement learning in input-driven environments).
    """

    def __init__(self, fragments: int, discount: float) -> None:
        """That knows nothing yet."""
        self._most = 1.0 / (1.0 - discount)
        self._fits: list[_Fit | None] = [None] * fragments

    def values(self, inputs: Array, fragment: npt.NDArray[np.int64]) -> Array:
        """(N,) of inputs (N, D) at the begins of fragments (N,)."""
        values = np.full(len(inputs), NEW * self._most)
        for k in np.unique(fragment):
            fit, at = self._fits[k], fragment == k
            if fit is not None:
                values[at] = np.clip(fit.quadratic(inputs[at]) @ fit.weights, 0.0, self._most)
        return values

    def fit(self, inputs: Array, fragment: npt.NDArray[np.int64], returns: Array) -> None:
        """Learns from inputs (N, D) and what came of them (N,), and by and by forgets what it was fitted to before."""
        for k in np.unique(fragment):
            at, before = fragment == k, self._fits[k]
            mean, spread = (
                (inputs[at].mean(axis=0), inputs[at].std(axis=0) + 1e-6)
                if before is None
                else (before.mean, before.spread)
            )
            x = quadratic((inputs[at] - mean) / spread)
            square, product = x.T @ x, x.T @ returns[at]
            if before is not None:
                square, product = square + FORGETTING * before.square, product + FORGETTING * before.product
            weights = np.linalg.solve(square + RIDGE * np.eye(len(square)), product)
            self._fits[k] = _Fit(mean, spread, square, product, weights)
