"""State and action features of the feedback (Liu 2016, §4): s = (q0*, h0, c, c', dl, dr, L), a = (waist, hips, knees).

All of s is measured in the heading frame: its origin is on the ground below the root, z is up, x is where the root faces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.entry_feedback import hinge_actions
from mocap2ctrl.geometry import rotations
from mocap2ctrl.samcon.body import Body, Seen, see
from mocap2ctrl.types import Array

FEEDBACK = 11
"""The first of `hinge_actions`: without the ankles'."""
MIRROR_STATE_INDEX = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 9, 10, 11, 15, 16, 17])
MIRROR_STATE_SIGN = np.array([-1, 1, 1, 1, -1, 1, 1, -1, 1, 1, -1, 1, 1, -1, 1, -1, 1, -1], float)
"""s seen in a mirror is `MIRROR_STATE_SIGN * s[MIRROR_STATE_INDEX]`: y changes its sign, of axial vectors x and z do."""


def snapshot_coordinates(snapshots: npt.ArrayLike, joints: int) -> tuple[Array, Array]:
    """Qpos (N, 7 + J) and qvel (N, 6 + J) of snapshots (N, K) of `PdRollouts`."""
    flat = np.asarray(snapshots, float)
    return flat[:, 1 : 8 + joints], flat[:, 8 + joints :]


def state_features(qpos: Array, seen: Seen) -> Array:
    """S (N, 18) of N states: radians, metres, m/s, kg m^2/s."""
    turn = rotations.yaw(-rotations.heading(qpos[:, 3:7]))
    below = qpos[:, :3] * np.array([1.0, 1.0, 0.0])
    tilt = rotations.to_rotation_vector(rotations.multiply(turn, qpos[:, 3:7]))
    parts = (
        tilt[:, :2],
        qpos[:, 2:3],
        rotations.rotate(turn, seen.com - below),
        rotations.rotate(turn, seen.com_velocity),
        rotations.rotate(turn, seen.points[:, 0] - seen.com),
        rotations.rotate(turn, seen.points[:, 1] - seen.com),
        rotations.rotate(turn, seen.momentum),
    )
    return np.concatenate(parts, axis=1)


def snapshot_features(body: Body, snapshots: npt.ArrayLike) -> Array:
    """S (N, 18) of snapshots (N, K)."""
    qpos, qvel = snapshot_coordinates(snapshots, len(body.masses.axis))
    return state_features(qpos, see(body, qpos, qvel))


@dataclass(frozen=True, eq=False)
class Actions:
    """What the numbers of an action do: they are offsets of hinge angles, in radians.

    The paper offsets joints by rotation vectors; near the targets, where hinges are far from gimbal lock, the two differ by terms
    of second order, and hinge angles need no singular conversion.

    Attributes:
        names: of the A features.
        hinges: (A, J) the offset of the PD targets is `a @ hinges`.
        mirror_index, mirror_sign: (A,) an action seen in a mirror is `mirror_sign * a[mirror_index]`.
    """

    names: tuple[str, ...]
    hinges: Array
    mirror_index: npt.NDArray[np.int64]
    mirror_sign: Array


def feedback_actions(character: Character) -> Actions:
    """The 11 of the feedback: the waist's 3, shared equally by abdomen and chest, 3 a hip, 1 a knee."""
    names, hinges = hinge_actions(character)
    return _actions(character, names[:FEEDBACK], hinges[:FEEDBACK])


def open_loop_actions(character: Character) -> Actions:
    """The 15 that open-loop control is sampled over: those of the feedback, and the ankles'."""
    return _actions(character, *hinge_actions(character))


def _actions(character: Character, names: tuple[str, ...], hinges: Array) -> Actions:
    source, sign = character.mirror_hinges
    firsts = [int(np.flatnonzero(row)[0]) for row in hinges]
    index = np.array([firsts.index(source[first]) for first in firsts])
    return Actions(names, hinges.copy(), index, sign[firsts])
