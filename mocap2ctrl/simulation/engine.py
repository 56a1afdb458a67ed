"""What every physics engine offers: the `Engine` protocol and the values it trades in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.simulation.environment import Environment
from mocap2ctrl.types import Array, SimState

TIME_STEP_S = 1.0 / 120.0
"""Vondrak's step size (appendix), seconds."""
PD_TIME_STEP_S = 0.005
"""Liu's step size (2016, §4), seconds."""

DIVERGED_VELOCITY = 300.0
"""rad/s or m/s beyond which a simulation counts as diverged and is stopped."""

Servo = Literal["velocity", "pd", "none"]
"""What a model's joints are driven by: Vondrak's velocity constraints, Liu's PD servos, or torques from outside only."""

Contacts = Literal["usual", "hard", "soft"]
"""How contacts give way: as controllers are fitted, or by about as much more or less as engines differ."""

LEFT, RIGHT = 0, 1


@dataclass(frozen=True, eq=False)
class FootContacts:
    """Forces of the ground on the feet during the last step.

    Attributes:
        load: (2,) magnitude of the net ground force on the left and the right foot, newtons; 0 where it does not touch.
        centre_of_pressure: (2, 3) force-weighted contact position of each foot, metres; zeros where it does not touch.
    """

    load: Array
    centre_of_pressure: Array


@runtime_checkable
class Engine(Protocol):
    """One character in one environment, with the servos that it was made with.

    They are velocity constraints with torque bounds (Vondrak Eq. 5, 15), or PD servos (Liu 2016). Coordinates are fixed to the
    ground; that an environment's ground sways is for those who step the engine to say, by the gravity that is felt on it.
    """

    name: str
    character: Character
    environment: Environment
    time_step_s: float
    torque_bounds: Array

    def reset(self, state: SimState) -> None:
        """Places the character in `state`; forgets contacts, servos and warm starts."""

    def state(self) -> SimState:
        """The current pose and velocities."""

    def state_vector(self) -> Array:
        """(7 + J + 2 (6 + J),) qpos, qvel and where the solver starts from (zeros if nowhere); see `simulation/coordinates.py`."""

    def set_state_vector(self, vector: npt.ArrayLike) -> None:
        """Places the character as `reset` does, from a state vector; servos and torques stay as they are set."""

    def snapshot(self) -> Array:
        """Everything that the next steps depend on, as one flat array."""

    def restore(self, snapshot: npt.ArrayLike) -> None:
        """Goes back to a snapshot: the same steps from it give the same bits."""

    def set_servo(self, velocities: npt.ArrayLike | None) -> None:
        """Target velocities (J,) in rad/s for the next steps' servos, or None for limp joints."""

    def set_pd(
        self, targets: npt.ArrayLike | None, stiffness: npt.ArrayLike = 0.0, damping: npt.ArrayLike = 0.0
    ) -> None:
        """PD servos of the next steps, or None for limp joints: torque = stiffness (target - q) - damping q'.

        The damping is integrated implicitly: its q' is the one after the step (Liu 2016, §4).

        Args:
            targets: (J,) rad.
            stiffness: (J,) or one number for all, N m/rad.
            damping: (J,) or one number for all, N m s/rad.
        """

    def set_torques(self, torques: npt.ArrayLike) -> None:
        """Joint torques (J,) in N m that are applied as they are in the next steps, in addition to the servos."""

    def apply_wrench(self, segment: int, force: npt.ArrayLike, torque: npt.ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """World force (3,) in N at the centre of mass of `segment` and torque (3,) in N m, for the next step only."""

    def set_gravity(self, gravity: npt.ArrayLike) -> None:
        """Gravity (3,) in m/s^2 from now on; at first it is the environment's."""

    def set_contacts(self, kind: Contacts) -> None:
        """How contacts give way from now on."""

    def step(self) -> None:
        """Advances by `time_step_s`."""

    def foot_contacts(self) -> FootContacts:
        """Ground forces on the feet in the last step."""

    def servo_torques(self) -> Array:
        """(J,) N m that the servos exerted in the last step."""

    def segment_frames(self) -> tuple[Array, Array]:
        """World positions (S, 3) and orientations (S, 4) of the segments."""


def load_threshold_n(character: Character) -> float:
    """Ground force above which a foot counts as loaded: 2 % of body weight, newtons."""
    return float(0.02 * 9.81 * np.sum([s.mass for s in character.segments]))
