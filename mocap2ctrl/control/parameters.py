"""One ordered declaration of what is optimised: names, means, spreads, bounds, units; packing and penalties follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array


class Parameter(NamedTuple):
    """One optimised number.

    Attributes:
        name: unique, for logs and files.
        mean: where the search begins.
        std: how far it looks at first.
        lower, upper: the uniform prior's range (Vondrak §5, Prior); infinite where there is none.
        unit: as text.
    """

    name: str
    mean: float
    std: float
    lower: float
    upper: float
    unit: str


class ParameterSpec:
    """An ordered set of parameters in named blocks.

    Searches run in normalised coordinates z with `value = mean + std * z`, so that one step size fits all.
    """

    def __init__(self) -> None:
        self._parameters: list[Parameter] = []
        self._blocks: dict[str, slice] = {}
        self._columns: dict[str, Array] = {}

    def declare(self, block: str, parameters: Sequence[Parameter]) -> None:
        """Appends `parameters` as the block called `block`."""
        if block in self._blocks:
            raise ValueError(f"parameter block {block!r} is declared twice")
        start = len(self._parameters)
        self._parameters.extend(parameters)
        self._columns.clear()
        self._blocks[block] = slice(start, len(self._parameters))

    def __len__(self) -> int:
        return len(self._parameters)

    def __contains__(self, block: str) -> bool:
        return block in self._blocks

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters in order."""
        return tuple(self._parameters)

    def block(self, name: str) -> slice:
        """Columns of the block called `name`."""
        return self._blocks[name]

    def _column(self, field: str) -> Array:
        if field not in self._columns:
            index = Parameter._fields.index(field)
            self._columns[field] = np.array([p[index] for p in self._parameters], dtype=float)
        return self._columns[field]

    @property
    def mean(self) -> Array:
        """(N,) where the search begins."""
        return self._column("mean")

    @property
    def std(self) -> Array:
        """(N,) spreads."""
        return self._column("std")

    def values(self, z: npt.ArrayLike) -> Array:
        """Values (..., N) of normalised coordinates (..., N)."""
        return np.asarray(self.mean + self.std * np.asarray(z, float))

    def feasible(self, values: npt.ArrayLike) -> Array:
        """`values` (..., N) moved to the nearest point within the bounds: what is simulated."""
        return np.asarray(np.clip(np.asarray(values, float), self._column("lower"), self._column("upper")))

    def penalty(self, values: npt.ArrayLike) -> Array:
        """(...) linear penalty of values outside their range, in units of each parameter's spread (§5, Prior).

        The paper adds the plain excess |max(0, v - b)| + |min(0, v - a)|; dividing by the spread makes radians and
        seconds comparable.
        """
        values = np.asarray(values, float)
        excess = np.maximum(values - self._column("upper"), 0.0) + np.maximum(self._column("lower") - values, 0.0)
        return np.asarray(np.sum(excess / self.std, axis=-1))
