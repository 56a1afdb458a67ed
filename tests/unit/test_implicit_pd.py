"""Implicit PD torques against closed forms: limbs without contacts, contacts that hold joints, answers that jump."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.simulation.implicit_pd import implicit_torques
from mocap2ctrl.types import Array

STEP_S = 0.005


class Limbs:
    """Joints whose velocity after a step is v + h (W τ + g), with `ground` (J, J) taken from W while they press down."""

    def __init__(self, mobility: Array, velocity: Array, ground: Array | float = 0.0) -> None:
        self.mobility, self.velocity, self.ground, self.trials = mobility, velocity, ground, 0
        self.pull = np.linspace(-30.0, 20.0, len(velocity))

    def advance(self, torques: Array) -> Array:
        self.trials += 1
        self.last = torques
        return self.velocity + STEP_S * ((self.mobility - self.ground) @ torques + self.pull)


def limbs(seed: int, joints: int = 12) -> tuple[Limbs, Array, Array]:
    """Coupled joints of very different inertias, the torques asked of them, and their damping."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(joints, joints)) / np.sqrt(np.geomspace(0.01, 5.0, joints))[:, None]
    return Limbs(mix @ mix.T, rng.normal(size=joints)), 100.0 * rng.normal(size=joints), rng.uniform(1.0, 60.0, joints)


@pytest.mark.parametrize("seed", range(4))
def test_without_contacts_one_more_trial_is_the_closed_form(seed: int):
    body, explicit, damping = limbs(seed)
    found = implicit_torques(body.advance, explicit, body.velocity, damping, body.mobility, STEP_S)
    # τ = E - D h (W τ + g)
    slope = np.eye(12) + STEP_S * damping[:, None] * body.mobility
    expected = np.linalg.solve(slope, explicit - STEP_S * damping * body.pull)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert body.trials == 2
    assert np.array_equal(found, body.last)


@pytest.mark.parametrize("seed", range(4))
def test_contacts_that_hold_joints_are_found_by_trial(seed: int):
    body, explicit, damping = limbs(seed)
    held = np.random.default_rng(seed).normal(size=(12, 4))
    blocked = body.mobility @ held
    body.ground = blocked @ np.linalg.solve(held.T @ blocked, blocked.T)  # W without its motion along four directions
    found = implicit_torques(body.advance, explicit, body.velocity, damping, body.mobility, STEP_S)
    after = body.advance(found)
    np.testing.assert_allclose(found, explicit - damping * (after - body.velocity), atol=1e-3)
    free = np.linalg.solve(np.eye(12) + STEP_S * damping[:, None] * body.mobility, explicit)
    assert np.max(np.abs(found - free)) > 1.0  # what stable PD would have applied


def test_an_answer_that_jumps_ends_with_the_nearest_trial_applied_last():
    applied: list[float] = []

    def advance(torques: Array) -> Array:
        applied.append(float(torques[0]))
        return np.array([1.0 if torques[0] > 3.0 else -1.0])  # no τ is 2 - 4 q'(τ)

    found = implicit_torques(advance, np.array([2.0]), np.zeros(1), np.array([4.0]), np.array([[1.0]]), STEP_S)
    assert applied[-1] == found[0]
    missing = [abs(2.0 - 4.0 * (1.0 if torque > 3.0 else -1.0) - torque) for torque in applied]
    assert missing[-1] == min(missing)
    assert len(applied) < 60


def test_a_state_that_has_diverged_ends_at_once():
    calls = []

    def advance(torques: Array) -> Array:
        calls.append(torques)
        return np.full(2, np.nan)

    implicit_torques(advance, np.ones(2), np.zeros(2), np.ones(2), np.eye(2), STEP_S)
    assert len(calls) == 1
