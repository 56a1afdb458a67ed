"""`mocap2ctrl simulate GRAPH` and `export-policy`: files, their objects, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from conftest import Run
from graphs import two_skills

from mocap2ctrl.character.model import Character
from mocap2ctrl.graph.build import build_graph
from mocap2ctrl.graph.file import write_graph
from mocap2ctrl.graph.transitions import Transition
from mocap2ctrl.motion.npz import read_motion
from mocap2ctrl.simulation.choose import has_bullet


@pytest.fixture
def graph(tmp_path: Path, character: Character) -> Path:
    """A walk and a run, never learned."""
    ways = (Transition("walk", 0.3, "run", 0.1, 0.4, 0.3, 0.0), Transition("run", 0.1, "walk", 0.5, 0.8, 0.3, 0.0))
    path = tmp_path / "graph.json"
    write_graph(build_graph(two_skills(character), ways, character).graph, path)
    return path


def test_a_path(graph: Path, run: Run, character: Character) -> None:
    said = run("simulate", graph, "--path", "walk, run", "--seconds", 3, "--no-video", "--json").json
    assert set(said) == {"seconds", "fell", "fell_at_s", "fragments", "environment", "engine", "folder"}
    assert said["seconds"] == 3.0
    assert said["fell"] is True
    assert 0.2 < said["fell_at_s"] < 3.0
    folder = graph.parent / "graph.simulations" / "walk_run-3s"
    assert {file.name for file in folder.iterdir()} == {"motion.npz", "motion.bvh"}
    clip = read_motion(folder / "motion.npz", character)
    assert (len(clip), clip.fps) == (301, 100.0)


def test_random_walks_by_seed(graph: Path, run: Run, character: Character, tmp_path: Path) -> None:
    def end(seed: int, out: str) -> np.ndarray:
        ran = run("simulate", graph, "--seed", seed, "--seconds", 1, "--no-video", "-o", tmp_path / out)
        assert ran.code == 0, ran.err
        return read_motion(tmp_path / out / "motion.npz", character).angles[-1]

    np.testing.assert_array_equal(end(1, "a"), end(1, "b"))
    assert not np.allclose(end(1, "c"), end(2, "d"))


def test_video_and_other_formats(graph: Path, run: Run, tmp_path: Path) -> None:
    ran = run("simulate", graph, "--seconds", 0.4, "-o", tmp_path / "out", "--motion", tmp_path / "walk.csv")
    assert ran.code == 0, ran.err
    assert "overlay.mp4" in ran.out
    assert (tmp_path / "walk.csv").exists()
    with av.open(str(tmp_path / "out" / "overlay.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == 13


def test_towards_a_goal(graph: Path, run: Run) -> None:
    said = run("simulate", graph, "--goal", "-1,0.5", "--seconds", 0.5, "--no-video", "--json").json
    assert 0.5 < said["nearest_m"] < 1.3
    run("simulate", graph, "--goal", "1", "--no-video").refused("allowed is X,Y in metres")
    run("simulate", graph, "--goal", "1,x", "--no-video").refused("allowed is X,Y in metres")


def test_in_another_environment(graph: Path, run: Run, character: Character, tmp_path: Path) -> None:
    ends = []
    for name, options in (("level", ()), ("moon", ("--environment", "moon"))):
        ran = run("simulate", graph, "--path", "walk", "--seconds", 0.4, "-o", tmp_path / name, *options)
        assert ran.code == 0, ran.err
        assert (tmp_path / name / "overlay.mp4").exists()
        ends.append(read_motion(tmp_path / name / "motion.npz", character).root_position[-1])
    assert not np.allclose(*ends, atol=1e-3)
    run("simulate", graph, "--environment", "mars").refused("mars")
    run("simulate", graph, "--environment", "moon", "--characters", 2).refused("is for one character")


@pytest.mark.skipif(not has_bullet(), reason="pybullet is not installed")
def test_in_another_engine(graph: Path, run: Run, character: Character) -> None:
    said = run("simulate", graph, "--path", "walk", "--seconds", 0.3, "--engine", "bullet", "--no-video", "--json").json
    assert said["engine"] == "bullet"
    here = run("simulate", graph, "--path", "walk", "--seconds", 0.3, "--no-video", "--json").json
    assert here["engine"] == "mujoco"
    folder = graph.parent / "graph.simulations"
    one, other = (read_motion(folder / name / "motion.npz", character) for name in ("walk-0.3s-bullet", "walk-0.3s"))
    assert 0.0 < np.abs(one.angles[-1] - other.angles[-1]).max() < 0.2
    run("simulate", graph, "--engine", "bullet", "--characters", 2, "--no-video").refused("one character at a time")


def test_company(graph: Path, run: Run, character: Character, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = run("simulate", graph, "--characters", 2, "--seconds", 0.4, "-o", out, "--json").json
    assert len(said["all_fell_at_s"]) == 2
    assert said["met"] == [[], []]
    assert {file.name for file in out.iterdir()} == {
        "motion_1.npz",
        "motion_1.bvh",
        "motion_2.npz",
        "motion_2.bvh",
        "stage.mp4",
    }
    one, two = (read_motion(out / f"motion_{k}.npz", character) for k in (1, 2))
    np.testing.assert_allclose(one.root_position[0, :2], -two.root_position[0, :2], atol=1e-9)
    told = run("simulate", graph, "--characters", 2, "--seconds", 0.1, "-o", tmp_path / "again", "--no-video").out
    assert Path(told.splitlines()[-1].removeprefix("look at ")) == tmp_path / "again" / "motion_1.bvh"
    assert (tmp_path / "again" / "motion_1.bvh").is_file()


def test_pushes_come_again_and_have_a_folder_each(graph: Path, run: Run, character: Character, tmp_path: Path) -> None:
    push = ("--seconds", 1, "--no-video", "--push", 0, 200, 0, "--push-at", 0.1, "--push-for", 0.1)
    run("simulate", graph, *push)
    run("simulate", graph, *push, "--push-every", 0.3)
    once, again = (
        read_motion(tmp_path / "graph.simulations" / name / "motion.npz", character)
        for name in ("1s-push_0_200_0_at_0.1s_for_0.1s", "1s-push_0_200_0_at_0.1s_for_0.1s_every_0.3s")
    )
    np.testing.assert_array_equal(again.root_position[:40], once.root_position[:40])
    assert not np.allclose(again.root_position[50], once.root_position[50])


def test_mistakes(graph: Path, capture: Path, run: Run, tmp_path: Path) -> None:
    run("simulate", graph, "--path", "jump", "--no-video").refused("no skill 'jump'", "there are walk, run")
    run("simulate", graph, "--path", "walk,", "--no-video").refused("the path has an empty name", "there are walk, run")
    run("simulate", graph, "--path", "walk", "--seed", 1).refused("--path and --seed")
    run("simulate", graph, "--engine", "ode", "--no-video").refused("engine 'ode' is not available")
    assert run("simulate", graph, "--engine", "", "--no-video").code == 2
    run("simulate", graph, "--diverged", 1).refused("--diverged is for captures only")
    run("simulate", graph, "--push-at", 1).refused("--push-at goes with --push")
    run("simulate", graph, "--push", 1, 0, 0, "--push-at", 60).refused("would come after the end")
    run("simulate", graph, "--push", 1, 0, 0, "--push-every", 0.1).refused("0.4 s every 0.1 s would overlap")
    run("simulate", capture, "--path", "walk").refused("--path is for graphs (FILE.json) only")
    run("simulate", tmp_path / "none.json").refused("no such file")
    run("simulate", capture / "controller.json").refused("graph is missing")
    run("simulate", graph, "--no-video", "-o", capture).refused("is a capture")
    assert not (tmp_path / "graph.simulations").exists()


def test_export_policy(graph: Path, run: Run, tmp_path: Path) -> None:
    ran = run("export-policy", graph, "-o", tmp_path / "policy", "--json")
    assert (ran.json["fragments"], ran.json["learned"]) == (23, 0)
    assert "have no feedback" in ran.err
    assert {file.name for file in (tmp_path / "policy").iterdir()} == {"policy.npz", "policy.json", "character.xml"}
    run("export-policy", graph, "-o", tmp_path / "policy").refused("exists already")
    run("export-policy", tmp_path / "policy" / "policy.json", "-o", tmp_path / "other").refused("graph is missing")
