"""`mocap2ctrl inspect`: the page and the picture it writes, what it says, and what it shows of footage that it refuses."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import Filmed, Run
from video_scene import figure, noisy, painted, room, walk, write_video

CONTRACT = {"kind", "fps", "frames", "unit", "up", "travels", "usable", "warnings"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_masks_and_their_camera(run: Run, filmed: Filmed, here: Path) -> None:
    ran = run("inspect", filmed.masks, "--json")
    assert ran.code == 0, ran.err
    said = ran.json
    assert said.keys() >= CONTRACT
    assert (said["kind"], said["method"], said["usable"], said["fps"]) == ("masks", "masks", True, 30.0)
    assert said["unit"] is said["up"] is said["error"] is None
    assert said["camera"]["height_m"] == pytest.approx(0.9, abs=1e-3)
    assert "right" in " ".join(pose["faces"] for pose in said["first_poses"])
    assert (said["page"], said["picture"]) == ("inspect/stroll/index.html", "inspect/stroll/inspect.png")
    assert cv2.imread(said["picture"]).shape[1] > 1000
    assert "First pose" in Path(said["page"]).read_text("utf-8")
    run("inspect", filmed.masks).refused("inspect/stroll/index.html", "exists already", "--overwrite")


def test_a_motion_is_told_in_words(run: Run, walk_bvh: Path, here: Path) -> None:
    ran = run("inspect", walk_bvh, "-o", "look")
    assert ran.code == 0, ran.err
    for text in ("bvh", "cm", "up axis", "LeftLeg", "look/index.html", f"mocap2ctrl fit {walk_bvh}"):
        assert text in ran.out
    assert {file.name for file in Path("look").iterdir()} == {"index.html", "inspect.png", "joint-map.toml"}


def two_people(path: Path) -> Path:
    """Both cross the picture."""
    scene = room()
    pairs = [(figure(x), figure(160 - x)) for x in np.linspace(25, 70, 20)]
    return write_video(path, noisy([painted(scene, a | b) for a, b in pairs]))


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_footage_that_is_refused_is_shown(run: Run, here: Path, flags: tuple[str, ...]) -> None:
    two_people(Path("two.mp4"))
    Path("two.toml").write_text(
        "[side]\nsize = [160, 120]\nmatrix = [[200.0, 0.0, 80.0], [0.0, 200.0, 60.0], [0.0, 0.0, 1.0]]\n"
        "rotation = [1.5708, 0.0, 0.0]\ntranslation = [0.0, 0.9, 5.0]\n"
    )
    ran = run("inspect", "two.mp4", *flags)
    assert ran.code == 2
    last = ran.err.strip().splitlines()[-1]
    assert "people" in last
    assert "inspect/two/index.html" in last
    assert "people" in Path("inspect/two/index.html").read_text("utf-8")
    if flags:
        assert (ran.json["usable"], ran.json["frames"], ran.json["fps"]) == (False, 20, 30.0)
        assert "people" in ran.json["error"]
    else:
        assert ran.out == ""


def test_a_camera_that_cannot_be_is_shown_with_the_person(run: Run, here: Path) -> None:
    write_video(Path("one.mp4"), walk(np.linspace(35, 125, 24))[0])
    Path("one.toml").write_text(
        "[sky]\nsize = [160, 120]\nmatrix = [[200.0, 0.0, 80.0], [0.0, 200.0, 60.0], [0.0, 0.0, 1.0]]\n"
        "rotation = [1.5708, 0.0, 0.0]\ntranslation = [0.0, -2.0, 5.0]\n"
    )
    ran = run("inspect", "one.mp4", "--json")
    assert ran.code == 2
    assert "below the ground" in ran.json["error"]
    assert ran.json["person_px"] == pytest.approx(73, abs=4)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.mp4"], "none.mp4: no such file"),
        (["none.bvh"], "none.bvh: no such file"),
        (["one.mp4", "--camera", "none.toml"], "none.toml: no such camera file"),
        (["one.mp4", "--background", "none.png"], "none.png"),
        (["one.mp4", "--time-range", "5", "6"], "from 0 to"),
        (["one.mp4", "--fps", "99"], "fps is 99"),
        (["text.mp4"], "text.mp4"),
        (["walk.bvh", "--camera", "c.toml"], "--camera"),
        (["bad.bvh"], "bad.bvh"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(run: Run, here: Path, arguments: list[str], says: str) -> None:
    write_video(Path("one.mp4"), walk(np.linspace(35, 60, 4))[0])
    Path("one.toml").write_text(
        "[side]\nsize = [160, 120]\nmatrix = [[200.0, 0.0, 80.0], [0.0, 200.0, 60.0], [0.0, 0.0, 1.0]]\n"
        "rotation = [1.5708, 0.0, 0.0]\ntranslation = [0.0, 0.9, 5.0]\n"
    )
    Path("text.mp4").write_text("no video")
    Path("bad.bvh").write_text("HIERARCHY\nROOT")
    run("inspect", *arguments).refused(says)
    assert not Path("inspect").exists()


def test_help_has_an_example(run: Run) -> None:
    ran = run("inspect", "--help")
    assert ran.code == 0
    assert "mocap2ctrl inspect walk.mp4" in ran.out.split("examples")[1]
