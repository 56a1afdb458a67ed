"""Finds an engine by its name; an engine's library is imported when it is asked for."""

from __future__ import annotations

import importlib.util

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.engine import Engine, Servo
from mocap2ctrl.simulation.environment import LEVEL, Environment

ENGINES = ("mujoco", "bullet")


def make_engine(
    name: str,
    character: Character,
    *,
    torque_scale: float = 1.0,
    servo: Servo = "velocity",
    environment: Environment = LEVEL,
) -> Engine:
    """The engine called `name`, holding `character` in `environment`; torque bounds are scaled by `torque_scale`.

    Raises:
        EngineError: no such engine, its library is not installed, or it has no such environments.
    """
    check_engine(name)
    if name == "mujoco":
        from mocap2ctrl.simulation.mujoco import MujocoEngine

        return MujocoEngine(character, torque_scale=torque_scale, servo=servo, environment=environment)
    from mocap2ctrl.simulation.bullet import BulletEngine

    return BulletEngine(character, torque_scale=torque_scale, servo=servo, environment=environment)


def check_engine(name: str) -> None:
    """Whether there is such an engine.

    Raises:
        EngineError: no such engine, or its library is not installed.
    """
    if name not in ENGINES:
        raise EngineError(f"engine {name!r} is not available; choose one of {', '.join(map(repr, ENGINES))}")
    if name == "bullet" and not has_bullet():
        raise EngineError(
            "engine 'bullet' is not available: pybullet is not installed (it has no wheel for CPython 3.12 and newer); "
            "use CPython 3.11, or choose 'mujoco'"
        )


def has_bullet() -> bool:
    """Whether pybullet is installed."""
    return importlib.util.find_spec("pybullet") is not None


def available_engines() -> tuple[str, ...]:
    """Names of the engines whose libraries are installed."""
    return tuple(name for name in ENGINES if name != "bullet" or has_bullet())
