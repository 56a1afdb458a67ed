"""Running graphs: feedback once a fragment, references along the way, falls and rising, pushes, company."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graphs import two_skills

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.build import build_graph
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.graph.planning import PathPlanner, Place, RandomPlanner, travel
from mocap2ctrl.graph.transitions import Transition
from mocap2ctrl.samcon import steering
from mocap2ctrl.samcon.body import body_of
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.features import feedback_actions, snapshot_features
from mocap2ctrl.samcon.performer import RAGDOLL, place_of, placed
from mocap2ctrl.samcon.run import GraphRun, run_graph
from mocap2ctrl.samcon.sampling import Sampler
from mocap2ctrl.samcon.steering import record_steering
from mocap2ctrl.samcon.tasks import reference_snapshot
from mocap2ctrl.simulation.environment import LEVEL, Belt, Environment, Load, Slope, Softness, Stairs, Sway
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array, MotionClip

WAYS = (Transition("walk", 0.3, "run", 0.1, 0.4, 0.3, 0.0), Transition("run", 0.1, "walk", 0.5, 0.8, 0.3, 0.0))


@pytest.fixture(scope="module")
def body() -> Character:
    return load_character()


@pytest.fixture(scope="module")
def graph(body: Character) -> ControlGraph:
    """A walk and a run with small random policies."""
    rng = np.random.default_rng(4)
    made = build_graph(two_skills(body), WAYS, body).graph
    fragments = {
        name: replace(
            fragment, policy=FeedbackPolicy(rng.normal(0, 0.01, (11, 18)), rng.normal(0, 0.02, 11), np.full(11, 0.01))
        )
        for name, fragment in made.fragments.items()
    }
    return replace(made, fragments=fragments)


def test_a_run_is_its_fragments_one_after_the_other_bit_for_bit(graph: ControlGraph, body: Character) -> None:
    """By the other simulator, with a = M s + â from the state at each begin, and no other feedback (Liu 2016, §4)."""
    (done,) = run_graph(graph, body, [PathPlanner(graph, ["walk"])], 0.8)
    state = reference_snapshot(graph.fragments["walk/0"], 0)
    frames, seen = [state[1 : 8 + len(body.hinges)]], body_of(body)
    with PdRollouts(body) as rollouts:
        for entry in done.performed:
            fragment = graph.fragments[entry.fragment]
            assert fragment.policy is not None
            features = snapshot_features(seen, state[None])[0]
            action = fragment.policy.gain @ features + fragment.policy.offset
            np.testing.assert_array_equal(entry.features, features)
            np.testing.assert_array_equal(entry.action, action)
            targets = fragment.targets + action @ feedback_actions(body).hinges
            ran = rollouts.run(state, targets[None], 1, stride=2)
            frames += list(ran.qpos[0])
            state = ran.final[0]
    ours = np.concatenate([done.clip.root_position, done.clip.root_orientation, done.clip.angles], axis=1)
    assert len(ours) == 81
    np.testing.assert_array_equal(ours, np.array(frames)[: len(ours)])


def test_a_run_is_had_again(graph: ControlGraph, body: Character) -> None:
    one, two = (run_graph(graph, body, [RandomPlanner(graph, 3)], 0.6)[0] for _ in range(2))
    np.testing.assert_array_equal(one.clip.angles, two.clip.angles)
    assert [entry.fragment for entry in one.performed] == [entry.fragment for entry in two.performed]


def test_the_reference_goes_on_from_fragment_to_fragment(graph: ControlGraph, body: Character) -> None:
    graph = replace(graph, fragments={name: replace(f, policy=None) for name, f in graph.fragments.items()})
    (done,) = run_graph(graph, body, [PathPlanner(graph, ["walk", "run"])], 3.0, places=[Place(2.0, 3.0, 1.0)])
    skills = list(dict.fromkeys(graph.fragments[entry.fragment].skill for entry in done.performed))
    assert skills == ["walk", "walk-run", "run", "run-walk"]
    reference = done.reference
    assert (len(reference), reference.fps) == (len(done.clip), done.clip.fps)
    np.testing.assert_allclose(reference.root_position[0], done.clip.root_position[0], atol=1e-12)
    np.testing.assert_allclose(reference.root_orientation[0], done.clip.root_orientation[0], atol=1e-12)
    assert rotations.heading(reference.root_orientation[0]) == pytest.approx(1.0)
    assert np.max(np.abs(np.diff(reference.angles, axis=0))) < 0.06  # of 4 rad/s, in 10 ms
    speeds = np.linalg.norm(np.diff(reference.root_position[:, :2], axis=0), axis=1) * reference.fps
    assert np.min(speeds) > 0.9
    assert np.max(speeds) < 2.2
    place = Place(2.0, 3.0, 1.0)
    for entry in done.performed[:-1]:
        place = place.moved(travel(graph.fragments[entry.fragment]))
    last = round(done.performed[-1].at_s * reference.fps)
    assert reference.root_position[last, :2] == pytest.approx([place.x, place.y], abs=0.02)


def test_a_walk_that_was_never_learned_falls(graph: ControlGraph, body: Character) -> None:
    (done,) = run_graph(graph, body, [PathPlanner(graph, ["walk"])], 3.0)
    assert done.fell_at_s is not None
    assert 0.2 < done.fell_at_s < 2.5
    assert not done.diverged


def test_weak_servos_and_pushes_make_a_difference(graph: ControlGraph, body: Character) -> None:
    def end(**options: object) -> Array:
        (done,) = run_graph(graph, body, [PathPlanner(graph, ["walk"])], 0.5, **options)  # type: ignore[arg-type]
        return done.clip.root_position[-1]

    push = Push(body.segment_index("chest"), np.array([0.0, 400.0, 0.0]), 0.2, 0.2)
    assert end(pushes=[push])[1] > end()[1] + 0.05
    late = replace(push, start_s=0.6)
    np.testing.assert_array_equal(end(pushes=[late]), end())
    assert not np.allclose(end(torque_scale=0.05), end(), atol=1e-3)


def test_a_start_elsewhere_is_the_same_motion_elsewhere(graph: ControlGraph, body: Character) -> None:
    start = reference_snapshot(graph.fragments["walk/2"], 0)
    joints = len(body.hinges)
    other = placed(start, Place(3.0, -1.0, 2.0), joints)
    at = place_of(other)
    assert (at.x, at.y, at.heading) == pytest.approx((3.0, -1.0, 2.0))
    seen = body_of(body)
    np.testing.assert_allclose(snapshot_features(seen, other[None]), snapshot_features(seen, start[None]), atol=1e-9)


def lying(name: str, body: Character, lift: float, offset: float | None = None) -> ControlFragment:
    """A fragment of 0.1 s that lies face down with the arms lifted by an angle."""
    frames, angles = 20, np.zeros(len(body.hinges))
    for side in ("left", "right"):
        angles[body.hinge_names.index(f"{side}_upper_arm.flexion")] = lift
    held = np.tile(angles, (frames + 1, 1))
    policy = None if offset is None else FeedbackPolicy(np.zeros((11, 18)), np.full(11, offset), np.ones(11))
    return ControlFragment(
        name=name,
        skill=name.split("/", maxsplit=1)[0],
        frame_s=0.005,
        targets=held[1:],
        reference_root_position=np.tile([0.0, 0.0, 0.2], (frames + 1, 1)),
        reference_root_orientation=np.tile(rotations.about_axis((0.0, 1.0, 0.0), np.pi / 2), (frames + 1, 1)),
        reference_angles=held,
        policy=policy,
    )


def fallen(body: Character, *, rising: bool) -> ControlGraph:
    """A ring whose second fragment's policy gives up, and a rising skill that begins with lifted arms."""
    pieces = [lying("lie/0", body, 0.0, 0.0), lying("lie/1", body, 0.0, 1.4)]
    after = {"lie/0": ("lie/1",), "lie/1": ("lie/0",)}
    if rising:
        pieces += [lying("rise/0", body, 1.4), lying("rise/1", body, 1.4)]
        after |= {"rise/0": ("rise/1",), "rise/1": ("lie/0",)}
    return ControlGraph("any", "locomotion", {piece.name: piece for piece in pieces}, after)


def test_who_falls_lies_down_and_rises(body: Character) -> None:
    """An action of 11 numbers of 1.4 rad is a fall; the ragdoll takes the rising skill's pose, and then it is performed."""
    graph = fallen(body, rising=True)
    (done,) = run_graph(graph, body, [PathPlanner(graph, ["lie"])], 3.0)
    names = [entry.fragment for entry in done.performed]
    assert names[:2] == ["lie/0", RAGDOLL]
    rose = names.index("rise/0")
    assert set(names[1:rose]) == {RAGDOLL}
    assert names[rose : rose + 4] == ["rise/0", "rise/1", "lie/0", RAGDOLL]
    arm = body.hinge_names.index("left_upper_arm.flexion")
    at = round(done.performed[rose].at_s * done.clip.fps)
    assert done.clip.angles[at, arm] > 0.7
    assert done.reference.angles[at, arm] == pytest.approx(1.4)


def test_without_a_rising_skill_it_stays_where_it_fell(body: Character) -> None:
    graph = fallen(body, rising=False)
    (done,) = run_graph(graph, body, [PathPlanner(graph, ["lie"])], 0.5)
    assert [entry.fragment for entry in done.performed] == ["lie/0", RAGDOLL, RAGDOLL, RAGDOLL, RAGDOLL]
    assert {entry.pose for entry in done.performed} == {"lie/0"}


def test_two_who_walk_into_each_other_meet(graph: ControlGraph, body: Character) -> None:
    planners = [PathPlanner(graph, ["walk"]) for _ in range(3)]
    places = [Place(-0.6, 0.0, 0.0), Place(0.6, 0.0, np.pi), Place(0.0, 9.0, 0.0)]
    runs = run_graph(graph, body, planners, 1.0, places=places)
    assert [done.met for done in runs] == [(1,), (0,), ()]
    alone = run_graph(graph, body, planners[:1], 1.0, places=places[:1])[0]
    assert runs[0].clip.root_position[-1, 0] < alone.clip.root_position[-1, 0] - 0.05


def test_steering_is_added_to_the_action_as_hard_as_the_planner_says(graph: ControlGraph, body: Character) -> None:
    class Left(PathPlanner):
        def turn(self, place: Place) -> float:
            return 0.5

    more = {"walk/0": np.linspace(0.1, 0.2, 11)}
    plain, steered = (run_graph(graph, body, [Left(graph, ["walk"])], 0.3, steering=s)[0] for s in (None, more))
    np.testing.assert_allclose(steered.performed[0].action - plain.performed[0].action, 0.5 * more["walk/0"])
    assert not np.allclose(steered.clip.angles[10], plain.clip.angles[10], atol=1e-3)
    straight = run_graph(graph, body, [PathPlanner(graph, ["walk"])], 0.3, steering=more)[0]
    np.testing.assert_array_equal(straight.clip.angles, plain.clip.angles)


def test_what_falls_is_not_steered(graph: ControlGraph, body: Character, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk that does not stand, and a run that was never learned."""
    monkeypatch.setattr(steering, "TRIED_S", 2.5)
    fragments = {n: replace(f, policy=None) if f.skill == "run" else f for n, f in graph.fragments.items()}
    told = record_steering(replace(graph, fragments=fragments), body)
    assert (told.actions, told.rates) == ({}, {})


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_steering_of_a_body_whose_answers_are_known(
    graph: ControlGraph, body: Character, monkeypatch: pytest.MonkeyPatch, side: float
) -> None:
    """Offsets along a direction turn it by their length, say the many bodies; alone it turns by `side` times that.

    With more than 0.06 rad it falls: so 0.15 of the strongest steering is the most that it stands.
    """
    way = np.linspace(0.0, 1.0, 11) / np.linalg.norm(np.linspace(0.0, 1.0, 11))
    fps = 100.0

    def answer(
        graph: ControlGraph, character: Character, planners: list[PathPlanner], seconds: float, **given: Any
    ) -> Any:
        added = planners[0].turn(Place(0.0, 0.0, 0.0)) * given["steering"]["walk/0"]
        turned = rotations.yaw(side * (added @ way) * np.arange(round(seconds * fps) + 1) / fps)
        rows = len(turned)
        clip = MotionClip("made up", fps, np.zeros((rows, 3)), turned, np.zeros((rows, 1)))
        fell = 3.0 if np.linalg.norm(added) > 0.06 else None
        return (GraphRun(clip, clip, (), (), False, fell),)

    def many(graph: ControlGraph, sampler: Any, names: Any, offsets: Array) -> tuple[Array, Array]:
        return 0.1 + (offsets @ way).sum(axis=1), np.ones(len(offsets), dtype=bool)

    monkeypatch.setattr(steering, "run_graph", answer)
    monkeypatch.setattr(steering, "_turn_rates", many)
    monkeypatch.setattr(steering, "PAIRS", 400)
    monkeypatch.setattr(steering, "RIDGE", 1e-12)
    only_walk = {n: replace(f, policy=None) if f.skill == "run" else f for n, f in graph.fragments.items()}
    told = record_steering(replace(graph, fragments=only_walk), body)
    assert set(told.actions) == {name for name in graph.fragments if name.startswith("walk/")}
    for action in told.actions.values():
        np.testing.assert_allclose(action, side * 0.15 * steering.STRONGEST_RAD * way, atol=1e-9)
    assert told.rates == pytest.approx({"walk": 0.15 * steering.STRONGEST_RAD})


def test_bodies_that_fall_tell_nothing_of_turning(graph: ControlGraph, body: Character) -> None:
    """Policies that know nothing fall within four seconds, whatever is added to them."""
    names = [name for name in graph.fragments if name.startswith("walk/")]
    with PdRollouts(body) as rollouts:
        sampler = Sampler(rollouts, feedback_actions(body), Cost(body))
        offsets = np.zeros((2, len(names), 11))
        offsets[:, :, 2] = np.array([[0.3], [-0.3]])  # rotation of the waist
        rates, stand = steering._turn_rates(graph, sampler, names, offsets)
    assert np.all(np.isfinite(rates))
    assert not stand.any()
    assert steering._turning_actions(graph, body, names) == {}


@pytest.mark.parametrize(
    "place",
    [
        Environment("up", slope=Slope(6.0)),
        Environment("steps", stairs=Stairs(0.12, 0.3, 5, start_m=-1.0)),
        Environment("ship", sway=Sway((0.3, 0.1, 0.0), 2.0)),
    ],
    ids=lambda place: place.name,
)
def test_heights_are_told_above_the_ground(graph: ControlGraph, body: Character, place: Environment) -> None:
    """The body starts as far from the ground as it did, and its policy is told the height that it knows."""
    there, level = (
        run_graph(graph, body, [PathPlanner(graph, ["walk"])], 0.3, places=[Place(1.0, 2.0, 0.5)], environment=where)[0]
        for where in (place, LEVEL)
    )
    assert there.environment.origin_m == (1.0, 2.0)
    assert there.environment.heading == pytest.approx(0.5)
    first, usual = there.performed[0].features, level.performed[0].features
    assert first[2] == pytest.approx(usual[2], abs=0.07)
    np.testing.assert_allclose(np.delete(first, 2), np.delete(usual, 2), atol=0.08)
    assert not np.allclose(there.clip.root_position[-1], level.clip.root_position[-1], atol=1e-4)
    if place.stairs is not None:
        assert there.clip.root_position[0, 2] > level.clip.root_position[0, 2] + 0.3


def test_softer_heavier_and_slower_worlds(graph: ControlGraph, body: Character) -> None:
    def root(where: Environment) -> Array:
        (done,) = run_graph(graph, body, [PathPlanner(graph, ["walk"])], 0.4, environment=where)
        return done.clip.root_position[-1]

    usual = root(LEVEL)
    for where in (
        Environment("moon", gravity_m_s2=1.62),
        Environment("soft", softness=Softness(5000.0, 200.0)),
        Environment("load", loads=(Load("chest", 20.0, (0.0, 0.0, 0.2), (0.0, 0.0, 0.2), 0.1),)),
        Environment("belt", belt=Belt((0.0, 1.0))),
    ):
        assert np.linalg.norm(root(where) - usual) > 2e-3, where.name
    with pytest.raises(EngineError, match="bears one character only"):
        run_graph(
            graph,
            body,
            [PathPlanner(graph, ["walk"])] * 2,
            0.1,
            environment=Environment("soft", softness=Softness(5e3, 2e2)),
        )
