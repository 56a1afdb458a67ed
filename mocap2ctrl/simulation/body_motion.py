"""Centre of mass and its velocity from generalised coordinates, compiled: for engines that do not tell them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry.compiled_rotations import axis_quaternion, multiply, rotate
from mocap2ctrl.types import Array


class Masses(NamedTuple):
    """A character as a tree of masses.

    Attributes:
        parent: (S,) index of the segment above, -1 for the root.
        offset: (S, 3) origin in the parent's frame, metres.
        first_hinge: (S + 1,) hinges `first_hinge[s]` to `first_hinge[s + 1]` move segment s.
        axis: (J, 3) in the frame that the segment's earlier hinges leave.
        mass: (S,) kg.
        com: (S, 3) centre of mass in the segment's frame, metres.
    """

    parent: npt.NDArray[np.int64]
    offset: Array
    first_hinge: npt.NDArray[np.int64]
    axis: Array
    mass: Array
    com: Array


def masses_of(character: Character) -> Masses:
    """The arrays of `character`."""
    segments = character.segments
    return Masses(
        parent=np.array([s.parent for s in segments]),
        offset=np.array([s.offset for s in segments]),
        first_hinge=np.cumsum([0, *(len(s.hinges) for s in segments)]),
        axis=np.array([hinge.axis for hinge in character.hinges]),
        mass=np.array([s.mass for s in segments]),
        com=np.array([s.com for s in segments]),
    )


@njit
def centre_of_mass_motion(masses, qpos, qvel, com, com_velocity):  # type: ignore[no-untyped-def]
    """Writes the centre of mass (3,) in metres and its velocity (3,) in m/s, world, of coordinates (7 + J,) and (6 + J,)."""
    segments = len(masses.parent)
    position, velocity, spin = np.empty((segments, 3)), np.empty((segments, 3)), np.empty((segments, 3))
    places, speeds, frame = np.empty((segments, 3)), np.empty((segments, 3)), np.empty((segments, 4))
    segment_motion(masses, qpos, qvel, position, velocity, spin, frame, places, speeds)
    com[:] = 0.0
    com_velocity[:] = 0.0
    for s in range(segments):
        for k in range(3):
            com[k] += masses.mass[s] * places[s, k]
            com_velocity[k] += masses.mass[s] * speeds[s, k]
    com /= masses.mass.sum()
    com_velocity /= masses.mass.sum()


@njit
def segment_motion(masses, qpos, qvel, position, velocity, spin, frame, places, speeds):  # type: ignore[no-untyped-def]
    """Writes the motion of all segments, world.

    Position, velocity and spin (S, 3) and orientation `frame` (S, 4) of their frames; place and speed (S, 3) of their centres
    of mass.
    """
    arm, turn, turned = np.empty(3), np.empty(4), np.empty(4)
    position[0], velocity[0] = qpos[:3], qvel[:3]
    frame[0] = qpos[3:7]
    rotate(frame[0], qvel[3:6], spin[0])
    for s in range(len(masses.parent)):
        if s > 0:
            above = masses.parent[s]
            rotate(frame[above], masses.offset[s], arm)
            _carry(position[above], velocity[above], spin[above], arm, position[s], velocity[s])
            frame[s], spin[s] = frame[above], spin[above]
            for j in range(masses.first_hinge[s], masses.first_hinge[s + 1]):
                rotate(frame[s], masses.axis[j], arm)
                for k in range(3):
                    spin[s, k] += qvel[6 + j] * arm[k]
                axis_quaternion(masses.axis[j], qpos[7 + j], turn)
                multiply(frame[s], turn, turned)
                frame[s] = turned
        rotate(frame[s], masses.com[s], arm)
        _carry(position[s], velocity[s], spin[s], arm, places[s], speeds[s])


@njit
def _carry(position, velocity, spin, arm, place, speed):  # type: ignore[no-untyped-def]
    """Writes position and velocity (3,) of a point at `arm` (3,) from the origin of a moving frame."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        place[k] = position[k] + arm[k]
        speed[k] = velocity[k] + spin[i] * arm[j] - spin[j] * arm[i]
