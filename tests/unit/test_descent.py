"""Descents by Gauss and Newton's way: exact where the theory is, and able to leave a basin where it says nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mocap2ctrl.fit.descent import PATIENCE, RIDGE, Descent
from mocap2ctrl.types import Array

Residuals = Callable[[Array], Array]
"""From (P, N) coordinates to (P, R)."""


def descended(residuals: Residuals, start: Array, populations: int, seed: int = 1) -> Descent:
    """A descent on the sum of squares, told as many populations."""
    descent = Descent(start, np.random.default_rng(seed))
    for _ in range(populations):
        z, looking = descent.ask()
        found = residuals(z)
        costs = np.sum(found**2, axis=1)
        descent.tell(costs, descent.steps(costs, found) if looking else None)
    return descent


def rosenbrock(z: Array) -> Array:
    return np.stack([10.0 * (z[:, 1] - z[:, 0] ** 2), 1.0 - z[:, 0]], axis=1)


def test_one_step_solves_what_is_linear() -> None:
    """Up to the damping, whose least factor is 1e-3, and the ridge that both know of."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 5)), rng.normal(size=30)
    least = np.linalg.lstsq(a, b, rcond=None)[0]
    descent = descended(lambda z: z @ a.T - b, np.zeros(5), 2)
    np.testing.assert_allclose(descent.best, least, atol=2e-3 + RIDGE)
    descent = descended(lambda z: z @ a.T - b, np.zeros(5), 6)
    np.testing.assert_allclose(descent.best, least, atol=1e-4)


def test_a_curved_valley_is_followed_to_its_end() -> None:
    start = np.array([-1.2, 1.0])
    assert descended(rosenbrock, start, 40).best_value < 0.1 < np.sum(rosenbrock(start[None]) ** 2)


def test_the_best_is_never_worse_than_the_start_and_is_what_was_told() -> None:
    start = np.array([0.3, -0.2])
    for populations in (1, 2, 3, 9):
        descent = descended(rosenbrock, start, populations)
        assert descent.best_value <= np.sum(rosenbrock(start[None]) ** 2)
        assert descent.best_value == np.sum(rosenbrock(descent.best[None]) ** 2)


def test_neighbours_that_fall_say_nothing_about_the_slope() -> None:
    """One direction falls off a cliff within a difference's reach; the other is solved as if the cliff were not there."""

    def cliff(z: Array) -> Array:
        return np.stack([z[:, 0] - 0.4, np.where(np.abs(z[:, 1]) > 0.01, 1e3, 0.0)], axis=1)

    descent = descended(cliff, np.zeros(2), 4)
    np.testing.assert_allclose(descent.best, [0.4, 0.0], atol=2e-3)


def test_at_rest_it_is_thrown_into_another_basin_and_keeps_what_it_had() -> None:
    """cos has a basin every turn, each deeper than the last to the right; slopes alone never leave the first."""

    def waves(z: Array) -> Array:
        return np.sqrt(np.maximum(2.0 + np.cos(6.0 * z) - 0.3 * z, 0.0))

    at_rest = descended(waves, np.array([0.5]), 2 * PATIENCE + 2)
    thrown = descended(waves, np.array([0.5]), 80)
    assert at_rest.best_value == pytest.approx(2.0 - 1.0 - 0.3 * np.pi / 6.0, abs=0.01)
    assert thrown.best_value < at_rest.best_value - 0.2


def test_the_seed_alone_decides() -> None:
    first, second = (descended(rosenbrock, np.array([-1.2, 1.0]), 60, seed=4) for _ in range(2))
    assert first.best.tobytes() == second.best.tobytes()


def test_steps_must_follow_a_look_around() -> None:
    descent = Descent(np.zeros(2), np.random.default_rng(0))
    z, looking = descent.ask()
    assert looking
    with pytest.raises(ValueError, match="without the steps"):
        descent.tell(np.zeros(len(z)))


def test_a_simulation_that_is_not_a_number_is_never_taken() -> None:
    descent = descended(rosenbrock, np.array([-1.2, 1.0]), 1)
    best = descent.best
    z, looking = descent.ask()
    assert not looking
    descent.tell(np.full(len(z), np.nan))
    np.testing.assert_array_equal(descent.best, best)
    np.testing.assert_array_equal(descent.ask()[0][0], [-1.2, 1.0])
