"""What loops ask of the surroundings in each step, compiled: whether a push acts, and how the ground moves under the feet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mocap2ctrl.compiled import njit
from mocap2ctrl.control.law import LOAD, PRESSURE
from mocap2ctrl.simulation.environment import Environment
from mocap2ctrl.types import Array


def moving_ground(environment: Environment) -> Array:
    """(N, 8) the belt, if there is one: world velocity (2,), direction of the way (2,), origin (2,), where it starts and ends."""
    belt = environment.belt
    if belt is None:
        return np.empty((0, 8))
    cosine, sine = np.cos(environment.heading), np.sin(environment.heading)
    ahead, left = belt.velocity_m_s
    velocity = (ahead * cosine - left * sine, ahead * sine + left * cosine)
    ends = (-np.inf, np.inf) if belt.length_m is None else (belt.start_m, belt.start_m + belt.length_m)
    return np.array([[*velocity, cosine, sine, *environment.origin_m, *ends]])


@njit
def push_acts(push, step):  # type: ignore[no-untyped-def]
    """Whether a push, a row of `push_table`, acts in a step."""
    since = step - push[0]
    return since >= 0 and since % push[2] < push[1]


def forces_at(pushes: Sequence[Array] | Array, step: int) -> dict[int, Array]:
    """The force (3,) on each segment that is pushed in a step, by N rows of `push_table`."""
    forces: dict[int, Array] = {}
    for push in pushes:
        if push_acts(push, step):
            forces[int(push[3])] = forces.get(int(push[3]), np.zeros(3)) + push[4:]
    return forces


@njit
def velocity_on_belt(belt, memory, velocity, time_step_s):  # type: ignore[no-untyped-def]
    """(3,) the centre of mass's `velocity` as the feet feel it: less that of the belt under them, by the loads on them.

    Their centres of pressure, which are those of the step before, are moved along with the belt in `memory`.
    """
    felt = velocity.copy()
    load = memory[LOAD] + memory[LOAD + 1]
    for k in range(belt.shape[0]):
        for side in range(2):
            place = memory[PRESSURE + 3 * side : PRESSURE + 3 * side + 2]
            along = belt[k, 2] * (place[0] - belt[k, 4]) + belt[k, 3] * (place[1] - belt[k, 5])
            if memory[LOAD + side] > 0.0 and belt[k, 6] <= along <= belt[k, 7]:
                for i in range(2):
                    felt[i] -= memory[LOAD + side] / load * belt[k, i]
                    place[i] += time_step_s * belt[k, i]
    return felt
