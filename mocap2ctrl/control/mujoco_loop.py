"""The closed loop over MuJoCo, compiled as a whole: controller and engine without Python in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.compiled import call_with_two_pointers, carray, double_pointer_at, njit
from mocap2ctrl.control.footing import push_acts, velocity_on_belt
from mocap2ctrl.control.law import (
    LOAD,
    MEMORY_SIZE,
    PRESSURE,
    STATE,
    STEP,
    BodyArrays,
    Program,
    Span,
    advance_state_machine,
    enter_state,
    hip_axes_world,
    root_target_velocity,
    target_velocities,
)
from mocap2ctrl.geometry.compiled_rotations import rotate
from mocap2ctrl.simulation.engine import DIVERGED_VELOCITY
from mocap2ctrl.simulation.mujoco import MujocoEngine, read_torques, step1, step2, write_servo


def run_compiled(
    engine: MujocoEngine,
    program: Program,
    body: BodyArrays,
    span: Span,
    root_mode: int,
    record: tuple[npt.NDArray[Any], ...],
) -> None:
    """Fills `record`, the arrays of `Rollouts`; see `control/closed_loop.py` for the rest.

    Args:
        span: what is simulated.
        root_mode: `ROOT_…` of `control/closed_loop.py`.
    """
    two_pass = root_mode in (1, 2)
    engine.set_servo(np.zeros(len(body.lower)))
    engine.model.dof_frictionloss[3:6] = 1e6 if two_pass else 0.0
    _loop(engine.handle, program, body, span, root_mode, record)
    engine.model.dof_frictionloss[3:6] = 0.0


@njit
def _loop(handle, program, body, span, root_mode, record):  # type: ignore[no-untyped-def]
    qpos_out, position_out, orientation_out, load_out, state_out, torque_out, final_out, diverged_out = record
    starts, begin, end_step, stride, stop_at_state, pushes, belt, gravity = span
    joints = body.lower.shape[0]
    n_pos, n_vel = 7 + joints, 6 + joints
    memory = np.empty(MEMORY_SIZE)
    velocity = np.zeros(joints)
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
            if step - begin < gravity.shape[0]:
                handle.gravity[:] = gravity[step - begin]
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
            for k in range(pushes.shape[1]):
                if push_acts(pushes[p, k], step):
                    for i in range(3):
                        handle.xfrc_applied[int(pushes[p, k, 3]) + 1, i] += pushes[p, k, 4 + i]
            enter_state(program, p, memory, handle.qpos, handle.qvel)
            com = handle.com[1]
            com_velocity = handle.sensordata[14:17]
            if belt.shape[0] > 0:
                com_velocity = velocity_on_belt(belt, memory, com_velocity, body.time_step_s)
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
            if pushes.shape[1] > 0:
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
        state = int(memory[STATE])
        root_target_velocity(program, p, state, program.root_target[p, state], handle.qpos, body, world)
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
