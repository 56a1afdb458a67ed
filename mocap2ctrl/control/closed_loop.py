"""Simulates a population of state machines: controller and engine in one loop, compiled where the engine allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.compiled import call_with_two_pointers, carray, double_pointer_at, njit
from mocap2ctrl.control.law import (
    EXIT_NEVER,
    LOAD,
    MEMORY_SIZE,
    PRESSURE,
    STATE,
    STEP,
    BodyArrays,
    Program,
    advance_state_machine,
    body_arrays,
    hip_axes_world,
    root_target_velocity,
    rotate,
    target_velocities,
)
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.mujoco import MujocoEngine, coordinates, read_torques, step1, step2, write_servo
from mocap2ctrl.types import Array, SimState

ROOT_STANCE, ROOT_STANCE_TORQUE, ROOT_SWING_TORQUE, ROOT_FREE = 0, 1, 2, 3
DIVERGED_VELOCITY = 300.0
"""rad/s or m/s beyond which a simulation counts as diverged and is stopped."""


_Recording = tuple[npt.NDArray[Any], ...]
"""The arrays that a loop fills, in the order of `Rollouts`."""


@dataclass(frozen=True, eq=False)
class Push:
    """A force on a segment's centre of mass.

    Attributes:
        segment: index of the segment.
        force: (3,) N, world.
        start_s, duration_s: seconds of simulated time.
    """

    segment: int
    force: Array
    start_s: float
    duration_s: float


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
        final: (P, K) what the next steps depend on, to go on from.
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
    pushes: tuple[Push, ...] = (),
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
        root_mode: who holds the root; ROOT_STANCE but in experiments.
    """
    if not isinstance(engine, MujocoEngine):
        raise EngineError(f"engine {engine.name!r} has no closed loop; choose 'mujoco'")
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
    table = np.array([_push_row(push, engine.time_step_s) for push in pushes]).reshape(-1, 6)
    _run_mujoco(engine, program, body, starts, end_step, stride, stop_at_state, table, root_mode, record)
    return Rollouts(first_frame, *record)


def _push_row(push: Push, time_step_s: float) -> list[float]:
    first = round(push.start_s / time_step_s)
    return [first, first + round(push.duration_s / time_step_s), push.segment, *push.force]


def _run_mujoco(
    engine: MujocoEngine,
    program: Program,
    body: BodyArrays,
    starts: Array,
    end_step: int,
    stride: int,
    stop_at_state: int,
    pushes: Array,
    root_mode: int,
    record: _Recording,
) -> None:
    two_pass = root_mode in (ROOT_STANCE_TORQUE, ROOT_SWING_TORQUE)
    engine.set_servo(np.zeros(len(body.lower)))
    engine.model.dof_frictionloss[3:6] = 1e6 if two_pass else 0.0
    _mujoco_loop(engine.handle, program, body, starts, end_step, stride, stop_at_state, pushes, root_mode, record)
    engine.model.dof_frictionloss[3:6] = 0.0


@njit
def _mujoco_loop(handle, program, body, starts, end_step, stride, stop_at_state, pushes, root_mode, record):  # type: ignore[no-untyped-def]
    qpos_out, position_out, orientation_out, load_out, state_out, torque_out, final_out, diverged_out = record
    joints = body.lower.shape[0]
    n_pos, n_vel = 7 + joints, 6 + joints
    memory = np.empty(MEMORY_SIZE)
    velocity = np.zeros(joints)
    begin = 1 << 60
    for p in range(starts.shape[0]):
        begin = min(begin, int(starts[p, n_pos + 2 * n_vel + STEP]))
    first_frame = -(-begin // stride)
    for p in range(starts.shape[0]):
        handle.qpos[:] = starts[p, :n_pos]
        handle.qvel[:] = starts[p, n_pos : n_pos + n_vel]
        handle.qacc_warmstart[:] = starts[p, n_pos + n_vel : n_pos + 2 * n_vel]
        handle.xfrc_applied[:] = 0.0
        handle.qfrc_applied[:] = 0.0
        memory[:] = starts[p, n_pos + 2 * n_vel :]
        while True:
            step = int(memory[STEP])
            finite = True
            for i in range(n_vel):
                if not abs(handle.qvel[i]) < DIVERGED_VELOCITY:
                    finite = False
            if not finite:
                diverged_out[p] = True
                break
            step1(handle)
            advance_state_machine(program, p, memory, body)
            if step % stride == 0 and step // stride - first_frame < qpos_out.shape[1]:
                row = step // stride - first_frame
                qpos_out[p, row] = handle.qpos
                position_out[p, row] = handle.xpos[1:]
                orientation_out[p, row] = handle.xquat[1:]
                load_out[p, row, 0] = memory[LOAD]
                load_out[p, row, 1] = memory[LOAD + 1]
                state_out[p, row] = int(memory[STATE])
            if step >= end_step or int(memory[STATE]) == stop_at_state:
                break
            for k in range(pushes.shape[0]):
                if pushes[k, 0] <= step < pushes[k, 1]:
                    for i in range(3):
                        handle.xfrc_applied[int(pushes[k, 2]) + 1, i] += pushes[k, 3 + i]
            com = handle.com[1]
            com_velocity = handle.sensordata[14:17]
            hold = root_mode == 0
            target_velocities(program, p, memory, body, handle.qpos, handle.qvel, com, com_velocity, hold, velocity)
            if root_mode == 1 or root_mode == 2:
                _step_with_root_torque(handle, program, p, memory, body, velocity, root_mode, torque_out, step - begin)
            else:
                write_servo(handle, velocity, 0)
                step2(handle)
                if torque_out.shape[1] > 0:
                    read_torques(handle, torque_out[p, step - begin])
            for side in range(2):
                sensor = handle.sensordata[7 * side : 7 * side + 7]
                memory[LOAD + side] = np.sqrt(sensor[1] ** 2 + sensor[2] ** 2 + sensor[3] ** 2)
                for k in range(3):
                    memory[PRESSURE + 3 * side + k] = sensor[4 + k]
            if pushes.shape[0] > 0:
                handle.xfrc_applied[:] = 0.0
            memory[STEP] += 1.0
        final_out[p, :n_pos] = handle.qpos
        final_out[p, n_pos : n_pos + n_vel] = handle.qvel
        final_out[p, n_pos + n_vel : n_pos + 2 * n_vel] = handle.qacc_warmstart
        final_out[p, n_pos + 2 * n_vel :] = memory


@njit
def _step_with_root_torque(handle, program, p, memory, body, velocity, root_mode, torque_out, row):  # type: ignore[no-untyped-def]
    """Algorithm 1, for experiments: solve with an outside root torque, then give it to a thigh and solve again.

    `root_mode` 1 gives it to the loaded hip (within its bound), 2 to the swing hip, as printed.
    """
    joints = velocity.shape[0]
    write_servo(handle, velocity, 3)
    loss = carray(double_pointer_at(handle.frictionloss_slot), (3 + joints,))
    aref = carray(double_pointer_at(handle.aref_slot), (3,))
    side = -1
    if memory[LOAD] + memory[LOAD + 1] > body.load_threshold_n:
        side = 0 if memory[LOAD] >= memory[LOAD + 1] else 1
        if root_mode == 2:
            side = 1 - side
    column = body.hip_column[max(side, 0)]
    applied = np.zeros(3)
    if side >= 0:
        world, local, inverse = np.empty(3), np.empty(3), np.empty(4)
        root_target_velocity(program, p, int(memory[STATE]), handle.qpos, body, world)
        inverse[0] = handle.qpos[3]
        for k in range(1, 4):
            inverse[k] = -handle.qpos[3 + k]
        rotate(inverse, world, local)
        for k in range(3):
            aref[k] = (local[k] - handle.qvel[3 + k]) / handle.time_step_s
        call_with_two_pointers(handle.forward_actuation, handle.model, handle.data)
        call_with_two_pointers(handle.forward_acceleration, handle.model, handle.data)
        call_with_two_pointers(handle.forward_constraint, handle.model, handle.data)
        force = carray(double_pointer_at(handle.force_slot), (3 + joints,))
        rotate(handle.qpos[3:7], force[:3], world)
        axes = np.empty((3, 3))
        hip_axes_world(handle.qpos, body, side, axes)
        for h in range(3):
            bound = handle.torque_bounds[column + h]
            extra = axes[h, 0] * world[0] + axes[h, 1] * world[1] + axes[h, 2] * world[2]
            applied[h] = force[3 + column + h] - extra
            if root_mode == 1:
                applied[h] = min(max(applied[h], -bound), bound)
            handle.qfrc_applied[6 + column + h] = applied[h]
            loss[3 + column + h] = 0.0
    for k in range(3):
        loss[k] = 0.0
    step2(handle)
    handle.qfrc_applied[:] = 0.0
    if torque_out.shape[1] > 0:
        force = carray(double_pointer_at(handle.force_slot), (3 + joints,))
        for j in range(joints):
            torque_out[p, row, j] = force[3 + j]
        if side >= 0:
            for h in range(3):
                torque_out[p, row, column + h] = applied[h]


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
