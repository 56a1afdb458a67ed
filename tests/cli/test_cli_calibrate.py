"""`mocap2ctrl calibrate`: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import Run
from matplotlib.backend_bases import KeyEvent, MouseEvent
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from video_scene import room, write_video

from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.cli import click_window
from mocap2ctrl.geometry.camera import camera_centre, project
from mocap2ctrl.prior.choose import shipped_priors
from mocap2ctrl.video.calibration.ground_view import GroundView
from mocap2ctrl.video.calibration.points_file import save_joints
from mocap2ctrl.video.camera_file import load_camera

pytestmark = pytest.mark.skipif("all" not in shipped_priors(), reason="a checkout without priors/")

SIZE = (160, 120)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("calibrate") / "walk.mp4", [room()] * 5)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, video: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(video, "walk.mp4")


@pytest.fixture
def pointed(character: Character) -> dict[str, tuple[float, float]]:
    """Joints of somebody who stands 5 m away; written to walk.points.toml, too."""
    pose = character.zero_pose()
    position = pose.root_position + np.array([0.2, 5.0, 0.0])
    joints = evaluation_points(character, *segment_frames(character, position, pose.root_orientation, pose.angles))
    pixels = project(GroundView(0.9, 1.2, 0.08, 0.0).camera(SIZE, "x"), joints)
    names = [point.name for point in character.evaluation_points]
    found = {name: (float(x), float(y)) for name, (x, y) in zip(names, pixels, strict=True)}
    save_joints("walk.points.toml", 0.1, found)
    return found


def test_points_give_a_camera_file(run: Run, pointed: dict[str, tuple[float, float]]) -> None:
    ran = run("calibrate", "walk.mp4", "--points", "walk.points.toml", "--height", 1.75)
    assert ran.code == 0, ran.err
    for text in ("focal length", "±", "above the ground", "frame time_s 0.1", "left_ankle", "written: walk.toml"):
        assert text in ran.out
    camera = load_camera("walk.toml")
    assert camera.size == SIZE
    assert camera_centre(camera)[2] == pytest.approx(1.2, abs=0.4)
    run("calibrate", "walk.mp4", "--points", "walk.points.toml").refused("walk.toml", "exists already", "--overwrite")
    again = run("calibrate", "walk.mp4", "--points", "walk.points.toml", "--overwrite", "--json")
    assert again.code == 0, again.err
    assert again.json["camera"] == "walk.toml"
    assert set(again.json["joint_errors_px"]["time_s 0.1"]) == set(pointed)
    assert again.json["focal_px"][1] > 0


def test_refusals(run: Run, pointed: dict[str, tuple[float, float]]) -> None:
    run("calibrate", "nowhere.mp4", "--points", "walk.points.toml").refused("nowhere.mp4", "no such file")
    run("calibrate", "walk.mp4", "--points", "nowhere.toml").refused("nowhere.toml", "cannot be read")
    run("calibrate", "walk.mp4", "--points", "walk.points.toml", "--height", 5).refused("--height", "0.8 to 2.4")
    run("calibrate", "walk.mp4", "--points", "walk.points.toml", "-o", ".").refused("exists already")
    save_joints("far.toml", 0.0, {name: (x * 20, y) for name, (x, y) in pointed.items()})
    run("calibrate", "walk.mp4", "--points", "far.toml").refused("far outside the video's 160x120 pixels")
    assert not Path("walk.toml").exists()


def test_without_a_screen_it_says_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_window, "BACKENDS", ("no_such_toolkit",))
    run("calibrate", "walk.mp4").refused("no screen", "walk.grid.png", "--points FILE")
    assert cv2.imread("walk.grid.png") is not None
    run("calibrate", "walk.mp4", "--time", 60).refused("runs from 0 to")


def test_clicks_are_kept_and_never_overwritten(
    run: Run, pointed: dict[str, tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("calibrate", "walk.mp4").refused("walk.points.toml", "--points walk.points.toml", "--overwrite")
    Path("walk.points.toml").unlink()
    monkeypatch.setattr(click_window, "clicked_joints", lambda image, names, title: pointed)
    ran = run("calibrate", "walk.mp4")
    assert ran.code == 0, ran.err
    assert Path("walk.points.toml").is_file()
    assert "walk.points.toml" in ran.err


def test_clicks_on_a_figure() -> None:
    figure = Figure(figsize=(4, 3))
    canvas = FigureCanvasAgg(figure)
    clicks = click_window.Clicks(figure, room(), ("head", "neck", "pelvis"))
    canvas.draw()
    axes = figure.axes[0]

    def click(x: float, y: float, button: int = 1) -> None:
        place = axes.transData.transform((x, y))
        canvas.callbacks.process("button_press_event", MouseEvent("button_press_event", canvas, *place, button))

    click(80.0, 20.0)
    click(70.0, 30.0)
    canvas.callbacks.process("key_press_event", KeyEvent("key_press_event", canvas, "backspace"))
    click(81.0, 31.0)
    click(0.0, 0.0, button=3)
    assert clicks.done
    click(1.0, 1.0)
    assert set(clicks.pixels) == {"head", "neck"}
    assert clicks.pixels["head"] == pytest.approx((80.0, 20.0))
    assert clicks.pixels["neck"] == pytest.approx((81.0, 31.0))
