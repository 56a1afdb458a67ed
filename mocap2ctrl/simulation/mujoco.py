"""The MuJoCo engine. Only files named `mujoco*.py` in this folder import `mujoco`.

The servo. MuJoCo has no bounded velocity constraint on a joint, but it has dry friction: a row per degree of freedom that holds
the joint's velocity at zero with a force of at most `dof_frictionloss`, solved together with the contacts. Its right-hand side is
`efc_aref`, the acceleration that the row asks for. Between `mj_step1`, which assembles the rows, and `mj_step2`, which solves
them, we write `efc_aref = (target velocity - velocity) / time step`, and the row becomes Vondrak's Eq. (15): a velocity
constraint with torque bounds. PD servos are in `mujoco_pd.py`.

The hot loop is compiled (`step1`, `write_servo`, `step2` here, `control/closed_loop.py` around them) and calls MuJoCo's C
functions by address, so that a closed loop costs little more than the engine. Arrays of constraint rows move in memory with every
step, so the compiled code reads their addresses from the `mjData` structure; where in it they stand is computed from MuJoCo's own
description of its headers, and checked, when an engine is made.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.compiled import call_with_two_pointers, carray, double_pointer_at, njit
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation import mujoco_pd
from mocap2ctrl.simulation.coordinates import ROOT_DOFS, coordinates, state_from_coordinates
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S, TIME_STEP_S, Contacts, FootContacts, Servo
from mocap2ctrl.simulation.environment import LEVEL, Environment
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.simulation.mujoco_ground import soften
from mocap2ctrl.simulation.mujoco_library import address, library, mjdata_layout
from mocap2ctrl.types import Array, SimState

SOFT_TIME_S, HARD_IMPEDANCE = 0.03, 0.99
"""Time constant of soft contacts, s, where the usual one is 0.02; impedance of hard ones, where it is 0.9 to 0.95."""

SENSOR_WIDTH = 7  # found, force (3), position (3)


class MujocoHandle(NamedTuple):
    """What compiled code needs to step one engine: addresses of C functions and structures, and views of MuJoCo's arrays."""

    step1: int
    step2: int
    forward_actuation: int
    forward_acceleration: int
    forward_constraint: int
    model: int
    data: int
    aref_slot: int
    force_slot: int
    frictionloss_slot: int
    time_step_s: float
    torque_bounds: Array
    qpos: Array
    qvel: Array
    qacc_warmstart: Array
    qfrc_applied: Array
    xfrc_applied: Array
    xpos: Array
    xquat: Array
    com: Array
    sensordata: Array
    dof_frictionloss: Array
    gravity: Array


@njit
def step1(handle):  # type: ignore[no-untyped-def]
    """Kinematics, collisions and constraint rows for the present state."""
    call_with_two_pointers(handle.step1, handle.model, handle.data)


@njit
def write_servo(handle, target_velocity, first_row):  # type: ignore[no-untyped-def]
    """Turns the joints' friction rows, from `first_row` on, into servos with `target_velocity` (J,) rad/s."""
    joints = target_velocity.shape[0]
    aref = carray(double_pointer_at(handle.aref_slot), (first_row + joints,))
    for j in range(joints):
        aref[first_row + j] = (target_velocity[j] - handle.qvel[6 + j]) / handle.time_step_s


@njit
def step2(handle):  # type: ignore[no-untyped-def]
    """Solves for forces and advances the state."""
    call_with_two_pointers(handle.step2, handle.model, handle.data)


@njit
def read_torques(handle, torques):  # type: ignore[no-untyped-def]
    """Copies the servos' torques (J,) of the last step into `torques`."""
    joints = torques.shape[0]
    force = carray(double_pointer_at(handle.force_slot), (joints,))
    for j in range(joints):
        torques[j] = force[j]


class MujocoEngine:
    """`Engine` on MuJoCo; see the module's text for the servo."""

    name = "mujoco"

    def __init__(
        self,
        character: Character,
        *,
        time_step_s: float | None = None,
        torque_scale: float = 1.0,
        servo: Servo | bool = "velocity",
        environment: Environment = LEVEL,
    ) -> None:
        """Compiles `character`.

        Args:
            character: who is simulated.
            time_step_s: seconds; 1/120 s if not given, 5 ms with PD servos.
            torque_scale: factor on the character's torque bounds.
            servo: what drives the joints; True is short for velocity servos and False for none, a plain model whose only
                constraints are contacts and joint limits.
            environment: where.

        Raises:
            ConfigError: the environment has a load on a segment that the character has not.
            EngineError: this MuJoCo does not lay out its data as expected.
        """
        self.character = character
        self._servo: Servo = ("velocity" if servo else "none") if isinstance(servo, bool) else servo
        self.time_step_s = time_step_s or (PD_TIME_STEP_S if self._servo == "pd" else TIME_STEP_S)
        self.torque_bounds = character.torque_bounds * torque_scale
        self.environment = environment
        text = build_mjcf(character, self.time_step_s, self._servo, environment=environment)
        self.model = mujoco.MjModel.from_xml_string(text)
        if environment.softness is not None:
            soften(self.model, character, environment.softness)
        self.data = mujoco.MjData(self.model)
        self._velocities: Array | None = None
        self._torques = np.zeros(len(self.torque_bounds))
        self._gains = np.zeros((2, len(self.torque_bounds)))
        self._exerted: Array | None = None
        self._rows = 0
        if self._servo == "velocity":
            self.model.dof_frictionloss[ROOT_DOFS:] = self.torque_bounds
        if self._servo == "pd":
            mujoco_pd.set_bounds(self.model, self.torque_bounds)
        self._state_kind = mujoco.mjtState.mjSTATE_INTEGRATION
        self.handle = self._make_handle()
        self._go_limp()

    def reset(self, state: SimState) -> None:
        """See `Engine.reset`."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = coordinates(state)
        self._go_limp()
        self._torques[:] = 0.0
        self._rows, self._exerted = 0, None

    def state(self) -> SimState:
        """See `Engine.state`."""
        return state_from_coordinates(self.data.qpos, self.data.qvel)

    def state_vector(self) -> Array:
        """See `Engine.state_vector`."""
        return np.concatenate([self.data.qpos, self.data.qvel, self.data.qacc_warmstart])

    def set_state_vector(self, vector: npt.ArrayLike) -> None:
        """See `Engine.set_state_vector`."""
        targets = self.data.ctrl.copy()
        mujoco.mj_resetData(self.model, self.data)
        self.data.ctrl[:] = targets
        cuts = [len(self.data.qpos), len(self.data.qpos) + len(self.data.qvel)]
        self.data.qpos[:], self.data.qvel[:], self.data.qacc_warmstart[:] = np.split(np.asarray(vector, float), cuts)
        self._rows, self._exerted = 0, None

    def snapshot(self) -> Array:
        """See `Engine.snapshot`."""
        state = np.empty(mujoco.mj_stateSize(self.model, self._state_kind))
        mujoco.mj_getState(self.model, self.data, state, self._state_kind)
        servo = np.full(len(self._torques), np.nan) if self._velocities is None else self._velocities
        return np.concatenate([state, servo, self._gains.ravel(), self._torques, self.data.sensordata])

    def restore(self, snapshot: npt.ArrayLike) -> None:
        """See `Engine.restore`."""
        size, joints = mujoco.mj_stateSize(self.model, self._state_kind), len(self._torques)
        cuts = size + joints * np.array([0, 1, 3, 4])
        state, servo, gains, torques, sensors = np.split(np.asarray(snapshot, float), cuts)
        mujoco.mj_setState(self.model, self.data, state, self._state_kind)
        self._set_velocities(None if np.isnan(servo[0]) else servo)
        self._set_gains(*gains.reshape(2, joints))
        self._torques[:] = torques
        self.data.sensordata[:] = sensors
        self._rows, self._exerted = 0, None

    def set_servo(self, velocities: npt.ArrayLike | None) -> None:
        """See `Engine.set_servo`."""
        if velocities is not None:
            self._require("velocity")
        self._set_velocities(velocities)

    def set_pd(
        self, targets: npt.ArrayLike | None, stiffness: npt.ArrayLike = 0.0, damping: npt.ArrayLike = 0.0
    ) -> None:
        """See `Engine.set_pd`; for what is clamped see `mujoco_pd`."""
        if targets is None:
            stiffness = damping = 0.0
        else:
            self._require("pd")
            self.data.ctrl[:] = targets
        self._set_gains(stiffness, damping)

    def set_torques(self, torques: npt.ArrayLike) -> None:
        """See `Engine.set_torques`."""
        self._torques[:] = torques

    def apply_wrench(self, segment: int, force: npt.ArrayLike, torque: npt.ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """See `Engine.apply_wrench`."""
        self.data.xfrc_applied[segment + 1] = np.concatenate([np.asarray(force, float), np.asarray(torque, float)])

    def set_gravity(self, gravity: npt.ArrayLike) -> None:
        """See `Engine.set_gravity`."""
        self.model.opt.gravity[:] = gravity

    def set_contacts(self, kind: Contacts) -> None:
        """See `Engine.set_contacts`; not on soft ground."""
        self.model.pair_solref[:, 0] = SOFT_TIME_S if kind == "soft" else mujoco.MjOption().o_solref[0]
        self.model.pair_solimp[:, :2] = HARD_IMPEDANCE if kind == "hard" else mujoco.MjOption().o_solimp[:2]

    def step(self) -> None:
        """See `Engine.step`."""
        self.data.qfrc_applied[ROOT_DOFS:] = self._torques
        step1(self.handle)
        self._rows = 0
        if self._velocities is not None:
            self._rows = len(self._velocities)
            write_servo(self.handle, self._velocities, 0)
        step2(self.handle)
        if self._servo == "pd":
            self._exerted = mujoco_pd.torques(self.model, self.data)
        self.data.xfrc_applied[:] = 0.0

    def foot_contacts(self) -> FootContacts:
        """See `Engine.foot_contacts`."""
        sensors = self.data.sensordata[: 2 * SENSOR_WIDTH].reshape(2, SENSOR_WIDTH)
        return FootContacts(np.linalg.norm(sensors[:, 1:4], axis=1), sensors[:, 4:7].copy())

    def servo_torques(self) -> Array:
        """See `Engine.servo_torques`."""
        if self._exerted is not None:
            return self._exerted.copy()
        torques = np.zeros(len(self.torque_bounds))
        torques[: self._rows] = self.data.efc_force[: self._rows]
        return torques

    def segment_frames(self) -> tuple[Array, Array]:
        """See `Engine.segment_frames`."""
        mujoco.mj_kinematics(self.model, self.data)
        return self.data.xpos[1:].copy(), self.data.xquat[1:].copy()

    def _require(self, servo: Servo) -> None:
        if self._servo != servo:
            raise EngineError(f"this engine was made with servo={self._servo!r}; make it with servo={servo!r}")

    def _go_limp(self) -> None:
        self._set_velocities(None)
        self._set_gains(0.0, 0.0)

    def _set_velocities(self, velocities: npt.ArrayLike | None) -> None:
        self._velocities = None if velocities is None else np.array(velocities, float)
        if self._servo == "velocity":
            self.model.dof_frictionloss[ROOT_DOFS:] = 0.0 if velocities is None else self.torque_bounds

    def _set_gains(self, stiffness: npt.ArrayLike, damping: npt.ArrayLike) -> None:
        self._gains[0], self._gains[1] = stiffness, damping
        if self._servo == "pd":
            mujoco_pd.set_gains(self.model, self.character.armature, *self._gains)

    def _make_handle(self) -> MujocoHandle:
        mujoco.mj_step1(self.model, self.data)
        functions = library()
        data = self.data
        return MujocoHandle(
            step1=address(functions.mj_step1),
            step2=address(functions.mj_step2),
            forward_actuation=address(functions.mj_fwdActuation),
            forward_acceleration=address(functions.mj_fwdAcceleration),
            forward_constraint=address(functions.mj_fwdConstraint),
            model=int(self.model._address),
            data=int(data._address),
            aref_slot=self._slot("efc_aref"),
            force_slot=self._slot("efc_force"),
            frictionloss_slot=self._slot("efc_frictionloss"),
            time_step_s=self.time_step_s,
            torque_bounds=np.array(self.torque_bounds),
            qpos=data.qpos,
            qvel=data.qvel,
            qacc_warmstart=data.qacc_warmstart,
            qfrc_applied=data.qfrc_applied,
            xfrc_applied=data.xfrc_applied,
            xpos=data.xpos,
            xquat=data.xquat,
            com=data.subtree_com,
            sensordata=data.sensordata,
            dof_frictionloss=self.model.dof_frictionloss,
            gravity=self.model.opt.gravity,
        )

    def _slot(self, field: str) -> int:
        """Address, inside the `mjData` structure, of the pointer to the constraint array `field`."""
        if self._servo != "velocity":
            return 0
        slot = int(self.data._address) + int(getattr(mjdata_layout(), field).offset)
        if ctypes.c_uint64.from_address(slot).value != getattr(self.data, field).ctypes.data:
            raise EngineError(f"MuJoCo {mujoco.__version__} lays out mjData.{field} differently than it declares")
        return slot


def _raise_no_warning(message: str) -> None:
    """MuJoCo's warnings (a diverging state) are data here, not lines in a log file in the user's folder."""


mujoco.set_mju_user_warning(_raise_no_warning)
