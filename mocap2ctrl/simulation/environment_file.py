"""Environments by name or from a TOML file, checked once at the door."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from mocap2ctrl.errors import ConfigError
from mocap2ctrl.simulation.environment import (
    GRAVITY_M_S2,
    Belt,
    Curb,
    Environment,
    Load,
    Slope,
    Softness,
    Stairs,
    Sway,
)

FORMAT = 1
AHEAD = (0.0, 90.0)
SPEED = (-20.0, 20.0)


def load_environment(spec: Path | str) -> Environment:
    """The environment of a file, or one that the package ships, by name. A file of that name wins.

    Raises:
        ConfigError: neither is there, or the file cannot be used; says why.
    """
    if Path(spec).is_file():
        return _parsed(_text(Path(spec)), str(spec), Path(spec).stem)
    shipped = resources.files("mocap2ctrl.simulation").joinpath("environments", f"{spec}.toml")
    if str(spec) in environment_names():
        return _parsed(shipped.read_text("utf-8"), f"environment {str(spec)!r}", str(spec))
    raise ConfigError(
        f"environment {str(spec)!r}: no such file, and none of that name; give a TOML file, or one of "
        f"{', '.join(environment_names())}"
    )


def environment_names() -> tuple[str, ...]:
    """Names of the environments that the package ships."""
    folder = resources.files("mocap2ctrl.simulation").joinpath("environments")
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from error


def _parsed(text: str, source: str, name: str) -> Environment:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not valid TOML: {error}") from error
    if data.pop("format", None) != FORMAT:
        raise ConfigError(f"{source}: needs the line `format = {FORMAT}`")
    top = _Table(source, "", data)
    top.text("about", "")
    if "friction" in data and "friction_divisor" in data:
        raise ConfigError(f"{source}: has friction and friction_divisor; give one of them")
    loads = tuple(_load(table) for table in top.tables("load"))
    environment = Environment(
        name=top.text("name", name),
        gravity_m_s2=top.number("gravity_m_s2", (0.1, 50.0), GRAVITY_M_S2),
        friction=top.number("friction", (0.0, 10.0)) if "friction" in data else None,
        friction_divisor=top.number("friction_divisor", (0.1, 1e5), 1.0),
        slope=_slope(top.table("slope")),
        stairs=_stairs(top.table("stairs")),
        curbs=tuple(_curb(table) for table in top.tables("curb")),
        belt=_belt(top.table("belt")),
        sway=_sway(top.table("sway")),
        softness=_softness(top.table("soft")),
        loads=loads,
    )
    top.refuse_others()
    return environment


class _Table:
    """One table of the file; remembers which keys were asked for."""

    def __init__(self, source: str, name: str, data: Mapping[str, Any]) -> None:
        self.source, self._name, self._data = source, name, data
        self._known: list[str] = []

    def number(self, key: str, bounds: tuple[float, float], default: float | None = None) -> float:
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not bounds[0] <= value <= bounds[1]:
            raise self._wrong(key, value, f"a number from {bounds[0]:g} to {bounds[1]:g}")
        return float(value)

    def optional(self, key: str, bounds: tuple[float, float]) -> float | None:
        self._known.append(key)
        return self.number(key, bounds) if key in self._data else None

    def whole(self, key: str, bounds: tuple[int, int]) -> int:
        value = self._take(key, None)
        if isinstance(value, bool) or not isinstance(value, int) or not bounds[0] <= value <= bounds[1]:
            raise self._wrong(key, value, f"a whole number from {bounds[0]} to {bounds[1]}")
        return value

    def vector(self, key: str, size: int, bounds: tuple[float, float], default: Sequence[float] | None = None) -> Any:
        value = self._take(key, default)
        fits = isinstance(value, list | tuple) and len(value) == size
        if not fits or not all(type(v) in (int, float) and bounds[0] <= v <= bounds[1] for v in value):
            raise self._wrong(key, value, f"{size} numbers from {bounds[0]:g} to {bounds[1]:g}")
        return tuple(float(v) for v in value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, "text in quotes")
        return value

    def table(self, key: str) -> _Table | None:
        self._known.append(key)
        value = self._data.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise self._wrong(key, value, f"a table, [{key}]")
        return None if value is None else _Table(self.source, key, value)

    def tables(self, key: str) -> list[_Table]:
        self._known.append(key)
        value = self._data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
            raise self._wrong(key, value, f"tables, [[{key}]]")
        return [_Table(self.source, key, entry) for entry in value]

    def refuse_others(self) -> None:
        """Raises `ConfigError` for a key that nobody asked for."""
        for key in self._data:
            if key not in self._known:
                where = f" in [{self._name}]" if self._name else ""
                raise ConfigError(f"{self.source}: unknown key {key!r}{where}; known are {', '.join(self._known)}")

    def _take(self, key: str, default: Any) -> Any:
        self._known.append(key)
        value = self._data.get(key, default)
        if value is None:
            raise ConfigError(f"{self.source}: [{self._name}] needs the key {key!r}")
        return value

    def _wrong(self, key: str, value: Any, allowed: str) -> ConfigError:
        name = f"{self._name}.{key}" if self._name else key
        return ConfigError(f"{self.source}: {name} is {value!r}; allowed is {allowed}")


def _slope(table: _Table | None) -> Slope | None:
    if table is None:
        return None
    slope = Slope(
        degrees=table.number("degrees", (-45.0, 45.0)),
        direction_degrees=table.number("direction_degrees", (-360.0, 360.0), 0.0),
        start_m=table.optional("start_m", AHEAD),
    )
    table.refuse_others()
    return slope


def _stairs(table: _Table | None) -> Stairs | None:
    if table is None:
        return None
    stairs = Stairs(
        height_m=table.number("height_m", (-1.0, 1.0)),
        depth_m=table.number("depth_m", (0.05, 10.0)),
        count=table.whole("count", (1, 100)),
        start_m=table.number("start_m", AHEAD, 1.0),
        direction_degrees=table.number("direction_degrees", (-360.0, 360.0), 0.0),
    )
    table.refuse_others()
    return stairs


def _curb(table: _Table) -> Curb:
    curb = Curb(
        start_m=table.number("start_m", (-AHEAD[1], AHEAD[1])),
        height_m=table.number("height_m", (0.001, 1.0)),
        length_m=table.number("length_m", (0.01, 10.0)),
    )
    table.refuse_others()
    return curb


def _belt(table: _Table | None) -> Belt | None:
    if table is None:
        return None
    belt = Belt(
        velocity_m_s=table.vector("velocity_m_s", 2, SPEED),
        start_m=table.number("start_m", (-AHEAD[1], AHEAD[1]), 0.0),
        length_m=table.optional("length_m", (0.1, 50.0)),
    )
    table.refuse_others()
    return belt


def _sway(table: _Table | None) -> Sway | None:
    if table is None:
        return None
    sway = Sway(travel_m=table.vector("travel_m", 3, (-2.0, 2.0)), period_s=table.number("period_s", (0.1, 100.0)))
    table.refuse_others()
    return sway


def _softness(table: _Table | None) -> Softness | None:
    if table is None:
        return None
    softness = Softness(
        stiffness_n_m=table.number("stiffness_n_m", (500.0, 100_000.0)),
        damping_n_s_m=table.number("damping_n_s_m", (0.0, 10_000.0)),
    )
    table.refuse_others()
    return softness


def _load(table: _Table) -> Load:
    begin = table.vector("from_m", 3, (-3.0, 3.0), (0.0, 0.0, 0.0))
    load = Load(
        segment=table.text("segment"),
        mass_kg=table.number("mass_kg", (0.001, 500.0)),
        from_m=begin,
        to_m=table.vector("to_m", 3, (-3.0, 3.0), begin),
        radius_m=table.number("radius_m", (0.001, 1.0), 0.05),
        source=table.source,
    )
    table.refuse_others()
    return load
