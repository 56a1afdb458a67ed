"""Fixtures shared by all tests: the built-in character, one engine, and a controller that steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.control.controller import Controller, ControlState, Exit, TargetPose
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.types import Array, SimState

settings.register_profile("repository", deadline=None, derandomize=True, database=None)
settings.load_profile("repository")  # the same examples every time; first calls compile


@pytest.fixture(scope="session")
def character() -> Character:
    return load_character()


@pytest.fixture(scope="session")
def engine(character: Character) -> MujocoEngine:
    """One engine for all tests: `run` and `reset` start it afresh."""
    return MujocoEngine(character)


@pytest.fixture(scope="session")
def standing(character: Character) -> SimState:
    """Upright, at rest, soles on the ground."""
    hinges = len(character.hinges)
    return SimState(character.zero_pose(), np.zeros(3), np.zeros(3), np.zeros(hinges))


@pytest.fixture(scope="session")
def angles_of(character: Character) -> Callable[..., Array]:
    """Angles (J,) from degrees by hinge name, with `__` for the point: `angles_of(left_shank__flexion=30)`."""

    def angles(**degrees: float) -> Array:
        values = np.zeros(len(character.hinges))
        for name, value in degrees.items():
            values[character.hinge_names.index(name.replace("__", "."))] = np.radians(value)
        return values

    return angles


@pytest.fixture(scope="session")
def state_of(character: Character) -> Callable[..., ControlState]:
    """A control state from what matters to a test."""

    def state(
        name: str,
        angles: Array,
        exit_: Exit | None = None,
        *,
        swing: str = "auto",
        balance: tuple[float, float, float] = (0.0, 0.0, 0.0),
        alpha: float = 0.1,
        root: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> ControlState:
        rates = np.full(len(character.groups), alpha)
        return ControlState(name, TargetPose(np.array(root), angles), rates, np.array(balance), swing, exit_ or Exit())

    return state


@pytest.fixture(scope="session")
def stepping(standing: SimState, angles_of: Callable[..., Array], state_of: Callable[..., ControlState]) -> Controller:
    """Lifts and lands one leg after the other: four states, time and contact exits, balance feedback; a cycle."""
    left_up = angles_of(left_thigh__flexion=52, left_shank__flexion=63, right_thigh__flexion=-6)
    left_down = angles_of(left_thigh__flexion=17, left_shank__flexion=6, right_thigh__flexion=-11)
    right_up = angles_of(right_thigh__flexion=52, right_shank__flexion=63, left_thigh__flexion=-6)
    right_down = angles_of(right_thigh__flexion=17, right_shank__flexion=6, left_thigh__flexion=-11)
    theta = (0.3, 0.2, 0.3)
    states = (
        state_of("lift left", left_up, Exit("time", 0.25, "land left"), swing="left", balance=theta),
        state_of("land left", left_down, Exit("left", 0.5, "lift right"), swing="left", balance=theta),
        state_of("lift right", right_up, Exit("time", 0.25, "land right"), swing="right", balance=theta),
        state_of("land right", right_down, Exit("right", 0.5, "lift left"), swing="right", balance=theta),
    )
    return Controller(states, standing)
