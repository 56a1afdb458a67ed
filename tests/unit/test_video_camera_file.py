"""Camera files: Pose2Sim's keys in and out, and one clear line for every mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.errors import CameraError
from mocap2ctrl.geometry.camera import project
from mocap2ctrl.types import Camera
from mocap2ctrl.video.camera_file import camera_beside, camera_for_size, load_camera, save_camera

POSE2SIM = Path(__file__).resolve().parents[3] / "shared" / "data" / "reference3d" / "pose2sim_Calib_qualisys.toml"

ONE = """[{name}]
name = "{name}"
size = [ 640.0, 360.0]
matrix = [ [ 600.0, 0.0, 320.0], [ 0.0, 610.0, 180.0], [ 0.0, 0.0, 1.0]]
distortions = [ -0.1, 0.02, 0.0, 0.0]
rotation = [ 1.2, -1.1, 0.9]
translation = [ 0.1, 0.9, 4.0]
fisheye = false
"""
METADATA = "[metadata]\nadjusted = false\nerror = 0.0\n"


def written(folder: Path, text: str, name: str = "cam.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_reads_the_only_camera_of_a_file_whose_metadata_is_none(tmp_path: Path) -> None:
    camera = load_camera(written(tmp_path, ONE.format(name="left") + METADATA))
    assert camera.name == "left"
    assert camera.size == (640, 360)
    np.testing.assert_array_equal(camera.distortions, [-0.1, 0.02, 0.0, 0.0])
    np.testing.assert_array_equal(camera.matrix[1], [0.0, 610.0, 180.0])


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    camera = load_camera(written(tmp_path, ONE.replace("[{name}]", "[x]").format(name="a camera: left")))
    save_camera(tmp_path / "again.toml", camera)
    again = load_camera(tmp_path / "again.toml")
    assert (again.name, again.size, again.fisheye) == (camera.name, camera.size, camera.fisheye)
    for key in ("matrix", "rotation", "translation", "distortions"):
        np.testing.assert_array_equal(getattr(again, key), getattr(camera, key))


class TestSeveral:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return written(tmp_path, ONE.format(name="left") + ONE.format(name="right") + METADATA)

    def test_one_is_chosen_by_name(self, file: Path) -> None:
        assert load_camera(f"{file}:right").name == "right"

    def test_without_a_name_they_are_listed(self, file: Path) -> None:
        with pytest.raises(CameraError, match=r"several cameras; choose one: .*:left, .*:right$"):
            load_camera(file)

    @pytest.mark.parametrize("name", ["middle", "metadata", ""])
    def test_a_name_that_is_no_camera(self, file: Path, name: str) -> None:
        with pytest.raises(CameraError, match=r"has no camera|no name after the colon"):
            load_camera(f"{file}:{name}")

    def test_an_existing_file_wins_over_a_name(self, file: Path) -> None:
        written(file.parent, ONE.format(name="other"), "cam.toml:right")
        assert load_camera(f"{file}:right").name == "other"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("size = [ 640.0, 360.0]", "size = [ 640.0]"), "size"),
        (("size = [ 640.0, 360.0]", "size = [ 640.5, 360.0]"), "whole numbers"),
        (("size = [ 640.0, 360.0]", "size = [ -640.0, 360.0]"), "size"),
        (("[ 600.0, 0.0, 320.0]", "[ 0.0, 0.0, 320.0]"), "focal lengths are 0 and 610"),
        (("[ 600.0, 0.0, 320.0]", "[ 600.0, 3.0, 320.0]"), "cx"),
        (("[ 600.0, 0.0, 320.0]", "[ nan, 0.0, 320.0]"), "finite"),
        (("[ 600.0, 0.0, 320.0]", "[ 600.0, 320.0]"), "3x3"),
        (("rotation = [ 1.2, -1.1, 0.9]", "rotation = [ 1.2, inf, 0.9]"), "Rodrigues"),
        (("rotation = [ 1.2, -1.1, 0.9]\n", ""), "lacks rotation"),
        (("translation = [ 0.1, 0.9, 4.0]", 'translation = "far"'), "metres"),
        (("distortions = [ -0.1, 0.02, 0.0, 0.0]", "distortions = [ 0.1, 0.2, 0.3]"), "0 or 4 or 5"),
        (("fisheye = false", "fisheye = 3"), "true or false"),
        (("[x]", "[x"), "not a TOML file"),
        (("[x]", "[metadata]"), "holds no camera"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_file(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    text = ONE.format(name="x")
    assert change[0] in text
    with pytest.raises(CameraError, match=says) as error:
        load_camera(written(tmp_path, text.replace(*change)))
    assert str(tmp_path / "cam.toml") in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("spec", ["missing.toml", "missing.toml:left", r"C:\cameras\missing.toml", ":", ""])
def test_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CameraError, match=r"no such camera file|is a folder"):
        load_camera(spec)


def test_a_camera_is_found_beside_a_video(tmp_path: Path) -> None:
    assert camera_beside(tmp_path / "walk.mp4") is None
    path = written(tmp_path, ONE.format(name="x"), "walk.toml")
    assert camera_beside(tmp_path / "walk.mp4") == path


class TestAnotherSize:
    camera = Camera(
        "c", (640, 360), np.array([[600.0, 0, 320], [0, 610, 180], [0, 0, 1]]), np.zeros(3), np.array([0, 0, 4.0])
    )

    def test_of_the_same_shape_scales_what_is_seen(self) -> None:
        small = camera_for_size(self.camera, (320, 180))
        assert small.size == (320, 180)
        points = np.array([[0.3, -0.2, 0.1], [-0.5, 0.4, 1.0]])
        np.testing.assert_allclose(
            project(small, points) + 0.5, 0.5 * (project(self.camera, points) + 0.5), rtol=0, atol=1e-9
        )

    @pytest.mark.parametrize("size", [(360, 640), (640, 480)])
    def test_of_another_shape_names_both(self, size: tuple[int, int]) -> None:
        with pytest.raises(CameraError, match=rf"640x360.*{size[0]}x{size[1]}"):
            camera_for_size(self.camera, size)


@pytest.mark.skipif(not POSE2SIM.is_file(), reason=f"needs {POSE2SIM}")
def test_pose2sims_own_file() -> None:
    camera = load_camera(f"{POSE2SIM}:cam_03")
    assert camera.size == (1088, 1920)
    assert len(camera.distortions) == 4
    with pytest.raises(CameraError, match=r"cam_01.*cam_04"):
        load_camera(POSE2SIM)
