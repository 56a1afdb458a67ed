"""Rising: what counts as lying, where bodies lie that were pushed over, and graphs that are grown and learned in parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import two_skills

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.body import digest
from mocap2ctrl.graph.build import build_graph
from mocap2ctrl.graph.export import GraphOptions, export_graph
from mocap2ctrl.graph.file import write_graph
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.graph.learned import cycles_of, united
from mocap2ctrl.graph.planning import PathPlanner
from mocap2ctrl.graph.sources import Input
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.samcon import progressive
from mocap2ctrl.samcon import rising as module
from mocap2ctrl.samcon.learn import LearnConfig, Learned
from mocap2ctrl.samcon.open_loop import OpenLoopConfig, refine
from mocap2ctrl.samcon.performer import PATIENCE, RAGDOLL
from mocap2ctrl.samcon.progressive import learn_in_parts
from mocap2ctrl.samcon.rising import LIES_RAD, TILT_RAD, course_of, lies, rising, starts_of
from mocap2ctrl.samcon.run import run_graph
from mocap2ctrl.samcon.tasks import reference_snapshot
from mocap2ctrl.samcon.walks import Step
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array

needs_clips = pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")
NOTHING = FeedbackPolicy(np.zeros((11, 18)), np.zeros(11), np.full(11, 0.003))
FACE_DOWN = rotations.about_axis((0.0, 1.0, 0.0), np.pi / 2)
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])


def held(
    name: str, body: Character, orientation: Array, height_m: float, policy: FeedbackPolicy | None = NOTHING
) -> ControlFragment:
    """A fragment of 0.1 s in the zero pose."""
    still = np.zeros((21, len(body.hinges)))
    return ControlFragment(
        name=name,
        skill=name.split("/", maxsplit=1)[0],
        frame_s=0.005,
        targets=still[1:],
        reference_root_position=np.tile([0.0, 0.0, height_m], (21, 1)),
        reference_root_orientation=np.tile(orientation, (21, 1)),
        reference_angles=still,
        policy=policy,
    )


def ringed(body: Character, pieces: list[ControlFragment], after: dict[str, tuple[str, ...]]) -> ControlGraph:
    return ControlGraph(
        digest(body), "locomotion", {piece.name: piece for piece in pieces}, after, description=body.description
    )


def with_rising(body: Character, policy: FeedbackPolicy | None = None) -> ControlGraph:
    """A ring that stands, a skill that rises into it from the face, and a way in that begins upright."""
    stand = [held(f"stand/{i}", body, UPRIGHT, body.standing_height_m) for i in range(2)]
    pieces = [
        *stand,
        held("rise/0", body, FACE_DOWN, 0.15, policy),
        held("in/0", body, UPRIGHT, body.standing_height_m),
    ]
    after = {"stand/0": ("stand/1",), "stand/1": ("stand/0",), "rise/0": ("stand/0",), "in/0": ("stand/1",)}
    return ringed(body, pieces, after)


def test_lying_is_near_in_pose_and_tilt_and_still(character: Character) -> None:
    joints = len(character.hinges)
    wanted = reference_snapshot(held("a/0", character, FACE_DOWN, 0.15), 0)
    apart = [
        (0.0, 0.0, 0.0),
        (0.9 * LIES_RAD, 0.9 * TILT_RAD, 0.2),
        (1.1 * LIES_RAD, 0.0, 0.0),
        (0.0, 1.1 * TILT_RAD, 0.0),
    ]
    rows = []
    for angle, tilt, speed in [*apart, (0.0, 0.0, 0.5)]:
        row = wanted.copy()
        row[1:3] = 3.0, -2.0
        turned = rotations.multiply(rotations.about_axis((0.0, 1.0, 0.0), tilt), FACE_DOWN)
        row[4:8] = rotations.multiply(rotations.yaw(2.0), turned)
        row[8 : 8 + joints] = angle
        row[8 + joints] = speed
        rows.append(row)
    assert lies(np.array(rows), wanted).tolist() == [True, True, False, False, False]


def test_rising_begins_low_and_is_not_come_back_to(character: Character) -> None:
    graph = with_rising(character)
    assert rising(graph) == ("rise/0",)
    assert rising(ringed(character, [held("rise/0", character, FACE_DOWN, 0.15)], {"rise/0": ()})) == ()


def test_who_is_pushed_over_lies_on_the_face(character: Character, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FALLS", 6)
    graph = with_rising(character)
    with PdRollouts(character) as rollouts:
        starts, again = starts_of(graph, rollouts, 3), starts_of(graph, rollouts, 3)
    assert set(starts) == {"rise/0", "in/0"}
    assert len(starts["in/0"]) == 1
    lain = starts["rise/0"]
    assert 1 <= len(lain) <= 6
    assert np.all(lies(lain, reference_snapshot(graph.fragments["rise/0"], 0)))
    assert np.all(lain[:, 3] < 0.3)
    np.testing.assert_array_equal(lain, again["rise/0"])


def test_nobody_lies_where_rising_begins(character: Character, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FALLS", 2)
    monkeypatch.setattr(module, "LONGEST_S", 0.4)
    with PdRollouts(character) as rollouts, pytest.raises(GraphError, match="'rise' begins; cut the motion"):
        starts_of(with_rising(character), rollouts, 1)


def test_a_walk_begins_anew_with_several_starts(character: Character) -> None:
    class Plain:
        start: Array | None = None

    walk = [Step("a", True), Step("b", False), Step("a", True)]
    tasks: Any = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "replace", lambda task, start: start)
        tasks = {"a": Plain(), "b": Plain()}
        starts = {"a": np.arange(20.0)[:, None]}
        course: Any = course_of(walk, tasks, starts, np.random.default_rng(0))
    assert course[1] is tasks["b"]
    for begin in (course[0], course[2]):
        assert begin.shape == (module.AT_ONCE, 1)
        assert len(set(begin[:, 0])) == module.AT_ONCE
    assert not np.array_equal(course[0], course[2])


def test_who_does_not_come_to_lie_tries_the_next_pose(character: Character) -> None:
    """Neither skill begins as a body can lie: half-way up, one towards the face, one towards the back."""
    giving_up = replace(NOTHING, offset=np.full(11, 1.4))
    pieces = [held("stand/0", character, FACE_DOWN, 0.15, giving_up)]
    for name, lean in (("front", 0.9), ("back", -0.9)):
        pieces.append(held(f"{name}/0", character, rotations.about_axis((0.0, 1.0, 0.0), lean), 0.2))
    graph = ringed(character, pieces, {"stand/0": ("stand/0",), "front/0": ("stand/0",), "back/0": ("stand/0",)})
    (done,) = run_graph(graph, character, [PathPlanner(graph, ["stand"])], 0.1 * 3 * PATIENCE)
    assert {entry.fragment for entry in done.performed} == {RAGDOLL}
    poses = [entry.pose for entry in done.performed]
    assert poses == ["front/0"] * PATIENCE + ["back/0"] * PATIENCE + ["front/0"] * PATIENCE


def test_what_is_learned_stays_though_it_has_a_mirror(character: Character) -> None:
    """Both pieces of the ring are each other's mirror; only the way in is refined."""
    pieces = [held(f"lie/{i}", character, FACE_DOWN, 0.12) for i in range(2)]
    pieces.append(held("in/0", character, FACE_DOWN, 0.12, None))
    graph = ringed(character, pieces, {"lie/0": ("lie/1",), "lie/1": ("lie/0",), "in/0": ("lie/0",)})
    config = OpenLoopConfig(rounds=1, round_visits=1, visits=1, samples=8)
    with PdRollouts(character) as rollouts:
        done = refine(graph, character, rollouts, config, 1, frozen=["lie/0", "lie/1"])
    for name in ("lie/0", "lie/1"):
        assert done.fragments[name] is graph.fragments[name]
    assert not np.array_equal(done.fragments["in/0"].targets, graph.fragments["in/0"].targets)


def test_the_rest_is_learned_before_rising(
    character: Character, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[list[str], Path, LearnConfig]] = []

    def learn(graph: ControlGraph, output: Path, config: LearnConfig, **_: Any) -> Learned:
        lacking = [name for name, fragment in graph.fragments.items() if fragment.policy is None]
        calls.append((lacking, output, config))
        done = replace(graph, fragments={n: replace(f, policy=NOTHING) for n, f in graph.fragments.items()})
        write_graph(done, output)
        return Learned(done, (), ())

    monkeypatch.setattr(progressive, "learn", learn)
    graph = with_rising(character)
    bare = replace(graph, fragments={n: replace(f, policy=None) for n, f in graph.fragments.items()})
    output = tmp_path / "learned.json"
    done = learn_in_parts(bare, output, LearnConfig())
    assert [(lacking, path.name) for lacking, path, _ in calls] == [
        (["stand/0", "stand/1"], "learned.part.json"),
        (["rise/0", "in/0"], "learned.part.json"),
    ]
    assert all(fragment.policy is not None for fragment in done.graph.fragments.values())
    assert calls[1][2].open_loop.samples > calls[0][2].open_loop.samples
    assert calls[1][2].trials.seconds == pytest.approx(0.1 + progressive.ON_S)
    assert (calls[0][2].hardening.iterations, calls[1][2].hardening.iterations) == (5, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["learned.json"]
    with pytest.raises(ConfigError, match="exists already"):
        learn_in_parts(bare, output, LearnConfig())
    calls.clear()
    learn_in_parts(graph, output, LearnConfig(), overwrite=True)
    assert [(lacking, path.name) for lacking, path, _ in calls] == [(["rise/0"], "learned.json")]  # of one part


def test_a_graph_s_cycles_are_its_skills_again(character: Character) -> None:
    skills = two_skills(character)
    graph = build_graph(skills, [], character).graph
    (ring,) = cycles_of(graph)  # of two cycles that nothing joins, one is kept
    made = next(skill for skill in skills if skill.name == ring.name)
    assert ring.cyclic
    assert ring.duration_s == pytest.approx(made.duration_s, rel=0.01)
    scale = made.duration_s / ring.duration_s
    times = np.linspace(0.05, 0.95, 9) * ring.duration_s
    np.testing.assert_allclose(ring.at(times)[2], made.at(times * scale)[2], atol=0.01)
    np.testing.assert_allclose(
        ring.at(times)[0] - ring.at(times)[0][0], made.at(times * scale)[0] - made.at(times * scale)[0][0], atol=0.01
    )


@needs_clips
def test_a_graph_grows_and_what_it_has_stays(character: Character, tmp_path: Path) -> None:
    clip, getup = Input("walk", "humanoid3d_walk"), Input("getup", "humanoid3d_getup_faceup")
    first = export_graph([clip], GraphOptions(gains="stunts")).built.graph
    learned = replace(first, fragments={n: replace(f, policy=NOTHING) for n, f in first.fragments.items()})
    path = tmp_path / "walk.json"
    write_graph(learned, path)
    known = Input(path.stem, str(path))
    made = export_graph([known, getup], GraphOptions(once=["getup"], rising=["getup"]))
    grown = made.built.graph
    assert grown.gains == "stunts"
    for name, fragment in learned.fragments.items():
        np.testing.assert_array_equal(grown.fragments[name].targets, fragment.targets)
        assert grown.fragments[name].policy is not None
        assert grown.successors[name] == learned.successors[name]
    (way,) = made.transitions
    assert (way.source, way.target) == ("getup", "walk")
    last = max((n for n in grown.fragments if n.startswith("getup-walk/")), key=lambda n: int(n.split("/")[1]))
    (entered,) = grown.successors[last]
    assert entered in learned.fragments
    np.testing.assert_allclose(
        grown.fragments[last].reference_angles[-1], learned.fragments[entered].reference_angles[0], atol=0.02
    )
    assert rising(grown) == ("getup/0",)
    with pytest.raises(ConfigError, match="has been made for stunts"):
        export_graph([known, getup], GraphOptions(once=["getup"], rising=["getup"], gains="locomotion"))
    with pytest.raises(GraphError, match="'walk' is in another graph, too"):
        export_graph([known, known], GraphOptions())
    with pytest.raises(ConfigError, match="have names already"):
        export_graph([Input("stroll", str(path)), getup], GraphOptions(rising=["getup"]))
    with pytest.raises(ConfigError, match="--rising walk: there is no such skill"):
        export_graph([known, getup], GraphOptions(rising=["walk"]))


def test_graphs_grow_together(character: Character, tmp_path: Path) -> None:
    """Two learned cycles in files of their own: both stay as they are, and ways between them are proposed; once."""
    files = []
    for skill, gains in (
        *((skill, "locomotion") for skill in two_skills(character)),
        (two_skills(character)[1], "stunts"),
    ):
        graph = build_graph([skill], [], character, gains=gains).graph
        learned = replace(graph, fragments={n: replace(f, policy=NOTHING) for n, f in graph.fragments.items()})
        files.append(tmp_path / f"{skill.name}-{gains}.json")
        write_graph(learned, files[-1])
    walk, run, stunts = (Input(file.stem, str(file)) for file in files)
    made = export_graph([walk, run], GraphOptions())
    assert {(way.source, way.target) for way in made.transitions} == {("walk", "run"), ("run", "walk")}
    graph = made.built.graph
    assert {f.skill for f in graph.fragments.values() if f.policy is not None} == {"walk", "run"}
    assert {f.skill for f in graph.fragments.values() if f.policy is None} == {"walk-run", "run-walk"}
    both = tmp_path / "both.json"
    write_graph(graph, both)
    assert export_graph([Input("both", str(both))], GraphOptions()).transitions == ()
    with pytest.raises(GraphError, match=r"walk-locomotion.json and .*run-stunts.json are for different gains"):
        export_graph([walk, stunts], GraphOptions())
    with pytest.raises(GraphError, match=r"one.json and other.json are for different bodies"):
        united([("one.json", graph), ("other.json", replace(graph, character="another"))])
