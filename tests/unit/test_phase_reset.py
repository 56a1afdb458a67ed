"""Fragments that a touchdown ends: when a foot is down, what is simulated until then, whose clock says what, how rings are cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from test_graph_push_test import lying

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.export import GraphOptions, export_graph
from mocap2ctrl.graph.file import read_graph, write_graph
from mocap2ctrl.graph.fragments import FEET, ControlGraph, most_steps
from mocap2ctrl.graph.planning import PathPlanner
from mocap2ctrl.graph.sources import Input
from mocap2ctrl.graph.touchdowns import touchdowns
from mocap2ctrl.motion.clips import at_times, close_loop, mirror
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.samcon import push_test
from mocap2ctrl.samcon.body import body_of, see
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.cycle import motion_graph
from mocap2ctrl.samcon.features import feedback_actions, snapshot_coordinates, snapshot_features
from mocap2ctrl.samcon.mirrors import mirror_pairs
from mocap2ctrl.samcon.open_loop import averaged_fragment
from mocap2ctrl.samcon.performance import GrowingPushes, survival
from mocap2ctrl.samcon.push_test import push_test_graph
from mocap2ctrl.samcon.pushed_bodies import PushedBodies
from mocap2ctrl.samcon.run import run_graph
from mocap2ctrl.samcon.sampling import Sampler
from mocap2ctrl.samcon.tasks import reference_snapshot, task_of
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.environment import LEVEL, Environment, Slope
from mocap2ctrl.simulation.foot_height import foot_heights, foot_of, steps_to_touchdown
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array, MotionClip, SimState

needs_clips = pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")


@pytest.fixture(scope="module")
def walk_clip(character: Character) -> MotionClip:
    if deepmimic_directory() is None:
        pytest.skip("pybullet_data is not installed")
    return close_loop(load_motion("humanoid3d_walk", character).clip)


@pytest.fixture(scope="module")
def walk(walk_clip: MotionClip, character: Character) -> ControlGraph:
    return motion_graph(walk_clip, character, skill="walk", gains="locomotion", phase_reset=True)[0]


def waiting(graph: ControlGraph, foot: str = "left_foot") -> ControlGraph:
    """The graph, all of whose fragments wait for a foot."""
    return replace(graph, fragments={name: replace(f, touchdown=foot) for name, f in graph.fragments.items()})


def random_states(character: Character, count: int) -> Array:
    """(N, 7 + J) coordinates of bodies in any pose, about as high as their feet reach."""
    rng = np.random.default_rng(5)
    return np.concatenate(
        [
            rng.uniform([-3.0, -3.0, 0.3], [3.0, 3.0, 1.0], (count, 3)),
            rotations.normalise(rng.normal(size=(count, 4))),
            rng.normal(0.0, 0.4, (count, len(character.hinges))),
        ],
        axis=1,
    )


# When a foot is down.


def test_a_foot_s_height_is_that_of_its_lowest_segment_to_the_bit(character: Character):
    qpos = random_states(character, 50)
    seen = see(body_of(character), qpos, np.zeros((50, 6 + len(character.hinges))))
    for foot in FEET:
        parts = [character.segment_index(name) for name in (foot, foot.replace("foot", "toes"))]
        np.testing.assert_array_equal(foot_heights(foot_of(character, foot), qpos), seen.lowest[:, parts].min(axis=1))


def test_a_foot_is_down_where_mujoco_has_a_contact(character: Character):
    model = mujoco.MjModel.from_xml_string(build_mjcf(character, PD_TIME_STEP_S, "pd"))
    data, qpos = mujoco.MjData(model), random_states(character, 200)
    for foot in FEET:
        parts = [model.body(name).id for name in (foot, foot.replace("foot", "toes"))]
        touches = []
        for state in qpos:
            data.qpos[:] = state
            mujoco.mj_fwdPosition(model, data)
            bodies = model.geom_bodyid[data.contact.geom[: data.ncon]]
            touches.append(bool(np.any(np.any(bodies == 0, axis=1) & np.any(np.isin(bodies, parts), axis=1))))
        down = foot_heights(foot_of(character, foot), qpos) <= 0.0
        assert 20 < np.count_nonzero(down) < 180
        assert down.tolist() == touches


def test_a_state_that_is_none_is_no_touchdown(character: Character):
    qpos = np.full((1, 4, 7 + len(character.hinges)), np.nan)
    assert steps_to_touchdown(foot_of(character, "left_foot"), qpos).tolist() == [4]


# Simulations until then.


def test_a_body_that_falls_lands_when_gravity_says_or_at_the_latest(character: Character, standing: SimState):
    """Free fall from h: after n steps of 5 ms it is h - g dt² n (n + 1) / 2 high. Who stands on the foot needs one step."""
    foot = foot_of(character, "right_foot")
    with PdRollouts(character) as rollouts:
        start = rollouts.snapshot(standing)
        start[8 : 8 + len(character.hinges)] = 0.0
        start[3] -= foot_heights(foot, snapshot_coordinates(start[None], len(character.hinges))[0])[0]
        heights = np.array([-0.001, 0.02, 0.05, 0.5])
        starts = np.tile(start, (4, 1))
        starts[:, 3] += heights
        done = rollouts.run_to_touchdown(starts, np.zeros((4, 5, 35)), 4, foot, most_steps=30)
    fallen = 9.81 * PD_TIME_STEP_S**2 * np.arange(1, 31) * np.arange(2, 32) / 2.0
    wanted = [int(np.argmax(fallen >= h)) + 1 if fallen[-1] >= h else 30 for h in heights]
    assert done.steps.tolist() == wanted
    assert wanted[0] == 1
    assert wanted[-1] == 30


@needs_clips
def test_its_end_is_that_of_a_simulation_of_so_many_steps_to_the_bit(walk: ControlGraph, character: Character):
    """The last targets are held beyond the end of time, and pushes go on; a foot that comes down sooner ends it sooner."""
    fragment = walk.fragments["walk/5"]
    foot, steps = foot_of(character, "right_foot"), len(fragment.targets)
    most, rng = most_steps(steps, fragment.touchdown), np.random.default_rng(1)
    assert (steps, most) == (21, 32)
    starts = np.tile(reference_snapshot(fragment, 0), (6, 1))
    starts[:, 3] += [-0.02, -0.01, 0.0, 0.01, 0.02, 0.2]
    held = fragment.targets + rng.normal(0.0, 0.05, (6, 1, 35))
    pushes = np.tile(rng.normal(0.0, 60.0, (6, 1, 3)), (1, most, 1))
    with PdRollouts(character) as rollouts:
        done = rollouts.run_to_touchdown(starts, held, 1, foot, most_steps=most, pushes=pushes)
        longer = np.concatenate([held, np.repeat(held[:, -1:], most - steps, axis=1)], axis=1)
        for k, count in enumerate(done.steps):
            alone = rollouts.run(starts[k], longer[k : k + 1, :count], pushes=pushes[k : k + 1, :count])
            np.testing.assert_array_equal(alone.final[0], done.final[k])
            height = foot_heights(foot, alone.qpos[0])
            assert np.all(height[:-1] > 0.0)
            assert height[-1] <= 0.0 or count == most
    assert len(set(done.steps.tolist())) >= 4
    assert done.steps[-1] == most


@needs_clips
def test_a_run_is_what_the_sampler_does(walk: ControlGraph, character: Character):
    (done,) = run_graph(walk, character, [PathPlanner(walk, ["walk"])], 1.2)
    assert len(done.reference) == len(done.clip)
    state, frames = reference_snapshot(walk.fragments["walk/0"], 0)[None], 0
    with PdRollouts(character) as rollouts:
        sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
        for entry, after in zip(done.performed[:-1], done.performed[1:], strict=True):
            np.testing.assert_allclose(entry.features, snapshot_features(sampler.cost.body, state)[0], atol=1e-9)
            followed = sampler.follow(
                state, task_of(walk.fragments[entry.fragment], sampler.cost, sampler.actions, 0.0)
            )
            assert entry.steps == followed.steps[0]
            state, frames = followed.finals, frames + entry.steps
            assert after.at_s == pytest.approx(frames * PD_TIME_STEP_S)
            pose = np.concatenate([done.clip.root_position, done.clip.root_orientation, done.clip.angles], axis=1)
            if frames % 2 == 0:
                np.testing.assert_allclose(pose[frames // 2], state[0, 1 : 8 + 35], atol=1e-9)
    waited = [e.steps for e in done.performed[:-1] if walk.fragments[e.fragment].touchdown]
    assert waited
    assert waited[0] != 21


@needs_clips
def test_the_mean_reference_ends_with_the_foot_on_the_ground(walk: ControlGraph, character: Character):
    """Though some bodies come down sooner than others."""
    fragment, foot = walk.fragments["walk/5"], foot_of(character, "right_foot")
    starts = np.tile(reference_snapshot(fragment, 0), (3, 1))
    starts[:, 3] += [-0.006, 0.0, 0.006]
    with PdRollouts(character) as rollouts:
        sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
        mean = averaged_fragment(sampler, fragment, starts, np.zeros((3, 11)), np.zeros(11))
        task = task_of(fragment, sampler.cost, sampler.actions, 0.0)
        steps = sampler.follow(starts, task).steps
    assert len(set(steps.tolist())) == 2
    assert mean.touchdown == "right_foot"
    qpos = np.concatenate(
        [mean.reference_root_position, mean.reference_root_orientation, mean.reference_angles], axis=1
    )
    heights = foot_heights(foot, qpos)
    assert abs(heights[-1]) < 0.002 < heights[-4]


# Clocks. Who lies on a foot performs such a fragment in one step: the time that passes is 5 ms, not 0.1 s.


def test_survival_counts_the_time_that_passed(character: Character):
    graph = waiting(lying(character))
    with PdRollouts(character) as rollouts:
        sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
        tasks = {name: task_of(f, sampler.cost, sampler.actions, 0.0) for name, f in graph.fragments.items()}
        start = settled(sampler, graph)
        followed = sampler.follow(start, tasks["lie/0"])
        assert (followed.steps.tolist(), tasks["lie/0"].steps, tasks["lie/0"].most_steps) == ([1], 20, 30)
        pushes = GrowingPushes(np.full((1, 9, 3), 1.0) * np.array([0.0, 900.0, 0.0]))
        starts = {"lie/0": start}
        stood = [
            float(
                survival(
                    sampler, each, {n: task_of(f, sampler.cost, sampler.actions, 0.0) for n, f in each.fragments.items()},
                    starts, runs=1, seconds=4.0, seed=1, pushes=pushes,
                )[0]
            )
            for each in (lying(character), graph)
        ]  # fmt: skip
    assert 2.0 < stood[0] < 2.6  # the first push rolls it over
    assert stood[0] <= stood[1] < stood[0] + 0.1  # the whole fragments that it stood


def settled(sampler: Sampler, graph: ControlGraph) -> Array:
    """(1, K) the lying body after a second."""
    fragment = graph.fragments["lie/0"]
    state = reference_snapshot(fragment, 0)[None]
    return sampler.rollouts.run(state, np.zeros((1, 200, 35))).final


def test_pushed_bodies_clocks_go_on_by_the_time_that_passed(character: Character):
    graph = waiting(lying(character))
    with PdRollouts(character) as rollouts:
        sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
        tasks = {name: task_of(f, sampler.cost, sampler.actions, 0.0) for name, f in graph.fragments.items()}
        bodies = PushedBodies(sampler, graph, tasks, 3, 10.0, np.random.default_rng(2), 0.2)
        bodies.snapshots = np.tile(settled(sampler, graph), (3, 1))
        before = bodies.seen_pushes()[:, 6]
        bodies.advance(np.zeros((3, 11)))
        np.testing.assert_allclose(before - bodies.seen_pushes()[:, 6], 0.005, atol=1e-12)


def test_push_test_is_the_same_for_pieces_of_any_length(character: Character, monkeypatch: pytest.MonkeyPatch):
    """Constant targets in pieces of 0.1 s or of one step: the same simulation, and pushes at the same times."""
    monkeypatch.setattr(push_test, "SECONDS", 0.8)
    monkeypatch.setattr(push_test, "PHASES", 1)
    one, two = (
        push_test_graph(each, step_n=800.0, max_force_n=1600.0)
        for each in (lying(character), waiting(lying(character)))
    )
    assert one == two


# Rings.


def rolled(clip: MotionClip, share: float) -> MotionClip:
    """A loop that begins later."""
    count = len(clip) - 1
    at = round(share * count)
    order = [*range(at, count), *range(at + 1)]
    travel = clip.root_position[-1] - clip.root_position[0]
    position = np.concatenate([clip.root_position[at:-1], clip.root_position[: at + 1] + travel])
    return replace(
        clip, root_position=position, root_orientation=clip.root_orientation[order], angles=clip.angles[order]
    )


@needs_clips
def test_touchdowns_are_found_wherever_a_loop_begins_in_a_mirror_and_turned(
    walk_clip: MotionClip, character: Character
):
    left, right = touchdowns(walk_clip, character)
    assert (left.foot, right.foot) == FEET
    assert right.time_s - left.time_s == pytest.approx(0.5 * walk_clip.duration_s, abs=0.02)
    image = touchdowns(mirror(walk_clip, character), character)
    assert [(down.time_s, down.foot) for down in image] == [(left.time_s, right.foot), (right.time_s, left.foot)]
    turn = rotations.yaw(2.0)
    turned = replace(
        walk_clip,
        root_position=rotations.rotate(turn, walk_clip.root_position),
        root_orientation=rotations.multiply(turn, walk_clip.root_orientation),
    )
    assert touchdowns(turned, character) == (left, right)
    later = {down.foot: down.time_s for down in touchdowns(rolled(walk_clip, 0.3), character)}
    shift = round(0.3 * (len(walk_clip) - 1)) / walk_clip.fps
    for down in (left, right):
        gap = (later[down.foot] - down.time_s + shift) % walk_clip.duration_s
        assert min(gap, walk_clip.duration_s - gap) < 0.02


@needs_clips
@pytest.mark.parametrize("mirrored", [True, False])
def test_a_ring_begins_where_a_foot_comes_down_and_ends_there(
    walk_clip: MotionClip, character: Character, mirrored: bool
):
    def made(clip: MotionClip, phase_reset: bool) -> ControlGraph:
        kept = {"phase_reset": True} if phase_reset else {}
        return motion_graph(clip, character, skill="walk", gains="locomotion", mirrored=mirrored, **kept)[0]

    graph, plain = made(rolled(walk_clip, 0.3), True), made(walk_clip, False)
    marked = {name: f.touchdown for name, f in graph.fragments.items() if f.touchdown}
    assert len(marked) == 2
    assert list(graph.fragments)[-1] in marked
    for name, foot in marked.items():
        f = graph.fragments[name]
        qpos = np.concatenate([f.reference_root_position, f.reference_root_orientation, f.reference_angles], axis=1)
        heights = foot_heights(foot_of(character, foot), qpos)
        assert heights[0] > 0.01 > 0.003 > heights[-1]
    pieces = list(graph.fragments.values())
    for before, after in zip(pieces, [*pieces[1:], pieces[0]], strict=True):
        assert graph.successors[before.name] == (after.name,)
        np.testing.assert_allclose(before.reference_angles[-1], after.reference_angles[0], atol=1e-6)
    assert len(mirror_pairs(graph, character)) == (12 if mirrored else 0)
    seconds = [sum(f.duration_s for f in g.fragments.values()) for g in (graph, plain)]
    assert seconds[0] == pytest.approx(seconds[1], rel=0.02)
    assert all(f.touchdown is None for f in plain.fragments.values())


@needs_clips
def test_fragments_that_wait_for_the_same_foot_are_no_mirrors(walk: ControlGraph, character: Character):
    fragments = {**walk.fragments, "walk/5": replace(walk.fragments["walk/5"], touchdown=None)}
    assert set(walk.fragments) - set(mirror_pairs(replace(walk, fragments=fragments), character)) == {
        "walk/5",
        "walk/11",
    }


def test_a_motion_in_which_no_foot_comes_down_is_refused(character: Character):
    count = 31
    still = MotionClip(
        "float", 30.0, np.tile([0.0, 0.0, 1.5], (count, 1)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
        np.tile(0.1 * np.sin(np.linspace(0.0, 2.0 * np.pi, count))[:, None], (1, 35)), loop=True,
    )  # fmt: skip
    assert touchdowns(at_times(still, np.arange(count) / 30.0), character) == ()
    with pytest.raises(GraphError, match=r"float: no foot comes down in its cycle.*leave --phase-reset out"):
        motion_graph(still, character, skill="float", gains="locomotion", mirrored=False, phase_reset=True)


# Files, and graphs that export-graph makes.


def test_files_keep_it_and_refuse_what_is_no_foot(character: Character, tmp_path: Path):
    graph = lying(character)
    file, plain = tmp_path / "graph.json", tmp_path / "plain.json"
    write_graph(waiting(graph, "right_foot"), file)
    assert [f.touchdown for f in read_graph(file).fragments.values()] == ["right_foot"] * 2
    write_graph(graph, plain)
    assert "touchdown" not in plain.read_text("utf-8")
    assert [f.touchdown for f in read_graph(plain).fragments.values()] == [None] * 2
    for wrong in ('"head"', "1", "null", "[]"):
        file.write_text(
            file.read_text("utf-8").replace('"touchdown": "right_foot"', f'"touchdown": {wrong}', 1), "utf-8"
        )
        with pytest.raises(GraphError, match=r"touchdown is .*; allowed is left_foot or right_foot, or left out"):
            read_graph(file)
        write_graph(waiting(graph, "right_foot"), file)


@needs_clips
def test_export_graph_cuts_where_feet_come_down(walk_clip: MotionClip, character: Character):
    """Ways between skills wait for nothing, whatever is blended."""
    inputs = [Input("walk", "humanoid3d_walk"), Input("run", "humanoid3d_run")]
    made = export_graph(inputs, GraphOptions(symmetric=("walk", "run"), phase_reset=("walk", "run"))).built.graph
    feet = {name: f.touchdown for name, f in made.fragments.items() if f.touchdown}
    assert sorted(made.fragments[name].skill for name in feet) == ["run", "run", "walk", "walk"]
    assert sorted(feet.values()) == ["left_foot", "left_foot", "right_foot", "right_foot"]
    for name, foot in feet.items():
        f = made.fragments[name]
        qpos = np.concatenate([f.reference_root_position, f.reference_root_orientation, f.reference_angles], axis=1)
        assert abs(foot_heights(foot_of(character, foot), qpos)[-1]) < 0.003
    pairs = mirror_pairs(made, character)
    assert all(feet[pairs[name]] == FEET[1 - FEET.index(foot)] for name, foot in feet.items())
    with pytest.raises(ConfigError, match="--phase-reset jog: there is no such skill"):
        export_graph(inputs[:1], GraphOptions(phase_reset=("jog",)))
    with pytest.raises(
        GraphError, match=r"skill 'walk': it is no cycle, so that no contact .* leave --phase-reset out"
    ):
        export_graph(inputs, GraphOptions(once=("walk",), phase_reset=("walk",)))


@needs_clips
def test_on_inclined_ground_a_foot_is_down_where_that_ground_is(walk: ControlGraph, character: Character):
    """Seen from its ground, a slope of no rise is level ground; one that rises stops the foot sooner than level ground would."""
    planner, steps = PathPlanner(walk, ["walk"]), []
    for environment in (LEVEL, Environment("flat slope", slope=Slope(0.0)), Environment("up", slope=Slope(4.0))):
        (done,) = run_graph(walk, character, [planner], 0.7, environment=environment)
        steps.append([entry.steps for entry in done.performed[:-1] if walk.fragments[entry.fragment].touchdown])
    assert steps[0] == steps[1] != []
    assert steps[2][0] < steps[0][0]
