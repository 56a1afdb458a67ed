"""Finds an engine by its name; an engine's library is imported when it is asked for."""

from __future__ import annotations

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.engine import Engine


def make_engine(name: str, character: Character, *, torque_scale: float = 1.0) -> Engine:
    """The engine called `name`, holding `character` on flat ground; torque bounds are scaled by `torque_scale`.

    Raises:
        EngineError: no such engine.
    """
    if name == "mujoco":
        from mocap2ctrl.simulation.mujoco import MujocoEngine

        return MujocoEngine(character, torque_scale=torque_scale)
    raise EngineError(f"engine {name!r} is not available; choose 'mujoco'")
