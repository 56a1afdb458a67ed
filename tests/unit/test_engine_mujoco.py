"""What only MuJoCo's own arrays can tell: the root's rows hold contacts alone, each contact is within its friction pyramid."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import run, single_state_program, start_vector
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.control.law import MEMORY_SIZE
from mocap2ctrl.errors import EngineError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.coordinates import coordinates, state_from_coordinates
from mocap2ctrl.simulation.engine import DIVERGED_VELOCITY, TIME_STEP_S
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.types import Pose, SimState

ROOT = 6


@pytest.fixture
def rolling(character: Character) -> SimState:
    """A body that falls on the ground and rolls over it."""
    rng = np.random.default_rng(3)
    pose = Pose([0.0, 0.0, 0.6], rotations.from_rotation_vector([1.2, 0.3, 0.0]), 0.3 * rng.normal(size=35))
    return SimState(pose, [2.0, 0.5, -1.0], [1.0, 2.0, 0.0], rng.normal(size=35))


def steps_with_contact(engine: MujocoEngine, start: SimState, count: int = 90):
    """Yields after each step in which something touches the ground; joints take random targets."""
    rng = np.random.default_rng(4)
    engine.reset(start)
    for step in range(count):
        if step % 12 == 0:
            target = 0.6 * rng.normal(size=35)
        engine.set_servo(12.0 * (target - engine.data.qpos[7:]))
        engine.step()
        if engine.data.ncon:
            yield step


def contact_forces(engine: MujocoEngine) -> np.ndarray:
    """(C, 3) normal and tangential forces of the last step's contacts, N."""
    forces = np.zeros((engine.data.ncon, 6))
    for index in range(engine.data.ncon):
        mujoco.mj_contactForce(engine.model, engine.data, index, forces[index])
    return forces[:, :3]


def test_no_constraint_but_contact_acts_on_the_root(engine: MujocoEngine, rolling: SimState):
    contact_kinds = {
        int(mujoco.mjtConstraint.mjCNSTR_CONTACT_PYRAMIDAL),
        int(mujoco.mjtConstraint.mjCNSTR_CONTACT_FRICTIONLESS),
    }
    seen = 0
    for _ in steps_with_contact(engine, rolling):
        data = engine.data
        jacobian = np.zeros((data.nefc, engine.model.nv))
        if mujoco.mj_isSparse(engine.model):
            mujoco.mju_sparse2dense(jacobian, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
        else:
            jacobian[:] = data.efc_J.reshape(jacobian.shape)
        on_root = np.any(jacobian[:, :ROOT] != 0.0, axis=1)
        assert set(data.efc_type[on_root]) <= contact_kinds
        assert np.all(data.qfrc_applied[:ROOT] == 0.0)
        assert np.all(data.qfrc_passive == 0.0)
        assert np.all(data.qfrc_actuator == 0.0)
        seen += np.count_nonzero(on_root)
    assert seen > 100


def test_every_contact_is_within_its_friction_pyramid(engine: MujocoEngine, rolling: SimState, character: Character):
    sliding = 0
    for _ in steps_with_contact(engine, rolling):
        normal, first, second = contact_forces(engine).T
        tangential = np.abs(first) + np.abs(second)
        assert np.all(normal >= 0.0)
        assert np.all(tangential <= character.friction * normal * (1 + 1e-9) + 1e-9)
        sliding += np.count_nonzero(tangential > 0.99 * character.friction * normal)
    assert sliding > 5  # some contacts were at the limit


def test_foot_contacts_are_the_sum_of_the_contacts(engine: MujocoEngine, standing: SimState, character: Character):
    engine.reset(standing)
    engine.set_servo(np.zeros(35))
    for _ in range(60):
        engine.step()
    owner = {}
    for side in (0, 1):
        foot = character.segment_index(f"{('left', 'right')[side]}_foot") + 1
        owner |= {foot: side, foot + 1: side}  # the toes hang on the foot
    normal = [0.0, 0.0]
    for index, force in enumerate(contact_forces(engine)):
        body = max(engine.model.geom_bodyid[engine.data.contact[index].geom])
        normal[owner[int(body)]] += force[0]
    # Standing, horizontal forces are small, so that the norm is the normal force.
    np.testing.assert_allclose(engine.foot_contacts().load, normal, rtol=1e-3)
    assert abs(engine.foot_contacts().centre_of_pressure[0, 1] - 0.05 * character.height_m) < 0.03
    assert abs(engine.foot_contacts().centre_of_pressure[0, 2]) < 0.005


def test_servo_rows_are_the_joints_own(engine: MujocoEngine, rolling: SimState):
    # qfrc of a friction row acts on its own hinge: what the servo exerts is what the hinge feels, limits and contacts aside.
    engine.reset(SimState(Pose([0, 0, 30.0], [1, 0, 0, 0], np.full(35, 0.02)), [0] * 3, [0] * 3, np.zeros(35)))
    engine.set_servo(np.linspace(-1, 1, 35))
    engine.step()
    np.testing.assert_allclose(engine.data.qfrc_constraint[ROOT:], engine.servo_torques(), rtol=1e-12)
    np.testing.assert_allclose(engine.data.qvel[ROOT:], np.linspace(-1, 1, 35), atol=0.15)


def test_model_has_the_characters_mass_and_limits(engine: MujocoEngine, character: Character):
    assert engine.model.nv == 41
    assert engine.model.body_subtreemass[1] == pytest.approx(character.mass_kg)
    np.testing.assert_allclose(engine.model.jnt_range[1:, 0], character.lower_limits)
    np.testing.assert_allclose(engine.model.jnt_range[1:, 1], character.upper_limits)
    names = [mujoco.mj_id2name(engine.model, mujoco.mjtObj.mjOBJ_JOINT, j) for j in range(1, engine.model.njnt)]
    assert tuple(names) == character.hinge_names


def test_pairs_touch_as_collision_classes_do_to_the_bit(rolling: SimState, character: Character):
    ends = []
    for pairs in (True, False):
        model = mujoco.MjModel.from_xml_string(build_mjcf(character, TIME_STEP_S, "none", pairs=pairs))
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = coordinates(rolling)
        touching = 0
        for _ in range(120):
            mujoco.mj_step(model, data)
            touching = max(touching, data.ncon)
        ends.append(np.concatenate([data.qpos, data.qvel, data.sensordata]))
    assert touching > 6
    np.testing.assert_array_equal(*ends)


def test_coordinates_and_back(rolling: SimState):
    back = state_from_coordinates(*coordinates(rolling))
    np.testing.assert_allclose(back.root_angular_velocity, rolling.root_angular_velocity, atol=1e-14)
    np.testing.assert_array_equal(back.pose.angles, rolling.pose.angles)
    np.testing.assert_array_equal(back.root_velocity, rolling.root_velocity)


@pytest.mark.parametrize("servo", ["velocity", "pd", "none", False])
def test_an_engine_refuses_servos_that_it_was_not_made_with(character: Character, servo):
    engine = MujocoEngine(character, servo=servo)
    calls = {"velocity": lambda: engine.set_servo(np.zeros(35)), "pd": lambda: engine.set_pd(np.zeros(35), 1.0, 0.1)}
    for name, call in calls.items():
        if name != servo:
            with pytest.raises(EngineError, match=f"make it with servo='{name}'"):
                call()


def test_compiled_loop_and_stepping_by_hand_agree_to_the_bit(
    engine: MujocoEngine, rolling: SimState, character: Character
):
    # Without a loaded foot the law is Eq. (5) alone, which can be done from Python.
    start = SimState(
        Pose([0, 0, 30.0], rolling.pose.root_orientation, rolling.pose.angles),
        rolling.root_velocity, rolling.root_angular_velocity, rolling.joint_velocities,
    )  # fmt: skip
    target = np.clip(0.2 * np.random.default_rng(5).normal(size=35), character.lower_limits, character.upper_limits)
    rollouts = run(engine, single_state_program([1, 0, 0, 0], target, 0.1), start_vector(start), 60)
    engine.reset(start)
    for step in range(60):
        np.testing.assert_array_equal(engine.data.qpos, rollouts.qpos[0, step])
        engine.set_servo(-0.1 * (engine.data.qpos[7:] - target) / TIME_STEP_S)
        engine.step()


def test_experiments_leave_no_trace_in_the_engine(engine: MujocoEngine, character: Character, stepping: Controller):
    program, start = compile_program([stepping], character, TIME_STEP_S), start_vector(stepping.start)
    before = run(engine, program, start, 60)
    for mode in (1, 2, 3):
        run(engine, program, start, 60, root_mode=mode)
    engine.reset(stepping.start)
    engine.set_torques(np.ones(35))
    engine.apply_wrench(3, [50.0, 0, 0])
    engine.step()
    engine.set_servo(None)
    np.testing.assert_array_equal(run(engine, program, start, 60).qpos, before.qpos)


def test_velocity_limit_of_divergence(engine: MujocoEngine, standing: SimState):
    program = single_state_program([1, 0, 0, 0], np.zeros(35), 0.1)
    for share, diverged in ((0.99, False), (1.01, True)):
        velocities = np.zeros(35)
        velocities[14] = share * DIVERGED_VELOCITY
        fast = SimState(standing.pose, np.zeros(3), np.zeros(3), velocities)
        assert run(engine, program, start_vector(fast), 0).diverged[0] == diverged


def test_start_vectors_are_all_zero_but_the_state(standing: SimState):
    vector = start_vector(standing)
    assert len(vector) == 42 + 41 + 41 + MEMORY_SIZE
    np.testing.assert_array_equal(vector[42:], 0.0)
