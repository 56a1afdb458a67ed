"""One character under PD servos in any engine, step by step, seen as `PdRollouts` and `mujoco_stage` see it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.choose import check_engine, make_engine
from mocap2ctrl.simulation.engine import DIVERGED_VELOCITY
from mocap2ctrl.simulation.environment import LEVEL, Environment
from mocap2ctrl.simulation.mujoco_stage import Stage
from mocap2ctrl.simulation.pd_gains import PdGains
from mocap2ctrl.simulation.terrain import felt_gravity
from mocap2ctrl.types import Array


class AnyStage(Protocol):
    """What a stage offers, see `mujoco_stage.Stage`."""

    def place(self, snapshots: npt.ArrayLike) -> None:
        """Puts the characters where snapshots (N, K) say, and starts the clock."""

    def snapshots(self) -> Array:
        """(N, K) where the characters are."""

    def step(self, targets: npt.ArrayLike) -> bool:
        """One step of 5 ms towards targets (N, J); whether nothing has diverged."""

    def push(self, character: int, segment: int, force: npt.ArrayLike) -> None:
        """A force (3,) on a segment in the next steps, until another is given."""

    def collisions(self) -> tuple[tuple[int, int], ...]:
        """Which two characters touched in the last step."""


class EngineStage:
    """The stage of one character in an `Engine`."""

    def __init__(
        self,
        name: str,
        character: Character,
        gains: PdGains,
        *,
        torque_scale: float = 1.0,
        environment: Environment = LEVEL,
    ) -> None:
        """In the engine `name`; other arguments as for `Stage`."""
        self._engine = make_engine(name, character, torque_scale=torque_scale, servo="pd", environment=environment)
        self._gains, self._joints, self._steps = gains, len(character.hinges), 0
        self._force = np.zeros((len(character.segments), 3))

    def place(self, snapshots: npt.ArrayLike) -> None:
        """See `AnyStage.place`."""
        flat = np.asarray(snapshots, float)[0]
        warm = np.zeros(6 + self._joints)  # where a solver starts from: nowhere
        self._engine.set_state_vector(np.concatenate([flat[1:], warm]))
        self._steps, self._force[:] = 0, 0.0

    def snapshots(self) -> Array:
        """See `AnyStage.snapshots`."""
        state = self._engine.state_vector()[: 13 + 2 * self._joints]
        return np.concatenate([[self._steps * self._engine.time_step_s], state])[None]

    def step(self, targets: npt.ArrayLike) -> bool:
        """See `AnyStage.step`."""
        engine = self._engine
        engine.set_pd(np.asarray(targets, float)[0], self._gains.stiffness, self._gains.damping)
        if engine.environment.sway is not None:
            engine.set_gravity(felt_gravity(engine.environment, self._steps, engine.time_step_s))
        for segment in np.flatnonzero(self._force.any(axis=1)):
            engine.apply_wrench(int(segment), self._force[segment])
        engine.step()
        self._steps += 1
        return bool(np.all(np.abs(engine.state_vector()[7 + self._joints :]) < DIVERGED_VELOCITY))  # False for NaN

    def push(self, character: int, segment: int, force: npt.ArrayLike) -> None:
        """See `AnyStage.push`."""
        self._force[segment] = force

    def collisions(self) -> tuple[tuple[int, int], ...]:
        """None: there is nobody else."""
        return ()


def make_stage(
    engine: str,
    character: Character,
    count: int,
    gains: PdGains,
    *,
    torque_scale: float = 1.0,
    environment: Environment = LEVEL,
) -> AnyStage:
    """The stage for `count` characters in the engine of that name.

    Raises:
        EngineError: no such engine, no such environment in it, or no room for so many characters.
    """
    check_stage(engine, count)
    if engine == "mujoco":
        return Stage(character, count, gains, torque_scale=torque_scale, environment=environment)
    return EngineStage(engine, character, gains, torque_scale=torque_scale, environment=environment)


def check_stage(engine: str, count: int) -> None:
    """Whether an engine holds so many characters.

    Raises:
        EngineError: it does not, or is not there.
    """
    check_engine(engine)
    if engine != "mujoco" and count > 1:
        raise EngineError(
            f"engine {engine!r} holds one character at a time; there are {count}; choose 'mujoco' for them"
        )
