"""The ground of an environment as planes and boxes: what engines load, falls are judged against, and reports draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import points_world
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.environment import Environment, Slope, Stairs
from mocap2ctrl.types import Array

FAR_M = 100.0
"""How far ground of boxes reaches ahead, back and to the sides."""
THICK_M = 2.0


@dataclass(frozen=True, eq=False)
class Surface:
    """A box, or everything below a plane, that bears the body.

    Attributes:
        top: (3,) a point of its upper face: of a box the middle, metres, world.
        orientation: (4,) quaternion; z is the upper face's normal.
        half_size: (3,) of the box along its own axes, metres; None for a plane.
        velocity: (3,) at which the surface moves along itself, m/s, world.
    """

    top: Array
    orientation: Array
    half_size: Array | None
    velocity: Array

    @property
    def normal(self) -> Array:
        """(3,) of the upper face."""
        return rotations.rotate(self.orientation, (0.0, 0.0, 1.0))

    @property
    def centre(self) -> Array:
        """(3,) of the box; of a plane its point."""
        return self.top if self.half_size is None else np.asarray(self.top - self.half_size[2] * self.normal)

    def distance(self, points: Array) -> Array:
        """(...) distance of points (..., 3), metres; negative inside."""
        if self.half_size is None:
            return np.asarray((points - self.top) @ self.normal)
        local = rotations.rotate(rotations.conjugate(self.orientation), points - self.centre)
        beyond = np.abs(local) - self.half_size
        outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=-1)
        return np.asarray(outside + np.minimum(beyond.max(axis=-1), 0.0))

    def height(self, xy: Array) -> Array:
        """(...) height of the upper face at (..., 2); minus infinity where there is none."""
        normal = self.normal
        z = self.top[2] - (xy - self.top[:2]) @ normal[:2] / normal[2]
        if self.half_size is None:
            return np.asarray(z)
        there = np.concatenate([xy, z[..., None]], axis=-1) - self.top
        local = rotations.rotate(rotations.conjugate(self.orientation), there)
        inside = np.all(np.abs(local[..., :2]) <= self.half_size[:2] + 1e-9, axis=-1)
        return np.where(inside, z, -np.inf)


@dataclass(frozen=True)
class _Way:
    """Lays surfaces out along a direction, from where the environment is placed."""

    environment: Environment
    direction_degrees: float = 0.0

    def surface(self, start_m: float, end_m: float, height_m: float, rise: float = 0.0, moving: bool = True) -> Surface:
        """A box from `start_m` to `end_m` of the way, `height_m` high at its start, rising at `rise` radians.

        `moving` tells whether it is part of the belt, if there is one.
        """
        half = np.array([0.5 * (end_m - start_m), FAR_M, 0.5 * THICK_M])
        start = self.point(start_m, height_m)
        turn = self.turned(rise)
        return Surface(start + rotations.rotate(turn, (half[0], 0.0, 0.0)), turn, half, self.velocity(turn, moving))

    def plane(self, rise: float = 0.0) -> Surface:
        """The plane through the start, rising at `rise` radians."""
        turn = self.turned(rise)
        return Surface(self.point(0.0, 0.0), turn, None, self.velocity(turn, True))

    def point(self, ahead_m: float, height_m: float) -> Array:
        """(3,) a point of the way."""
        origin = np.array([*self.environment.origin_m, height_m])
        return np.asarray(origin + rotations.rotate(self.turned(0.0), (ahead_m, 0.0, 0.0)))

    def turned(self, rise: float) -> Array:
        """(4,) orientation of a surface that rises at `rise` radians."""
        yaw = rotations.yaw(self.environment.heading + np.radians(self.direction_degrees))
        return rotations.multiply(yaw, rotations.about_axis((0.0, 1.0, 0.0), -rise))

    def velocity(self, turn: Array, moving: bool) -> Array:
        """(3,) of the belt, along a surface of orientation `turn`."""
        belt = self.environment.belt
        if belt is None or not moving:
            return np.zeros(3)
        level = rotations.rotate(rotations.yaw(self.environment.heading), (*belt.velocity_m_s, 0.0))
        normal = rotations.rotate(turn, (0.0, 0.0, 1.0))
        return np.asarray(level - normal * (level @ normal))


@lru_cache(maxsize=32)
def surfaces(environment: Environment) -> tuple[Surface, ...]:
    """The ground of `environment`, where it is placed; one that sways, at time 0."""
    if environment.slope is not None:
        return _slope(environment, environment.slope)
    if environment.stairs is not None:
        return _stairs(environment, environment.stairs)
    way, belt = _Way(environment), environment.belt
    if belt is not None and belt.length_m is not None:
        ends = (-FAR_M, belt.start_m, belt.start_m + belt.length_m, FAR_M)
        return tuple(way.surface(a, b, 0.0, moving=part == 1) for part, (a, b) in enumerate(pairwise(ends)))
    curbs = [way.surface(c.start_m, c.start_m + c.length_m, c.height_m) for c in environment.curbs]
    return (way.plane(), *curbs)


def _slope(environment: Environment, slope: Slope) -> tuple[Surface, ...]:
    way, rise = _Way(environment, slope.direction_degrees), float(np.radians(slope.degrees))
    if slope.start_m is None:
        return (way.plane(rise),)
    level = way.surface(-FAR_M, slope.start_m, 0.0)
    return (level, way.surface(slope.start_m, slope.start_m + FAR_M, 0.0, rise))


def _stairs(environment: Environment, stairs: Stairs) -> tuple[Surface, ...]:
    way = _Way(environment, stairs.direction_degrees)
    starts = stairs.start_m + stairs.depth_m * np.arange(stairs.count)
    ends = [-FAR_M, *starts.tolist(), FAR_M]
    return tuple(way.surface(a, b, step * stairs.height_m) for step, (a, b) in enumerate(pairwise(ends)))


def sway_at(environment: Environment, times_s: npt.ArrayLike) -> Array:
    """(..., 3) how far the ground has moved at times (...), metres, world; at rest until 0."""
    times = np.maximum(np.asarray(times_s, float), 0.0)
    if environment.sway is None:
        return np.zeros((*times.shape, 3))
    travel = rotations.rotate(rotations.yaw(environment.heading), environment.sway.travel_m)
    return np.asarray(0.5 * (1.0 - np.cos(2.0 * np.pi * times / environment.sway.period_s))[..., None] * travel)


def felt_gravity(environment: Environment, steps: npt.ArrayLike, time_step_s: float) -> Array:
    """(N, 3) gravity as it is felt on the ground during steps (N,), m/s^2: less the ground's own acceleration.

    Differences of positions, not the second derivative, so that whoever does not touch the ground keeps moving as if it rested.
    """
    before, now, after = (sway_at(environment, (np.asarray(steps) + k) * time_step_s) for k in (-1, 0, 1))
    return np.asarray((0.0, 0.0, -environment.gravity_m_s2) - (after - 2.0 * now + before) / time_step_s**2)


def ground_height(ground: Sequence[Surface], xy: Array) -> Array:
    """(...) height of the ground at (..., 2), metres."""
    return np.asarray(np.max([surface.height(xy) for surface in ground], axis=0))


def lowest_clearances(character: Character, positions: Array, orientations: Array, ground: Sequence[Surface]) -> Array:
    """(..., S) least distance of each segment's surface from `ground`, metres; capsules count as the spheres at their ends.

    Args:
        character: the body.
        positions: (..., S, 3) of its segments, in the ground's frame.
        orientations: (..., S, 4).
        ground: what may be touched.
    """
    clearances = []
    for index, segment in enumerate(character.segments):
        ends = np.array([end for c in segment.capsules for end in (c.start, c.end)])
        radii = np.array([c.radius for c in segment.capsules for _ in (0, 1)])
        centres = points_world(positions, orientations, [index] * len(ends), ends)
        distances = np.min([surface.distance(centres) for surface in ground], axis=0)
        clearances.append(np.min(distances - radii, axis=-1))
    return np.stack(clearances, axis=-1)
