"""PD servos in a MuJoCo model, their damping integrated implicitly (Liu 2016, §4).

The servo's torque is kp (target - q) - kd q'(t + h), with the velocity after the step. As q'(t + h) = q'(t) + h q'', it is the
explicit torque kp (target - q) - kd q'(t), which an actuator gives, and -h kd q'', which is the torque of an inertia h kd on the
hinge's own place of the mass matrix: `dof_armature`. Semi-implicit Euler with both is the implicit step itself, and contacts and
joint limits are solved with it. (MuJoCo's implicit integrators damp after the contact forces have been found; with Liu's gains
hands and toes then reached 100 rad/s, and a step cost a third more.)

Bounds. The explicit torque is clamped to them. The implicit part, which only opposes a change of velocity, comes on top: at most
kd times the change of the joint's velocity within the step.

How soft contacts and limits are was computed from the armature that the model was compiled with, and stays as it is.
"""

from __future__ import annotations

import mujoco
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array


def set_bounds(model: mujoco.MjModel, bounds: Array) -> None:
    """Clamps the actuators to torques of `bounds` (J,), N m."""
    model.actuator_forcerange[:] = np.stack([-bounds, bounds], axis=1)


def set_gains(model: mujoco.MjModel, armature: float, stiffness: npt.ArrayLike, damping: npt.ArrayLike) -> None:
    """Gives the actuators stiffness (J,) N m/rad and damping (J,) N m s/rad; the hinges' own inertia is `armature`, kg m^2."""
    model.actuator_gainprm[:, 0] = stiffness
    model.actuator_biasprm[:, 1] = -np.asarray(stiffness, float)
    model.actuator_biasprm[:, 2] = -np.asarray(damping, float)
    model.dof_armature[-model.nu :] = armature + model.opt.timestep * np.asarray(damping, float)


def torques(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """(J,) N m that the servos exerted in the last step, the implicit part included."""
    implicit = model.opt.timestep * model.actuator_biasprm[:, 2] * data.qacc[-model.nu :]
    return np.asarray(data.actuator_force + implicit)
