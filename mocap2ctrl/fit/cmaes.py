"""CMA-ES (Hansen 2006) as ask and tell, over `cma`; nothing else imports it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mocap2ctrl.types import Array

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import cma


class Search:
    """One CMA-ES run in normalised coordinates z, beginning at z = 0 with a step size of `sigma`.

    The first generation holds z = 0 itself, so that a search never ends worse than its guess. Random numbers come only from
    `rng`: cma's own global state is not touched, and a seed of 0 is as good as any.
    """

    def __init__(self, size: int, rng: np.random.Generator, sigma: float = 1.0, population: int | None = None) -> None:
        """Begins a search over `size` numbers; the population follows from the size unless given."""
        options: dict[str, Any] = {
            "verbose": -9,
            "seed": np.nan,  # leaves numpy's global seed alone
            "randn": lambda rows, columns: rng.standard_normal((rows, columns)),
            "tolflatfitness": np.inf,
            "CMA_diagonal": 0,
            "AdaptSigma": True,
        }
        if population is not None:
            options["popsize"] = population
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._strategy = cma.CMAEvolutionStrategy(np.zeros(size), sigma, options)
        self.population = int(self._strategy.popsize)
        self.generation = 0
        self.best_value = np.inf
        self.best = np.zeros(size)
        self._asked: Array | None = None

    def ask(self) -> Array:
        """(P, N) the next generation. Every `ask` is followed by one `tell`."""
        if self._asked is not None:
            raise RuntimeError("ask was called twice; call tell with the costs of the first generation")
        samples = np.array(self._strategy.ask())
        if self.generation == 0:
            samples[0] = 0.0
        self._asked = samples
        return samples.copy()

    def tell(self, costs: Array) -> None:
        """Updates the distribution with the costs (P,) of what `ask` returned. NaN ranks last."""
        if self._asked is None:
            raise RuntimeError("tell was called without ask")
        if np.shape(costs) != (len(self._asked),):
            raise ValueError(f"costs have shape {np.shape(costs)}; expected ({len(self._asked)},)")
        costs = np.where(np.isnan(costs), np.inf, costs)
        i = int(np.argmin(costs))
        if costs[i] < self.best_value:
            self.best_value, self.best = float(costs[i]), self._asked[i].copy()
        finite = costs[np.isfinite(costs)]
        ceiling = 10.0 * (np.max(np.abs(finite)) + 1.0) if len(finite) else 1.0
        costs = np.minimum(costs, ceiling)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._strategy.tell(list(self._asked), list(costs))
        self._asked = None
        self.generation += 1
