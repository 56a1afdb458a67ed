"""What every engine owes: mechanics against closed forms, servos within their bounds, exact snapshots, no invented torque."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from subjects import Subject, momenta, random_angles

from mocap2ctrl.character.kinematics import centre_of_mass, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import step_alpha
from mocap2ctrl.errors import EngineError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.choose import available_engines, make_engine
from mocap2ctrl.simulation.engine import TIME_STEP_S, Engine, load_threshold_n
from mocap2ctrl.types import Array, Pose, SimState

GRAVITY = np.array([0.0, 0.0, -9.81])
ICE = 0.2
HIGH = np.array([0.0, 0.0, 50.0])


def at_rest(angles: Array, position: Array = HIGH) -> SimState:
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    return SimState(Pose(position, upright, angles), np.zeros(3), np.zeros(3), np.zeros(len(angles)))


def tumbling(character: Character, rng: np.random.Generator, height: float) -> SimState:
    orientation = rotations.normalise(rng.normal(size=4))
    pose = Pose(np.array([0.0, 0.0, height]), orientation, random_angles(character, rng, 0.6))
    return SimState(pose, rng.normal(size=3), rng.normal(size=3), rng.normal(size=len(pose.angles)))


def servo_toward(engine: Engine, target: Array, alpha: float) -> None:
    """Sets the servos by Eq. (5), with alpha stated for 1/120 s."""
    rate = float(step_alpha(np.array(alpha), engine.time_step_s)) / engine.time_step_s
    engine.set_servo(rate * (target - engine.state().pose.angles))


def same(a: SimState, b: SimState) -> bool:
    """Whether two states agree to the bit."""
    pairs = (
        (a.pose.root_position, b.pose.root_position),
        (a.pose.root_orientation, b.pose.root_orientation),
        (a.pose.angles, b.pose.angles),
        (a.root_velocity, b.root_velocity),
        (a.root_angular_velocity, b.root_angular_velocity),
        (a.joint_velocities, b.joint_velocities),
    )
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("name", available_engines())
def test_engine_is_made_by_name_with_scaled_bounds(name: str, character: Character):
    engine = make_engine(name, character, torque_scale=0.5)
    assert isinstance(engine, Engine)
    assert engine.name == name
    np.testing.assert_array_equal(engine.torque_bounds, 0.5 * character.torque_bounds)


def test_unknown_engine_is_named(character: Character):
    with pytest.raises(EngineError, match="'havok' is not available"):
        make_engine("havok", character)


def test_state_comes_back_from_reset(subject_engine: Engine, character: Character):
    state = tumbling(character, np.random.default_rng(0), 3.0)
    subject_engine.reset(state)
    back = subject_engine.state()
    np.testing.assert_array_equal(back.pose.angles, state.pose.angles)
    np.testing.assert_allclose(back.root_angular_velocity, state.root_angular_velocity, atol=1e-14)
    np.testing.assert_array_equal(back.root_velocity, state.root_velocity)


def test_segment_frames_are_those_of_the_kinematics(subject_engine: Engine, character: Character):
    state = tumbling(character, np.random.default_rng(1), 3.0)
    subject_engine.reset(state)
    positions, orientations = subject_engine.segment_frames()
    pose = state.pose
    wanted, turned = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    np.testing.assert_allclose(positions, wanted, atol=1e-12)
    np.testing.assert_allclose(rotations.to_matrix(orientations), rotations.to_matrix(turned), atol=1e-12)


@pytest.mark.parametrize("held", [True, False])
def test_free_fall_is_the_closed_form(subject: Subject, subject_engine: Engine, held: bool, character: Character):
    # Semi-implicit Euler: v_n = v_0 + g n h, x_n = x_0 + v_0 n h + g h^2 n (n + 1) / 2.
    start = at_rest(np.zeros(len(character.hinges)))
    velocity = np.array([1.0, -2.0, 3.0])
    subject_engine.reset(SimState(start.pose, velocity, np.zeros(3), start.joint_velocities))
    subject_engine.set_servo(np.zeros(len(character.hinges)) if held else None)
    steps, h = 120, subject_engine.time_step_s
    for _ in range(steps):
        subject_engine.step()
    end = subject_engine.state()
    expected = HIGH + velocity * steps * h + GRAVITY * h * h * steps * (steps + 1) / 2
    np.testing.assert_allclose(end.pose.root_position, expected, atol=subject.fall_m)
    np.testing.assert_allclose(end.root_velocity, velocity + GRAVITY * steps * h, atol=subject.fall_m)
    np.testing.assert_allclose(end.pose.angles, 0.0, atol=subject.fall_m)
    assert np.all(subject_engine.foot_contacts().load == 0.0)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.2])
def test_joint_error_falls_by_one_minus_alpha(
    subject: Subject, subject_engine: Engine, alpha: float, character: Character
):
    rng = np.random.default_rng(2)
    target = random_angles(character, rng, 0.6)
    start = np.clip(
        target + rng.uniform(-0.3, 0.3, len(target)), character.lower_limits + 0.05, character.upper_limits - 0.05
    )
    subject_engine.reset(at_rest(start))
    error, misses = start - target, []
    for _ in range(40):
        servo_toward(subject_engine, target, alpha)
        subject_engine.step()
        assert np.all(np.abs(subject_engine.servo_torques()) < 0.999 * subject_engine.torque_bounds)
        after = subject_engine.state().pose.angles - target
        misses.append(np.max(np.abs(after - (1.0 - alpha) * error)) / (alpha * np.max(np.abs(error))))
        error = after
    assert misses[0] < 4.0 * subject.servo_share
    assert max(misses[1:]) < subject.servo_share


def test_alpha_is_a_rate_whatever_the_step(subject: Subject, character: Character):
    start = np.zeros(len(character.hinges))
    target = 0.2 * random_angles(character, np.random.default_rng(3), 0.6)
    ends = []
    for divisor in (1, 2, 4):
        engine = subject.make(character, time_step_s=TIME_STEP_S / divisor)
        engine.reset(at_rest(start))
        for _ in range(24 * divisor):
            servo_toward(engine, target, 0.1)
            engine.step()
        ends.append(engine.state().pose.angles)
        np.testing.assert_allclose(ends[-1] - target, 0.9**24 * (start - target), atol=2e-3)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-3)
    assert 0.9**24 * np.max(np.abs(target)) > 0.01  # the decay is still under way: the comparison means something


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_servo_torques_stay_within_their_bounds(subject: Subject, scale: float, character: Character):
    engine = subject.make(character, torque_scale=scale)
    saturated = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        engine.reset(tumbling(character, rng, 1.2))
        for step in range(90):
            if step % 12 == 0:
                target = random_angles(character, rng, 0.6)
            servo_toward(engine, target, 0.2)
            engine.step()
            use = np.abs(engine.servo_torques()) / (scale * character.torque_bounds)
            assert np.max(use) <= 1.0 + subject.torque_excess
            saturated += np.count_nonzero(use > 0.999)
    assert saturated > 100  # the targets were violent enough to reach the bounds


def flailing_drift(subject: Subject, character: Character, time_step_s: float) -> tuple[float, float]:
    """Change of the linear momentum that gravity does not explain, N s, and of the angular momentum, relative."""
    engine = subject.make(character, time_step_s=time_step_s)
    rng = np.random.default_rng(4)
    start = tumbling(character, rng, 50.0)
    engine.reset(start)
    linear, angular, _ = momenta(character, start)
    steps = round(0.5 / time_step_s)
    for step in range(steps):
        if step % round(0.1 / time_step_s) == 0:
            target = random_angles(character, rng, 0.6)
        servo_toward(engine, target, 0.05)
        engine.step()
    end_linear, end_angular, _ = momenta(character, engine.state())
    pull = character.mass_kg * GRAVITY * steps * time_step_s
    drift = np.linalg.norm(end_angular - angular) / np.linalg.norm(angular)
    return float(np.linalg.norm(end_linear - linear - pull)), float(drift)


def test_servos_leave_the_momentum_in_flight_alone(subject: Subject, character: Character):
    # Torques inside the body cannot change its momentum. What the integrator adds is of first order in the step, so it
    # halves with the step; a torque from outside would stay.
    coarse = np.array(flailing_drift(subject, character, TIME_STEP_S))
    fine = np.array(flailing_drift(subject, character, TIME_STEP_S / 4))
    assert coarse[1] < subject.momentum_rate
    assert coarse[0] < 0.1 * character.mass_kg
    assert np.all(fine < subject.momentum_order * coarse)


def test_only_the_ground_changes_the_angular_momentum(subject: Subject, character: Character, angles_of):
    # On one foot: dL/dt about the centre of mass is the moment of the ground's force at the centre of pressure. The moment
    # about the vertical also has friction's couple, which a centre of pressure does not tell, so x and y are compared.
    engine = subject.make(character, time_step_s=TIME_STEP_S / 4)
    h, threshold = engine.time_step_s, load_threshold_n(character)
    base = angles_of(right_thigh__flexion=30, right_shank__flexion=50)
    swing = angles_of(abdomen__flexion=12, left_upper_arm__abduction=12)
    rest = at_rest(base, character.segments[0].offset)
    engine.reset(SimState(rest.pose, np.array([0.2, 0.0, 0.0]), np.zeros(3), rest.joint_velocities))
    changes, moments, forces = [], [], []
    before = momenta(character, engine.state())
    for step in range(round(0.3 / h)):
        servo_toward(engine, base + np.sin(6.0 * step * h) * swing, 0.1)
        engine.step()
        after = momenta(character, engine.state())
        contact = engine.foot_contacts()
        force = (after[0] - before[0]) / h - character.mass_kg * GRAVITY
        if contact.load[0] > threshold and contact.load[1] == 0.0:
            changes.append((after[1] - before[1])[:2] / h)
            moments.append(np.cross(contact.centre_of_pressure[0] - before[2], force)[:2])
            forces.append(np.linalg.norm(force) - contact.load[0])
        before = after
    error = np.sqrt(np.mean((np.array(changes) - np.array(moments)) ** 2))
    size = np.sqrt(np.mean(np.array(moments) ** 2))
    assert len(changes) > 60
    assert size > 10.0  # N m: there was something to balance
    assert error < 0.02 * size
    assert np.max(np.abs(forces)) < 0.01 * character.mass_kg * 9.81


def test_standing_feet_carry_the_body_weight(subject_engine: Engine, standing: SimState, character: Character):
    subject_engine.reset(standing)
    loads = []
    for _ in range(240):
        servo_toward(subject_engine, standing.pose.angles, 0.2)
        subject_engine.step()
        loads.append(subject_engine.foot_contacts().load)
    weight = 9.81 * character.mass_kg
    late = np.array(loads[120:])
    np.testing.assert_allclose(late.sum(axis=1), weight, rtol=0.01)
    np.testing.assert_allclose(late, weight / 2, rtol=0.05)
    com = centre_of_mass(character, *subject_engine.segment_frames())
    pressure = subject_engine.foot_contacts().centre_of_pressure.mean(axis=0)
    assert np.linalg.norm((pressure - com)[:2]) < 0.01


def test_friction_stays_in_its_cone_and_slows_a_slide(subject: Subject, character: Character):
    # The pyramid's corner reaches sqrt(2) mu. The body slides on its feet, on ice, with its joints held, so that the
    # momentum gives the net ground force.
    engine = subject.make(replace(character, friction=ICE))
    rest = at_rest(np.zeros(len(character.hinges)), character.segments[0].offset)
    slide = np.array([2.0, 1.0, 0.0])
    engine.reset(SimState(rest.pose, slide, np.zeros(3), rest.joint_velocities))
    before, h = momenta(character, engine.state())[0], engine.time_step_s
    ratios = []
    for _ in range(60):
        engine.set_servo(np.zeros(len(character.hinges)))
        engine.step()
        after = momenta(character, engine.state())[0]
        force = (after - before) / h - character.mass_kg * GRAVITY
        if force[2] > 0.05 * 9.81 * character.mass_kg:
            ratios.append(np.hypot(force[0], force[1]) / force[2])
        before = after
    assert len(ratios) > 5
    assert max(ratios) <= np.sqrt(2.0) * ICE * 1.03
    assert max(ratios) > 0.9 * ICE  # it did slide: friction was at its limit


def test_snapshot_then_steps_equals_the_same_steps(subject_engine: Engine, standing: SimState, character: Character):
    rng = np.random.default_rng(5)
    targets = [0.1 * random_angles(character, rng, 0.3) for _ in range(60)]

    def go(first: int) -> SimState:
        for target in targets[first:]:
            servo_toward(subject_engine, target, 0.1)
            subject_engine.step()
        return subject_engine.state()

    subject_engine.reset(standing)
    for target in targets[:20]:
        servo_toward(subject_engine, target, 0.1)
        subject_engine.step()
    snapshot, contacts = subject_engine.snapshot(), subject_engine.foot_contacts()
    assert contacts.load.sum() > 0.0  # contacts and warm starts are part of it
    reference = go(20)
    subject_engine.reset(tumbling(character, rng, 1.0))  # other work in between
    for _ in range(30):
        subject_engine.step()
    subject_engine.restore(snapshot)
    restored = subject_engine.foot_contacts()
    np.testing.assert_array_equal(restored.load, contacts.load)
    np.testing.assert_array_equal(restored.centre_of_pressure, contacts.centre_of_pressure)
    assert same(go(20), reference)


def test_snapshot_holds_servo_targets_and_torques(subject_engine: Engine, standing: SimState, character: Character):
    size = len(character.hinges)
    for servo in (np.full(size, 0.3), None):
        subject_engine.reset(standing)
        subject_engine.set_servo(servo)
        subject_engine.set_torques(np.linspace(-3.0, 3.0, size))
        subject_engine.step()
        snapshot = subject_engine.snapshot()
        for _ in range(10):
            subject_engine.step()
        reference = subject_engine.state()
        subject_engine.set_servo(np.full(size, -1.0))
        subject_engine.set_torques(np.zeros(size))
        subject_engine.step()
        subject_engine.restore(snapshot)
        for _ in range(10):
            subject_engine.step()
        assert same(subject_engine.state(), reference)


def test_a_reset_engine_is_a_new_engine(subject: Subject, subject_engine: Engine, character: Character):
    start = tumbling(character, np.random.default_rng(6), 1.0)
    fresh = subject.make(character)
    subject_engine.reset(tumbling(character, np.random.default_rng(7), 0.9))
    subject_engine.set_servo(np.ones(len(character.hinges)))
    subject_engine.set_torques(np.ones(len(character.hinges)))
    subject_engine.apply_wrench(0, (100.0, 0.0, 0.0))
    subject_engine.step()
    subject_engine.apply_wrench(0, (100.0, 0.0, 0.0))
    subject_engine.reset(start)
    fresh.reset(start)
    np.testing.assert_array_equal(subject_engine.servo_torques(), 0.0)
    np.testing.assert_array_equal(subject_engine.foot_contacts().load, 0.0)
    for _ in range(60):
        subject_engine.step()
        fresh.step()
    assert same(subject_engine.state(), fresh.state())


def test_without_servo_targets_joints_are_limp(subject_engine: Engine, plain_engine: Engine, character: Character):
    start = tumbling(character, np.random.default_rng(8), 50.0)
    for engine in (subject_engine, plain_engine):
        engine.reset(start)
        for _ in range(20):
            engine.step()
    np.testing.assert_allclose(
        subject_engine.state().joint_velocities, plain_engine.state().joint_velocities, atol=1e-9
    )
    assert np.max(np.abs(plain_engine.state().joint_velocities - start.joint_velocities)) > 0.5


def test_a_wrench_pushes_for_one_step(subject_engine: Engine, character: Character):
    start = at_rest(np.zeros(len(character.hinges)))
    subject_engine.reset(start)
    force, torque = np.array([60.0, -30.0, 90.0]), np.array([5.0, 10.0, -15.0])
    before = momenta(character, subject_engine.state())
    chest = character.segment_index("chest")
    subject_engine.set_servo(np.zeros(len(character.hinges)))
    subject_engine.apply_wrench(chest, force, torque)
    subject_engine.step()
    h = subject_engine.time_step_s
    after = momenta(character, subject_engine.state())
    arm = start.pose.root_position + np.array([0.0, 0.0, 0.142 * character.height_m])
    arm = arm + character.segments[chest].com - before[2]
    np.testing.assert_allclose(after[0] - before[0], (force + character.mass_kg * GRAVITY) * h, atol=0.01)
    np.testing.assert_allclose(after[1] - before[1], (torque + np.cross(arm, force)) * h, atol=0.01)
    subject_engine.step()
    third = momenta(character, subject_engine.state())
    np.testing.assert_allclose(third[0] - after[0], character.mass_kg * GRAVITY * h, atol=0.01)


def test_absurd_velocities_neither_raise_nor_leave_a_log(
    subject_engine: Engine, standing: SimState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for speed in (1e6, 1e12):
        fast = SimState(standing.pose, np.array([speed, 0, 0]), np.full(3, speed), standing.joint_velocities + speed)
        subject_engine.reset(fast)
        for _ in range(5):
            subject_engine.step()
    assert list(tmp_path.iterdir()) == []
