"""`mocap2ctrl learn`: what it writes and says, and what it refuses."""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from conftest import Run

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.cli import learn
from mocap2ctrl.cli.learn import _config, _graph
from mocap2ctrl.cli.learning_display import LearningDisplay
from mocap2ctrl.fit.lock import alone
from mocap2ctrl.graph.body import character_of, check_character, digest
from mocap2ctrl.graph.file import read_graph, write_graph
from mocap2ctrl.graph.fragments import ACTION_FEATURES, STATE_FEATURES, ControlGraph, FeedbackPolicy
from mocap2ctrl.graph.retarget import retargeted
from mocap2ctrl.motion.clips import close_loop
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.samcon.cycle import motion_graph
from mocap2ctrl.samcon.guided import SAMPLING, Iteration
from mocap2ctrl.samcon.hardening import HARDENING
from mocap2ctrl.samcon.learn import LearnConfig, Progress
from mocap2ctrl.samcon.mirrors import mirror_pairs

needs_clips = pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")


@pytest.fixture(scope="module")
def graph(character: Character) -> ControlGraph:
    """A walk with feedback that does nothing."""
    clip = close_loop(load_motion("humanoid3d_walk", character).clip)
    ring, _ = motion_graph(clip, character, skill="walk", gains="locomotion")
    nothing = FeedbackPolicy(
        np.zeros((ACTION_FEATURES, STATE_FEATURES)), np.zeros(ACTION_FEATURES), np.full(ACTION_FEATURES, 0.003)
    )
    return replace(ring, fragments={name: replace(f, policy=nothing) for name, f in ring.fragments.items()})


def tiny(options: argparse.Namespace) -> LearnConfig:
    """What the options say, in seconds."""
    config = _config(options)
    return replace(
        config,
        guided=replace(config.guided, lookahead=1, push_n=0.0, roll_back=4),
        hardening=replace(config.hardening, updates=1, bodies=12, actions=10),
        trials=replace(config.trials, runs=2, seconds=0.4),
    )


@needs_clips
def test_a_learned_graph_its_curve_and_what_is_said(
    graph: ControlGraph, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learn, "_config", tiny)
    source, output = tmp_path / "graph.json", tmp_path / "learned.json"
    write_graph(graph, source)
    options = ("--relearn", "--iterations", "1", "--visits", "20", "--samples", "10", "--hardening", "1")
    ran = run("learn", source, "-o", output, *options, "--json")
    assert ran.code == 0, ran.err
    said = ran.json
    assert {key: said[key] for key in ("graph", "fragments", "iterations", "best_iteration", "plot")} == {
        "graph": str(output),
        "fragments": 12,
        "iterations": 2,
        "best_iteration": 1,
        "plot": str(tmp_path / "learned.png"),
    }
    assert said["pushed_s"] > 0.0
    assert "iteration 2/2" in ran.err
    learned = read_graph(output)
    assert all(fragment.policy is not None for fragment in learned.fragments.values())
    np.testing.assert_array_equal(learned.fragments["walk/3"].targets, graph.fragments["walk/3"].targets)
    assert (tmp_path / "learned.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.json", "learned.json", "learned.png"]


@needs_clips
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("humanoid3d_walk", "-o", "walk.txt"), "a learned graph's name ends in .json"),
        (("humanoid3d_walk", "-o", "walk.json", "--gains", "strong"), "allowed are locomotion and stunts"),
        (("nothing.json", "-o", "walk.json"), "no such file"),
        (("graph.json", "-o", "walk.json", "--gains", "stunts"), "--gains is for motion files"),
        (("graph.json", "-o", "walk.json", "--symmetric", "no"), "--symmetric is for motion files"),
        (("graph.json", "-o", "walk.json", "--phase-reset", "no"), "--phase-reset is for motion files"),
        (("graph.json", "-o", "walk.json"), "has a policy already; --relearn"),
        (("graph.json", "-o", "graph.json", "--relearn"), "is the input, with which an interrupted learning goes on"),
        (("graph.json", "-o", "walk.json", "--relearn", "--resume"), "nothing to resume"),
        (("graph.json", "-o", "walk.json", "--iterations", "0"), "--iterations 0: nothing would be learned"),
        (("humanoid3d_walk", "-o", "walk.json", "--time-range", "0", "0.3"), "see export-graph --rising"),
        (("humanoid3d_walk", "-o", "walk.json", "--relearn"), "nothing of humanoid3d_walk is, so leave it out"),
    ],
)
def test_mistakes_are_told_in_one_line(
    words: tuple[str, ...], said: str, graph: ControlGraph, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_graph(graph, tmp_path / "graph.json")
    before = (tmp_path / "graph.json").read_bytes()
    ran = run("learn", *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["graph.json"]
    assert (tmp_path / "graph.json").read_bytes() == before


@needs_clips
def test_a_motion_whose_name_ends_as_a_graph_s(run: Run, tmp_path: Path) -> None:
    clip = (deepmimic_directory() / "humanoid3d_backflip.txt").read_bytes()  # type: ignore[operator]
    (tmp_path / "clip.json").write_bytes(clip)
    short = ("--time-range", 0, 0.3)
    run("learn", tmp_path / "clip.json", "-o", tmp_path / "learned.json", *short).refused("does not repeat itself")


@needs_clips
def test_another_body(graph: ControlGraph, run: Run, tmp_path: Path, character: Character) -> None:
    """As tall a body stands as high on the same legs; what cannot be driven so is refused."""
    text = resources.files("mocap2ctrl.character").joinpath("humanoid.toml").read_text("utf-8")
    tall = tmp_path / "tall.toml"
    tall.write_text(text.replace("height_m = 1.75", "height_m = 1.93"))
    body = load_character(tall)
    assert body.height_m == 1.93
    moved = retargeted(graph, body)
    assert moved.character == digest(body)
    check_character(moved, character_of(moved))
    scale = body.standing_height_m / character.standing_height_m
    assert scale == pytest.approx(1.93 / 1.75)
    for name, fragment in moved.fragments.items():
        own = graph.fragments[name]
        assert fragment.policy is None
        np.testing.assert_array_equal(fragment.targets, own.targets)
        np.testing.assert_allclose(fragment.reference_root_position, scale * own.reference_root_position)
    assert mirror_pairs(moved, body) == mirror_pairs(graph, character)
    write_graph(graph, tmp_path / "graph.json")
    write_graph(moved, tmp_path / "moved.json")
    assert read_graph(tmp_path / "moved.json").character == digest(body)
    short = ("learn", tmp_path / "graph.json", "-o", tmp_path / "learned.json", "--height", 1.93)
    run(*short, "--relearn").refused("--relearn goes on", "--height")
    parser = argparse.ArgumentParser()
    learn.add_arguments(parser)
    by_height = _graph(parser.parse_args([str(word) for word in short[1:]]))
    assert by_height.character == digest(load_character(height_m=1.93))
    assert by_height.fragments.keys() == moved.fragments.keys()
    other = tmp_path / "other.toml"
    other.write_text(text.replace("mass_kg = 75.0", "mass_kg = 82.0"))
    assert load_character(other).mass_kg == 82.0
    write_graph(retargeted(graph, load_character(other)), tmp_path / "moved.json")
    run("learn", tmp_path / "moved.json", *short[2:]).refused("is not the built-in one", "--character")
    words = ("learn", tmp_path / "graph.json", "-o", tmp_path / "learned.json", "--character", tall)
    run(*words, "--relearn").refused("--relearn goes on", "--character")
    tall.write_text(text.replace('name = "extension"', 'name = "lift"'))
    run(*words).refused("lacks left_toes.extension, right_toes.extension")


def test_the_best_iteration_is_told_beside_the_latest(capsys: pytest.CaptureFixture[str]) -> None:
    done = [
        Iteration(n, SAMPLING, 0, 80.0, 80.0, 1.0, {"pose": 1.0}, 3.0, 60.0, pushed)
        for n, pushed in ((1, 20.0), (2, 15.0))
    ]
    with LearningDisplay() as display:
        for number in (1, 2):
            display.progress(Progress("iterations", 1.0, number, 3, done[:number]))
    last = " ".join(capsys.readouterr().err.split()).split("iteration 2/3")[1]
    assert "15 s under pushes" in last
    assert "best so far: iteration 1, 20 s" in last


@needs_clips
def test_another_s_picture_is_not_replaced(graph: ControlGraph, run: Run, tmp_path: Path) -> None:
    write_graph(graph, tmp_path / "graph.json")
    picture = tmp_path / "walk.png"
    picture.write_bytes(b"mine")
    run("learn", tmp_path / "graph.json", "-o", tmp_path / "walk.json", "--relearn").refused("walk.png: exists already")
    assert picture.read_bytes() == b"mine"


@needs_clips
def test_the_output_s_folder_is_made(
    graph: ControlGraph, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learn, "_config", tiny)
    write_graph(graph, tmp_path / "graph.json")
    output = tmp_path / "new" / "er" / "learned.json"
    options = ("--relearn", "--iterations", "1", "--visits", "20", "--samples", "10", "--hardening", "0")
    ran = run("learn", tmp_path / "graph.json", "-o", output, *options)
    assert ran.code == 0, ran.err
    assert output.is_file()


@needs_clips
def test_one_call_at_a_time(graph: ControlGraph, run: Run, tmp_path: Path) -> None:
    path, output = tmp_path / "graph.json", tmp_path / "learned.json"
    write_graph(graph, path)
    with alone(output):
        run("learn", path, "-o", output, "--relearn").refused(f"{output}: another call is at work on it")
    assert list(tmp_path.iterdir()) == [path]


def test_each_part_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Of each its own iterations; a part begins with its name."""
    done = tuple(
        Iteration(number, SAMPLING, 0, 80.0, 80.0, 1.0, {"pose": 1.0}, 3.0, 120.0, 10.0 * number) for number in (1, 2)
    )
    with LearningDisplay() as display:
        for part in ("walk", "run"):
            display.progress(Progress("sampling", 0.5, 1, 2, (), part))
            for number in (1, 2):
                display.progress(Progress("iterations", 1.0, number, 2, done[:number], part))
    lines = capsys.readouterr().err.splitlines()
    heads = [line.split(":")[0] for line in lines]
    one = ["sampling …", "iteration 1/2", "iteration 2/2"]
    assert heads == ["learning walk …", *one, "learning run …", *one]


def test_time_left_and_what_is_gone_on_with(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of five iterations sample and take 10 s each, after an open loop of a minute; two harden, and are guessed at 50 s."""
    clock = [0.0]
    monkeypatch.setattr("mocap2ctrl.cli.learning_display.time.monotonic", lambda: clock[0])
    stages = (SAMPLING, SAMPLING, SAMPLING, HARDENING, HARDENING)
    done = tuple(
        Iteration(n, stage, 0, 80.0, 80.0, 1.0, {"pose": 1.0}, 3.0, 60.0, 20.0) for n, stage in enumerate(stages, 1)
    )
    with LearningDisplay() as display:
        display.progress(Progress("open-loop control", 0.0, 0, 5, (), hardening=2))
        clock[0] = 60.0
        display.progress(Progress("open-loop control", 1.0, 0, 5, (), hardening=2))
        for number, seconds in enumerate((10.0, 10.0, 10.0, 60.0, 60.0), 1):
            display.progress(Progress("sampling", 0.5, number, 5, done[: number - 1], hardening=2))
            clock[0] += seconds
            display.progress(Progress("iterations", 1.0, number, 5, done[:number], hardening=2))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("iteration")]
    left = [line.rsplit("; ", 1)[1] for line in lines]
    assert left == ["2 min left", "2 min left", "2 min left", "60 s left", "0 s left"]  # 120, 110 and 100 s at first
    with LearningDisplay() as display:
        display.progress(Progress("sampling", 0.5, 3, 5, done[:2], hardening=2))
    assert "going on after iteration 2 of 5; best so far: iteration 1, 20 s" in capsys.readouterr().err


@needs_clips
def test_hardening_alone(graph: ControlGraph, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[LearnConfig] = []

    def config(options: argparse.Namespace) -> LearnConfig:
        small = tiny(options)
        seen.append(replace(small, hardening=replace(small.hardening, updates=2, actions=120)))
        return seen[-1]

    monkeypatch.setattr(learn, "_config", config)
    path, output = tmp_path / "graph.json", tmp_path / "learned.json"
    earlier = {"config": {"trials": {"push_s": 0.4}}, "iterations": [{"pushed_s": 90.0}, {"pushed_s": 70.0}]}
    write_graph(replace(graph, provenance={"learning": earlier}), path)
    words = ("learn", path, "-o", output, "--iterations", 0)
    run(*words).refused("--iterations 0: nothing would be learned")
    run(*words, "--relearn", "--hardening", 0).refused("--iterations 0: nothing would be learned")
    run(*words[:-2], "--hardening", 0, "--push-sides", 1, 1, 1).refused("--push-sides: --hardening 0 leaves out")
    done = run(*words, "--relearn", "--hardening", 1, "--push-for", 0.4, "--push-sides", 210, 300, 240)
    assert done.code == 0
    assert seen[-1].hardening.push_sides == (0.7, 1.0, 0.8)
    assert f"{path} stood 90 s under growing pushes when it was learned, which is longer" in done.err
    assert (seen[-1].guided.iterations, seen[-1].hardening.iterations) == (0, 1)
    assert (seen[-1].hardening.push_s, seen[-1].trials.push_s, seen[-1].hardening.divergence) == (0.4, 0.4, 0.05)
    learned = read_graph(output)
    for name, fragment in graph.fragments.items():
        np.testing.assert_array_equal(learned.fragments[name].targets, fragment.targets)
    assert any((f.policy.gain != 0.0).any() for f in learned.fragments.values() if f.policy)
    done = run(
        *words, "--relearn", "--hardening", 1, "--overwrite"
    )  # pushes of 0.2 s tell nothing about those of 0.4 s
    assert done.code == 0
    assert "longer: keep it" not in done.err
