"""Sampling: resampling, walks, cutting, pushes, the same bits whatever the threads, and a walk that is got through."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError, GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.motion.clips import close_loop, velocities
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.cycle import asymmetry_rad, cut, cycle_graph, motion_graph, symmetric
from mocap2ctrl.samcon.features import open_loop_actions
from mocap2ctrl.samcon.mirrors import mirror_pairs
from mocap2ctrl.samcon.open_loop import OpenLoopConfig, refine
from mocap2ctrl.samcon.performance import GrowingPushes
from mocap2ctrl.samcon.sampling import Episode, Sampler, SamplingConfig, _kept, joined, resample, standing
from mocap2ctrl.samcon.tasks import reference_snapshot, task_of
from mocap2ctrl.samcon.walks import BEYOND, Step, first_fragments, learning_walk, parts, random_walk
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array, MotionClip, SimState

from graphs import random_graph  # isort: skip

needs_clips = pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")


@pytest.fixture(scope="module")
def run_clip(character: Character) -> MotionClip:
    return close_loop(load_motion("humanoid3d_run", character).clip)


@pytest.fixture(scope="module")
def run_graph(run_clip: MotionClip, character: Character) -> ControlGraph:
    return motion_graph(run_clip, character, skill="run", gains="locomotion")[0]


# Resampling.


@pytest.mark.parametrize("seed", range(5))
def test_systematic_resampling_draws_as_often_as_weights_say_to_within_one(seed: int):
    rng = np.random.default_rng(seed)
    costs = rng.exponential(1.0, 20)
    weights = np.exp(-(costs - costs.min()) / np.mean(costs - costs.min()))
    counts = np.bincount(resample(costs, 137, rng), minlength=20)
    assert counts.sum() == 137
    assert np.all(np.abs(counts - 137 * weights / weights.sum()) < 1.0 + 1e-9)


def test_equal_costs_are_drawn_equally_often():
    drawn = resample(np.full(5, 3.0), 100, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(drawn), np.full(5, 20))


# Walks.


def test_walks_follow_edges_and_visit_skills_alike(character: Character):
    graph = random_graph(character)
    walk = random_walk(graph, np.random.default_rng(1))
    steps = [next(walk) for _ in range(600)]
    assert steps[0].restart
    for before, after in pairwise(steps):
        assert after.fragment in graph.successors[before.fragment]
        assert not after.restart
    skills = Counter(graph.fragments[step.fragment].skill for step in steps)
    assert abs(skills["walk"] - skills["run"]) < 60


def test_a_chain_begins_anew_at_its_end(character: Character):
    graph = random_graph(character)
    names = ["walk/0", "walk/1", "walk/2"]
    chain = replace(
        graph,
        fragments={n: graph.fragments[n] for n in names},
        successors={"walk/0": ("walk/1",), "walk/1": ("walk/2",), "walk/2": ()},
    )
    walk = learning_walk(chain, names, 4, 1000, np.random.default_rng(0))
    assert [step.fragment for step in walk] == names * 4
    assert [step.restart for step in walk] == [True, False, False] * 4


def test_a_learning_walk_visits_all_often_enough(character: Character):
    graph = random_graph(character)
    walk = learning_walk(graph, list(graph.fragments), 20, 10_000, np.random.default_rng(2))
    counts = Counter(step.fragment for step in walk)
    assert min(counts[name] for name in graph.fragments) == 20


def test_a_one_way_road_is_begun_anew_until_it_is_visited_enough(character: Character):
    graph = random_graph(character)
    ring = {f"walk/{i}": (f"walk/{(i + 1) % 3}",) for i in range(3)}
    road = replace(graph, successors={"run/0": ("run/1",), "run/1": ("walk/1",), "run/2": ("run/0",), **ring})
    on = ["walk/1", "walk/2", "walk/0"] * 5
    walk = learning_walk(road, ["run/0", "run/1", "run/2"], 3, 1000, np.random.default_rng(0))
    assert len(on) == BEYOND
    assert [step.fragment for step in walk] == ["run/2", "run/0", "run/1", *on] * 3
    assert [i for i, step in enumerate(walk) if step.restart] == [0, 3 + BEYOND, 2 * (3 + BEYOND)]
    everything = learning_walk(road, list(graph.fragments), 7, 1000, np.random.default_rng(0))
    counts = Counter(step.fragment for step in everything)
    assert [counts[f"run/{i}"] for i in range(3)] == [7, 7, 7]
    assert min(counts.values()) == 7


def test_a_walk_is_cut_where_it_begins_anew_and_joined_again():
    walk = [Step("a", True), Step("b", False), Step("a", True), Step("c", True), Step("d", False)]
    cut = parts(walk)
    assert cut == [walk[:2], walk[2:3], walk[3:]]

    def episode(count: int, complete: bool) -> Episode:
        rows = np.full((count, 2), float(count))
        return Episode(
            rows, rows, rows, rows, rows, failures=1, pushes=2, complete=complete, elites=[(rows, rows)] * count
        )

    whole = joined([episode(2, True), episode(0, False), episode(3, True)])
    assert whole.starts[:, 0].tolist() == [2.0, 2.0, 3.0, 3.0, 3.0]
    assert (whole.failures, whole.pushes, whole.complete, len(whole.elites)) == (3, 6, False, 5)
    assert len(joined([episode(0, False)]).actions) == 0


def test_a_roll_back_undoes_what_was_explored():
    """What only follows its policies would come to the same end again."""

    class Told:
        def __init__(self, explored: bool) -> None:
            self.explored = explored

    tasks: Any = [Told(explored) for explored in (True, True, True, False, False)]
    assert _kept(6, tasks, 1) == 3  # the origin and two
    assert _kept(6, tasks, 2) == 2
    assert _kept(6, tasks, 9) == 1
    assert _kept(3, tasks, 1) == 2


def test_rings_that_no_edge_joins_are_all_walked(character: Character):
    graph = random_graph(character)
    rings = {f"{skill}/{i}": (f"{skill}/{(i + 1) % 3}",) for skill in ("walk", "run") for i in range(3)}
    apart = replace(graph, successors=rings)
    assert first_fragments(apart) == ("walk/0", "run/0")
    walk = learning_walk(apart, list(rings), 5, 1000, np.random.default_rng(0))
    assert [step.fragment for step in walk] == [f"{skill}/{i % 3}" for skill in ("walk", "run") for i in range(15)]
    assert [i for i, step in enumerate(walk) if step.restart] == [0, 15]
    only = learning_walk(apart, ["run/1"], 2, 1000, np.random.default_rng(0))
    assert [step.fragment for step in only] == ["run/0", "run/1", "run/2", "run/0", "run/1"]


# Pushes.


def test_a_push_changes_momentum_by_force_times_time(character: Character, standing: SimState):
    with PdRollouts(character) as rollouts:
        start = rollouts.snapshot(standing)
        start[3] += 5.0
        pushes = np.zeros((2, 20, 3))
        pushes[1, 5:15] = (120.0, -40.0, 30.0)
        done = rollouts.run(start, np.zeros((2, 20, 35)), pushes=pushes)
        seen = Cost(character).ends(done.final)
        free = rollouts.run(start, np.zeros((2, 20, 35)))
    np.testing.assert_array_equal(done.final[0], free.final[0])
    turn = rotations.yaw(rotations.heading(done.final[1, 4:8]))
    velocity = rotations.rotate(turn, seen.features[1, 6:9]) - seen.features[0, 6:9]
    np.testing.assert_allclose(
        velocity, np.array([120.0, -40.0, 30.0]) * 0.05 / character.mass_kg, rtol=1e-3, atol=1e-4
    )


def test_pushes_that_do_not_fit_are_refused(character: Character, standing: SimState):
    with PdRollouts(character) as rollouts, pytest.raises(EngineError, match=r"pushes have shape \(1, 3, 3\)"):
        rollouts.run(rollouts.snapshot(standing), np.zeros((1, 4, 35)), pushes=np.zeros((1, 3, 3)))


def test_growing_pushes_keep_their_schedule():
    pushes = GrowingPushes.draw(400, 60.0, seed=3)
    np.testing.assert_array_equal(pushes.vectors[:7], GrowingPushes.draw(7, 60.0, seed=3).vectors)
    assert np.all(pushes.vectors[..., 2] == 0.0)
    magnitude = np.linalg.norm(pushes.vectors, axis=2)
    np.testing.assert_allclose(np.sqrt(np.mean(magnitude**2, axis=0)), 10.0 * np.arange(1, 32), rtol=0.15)
    times = 0.005 * np.arange(1000)[None]
    forces = pushes.forces(np.array([4]), times)
    assert forces is not None
    on = np.any(forces[0] != 0.0, axis=1)
    np.testing.assert_array_equal(np.flatnonzero(on), np.r_[400:440, 800:840])
    np.testing.assert_array_equal(forces[0, 800], pushes.vectors[4, 1])
    assert pushes.forces(np.array([4]), times[:, :400]) is None
    longer = GrowingPushes.draw(400, 60.0, seed=3, push_s=0.4).forces(np.array([4]), times)
    assert longer is not None
    np.testing.assert_array_equal(np.flatnonzero(np.any(longer[0] != 0.0, axis=1)), np.r_[400:480, 800:880])
    np.testing.assert_array_equal(longer[0, [400, 879]], pushes.vectors[4, :2])


# Motions as graphs.


@pytest.mark.parametrize("duration", [0.45, 0.7, 0.8, 1.2667, 2.5])
@pytest.mark.parametrize("even", [True, False])
def test_cycles_are_cut_into_pieces_of_about_a_tenth_of_a_second(duration: float, even: bool):
    count, steps = cut(duration, even)
    assert 18 <= steps <= 22
    assert count * steps * 0.005 == pytest.approx(duration, rel=0.06)
    assert not (even and count % 2)


@needs_clips
def test_a_symmetric_loop_is_its_own_mirror_half_a_period_later(run_clip: MotionClip, character: Character):
    loop = symmetric(run_clip, character)
    assert asymmetry_rad(loop, character) < 1e-9 < asymmetry_rad(run_clip, character)
    assert loop.duration_s == pytest.approx(run_clip.duration_s)
    np.testing.assert_allclose(loop.root_position[-1, 1:], loop.root_position[0, 1:], atol=1e-9)
    travel = np.linalg.norm((run_clip.root_position[-1] - run_clip.root_position[0])[:2])
    assert loop.root_position[-1, 0] - loop.root_position[0, 0] == pytest.approx(travel)


@needs_clips
def test_a_ring_of_fragments_holds_the_loop(run_graph: ControlGraph, run_clip: MotionClip, character: Character):
    fragments = list(run_graph.fragments.values())
    assert len(fragments) == 8
    for before, after in zip(fragments, [*fragments[1:], fragments[0]], strict=True):
        assert run_graph.successors[before.name] == (after.name,)
        np.testing.assert_allclose(before.reference_angles[-1], after.reference_angles[0], atol=1e-6)
    assert mirror_pairs(run_graph, character) == {f"run/{i}": f"run/{(i + 4) % 8}" for i in range(8)}
    plain = cycle_graph(run_clip, character, skill="run", gains="locomotion")
    assert mirror_pairs(plain, character) == {}
    speed = velocities(run_clip).root[0, 0]
    assert reference_snapshot(plain.fragments["run/0"], 0)[8 + 35] == pytest.approx(speed, rel=0.1)


# Sampling.


def course(graph: ControlGraph, character: Character, count: int, sampler: Sampler) -> list:
    names = [f"run/{i % len(graph.fragments)}" for i in range(count)]
    tasks = [task_of(graph.fragments[name], sampler.cost, sampler.actions, np.radians(5.0)) for name in names]
    return [replace(tasks[0], start=reference_snapshot(graph.fragments[names[0]], 0)), *tasks[1:]]


def sampled(graph: ControlGraph, character: Character, threads: int) -> tuple[Array, Array]:
    with PdRollouts(character, threads=threads) as rollouts:
        sampler = Sampler(rollouts, open_loop_actions(character), Cost(character))
        tasks = course(graph, character, 6, sampler)
        episode = sampler.walk(
            tasks, SamplingConfig(40, noise_rad=0.02, push_share=0.5, push_n=30.0), np.random.default_rng(1)
        )
    assert episode.complete
    return episode.finals, episode.actions


@needs_clips
def test_threads_change_no_bit(run_graph: ControlGraph, character: Character):
    one, two = sampled(run_graph, character, 1), sampled(run_graph, character, 2)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


@needs_clips
def test_the_path_is_what_its_actions_do(run_graph: ControlGraph, character: Character):
    with PdRollouts(character) as rollouts:
        sampler = Sampler(rollouts, open_loop_actions(character), Cost(character))
        tasks = course(run_graph, character, 10, sampler)
        episode = sampler.walk(tasks, SamplingConfig(60), np.random.default_rng(2))
        assert episode.complete
        np.testing.assert_array_equal(episode.starts[1:], episode.finals[:-1])
        for k, task in enumerate(tasks):
            final, fine, _ = sampler.execute(episode.starts[k][None], task, episode.actions[k][None])
            np.testing.assert_array_equal(final[0], episode.finals[k])
            assert fine[0]
            assert standing(sampler.cost.ends(final), task.reference)[0]


@needs_clips
def test_refined_targets_are_followed_better_without_sampling_than_the_motion_s_own(character: Character):
    clip = close_loop(load_motion("humanoid3d_walk", character).clip)
    graph, _ = motion_graph(clip, character, skill="run", gains="locomotion")
    with PdRollouts(character) as rollouts:
        refined = refine(
            graph, character, rollouts, OpenLoopConfig(rounds=2, round_visits=1, visits=2, samples=50), seed=1
        )
        sampler = Sampler(rollouts, open_loop_actions(character), Cost(character))
        costs = []
        for followed in (graph, refined):
            tasks = course(followed, character, 5, sampler)
            state, total = np.atleast_2d(tasks[0].start), 0.0
            for task in tasks:
                state, _, _ = sampler.execute(state, task, np.zeros((1, 15)))
                terms = sampler.cost.terms(sampler.cost.ends(state), task.reference, np.zeros((1, 15)))
                total += float(terms[0, :2].sum())
            costs.append(total)
    assert mirror_pairs(refined, character) == mirror_pairs(graph, character)
    assert costs[1] < 0.7 * costs[0]


@needs_clips
def test_what_no_body_can_do_is_told_with_its_fragment(run_graph: ControlGraph, character: Character):
    fragments = {
        name: replace(
            f, reference_root_position=f.reference_root_position + np.array([0.0, 0.0, 3.0 * (name > "run/1")])
        )
        for name, f in run_graph.fragments.items()
    }
    with (
        PdRollouts(character) as rollouts,
        pytest.raises(GraphError, match=r"does not get through the fragment 'run/2'"),
    ):
        refine(replace(run_graph, fragments=fragments), character, rollouts, OpenLoopConfig(1, 1, 1, 10), seed=1)
