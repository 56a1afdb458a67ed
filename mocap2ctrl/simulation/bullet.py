"""The Bullet engine. Nothing else imports `pybullet`.

The servo is Bullet's own: a velocity motor is a constraint with a bounded impulse, solved by Dantzig's method together with
contacts and limits, which is Vondrak's Eq. (15) as it stands.

Bullet remembers more than a state: contacts of earlier steps, and an orientation whose last bits change when it is read and
written. So the state is kept here, in generalised coordinates, and the base is placed anew before every step; that also makes
Bullet forget old contacts. Then a state is all that the next steps depend on, and the same state gives the same bits.

Bullet's constraints have one compliance for all, and implicit damping needs one a joint. So a PD servo's torques are found by
trial steps, which exact states allow; see `implicit_pd.py`.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import points_world, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.compiled import njit
from mocap2ctrl.errors import EngineError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.compiled_rotations import rotate
from mocap2ctrl.simulation.coordinates import ROOT_DOFS, coordinates, state_from_coordinates
from mocap2ctrl.simulation.engine import LEFT, PD_TIME_STEP_S, RIGHT, TIME_STEP_S, Contacts, FootContacts, Servo
from mocap2ctrl.simulation.environment import LEVEL, Environment, laden
from mocap2ctrl.simulation.implicit_pd import implicit_torques
from mocap2ctrl.simulation.terrain import Surface, surfaces
from mocap2ctrl.simulation.urdf import build_urdf
from mocap2ctrl.types import Array, SimState

SOFTNESS = 2e-4
"""Bullet's globalCFM. It also makes contacts about as soft as MuJoCo's, and it is what controllers carry over by."""

CONTACT_ERP = 0.3
"""Share of a foot's depth in the ground that a step pushes out; with `SOFTNESS`, as MuJoCo's contacts do."""

HARD, SOFT = (1e-4, 0.2), (4e-4, 0.4)
"""The same of harder and softer contacts."""

MAX_VELOCITY = 1e5
"""rad/s or m/s at which Bullet cuts velocities; far beyond what counts as diverged."""

BASE = -1


@contextmanager
def _c_output_silenced() -> Iterator[None]:
    """What Bullet's C code prints goes nowhere: stdout belongs to the user's `--json`, and errors come as exceptions."""
    library = ctypes.CDLL(None) if os.name == "posix" else ctypes.cdll.msvcrt
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    library.fflush(None)
    kept, nowhere = [os.dup(number) for number in (1, 2)], os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        library.fflush(None)  # what C still holds would come out later
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


with _c_output_silenced():
    import pybullet


class BulletEngine:
    """`Engine` on Bullet; see the module's text for servo and state."""

    name = "bullet"

    def __init__(
        self,
        character: Character,
        *,
        time_step_s: float | None = None,
        torque_scale: float = 1.0,
        servo: Servo | bool = "velocity",
        environment: Environment = LEVEL,
    ) -> None:
        """Loads `character` into a Bullet world of its own.

        Args:
            character: who is simulated.
            time_step_s: seconds; 1/120 s if not given, 5 ms with PD servos.
            torque_scale: factor on the character's torque bounds.
            servo: what drives the joints; True is short for velocity servos and False for none: torques from outside only.
            environment: where.

        Raises:
            ConfigError: the environment has a load on a segment that the character has not.
            EngineError: Bullet has no room for another world, or no such ground.
        """
        self.character, self.environment = character, environment
        self._laden = laden(character, environment.loads)
        self._servo: Servo = ("velocity" if servo else "none") if isinstance(servo, bool) else servo
        self.time_step_s = time_step_s or (PD_TIME_STEP_S if self._servo == "pd" else TIME_STEP_S)
        self.torque_bounds = character.torque_bounds * torque_scale
        joints = len(self.torque_bounds)
        self._qpos = np.concatenate([character.segments[0].offset, [1.0, 0.0, 0.0, 0.0], np.zeros(joints)])
        self._qvel = np.zeros(ROOT_DOFS + joints)
        self._base_com = np.array(self._laden.segments[0].com)
        self._hinges = list(range(joints))
        self._bounds: list[float] = self.torque_bounds.tolist()
        self._velocities: Array | None = None
        self._pd: Array | None = None
        self._torques = np.zeros(joints)
        self._wrench = np.zeros((len(character.segments), 6))
        self._servo_torques = np.zeros(joints)
        self._contacts = np.zeros((2, 4))
        self._base = np.empty(13)
        self._link_of = np.searchsorted(character.hinge_segment, np.arange(len(character.segments)), "right") - 1
        with _c_output_silenced():
            self._world, self._ground, self._body = _load_world(self._laden, environment, self.time_step_s)
        weakref.finalize(self, _disconnect, self._world)
        self._moving = [(body, s) for body, s in self._ground.items() if s.velocity.any()]
        self._base_axes = _wxyz(_base_axes(self._body, self._world)) if self._laden.segments[0].products.any() else None
        self._side_of_link = self._sides()
        self.set_servo(None)

    def reset(self, state: SimState) -> None:
        """See `Engine.reset`."""
        self.set_state_vector(np.concatenate([*coordinates(state), np.zeros_like(self._qvel)]))
        self.set_servo(None)
        self.set_pd(None)
        self._torques[:] = 0.0
        self._wrench[:] = 0.0

    def state(self) -> SimState:
        """See `Engine.state`."""
        return state_from_coordinates(self._qpos, self._qvel)

    def state_vector(self) -> Array:
        """See `Engine.state_vector`; Bullet has no warm start."""
        return np.concatenate([self._qpos, self._qvel, np.zeros_like(self._qvel)])

    def set_state_vector(self, vector: npt.ArrayLike) -> None:
        """See `Engine.set_state_vector`."""
        self._qpos, self._qvel, _ = np.split(
            np.array(vector, float), [len(self._qpos), len(self._qpos) + len(self._qvel)]
        )
        self._servo_torques[:] = 0.0
        self._contacts[:] = 0.0
        self._place_joints()

    def snapshot(self) -> Array:
        """See `Engine.snapshot`."""
        joints = len(self._torques)
        servo = np.full(joints, np.nan) if self._velocities is None else self._velocities
        pd = np.full((3, joints), np.nan) if self._pd is None else self._pd
        kept = (self._qpos, self._qvel, servo, pd, self._torques, self._servo_torques, self._wrench, self._contacts)
        return np.concatenate([part.ravel() for part in kept])

    def restore(self, snapshot: npt.ArrayLike) -> None:
        """See `Engine.restore`."""
        joints = len(self._torques)
        sizes = [7 + joints, ROOT_DOFS + joints, joints, 3 * joints, joints, joints, self._wrench.size]
        qpos, qvel, servo, pd, torques, servo_torques, wrench, contacts = np.split(
            np.asarray(snapshot, float), np.cumsum(sizes)
        )
        self.set_state_vector(np.concatenate([qpos, qvel, np.zeros_like(qvel)]))
        self.set_servo(None if np.isnan(servo[0]) else servo)
        self._pd = None if np.isnan(pd[0]) else pd.reshape(3, joints)
        self._torques[:], self._servo_torques[:] = torques, servo_torques
        self._wrench[:] = wrench.reshape(self._wrench.shape)
        self._contacts[:] = contacts.reshape(self._contacts.shape)

    def set_servo(self, velocities: npt.ArrayLike | None) -> None:
        """See `Engine.set_servo`."""
        if velocities is not None:
            self._require("velocity")
        was_limp = self._velocities is None
        self._velocities = None if velocities is None else np.array(velocities, float)
        if self._velocities is not None:
            self._set_motors(self._velocities.tolist(), self._bounds)
        elif not was_limp:
            self._set_motors([0.0] * len(self._bounds), [0.0] * len(self._bounds))

    def set_pd(
        self, targets: npt.ArrayLike | None, stiffness: npt.ArrayLike = 0.0, damping: npt.ArrayLike = 0.0
    ) -> None:
        """See `Engine.set_pd`; the spring and the velocity before the step are clamped, as `mujoco_pd` does."""
        if targets is not None:
            self._require("pd")
        joints = len(self._torques)
        self._pd = (
            None if targets is None else np.array([np.broadcast_to(v, joints) for v in (targets, stiffness, damping)])
        )

    def set_torques(self, torques: npt.ArrayLike) -> None:
        """See `Engine.set_torques`."""
        self._torques[:] = torques

    def apply_wrench(self, segment: int, force: npt.ArrayLike, torque: npt.ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """See `Engine.apply_wrench`."""
        self._wrench[segment] = np.concatenate([np.asarray(force, float), np.asarray(torque, float)])

    def set_gravity(self, gravity: npt.ArrayLike) -> None:
        """See `Engine.set_gravity`."""
        pybullet.setGravity(*np.asarray(gravity, float).tolist(), physicsClientId=self._world)

    def set_contacts(self, kind: Contacts) -> None:
        """See `Engine.set_contacts`."""
        softness, erp = {"usual": (SOFTNESS, CONTACT_ERP), "hard": HARD, "soft": SOFT}[kind]
        pybullet.setPhysicsEngineParameter(globalCFM=softness, contactERP=erp, physicsClientId=self._world)

    def step(self) -> None:
        """See `Engine.step`."""
        if self._pd is None:
            self._advance(self._torques)
        else:
            self._advance_under_pd(*self._pd)
        self._wrench[:] = 0.0
        self._read_contacts()

    def foot_contacts(self) -> FootContacts:
        """See `Engine.foot_contacts`."""
        return FootContacts(self._contacts[:, 0].copy(), self._contacts[:, 1:].copy())

    def servo_torques(self) -> Array:
        """See `Engine.servo_torques`."""
        return self._servo_torques.copy()

    def segment_frames(self) -> tuple[Array, Array]:
        """See `Engine.segment_frames`."""
        return segment_frames(self.character, self._qpos[:3], self._qpos[3:7], self._qpos[7:])

    def _require(self, servo: Servo) -> None:
        if self._servo != servo:
            raise EngineError(f"this engine was made with servo={self._servo!r}; make it with servo={servo!r}")

    def _advance(self, torques: Array) -> None:
        """One step of Bullet with joint torques (J,) from outside, and what comes of it."""
        world, body = self._world, self._body
        _base_of_coordinates(self._qpos, self._qvel, self._base_com, self._base)
        if self._base_axes is not None:
            self._base[3:7] = _xyzw(rotations.multiply(_wxyz(self._base[3:7]), self._base_axes))
        base = self._base.tolist()
        pybullet.resetBasePositionAndOrientation(body, base[:3], base[3:7], physicsClientId=world)
        pybullet.resetBaseVelocity(body, base[7:10], base[10:], physicsClientId=world)
        for ground, surface in self._moving:  # Bullet would have it travel, too
            _place_ground(ground, surface, world)
            pybullet.resetBaseVelocity(ground, surface.velocity.tolist(), [0.0] * 3, physicsClientId=world)
        self._apply_outside_forces(torques)
        pybullet.stepSimulation(physicsClientId=world)
        position, orientation = pybullet.getBasePositionAndOrientation(body, physicsClientId=world)
        velocity, spin = pybullet.getBaseVelocity(body, physicsClientId=world)
        self._base[:] = position + orientation + velocity + spin
        if self._base_axes is not None:
            self._base[3:7] = _xyzw(rotations.multiply(_wxyz(self._base[3:7]), rotations.conjugate(self._base_axes)))
        joints = pybullet.getJointStates(body, self._hinges, physicsClientId=world)
        self._qpos[7:], self._qvel[ROOT_DOFS:] = [j[0] for j in joints], [j[1] for j in joints]
        self._servo_torques[:] = [j[3] for j in joints] if self._velocities is not None else 0.0
        _coordinates_of_base(self._base, self._base_com, self._qpos, self._qvel)

    def _advance_under_pd(self, targets: Array, stiffness: Array, damping: Array) -> None:
        """One step with the torques for which the law of `Engine.set_pd` holds."""
        qpos, qvel = self._qpos.copy(), self._qvel.copy()
        angles, velocity = qpos[7:], qvel[ROOT_DOFS:]
        explicit = stiffness * (targets - angles) - damping * velocity

        def velocity_after(torques: Array) -> Array:
            self._qpos[:], self._qvel[:] = qpos, qvel
            self._place_joints()
            self._advance(self._torques + torques)
            return self._qvel[ROOT_DOFS:].copy()

        inertia = np.array(pybullet.calculateMassMatrix(self._body, angles.tolist(), physicsClientId=self._world))
        self._servo_torques[:] = implicit_torques(
            velocity_after,
            np.clip(explicit, -self.torque_bounds, self.torque_bounds),
            velocity,
            damping,
            np.linalg.inv(inertia)[ROOT_DOFS:, ROOT_DOFS:],
            self.time_step_s,
        )

    def _place_joints(self) -> None:
        rows = [[[value] for value in part] for part in (self._qpos[7:], self._qvel[ROOT_DOFS:])]
        pybullet.resetJointStatesMultiDof(self._body, self._hinges, *rows, physicsClientId=self._world)

    def _set_motors(self, velocities: list[float], bounds: list[float]) -> None:
        pybullet.setJointMotorControlArray(
            self._body,
            self._hinges,
            pybullet.VELOCITY_CONTROL,
            targetVelocities=velocities,
            forces=bounds,
            physicsClientId=self._world,
        )

    def _apply_outside_forces(self, torques: Array) -> None:
        """Hands torques and wrenches to the next step; Bullet forgets them after it."""
        if torques.any():
            pybullet.setJointMotorControlArray(
                self._body,
                self._hinges,
                pybullet.TORQUE_CONTROL,
                forces=torques.tolist(),
                physicsClientId=self._world,
            )
        if not self._wrench.any():
            return
        positions, orientations = self.segment_frames()
        coms = np.array([s.com for s in self._laden.segments])
        centres = points_world(positions, orientations, np.arange(len(coms)), coms)
        for segment in np.flatnonzero(self._wrench.any(axis=1)):
            link, force, torque = int(self._link_of[segment]), self._wrench[segment, :3], self._wrench[segment, 3:]
            where = {"flags": pybullet.WORLD_FRAME, "physicsClientId": self._world}
            pybullet.applyExternalForce(self._body, link, force.tolist(), centres[segment].tolist(), **where)
            pybullet.applyExternalTorque(self._body, link, torque.tolist(), **where)

    def _read_contacts(self) -> None:
        """Sums the ground's forces on each foot and its toes: load and centre of pressure, one row a side."""
        force, moment, weight = (
            [[0.0] * 3, [0.0] * 3],
            [[0.0] * 3, [0.0] * 3],
            [0.0, 0.0],
        )  # numpy is slow on three numbers
        for point in pybullet.getContactPoints(self._body, physicsClientId=self._world):
            side, load = self._side_of_link.get(point[3]), point[9]
            if side is None or load <= 0.0:
                continue
            place, normal, first, second = point[5], point[7], point[11], point[13]
            for k in range(3):
                force[side][k] += load * normal[k] + point[10] * first[k] + point[12] * second[k]
                moment[side][k] += load * place[k]
            weight[side] += load
        for side in (LEFT, RIGHT):
            self._contacts[side, 0] = math.sqrt(sum(f * f for f in force[side]))
            self._contacts[side, 1:] = [m / max(weight[side], 1e-12) for m in moment[side]]

    def _sides(self) -> dict[int, int]:
        """The side of each link that is part of a foot."""
        names = self.character.segment_names
        sides = {f"{side}_{part}": k for k, side in ((LEFT, "left"), (RIGHT, "right")) for part in ("foot", "toes")}
        return {int(self._link_of[names.index(name)]): side for name, side in sides.items()}


def _load_world(
    character: Character, environment: Environment, time_step_s: float
) -> tuple[int, dict[int, Surface], int]:
    """A new world: its number, the surfaces of the ground by their numbers in it, and the body's."""
    if environment.softness is not None:
        raise EngineError("engine 'bullet' has no soft ground; choose 'mujoco' for it")
    world = pybullet.connect(pybullet.DIRECT)
    if world < 0:
        raise EngineError("Bullet has no room for another world; fewer engines at a time will do")
    here: dict[str, Any] = {"physicsClientId": world}
    pybullet.setGravity(0.0, 0.0, -environment.gravity_m_s2, **here)
    pybullet.setTimeStep(time_step_s, **here)
    pybullet.setPhysicsEngineParameter(
        deterministicOverlappingPairs=1,
        constraintSolverType=pybullet.CONSTRAINT_SOLVER_LCP_DANTZIG,
        globalCFM=SOFTNESS,
        contactERP=CONTACT_ERP,
        **here,
    )
    ground = {_add_ground(surface, here): surface for surface in surfaces(environment)}
    with tempfile.TemporaryDirectory(prefix="mocap2ctrl-") as folder:
        path = Path(folder) / "character.urdf"
        path.write_text(build_urdf(character), "utf-8")
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE | pybullet.URDF_MAINTAIN_LINK_ORDER
        body = pybullet.loadURDF(str(path), flags=flags, **here)
    loaded = [pybullet.getJointInfo(body, j, **here)[1].decode() for j in range(pybullet.getNumJoints(body, **here))]
    if loaded != list(character.hinge_names):
        raise EngineError(f"Bullet has the hinges in another order than the character: {loaded}")
    for surface in ground:
        _set_dynamics(surface, BASE, 1.0, here)
    for link in range(BASE, len(loaded)):
        _set_dynamics(body, link, environment.friction_of(character), here)
    limp = [0.0] * len(loaded)
    pybullet.setJointMotorControlArray(body, range(len(loaded)), pybullet.VELOCITY_CONTROL, forces=limp, **here)
    return world, ground, body


def _add_ground(surface: Surface, here: dict[str, Any]) -> int:
    if surface.half_size is None:
        shape = pybullet.createCollisionShape(pybullet.GEOM_PLANE, **here)
    else:
        shape = pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=surface.half_size.tolist(), **here)
    ground = int(pybullet.createMultiBody(0, shape, **here))
    _place_ground(ground, surface, here["physicsClientId"])
    return ground


def _place_ground(ground: int, surface: Surface, world: int) -> None:
    w, x, y, z = surface.orientation.tolist()
    pybullet.resetBasePositionAndOrientation(ground, surface.centre.tolist(), [x, y, z, w], physicsClientId=world)


def _set_dynamics(body: int, link: int, friction: float, here: dict[str, Any]) -> None:
    """Friction as given, and nothing that damps; in calls of their own, since Bullet drops friction beside the others."""
    pybullet.changeDynamics(body, link, lateralFriction=friction, restitution=0.0, **here)
    pybullet.changeDynamics(body, link, jointDamping=0.0, **here)
    pybullet.changeDynamics(body, link, linearDamping=0.0, angularDamping=0.0, **here)
    pybullet.changeDynamics(body, link, maxJointVelocity=MAX_VELOCITY, **here)
    pybullet.changeDynamics(body, link, activationState=pybullet.ACTIVATION_STATE_DISABLE_SLEEPING, **here)


def _base_axes(body: int, world: int) -> Array:
    """(4,) xyzw: the root's principal axes, whose orientation is the root's to Bullet; turned only by what the root carries."""
    return np.array(pybullet.getDynamicsInfo(body, BASE, physicsClientId=world)[4])


def _wxyz(xyzw: Array) -> Array:
    return np.roll(xyzw, 1)


def _xyzw(wxyz: Array) -> Array:
    return np.roll(wxyz, -1)


def _disconnect(world: int) -> None:
    if pybullet.isConnected(world):
        pybullet.disconnect(world)


@njit
def _base_of_coordinates(qpos, qvel, com, base):  # type: ignore[no-untyped-def]
    """Writes what Bullet wants of the root to `base` (13,): centre of mass, quaternion xyzw, its velocity, angular velocity."""
    arm, spin = np.empty(3), np.empty(3)
    rotate(qpos[3:7], com, arm)
    rotate(qpos[3:7], qvel[3:6], spin)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        base[k] = qpos[k] + arm[k]
        base[3 + k] = qpos[4 + k]
        base[7 + k] = qvel[k] + spin[i] * arm[j] - spin[j] * arm[i]
        base[10 + k] = spin[k]
    base[6] = qpos[3]


@njit
def _coordinates_of_base(base, com, qpos, qvel):  # type: ignore[no-untyped-def]
    """The inverse of `_base_of_coordinates`: writes the root's part of `qpos` and `qvel`."""
    qpos[3] = base[6]
    for k in range(3):
        qpos[4 + k] = base[3 + k]
    arm, inverse = np.empty(3), np.empty(4)
    rotate(qpos[3:7], com, arm)
    inverse[0] = qpos[3]
    for k in range(3):
        inverse[1 + k] = -qpos[4 + k]
    rotate(inverse, base[10:13], qvel[3:6])
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        qpos[k] = base[k] - arm[k]
        qvel[k] = base[7 + k] - (base[10 + i] * arm[j] - base[10 + j] * arm[i])
