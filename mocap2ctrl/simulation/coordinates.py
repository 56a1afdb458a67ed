"""Generalised coordinates: the flat form of a body's state that the control law and the engines share (MuJoCo's own).

qpos (7 + J,) holds the root's position, the root's quaternion and the hinge angles; qvel (6 + J,) the root's velocity in the
world, the root's angular velocity in the root's frame, and the hinge rates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, Pose, SimState

ROOT_DOFS = 6
"""Degrees of freedom of the root: they stand before the hinges in qvel."""


def coordinates(state: SimState) -> tuple[Array, Array]:
    """Qpos (7 + J,) and qvel (6 + J,) of a state; the root's angular velocity is in its own frame."""
    pose = state.pose
    qpos = np.concatenate([pose.root_position, pose.root_orientation, pose.angles])
    local = rotations.rotate(rotations.conjugate(pose.root_orientation), state.root_angular_velocity)
    return qpos, np.concatenate([state.root_velocity, local, state.joint_velocities])


def state_from_coordinates(qpos: npt.ArrayLike, qvel: npt.ArrayLike) -> SimState:
    """The inverse of `coordinates`."""
    qpos, qvel = np.asarray(qpos, float), np.asarray(qvel, float)
    pose = Pose(qpos[:3], qpos[3:7], qpos[7:])
    return SimState(pose, qvel[:3], rotations.rotate(qpos[3:7], qvel[3:6]), qvel[6:])
