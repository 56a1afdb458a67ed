"""Guided SAMCON's features, cost and regression: other programs' numbers, invariances, and known answers."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import FeedbackPolicy
from mocap2ctrl.samcon.body import body_of, see
from mocap2ctrl.samcon.cost import TERMS, Cost
from mocap2ctrl.samcon.features import feedback_actions, open_loop_actions, snapshot_features, state_features
from mocap2ctrl.samcon.mirrors import mirrored_actions, mirrored_angles, mirrored_policy, mirrored_states
from mocap2ctrl.samcon.regression import regress
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.types import Array


def random_states(character: Character, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Qpos (N, 42) and qvel (N, 41), upright within half a radian, with headings and places at random."""
    rng = np.random.default_rng(seed)
    lean = rotations.from_rotation_vector(rng.normal(0.0, 0.3, (count, 3)))
    orientation = rotations.multiply(rotations.yaw(rng.uniform(-3.0, 3.0, count)), lean)
    position = rng.normal(0.0, 2.0, (count, 3)) + np.array([0.0, 0.0, 1.0])
    angles = rng.normal(0.0, 0.4, (count, len(character.hinges)))
    return np.concatenate([position, orientation, angles], axis=1), rng.normal(0.0, 2.0, (count, 41))


def snapshots(qpos: Array, qvel: Array) -> Array:
    return np.concatenate([np.zeros((len(qpos), 1)), qpos, qvel], axis=1)


def turned(qpos: Array, qvel: Array, angle: float, shift: Array) -> tuple[Array, Array]:
    """The same states, seen after the world was turned and moved; qvel's root spin is in its own frame."""
    turn = rotations.yaw(angle)
    moved, velocity = qpos.copy(), qvel.copy()
    moved[:, :3] = rotations.rotate(turn, qpos[:, :3]) + shift
    moved[:, 3:7] = rotations.multiply(turn, qpos[:, 3:7])
    velocity[:, :3] = rotations.rotate(turn, qvel[:, :3])
    return moved, velocity


def in_mirror(character: Character, qpos: Array, qvel: Array) -> tuple[Array, Array]:
    """The states seen in the mirror y = 0."""
    index, sign = character.mirror_hinges
    signs = np.array([1, -1, 1, 1, -1, 1, -1], float)
    position = np.concatenate([qpos[:, :7] * signs, sign * qpos[:, 7:][:, index]], axis=1)
    root = qvel[:, :6] * np.array([1, -1, 1, -1, 1, -1], float)
    return position, np.concatenate([root, sign * qvel[:, 6:][:, index]], axis=1)


def test_what_is_seen_is_what_mujoco_computes(character: Character):
    model = mujoco.MjModel.from_xml_string(build_mjcf(character, 0.005, "none"))
    data = mujoco.MjData(model)
    qpos, qvel = random_states(character, 5)
    seen = see(body_of(character), qpos, qvel)
    for n in range(5):
        data.qpos[:], data.qvel[:] = qpos[n], qvel[n]
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        np.testing.assert_allclose(seen.com[n], data.subtree_com[1], atol=1e-10)
        np.testing.assert_allclose(seen.com_velocity[n], data.subtree_linvel[1], atol=1e-10)
        np.testing.assert_allclose(seen.momentum[n], data.subtree_angmom[1], atol=1e-8)
        head = model.body("head").id
        tip = character.segments[character.segment_index("head")].tip
        np.testing.assert_allclose(seen.points[n, 4], data.xpos[head] + data.xmat[head].reshape(3, 3) @ (0.5 * tip))


def test_features_know_neither_place_nor_heading(character: Character):
    body, states = body_of(character), random_states(character, 6)
    here = snapshot_features(body, snapshots(*states))
    there = snapshot_features(body, snapshots(*turned(*states, 2.0, np.array([3.0, -7.0, 0.0]))))
    np.testing.assert_allclose(there, here, atol=1e-9)
    assert here.shape == (6, 18)


def test_features_are_in_the_order_of_the_paper(character: Character):
    qpos = np.zeros((1, 42))
    qpos[0, :3], qpos[0, 3:7] = (5.0, 6.0, 1.2), rotations.from_rotation_vector(np.array([0.0, 0.2, 0.0]))
    qvel = np.zeros((1, 41))
    qvel[0, :3] = (0.7, 0.3, 0.0)
    s = state_features(qpos, see(body_of(character), qpos, qvel))[0]
    np.testing.assert_allclose(s[:3], [0.0, 0.2, 1.2], atol=1e-12)  # q0*, h0
    assert s[3] > 0.01  # c: leaning forward, of a standing body
    np.testing.assert_allclose(s[4:6], [0.0, 1.2], atol=0.2)
    np.testing.assert_allclose(s[6:9], [0.7, 0.3, 0.0], atol=1e-12)  # c'
    assert s[10] > 0.05  # dl, dr: the feet are on either side
    assert s[13] < -0.05
    assert np.all(s[[11, 14]] < -0.5)  # and below
    np.testing.assert_allclose(s[15:], 0.0, atol=1e-9)  # L


def test_features_of_the_mirror_are_the_mirrored_features(character: Character):
    body, states = body_of(character), random_states(character, 6)
    here = snapshot_features(body, snapshots(*states))
    there = snapshot_features(body, snapshots(*in_mirror(character, *states)))
    np.testing.assert_allclose(mirrored_states(here), there, atol=1e-9)
    np.testing.assert_allclose(mirrored_states(there), here, atol=1e-9)


def test_actions_move_waist_hips_and_knees(character: Character):
    actions = feedback_actions(character)
    assert len(actions.names) == 11
    moved = {name for name, used in zip(character.hinge_names, np.any(actions.hinges, axis=0), strict=True) if used}
    assert {name.split(".")[0] for name in moved} == {
        "abdomen", "chest", "left_thigh", "right_thigh", "left_shank", "right_shank",
    }  # fmt: skip
    np.testing.assert_allclose(actions.hinges.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        actions.hinges[0, [character.hinge_names.index(f"{s}.flexion") for s in ("abdomen", "chest")]], 0.5
    )
    assert open_loop_actions(character).names[:11] == actions.names


def test_a_mirrored_action_moves_the_mirrored_hinges(character: Character):
    for actions in (feedback_actions(character), open_loop_actions(character)):
        values = np.random.default_rng(1).normal(size=(4, len(actions.names)))
        np.testing.assert_allclose(
            mirrored_actions(values, actions) @ actions.hinges, mirrored_angles(values @ actions.hinges, character)
        )


def test_a_mirrored_policy_does_the_mirrored_thing(character: Character):
    rng, actions = np.random.default_rng(2), feedback_actions(character)
    policy = FeedbackPolicy(rng.normal(size=(11, 18)), rng.normal(size=11), rng.random(11))
    states, other = rng.normal(size=(5, 18)), mirrored_policy(policy, actions)
    expected = mirrored_actions(states @ policy.gain.T + policy.offset, actions)
    np.testing.assert_allclose(mirrored_states(states) @ other.gain.T + other.offset, expected, atol=1e-12)
    twice = mirrored_policy(other, actions)
    np.testing.assert_array_equal(twice.gain, policy.gain)
    np.testing.assert_array_equal(twice.variance, policy.variance)


def test_regression_finds_the_policy_that_made_the_data():
    rng = np.random.default_rng(3)
    gain, offset, deviation = rng.normal(size=(11, 18)), rng.normal(size=11), rng.uniform(0.01, 0.2, 11)
    states = rng.normal(size=(2000, 18)) + rng.normal(size=18)
    actions = states @ gain.T + offset + deviation * rng.normal(size=(2000, 11))
    found = regress(states, actions)
    np.testing.assert_allclose(found.gain, gain, atol=0.03)
    np.testing.assert_allclose(found.offset, offset, atol=0.05)
    np.testing.assert_allclose(np.sqrt(found.variance), deviation, rtol=0.1)


def test_regression_without_noise_is_exact_and_a_ridge_shrinks():
    rng = np.random.default_rng(4)
    gain, offset = rng.normal(size=(11, 18)), rng.normal(size=11)
    states = rng.normal(size=(100, 18))
    actions = states @ gain.T + offset
    exact = regress(states, actions)
    np.testing.assert_allclose(exact.gain, gain, atol=1e-6)
    assert np.all(exact.variance < 1e-12)
    assert np.linalg.norm(regress(states, actions, 1e9).gain) < 1e-3
    np.testing.assert_allclose(regress(states, actions, 1e9).offset, actions.mean(axis=0), atol=1e-4)


def test_cost_is_zero_at_the_reference_wherever_it_is(character: Character):
    cost, states = Cost(character), random_states(character, 1)
    reference = cost.ends(snapshots(*states))
    ends = cost.ends(snapshots(*turned(*states, 1.0, np.array([2.0, 5.0, 0.0]))))
    np.testing.assert_allclose(cost.terms(ends, reference, np.zeros((1, 11))), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "term", "value"),
    [
        ({"height": 0.1}, "root", 0.1),
        ({"height": 0.1}, "ends", 0.1),
        ({"height": 0.1}, "com", 0.1),
        ({"velocity": 0.4}, "com_velocity", 0.4),
        ({"action": 0.2}, "action", 0.2),
    ],
)
def test_cost_terms_by_hand(character: Character, change: dict[str, float], term: str, value: float):
    cost, (qpos, qvel) = Cost(character), random_states(character, 1)
    reference = cost.ends(snapshots(qpos, qvel))
    qpos[0, 2] += change.get("height", 0.0)
    qvel[0, 1] += change.get("velocity", 0.0)
    action = np.zeros((1, 11))
    action[0, 3] = change.get("action", 0.0)
    terms = dict(zip(TERMS, cost.terms(cost.ends(snapshots(qpos, qvel)), reference, action)[0], strict=True))
    assert terms[term] == pytest.approx(value)
    assert terms["pose"] == pytest.approx(0.0)
    assert terms["balance"] == pytest.approx(0.0, abs=1e-12)
