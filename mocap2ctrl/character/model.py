"""The character: a tree of segments and hinges, described as data (`humanoid.toml`), scaled to a height and a mass."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import CharacterError, Mocap2CtrlError
from mocap2ctrl.types import Array, Pose, frozen_array

FORMAT = 1
SIDES = ("left", "right")
TORQUE_GAMMA = 120.0
"""N m per kg: torque bounds are gamma (m_parent + m_child) / 2 on each axis (Vondrak §4.1.1)."""

HEIGHT_RANGE_M = (0.8, 2.4)


@dataclass(frozen=True)
class Capsule:
    """A collision shape in its segment's frame: ends (3,) and radius, metres."""

    start: Array
    end: Array
    radius: float


@dataclass(frozen=True)
class Hinge:
    """One rotational degree of freedom.

    Attributes:
        name: `<segment>.<movement>`, for example `left_thigh.flexion`.
        axis: (3,) unit vector in the frame that the segment's earlier hinges leave.
        limits: lowest and highest angle, radians.
    """

    name: str
    axis: Array
    limits: tuple[float, float]


@dataclass(frozen=True)
class Segment:
    """A rigid part of the body; lengths in metres, mass in kg, inertia in kg m^2 about the centre of mass.

    `products` are the entries xy, xz, yz of the inertia tensor: zeros but for a segment that carries something.
    """

    name: str
    parent: int
    group: str
    offset: Array
    tip: Array
    marker: Array
    mass: float
    com: Array
    inertia: Array
    hinges: tuple[Hinge, ...]
    capsules: tuple[Capsule, ...]
    products: Array = field(default_factory=lambda: frozen_array(np.zeros(3), (3,), "products"))

    @property
    def inertia_tensor(self) -> Array:
        """(3, 3) about the centre of mass, in the segment's axes, kg m^2."""
        xy, xz, yz = self.products
        return np.array([[0.0, xy, xz], [xy, 0.0, yz], [xz, yz, 0.0]]) + np.diag(self.inertia)


@dataclass(frozen=True)
class EvaluationPoint:
    """A named joint centre that the joint error is measured at: a point (3,) in a segment's frame."""

    name: str
    segment: int
    at: Array


@dataclass(frozen=True, eq=False)
class Character:
    """A body of S segments and J hinges. Order of segments and hinges is the order in its file, everywhere.

    Attributes:
        name: of the description.
        height_m, mass_kg: what the description was scaled to.
        segments: parents before children; the first is the root (pelvis).
        evaluation_points: where joint error is measured.
        armature: kg m^2 added on each hinge.
        friction: coefficient on the ground.
    """

    name: str
    height_m: float
    mass_kg: float
    segments: tuple[Segment, ...]
    evaluation_points: tuple[EvaluationPoint, ...]
    armature: float
    friction: float
    description: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @cached_property
    def hinges(self) -> tuple[Hinge, ...]:
        """All J hinges in order."""
        return tuple(hinge for segment in self.segments for hinge in segment.hinges)

    @cached_property
    def hinge_names(self) -> tuple[str, ...]:
        """Names of the J hinges in order."""
        return tuple(hinge.name for hinge in self.hinges)

    @cached_property
    def hinge_segment(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """(J,) index of the segment that each hinge moves."""
        return np.array([i for i, segment in enumerate(self.segments) for _ in segment.hinges])

    @cached_property
    def segment_names(self) -> tuple[str, ...]:
        """Names of the S segments in order."""
        return tuple(segment.name for segment in self.segments)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Names of the alpha groups, root first; left and right share one (Vondrak §4.1.1)."""
        return tuple(dict.fromkeys(segment.group for segment in self.segments))

    @cached_property
    def hinge_group(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """(J,) index into `groups` of each hinge."""
        return np.array([self.groups.index(self.segments[i].group) for i in self.hinge_segment])

    @cached_property
    def lower_limits(self) -> Array:
        """(J,) lowest angles, radians."""
        return frozen_array([hinge.limits[0] for hinge in self.hinges], (None,), "limits")

    @cached_property
    def upper_limits(self) -> Array:
        """(J,) highest angles, radians."""
        return frozen_array([hinge.limits[1] for hinge in self.hinges], (None,), "limits")

    @cached_property
    def torque_bounds(self) -> Array:
        """(J,) N m: gamma (m_parent + m_child) / 2 with gamma = 120 (Vondrak §4.1.1, Eq. 15)."""
        masses = np.array([segment.mass for segment in self.segments])
        parents = np.array([segment.parent for segment in self.segments])
        child = self.hinge_segment
        return frozen_array(TORQUE_GAMMA * (masses[parents[child]] + masses[child]) / 2.0, (None,), "bounds")

    @cached_property
    def mirror_hinges(self) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Array]:
        """(J,) source index and (J,) sign such that `mirrored = sign * angles[index]`, for the plane y = 0."""
        index, sign = [], []
        for hinge, segment in zip(self.hinges, self.hinge_segment, strict=True):
            index.append(self.hinge_names.index(swap_sides(hinge.name)))
            on_midline = not self.segments[segment].name.startswith(SIDES)
            sign.append(-1.0 if on_midline and abs(hinge.axis[1]) < 0.5 else 1.0)
        return np.array(index), frozen_array(sign, (None,), "sign")

    def segment_index(self, name: str) -> int:
        """Index of the segment called `name`."""
        return self.segment_names.index(name)

    @cached_property
    def standing_height_m(self) -> float:
        """Height of the root origin above the ground in the zero pose, metres."""
        return float(self.segments[0].offset[2])

    def zero_pose(self) -> Pose:
        """Upright, arms down, facing x, soles on the ground."""
        return Pose(self.segments[0].offset, np.array([1.0, 0, 0, 0]), np.zeros(len(self.hinges)))

    def scaled(self, height_m: float | None = None, mass_kg: float | None = None) -> Character:
        """The same proportions at another height and mass; without a mass, mass grows with the height's cube."""
        height = self.height_m if height_m is None else height_m
        mass = self.mass_kg * (height / self.height_m) ** 3 if mass_kg is None else mass_kg
        return parse_character({**self.description, "height_m": height, "mass_kg": mass}, self.name)


def swap_sides(name: str) -> str:
    """`left_…` to `right_…` and back; other names unchanged."""
    for this, other in (SIDES, SIDES[::-1]):
        if name.startswith(this + "_"):
            return other + name[len(this) :]
    return name


def load_character(path: Path | str | None = None, height_m: float | None = None) -> Character:
    """Reads a character description (TOML), the built-in humanoid without a path.

    Raises:
        CharacterError: unreadable, incomplete, or contradictory.
    """
    if path is None:
        text = resources.files("mocap2ctrl.character").joinpath("humanoid.toml").read_text("utf-8")
        source = "the built-in humanoid"
    else:
        source = str(path)
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CharacterError(f"{source}: cannot be read ({error})") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CharacterError(f"{source}: not valid TOML: {error}") from error
    character = parse_character(data, source)
    return character if height_m is None else character.scaled(height_m)


def parse_character(data: Mapping[str, Any], source: str) -> Character:
    """A character from the parsed description; `source` is named in errors."""
    if data.get("format") != FORMAT:
        raise CharacterError(f"{source}: format is {data.get('format')!r}; this version reads format {FORMAT}")
    try:
        height, mass = float(data["height_m"]), float(data["mass_kg"])
        low, high = HEIGHT_RANGE_M
        if not low <= height <= high:
            raise CharacterError(f"{source}: height_m is {height:g}; allowed are {low} to {high} metres")
        if not mass > 0:
            raise CharacterError(f"{source}: mass_kg is {mass:g}; it must be positive")
        entries = data["segment"]
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, Mapping) for entry in entries):
            raise CharacterError(f"{source}: segment must be tables, [[segment]], at least one")
        names = [str(entry["name"]) for entry in entries]
        segments = tuple(_segment(entry, names[:i], height, mass) for i, entry in enumerate(entries))
        points = tuple(_evaluation_point(entry, names, height) for entry in data["evaluation_point"])
        character = Character(
            name=str(data["name"]),
            height_m=height,
            mass_kg=mass,
            segments=segments,
            evaluation_points=points,
            armature=float(data["armature"]),
            friction=float(data["friction"]),
            description=dict(data),
        )
    except KeyError as error:
        raise CharacterError(f"{source}: the entry {error} is missing") from error
    except CharacterError:
        raise
    except (ValueError, TypeError, Mocap2CtrlError) as error:
        raise CharacterError(f"{source}: {error}") from error
    if [s.name for s in segments] != _depth_first(segments):
        raise CharacterError(f"{source}: segments stand in another order than depth first: {_depth_first(segments)}")
    total = sum(segment.mass for segment in segments)
    if abs(total - mass) > 1e-6 * mass:
        raise CharacterError(
            f"{source}: the segments' mass fractions add up to {total / mass:.6g}; they must add up to 1"
        )
    return character


def _depth_first(segments: tuple[Segment, ...], root: int = 0) -> list[str]:
    """Segment names with every subtree complete before the next sibling: the order in which engines number bodies."""
    names = [segments[root].name]
    for index, segment in enumerate(segments):
        if segment.parent == root:
            names += _depth_first(segments, index)
    return names


def _segment(entry: Mapping[str, Any], earlier: list[str], height: float, mass: float) -> Segment:
    name, parent = str(entry["name"]), str(entry["parent"])
    if not re.fullmatch(r"[a-z_]+", name):
        raise ValueError(f"segment name {name!r} is not allowed; use lower-case letters and underscores")
    if name in earlier:
        raise ValueError(f"segment name {name!r} stands twice; names must differ")
    if earlier and parent not in earlier:
        raise ValueError(f"segment {name!r} has parent {parent!r}; allowed are the segments before it: {earlier}")
    segment_mass = float(entry["mass"]) * mass
    if not segment_mass > 0:
        raise ValueError(f"{name}.mass is {entry['mass']!r}; it must be positive")
    gyration = _scaled(entry["gyration"], height, f"{name}.gyration")
    hinges = tuple(_hinge(h, f"{name}.{h['name']}") for h in entry.get("hinges", ()))
    capsules = tuple(
        Capsule(
            _scaled(c["from"], height, f"{name}.from"),
            _scaled(c["to"], height, f"{name}.to"),
            float(c["radius"]) * height,
        )
        for c in entry["capsules"]
    )
    return Segment(
        name=name,
        parent=earlier.index(parent) if earlier else -1,
        group=str(entry["group"]),
        offset=_scaled(entry["offset"], height, f"{name}.offset"),
        tip=_scaled(entry["tip"], height, f"{name}.tip"),
        marker=_scaled(entry["marker"], height, f"{name}.marker"),
        mass=segment_mass,
        com=_scaled(entry["com"], height, f"{name}.com"),
        inertia=frozen_array(segment_mass * gyration**2, (3,), f"{name}.inertia"),
        hinges=hinges,
        capsules=capsules,
    )


def _scaled(value: npt.ArrayLike, scale: float, name: str) -> Array:
    return frozen_array(scale * frozen_array(value, (3,), name), (3,), name)


def _hinge(entry: Mapping[str, Any], name: str) -> Hinge:
    axis = frozen_array(entry["axis"], (3,), f"{name}.axis")
    low, high = frozen_array(entry["limits"], (2,), f"{name}.limits")
    if abs(np.linalg.norm(axis) - 1.0) > 1e-6:
        raise ValueError(f"{name}.axis is {axis.tolist()}; it must have length 1")
    if not low < high:
        raise ValueError(f"{name}.limits are {low:g} and {high:g} degrees; the first must be the lower")
    return Hinge(name, axis, (float(np.radians(low)), float(np.radians(high))))


def _evaluation_point(entry: Mapping[str, Any], names: list[str], height: float) -> EvaluationPoint:
    name, segment = str(entry["name"]), str(entry["segment"])
    if segment not in names:
        raise ValueError(f"evaluation point {name!r} is on segment {segment!r}; there are {', '.join(names)}")
    return EvaluationPoint(name, names.index(segment), _scaled(entry["at"], height, f"{name}.at"))
