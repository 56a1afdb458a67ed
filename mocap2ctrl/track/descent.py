"""Descent of the tracker's energy: Gauss-Newton steps over all frames of a window at once, damped after Levenberg and Marquardt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky_banded, solveh_banded
from scipy.linalg.lapack import dtbtrs

from mocap2ctrl.compiled import njit
from mocap2ctrl.track.energy import Equations, belief_at, equations
from mocap2ctrl.track.evidence import FAR, MIDDLE, NEAR, Evidence
from mocap2ctrl.track.path import Path
from mocap2ctrl.types import Array

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-4, 1e3
TRIES = 4
"""How often a step that leads upwards is damped before the descent gives up."""

LONGEST_STEP, LONGEST_GROWTH = 0.5, 0.05
SMALLEST_FACTOR, LARGEST_FACTOR = 0.6, 2.2
"""Bounds of the body's factors."""

SEAM = 2
"""Frames of a window, next to the rest of a path, that stay as they are; the smoothness terms need two."""

IMMOVABLE = 1e12


class Level(NamedTuple):
    """One level of a descent: softness in metres, every so manieth pixel, number of steps."""

    tau_m: float
    pixel_step: int
    steps: int


ROUGH = (Level(FAR, 2, 3), Level(MIDDLE, 2, 5))
"""Enough to follow a person by some frames."""

FINE = (Level(FAR, 2, 6), Level(MIDDLE, 2, 6), Level(NEAR, 1, 8))
"""To the bottom."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Where a descent ended.

    Attributes:
        path: the poses.
        body: (G,) factors of `BODY`.
        energy: of all terms, at the last level.
        parts: its terms by name.
    """

    path: Path
    body: Array
    energy: float
    parts: dict[str, float]


def descend(
    evidence: Evidence,
    path: Path,
    body: Array,
    levels: tuple[Level, ...],
    *,
    frozen: tuple[int, int] = (0, 0),
    fit_body: bool = False,
) -> Fitted:
    """Descends from `path`.

    Args:
        evidence: of the path's frames.
        path: where to begin.
        body: (G,) factors of `BODY`.
        levels: one after the other.
        frozen: how many of the first and of the last frames stay as they are.
        fit_body: whether the body's factors are fitted too.
    """
    for level in levels:
        path, body, last = _descend_level(evidence, path, body, level, frozen, fit_body)
    last = last or _judged(evidence, path, body, levels[-1])
    return Fitted(path, body, last.energy, last.parts)


def _judged(evidence: Evidence, path: Path, body: Array, level: Level) -> Equations:
    return equations(evidence, path, body, belief_at(evidence, path, body), level.tau_m, level.pixel_step, False)


def _descend_level(
    evidence: Evidence, path: Path, body: Array, level: Level, frozen: tuple[int, int], fit_body: bool
) -> tuple[Path, Array, Equations | None]:
    """The best point that was met, judged if it is the last one.

    With what is believed from step to step, such as which feet stand, energies may also rise.
    """
    damping = FIRST_DAMPING
    least, best = np.inf, (path, body)
    for _ in range(level.steps):
        belief = belief_at(evidence, path, body)
        here = equations(evidence, path, body, belief, level.tau_m, level.pixel_step, fit_body=fit_body)
        if here.energy < least:
            least, best = here.energy, (path, body)
        for _ in range(TRIES):
            moves, growth = _step(here, damping, frozen, fit_body)
            there = path.moved(moves), np.clip(body + growth, SMALLEST_FACTOR, LARGEST_FACTOR)
            judged = equations(evidence, *there, belief, level.tau_m, level.pixel_step, derivatives=False)
            if judged.energy < here.energy:
                path, body = there
                damping = max(0.3 * damping, LEAST_DAMPING)
                break
            damping = min(5.0 * damping, MOST_DAMPING)
        else:
            return *best, None
    last = _judged(evidence, path, body, level)
    return (path, body, last) if last.energy < least else (*best, None)


def _step(here: Equations, damping: float, frozen: tuple[int, int], fit_body: bool) -> tuple[Array, Array]:
    """Moves (T, D) of the coordinates and (G,) of the body: the band is solved first, the body's border after it."""
    count, size = here.gradient.shape
    band = _band(here.within, here.next, here.second, damping, *frozen)
    if fit_body:
        border = here.border.reshape(count * size, -1)
        right = np.column_stack([here.gradient.ravel(), border])
        solved = solveh_banded(band, right, lower=True, overwrite_ab=True, check_finite=False)
        corner = here.corner * (1.0 + damping * np.eye(len(here.body)))
        growth = -np.linalg.solve(corner - border.T @ solved[:, 1:], here.body - border.T @ solved[:, 0])
        growth = np.clip(growth, -LONGEST_GROWTH, LONGEST_GROWTH)
        moves = -(solved[:, 0] + solved[:, 1:] @ growth)
    else:
        growth = np.zeros(len(here.body))
        moves = -solveh_banded(band, here.gradient.ravel(), lower=True, overwrite_ab=True, check_finite=False)
    moves = np.clip(moves.reshape(count, size), -LONGEST_STEP, LONGEST_STEP)
    moves[: frozen[0]] = 0.0
    moves[count - frozen[1] :] = 0.0
    return moves, growth


def random_step(here: Equations, frozen: tuple[int, int], rng: np.random.Generator) -> Array:
    """(T, D) one draw from the Gaussian whose inverse covariance is the matrix at a point; frozen frames do not move."""
    count, size = here.gradient.shape
    band = _band(here.within, here.next, here.second, LEAST_DAMPING, *frozen)
    lower = cholesky_banded(band, lower=True, overwrite_ab=True, check_finite=False)
    step, _ = dtbtrs(lower, rng.standard_normal((count * size, 1)), uplo="L", trans="T")
    step = step.reshape(count, size)
    step[: frozen[0]] = 0.0
    step[count - frozen[1] :] = 0.0
    return np.asarray(step)


@njit
def _band(within, following, second, damping, first, last):  # type: ignore[no-untyped-def]
    """Lower banded form (2 D + 1, T D) of the damped matrix; the `first` and `last` frames are made immovable."""
    count, size, _ = within.shape
    band = np.zeros((2 * size + 1, count * size))
    for t in range(count):
        for i in range(size):
            for j in range(i + 1):
                band[i - j, t * size + j] = within[t, i, j]
            band[0, t * size + i] = within[t, i, i] * (1.0 + damping) + 1e-3 * damping + 1e-9
            if t < first or t >= count - last:
                band[0, t * size + i] += IMMOVABLE
        if t + 1 < count:
            for i in range(size):
                for j in range(size):
                    band[size + i - j, t * size + j] = following[t, j, i]
        if t + 2 < count:
            for i in range(size):
                band[2 * size, t * size + i] = second[i]
    return band
