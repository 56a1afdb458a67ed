"""`mocap2ctrl push-test`, and `--environment` of the commands that simulate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Run
from graphs import random_graph

from mocap2ctrl.character.model import Character
from mocap2ctrl.graph.file import write_graph
from mocap2ctrl.motion.npz import read_motion
from mocap2ctrl.simulation.choose import has_bullet

PUSH_KEYS = {"front_n", "rear_n", "left_n", "right_n", "protocol", "undisturbed_s", "seconds", "cyclic", "engine"}


def test_push_test_s_object(capture: Path, run: Run) -> None:
    ran = run("push-test", capture, "--max-force", 40, "--step", 20, "--workers", 1, "--json")
    assert ran.code == 0, ran.err
    said = ran.json
    assert (said["skill"], said["torque_limit"]) == (None, None)
    assert set(said) >= PUSH_KEYS
    assert said["cyclic"] is False
    assert "a single push within the clip, not the paper's 40 s" in ran.err
    for side in ("front", "rear", "left", "right"):
        assert said[f"{side}_n"] in (0.0, 20.0, 40.0)
        assert said[f"{side}_n"] == min(said["by_phase_n"][side])


def test_push_test_for_people(capture: Path, run: Run) -> None:
    ran = run("push-test", capture, "--max-force", 20, "--environment", "ice", "--torque-limit", 0.9)
    assert ran.code == 0, ran.err
    assert "protocol" in ran.out
    assert "mujoco, ice" in ran.out


def test_graphs_have_options_of_their_own(capture: Path, run: Run, tmp_path: Path, character: Character) -> None:
    write_graph(random_graph(character), tmp_path / "graph.json")
    run("push-test", tmp_path / "graph.json", "--engine", "bullet").refused("--engine is for captures only")
    run("push-test", tmp_path / "graph.json", "--skill", "hop").refused("learned cycle")
    run("push-test", capture, "--skill", "walk").refused("--skill is for graphs")


def test_a_cycle_that_falls_is_told(capture: Path, run: Run) -> None:
    path = capture / "controller.json"
    data = json.loads(path.read_text())
    first, last = data["states"][0], data["states"][-1]
    last["exit"] = {"time": 0.2, "to": first["name"]}
    path.write_text(json.dumps(data))
    ran = run("push-test", capture, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["cyclic"] is False
    assert 0.1 < ran.json["undisturbed_s"] < 40
    assert ("without a push it falls at" in ran.err) == (ran.json["front_n"] is None)
    assert ("or falls by itself" in ran.err) == (ran.json["front_n"] is not None)


def test_push_test_refusals(capture: Path, run: Run, tmp_path: Path) -> None:
    run("push-test", tmp_path / "nowhere").refused("nowhere")
    run("push-test", capture, "--step", 50, "--max-force", 20).refused("the step is 50 N and the largest force 20 N")
    run("push-test", capture, "--workers", 0).refused("--workers", "from 1 to 256")
    run("push-test", capture, "--environment", "lava").refused("'lava'", "one of", "skis")


@pytest.mark.parametrize("command", ["simulate", "evaluate", "push-test"])
def test_environments_of_a_user(capture: Path, run: Run, tmp_path: Path, command: str) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("format = 1\n[slope]\ndegrees = 60\n")
    run(command, capture, "--environment", bad).refused(
        str(bad), "slope.degrees is 60; allowed is a number from -45 to 45"
    )
    tail = tmp_path / "tail.toml"
    tail.write_text('format = 1\n[[load]]\nsegment = "tail"\nmass_kg = 1\n')
    run(command, capture, "--environment", tail).refused("'tail'", "choose one of pelvis")
    if has_bullet():
        run(command, capture, "--environment", "trampoline", "--engine", "bullet").refused("no soft ground", "'mujoco'")


def test_evaluate_and_simulate_run_in_the_environment(
    capture: Path, run: Run, tmp_path: Path, character: Character
) -> None:
    level = run("evaluate", capture, "--json").json["joint_error_cm"]
    moon = run("evaluate", capture, "--environment", "moon", "--json").json["joint_error_cm"]
    assert moon != level
    assert "environment           moon" in run("evaluate", capture, "--environment", "moon").out
    steep = tmp_path / "steep.toml"
    steep.write_text("format = 1\n[slope]\ndegrees = 30\ndirection_degrees = 180\n")
    ran = run("simulate", capture, "--environment", steep, "--no-video", "--json")
    assert ran.code == 0, ran.err
    (folder,) = (capture / "simulations").iterdir()
    assert folder.name.startswith("steep-")  # and of another file of that name another number
    there = read_motion(folder / "motion.npz", character)
    plain = tmp_path / "plain"
    assert run("simulate", capture, "-o", plain, "--no-video").code == 0
    before = read_motion(plain / "motion.npz", character)
    assert there.root_position[0, 2] > before.root_position[0, 2]  # the heel behind stands higher
    np.testing.assert_array_equal(there.root_position[0, :2], before.root_position[0, :2])
    assert there.root_position[-1, 2] < there.root_position[0, 2]
