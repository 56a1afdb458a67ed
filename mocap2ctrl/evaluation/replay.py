"""Runs a controller by itself and keeps what reports and exports need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import evaluation_points
from mocap2ctrl.control.closed_loop import run, start_vector
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.simulation.engine import Engine, load_threshold_n
from mocap2ctrl.simulation.environment import LEVEL, Environment
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array, MotionClip


@dataclass(frozen=True, eq=False)
class Replay:
    """One simulation of a controller, recorded at `fps`.

    Attributes:
        clip: the motion; cut where the simulation diverged.
        points: (T, E, 3) evaluation points, metres.
        positions: (T, S, 3) segment positions, metres.
        orientations: (T, S, 4) segment orientations.
        contacts: (T, 2) left and right foot on the ground.
        state: (T,) index of the active state.
        torques: (N, J) joint torques at every simulation step, N m.
        steps_per_frame: simulation steps between frames.
        diverged: whether the simulation had to be stopped.
        environment: where it was simulated.
        pushes: what pushed it.
    """

    clip: MotionClip
    points: Array
    positions: Array
    orientations: Array
    contacts: npt.NDArray[np.bool_]
    state: npt.NDArray[np.int64]
    torques: Array
    steps_per_frame: int
    diverged: bool
    environment: Environment = LEVEL
    pushes: tuple[Push, ...] = ()

    def states_entered(self, seconds: float) -> int:
        """How many states were entered so far, the first among them; those of a cycle as often as they came."""
        frames = round(seconds * self.clip.fps) + 1
        return 1 + int(np.count_nonzero(np.diff(self.state[:frames])))

    @property
    def frame_torques(self) -> Array:
        """(T, J) the torque of largest magnitude in each frame's steps, N m."""
        frames, joints = len(self.clip), self.torques.shape[1]
        padded = np.zeros((frames * self.steps_per_frame, joints))
        padded[: min(len(padded), len(self.torques))] = self.torques[: len(padded)]
        blocks = padded.reshape(frames, self.steps_per_frame, joints)
        pick = np.abs(blocks).argmax(axis=1)
        return np.asarray(np.take_along_axis(blocks, pick[:, None], axis=1)[:, 0])


def replay(
    engine: Engine, controller: Controller, seconds: float, *, fps: float = 120.0, pushes: tuple[Push, ...] = ()
) -> Replay:
    """Simulates `controller` from its start for `seconds`, recorded at `fps` (a divisor of the engine's rate)."""
    stride = round(1.0 / (fps * engine.time_step_s))
    steps = round(seconds * fps) * stride
    program = compile_program([controller], engine.character, engine.time_step_s)
    rollouts = run(
        engine, program, start_vector(controller.start), steps, stride=stride, record_torques=True, pushes=pushes
    )
    qpos = rollouts.qpos[0]
    valid = int(np.argmin(np.isfinite(qpos).all(axis=1))) if not np.isfinite(qpos).all() else len(qpos)
    qpos = qpos[:valid]
    positions, orientations = rollouts.positions[0, :valid], rollouts.orientations[0, :valid]
    return Replay(
        clip=MotionClip("simulated", fps, qpos[:, :3], qpos[:, 3:7], qpos[:, 7:]),
        points=evaluation_points(engine.character, positions, orientations),
        positions=positions,
        orientations=orientations,
        contacts=rollouts.load[0, :valid] > load_threshold_n(engine.character),
        state=rollouts.state[0, :valid],
        torques=rollouts.torques[0],
        steps_per_frame=stride,
        diverged=bool(rollouts.diverged[0]),
        environment=engine.environment,
        pushes=tuple(pushes),
    )
