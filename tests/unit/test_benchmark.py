"""What the benchmark adds to the package: how tables are printed, and how far an estimated camera is from the true one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_fit import needs_walk, tiny_capture, tiny_setup

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import Controller
from mocap2ctrl.errors import EngineError
from mocap2ctrl.fit.config import budget
from mocap2ctrl.fit.methods import growth_of
from mocap2ctrl.geometry.camera import camera_centre, project, undistorted
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.types import Camera
from mocap2ctrl.video.calibration.ground_view import GroundView
from mocap2ctrl.video.camera_file import load_camera

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import benchmark
from benchmarks import cameras, fits, motions, rows, terms, turned
from benchmarks.keypoints import CALIBRATION
from benchmarks.motions import Case
from benchmarks.rows import FALLS, Row, cell, print_table
from benchmarks.weizmann import SEQUENCES


@pytest.mark.parametrize(
    ("quantity", "values", "printed"),
    [
        ("joint error", [3.0, 9.0, 4.0], "4 (9)"),
        ("track: overlap", [0.9, 0.7, 0.8], "0.8 (0.7)"),
        ("joint error", [None, 5.25], "5.25"),
        ("core time", [2016.0], "2,020"),
        ("joint error", [None], "–"),
        ("joint error", [], "–"),
        (FALLS, [0.0, 1.0, 0.0], "1 of 3"),
    ],
)
def test_a_cell_is_the_median_and_the_worst(quantity: str, values: list[float | None], printed: str) -> None:
    assert cell(quantity, values) == printed


def test_rows_of_several_runs_become_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for seed, error in ((1, 5.0), (2, 7.0)):
        rows = [
            {"name": f"{clip} | joint error", "engine": "mujoco", "value": error, "unit": "cm", "seed": seed}
            for clip in ("walk", "jump")[: 3 - seed]
        ]
        files.append(tmp_path / f"{seed}.jsonl")
        files[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert benchmark.main(["video", "--table-of", *map(str, files)]) == 0
    assert "|  | walk | jump |\n| --- | --- | --- |\n| joint error, cm | 6 (7) | 5 |\n" in capsys.readouterr().out


def test_terms_are_left_out_one_at_a_time() -> None:
    default = budget("quick")
    left = {what: change.config(default) for what, change in terms.CHANGES.items()}
    assert left[terms.AS_IT_IS] == default
    assert left["no contact term"] == replace(default, weights=replace(default.weights, contact=0.0))
    assert left["no stability term"].weights.stability == left["no momentum term (ours)"].weights.velocity == 0.0
    assert left["no descent, four times the generations"].descents == 0
    arguments = [dict(change.fit("walk")) for change in terms.CHANGES.values()]
    assert [a for a in arguments if a] == [{"prior": "all-but-walk"}, {"torque_scale": terms.UNBOUND}]


@needs_walk
def test_contact_changes_are_what_the_term_charges_and_who_ends_standing_is_watched(
    tmp_path: Path, character: Character
) -> None:
    capture = tiny_capture(tmp_path / "walk", character, seconds=0.8)
    growth = growth_of(capture, lambda generation: None)
    guessed = replace(capture, controller=Controller((growth.guess("1", 0.0, 0.8, None),), growth.start))
    evaluator = tiny_setup(guessed).evaluator()
    frames = len(evaluator.objective.target)
    rollouts = next(evaluator.rollouts(guessed.finished_controller(), frames - 1))
    charged = {t.name: t for t in evaluator.objective.terms(rollouts, np.zeros(1), 0, frames - 1)}["contact"]
    assert terms.extra_contact_changes(guessed) == charged.value[0] > 0
    assert terms.held_s(guessed) is None
    standing = replace(guessed, folder=tmp_path / "gone", reference=replace(guessed.reference, ends_standing=True))
    held = terms.held_s(standing)
    assert held is not None
    assert 0.0 <= held < terms.HELD_S


def test_clips_of_another_table_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmark.main(["weizmann", "--clips", "cartwheel"])
    assert ", ".join(SEQUENCES) in capsys.readouterr().err


def rows_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Row]:
    """What `tools/benchmark.py … --json` prints."""
    assert benchmark.main([*arguments, "--json"]) == 0
    return [Row(**json.loads(line)) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Bullet's library."""

    def without_bullet(name: str, character: object) -> object:
        if name == "bullet":
            raise EngineError("engine 'bullet' needs pybullet, which is not installed")
        return make_engine(name, character)

    make_engine = rows.make_engine
    monkeypatch.setattr(rows, "make_engine", without_bullet)


needs_clips = pytest.mark.skipif(deepmimic_directory() is None, reason="DeepMimic's clips come with pybullet")


@needs_clips
@pytest.mark.usefixtures("one_engine")
def test_physics_has_a_row_for_each_loop_and_dashes_for_an_absent_engine(capsys: pytest.CaptureFixture[str]) -> None:
    measured = rows_of(capsys, "physics", "--quick")
    loops = {(r.name, r.engine): r.value for r in measured if "closed loop" in r.name}
    fragments = [r for r in measured if "PD fragments" in r.name]
    assert len(loops) == 6
    assert all(value is None if engine == "bullet" else value > 5 for (_, engine), value in loops.items())
    assert len(fragments) == 12
    assert {r.name.split(", ")[1] for r in fragments} == {"PD fragments on 1 thread", "PD fragments on 2 threads"}
    assert all(r.value > 5 and r.unit == "x" and r.engine == "mujoco" for r in fragments)


@needs_clips
@pytest.mark.usefixtures("one_engine")
def test_fit_and_scaling_measure_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "CASE", Case("walk", "humanoid3d_walk", time_range=(0.0, 0.2)))
    monkeypatch.setattr(fits, "warm_up", lambda engine: None)
    fit = rows_of(capsys, "fit", "--quick", "--workers", "1", "--seeds", "3")
    by_engine = {e: {r.name.partition(": ")[2]: r for r in fit if r.engine == e} for e in ("mujoco", "bullet")}
    assert all(row.value is None for row in by_engine["bullet"].values())
    mujoco = by_engine["mujoco"]
    elsewhere = [f"in the other engine: {what}" for what in ("joint error", "falls", "falls at")]
    assert list(mujoco)[:7] == ["joint error", "falls", *elsewhere, "core time", "wall time"]
    for what in ("core time", "wall time"):
        assert 0 < mujoco[what].value < mujoco[f"{what} of the command"].value < 5
    assert all(row.seed == 3 for row in fit)
    assert 0 < mujoco["joint error"].value < 10
    assert mujoco["falls"].value in (0, 1)
    assert mujoco["evaluations"].value > 100
    assert 0.05 < mujoco["peak memory"].value < 4
    scaling = rows_of(capsys, "scaling", "--quick", "--engine", "mujoco")
    assert [r.unit for r in scaling] == ["s", "s", "x"] * 2
    for one, two, ratio in (scaling[:3], scaling[3:]):
        assert ratio.value == pytest.approx(one.value / two.value)


@needs_clips
def test_motion_measures_feet_errors_and_mirrors(capsys: pytest.CaptureFixture[str]) -> None:
    measured = rows_of(capsys, "motion", "--clips", "humanoid3d_walk", "humanoid3d_crawl")
    walk = {r.name.split(" | ")[1]: r for r in measured if r.name.startswith("humanoid3d_walk")}
    crawl = {r.name.split(" | ")[1]: r.value for r in measured if r.name.startswith("humanoid3d_crawl")}
    assert 1.0 < walk["end effectors, whole"].value < 4.0
    assert walk["end effectors, by bone"].value < 1.5
    assert walk["slide"].value < 0.5 < walk["slide before"].value
    assert walk["height"].value < 1.0 < walk["height before"].value
    assert walk["beyond limits"].value == 0.0
    assert walk["mirrored"].value < 1e-4
    assert walk["time for 10 s"].value is None  # 39 frames do not say
    assert crawl["slide"] is None
    assert {r.name.split(" | ")[1] for r in measured if r.name.startswith("median")} == set(walk) - {"time for 10 s"}


def test_memory_is_that_of_the_whole_tree() -> None:
    hold = "import time; x = bytearray(150_000_000); time.sleep(0.5)"
    tree = f"import subprocess, sys; {hold.replace('0.5', '0')}; subprocess.run([sys.executable, '-c', {hold!r}])"
    _, alone = fits.watched([sys.executable, "-c", hold])
    _, both = fits.watched([sys.executable, "-c", tree])
    assert 150e6 < alone < 220e6
    assert 300e6 < both < 420e6


def test_a_command_that_fails_ends_the_table() -> None:
    with pytest.raises(SystemExit, match="no such thing"):
        fits.watched([sys.executable, "-c", "raise SystemExit('no such thing')"])


def test_lines_tell_engines_apart_and_know_which_way_is_worse(capsys: pytest.CaptureFixture[str]) -> None:
    values = {
        ("time", "mujoco"): (1.0, 3.0),
        ("real time", "mujoco"): (1.0, 3.0),
        ("real time", "bullet"): (None, None),
    }
    table = benchmark.TABLES["physics"]
    print_table(table, [Row(n, e, v, "x", s) for (n, e), two in values.items() for s, v in enumerate(two)])
    lines = capsys.readouterr().out.splitlines()[2:5]
    assert lines == [
        "| time | mujoco | 2.00 | 3.00 | x | 0, 1 |",
        "| real time | mujoco | 2.00 | 1.00 | x | 0, 1 |",
        "| real time | bullet | – | – | x | 0, 1 |",
    ]


def test_a_path_is_as_long_as_the_camera_makes_it() -> None:
    """From a walker straight below the horizon: twice the height over the ground, twice the way."""
    low, high = (GroundView(1.0, height, 0.0, 0.0).camera((201, 201), "x") for height in (1.0, 2.0))
    feet = project(low, np.array([[0.0, 4.0, 0.0], [1.0, 4.0, 0.0], [1.0, 6.0, 0.0]]))
    assert cameras.path_m(low, feet) == pytest.approx(3.0)
    assert cameras.path_m(high, feet) == pytest.approx(6.0)


@pytest.mark.skipif(deepmimic_directory() is None, reason="DeepMimic's clips are not installed")
def test_an_unknown_setting_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for table, clip, change in (("learning", "walk", "phase_reset=maybe"), ("accuracy", "walk", "descends=0")):
        assert benchmark.main([table, "--clips", clip, "--set", change]) == 2
        told = capsys.readouterr().err.strip().splitlines()
        assert len(told) == 1
        assert change.partition("=")[0] in told[0]


def test_an_unknown_engine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmark.main(["physics", "--engine", "havok"])
    assert "bullet" in capsys.readouterr().err


@needs_walk
def test_a_refined_fit_tells_what_its_growth_came_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(motions.CASES, "walk", Case("walk", "humanoid3d_walk", time_range=(0.0, 0.5)))
    file, least = tmp_path / "rows.json", ("generations=1", "descents=1", "starts=1")

    def measured(*settings: str) -> dict[str, float]:
        fits = ["--results", str(file), "--set", *least, *settings]
        assert benchmark.main(["accuracy", "--quick", "--clips", "walk", "--workers", "1", *fits]) == 0
        found = [json.loads(line) for line in file.read_text().splitlines()]
        return {row["name"]: row["value"] for row in found}

    alone, name = measured(), f"walk ({', '.join(least)})"
    both, refined = measured("refine=true"), f"walk ({', '.join([*least, 'refine=true'])})"
    assert both[f"{refined} | growth: joint error"] == alone[f"{name} | joint error"]
    assert both[f"{refined} | joint error"] != alone[f"{name} | joint error"]
    assert both[f"{refined} | core time"] > both[f"{refined} | growth: core time"] > 0.0
    assert f"{name} | growth: joint error" not in both
    written = file.read_text()
    measured("refine=true")
    assert file.read_text() == written, "what the file has is not fitted again"


@pytest.mark.skipif(not CALIBRATION.is_file(), reason="needs the shared data")
def test_a_camera_turned_by_hand_sees_what_does_not_move_where_it_is() -> None:
    """Three unknowns for ten coordinates; the camera as it was calibrated is 22 pixels off."""
    given, found = load_camera(f"{CALIBRATION}:{turned.TURNED}"), turned.turned_camera(CALIBRATION)
    places, seen = turned.room_points(CALIBRATION), np.array(turned.SEEN_PX[turned.TURNED])

    def off_px(camera: Camera) -> float:
        return float(np.linalg.norm(project(undistorted(camera), places) - seen, axis=-1).mean())

    assert off_px(given) > 20.0
    assert off_px(found) < 1.5
    np.testing.assert_allclose(camera_centre(found), camera_centre(given), atol=1e-9)
