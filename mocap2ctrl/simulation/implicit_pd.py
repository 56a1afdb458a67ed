"""PD servos with implicit damping (Liu 2016, §4) around an engine that knows torques only.

The law is τ = E - k_d (q'(t + h) - q'(t)), where E is the torque before the step, and the velocity after it depends on τ through
limbs, contacts and limits. Without contacts q'(t + h) is affine in τ, its slope h W known from the mass matrix, and one trial step
tells the rest: that is the stable PD of Tan, Liu and Turk (2011). A foot on the ground gives way less than W says, so trial steps
follow, each a step of Broyden's method (1965) from the free slope, until the law holds for the torque that was applied.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mocap2ctrl.types import Array

TOLERANCE = 1e-6
"""Of the law, N m for each N m of the largest torque."""
MOST_TRIALS = 40
GROWTH = 1.5
"""A trial whose error grows by more is taken back by half."""
SHORTEST = 0.05


def implicit_torques(
    advance: Callable[[Array], Array],
    explicit: Array,
    velocity: Array,
    damping: Array,
    mobility: Array,
    time_step_s: float,
) -> Array:
    """The torques (J,) in N m that keep the law, applied in the last call of `advance`.

    A body that is thrown to the ground may meet contacts for which the engine's answer jumps, so that no torque keeps it. Then the
    trial is left that came nearest to it.

    Args:
        advance: does one step from the same state with joint torques (J,), and returns the hinges' velocities after it.
        explicit: (J,) N m: E, stiffness (target - q) - damping q'(t), within the bounds.
        velocity: (J,) q'(t), rad/s.
        damping: (J,) N m s/rad.
        mobility: (J, J) W: the hinges' accelerations by joint torques without contacts, 1/(kg m²).
        time_step_s: h.
    """
    inverse = np.linalg.inv(np.eye(len(damping)) + time_step_s * damping[:, None] * mobility)

    def missing(torques: Array) -> Array:
        return np.asarray(explicit - damping * (advance(torques) - velocity) - torques)

    torques = inverse @ explicit
    error = missing(torques)
    best, least = torques, _size(error)
    base, base_error, length = torques, error, 1.0
    change = inverse @ error
    for _ in range(MOST_TRIALS):
        if not least > TOLERANCE * (1.0 + _size(best)):  # NaN too: a state that has diverged
            break
        torques = base + change
        error = missing(torques)
        if _size(error) < least:
            best, least = torques, _size(error)
        carried = inverse @ (base_error - error)  # Broyden's first method, by Sherman and Morrison
        inverse = inverse + np.outer(change - carried, change @ inverse) / (change @ carried)
        if _size(error) > GROWTH * _size(base_error) and length > SHORTEST:
            length, change = 0.5 * length, 0.5 * change
        else:
            base, base_error, length = torques, error, 1.0
            change = inverse @ error
    if torques is not best:
        advance(best)
    return best


def _size(values: Array) -> float:
    return float(np.max(np.abs(values)))
