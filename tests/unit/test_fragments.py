"""PD servos against closed forms, their gains, and fragments: bits that neither threads, nor company, nor cuts change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import mujoco
import numpy as np
import pytest

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation import mujoco_pd
from mocap2ctrl.simulation.coordinates import state_from_coordinates
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.simulation.mujoco_fragments import DIVERGED_VELOCITY, PdRollouts
from mocap2ctrl.simulation.pd_gains import GAIN_SETS, PdGains, hinge_inertias, pd_gains
from mocap2ctrl.types import Array, SimState

ONE_HINGE = """<mujoco>
  <option timestep="0.005" gravity="0 0 0"><flag eulerdamp="disable" warmstart="disable"/></option>
  <worldbody><body><joint name="hinge" type="hinge" axis="0 1 0" armature="0.01"/>
    <inertial pos="0 0 0.2" mass="1" diaginertia="0.05 0.05 0.05"/></body></worldbody>
  <actuator><general joint="hinge" gaintype="fixed" biastype="affine" gainprm="0" biasprm="0 0 0"
    forcelimited="true" forcerange="-1 1"/></actuator>
</mujoco>"""
INERTIA, STEP_S = 0.1, 0.005


def swing(stiffness: float, damping: float, steps: int, bound: float = 1e9) -> Array:
    """(N,) angles of one hinge that is let go at 0.5 rad, at rest."""
    model = mujoco.MjModel.from_xml_string(ONE_HINGE)
    data = mujoco.MjData(model)
    mujoco_pd.set_bounds(model, np.array([bound]))
    mujoco_pd.set_gains(model, 0.01, [stiffness], [damping])
    data.qpos[0] = 0.5
    angles = []
    for _ in range(steps):
        mujoco.mj_step(model, data)
        angles.append(data.qpos[0])
    return np.array(angles)


@pytest.mark.parametrize(
    ("stiffness", "damping"), [(40.0, 0.4), (500.0, 50.0), (500.0, 0.0), (0.0, 5.0), (20.0, 500.0)]
)
def test_one_hinge_is_the_implicit_difference_equation(stiffness: float, damping: float):
    # I (v' - v) / h = -k q - d v', q' = q + h v': a linear map, whose powers are the motion.
    shrink = 1.0 / (1.0 + STEP_S * damping / INERTIA)
    velocity = np.array([-STEP_S * stiffness / INERTIA * shrink, shrink])
    step = np.array([np.array([1.0, 0.0]) + STEP_S * velocity, velocity])
    expected, state = [], np.array([0.5, 0.0])
    for _ in range(200):
        state = step @ state
        expected.append(state[0])
    np.testing.assert_allclose(swing(stiffness, damping, 200), expected, atol=1e-12)


def test_one_hinge_has_the_period_and_the_decay_of_the_differential_equation():
    # The method is of first order: its damping ratio is off by about half the square of the frequency times the step.
    stiffness, damping = 40.0, 0.4
    angles = swing(stiffness, damping, 600)
    decay, frequency = damping / (2 * INERTIA), np.sqrt(stiffness / INERTIA)
    period = 2 * np.pi / np.sqrt(frequency**2 - decay**2)
    downward = np.flatnonzero((angles[:-1] > 0) & (angles[1:] <= 0))
    crossing = (downward + 1 + angles[downward] / (angles[downward] - angles[downward + 1])) * STEP_S
    np.testing.assert_allclose(np.diff(crossing), period, rtol=0.01)
    peaks = np.array([angles[a:b].max() for a, b in pairwise(downward)])
    np.testing.assert_allclose(np.log(peaks[:-1] / peaks[1:]), decay * period, rtol=0.05)


def test_damping_far_beyond_what_an_explicit_step_stands_is_stable():
    # Explicitly, 500 N m s/rad on 0.1 kg m^2 would multiply the velocity by -24 a step.
    angles = swing(20.0, 500.0, 2000)
    assert np.all(np.diff(angles) < 0.0)
    assert 0.0 < angles[-1] < 0.5


def test_a_bounded_hinge_accelerates_by_its_bound():
    angles = swing(500.0, 0.0, 5, bound=2.0)
    steps = np.arange(1, 6)
    np.testing.assert_allclose(angles, 0.5 - 2.0 / INERTIA * STEP_S**2 * steps * (steps + 1) / 2, atol=1e-12)


# Gains.


def test_hinge_inertias_are_those_of_the_mass_matrix(character: Character, standing: SimState):
    engine = MujocoEngine(character, servo="none")
    engine.reset(standing)
    mujoco.mj_forward(engine.model, engine.data)
    unit = np.zeros((35, 41))
    unit[:, 6:] = np.eye(35)
    product = np.zeros_like(unit)
    for row, vector in zip(product, unit, strict=True):
        mujoco.mj_mulM(engine.model, engine.data, row, vector)
    np.testing.assert_allclose(hinge_inertias(character), np.diag(product[:, 6:]), rtol=1e-9)


@pytest.mark.parametrize("name", GAIN_SETS)
def test_the_paper_s_body_has_the_paper_s_gains(character: Character, name: str):
    body = character.scaled(height_m=1.7, mass_kg=62.0)
    gains = pd_gains(body, name)
    by_name = dict(zip(body.hinge_names, zip(gains.stiffness, gains.damping, strict=True), strict=True))
    strong = name == "stunts"
    assert by_name["abdomen.flexion"] == pytest.approx((2000, 100) if strong else (500, 50))
    assert by_name["left_thigh.flexion"] == pytest.approx((1000, 50) if strong else (500, 50))
    assert by_name["right_forearm.flexion"] == pytest.approx((500, 50))


@pytest.mark.parametrize("name", GAIN_SETS)
def test_gains_scale_with_the_body_and_stay_below_what_a_step_resolves(name: str):
    for height in (1.2, 1.75, 2.2):
        body = load_character(height_m=height)
        gains = pd_gains(body, name)
        assert np.all(gains.stiffness * STEP_S**2 <= hinge_inertias(body) * (1 + 1e-12))
        thigh = body.hinge_names.index("left_thigh.flexion")
        size = body.mass_kg * height**2 / (62.0 * 1.7**2)
        assert gains.stiffness[thigh] == pytest.approx(size * (1000 if name == "stunts" else 500))
    light = [i for i, n in enumerate(body.hinge_names) if "toes" in n]
    assert np.all(gains.stiffness[light] < 0.9 * size * 500)


def test_unknown_gains_are_refused(character: Character):
    with pytest.raises(EngineError, match=r"'strong'; choose one of locomotion, stunts"):
        pd_gains(character, "strong")


# Fragments.


@pytest.fixture(scope="module")
def rollouts(character: Character) -> Iterator[PdRollouts]:
    with PdRollouts(character) as pool:
        yield pool


@pytest.fixture(scope="module")
def samples(standing: SimState, rollouts: PdRollouts) -> tuple[Array, Array]:
    """Starts (24, K) and targets (24, 4, J): on the ground, falling, and far above it."""
    rng = np.random.default_rng(1)
    start = rollouts.snapshot(standing)
    starts = np.repeat(start[None], 24, axis=0)
    starts[8:, 3] += rng.uniform(-0.01, 3.0, 16)
    starts[:, -41:] += rng.normal(0.0, 0.5, (24, 41))
    return starts, rng.normal(0.0, 0.3, (24, 4, 35))


def test_fragments_are_the_engine_s_steps(rollouts: PdRollouts, character: Character, samples: tuple[Array, Array]):
    starts, targets = samples
    result = rollouts.run(starts, targets, 5, stride=2)
    engine, gains = MujocoEngine(character, servo="pd"), pd_gains(character)
    for p in (0, 9, 23):
        engine.reset(rollouts.state(starts[p]))
        for step in range(20):
            engine.set_pd(targets[p, step // 5], gains.stiffness, gains.damping)
            engine.step()
            if step % 2 == 1:
                np.testing.assert_allclose(result.qpos[p, step // 2], engine.data.qpos, atol=1e-9)
        np.testing.assert_allclose(
            result.final[p], np.concatenate([[0.1], engine.data.qpos, engine.data.qvel]), atol=1e-8
        )
    assert result.qpos.shape == (24, 10, 42)
    assert not result.diverged.any()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_company_and_threads_change_no_bit(
    rollouts: PdRollouts, character: Character, samples: tuple[Array, Array], threads: int
):
    starts, targets = samples
    alone = [rollouts.run(s, t[None], 5) for s, t in zip(starts, targets, strict=True)]
    with PdRollouts(character, threads=threads) as pool:
        for order in (np.arange(24), np.arange(24)[::-1]):
            together = pool.run(starts[order], targets[order], 5)
            for row, p in enumerate(order):
                np.testing.assert_array_equal(together.qpos[row], alone[p].qpos[0])
                np.testing.assert_array_equal(together.final[row], alone[p].final[0])


def test_a_simulation_may_be_cut_between_any_targets(rollouts: PdRollouts, samples: tuple[Array, Array]):
    starts, targets = samples
    whole = rollouts.run(starts, targets, 5)
    for cut in (1, 2, 3):
        first = rollouts.run(starts, targets[:, :cut], 5)
        rollouts.run(starts[::-1], targets, 3)  # other work in between
        second = rollouts.run(first.final, targets[:, cut:], 5)
        np.testing.assert_array_equal(np.concatenate([first.qpos, second.qpos], axis=1), whole.qpos)
        np.testing.assert_array_equal(second.final, whole.final)
    back = rollouts.run(rollouts.snapshot(rollouts.state(whole.final[0])), targets[:1])
    np.testing.assert_allclose(back.qpos, rollouts.run(whole.final[0], targets[:1]).qpos, atol=1e-12)


def test_one_start_serves_all(rollouts: PdRollouts, samples: tuple[Array, Array]):
    starts, targets = samples
    shared, spelt_out = rollouts.run(starts[3], targets), rollouts.run(starts[[3] * 24], targets)
    np.testing.assert_array_equal(shared.final, spelt_out.final)


def test_gains_can_be_changed(character: Character, samples: tuple[Array, Array]):
    starts, targets = samples
    limp = PdGains(np.zeros(35), np.zeros(35))
    with PdRollouts(character) as pool, PdRollouts(character, limp) as other:
        before = pool.run(starts, targets)
        pool.set_gains(limp)
        np.testing.assert_array_equal(pool.run(starts, targets).final, other.run(starts, targets).final)
        pool.set_gains(pd_gains(character))
        np.testing.assert_array_equal(pool.run(starts, targets).final, before.final)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_divergence_is_data_and_stays_with_its_sample(
    character: Character, samples: tuple[Array, Array], threads: int
):
    starts, targets = samples
    broken = starts.copy()
    broken[2, 5] = np.nan
    broken[7, -3] = 1e12
    broken[11, -1] = 2 * DIVERGED_VELOCITY
    with PdRollouts(character, threads=threads) as pool:
        good, bad = pool.run(starts, targets, 5), pool.run(broken, targets, 5)
        assert set(np.flatnonzero(bad.diverged)) >= {2, 7}
        whole = np.setdiff1d(np.arange(24), [2, 7, 11])
        np.testing.assert_array_equal(bad.final[whole], good.final[whole])
        assert not bad.diverged[whole].any()
        assert set(np.flatnonzero(pool.run(bad.final, targets, 5).diverged)) >= {2, 7}  # nor is it forgotten
        np.testing.assert_array_equal(pool.run(starts, targets, 5).final, good.final)  # and leaves no trace


def test_a_violent_fall_stays_finite(rollouts: PdRollouts, character: Character):
    rng = np.random.default_rng(2)
    middle, half = (character.upper_limits + s * character.lower_limits for s in (1, -1))
    targets = 0.5 * middle + 0.5 * half * rng.uniform(-1.0, 1.0, (40, 30, 35))
    starts = np.zeros((40, 84))
    starts[:, 3] = 1.5
    starts[:, 4:8] = rng.normal(size=(40, 4))
    starts[:, 4:8] /= np.linalg.norm(starts[:, 4:8], axis=1, keepdims=True)
    starts[:, -41:] = rng.normal(0.0, 2.0, (40, 41))
    for name in GAIN_SETS:
        rollouts.set_gains(pd_gains(character, name))
        result = rollouts.run(starts, targets, 20)
        assert np.count_nonzero(result.diverged) == 0
        assert np.all(np.abs(result.final) < 50.0)
    rollouts.set_gains(pd_gains(character))


@pytest.mark.parametrize(
    ("starts", "targets", "steps", "message"),
    [
        ((84,), (2, 3, 34), 1, r"targets have shape \(2, 3, 34\); expected \(fragments, targets, 35\)"),
        ((84,), (2, 0, 35), 1, "targets have shape"),
        ((3, 84), (2, 3, 35), 1, r"starts have shape \(3, 84\); expected \(2, 84\)"),
        ((83,), (2, 3, 35), 1, "starts have shape"),
        ((84,), (2, 3, 35), 0, "steps_per_target is 0"),
    ],
)
def test_shapes_that_do_not_fit_are_named(rollouts: PdRollouts, starts, targets, steps: int, message: str):
    with pytest.raises(EngineError, match=message):
        rollouts.run(np.zeros(starts), np.zeros(targets), steps)


def test_targets_are_finite(rollouts: PdRollouts):
    with pytest.raises(EngineError, match="targets hold NaN or infinite values"):
        rollouts.run(np.zeros(84), np.full((1, 1, 35), np.nan))


def test_threads_are_counted_from_one(character: Character):
    with pytest.raises(EngineError, match="threads is 0; allowed is 1 or more"):
        PdRollouts(character, threads=0)


def test_a_snapshot_is_the_state(rollouts: PdRollouts, character: Character, standing: SimState):
    rng = np.random.default_rng(9)
    state = state_from_coordinates(np.r_[1, 2, 3, 1, 0, 0, 0, rng.normal(size=35)], rng.normal(size=41))
    back = rollouts.state(rollouts.snapshot(state))
    np.testing.assert_array_equal(back.pose.angles, state.pose.angles)
    np.testing.assert_array_equal(back.joint_velocities, state.joint_velocities)
    np.testing.assert_allclose(back.root_angular_velocity, state.root_angular_velocity, atol=1e-14)
