"""Several characters on one ground under PD servos, step by step: they collide with each other, and can be pushed.

One character is `build_mjcf`'s model, and does what it does in `PdRollouts`, bit for bit. With more of them its shapes are in
collision classes, and the others are copies of its tree beside it.
"""

from __future__ import annotations

from copy import deepcopy
from xml.etree import ElementTree

import mujoco
import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.engine import DIVERGED_VELOCITY, PD_TIME_STEP_S
from mocap2ctrl.simulation.environment import LEVEL, Environment
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.simulation.mujoco_ground import soften
from mocap2ctrl.simulation.pd_gains import PdGains, pd_gains
from mocap2ctrl.simulation.terrain import felt_gravity
from mocap2ctrl.types import Array

MOST = 16
"""Characters on one stage: each has a collision class of its own, and MuJoCo has 32."""


class Stage:
    """N characters of one kind in one MuJoCo model."""

    def __init__(
        self,
        character: Character,
        count: int = 1,
        gains: PdGains | None = None,
        *,
        torque_scale: float = 1.0,
        environment: Environment = LEVEL,
    ) -> None:
        """Compiles `count` copies of `character`.

        Args:
            character: who is simulated.
            count: how many of them.
            gains: of the servos; the paper's for locomotion if not given.
            torque_scale: factor on the character's torque bounds.
            environment: where; snapshots are seen from its ground, if that sways.

        Raises:
            EngineError: `count` is not allowed, or not there.
        """
        if not 1 <= count <= MOST:
            raise EngineError(f"there are {count} characters; allowed are 1 to {MOST}")
        if count > 1 and environment.softness is not None:
            raise EngineError(
                f"{environment.name!r} is a soft ground, which bears one character only; there are {count}"
            )
        self.character, self.count, self.environment = character, count, environment
        self._joints, self._steps = len(character.hinges), 0
        self._model = mujoco.MjModel.from_xml_string(_stage_mjcf(character, count, environment))
        if environment.softness is not None:
            soften(self._model, character, environment.softness)
        self._data = mujoco.MjData(self._model)
        gains = gains or pd_gains(character)
        bounds = np.tile(character.torque_bounds * torque_scale, count)
        self._model.actuator_forcerange[:] = np.stack([-bounds, bounds], axis=1)
        self._model.actuator_gainprm[:, 0] = np.tile(gains.stiffness, count)
        self._model.actuator_biasprm[:, 1] = -np.tile(gains.stiffness, count)
        self._model.actuator_biasprm[:, 2] = -np.tile(gains.damping, count)
        # The servos' damping is implicit, as in `mujoco_pd`.
        armature = np.tile(character.armature + PD_TIME_STEP_S * gains.damping, (count, 1))
        self._model.dof_armature.reshape(count, -1)[:, 6:] = armature

    def place(self, snapshots: npt.ArrayLike) -> None:
        """Puts the characters where snapshots (N, K) of `PdRollouts` say, and starts the clock."""
        flat = np.asarray(snapshots, float)
        mujoco.mj_resetData(self._model, self._data)
        self._steps = 0
        self._data.qpos[:] = flat[:, 1 : 8 + self._joints].ravel()
        self._data.qvel[:] = flat[:, 8 + self._joints :].ravel()

    def snapshots(self) -> Array:
        """(N, K) where the characters are, as `PdRollouts` takes it."""
        qpos = self._data.qpos.reshape(self.count, -1)
        qvel = self._data.qvel.reshape(self.count, -1)
        return np.concatenate([np.full((self.count, 1), self._data.time), qpos, qvel], axis=1)

    def step(self, targets: npt.ArrayLike) -> bool:
        """One step of 5 ms towards the joint angles `targets` (N, J); whether nothing has diverged."""
        self._data.ctrl[:] = np.asarray(targets, float).ravel()
        if self.environment.sway is not None:
            self._model.opt.gravity[:] = felt_gravity(self.environment, self._steps, PD_TIME_STEP_S)
        mujoco.mj_step(self._model, self._data)
        self._steps += 1
        return bool(np.all(np.abs(self._data.qvel) < DIVERGED_VELOCITY))  # False for NaN

    def push(self, character: int, segment: int, force: npt.ArrayLike) -> None:
        """Applies a force (3,) in newtons, world, to a segment's centre of mass in the next steps; zeros end it."""
        body = 1 + character * len(self.character.segments) + segment
        self._data.xfrc_applied[body, :3] = np.asarray(force, float)

    def collisions(self) -> tuple[tuple[int, int], ...]:
        """Which two characters touched in the last step."""
        segments = len(self.character.segments)
        bodies = self._model.geom_bodyid[self._data.contact.geom[: self._data.ncon]]
        touching = (bodies[np.all(bodies > 0, axis=1)] - 1) // segments
        return tuple(sorted({(int(min(pair)), int(max(pair))) for pair in touching}))


def _stage_mjcf(character: Character, count: int, environment: Environment) -> str:
    """The MJCF text of `count` characters on one ground."""
    if count == 1:
        return build_mjcf(character, PD_TIME_STEP_S, "pd", environment=environment)
    root = ElementTree.fromstring(build_mjcf(character, PD_TIME_STEP_S, "pd", pairs=False, environment=environment))
    for sensors in root.findall("sensor"):
        root.remove(sensors)
    world, actuators = root.find("worldbody"), root.find("actuator")
    if world is None or actuators is None:
        raise EngineError("the character's model has no bodies or no servos")
    (first,), servos = world.findall("body"), list(actuators)
    for number in range(1, count):
        world.append(_renamed(first, number))
        for servo in servos:
            actuators.append(_renamed(servo, number))
    for number, body in enumerate(world.findall("body")):
        for geom in body.iter("geom"):
            # Ground has the class 1; two bodies touch if the class of one is among those that the other meets.
            geom.set("contype", str(2 << number))
            geom.set("conaffinity", str(1 | (((2 << count) - 2) & ~(2 << number))))
    return ElementTree.tostring(root, encoding="unicode")


def _renamed(element: ElementTree.Element, number: int) -> ElementTree.Element:
    """A copy whose names, and the joints that it names, are those of another character."""
    copy = deepcopy(element)
    for part in copy.iter():
        for key in ("name", "joint"):
            if key in part.attrib:
                part.set(key, f"{number}/{part.attrib[key]}")
    return copy
