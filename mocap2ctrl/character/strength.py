"""How strong people are: maximum voluntary torques at our hinges, each with its source (`strength.toml`).

Simulated torques are printed beside them, because the actuators' own bounds (gamma, Vondrak §4.1.1) are far above them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.types import Array


@dataclass(frozen=True)
class Strength:
    """What a healthy adult man can do about one hinge in one direction.

    Attributes:
        movement: clinical name, for example `plantarflexion`.
        torque: N m at the data's reference mass; None where no source was found.
        source: where the number comes from; empty without a number.
    """

    movement: str
    torque: float | None
    source: str


@dataclass(frozen=True)
class StrengthTable:
    """All strengths: `hinges` maps a hinge's name without its side to (negative, positive) direction."""

    reference_mass_kg: float
    hinges: dict[str, tuple[Strength, Strength]]


@cache
def strength_table() -> StrengthTable:
    """Return the published values, as shipped."""
    text = resources.files("mocap2ctrl.character").joinpath("strength.toml").read_text("utf-8")
    data = tomllib.loads(text)
    sources = data["sources"]

    def strength(entry: dict[str, str | float]) -> Strength:
        torque = float(entry["torque"]) if "torque" in entry else None
        return Strength(str(entry["movement"]), torque, sources[entry["source"]] if "source" in entry else "")

    hinges = {e["hinge"]: (strength(e["negative"]), strength(e["positive"])) for e in data["strength"]}
    return StrengthTable(float(data["reference_mass_kg"]), hinges)


def without_side(hinge_name: str) -> str:
    """`left_thigh.flexion` becomes `thigh.flexion`; names on the midline are left alone."""
    side, _, rest = hinge_name.partition("_")
    return rest if side in SIDES else hinge_name


def directional_torque_limits(character: Character) -> Array:
    """(J, 2) N m: maximum voluntary torque in each hinge's negative and positive direction; NaN where unknown.

    Proportional to body mass, as the sources that normalise their values do.
    """
    table = strength_table()
    scale = character.mass_kg / table.reference_mass_kg
    limits = np.full((len(character.hinges), 2), np.nan)
    for row, name in enumerate(character.hinge_names):
        for column, strength in enumerate(table.hinges.get(without_side(name), ())):
            if strength.torque is not None:
                limits[row, column] = scale * strength.torque
    return limits


def human_torque_limits(character: Character) -> Array:
    """(J,) N m: the larger of a hinge's two directions, ignoring unknown ones; NaN where both are unknown."""
    return np.asarray(np.fmax.reduce(directional_torque_limits(character), axis=1))
