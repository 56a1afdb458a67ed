"""`mocap2ctrl fit` and `evaluate` on what a camera saw: masks of half a second of a walk, and the sample footage."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import av
import pytest
from conftest import FIT_KEYS, TINY, Filmed, Ran, Run, contents

from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.cli.main import main
from mocap2ctrl.fit.inputs import VIDEO_PRIORS
from mocap2ctrl.motion.npz import read_motion

SAMPLE = Path(__file__).resolve().parents[2] / "video" / "walk.mp4"


@pytest.fixture(scope="session")
def fitted_video(tmp_path_factory: pytest.TempPathFactory, filmed: Filmed) -> tuple[Path, Ran]:
    """A fit to masks with a reference and `--json`. Not to be changed: copy it."""
    folder = tmp_path_factory.mktemp("fitted") / "stroll"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        arguments = ("fit", filmed.masks, "-o", folder, *TINY, "--reference", filmed.truth, "--json")
        code = main([str(a) for a in arguments])
    return folder, Ran(code, out.getvalue(), err.getvalue())


@pytest.fixture
def capture(fitted_video: tuple[Path, Ran], tmp_path: Path) -> Path:
    """A copy of the fitted capture."""
    return shutil.copytree(fitted_video[0], tmp_path / "capture")


def test_a_fit_says_what_the_contract_says(fitted_video: tuple[Path, Ran]) -> None:
    folder, ran = fitted_video
    assert ran.code == 0, ran.err
    said = ran.json
    assert set(said) == FIT_KEYS
    assert said["capture"] == str(folder)
    assert 0.5 < said["silhouette_iou"] <= 1.0
    assert 0.0 < said["joint_error_cm"] < 60.0
    assert said["fell"] is False
    assert re.search(r"camera: \S+stroll\.toml, found beside the input", ran.err)
    assert "tracking …" in ran.err
    assert "trained on the very motion that is performed" in ran.err
    assert re.search(r"stage 2/2 .* silhouettes 0\.\d\d", ran.err)


def test_the_folder_holds_evidence_and_result(fitted_video: tuple[Path, Ran], character: Character) -> None:
    folder, _ = fitted_video
    assert {
        "camera.toml",
        "target.npz",
        "prior.npz",
        "controller.json",
        "overlay.mp4",
        "report.html",
        "motion.bvh",
    } <= set(contents(folder))
    assert "checkpoint/track.npz" not in contents(folder)
    capture = api.load(folder)
    assert capture.prior.name in VIDEO_PRIORS  # whichever makes the track likeliest
    assert capture.silhouettes is not None
    assert 0.8 < capture.girth < 1.5
    assert capture.config.weights.silhouette > 0.0
    assert read_motion(folder / "motion.npz", capture.character).duration_s == pytest.approx(0.4, abs=0.02)
    with av.open(str(folder / "overlay.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) > 5
    generations = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert all(0.0 < e["terms"]["silhouette"] < 2.0 for e in generations if e["event"] == "generation")


def test_evaluate_gives_the_same_numbers_and_errors_only_against_a_reference(
    fitted_video: tuple[Path, Ran], filmed: Filmed, run: Run
) -> None:
    folder, fit = fitted_video
    plain = run("evaluate", folder, "--json").json
    assert plain["silhouette_iou"] == fit.json["silhouette_iou"]
    assert plain["joint_error_cm"] is plain["root_aligned_error_cm"] is plain["source_error_cm"] is None
    assert plain["track_joint_error_cm"] is None
    assert plain["track_error_cm"] > 0.0
    assert 0.5 < plain["track_silhouette_iou"] <= 1.0
    said = run("evaluate", folder, "--reference", filmed.truth, "--json").json
    assert said["joint_error_cm"] == fit.json["joint_error_cm"]
    assert set(said) == set(plain)
    for name in ("root_aligned_error_cm", "source_error_cm", "track_joint_error_cm", "track_root_aligned_error_cm"):
        assert 0.0 < said[name] < 60.0
    assert said["track_source_error_cm"] == pytest.approx(said["track_joint_error_cm"], rel=0.1)  # at 30 and at 120 fps
    spoken = run("evaluate", folder, "--reference", filmed.truth)
    assert "the track's error" in spoken.out
    assert "very motion" in spoken.err


def test_a_video_s_capture_is_simulated(capture: Path, run: Run) -> None:
    said = run("simulate", capture, "--seconds", 0.4, "--no-video", "--json").json
    assert said["fell"] is False
    assert (capture / "simulations" / "0.4s" / "motion.bvh").is_file()


def test_a_fit_goes_on_from_its_track(capture: Path, filmed: Filmed, run: Run) -> None:
    """What the track came to is in target.npz; only controllers are simulated anew."""
    before = contents(capture)
    for name in ("controller.json", "report.html", "checkpoint/journal.bin"):
        (capture / name).unlink()
    ran = run("fit", filmed.masks, "-o", capture, *TINY, "--resume")
    assert ran.code == 0, ran.err
    after = contents(capture)
    for name in ("checkpoint/journal.bin", "character.toml", "camera.toml"):
        assert after[name] == before[name]
    assert re.search(r"silhouettes overlap by 0\.\d{3}, the track's by 0\.\d{3}", ran.out)
    assert re.search(r"cm from the track, no fall", ran.out)
    assert re.search(r"\d states, [\d,]+ evaluations", ran.out)
    run("fit", filmed.masks, "-o", capture, *TINY, "--resume").refused("has ended; there is nothing to resume")


def test_a_finished_fit_is_refined_on_its_track(capture: Path, filmed: Filmed, run: Run) -> None:
    before = contents(capture)
    ran = run("fit", filmed.masks, "-o", capture, *TINY, "--resume", "--refine")
    assert ran.code == 0, ran.err
    after = contents(capture)
    assert after["target.npz"] == before["target.npz"]
    assert len(after["checkpoint/journal.bin"]) > len(before["checkpoint/journal.bin"])
    assert "tracking" not in ran.err
    assert "exits on contact: " in ran.err
    run("fit", filmed.masks, "-o", capture, *TINY, "--resume", "--refine").refused("has ended")


def test_another_fit_is_not_resumed(capture: Path, filmed: Filmed, run: Run) -> None:
    (capture / "controller.json").unlink()
    before = contents(capture)
    ran = run("fit", filmed.masks, "-o", capture, *TINY, "--resume", "--prior", "walk")
    assert ran.code == 2
    assert "other input, settings or version" in ran.err.splitlines()[-1]
    assert contents(capture) == before


def test_a_fit_goes_on_with_the_same_rule_for_the_ground_only(capture: Path, filmed: Filmed, run: Run) -> None:
    (capture / "controller.json").unlink()
    before = contents(capture)
    ran = run("fit", filmed.masks, "-o", capture, *TINY, "--resume", "--allow-ground")
    assert ran.code == 2
    assert "without --allow-ground; leave --allow-ground out" in ran.err.splitlines()[-1]
    assert contents(capture) == before


def test_growth_from_pictures(filmed: Filmed, tmp_path: Path, run: Run) -> None:
    """A folder of PNGs with its rate and camera given; targets are coefficients of the prior."""
    folder = tmp_path / "grown"
    ran = run(
        *(
            "fit",
            filmed.folder / "pictures",
            "-o",
            folder,
            *TINY,
            "--fps",
            30,
            "--camera",
            filmed.folder / "stroll.toml",
        ),
        *("--method", "growth", "--prior", "locomotion", "--allow-ground", "--time-range", 0, 0.3, "--json"),
    )
    assert ran.code == 0, ran.err
    assert ran.json["joint_error_cm"] is None
    capture = api.load(folder)
    assert capture.config.method == "growth"
    assert capture.config.weights.markers == 0.0
    assert capture.run["allow_ground"] is True
    assert capture.finished_controller().prior == "locomotion"
    assert run("evaluate", folder, "--json").json["silhouette_iou"] == ran.json["silhouette_iou"]


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the sample footage is in the checkout only")
def test_the_sample_footage(tmp_path: Path, run: Run) -> None:
    """A video with its camera and clean plate beside it, from a second of its own."""
    folder = tmp_path / "walk"
    truth = SAMPLE.with_suffix(".truth.npz")
    ran = run(
        *("fit", SAMPLE, "-o", folder, *TINY, "--time-range", 0.5, 0.9, "--prior", "all-but-walk"),
        *("--reference", truth, "--json"),
    )
    assert ran.code == 0, ran.err
    assert ran.json["silhouette_iou"] > 0.5
    assert "very motion" not in ran.err
    said = run("evaluate", folder, "--reference", truth, "--json").json
    assert said["track_root_aligned_error_cm"] < 40.0
    assert api.load(folder).reference.provenance["file"] == "walk.mp4"
