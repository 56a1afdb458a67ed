"""What surrounds a simulated body: the ground's shape, motion, grip and softness, gravity, and what the body carries.

The experiments with altered environments of Vondrak §6.2 (a slippery slope on skis, a mass in the hand, a trampoline), and more.
Lengths ahead and directions are seen from where the person stands and looks at the start; `placed` says where that is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from mocap2ctrl.character.model import Capsule, Character, Segment
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.types import Array

GRAVITY_M_S2 = 9.81

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Slope:
    """An inclined ground.

    Attributes:
        degrees: how steeply it rises in its direction; negative falls.
        direction_degrees: from straight ahead to the left.
        start_m: how far ahead, in that direction, level ground gives way to it; None if all is inclined, about the start.
    """

    degrees: float
    direction_degrees: float = 0.0
    start_m: float | None = None


@dataclass(frozen=True)
class Stairs:
    """A flight of equal steps, between level ground and a landing.

    Attributes:
        height_m: of a step; negative goes down.
        depth_m: of a tread.
        count: of steps.
        start_m: how far ahead the first one is.
        direction_degrees: from straight ahead to the left.
    """

    height_m: float
    depth_m: float
    count: int
    start_m: float = 1.0
    direction_degrees: float = 0.0


@dataclass(frozen=True)
class Curb:
    """A ridge across the way: `length_m` along the way, `height_m` high, beginning `start_m` ahead."""

    start_m: float
    height_m: float
    length_m: float


@dataclass(frozen=True)
class Belt:
    """A surface that moves along itself.

    Attributes:
        velocity_m_s: ahead and to the left.
        start_m, length_m: the part of the way that moves; all of it if the length is None.
    """

    velocity_m_s: tuple[float, float]
    start_m: float = 0.0
    length_m: float | None = None

    def __post_init__(self) -> None:
        _as_tuples(self, "velocity_m_s")


@dataclass(frozen=True)
class Sway:
    """The whole ground moves to and fro, from rest: displacement travel (1 - cos(2 pi t / period)) / 2.

    Attributes:
        travel_m: ahead, to the left and up.
        period_s: of the motion.
    """

    travel_m: Vector
    period_s: float

    def __post_init__(self) -> None:
        _as_tuples(self, "travel_m")


@dataclass(frozen=True)
class Softness:
    """A ground that gives way like a spring, as a trampoline does.

    Attributes:
        stiffness_n_m: under a body that stands on both feet; each point of contact has its share.
        damping_n_s_m: likewise.
    """

    stiffness_n_m: float
    damping_n_s_m: float


@dataclass(frozen=True)
class Load:
    """A mass fixed to a segment: a solid capsule, which touches the ground as the body does.

    Attributes:
        segment: its name.
        mass_kg: of the load.
        from_m, to_m: ends of the capsule's axis in the segment's frame; alike for a ball.
        radius_m: of the capsule.
        source: what says so, to be named in errors.
    """

    segment: str
    mass_kg: float
    from_m: Vector
    to_m: Vector
    radius_m: float
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _as_tuples(self, "from_m", "to_m")


def _as_tuples(value: object, *names: str) -> None:
    """Makes arrays and lists of numbers tuples, so that environments can be compared and kept."""
    for name in names:
        object.__setattr__(value, name, tuple(float(v) for v in getattr(value, name)))


@dataclass(frozen=True)
class Environment:
    """Where a controller is simulated. The default is what controllers are fitted on: hard, level ground at z = 0.

    Attributes:
        name: for reports.
        gravity_m_s2: downward.
        friction: coefficient on the ground instead of the character's own.
        friction_divisor: what the coefficient is divided by (Vondrak: 2,000).
        slope, stairs, curbs: the ground's shape; at most one kind.
        belt, sway: its motion.
        softness: of the ground; None for the engines' own, which is hard.
        loads: what the body carries.
        origin_m: (x, y) of the start, world.
        heading: yaw of straight ahead, radians.
    """

    name: str = "level ground"
    gravity_m_s2: float = GRAVITY_M_S2
    friction: float | None = None
    friction_divisor: float = 1.0
    slope: Slope | None = None
    stairs: Stairs | None = None
    curbs: tuple[Curb, ...] = ()
    belt: Belt | None = None
    sway: Sway | None = None
    softness: Softness | None = None
    loads: tuple[Load, ...] = ()
    origin_m: tuple[float, float] = (0.0, 0.0)
    heading: float = 0.0

    def __post_init__(self) -> None:
        for name in ("curbs", "loads"):  # lists, too: what is frozen can be a key
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.gravity_m_s2 > 0.0:
            raise ConfigError(
                f"environment {self.name!r} has gravity_m_s2 = {self.gravity_m_s2:g}; it must be positive"
            )
        shapes = [n for n in ("slope", "stairs", "curbs") if getattr(self, n)]
        if len(shapes) > 1:
            raise ConfigError(f"environment {self.name!r} has {' and '.join(shapes)}; a ground is one of them")
        if self.belt is not None and self.belt.length_m is not None and shapes:
            raise ConfigError(
                f"environment {self.name!r} has a belt of limited length and {shapes[0]}; such a belt is on level ground: leave "
                "length_m out, or the other"
            )

    def placed(self, origin_m: tuple[float, float], heading: float) -> Environment:
        """The same, laid out from the point `origin_m` (x, y) along `heading`, radians."""
        return replace(self, origin_m=origin_m, heading=heading)

    @property
    def level(self) -> bool:
        """Whether the ground is the plane z = 0."""
        return self.slope is None and self.stairs is None and not self.curbs

    def friction_of(self, character: Character) -> float:
        """Coefficient of friction between `character` and the ground."""
        return (character.friction if self.friction is None else self.friction) / self.friction_divisor


LEVEL = Environment()


@lru_cache(maxsize=16)
def laden(character: Character, loads: tuple[Load, ...]) -> Character:
    """`character` with `loads` grown to its segments: masses, centres of mass, inertias and shapes. Muscles grow no stronger.

    Raises:
        ConfigError: there is no such segment.
    """
    segments = list(character.segments)
    for load in loads:
        if load.segment not in character.segment_names:
            where = f"{load.source}: " if load.source else ""
            raise ConfigError(
                f"{where}a load is on segment {load.segment!r}, which the character does not have; choose one of "
                f"{', '.join(character.segment_names)}"
            )
        index = character.segment_index(load.segment)
        segments[index] = _with_load(segments[index], load)
    mass = character.mass_kg + sum(load.mass_kg for load in loads)
    return replace(character, segments=tuple(segments), mass_kg=mass) if loads else character


def _with_load(segment: Segment, load: Load) -> Segment:
    """Both as one rigid body, by the parallel axis theorem."""
    ends = np.array([load.from_m, load.to_m])
    mass = segment.mass + load.mass_kg
    centre = ends.mean(axis=0)
    com = (segment.mass * segment.com + load.mass_kg * centre) / mass
    tensor = _about(segment.inertia_tensor, segment.mass, segment.com - com)
    tensor += _about(_capsule_tensor(load), load.mass_kg, centre - com)
    return replace(
        segment,
        mass=mass,
        com=com,
        inertia=np.diag(tensor).copy(),
        products=tensor[[0, 0, 1], [1, 2, 2]].copy(),
        capsules=(*segment.capsules, Capsule(ends[0], ends[1], load.radius_m)),
    )


def _about(tensor: Array, mass: float, arm: Array) -> Array:
    """(3, 3) inertia about a point that is `arm` (3,) away from the centre of mass."""
    return np.asarray(tensor + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm)))


def _capsule_tensor(load: Load) -> Array:
    """(3, 3) inertia of a homogeneous capsule about its centre, kg m^2."""
    axis = np.subtract(load.to_m, load.from_m)
    length, r = float(np.linalg.norm(axis)), load.radius_m
    cylinder, ball = np.array([length, 4.0 / 3.0 * r]) / (length + 4.0 / 3.0 * r) * load.mass_kg
    along = cylinder * r**2 / 2 + ball * 2 / 5 * r**2
    across = cylinder * (length**2 / 12 + r**2 / 4) + ball * (2 / 5 * r**2 + length**2 / 4 + 3 / 8 * length * r)
    unit = axis / length if length > 0 else np.zeros(3)
    return np.asarray(across * np.eye(3) + (along - across) * np.outer(unit, unit))
