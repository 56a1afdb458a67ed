"""Hardening: the natural gradient and the critic against what they must find, and the bodies that never end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.critic import Critic
from mocap2ctrl.samcon.cycle import motion_graph
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.hardening import natural_gradient
from mocap2ctrl.samcon.pushed_bodies import PushedBodies
from mocap2ctrl.samcon.sampling import Sampler, Task
from mocap2ctrl.samcon.tasks import task_of
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts


def test_the_natural_gradient_is_the_policy_whose_actions_are_rewarded():
    """Of an advantage noise · (M s + a) the gradient is the variance times [M a], whatever the states' means and scales."""
    rng = np.random.default_rng(1)
    spread = np.geomspace(0.1, 10.0, 18)
    states = (rng.standard_normal((200_000, 18)) + np.linspace(-0.5, 0.5, 18)) * spread
    gain, offset = rng.standard_normal((11, 18)) / spread, rng.standard_normal(11)
    noise = 0.1 * rng.standard_normal((len(states), 11))
    advantages = np.sum(noise * (states @ gain.T + offset), axis=1)
    found = natural_gradient(states, noise, advantages) / 0.1**2
    wanted, scaled = np.concatenate([gain, offset[:, None]], axis=1), np.append(spread, 1.0)
    assert np.abs((found - wanted) * scaled).max() < 0.2  # of which 0.1 is chance
    assert np.abs(wanted * scaled).max() > 2.0


def test_a_critic_learns_a_quadratic_form_of_each_fragment_and_forgets():
    rng, critic = np.random.default_rng(2), Critic(2, discount=0.9)
    inputs, fragment = rng.standard_normal((4000, 3)), rng.integers(0, 2, 4000)
    worth = np.where(fragment == 0, 5.0 + 0.3 * inputs[:, 0] * inputs[:, 1] - 0.3 * inputs[:, 2] ** 2, 2.0)
    np.testing.assert_allclose(critic.values(inputs, fragment), 8.0)  # 80 % of 1 / (1 - 0.9)
    critic.fit(inputs, fragment, worth)
    inside = np.abs(inputs).max(axis=1) < 2.5
    np.testing.assert_allclose(critic.values(inputs, fragment)[inside], worth[inside], atol=0.02)
    for _ in range(40):
        critic.fit(inputs, fragment, np.full(len(inputs), 3.0))
    np.testing.assert_allclose(critic.values(inputs, fragment), 3.0, atol=0.02)
    assert critic.values(np.full((1, 3), 100.0), np.array([0])) <= 10.0  # never more than can be had


@pytest.fixture(scope="module")
def graph(character: Character) -> ControlGraph:
    if deepmimic_directory() is None:
        pytest.skip("pybullet_data is not installed")
    return motion_graph(load_motion("humanoid3d_walk", character).clip, character, skill="walk", gains="locomotion")[0]


def prepared(rollouts: PdRollouts, character: Character, graph: ControlGraph) -> tuple[Sampler, dict[str, Task]]:
    """What performs a graph's fragments, and the task of each."""
    sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
    return sampler, {name: task_of(f, sampler.cost, sampler.actions, 0.0) for name, f in graph.fragments.items()}


def test_the_fallen_take_the_states_of_those_who_stand_and_pushes_are_as_told(
    graph: ControlGraph, character: Character
):
    """Nobody has feedback here: all fall within seconds, and yet all stand before each fragment."""
    with PdRollouts(character) as rollouts:
        sampler, tasks = prepared(rollouts, character, graph)
        bodies = PushedBodies(sampler, graph, tasks, 40, 200.0, np.random.default_rng(3), 0.2)
        falls = 0
        for _ in range(25):
            done = bodies.advance(np.zeros((40, 11)))
            falls += int(done.fell.sum())
            assert np.all(np.isfinite(bodies.snapshots))
            np.testing.assert_array_equal(sampler.cost.ends(bodies.snapshots).features, bodies.features)
            seen = bodies.seen_pushes()
            assert np.all(np.linalg.norm(seen[:, 0:2] + seen[:, 3:5], axis=1) <= 2.0)
            assert np.all((seen[:, 6] >= 0.0) & (seen[:, 6] <= 2.0))
            np.testing.assert_array_equal((seen[:, 2] > 0.0), seen[:, 6] == 0.0)
        assert falls > 40
        assert bodies.pushes > 20


def test_what_is_seen_of_a_push_turns_with_the_body(graph: ControlGraph, character: Character):
    with PdRollouts(character) as rollouts:
        sampler, tasks = prepared(rollouts, character, graph)
        bodies = PushedBodies(sampler, graph, tasks, 10, 200.0, np.random.default_rng(4), 0.2)
        before = bodies.seen_pushes()
        quarter = rotations.yaw(np.full(10, 0.5 * np.pi))
        bodies.snapshots[:, 4:8] = rotations.multiply(quarter, bodies.snapshots[:, 4:8])
        after = bodies.seen_pushes()
        np.testing.assert_allclose(after[:, 3], before[:, 4], atol=1e-12)
        np.testing.assert_allclose(after[:, 4], -before[:, 3], atol=1e-12)


def test_pushes_from_each_side_are_as_large_as_told(graph: ControlGraph, character: Character) -> None:
    with PdRollouts(character) as rollouts:
        sampler, tasks = prepared(rollouts, character, graph)
        bodies = PushedBodies(sampler, graph, tasks, 4000, 200.0, np.random.default_rng(7), 0.2, (0.5, 1.0, 0.8))
        bodies.snapshots[:, 4:8] = rotations.yaw(np.full(4000, 2.0))
        force = bodies._drawn(bodies.snapshots)
    size, way = np.linalg.norm(force, axis=1), np.arctan2(force[:, 1], force[:, 0]) - 2.0
    for towards, most in (
        (0.0, 200.0),
        (np.pi, 100.0),
        (0.5 * np.pi, 160.0),
        (-0.5 * np.pi, 160.0),
        (0.25 * np.pi, 180.0),
    ):
        near = size[np.cos(way - towards) > np.cos(0.15)]
        assert 0.9 * most < near.max() < 1.06 * most
        assert near.min() < 0.35 * most


@pytest.mark.parametrize("push_s", [0.2, 0.4])
def test_pushes_last_as_long_as_they_should(graph: ControlGraph, character: Character, push_s: float) -> None:
    with PdRollouts(character) as rollouts:
        sampler, tasks = prepared(rollouts, character, graph)
        bodies = PushedBodies(sampler, graph, tasks, 8, 150.0, np.random.default_rng(6), push_s)
        bodies._until_s[:] = np.linspace(0.1, 1.5, 8)
        parts = []
        for _ in range(80):
            parts.append(bodies._forces(np.arange(8), 5))
            bodies._until_s -= 5 * PD_TIME_STEP_S
        forces = np.concatenate(parts, axis=1)
        on = np.any(forces != 0.0, axis=2)
        np.testing.assert_allclose(on.sum(axis=1) * PD_TIME_STEP_S, push_s, atol=1e-9)
        np.testing.assert_allclose(
            np.argmax(on, axis=1) * PD_TIME_STEP_S, np.linspace(0.1, 1.5, 8), atol=PD_TIME_STEP_S
        )
        np.testing.assert_allclose(bodies._until_s, np.linspace(0.1, 1.5, 8) - 2.0, atol=1e-9)
        assert bodies.pushes == 0
        bodies._go_on()
        assert bodies.pushes == np.count_nonzero(np.linspace(0.1, 1.5, 8) - 2.0 <= 1e-9 - push_s)


def test_a_push_moves_the_body_as_its_impulse_says(graph: ControlGraph, character: Character):
    """0.2 s of F newtons change the centre of mass's velocity by 0.2 F / m, while the body is in the air."""
    name = next(iter(graph.fragments))
    high = replace(graph, fragments={name: graph.fragments[name]}, successors={name: (name,)})
    with PdRollouts(character) as rollouts:
        sampler, tasks = prepared(rollouts, character, high)
        bodies = PushedBodies(sampler, high, tasks, 6, 150.0, np.random.default_rng(5), 0.2)
        bodies._until_s[:] = 0.0
        bodies.snapshots[:, 3] += 50.0
        force = bodies._forces(np.arange(6), tasks[name].steps)
        pushed, free = (
            sampler.cost.ends(sampler.execute(bodies.snapshots, tasks[name], np.zeros((6, 11)), f)[0]).features[:, 6:9]
            for f in (force, None)
        )
        gained = np.linalg.norm(force.sum(axis=1), axis=1) * PD_TIME_STEP_S / character.mass_kg
        np.testing.assert_allclose(np.linalg.norm(pushed - free, axis=1), gained, rtol=0.02)
        assert gained.max() > 0.1
