"""Simulates a population of state machines: controller and engine in one loop, compiled where the engine allows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.control.footing import moving_ground
from mocap2ctrl.control.law import (
    EXIT_NEVER,
    MEMORY_SIZE,
    STEP,
    Program,
    Span,
    body_arrays,
)
from mocap2ctrl.control.mujoco_loop import run_compiled
from mocap2ctrl.control.stepped_loop import run_stepped
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.coordinates import coordinates
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.environment import GRAVITY_M_S2
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.simulation.pushes import Push, push_table
from mocap2ctrl.simulation.terrain import felt_gravity, sway_at
from mocap2ctrl.types import Array, SimState

ROOT_STANCE, ROOT_STANCE_TORQUE, ROOT_SWING_TORQUE, ROOT_FREE = 0, 1, 2, 3

_Recording = tuple[npt.NDArray[Any], ...]
"""The arrays that a loop fills, in the order of `Rollouts`."""


@dataclass(frozen=True, eq=False)
class Rollouts:
    """P simulations, recorded every `stride` steps; row 0 is the first recorded frame, `first_frame` its number.

    Attributes:
        first_frame: number of the first recorded frame; frame f is at time f * stride * time step.
        qpos: (P, F, 7 + J) root position, root quaternion, angles; NaN after a divergence.
        positions: (P, F, S, 3) world positions of segments, metres.
        orientations: (P, F, S, 4) world orientations of segments.
        load: (P, F, 2) ground force on left and right foot, N.
        state: (P, F) index of the controller's state that acts from this frame on.
        torques: (P, N, J) servo torques at every step, N m, or (P, 0, J) when they were not asked for.
        final: (P, K) what the next steps depend on, to go on from; where the ground sways, seen from it.
        diverged: (P,) whether the simulation was stopped for divergence.
    """

    first_frame: int
    qpos: Array
    positions: Array
    orientations: Array
    load: Array
    state: npt.NDArray[np.int64]
    torques: Array
    final: Array
    diverged: npt.NDArray[np.bool_]


def start_vector(state: SimState) -> Array:
    """(K,) the beginning of a simulation in `state`, at the first state of the machine, at step 0."""
    qpos, qvel = coordinates(state)
    return np.concatenate([qpos, qvel, np.zeros_like(qvel), np.zeros(MEMORY_SIZE)])


def start_step(start: Array) -> int:
    """The number of the step that a start vector (K,) stands at."""
    return int(start[len(start) - MEMORY_SIZE + STEP])


def run(
    engine: Engine,
    program: Program,
    starts: npt.ArrayLike,
    end_step: int,
    *,
    stride: int = 1,
    stop_at_state: int = -1,
    record_torques: bool = False,
    pushes: Sequence[Push] = (),
    own_pushes: Sequence[Sequence[Push]] = (),
    root_mode: int = ROOT_STANCE,
) -> Rollouts:
    """Simulates each of the program's P machines from its start until `end_step`.

    Args:
        engine: where to simulate; it is left in the last simulation's state.
        program: the machines.
        starts: (P, K) or (K,) from `start_vector` or `Rollouts.final`.
        end_step: number of the step at which to stop; counts from the motion's beginning, not from the start.
        stride: steps between recorded frames.
        stop_at_state: stop early, when this state is entered, before its first step; -1 never.
        record_torques: keep the servos' torques of every step.
        pushes: forces from outside, the same for all.
        own_pushes: those of each machine beside them: P sequences, or none.
        root_mode: who holds the root; ROOT_STANCE but in experiments.

    Raises:
        EngineError: a computed torque is to hold the root, which is an experiment on MuJoCo alone.
    """
    two_pass = root_mode in (ROOT_STANCE_TORQUE, ROOT_SWING_TORQUE)
    if two_pass and not isinstance(engine, MujocoEngine):
        raise EngineError(f"engine {engine.name!r} cannot hold the root by a computed torque; choose 'mujoco'")
    machines = len(program.root_alpha)
    # A copy: read-only arrays are another type to numba, which would compile all of the loop once more.
    starts = np.array(np.broadcast_to(starts, (machines, np.shape(starts)[-1])), dtype=float, order="C")
    begin = min(start_step(s) for s in starts)
    joints = len(engine.character.hinges)
    segments = len(engine.character.segments)
    first_frame = -(-begin // stride)
    frames = max(end_step // stride - first_frame + 1, 0)
    steps = max(end_step - begin, 0) if record_torques else 0
    record: _Recording = (
        np.full((machines, frames, 7 + joints), np.nan),
        np.full((machines, frames, segments, 3), np.nan),
        np.full((machines, frames, segments, 4), np.nan),
        np.zeros((machines, frames, 2)),
        np.zeros((machines, frames), dtype=np.int64),
        np.zeros((machines, steps, joints)),
        np.empty_like(starts),
        np.zeros(machines, dtype=np.bool_),
    )
    body = body_arrays(engine.character, engine.time_step_s)
    if engine.environment.gravity_m_s2 != GRAVITY_M_S2:  # what counts as a loaded foot is a share of the weight there
        lighter = engine.environment.gravity_m_s2 / GRAVITY_M_S2
        body = body._replace(load_threshold_n=lighter * body.load_threshold_n, weight_n=lighter * body.weight_n)
    where, dt = engine.environment, engine.time_step_s
    gravity = felt_gravity(where, np.arange(begin, end_step), dt) if where.sway else np.empty((0, 3))
    table = push_table(pushes, own_pushes, machines, dt)
    span = Span(starts, begin, end_step, stride, stop_at_state, table, moving_ground(where), gravity)
    if isinstance(engine, MujocoEngine):
        run_compiled(engine, program, body, span, root_mode, record)
    else:
        run_stepped(engine, program, body, span, root_mode == ROOT_STANCE, record)
    if where.sway:
        moved = sway_at(where, (first_frame + np.arange(frames)) * stride * dt)
        record[0][..., :3] += moved
        record[1][:] += moved[:, None]
        engine.set_gravity((0.0, 0.0, -where.gravity_m_s2))
    return Rollouts(first_frame, *record)


def compile_closed_loop(engine: Engine) -> None:
    """Compiles the loop for `engine`, or loads it from the cache, by a run of no steps."""
    pose = engine.character.zero_pose()
    joints = np.zeros(len(pose.angles))
    start = start_vector(SimState(pose, np.zeros(3), np.zeros(3), joints))
    run(engine, single_state_program(pose.root_orientation, joints, 0.1), start, 0)


def single_state_program(root_target: npt.ArrayLike, angle_target: npt.ArrayLike, alpha: float) -> Program:
    """One machine with one endless state that servos to a pose; for tests and experiments."""
    angles = np.array(angle_target, float)
    return Program(
        root_target=np.array(root_target, float).reshape(1, 1, 4),
        angle_target=angles.reshape(1, 1, -1),
        root_alpha=np.full((1, 1), alpha),
        alpha=np.full((1, 1, len(angles)), alpha),
        balance=np.zeros((1, 1, 3)),
        swing=np.zeros(1, dtype=np.int64),
        exit_kind=np.full(1, EXIT_NEVER, dtype=np.int64),
        exit_time_s=np.full((1, 1), np.inf),
        next_state=np.zeros(1, dtype=np.int64),
    )
