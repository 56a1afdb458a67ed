"""What every engine owes with PD servos: Liu's torque law, bounds, nothing from outside, exact snapshots."""

from __future__ import annotations

import numpy as np
import pytest
from subjects import Subject, momenta, random_angles
from test_engine_contract import GRAVITY, HIGH, at_rest, same, tumbling

from mocap2ctrl.character.model import Character
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S, Engine
from mocap2ctrl.simulation.pd_gains import PdGains, pd_gains
from mocap2ctrl.types import Array, SimState


@pytest.fixture(scope="module")
def pd_engine(subject: Subject, character: Character) -> Engine:
    return subject.make(character, servo="pd")


@pytest.fixture(scope="module")
def plain_engine_5ms(subject: Subject, character: Character) -> Engine:
    return subject.make(character, servo="none", time_step_s=PD_TIME_STEP_S)


@pytest.fixture(scope="module")
def gains(character: Character) -> PdGains:
    return pd_gains(character)


def hold(engine: Engine, targets: Array, gains: PdGains) -> None:
    engine.set_pd(targets, gains.stiffness, gains.damping)


def test_steps_are_liu_s_unless_told_otherwise(pd_engine: Engine):
    assert pd_engine.time_step_s == 0.005


def test_torque_is_the_law_with_the_velocity_after_the_step(
    subject: Subject, pd_engine: Engine, character: Character, gains: PdGains
):
    rng = np.random.default_rng(0)
    target = random_angles(character, rng, 0.3)
    pd_engine.reset(at_rest(target + 0.02 * rng.normal(size=len(target))))
    hold(pd_engine, target, gains)
    for _ in range(40):
        before = pd_engine.state().pose.angles
        pd_engine.step()
        after = pd_engine.state().joint_velocities
        expected = gains.stiffness * (target - before) - gains.damping * after
        np.testing.assert_allclose(pd_engine.servo_torques(), expected, rtol=subject.pd_law, atol=subject.pd_law)
        assert np.max(np.abs(expected)) > 0.05
    # the motion that the law makes: far above its own inertia, damping and spring alone decide, exp(-t k_p / k_d)
    heavy = [character.hinge_names.index(n) for n in ("left_foot.dorsiflexion", "left_forearm.flexion")]
    pd_engine.reset(at_rest(np.where(np.isin(np.arange(len(target)), heavy), 0.2, 0.0)))
    hold(pd_engine, np.zeros(len(target)), gains)
    for _ in range(20):
        pd_engine.step()
    np.testing.assert_allclose(pd_engine.state().pose.angles[heavy], 0.2 * np.exp(-0.1 * 10.0), rtol=0.1)


def test_what_the_servo_asks_is_within_its_bounds(subject: Subject, character: Character):
    # Implicit damping comes on top: at most damping times the change of velocity in the step.
    gains = pd_gains(character, "stunts")
    engine = subject.make(character, servo="pd", torque_scale=0.25)
    bounds, saturated, kept = 0.25 * character.torque_bounds, 0, []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        engine.reset(tumbling(character, rng, 1.2))
        for step in range(120):
            if step % 20 == 0:
                target = random_angles(character, rng, 0.6)
            hold(engine, target, gains)
            before = engine.state()
            engine.step()
            change = engine.state().joint_velocities - before.joint_velocities
            asked = engine.servo_torques() + gains.damping * change
            kept.append(np.all(np.abs(asked) <= bounds * (1.0 + subject.pd_law) + 10 * subject.pd_law))
            wanted = gains.stiffness * (target - before.pose.angles) - gains.damping * before.joint_velocities
            saturated += np.count_nonzero(np.abs(wanted) > bounds)
    assert np.mean(kept) >= subject.pd_share
    assert saturated > 100  # the targets were violent enough


def test_pd_servos_leave_the_momentum_in_flight_alone(subject: Subject, character: Character, gains: PdGains):
    # What the integrator adds is of first order in the step and halves with it; a torque from outside would stay.
    drifts = []
    for divisor in (1, 4):
        engine = subject.make(character, servo="pd", time_step_s=PD_TIME_STEP_S / divisor)
        rng = np.random.default_rng(4)
        start = tumbling(character, rng, 50.0)
        engine.reset(start)
        linear, angular, _ = momenta(character, start)
        for step in range(100 * divisor):
            if step % (20 * divisor) == 0:
                hold(engine, random_angles(character, rng, 0.6), gains)
            engine.step()
        end_linear, end_angular, _ = momenta(character, engine.state())
        pull = character.mass_kg * GRAVITY * 0.5
        drifts.append((np.linalg.norm(end_linear - linear - pull), np.linalg.norm(end_angular - angular)))
    assert drifts[0][1] < subject.momentum_rate * np.linalg.norm(angular)
    assert drifts[0][0] < 0.1 * character.mass_kg
    assert np.all(np.array(drifts[1]) < subject.pd_momentum_order * np.array(drifts[0]))


@pytest.mark.parametrize(("scale", "reproduced"), [(1.0, True), (0.98, False)])
def test_recorded_torques_reproduce_the_motion_in_a_plain_model(
    subject: Subject,
    pd_engine: Engine,
    plain_engine_5ms: Engine,
    standing: SimState,
    gains: PdGains,
    angles_of,
    scale: float,
    reproduced: bool,
):
    # The plain model has no servo, so what it repeats, the joints alone did: half a second on the ground, one leg lifted.
    target = angles_of(left_thigh__flexion=40, left_shank__flexion=60, right_foot__dorsiflexion=3)
    pd_engine.reset(standing)
    hold(pd_engine, target, gains)
    positions, torques, loads = [], [], []
    for _ in range(100):
        positions.append(pd_engine.segment_frames()[0])
        pd_engine.step()
        torques.append(pd_engine.servo_torques())
        loads.append(pd_engine.foot_contacts().load)
    plain_engine_5ms.reset(standing)
    errors = []
    for position, torque in zip(positions, torques, strict=True):
        errors.append(np.linalg.norm(plain_engine_5ms.segment_frames()[0] - position, axis=1).max())
        plain_engine_5ms.set_torques(scale * torque)
        plain_engine_5ms.step()
    assert np.min(np.sum(loads[1:], axis=1)) > 0.0  # it stood on the ground all the time
    assert np.linalg.norm(positions[-1] - positions[0], axis=1).max() > 0.1
    assert (max(errors) < subject.pd_replay_m) == reproduced
    assert reproduced or max(errors) > 3 * subject.pd_replay_m


def test_snapshots_hold_targets_and_gains(pd_engine: Engine, standing: SimState, gains: PdGains):
    targets = 0.1 * np.random.default_rng(5).normal(size=len(gains.stiffness))
    for target in (targets, None):
        pd_engine.reset(standing)
        pd_engine.set_pd(target, gains.stiffness, gains.damping)
        for _ in range(10):
            pd_engine.step()
        snapshot = pd_engine.snapshot()
        assert pd_engine.foot_contacts().load.sum() > 0.0
        for _ in range(20):
            pd_engine.step()
        reference = pd_engine.state()
        pd_engine.set_pd(-targets, 10.0, 1.0)
        pd_engine.step()
        pd_engine.restore(snapshot)
        for _ in range(20):
            pd_engine.step()
        assert same(pd_engine.state(), reference)


def test_without_targets_joints_are_limp(
    pd_engine: Engine, plain_engine_5ms: Engine, character: Character, gains: PdGains
):
    start = tumbling(character, np.random.default_rng(8), HIGH[2])
    pd_engine.reset(start)
    hold(pd_engine, np.zeros(len(gains.stiffness)), gains)
    pd_engine.step()
    pd_engine.reset(start)  # forgets the servos
    plain_engine_5ms.reset(start)
    for step in range(20):
        if step == 10:
            pd_engine.set_pd(None)
        for engine in (pd_engine, plain_engine_5ms):
            engine.step()
        np.testing.assert_array_equal(pd_engine.servo_torques(), 0.0)
    np.testing.assert_allclose(pd_engine.state().joint_velocities, plain_engine_5ms.state().joint_velocities, atol=1e-9)
