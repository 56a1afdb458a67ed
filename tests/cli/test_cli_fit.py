"""`mocap2ctrl fit` from end to end, on half a second of a walk."""

from __future__ import annotations

import json
import re
import resource
import tomllib
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from conftest import FIT_KEYS, TINY, Fitted, Run, contents

from mocap2ctrl import api
from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.fit import config
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.npz import read_motion
from mocap2ctrl.types import Array, MotionClip

FILES = (
    "controller.json",
    "character.toml",
    "target.npz",
    "motion.npz",
    "motion.bvh",
    "overlay.mp4",
    "report.html",
    "config.toml",
    "log.jsonl",
    "checkpoint/journal.bin",
    "checkpoint/controller.sha256",
)


def points_of(clip: MotionClip, character: Character) -> Array:
    """(T, 15, 3) the clip's joints, from where its root begins."""
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    return evaluation_points(character, *frames) - clip.root_position[0]


def log_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def structure_of(folder: Path) -> str:
    return str(json.loads((folder / "controller.json").read_text())["structure"])


def test_prints_one_object_with_the_contract_s_keys(fitted: Fitted) -> None:
    assert fitted.ran.code == 0
    said = fitted.ran.json
    assert set(said) == FIT_KEYS
    assert said["capture"] == str(fitted.folder)
    assert said["silhouette_iou"] is None
    assert 0.1 < said["joint_error_cm"] < 30.0
    assert said["fell"] is False
    assert said["states"] >= 1
    assert said["evaluations"] == sum(r for r in _generation_sizes(fitted.folder))
    assert said["diverged"] == 0
    assert said["wall_s"] > 0
    assert said["core_s"] > 0
    assert "walk: bvh, 0.50 s" in fitted.ran.err


def _generation_sizes(folder: Path) -> list[int]:
    data = (folder / "checkpoint" / "journal.bin").read_bytes()
    offset = data.index(b"\n", data.index(b"\n") + 1) + 1
    sizes = []
    while offset < len(data):
        size = int.from_bytes(data[offset : offset + 4], "little")
        sizes.append(int.from_bytes(data[offset + 12 : offset + 16], "little"))
        offset += 8 + size
    return sizes


def test_writes_the_whole_capture_folder_and_nothing_else(fitted: Fitted) -> None:
    assert set(contents(fitted.folder)) == set(FILES)


def test_the_fit_is_better_than_its_guess(fitted: Fitted) -> None:
    """The first generation of the first stage holds the guess; every stage only improves on what it begins with."""
    log = log_of(fitted.folder)
    generations = [e for e in log if e["event"] == "generation"]
    stages = [e for e in log if e["event"] == "stage"]
    by_stage: dict[object, list[float]] = {}
    for entry in generations:
        by_stage.setdefault(entry["stage"], []).append(float(str(entry["cost"])))
    assert len(by_stage) == len(stages) == 2
    for costs in by_stage.values():
        assert costs == sorted(costs, reverse=True)
    first = next(iter(by_stage.values()))
    assert first[-1] < first[0]


def test_every_file_is_what_it_says(fitted: Fitted, character: Character) -> None:
    folder = fitted.folder
    motion = read_motion(folder / "motion.npz", character)
    assert motion.fps == 30.0  # the file's own
    assert motion.duration_s == pytest.approx(0.5, abs=0.01)
    bvh = load_motion(folder / "motion.bvh", character)
    assert len(bvh.clip) == len(motion)
    # read back as a motion file: its feet are planted, which moves knees most
    assert points_of(bvh.clip, character) == pytest.approx(points_of(motion, character), abs=0.06)
    with av.open(str(folder / "overlay.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) > 5
    report = (folder / "report.html").read_text()
    assert "</html>" in report
    assert not re.search(r"(src|href)=.https?://", report)
    settings = tomllib.loads((folder / "config.toml").read_text())
    assert settings["fit"]["generations"] == 4
    assert settings["run"]["engine"] == "mujoco"
    controller = json.loads((folder / "controller.json").read_text())
    assert controller["provenance"]["seed"] == 1
    assert controller["provenance"]["input"]["file"] == "walk.bvh"
    assert len(controller["provenance"]["input"]["sha256"]) == 64
    assert re.fullmatch(
        r"mocap2ctrl fit \S+walk\.bvh -o \S+ --budget tiny .*--json", controller["provenance"]["command"]
    )


def test_evaluate_gives_the_same_number_from_the_controller_alone(fitted: Fitted, capture: Path, run: Run) -> None:
    for name in ("motion.npz", "motion.bvh", "overlay.mp4", "report.html", "log.jsonl", "checkpoint/journal.bin"):
        (capture / name).unlink()
    said = run("evaluate", capture, "--json").json
    assert said["joint_error_cm"] == fitted.ran.json["joint_error_cm"]
    assert said["fell"] is False


def test_speaks_to_people_without_json(walk_bvh: Path, tmp_path: Path, run: Run) -> None:
    """Two workers, batch method, another height, part of the file: what is said and what is written agree."""
    folder = tmp_path / "walk"
    ran = run(
        *("fit", walk_bvh, "-o", folder, "--budget", "tiny", "--workers", 2, "--method", "batch"),
        *("--height", 1.5, "--time-range", 0.05, 0.45, "--seed", 7, "--torque-limit", 0.8),
    )
    assert ran.code == 0
    assert "joint error" in ran.out
    assert str(folder / "report.html") in ran.out
    assert re.search(r"stage 1/1", ran.err)
    capture = api.load(folder)
    assert capture.character.height_m == 1.5
    assert capture.reference.duration_s == pytest.approx(0.4, abs=0.02)
    assert capture.config.method == "batch"
    assert capture.config.seed == 7
    assert capture.torque_scale == 0.8
    assert len(capture.finished_controller().states) == 2
    assert structure_of(folder).endswith("1→T→2")


def test_refining_tells_what_became_of_it(walk_bvh: Path, tmp_path: Path, run: Run) -> None:
    ran = run("fit", walk_bvh, "-o", tmp_path / "w", "--refine", *TINY)
    assert ran.code == 0, ran.err
    assert "note: exits on contact: " in ran.err
    assert "note: the cycle: left out" in ran.err
    stages = [line.split(" · ")[:2] for line in ran.err.splitlines() if line.startswith("stage ")]
    count = len(api.load(tmp_path / "w").finished_controller().states)
    assert re.fullmatch(r"stage (\d+)/\1", stages[-1][0])
    assert stages[-1][1] == f"{count} states"
    assert stages[0][1] == "1 state"
    for option in ("--cyclic", "--refine"):
        refused = run("fit", walk_bvh, "-o", tmp_path / "b", option, "--method", "batch", *TINY)
        refused.refused(f"{option} goes with --method incremental, not with batch")


def test_a_robust_fit_says_in_how_many_worlds_it_stands(walk_bvh: Path, tmp_path: Path, run: Run) -> None:
    ran = run("fit", walk_bvh, "-o", tmp_path / "w", "--robust", *TINY)
    assert ran.code == 0, ran.err
    assert "note: robust: stands in 49 of 49 worlds, its own among them, " in ran.err
    assert "cm over all worlds" in ran.err
    run("fit", walk_bvh, "-o", tmp_path / "b", "--robust", "--method", "batch", *TINY).refused(
        "--robust goes with --method"
    )
    run("fit", walk_bvh, "-o", tmp_path / "c", "--robust", "--cyclic", *TINY).refused("--robust is for chains")


def test_a_prior_shapes_the_targets(walk: str, tmp_path: Path, run: Run) -> None:
    """Target poses are coefficients of the prior; the capture holds it, and a warning says what it contains."""
    folder = tmp_path / "walk"
    ran = run(
        *("fit", walk, "-o", folder, "--budget", "tiny", "--workers", 1, "--prior", "walk", "--time-range", 0, 0.3),
        "--json",
    )
    assert ran.code == 0
    assert "trained on this very clip" in ran.err
    assert (folder / "prior.npz").is_file()
    controller = json.loads((folder / "controller.json").read_text())
    assert controller["prior"] == "walk"
    size = api.load(folder).prior.size
    assert size < 31
    assert all(len(state["target"]["coefficients"]) == size for state in controller["states"])
    assert run("evaluate", folder, "--json").json["joint_error_cm"] == ran.json["joint_error_cm"]


def test_cycles_repeat_a_loop(walk: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's period twice; one generation is enough to see what is fitted."""
    monkeypatch.setitem(config.BUDGETS, "tiny", replace(config.BUDGETS["tiny"], generations=1, stage_s=0.5))  # type: ignore[arg-type]
    folder, clip = tmp_path / "two", walk.replace("walk", "run")
    assert run("fit", clip, "-o", folder, "--budget", "tiny", "--workers", 1, "--cycles", 2, "--json").code == 0
    once, twice = load_motion(clip, api.load(folder).character).clip, api.load(folder).reference
    assert twice.duration_s == pytest.approx(2 * once.duration_s)
    travels = [np.linalg.norm(c.root_position[-1, :2] - c.root_position[0, :2]) for c in (once, twice)]
    assert travels[0] > 1.0
    assert travels[1] == pytest.approx(2 * travels[0], rel=0.1)


def test_output_defaults_to_captures_and_the_input_s_name(
    walk_bvh: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("fit", walk_bvh, "--budget", "tiny", "--workers", 1, "--time-range", 0, 0.2, "--json")
    assert ran.json["capture"] == "captures/walk"
    assert (tmp_path / "captures" / "walk" / "controller.json").is_file()


@pytest.mark.parametrize(("end", "missed"), [(0.25, "the last 0.07 s are not looked at"), (0.2, "")])
def test_an_end_between_two_frames_is_told(walk_bvh: Path, tmp_path: Path, run: Run, end: float, missed: str) -> None:
    ran = run("fit", walk_bvh, "-o", tmp_path / "w", "--fps", 10, "--time-range", 0, end, *TINY)
    assert ran.code == 0, ran.err
    assert ("are not looked at" in ran.err) == bool(missed)
    assert missed in ran.err


def test_overwrite_replaces_a_capture(capture: Path, walk_bvh: Path, run: Run) -> None:
    old = (capture / "controller.json").read_bytes()
    (capture / "simulations").mkdir()
    arguments = ("--budget", "tiny", "--workers", 1, "--time-range", 0, 0.2, "--overwrite", "--json")
    assert run("fit", walk_bvh, "-o", capture, *arguments).code == 0
    assert set(contents(capture)) == set(FILES)
    assert (capture / "controller.json").read_bytes() != old


@pytest.mark.parametrize("name", ["motion.npz", "motion.bvh"])
def test_overwrite_does_not_empty_the_folder_of_its_own_input(capture: Path, run: Run, name: str) -> None:
    before = contents(capture)
    run("fit", capture / name, "-o", capture, "--overwrite", "--budget", "tiny").refused(name, "--overwrite empties")
    assert contents(capture) == before


def test_a_full_disk_at_once_is_resumed(walk_bvh: Path, tmp_path: Path, run: Run) -> None:
    """Not even the first file of the capture fits."""
    arguments = ("fit", walk_bvh, "-o", tmp_path / "c", "--budget", "tiny", "--workers", 1, "--time-range", 0, 0.2)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        assert run(*arguments).code == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert run(*arguments, "--resume").code == 0


def test_a_full_disk_is_one_line_and_the_fit_can_go_on(capture: Path, walk_bvh: Path, run: Run) -> None:
    """No file may grow beyond 2 kB, as on a disk that is full: what there was is intact, and --resume goes on."""
    (capture / "controller.json").unlink()
    before = contents(capture)
    arguments = ("fit", walk_bvh, "-o", capture, "--budget", "tiny", "--workers", 1, "--resume")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        ran = run(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert "File too large" in ran.err.splitlines()[-1]
    assert str(capture) in ran.err.splitlines()[-1]
    assert contents(capture) == before
    assert run(*arguments).code == 0
    assert (capture / "checkpoint" / "journal.bin").read_bytes() == before["checkpoint/journal.bin"]
