"""The closed loop's book-keeping: frames, pushes, stops, and starts that stand at different steps."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import run, single_state_program, start_step, start_vector
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.control.law import Program
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Pose, SimState


@pytest.fixture
def flying(character: Character) -> SimState:
    pose = Pose([0.0, 0.0, 50.0], [1, 0, 0, 0], np.zeros(len(character.hinges)))
    return SimState(pose, np.zeros(3), np.zeros(3), np.zeros(len(character.hinges)))


@pytest.fixture(scope="module")
def still(character: Character) -> Program:
    return single_state_program([1, 0, 0, 0], np.zeros(len(character.hinges)), 0.1)


def test_frames_count_from_the_beginning(engine: MujocoEngine, still: Program, standing: SimState):
    rollouts = run(engine, still, start_vector(standing), 24, stride=4)
    assert rollouts.first_frame == 0
    assert rollouts.qpos.shape == (1, 7, 42)
    assert rollouts.torques.shape == (1, 0, 35)
    np.testing.assert_array_equal(rollouts.qpos[0, 0, :3], standing.pose.root_position)
    later = run(engine, still, rollouts.final, 37, stride=4)
    assert later.first_frame == 6
    assert later.qpos.shape[1] == 4  # frames 6 to 9
    assert start_step(later.final[0]) == 37
    np.testing.assert_array_equal(later.qpos[0, 0], rollouts.qpos[0, 6])


def test_recorded_frames_are_the_kinematics_of_recorded_coordinates(
    engine: MujocoEngine, character: Character, stepping: Controller
):
    rollouts = run(engine, compile_program([stepping], character, TIME_STEP_S), start_vector(stepping.start), 60)
    q = rollouts.qpos[0]
    positions, orientations = segment_frames(character, q[:, :3], q[:, 3:7], q[:, 7:])
    np.testing.assert_allclose(rollouts.positions[0], positions, atol=1e-12)
    same = np.abs(np.sum(rollouts.orientations[0] * orientations, axis=-1))
    np.testing.assert_allclose(same, 1.0, atol=1e-12)


def test_a_run_of_no_steps_gives_back_its_start(engine: MujocoEngine, still: Program, standing: SimState):
    rollouts = run(engine, still, start_vector(standing), 0)
    assert rollouts.qpos.shape[1] == 1
    assert start_step(rollouts.final[0]) == 0
    np.testing.assert_array_equal(rollouts.final[0][:83], start_vector(standing)[:83])
    past = run(engine, still, run(engine, still, start_vector(standing), 10).final, 5)
    assert past.qpos.shape[1] == 0
    assert start_step(past.final[0]) == 10


def test_a_push_gives_its_impulse_in_its_time(
    engine: MujocoEngine, character: Character, still: Program, flying: SimState
):
    force = np.array([40.0, -20.0, 0.0])
    push = Push(0, force, 0.1, 0.2)
    rollouts = run(engine, still, start_vector(flying), 48, pushes=(push,))
    com = np.einsum("s,fsk->fk", [s.mass for s in character.segments], _coms(character, rollouts)) / character.mass_kg
    velocity = np.diff(com, axis=0) / TIME_STEP_S
    np.testing.assert_allclose(velocity[:12, :2], 0.0, atol=1e-9)
    expected = force[:2] * 0.2 / character.mass_kg
    np.testing.assert_allclose(velocity[36:, :2], np.tile(expected, (12, 1)), rtol=0.01)
    halfway = velocity[23, :2]  # after 12 of its 24 steps
    np.testing.assert_allclose(halfway, 0.5 * expected, rtol=0.01)
    two = run(engine, still, start_vector(flying), 48, pushes=(Push(0, 0.5 * force, 0.1, 0.2),) * 2)
    assert np.max(np.abs(two.qpos - rollouts.qpos)) < 1e-12  # pushes that overlap add up


def _coms(character: Character, rollouts) -> np.ndarray:
    from mocap2ctrl.character.kinematics import points_world

    local = np.array([s.com for s in character.segments])
    return points_world(rollouts.positions[0], rollouts.orientations[0], np.arange(len(local)), local)


def test_stop_at_a_state_leaves_the_rest_unrecorded(engine: MujocoEngine, character: Character, stepping: Controller):
    program = compile_program([stepping], character, TIME_STEP_S)
    rollouts = run(engine, program, start_vector(stepping.start), 100, stop_at_state=1)
    assert start_step(rollouts.final[0]) == 30
    assert rollouts.state[0, 30] == 1
    assert np.all(np.isfinite(rollouts.qpos[0, :31]))
    assert np.all(np.isnan(rollouts.qpos[0, 31:]))
    assert not rollouts.diverged[0]


def test_starts_may_stand_at_different_steps(engine: MujocoEngine, still: Program, standing: SimState):
    whole = run(engine, still, start_vector(standing), 40, record_torques=True)
    late = run(engine, still, start_vector(standing), 16)
    pair = still._replace(
        **{n: np.repeat(getattr(still, n), 2, axis=0) for n in ("root_target", "angle_target", "root_alpha", "alpha")},
        balance=np.repeat(still.balance, 2, axis=0),
        exit_time_s=np.repeat(still.exit_time_s, 2, axis=0),
    )
    both = run(engine, pair, np.stack([start_vector(standing), late.final[0]]), 40, record_torques=True)
    np.testing.assert_array_equal(both.qpos[0], whole.qpos[0])
    np.testing.assert_array_equal(both.qpos[1, 16:], whole.qpos[0, 16:])
    assert np.all(np.isnan(both.qpos[1, :16]))
    np.testing.assert_array_equal(both.torques[1, 16:], whole.torques[0, 16:])


def test_inputs_are_not_changed(engine: MujocoEngine, character: Character, stepping: Controller):
    program = compile_program([stepping], character, TIME_STEP_S)
    start = start_vector(stepping.start)
    arrays = [*program[:-1], *program.feedback]
    copies = [np.array(a) for a in arrays], start.copy()
    run(engine, program, start, 40)
    for a, b in zip(arrays, copies[0], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(start, copies[1])
