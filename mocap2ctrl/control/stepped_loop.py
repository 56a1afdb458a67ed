"""The closed loop over any engine: the controller is compiled, the engine is asked step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.compiled import njit
from mocap2ctrl.control.footing import forces_at, velocity_on_belt
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
    target_velocities,
)
from mocap2ctrl.simulation.body_motion import centre_of_mass_motion, masses_of
from mocap2ctrl.simulation.engine import DIVERGED_VELOCITY, Engine
from mocap2ctrl.simulation.environment import laden

GO_ON, END, DIVERGED = 0, 1, 2


def run_stepped(
    engine: Engine,
    program: Program,
    body: BodyArrays,
    span: Span,
    hold_root: bool,
    record: tuple[npt.NDArray[Any], ...],
) -> None:
    """Fills `record`, the arrays of `Rollouts`; see `control/closed_loop.py` for the rest.

    Args:
        span: what is simulated.
        hold_root: whether the loaded hips hold the root.
    """
    qpos_out, position_out, orientation_out, load_out, state_out, torque_out, final_out, diverged_out = record
    starts, begin, end_step, stride, stop_at_state, pushes, belt, gravity = span
    masses = masses_of(laden(engine.character, engine.environment.loads))
    velocity = np.zeros(len(body.lower))
    first_frame = -(-begin // stride)
    for p, start in enumerate(starts):
        memory = start[-MEMORY_SIZE:].copy()
        engine.set_state_vector(start[:-MEMORY_SIZE])
        while True:
            vector, step = engine.state_vector(), int(memory[STEP])
            what = _think(program, p, memory, body, masses, belt, vector, end_step, stop_at_state, hold_root, velocity)
            row = step // stride - first_frame
            if what != DIVERGED and step % stride == 0 and row < qpos_out.shape[1]:
                qpos_out[p, row] = vector[: qpos_out.shape[2]]
                load_out[p, row] = memory[LOAD : LOAD + 2]
                state_out[p, row] = int(memory[STATE])
            if what != GO_ON:
                break
            for segment, force in forces_at(pushes[p], step).items():
                engine.apply_wrench(segment, force)
            if len(gravity):
                engine.set_gravity(gravity[step - begin])
            engine.set_servo(velocity)
            engine.step()
            if torque_out.shape[1] > 0:
                torque_out[p, step - begin] = engine.servo_torques()
            contacts = engine.foot_contacts()
            memory[LOAD : LOAD + 2] = contacts.load
            memory[PRESSURE : PRESSURE + 6] = contacts.centre_of_pressure.ravel()
            memory[STEP] += 1.0
        diverged_out[p] = what == DIVERGED
        final_out[p] = np.concatenate([vector, memory])
    frames = segment_frames(engine.character, qpos_out[..., :3], qpos_out[..., 3:7], qpos_out[..., 7:])
    position_out[:], orientation_out[:] = frames


@njit
def _think(program, p, memory, body, masses, belt, vector, end_step, stop_at_state, hold_root, velocity):  # type: ignore[no-untyped-def]
    """One step of the state machine; writes target velocities (J,) to `velocity` and returns whether to go on."""
    n_pos, n_vel = 7 + velocity.shape[0], 6 + velocity.shape[0]
    qpos, qvel = vector[:n_pos], vector[n_pos : n_pos + n_vel]
    for i in range(n_vel):
        if not abs(qvel[i]) < DIVERGED_VELOCITY:
            return DIVERGED
    advance_state_machine(program, p, memory, body)
    if memory[STEP] >= end_step or int(memory[STATE]) == stop_at_state:
        return END
    enter_state(program, p, memory, qpos, qvel)
    com, com_velocity = np.empty(3), np.empty(3)
    centre_of_mass_motion(masses, qpos, qvel, com, com_velocity)
    if belt.shape[0] > 0:
        com_velocity = velocity_on_belt(belt, memory, com_velocity, body.time_step_s)
    target_velocities(program, p, memory, body, qpos, qvel, com, com_velocity, hold_root, velocity)
    return GO_ON
