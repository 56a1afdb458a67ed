"""Many short simulations under PD servos whose targets are fixed in advance: the inner loop of sampling-based control.

They run in C, in MuJoCo's own threads, without a step of Python in between. A simulation is a pure function of its start and
targets: no warm start or contact is carried over, so that a snapshot is the time, position and velocity, and a long simulation
equals its pieces bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

import mujoco
import numpy as np
import numpy.typing as npt
from mujoco.rollout import Rollout

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation import mujoco_pd
from mocap2ctrl.simulation.coordinates import coordinates, state_from_coordinates
from mocap2ctrl.simulation.engine import DIVERGED_VELOCITY, PD_TIME_STEP_S
from mocap2ctrl.simulation.foot_height import Foot, steps_to_touchdown
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.simulation.pd_gains import PdGains, pd_gains
from mocap2ctrl.types import Array, SimState

PUSHED_SEGMENT = "chest"
"""What pushes act on, at its centre of mass."""
PUSHED_CONTROL = mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_XFRC_APPLIED


@dataclass(frozen=True, eq=False)
class Fragments:
    """P simulations of N steps, recorded every `stride` steps.

    Attributes:
        final: (P, K) snapshots of the ends, to go on from.
        qpos: (P, F, 7 + J) root position, root quaternion and angles after `stride`, 2 `stride`, … steps.
        diverged: (P,) whether a recorded velocity or the end is beyond all reason; what is recorded of such a simulation is then
            not to be used.
        steps: (P,) of the engine until the end.
    """

    final: Array
    qpos: Array
    diverged: npt.NDArray[np.bool_]
    steps: npt.NDArray[np.int64]


class PdRollouts:
    """Simulates a character's fragments on `threads` threads. A context manager: leaving it ends them."""

    def __init__(
        self,
        character: Character,
        gains: PdGains | None = None,
        *,
        threads: int = 1,
        time_step_s: float = PD_TIME_STEP_S,
        torque_scale: float = 1.0,
    ) -> None:
        """Compiles `character` and starts the threads.

        Args:
            character: who is simulated.
            gains: of the servos; the paper's for locomotion if not given.
            threads: how many share the simulations. Does not change the result.
            time_step_s: seconds.
            torque_scale: factor on the character's torque bounds.
        """
        if threads < 1:
            raise EngineError(f"threads is {threads}; allowed is 1 or more")
        self.character = character
        self.time_step_s = time_step_s
        self._joints = len(character.hinges)
        self._model = mujoco.MjModel.from_xml_string(build_mjcf(character, time_step_s, "pd"))
        mujoco_pd.set_bounds(self._model, character.torque_bounds * torque_scale)
        self.set_gains(gains or pd_gains(character, time_step_s=time_step_s))
        self._data = [mujoco.MjData(self._model) for _ in range(threads)]
        self._pushed = 6 * self._model.body(PUSHED_SEGMENT).id
        self._pool = Rollout(nthread=threads if threads > 1 else 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    def set_gains(self, gains: PdGains) -> None:
        """Other gains for the simulations from now on."""
        mujoco_pd.set_gains(self._model, self.character.armature, gains.stiffness, gains.damping)

    def snapshot(self, state: SimState) -> Array:
        """(K,) a start in `state`, at time 0."""
        return np.concatenate([[0.0], *coordinates(state)])

    def state(self, snapshot: npt.ArrayLike) -> SimState:
        """The state of a snapshot (K,) that has not diverged."""
        _, qpos, qvel = np.split(np.asarray(snapshot, float), [1, 8 + self._joints])
        return state_from_coordinates(qpos, qvel)

    def run(
        self,
        starts: npt.ArrayLike,
        targets: npt.ArrayLike,
        steps_per_target: int = 1,
        *,
        stride: int = 1,
        pushes: npt.ArrayLike | None = None,
    ) -> Fragments:
        """Simulates P fragments of G targets, N = G `steps_per_target` steps.

        Args:
            starts: (P, K) from `snapshot` or `Fragments.final`; (K,) or (1, K) if all begin alike.
            targets: (P, G, J) joint angles in radians, each held for `steps_per_target` steps.
            steps_per_target: 1 or more.
            stride: steps between recorded frames.
            pushes: (P, N, 3) forces on the chest in each step, world, newtons; none if not given.

        Raises:
            EngineError: shapes that do not fit, targets or pushes that are not finite. Starts may be: a divergence stays one.
        """
        states = self._states(starts, targets, steps_per_target, stride, pushes)
        final = states[:, -1]
        recorded = states[:, stride - 1 :: stride]
        velocities = np.concatenate([recorded, final[:, None]], axis=1)[..., 8 + self._joints :]
        steps = np.full(len(states), states.shape[1])
        return Fragments(final.copy(), recorded[..., 1 : 8 + self._joints].copy(), ~_reasonable(velocities), steps)

    def run_to_touchdown(
        self,
        starts: npt.ArrayLike,
        targets: npt.ArrayLike,
        steps_per_target: int,
        foot: Foot,
        *,
        most_steps: int,
        pushes: npt.ArrayLike | None = None,
    ) -> Fragments:
        """The same until `foot` is on the ground z = 0, after one step at the earliest and `most_steps` at the latest.

        When there are no more targets the last ones are held. `qpos` has all `most_steps` steps, those after the end, too; pushes
        are wanted for as many.
        """
        held = np.asarray(targets, float)
        more = -(-most_steps // steps_per_target) - held.shape[1]
        held = np.concatenate([held, np.repeat(held[:, -1:], more, axis=1)], axis=1)
        states = self._states(starts, held, steps_per_target, 1, pushes, most_steps)
        qpos = states[..., 1 : 8 + self._joints].copy()
        steps = steps_to_touchdown(foot, qpos)
        final = states[np.arange(len(states)), steps - 1]
        return Fragments(final, qpos, ~_reasonable(final[:, None, 8 + self._joints :]), steps)

    def _states(
        self,
        starts: npt.ArrayLike,
        targets: npt.ArrayLike,
        steps_per_target: int,
        stride: int,
        pushes: npt.ArrayLike | None,
        steps: int | None = None,
    ) -> Array:
        """(P, N, K) snapshots after each step, or after the first `steps`; see `run`."""
        held = np.asarray(targets, float)
        begin = np.atleast_2d(np.asarray(starts, float))
        self._check(begin, held, steps_per_target, stride)
        control = np.repeat(held, steps_per_target, axis=1)[:, :steps]
        spec = mujoco.mjtState.mjSTATE_CTRL
        if pushes is not None:
            control, spec = np.concatenate([control, self._wrenches(pushes, control.shape)], axis=2), PUSHED_CONTROL
        begin = np.broadcast_to(begin, (len(held), begin.shape[1]))
        chunk = max(1, len(held) // (10 * len(self._data)))
        states, _ = self._pool.rollout(
            [self._model], self._data, np.ascontiguousarray(begin), control, control_spec=int(spec), chunk_size=chunk
        )
        return np.asarray(states)

    def _wrenches(self, pushes: npt.ArrayLike, control: tuple[int, ...]) -> Array:
        """(P, N, 6 bodies) forces and torques on all bodies, of which pushes are a part."""
        forces = np.asarray(pushes, float)
        if forces.shape != (*control[:2], 3) or not np.all(np.isfinite(forces)):
            raise EngineError(f"pushes have shape {forces.shape}; expected finite numbers {(*control[:2], 3)}")
        wrenches = np.zeros((*control[:2], 6 * self._model.nbody))
        wrenches[..., self._pushed : self._pushed + 3] = forces
        return wrenches

    def _check(self, starts: Array, targets: Array, steps_per_target: int, stride: int) -> None:
        size = 14 + 2 * self._joints
        if targets.ndim != 3 or targets.shape[2] != self._joints or 0 in targets.shape:
            raise EngineError(f"targets have shape {targets.shape}; expected (fragments, targets, {self._joints})")
        if not np.all(np.isfinite(targets)):  # MuJoCo would take zeros instead
            raise EngineError("targets hold NaN or infinite values; expected finite numbers")
        if starts.ndim != 2 or starts.shape[1] != size or len(starts) not in (1, len(targets)):
            raise EngineError(f"starts have shape {starts.shape}; expected ({len(targets)}, {size})")
        if steps_per_target < 1 or stride < 1:
            raise EngineError(
                f"steps_per_target is {steps_per_target} and stride {stride}; allowed is 1 or more for both"
            )


def _reasonable(velocities: Array) -> npt.NDArray[np.bool_]:
    """(P,) whether no velocity (P, N, 6 + J) is beyond all reason, or NaN."""
    return np.asarray(np.all(np.abs(velocities) < DIVERGED_VELOCITY, axis=(1, 2)))  # False for NaN
