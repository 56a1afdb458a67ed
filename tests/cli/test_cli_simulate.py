"""`mocap2ctrl evaluate` and `simulate`: they run controller.json as it stands, edits included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from conftest import Run, contents

from mocap2ctrl.character.model import Character
from mocap2ctrl.motion.npz import read_motion

EVALUATE_KEYS = {"joint_error_cm", "root_aligned_error_cm", "silhouette_iou", "fell", "frames"}


def simulated(run: Run, capture: Path, output: Path, character: Character, *options: object) -> np.ndarray:
    """(T, 3 + J) root positions and angles of a simulation without video."""
    ran = run("simulate", capture, "-o", output, "--no-video", "--json", *options)
    assert ran.code == 0, ran.err
    clip = read_motion(output / "motion.npz", character)
    return np.concatenate([clip.root_position, clip.angles], axis=1)


def edit(capture: Path, change: Any) -> None:
    path = capture / "controller.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def test_evaluate_s_object(capture: Path, run: Run) -> None:
    said = run("evaluate", capture, "--json").json
    assert set(said) >= EVALUATE_KEYS
    assert said["silhouette_iou"] is None
    assert said["frames"] == 61
    assert said["root_aligned_error_cm"] > 0
    assert 0 < said["source_error_cm"] < 40


def test_evaluate_for_people(capture: Path, run: Run) -> None:
    ran = run("evaluate", capture)
    assert ran.code == 0
    assert "joint error" in ran.out
    assert "cm" in ran.out


def test_evaluate_changes_nothing(capture: Path, run: Run) -> None:
    before = contents(capture)
    run("evaluate", capture)
    assert contents(capture) == before


def test_evaluate_against_a_file(capture: Path, walk_bvh: Path, walk: str, run: Run) -> None:
    """The file that it was fitted to gives the same number; the whole walk, which is longer, another."""
    own = run("evaluate", capture, "--json").json
    same = run("evaluate", capture, "--reference", walk_bvh, "--json").json
    assert same["joint_error_cm"] == pytest.approx(own["joint_error_cm"], rel=1e-9)
    other = run("evaluate", capture, "--reference", walk, "--json").json
    assert other["frames"] > own["frames"]
    run("evaluate", capture, "--reference", "nowhere.bvh").refused("nowhere.bvh")


def test_a_valid_hand_edit_changes_the_simulation(
    capture: Path, run: Run, tmp_path: Path, character: Character
) -> None:
    before = simulated(run, capture, tmp_path / "a", character)
    error = run("evaluate", capture, "--json").json["joint_error_cm"]

    def raise_an_arm(data: Any) -> None:
        for state in data["states"]:
            state["target"]["angles"]["left_upper_arm.flexion"] = 1.5

    edit(capture, raise_an_arm)
    after = simulated(run, capture, tmp_path / "b", character)
    column = 3 + character.hinge_names.index("left_upper_arm.flexion")
    assert after[-1, column] > before[-1, column] + 0.5
    assert run("evaluate", capture, "--json").json["joint_error_cm"] > error + 0.5


def test_the_motion_file_is_never_trusted(capture: Path, run: Run, tmp_path: Path, character: Character) -> None:
    before = simulated(run, capture, tmp_path / "a", character)
    (capture / "motion.npz").write_bytes(b"nonsense")
    np.testing.assert_array_equal(simulated(run, capture, tmp_path / "b", character), before)


def test_simulate_s_object_and_files(capture: Path, run: Run, character: Character) -> None:
    ran = run("simulate", capture, "--seconds", 0.4, "--json")
    said = ran.json
    assert set(said) == {"seconds", "fell", "fell_at_s", "engine", "environment"}
    assert said["environment"] == "level ground"
    assert said["seconds"] == pytest.approx(0.4, abs=0.02)
    assert (said["fell"], said["fell_at_s"]) == (False, None)
    folder = capture / "simulations" / "0.4s"
    assert {p.name for p in folder.iterdir()} == {"motion.npz", "motion.bvh", "overlay.mp4"}
    with av.open(str(folder / "overlay.mp4")) as video:
        assert video.streams.video[0].width > 0
    assert read_motion(folder / "motion.npz", character).duration_s == pytest.approx(0.4, abs=0.02)


def test_simulate_lasts_as_long_as_the_clip_unless_told(capture: Path, run: Run) -> None:
    ran = run("simulate", capture, "--no-video")
    assert ran.code == 0
    assert "simulated 0.50 s" in ran.out
    assert str(capture / "simulations" / "replay" / "motion.bvh") in ran.out


def test_a_long_simulation_of_half_a_second_of_walking_falls(capture: Path, run: Run) -> None:
    said = run("simulate", capture, "--seconds", 6, "--no-video", "--json").json
    assert said["fell"] is True
    assert 0.3 < said["fell_at_s"] < 6


def test_the_shortest_simulation(capture: Path, run: Run) -> None:
    assert run("simulate", capture, "--seconds", 0.01, "--no-video", "--json").code == 0


def test_a_push_moves_the_body_its_way_and_only_from_when_on(
    capture: Path, run: Run, tmp_path: Path, character: Character
) -> None:
    plain = simulated(run, capture, tmp_path / "plain", character)
    options = ("--push-at", 0.2, "--push-for", 0.1)
    left = simulated(run, capture, tmp_path / "left", character, "--push", 0, 300, 0, *options)
    right = simulated(run, capture, tmp_path / "right", character, "--push", 0, -300, 0, *options)
    first = round(0.2 * 30) + 1
    np.testing.assert_array_equal(left[:first], plain[:first])
    assert not np.array_equal(left[first], plain[first])
    assert left[-1, 1] > plain[-1, 1] + 0.01
    assert right[-1, 1] < plain[-1, 1] - 0.01


def test_weak_joints_move_otherwise(capture: Path, run: Run, tmp_path: Path, character: Character) -> None:
    plain = simulated(run, capture, tmp_path / "plain", character)
    full = simulated(run, capture, tmp_path / "full", character, "--torque-limit", 1.0)
    weak = simulated(run, capture, tmp_path / "weak", character, "--torque-limit", 0.05)
    np.testing.assert_array_equal(full, plain)
    assert weak[-1, 2] < plain[-1, 2] - 0.02


def test_simulations_with_other_options_do_not_overwrite_each_other(capture: Path, run: Run) -> None:
    for options in (("--push-for", 0.4), ("--push-at", 0.1), ("--push-for", 0.2), ("--push-at", 0.3)):
        assert run("simulate", capture, "--no-video", "--seconds", 0.6, "--push", 50, 0, 0, *options).code == 0
    assert len(list((capture / "simulations").iterdir())) == 4


def test_environments_of_one_name_have_a_folder_each(capture: Path, run: Run, tmp_path: Path) -> None:
    names = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "hill.toml").write_text(f'format = 1\nname = "{place}"\n[slope]\ndegrees = 2\n')
        options = ("--no-video", "--seconds", 0.05, "--json", "--environment", tmp_path / place / "hill.toml")
        names.append(run("simulate", capture, *options).json["environment"])
    assert names == ["one", "two"]
    folders = [folder.name for folder in (capture / "simulations").iterdir() if "hill-" in folder.name]
    assert len(folders) == 2
    assert run("simulate", capture, "--no-video", "--seconds", 0.05, "--environment", "moon").code == 0
    assert (capture / "simulations" / "0.05s-moon").is_dir()


def test_an_output_that_cannot_be_written_is_one_line(capture: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for output in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "m" / ("a" * 300)):
        run("simulate", capture, "--no-video", "-o", output).refused(str(output), "another -o")
    assert not (tmp_path / "m").exists()


def test_a_simulation_never_replaces_a_capture_s_own_motion(capture: Path, run: Run) -> None:
    before = contents(capture)
    run("simulate", capture, "-o", capture).refused(str(capture), "is a capture", "another -o")
    assert contents(capture) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--push-at", 0.1), ("--push-at", "goes with --push")),
        (("--push-for", 0.1), ("--push-for", "goes with --push")),
        (("--push-every", 4), ("--push-every", "goes with --push")),
        (
            ("--push", 80, 0, 0, "--push-at", 0.1, "--push-every", 0.2),
            ("0.4 s every 0.2 s would overlap", "--push-every"),
        ),
        (("--push", 80, 0, 0, "--push-at", 99), ("the push at 99 s", "0.50 s are simulated", "--seconds")),
        (("--push", 80, 0, 0), ("the push at 0.5 s", "0.50 s are simulated", "--push-at")),
    ],
)
def test_a_push_that_would_not_be_felt_is_refused(capture: Path, run: Run, options: tuple, says: tuple) -> None:
    run("simulate", capture, "--no-video", *options).refused(*says)
    assert not (capture / "simulations").exists()


def test_a_motion_that_is_there_asks_for_another_motion(capture: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.glb").write_bytes(b"mine")
    ran = run("simulate", capture, "--no-video", "--motion", tmp_path / "s.glb")
    ran.refused("s.glb", "another --motion")
    assert "another -o" not in ran.err
