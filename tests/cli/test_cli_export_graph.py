"""`mocap2ctrl export-graph`: files, its object, what it tells and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import networkx
import numpy as np
import pytest
from conftest import Run

from mocap2ctrl.character.model import Character
from mocap2ctrl.fit.capture import load_capture
from mocap2ctrl.graph.file import read_graph
from mocap2ctrl.graph.sources import performance
from mocap2ctrl.motion.npz import write_motion


@pytest.fixture(scope="module")
def inputs(walk: str) -> tuple[str, str]:
    return f"walk={walk}", "run=humanoid3d_run"


def test_two_skills(inputs: tuple[str, str], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new" / "graph.json"
    said = run("export-graph", *inputs, "-o", path, "--symmetric", "walk", "run", "--json").json
    assert said["skills"] == ["walk", "run"]
    assert said["transitions"] == ["walk-run", "run-walk"]
    assert said["left_out"] == []
    graph = read_graph(path)
    assert (said["fragments"], said["edges"]) == (len(graph.fragments), sum(map(len, graph.successors.values())))
    assert networkx.is_strongly_connected(networkx.node_link_graph(json.loads(path.read_text())))
    told = graph.provenance["skills"]
    assert isinstance(told, list)
    assert [(s["name"], s["cyclic"], s["symmetric"]) for s in told] == [("walk", True, True), ("run", True, True)]
    assert len(told[0]["motion"]["sha256"]) == 64
    for picture in said["files"][1:]:
        image = cv2.imread(picture)
        assert image is not None
        assert np.ptp(image) > 200


def test_for_people_and_again(inputs: tuple[str, str], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    ran = run("export-graph", inputs[0], "-o", path, "--no-plots")
    assert ran.code == 0, ran.err
    assert "walk: 1.27 s, a cycle" in ran.out
    assert [file.name for file in tmp_path.iterdir()] == ["graph.json"]
    run("export-graph", inputs[0], "-o", path, "--no-plots").refused("exists already")
    assert run("export-graph", inputs[0], "-o", path, "--no-plots", "--overwrite").code == 0


def test_given_transitions_and_what_is_left_out(inputs: tuple[str, str], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    ways = ("--transition", "walk:0.5", "run:0.2", "--only-given", "--no-plots")
    ran = run("export-graph", *inputs, "-o", path, *ways)
    assert ran.code == 0
    assert "skill 'run' is left out" in ran.err
    assert "walk at 0.50 s to run" not in ran.out  # a way that is not there is not listed
    assert "too short for more" not in ran.err
    assert set(read_graph(path).successors) == {f"walk/{k}" for k in range(12)}
    long = run("export-graph", *inputs, "-o", path, "--blend", 4, "--no-plots", "--overwrite")
    assert long.code == 0, long.err
    assert "s, not 4 s: one is too short for more" in long.err


def test_mistakes(inputs: tuple[str, str], run: Run, tmp_path: Path) -> None:
    base = ("export-graph", *inputs, "-o", tmp_path / "graph.json")
    run(*base, "--gains", "weak").refused("choose one of locomotion, stunts")
    run(*base, "--symmetric", "jump").refused("--symmetric jump", "there are walk, run")
    run(*base, "--cyclic", "jump").refused("--cyclic jump")
    run(*base, "--transition", "walk", "run:0").refused("'walk' is no moment of a skill")
    run("export-graph", inputs[0], inputs[0], "-o", tmp_path / "g.json").refused("two skills are called 'walk'")
    run("export-graph", tmp_path, "-o", tmp_path / "g.json").refused("neither a capture nor a motion file")
    run("export-graph", inputs[0], "-o", tmp_path / "g.json", "--once", "walk").refused("nothing can be repeated")
    run("export-graph", inputs[0], "-o", tmp_path / "g.txt").refused("a graph's name ends in .json")
    assert list(tmp_path.iterdir()) == []


def test_bodies_must_agree(
    inputs: tuple[str, str], run: Run, tmp_path: Path, character: Character, capture: Path
) -> None:
    taller = character.scaled(1.9)
    write_motion(tmp_path / "tall.npz", load_capture(capture).reference, taller)
    out = tmp_path / "graph.json"
    run("export-graph", capture, tmp_path / "tall.npz", "-o", out).refused("different bodies, of 1.75 and 1.9 m")
    run("export-graph", tmp_path / "tall.npz", "-o", out, "--height", 1.6).refused("brings a body of 1.9 m")


def test_a_capture_shows_what_its_controller_does(capture: Path, run: Run, tmp_path: Path) -> None:
    fitted = load_capture(capture)
    clip = performance(fitted)
    assert clip.fps == pytest.approx(120.0)
    assert clip.duration_s == pytest.approx(fitted.reference.duration_s, abs=0.01)
    assert not np.allclose(clip.root_position[-1], fitted.reference.root_position[-1], atol=1e-3)
    np.testing.assert_allclose(clip.root_position[-1], fitted.reference.root_position[-1], atol=0.3)
    out = tmp_path / "graph.json"
    run("export-graph", capture, "-o", out).refused("nothing can be repeated")  # half a second of a walk
    run("export-graph", f"walk={capture}", "-o", out, "--cyclic", "walk").refused("has no cycle")


def test_a_capture_that_falls_shows_no_skill(capture: Path, run: Run, tmp_path: Path) -> None:
    path = capture / "controller.json"
    data = json.loads(path.read_text())
    data["start"]["root_orientation_wxyz"] = [0.5**0.5, 0.0, 0.5**0.5, 0.0]  # face down
    data["start"]["root_position"]["z"] = 0.2
    path.write_text(json.dumps(data))
    run("export-graph", capture, "-o", tmp_path / "graph.json").refused("its controller falls at")
