"""`controller.json`: a controller that people read and edit, checked wholly at the door.

Every number has a name and a unit. Angles are radians, alpha is per 1/120 s. A state with `coefficients` gets its pose from the
prior; without, the pose is the named angles. An edited file is loaded as it is or refused with the place, what was given
and what is allowed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import (
    ALPHA_RANGE,
    SWINGS,
    Controller,
    ControlState,
    Exit,
    TargetPose,
)
from mocap2ctrl.control.entry_feedback import EntryFeedback, action_names, deviation_size
from mocap2ctrl.errors import ControllerFileError
from mocap2ctrl.files import write_json
from mocap2ctrl.types import Array, Pose, SimState

FORMAT = "mocap2ctrl controller"
VERSION = 1
UNITS = {"angles": "rad", "positions": "m", "velocities": "m/s, rad/s", "alpha": "per 1/120 s", "times": "s"}
AXES = ("x", "y", "z")

Decode = Callable[[Array], tuple[Array, Array]]
"""From a prior's coefficients (K,) to root rotation (3,) and angles (J,)."""


def save_controller(path: Path, controller: Controller, character: Character) -> None:
    """Writes `controller` to `path`, atomically."""
    write_json(path, controller_to_data(controller, character))


def load_controller(path: Path, character: Character, decode: Decode) -> Controller:
    """Reads and checks a controller.

    Raises:
        ControllerFileError: unreadable, or a wrong name, value or version; says where.
    """
    try:
        data = json.loads(path.read_text("utf-8"), object_pairs_hook=_without_repeats)
    except FileNotFoundError as error:
        raise ControllerFileError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ControllerFileError(f"{path}: cannot be read ({error})") from error
    except (ValueError, RecursionError) as error:
        raise ControllerFileError(
            f"{path}: not valid JSON: {error}; mend it there, or delete it and give the fit's command with --resume"
        ) from error
    return controller_from_data(data, character, decode, str(path))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """One JSON object; a name that stands twice is a slip of the hand, of which JSON would keep the last in silence."""
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            raise ValueError(f"{name!r} stands twice in one object")
        data[name] = value
    return data


def controller_to_data(controller: Controller, character: Character) -> dict[str, Any]:
    """The controller as plain JSON values."""
    start = controller.start
    names = character.hinge_names
    return {
        "format": FORMAT,
        "version": VERSION,
        "units": UNITS,
        "structure": controller.structure,
        "character": character.name,
        "prior": controller.prior,
        "heading": controller.heading,
        "states": [_state_to_data(state, character) for state in controller.states],
        "start": {
            "root_position": _axes(start.pose.root_position),
            "root_orientation_wxyz": [float(v) for v in start.pose.root_orientation],
            "angles": _named(names, start.pose.angles),
            "root_velocity": _axes(start.root_velocity),
            "root_angular_velocity": _axes(start.root_angular_velocity),
            "joint_velocities": _named(names, start.joint_velocities),
        },
        "provenance": dict(controller.provenance),
    }


def _state_to_data(state: ControlState, character: Character) -> dict[str, Any]:
    target: dict[str, Any] = {}
    if state.target.coefficients is not None:
        target["coefficients"] = [float(v) for v in state.target.coefficients]
    else:
        target["root_rotation"] = _axes(state.target.root_rotation)
        target["angles"] = _named(character.hinge_names, state.target.angles)
    data = {
        "name": state.name,
        "target": target,
        "alpha": _named(character.groups, state.alpha),
        "balance": [float(v) for v in state.balance],
        "swing": state.swing,
        "exit": _exit_to_data(state.exit),
    }
    return data if state.feedback is None else {**data, "feedback": _feedback_to_data(state.feedback, character)}


def _feedback_to_data(feedback: EntryFeedback, character: Character) -> dict[str, Any]:
    hinges, velocities = character.hinge_names, feedback.velocities
    return {
        "root_height": feedback.height,
        "root_rotation": _axes(feedback.root_rotation),
        "root_velocity": _axes(velocities[:3]),
        "root_angular_velocity": _axes(velocities[3:6]),
        "angles": _named(hinges, feedback.angles),
        "joint_velocities": _named(hinges, velocities[6:]),
        "gain": {
            name: [float(v) for v in row] for name, row in zip(action_names(character), feedback.gain, strict=True)
        },
    }


def _exit_to_data(exit_: Exit) -> dict[str, Any] | None:
    if exit_.kind == "never":
        return None
    if exit_.kind == "time":
        return {"time": exit_.time_s, "to": exit_.to}
    return {"contact": exit_.kind, "max_s": exit_.time_s, "to": exit_.to}


def _axes(values: Array) -> dict[str, float]:
    return _named(AXES, values)


def _named(names: Sequence[str], values: Array) -> dict[str, float]:
    return {name: float(v) for name, v in zip(names, values, strict=True)}


def controller_from_data(data: Any, character: Character, decode: Decode, source: str) -> Controller:
    """A controller from parsed JSON; `source` is named in errors. See `load_controller`."""
    root = _Reader(data, source)
    if root.get("format") != FORMAT:
        root.fail("format", root.get("format"), f"{FORMAT!r}")
    if root.get("version") != VERSION or isinstance(root.get("version"), bool):
        root.fail("version", root.get("version"), f"{VERSION}, the version that this mocap2ctrl reads")
    root.check_names(
        ["format", "version", "units", "structure", "character", "prior", "heading", "states", "start", "provenance"]
    )
    entries = root.get("states")
    if not isinstance(entries, list) or not entries:
        root.fail("states", entries, "a list of at least one state")
    readers = [_Reader(entry, source, f"states[{i}]") for i, entry in enumerate(entries)]
    names = [reader.text("name") for reader in readers]
    if len(set(names)) < len(names):
        root.fail("states", names, "names that differ from each other")
    start = root.child("start")
    provenance = root.get("provenance", {})
    return Controller(
        states=tuple(_state(reader, names, character, decode) for reader in readers),
        start=_start(start, character),
        heading=root.number("heading", -100.0, 100.0),
        prior=root.text("prior"),
        provenance=provenance if isinstance(provenance, Mapping) else {},
    )


def _start(start: _Reader, character: Character) -> SimState:
    start.check_names(
        [
            "root_position",
            "root_orientation_wxyz",
            "angles",
            "root_velocity",
            "root_angular_velocity",
            "joint_velocities",
        ]
    )
    orientation = start.numbers("root_orientation_wxyz", 4, -1.0, 1.0)
    length = float(np.linalg.norm(orientation))
    if abs(length - 1.0) > 1e-3:
        start.fail("root_orientation_wxyz", orientation.tolist(), "a quaternion of length 1")
    hinges = character.hinge_names
    if abs(length - 1.0) > 1e-9:
        orientation = orientation / length
    return SimState(
        Pose(start.named("root_position", AXES, -1e4, 1e4), orientation, start.named("angles", hinges, -7.0, 7.0)),
        start.named("root_velocity", AXES, -100.0, 100.0),
        start.named("root_angular_velocity", AXES, -200.0, 200.0),
        start.named("joint_velocities", hinges, -200.0, 200.0),
    )


def _state(reader: _Reader, names: Sequence[str], character: Character, decode: Decode) -> ControlState:
    reader.check_names(["name", "target", "alpha", "balance", "swing", "exit", "feedback"])
    swing = reader.text("swing") if reader.get("swing") is not None else "auto"
    if swing not in SWINGS:
        reader.fail("swing", swing, " or ".join(SWINGS))
    balance = reader.numbers("balance", 3, -1.0, 1.0)
    if balance[2] < 0:
        reader.fail("balance", balance.tolist(), "three numbers, the third from 0 to 1")
    return ControlState(
        name=reader.text("name"),
        target=_target(reader.child("target"), character, decode),
        alpha=reader.named("alpha", character.groups, ALPHA_RANGE[0], 1.0),
        balance=balance,
        swing=swing,
        exit=_exit(reader, names),
        feedback=None if reader.get("feedback") is None else _feedback(reader.child("feedback"), character),
    )


def _feedback(reader: _Reader, character: Character) -> EntryFeedback:
    """See `control/entry_feedback.py` for the columns of the gain."""
    motion = ["root_velocity", "root_angular_velocity"]
    reader.check_names(["root_height", "root_rotation", *motion, "angles", "joint_velocities", "gain"])
    hinges, gain = character.hinge_names, reader.child("gain")
    names, size = action_names(character), deviation_size(len(character.hinge_names))
    gain.check_names(names)
    velocities = [reader.named(name, AXES, -200.0, 200.0) for name in motion]
    return EntryFeedback(
        height=reader.number("root_height", -100.0, 100.0),
        root_rotation=reader.named("root_rotation", AXES, -50.0, 50.0),
        velocities=np.concatenate([*velocities, reader.named("joint_velocities", hinges, -200.0, 200.0)]),
        angles=reader.named("angles", hinges, -7.0, 7.0),
        gain=np.array([gain.numbers(name, size, -1e4, 1e4) for name in names]),
    )


def _target(reader: _Reader, character: Character, decode: Decode) -> TargetPose:
    if reader.get("coefficients") is not None:
        reader.check_names(["coefficients"])
        values = reader.get("coefficients")
        size = len(values) if isinstance(values, list) else 0
        coefficients = reader.numbers("coefficients", size, -1e3, 1e3)
        try:
            rotation, angles = decode(coefficients)
        except (ValueError, IndexError) as error:
            raise ControllerFileError(f"{reader.place('coefficients')}: {size} numbers do not fit the prior") from error
        return TargetPose(rotation, angles, coefficients)
    reader.check_names(["root_rotation", "angles"])
    return TargetPose(
        reader.named("root_rotation", AXES, -50.0, 50.0), reader.named("angles", character.hinge_names, -7.0, 7.0)
    )


def _exit(reader: _Reader, names: Sequence[str]) -> Exit:
    if reader.get("exit") is None:
        return Exit()
    exit_ = reader.child("exit")
    exit_.check_names(["time", "contact", "max_s", "to"])
    to = exit_.text("to")
    if to not in names:
        exit_.fail("to", to, f"a state's name: {', '.join(names)}")
    contact = exit_.get("contact")
    exit_.check_names(["time", "to"] if contact is None else ["contact", "max_s", "to"])
    if contact is None:
        return Exit("time", exit_.number("time", 1e-3, 3600.0), to)
    if contact not in ("left", "right"):
        exit_.fail("contact", contact, "left or right")
    return Exit(contact, exit_.number("max_s", 1e-3, 3600.0), to)


class _Reader:
    """Reads named values from one JSON object; every failure says file, place, what was given and what is allowed."""

    def __init__(self, data: Any, source: str, path: str = "") -> None:
        self._source, self._path = source, path
        if not isinstance(data, dict):
            raise ControllerFileError(f"{self.place('')}: is {_short(data)}; expected an object with names")
        self._data: dict[str, Any] = data

    def place(self, name: str) -> str:
        path = ".".join(p if p.isprintable() else repr(p) for p in (self._path, name) if p)
        return f"{self._source}: {path}" if path else self._source

    def fail(self, name: str, given: Any, allowed: str) -> None:
        raise ControllerFileError(f"{self.place(name)}: is {_short(given)}; allowed is {allowed}")

    def get(self, name: str, default: Any = None) -> Any:
        return self._data.get(name, default)

    def child(self, name: str) -> _Reader:
        if name not in self._data:
            raise ControllerFileError(f"{self.place(name)}: is missing")
        return _Reader(self._data[name], self._source, self.place(name)[len(self._source) + 2 :])

    def check_names(self, allowed: Sequence[str]) -> None:
        for name in self._data:
            if name not in allowed:
                raise ControllerFileError(f"{self.place(name)}: is not a known name; known are {', '.join(allowed)}")

    def text(self, name: str) -> str:
        value = self._data.get(name)
        if not isinstance(value, str) or not value or not value.isprintable():
            self.fail(name, value, "a text in one line")
        return str(value)

    def number(self, name: str, low: float, high: float) -> float:
        value = self._data.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.fail(name, value, f"a number from {low:g} to {high:g}")
        return float(self._data[name])

    def numbers(self, name: str, size: int, low: float, high: float) -> Array:
        values = self._data.get(name)
        valid = isinstance(values, list) and len(values) == size and all(_is_number(v, low, high) for v in values)
        if not valid:
            self.fail(name, values, f"{size} numbers from {low:g} to {high:g}")
        return np.array(values, dtype=float)

    def named(self, name: str, keys: Sequence[str], low: float, high: float) -> Array:
        child = self.child(name)
        child.check_names(keys)
        return np.array([child.number(key, low, high) for key in keys])


def _is_number(value: Any, low: float, high: float) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high and math.isfinite(value)
    )


def _short(value: Any) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
