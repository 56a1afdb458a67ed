"""`mocap2ctrl fit --keypoints`: what is understood, kept, told and drawn; and what is refused before the long work."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import CAMERA, TINY, Filmed, Ran, Run

from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry.camera import project
from mocap2ctrl.video.keypoints_layouts import BODY_25


@pytest.fixture(scope="module")
def detected(tmp_path_factory: pytest.TempPathFactory, filmed: Filmed, character: Character) -> Path:
    """A folder as OpenPose writes it, of the joints of who is filmed, and in every frame of a second person beside."""
    folder = tmp_path_factory.mktemp("openpose")
    with np.load(filmed.truth) as data:
        pixels = project(CAMERA, data["points_m"])
    names = [point.name for point in character.evaluation_points]
    for frame, places in enumerate(pixels):
        at = {name: (*place, 0.9) for name, place in zip(names, places.tolist(), strict=True)}
        numbers = np.array([at.get(str(name), (0.0, 0.0, 0.0)) for name in BODY_25])
        other = numbers + np.where(numbers[:, 2:] > 0, [25.0, 0.0, 0.0], 0.0)
        people = [{"pose_keypoints_2d": who.ravel().tolist()} for who in (other, numbers)]
        (folder / f"stroll_{frame:012d}_keypoints.json").write_text(json.dumps({"version": 1.3, "people": people}))
    return folder


@pytest.fixture(scope="module")
def fitted_with_points(tmp_path_factory: pytest.TempPathFactory, filmed: Filmed, detected: Path) -> tuple[Path, Ran]:
    """A fit to masks and keypoints."""
    import contextlib
    import io

    from mocap2ctrl.cli.main import main

    folder = tmp_path_factory.mktemp("fitted") / "stroll"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        arguments = ("fit", filmed.masks, "-o", folder, *TINY, "--prior", "walk", "--keypoints", detected)
        code = main([str(a) for a in arguments])
    return folder, Ran(code, out.getvalue(), err.getvalue())


def test_a_fit_says_what_it_took(fitted_with_points: tuple[Path, Ran]) -> None:
    _, ran = fitted_with_points
    assert ran.code == 0, ran.err
    assert "keypoints: BODY_25, in 13 of 13 frames, 14.0 points each; several people in 13 frames, of whom" in ran.err


def test_the_capture_keeps_the_points_and_their_term(fitted_with_points: tuple[Path, Ran]) -> None:
    folder, _ = fitted_with_points
    capture = api.load(folder)
    assert capture.silhouettes is not None
    assert capture.silhouettes.keypoints is not None
    assert capture.config.weights.keypoints == 1.0
    assert capture.reference.provenance["track"]["parts"]["keypoints"] > 0.0
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    values = [line["terms"]["keypoints"] for line in lines if line["event"] == "generation"]
    assert values
    assert all(0.0 < value < 50.0 for value in values)
    report = (folder / "report.html").read_text()
    assert "off the keypoints" in report
    assert "BODY_25, 13 of 13 frames, 182 points" in report


def test_evaluate_tells_the_reprojection_error_in_pixels(fitted_with_points: tuple[Path, Ran], run: Run) -> None:
    folder, _ = fitted_with_points
    said = run("evaluate", folder, "--json").json
    assert 0.0 < said["track_keypoint_error_px"] < 4.0
    assert 0.0 < said["keypoint_error_px"] < 20.0
    assert f"off the keypoints     {said['keypoint_error_px']:6.2f} px of the video" in run("evaluate", folder).out


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: None, "no such file or folder; give a folder of OpenPose's JSON files"),
        (lambda path: path.write_text("{"), "is no JSON"),
        (
            lambda path: path.write_text('{"frames": [{"frame": 3, "points": {"tail": [1, 2]}}]}'),
            "there is no point 'tail'",
        ),
        (
            lambda path: path.write_text('{"frames": [{"frame": 900, "points": {"head": [1, 2]}}]}'),
            "keypoints from 30.00 to 30.00 s",
        ),
        (lambda path: path.write_text('{"frames": [{"frame": 3, "points": {"head": [1, 2]}}]}'), "in none of 1 frames"),
    ],
)
def test_bad_keypoints_are_refused_in_one_line(tmp_path: Path, filmed: Filmed, run: Run, write, says: str) -> None:
    file = tmp_path / "points.json"
    write(file)
    run("fit", filmed.masks, "-o", tmp_path / "capture", *TINY, "--keypoints", file).refused(str(file), says)
    assert not (tmp_path / "capture").exists()


def test_keypoints_do_not_go_with_motions(tmp_path: Path, walk_bvh: Path, run: Run) -> None:
    ran = run("fit", walk_bvh, "-o", tmp_path / "capture", *TINY, "--keypoints", tmp_path)
    ran.refused("is a motion; --keypoints goes with videos and masks only")
