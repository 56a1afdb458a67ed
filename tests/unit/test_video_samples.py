"""Sample footage is found by its name alone, whatever the working folder, and gives way to a user's own file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mocap2ctrl.errors import VideoError
from mocap2ctrl.evaluation.reference import load_reference
from mocap2ctrl.video.samples import TRUTH, VIDEO, footage_directory, shipped_file, shipped_videos
from mocap2ctrl.video.silhouettes import load_silhouettes

pytestmark = pytest.mark.skipif(footage_directory() is None, reason="a checkout without video/")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_three_videos_have_all_that_a_fit_and_its_evaluation_need() -> None:
    assert shipped_videos() == ("jump.mp4", "spinkick.mp4", "walk.mp4")
    for name in shipped_videos():
        file = shipped_file(name, VIDEO)
        assert file is not None
        for ending in (".toml", ".background.jpg", TRUTH):
            assert file.with_name(file.stem + ending).is_file()


@pytest.mark.parametrize(
    ("name", "ending"), [("run.mp4", VIDEO), ("walk", VIDEO), ("walk.toml", VIDEO), ("here/walk.mp4", VIDEO)]
)
def test_nothing_else_is_found(name: str, ending: str) -> None:
    assert shipped_file(name, ending) is None


def test_a_user_s_own_file_comes_first() -> None:
    Path("walk.mp4").write_bytes(b"mine")
    assert shipped_file("walk.mp4", VIDEO) is None
    with pytest.raises(VideoError, match=r"walk\.mp4"):
        load_silhouettes("walk.mp4")


def test_a_video_by_name_brings_its_camera_and_plate_and_the_user_is_told() -> None:
    loaded = load_silhouettes("walk.mp4", time_range=(0.0, 0.2))
    assert loaded.notes[0].endswith("walk.mp4, sample footage; there is no walk.mp4 here")
    assert any("clean plate" in note for note in loaded.notes)
    assert any("walk.toml, found beside the input" in note for note in loaded.notes)
    assert loaded.silhouettes.masks.any(axis=(1, 2)).all()


def test_a_truth_by_name() -> None:
    assert load_reference("walk.truth.npz", 1.75).clip.duration_s == pytest.approx(2.0, abs=0.05)
    assert shipped_file("walk.truth.npz", VIDEO) is None


def test_a_video_that_is_not_there_is_told_before_its_camera() -> None:
    with pytest.raises(VideoError, match=r"nowhere\.mp4: no such file"):
        load_silhouettes("nowhere.mp4")
