"""What a body is seen to do, of many states at once: centre of mass, momentum, places of feet, hands and head. Compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry.compiled_rotations import rotate
from mocap2ctrl.simulation.body_motion import Masses, masses_of, segment_motion
from mocap2ctrl.types import Array

POINTS = ("left_foot", "right_foot", "left_hand", "right_hand", "head")
"""Segments whose middles stand for the ends of the body; feet first."""


class Body(NamedTuple):
    """A character for the compiled loop.

    Attributes:
        masses: its tree.
        inertia: (S, 3) about each segment's centre of mass, along its axes, kg m^2.
        point_segment: (Q,) segments of `POINTS`.
        point: (Q, 3) half-way along each, in its frame, metres.
        end_segment: (C,) of the ends of its capsules.
        end: (C, 3) where they are, in its frame, metres.
        radius: (C,) metres.
    """

    masses: Masses
    inertia: Array
    point_segment: npt.NDArray[np.int64]
    point: Array
    end_segment: npt.NDArray[np.int64]
    end: Array
    radius: Array


def body_of(character: Character) -> Body:
    """The arrays of `character`."""
    index = np.array([character.segment_index(name) for name in POINTS])
    ends = [(s, c, end) for s, seg in enumerate(character.segments) for c in seg.capsules for end in (c.start, c.end)]
    return Body(
        masses=masses_of(character),
        inertia=np.array([s.inertia for s in character.segments]),
        point_segment=index,
        point=np.array([0.5 * character.segments[i].tip for i in index]),
        end_segment=np.array([s for s, _, _ in ends]),
        end=np.array([end for _, _, end in ends]),
        radius=np.array([c.radius for _, c, _ in ends]),
    )


@dataclass(frozen=True, eq=False)
class Seen:
    """N states as seen in the world; NaN where a state is.

    Attributes:
        com, com_velocity: (N, 3) metres, m/s.
        momentum: (N, 3) angular, about the centre of mass, kg m^2/s.
        points: (N, Q, 3) places of `POINTS`, metres.
        lowest: (N, S) height of each segment's lowest point, metres.
    """

    com: Array
    com_velocity: Array
    momentum: Array
    points: Array
    lowest: Array


def see(body: Body, qpos: npt.ArrayLike, qvel: npt.ArrayLike) -> Seen:
    """Looks at states of coordinates (N, 7 + J) and (N, 6 + J), see `simulation/coordinates.py`."""
    position = np.ascontiguousarray(qpos, dtype=float)
    velocity = np.ascontiguousarray(qvel, dtype=float)
    count, segments = len(position), len(body.inertia)
    seen = Seen(
        np.empty((count, 3)), np.empty((count, 3)), np.empty((count, 3)), np.empty((count, len(body.point), 3)),
        np.empty((count, segments)),
    )  # fmt: skip
    _see(body, position, velocity, seen.com, seen.com_velocity, seen.momentum, seen.points, seen.lowest)
    return seen


@njit
def _see(body, qpos, qvel, com, com_velocity, momentum, points, lowest):  # type: ignore[no-untyped-def]
    """Writes `Seen` of N states."""
    segments = len(body.inertia)
    position, velocity, spin = np.empty((segments, 3)), np.empty((segments, 3)), np.empty((segments, 3))
    frame = np.empty((segments, 4))
    places, speeds = np.empty((segments, 3)), np.empty((segments, 3))
    for n in range(len(qpos)):
        segment_motion(body.masses, qpos[n], qvel[n], position, velocity, spin, frame, places, speeds)
        _momenta(body, spin, frame, places, speeds, com[n], com_velocity[n], momentum[n])
        arm = np.empty(3)
        for q in range(len(body.point)):
            s = body.point_segment[q]
            rotate(frame[s], body.point[q], arm)
            points[n, q] = position[s] + arm
        lowest[n] = np.inf
        for c in range(len(body.end)):
            s = body.end_segment[c]
            rotate(frame[s], body.end[c], arm)
            lowest[n, s] = min(lowest[n, s], position[s, 2] + arm[2] - body.radius[c])


@njit
def _momenta(body, spin, frame, places, speeds, com, com_velocity, momentum):  # type: ignore[no-untyped-def]
    """Writes centre of mass, its velocity and the angular momentum about it (3,) of moving segments."""
    mass = body.masses.mass
    com[:] = 0.0
    com_velocity[:] = 0.0
    momentum[:] = 0.0
    for s in range(len(mass)):
        for k in range(3):
            com[k] += mass[s] * places[s, k] / mass.sum()
            com_velocity[k] += mass[s] * speeds[s, k] / mass.sum()
    inverse, local, world = np.empty(4), np.empty(3), np.empty(3)
    for s in range(len(mass)):
        inverse[0] = frame[s, 0]
        for k in range(3):
            inverse[1 + k] = -frame[s, 1 + k]
        rotate(inverse, spin[s], local)
        for k in range(3):
            local[k] *= body.inertia[s, k]
        rotate(frame[s], local, world)
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            arm_i, arm_j = places[s, i] - com[i], places[s, j] - com[j]
            speed_i, speed_j = speeds[s, i] - com_velocity[i], speeds[s, j] - com_velocity[j]
            momentum[k] += world[k] + mass[s] * (arm_i * speed_j - arm_j * speed_i)
