"""`mocap2ctrl silhouettes`: what it writes, what it says, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import Run
from video_scene import figure, noisy, overlap, painted, room, walk, write_png, write_video

from mocap2ctrl.video.mask_files import load_masks

CAMERA = """[side]
size = [ {size}]
matrix = [ [ 200.0, 0.0, 80.0], [ 0.0, 200.0, 60.0], [ 0.0, 0.0, 1.0]]
rotation = [ 1.2, -1.2, 1.2]
translation = [ 0.0, 0.9, 5.0]
"""


@dataclass(frozen=True)
class Clip:
    """A video in the working folder, and its exact masks."""

    video: str
    masks: np.ndarray


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, np.ndarray]:
    images, masks = walk(np.linspace(35, 125, 24))
    return write_video(tmp_path_factory.mktemp("made") / "v.mp4", images).read_bytes(), masks


@pytest.fixture
def clip(made: tuple[bytes, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clip:
    monkeypatch.chdir(tmp_path)
    Path("walk.mp4").write_bytes(made[0])
    return Clip("walk.mp4", made[1])


def test_writes_masks_and_a_picture_and_says_what_was_understood(run: Run, clip: Clip) -> None:
    ran = run("silhouettes", clip.video)
    assert ran.code == 0, ran.err
    found = load_masks("silhouettes/walk.npz:walk")
    assert found.fps == 30.0
    assert overlap(found.masks, clip.masks) > 0.88
    picture = cv2.imread("silhouettes/walk.png")
    assert np.count_nonzero(np.all(picture == (0, 70, 255), axis=-1)) > 500  # outlines, in OpenCV's order of colours
    for text in ("160x120 pixels", "median", "silhouettes/walk.npz:walk", "silhouettes/walk.png"):
        assert text in ran.out


def test_json_is_one_object(run: Run, clip: Clip) -> None:
    write_png(Path("walk.background.png"), room())
    ran = run("silhouettes", clip.video, "-o", "out/m.npz", "--fps", 15, "--time-range", 0.2, 0.8, "--json")
    assert ran.code == 0, ran.err
    said = ran.json
    assert {key: said[key] for key in ("masks", "frames", "fps", "start_s", "size", "method", "warnings")} == {
        "masks": "out/m.npz:walk",
        "frames": 9,
        "fps": 15.0,
        "start_s": 0.2,
        "size": [160, 120],
        "method": "plate",
        "warnings": [],
    }
    assert said["person_px"] == pytest.approx(73, abs=3)
    assert any("walk.background.png" in note for note in said["notes"])
    assert len(load_masks(said["masks"]).masks) == 9


def test_its_masks_go_in_again(run: Run, clip: Clip) -> None:
    assert run("silhouettes", clip.video).code == 0
    ran = run("silhouettes", "silhouettes/walk.npz:walk", "-o", "again.npz", "--json")
    assert ran.json["method"] == "masks"
    np.testing.assert_array_equal(load_masks("again.npz").masks, load_masks("silhouettes/walk.npz").masks)


def test_nothing_is_replaced_unless_asked(run: Run, clip: Clip) -> None:
    Path("m.png").write_text("mine")
    run("silhouettes", clip.video, "-o", "m.npz").refused("m.png: exists already", "--overwrite")
    assert not Path("m.npz").exists()
    assert run("silhouettes", clip.video, "-o", "m.npz", "--overwrite").code == 0
    assert Path("m.png").read_bytes() != b"mine"


def test_a_camera_is_checked(run: Run, clip: Clip) -> None:
    Path("c.toml").write_text(CAMERA.format(size="160, 120"))
    ran = run("silhouettes", clip.video, "--camera", "c.toml")
    assert ran.code == 0, ran.err
    assert "camera: c.toml" in ran.out
    Path("c.toml").write_text(CAMERA.format(size="120, 160"))
    run("silhouettes", clip.video, "--camera", "c.toml", "--overwrite").refused("120x160", "160x120")
    run("silhouettes", clip.video, "--camera", "none.toml", "--overwrite").refused("none.toml", "no such camera file")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.mp4"], "none.mp4: no such file"),
        (["none.npz:walk"], "none.npz:walk: no such file"),
        (["walk.mp4", "-o", "masks.zip"], ".npz"),
        (["walk.mp4", "--fps", "60"], "fps is 60"),
        (["walk.mp4", "--time-range", "5", "6"], "from 0 to 0.80 s"),
        (["walk.mp4", "--method", "magic"], "magic"),
        (["walk.mp4", "--method", "plate"], "no clean plate"),
        (["walk.mp4", "--background", "none.png"], "none.png"),
        ([".", "--background", "none.png"], "are for videos"),
        (["."], "holds no PNG"),
        (["walk.mp4", "--person", "left"], "expected X,Y or X,Y@T"),
        (["walk.mp4", "--person", "5,5@0"], "nobody moves at 5,5"),
        (["walk.mp4", "--masks", "--method", "median"], "are for videos"),
    ],
)
def test_mistakes_are_one_line(run: Run, clip: Clip, arguments: list[str], says: str) -> None:
    run("silhouettes", *arguments).refused(says)
    assert not Path("silhouettes").exists()


def test_one_of_two_people(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the refusal says to type works."""
    monkeypatch.chdir(tmp_path)
    paths = np.linspace(25, 55, 24), np.linspace(135, 105, 24)
    both = [painted(painted(room(), figure(a)), figure(b)) for a, b in zip(*paths, strict=True)]
    write_video(Path("duet.mp4"), noisy(both))
    write_png(Path("duet.background.png"), room())
    refused = run("silhouettes", "duet.mp4")
    refused.refused("two people are in view", "--person")
    choice = refused.err.split("--person ")[1].split()[0]
    ran = run("silhouettes", "duet.mp4", "--person", choice)
    assert ran.code == 0, ran.err
    assert "another person moves" in ran.out
    x = float(choice.split(",")[0])
    wanted = min(paths, key=lambda path: abs(path[0] - x))
    assert overlap(load_masks("silhouettes/duet.npz").masks, np.stack([figure(p) for p in wanted])) > 0.85


def test_a_video_of_masks(run: Run, clip: Clip) -> None:
    white = [np.repeat(mask.astype(np.uint8)[..., None] * 255, 3, axis=2) for mask in clip.masks]
    write_video(Path("white.mp4"), white)
    said = run("silhouettes", "white.mp4", "-o", "m.npz", "--json").json
    assert said["method"] == "masks"
    assert any("holds masks and no footage" in note for note in said["notes"])
    assert overlap(load_masks("m.npz").masks, clip.masks) > 0.97
    run("silhouettes", "white.mp4", "--background", "b.png").refused("are for videos")


def test_help_has_an_example(run: Run) -> None:
    ran = run("silhouettes", "--help")
    assert ran.code == 0
    assert "mocap2ctrl silhouettes walk.mp4" in ran.out.split("example")[1]
