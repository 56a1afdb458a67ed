"""Worlds that differ a little from the one in which a controller is fitted: it is to stand in all of them.

Each is made of what every engine has: the grip of the ground and how it gives way, the direction of gravity, the strength of
muscles, and shoves. Gravity that leans is a slope whose coordinates lie in the slope, so that the reference stays what the body
is to do on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.simulation.choose import make_engine
from mocap2ctrl.simulation.engine import Contacts, Engine
from mocap2ctrl.simulation.environment import GRAVITY_M_S2, Environment
from mocap2ctrl.simulation.pushes import Push

SHOVED = "chest"
SHOVE_S, SHOVES_EVERY_S, SHOVES = 0.1, 0.3, 40

CONTACTS: tuple[Contacts, ...] = ("usual", "hard", "soft")
LEAN_DEGREES, SHOVE_N = 2.0, 60.0


@dataclass(frozen=True)
class World:
    """How a world differs.

    Attributes:
        name: for people.
        friction: factor on the character's coefficient.
        contacts: how they give way.
        lean_degrees: of gravity, along x and along y.
        strength: factor on the torque bounds.
        shove_n: of shoves in directions by chance, N; 0 for none.
        seed: of the directions.
    """

    name: str
    friction: float = 1.0
    contacts: Contacts = "usual"
    lean_degrees: tuple[float, float] = (0.0, 0.0)
    strength: float = 1.0
    shove_n: float = 0.0
    seed: int = 0

    def engine(self, name: str, character: Character, torque_scale: float) -> Engine:
        """The engine called `name` in this world."""
        environment = Environment(self.name, friction=self.friction * character.friction)
        made = make_engine(name, character, torque_scale=self.strength * torque_scale, environment=environment)
        made.set_contacts(self.contacts)
        ahead, left = np.tan(np.radians(self.lean_degrees))
        made.set_gravity(GRAVITY_M_S2 * np.array([ahead, left, -1.0]) / np.sqrt(1.0 + ahead**2 + left**2))
        return made

    def pushes(self, character: Character) -> tuple[Push, ...]:
        """The shoves, at fixed times of a simulation."""
        if self.shove_n == 0.0:
            return ()
        angles = np.random.default_rng(self.seed).uniform(0.0, 2.0 * np.pi, SHOVES)
        segment = character.segment_index(SHOVED)
        return tuple(
            Push(segment, self.shove_n * np.array([np.cos(a), np.sin(a), 0.0]), SHOVES_EVERY_S * (n + 0.5), SHOVE_S)
            for n, a in enumerate(angles)
        )


def drawn_worlds(count: int, rng: np.random.Generator) -> tuple[World, ...]:
    """So many worlds, all of whose numbers are drawn."""
    return tuple(
        World(
            f"world {n + 1}",
            friction=rng.uniform(0.7, 1.3),
            contacts=CONTACTS[int(rng.integers(len(CONTACTS)))],
            lean_degrees=tuple(rng.uniform(-LEAN_DEGREES, LEAN_DEGREES, 2).tolist()),
            strength=rng.uniform(0.85, 1.15),
            shove_n=rng.uniform(0.0, SHOVE_N),
            seed=int(rng.integers(2**31)),
        )
        for n in range(count)
    )
