"""`diverged/NNNN.json` in a capture: diverged simulations, kept so that they can be replayed. Whole or absent, never a pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mocap2ctrl.character.model import parse_character
from mocap2ctrl.control.closed_loop import start_step, start_vector
from mocap2ctrl.control.controller import Controller
from mocap2ctrl.control.file import controller_from_data, controller_to_data
from mocap2ctrl.control.law import MEMORY_SIZE, STATE
from mocap2ctrl.errors import CaptureError, Mocap2CtrlError
from mocap2ctrl.files import write_json
from mocap2ctrl.fit.config import config_from_mapping
from mocap2ctrl.fit.divergence import Divergence
from mocap2ctrl.types import Array

FOLDER = "diverged"
FORMAT = "mocap2ctrl divergence"
VERSION = 1
LONGEST_STEPS = 100_000
"""A quarter of an hour: more is no fit's."""

NAMES = (
    *("format", "version", "stage", "generation", "search", "sample", "engine", "torque_scale"),
    *("end_step", "begin", "controller", "character", "config"),
)


def divergence_path(capture: Path, number: int) -> Path:
    """Where the divergence `number`, from 1, of a capture is kept."""
    return capture / FOLDER / f"{number:04d}.json"


def save_divergence(path: Path, divergence: Divergence) -> None:
    """Writes a divergence. Numbers come back to the bit; those that JSON does not have are texts."""
    d = divergence
    values = {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(d, name) for name in NAMES[2:9]},
        "begin": [float(v) if math.isfinite(v) else str(float(v)) for v in d.begin],
        "controller": controller_to_data(d.controller, d.character),
        "character": dict(d.character.description),
        "config": asdict(d.config),
    }
    path.parent.mkdir(exist_ok=True)
    write_json(path, values)


def load_divergence(path: Path) -> Divergence:
    """Reads and checks a divergence.

    Raises:
        CaptureError: there is none, or it is damaged; says where.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise CaptureError(f"{path}: no such file; {_known(path.parent)}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CaptureError(f"{path}: cannot be read ({error})") from error
    try:
        return _divergence(_Fields(data, path))
    except CaptureError:
        raise
    except Mocap2CtrlError as error:  # the controller's, the character's or the settings' own check
        raise CaptureError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error


def _known(folder: Path) -> str:
    numbers = [str(int(p.stem)) for p in sorted(folder.glob("[0-9][0-9][0-9][0-9].json"))]
    return f"there are {', '.join(numbers)}" if numbers else "no simulation of this fit has diverged"


def _divergence(fields: _Fields) -> Divergence:
    fields.check_names()
    if fields.data["format"] != FORMAT or fields.data["version"] != VERSION:
        fields.refuse("version", f"{FORMAT!r}, {VERSION}, which this version reads")
    character = parse_character(fields.table("character"), f"{fields.path}: character")
    controller = controller_from_data(fields.table("controller"), character, _no_prior, f"{fields.path}: controller")
    begin = fields.begin(controller)
    first = start_step(begin)
    return Divergence(
        controller=controller,
        begin=begin,
        end_step=fields.whole("end_step", first, first + LONGEST_STEPS),
        character=character,
        engine=fields.text("engine"),
        torque_scale=fields.number("torque_scale", 0.01, 10.0),
        stage=fields.text("stage"),
        generation=fields.whole("generation", 0, 2**31),
        search=fields.whole("search", 0, 2**31),
        sample=fields.whole("sample", 0, 2**31),
        config=config_from_mapping(fields.table("config")),
    )


def _no_prior(coefficients: Array) -> tuple[Array, Array]:
    raise ValueError("targets are plain angles here")


class _Fields:
    """The named values of a divergence; every failure says file, name, what was given and what is allowed."""

    def __init__(self, data: Any, path: Path) -> None:
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        self.path = path

    def refuse(self, name: str, allowed: str) -> None:
        given = repr(self.data.get(name))
        raise CaptureError(f"{self.path}: {name} is {given[:60]}; allowed is {allowed}")

    def check_names(self) -> None:
        for name in NAMES:
            if name not in self.data:
                raise CaptureError(f"{self.path}: {name} is missing; expected a file that mocap2ctrl fit has written")

    def table(self, name: str) -> Mapping[str, Any]:
        if not isinstance(self.data[name], dict):
            self.refuse(name, "an object with names")
        return dict(self.data[name])

    def text(self, name: str) -> str:
        if not isinstance(self.data[name], str) or not self.data[name].isprintable():
            self.refuse(name, "a text in one line")
        return str(self.data[name])

    def number(self, name: str, low: float, high: float) -> float:
        value = self.data[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.refuse(name, f"a number from {low:g} to {high:g}")
        return float(self.data[name])

    def whole(self, name: str, low: int, high: int) -> int:
        if self.number(name, low, high) % 1 != 0:
            self.refuse(name, f"a whole number from {low} to {high}")
        return int(self.data[name])

    def begin(self, controller: Controller) -> Array:
        """(K,) `begin`; compiled code trusts its numbers of state and step."""
        size = len(start_vector(controller.start))
        values = self.data["begin"]
        if not isinstance(values, list) or len(values) != size or not all(map(_is_number, values)):
            self.refuse("begin", f"{size} numbers")
        begin = np.array([float(v) for v in values])
        memory = begin[size - MEMORY_SIZE :]
        states = len(controller.states)
        if not np.isfinite(memory).all() or not 0 <= memory[STATE] < states or not 0 <= start_step(begin) < 2**31:
            self.refuse("begin", f"one that ends in a machine of {states} states and a number of steps")
        return begin


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("nan", "inf", "-inf")
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53)
