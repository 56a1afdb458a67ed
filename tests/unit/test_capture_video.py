"""A video's capture on disk: what is damaged of its evidence is refused with its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_fit import needs_walk
from tiny_video import new_folder, silhouettes_of, tiny_config, true_track, walk_clip

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CaptureError, Mocap2CtrlError
from mocap2ctrl.fit.capture import CAMERA, CONFIG, TARGET, load_capture, save_inputs
from mocap2ctrl.fit.video import video_capture

pytestmark = needs_walk


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Path:
    clip = walk_clip(character, 0.3)
    folder = new_folder(tmp_path_factory.mktemp("video") / "walk")
    evidence, track = silhouettes_of(character, clip), true_track(character, clip)
    save_inputs(video_capture(folder, evidence, track, tiny_config(), {"engine": "mujoco"}))
    return folder


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("silhouettes_bits", np.zeros(5, np.uint8), "do not fit"),
        ("silhouettes_bits", np.zeros(8640, np.float64), "do not fit"),
        ("silhouettes_shape", np.array([10, 96, 72]), "camera's 96x72"),
        ("silhouettes_shape", np.array([0, 72, 96]), "do not fit"),
        ("silhouettes_fps", np.array(-3.0), "cannot be read .fps is -3"),
        ("girth", np.array(0.0), "girth"),
        ("girth", np.array(np.nan), "girth"),
        ("silhouettes_provenance_json", np.array("{"), "cannot be read"),
        ("silhouettes_provenance_json", np.array("[1]"), "silhouettes_provenance_json is no JSON object"),
        ("silhouettes_provenance_json", np.array('{"start_s": "soon"}'), "start_s is 'soon'"),
        ("silhouettes_provenance_json", np.array('{"start_s": NaN}'), "start_s is nan"),
        ("silhouettes_bits", np.zeros(8640, np.uint8), "no mask holds a pixel"),
        ("silhouettes_fps", np.array(15.0), "10 masks where"),
    ],
)
def test_a_wrong_entry_is_refused(seen: Path, tmp_path: Path, name: str, value: object, says: str) -> None:
    folder = shutil.copytree(seen, tmp_path / "walk")
    with np.load(folder / TARGET) as data:
        arrays = {key: data[key] for key in data.files}
    np.savez(folder / TARGET, **{**arrays, name: value})
    with pytest.raises(CaptureError, match=rf"target\.npz.*{says}"):
        load_capture(folder)


def test_the_track_is_on_the_video_s_clock(tmp_path: Path, character: Character) -> None:
    clip = walk_clip(character, 0.3)
    folder = new_folder(tmp_path / "walk")
    evidence = silhouettes_of(character, clip, start_s=1.25)
    save_inputs(video_capture(folder, evidence, true_track(character, clip), tiny_config(), {"engine": "mujoco"}))
    assert load_capture(folder).reference.start_s == 1.25


def test_without_its_camera_it_is_refused(seen: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(seen, tmp_path / "walk")
    (folder / CAMERA).write_text("[side]\n")
    with pytest.raises(Mocap2CtrlError, match=r"camera\.toml"):
        load_capture(folder)
    (folder / CAMERA).unlink()
    with pytest.raises(CaptureError, match=r"camera\.toml"):
        load_capture(folder)


def test_masks_take_one_bit_a_pixel(seen: Path) -> None:
    with np.load(seen / TARGET) as data:
        assert data["silhouettes_bits"].shape == (10 * 72 * 96 // 8,)
        assert all(data[name].dtype != object for name in data.files)


def test_a_video_that_is_being_tracked_can_be_told_from_one_that_is_damaged(seen: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(seen, tmp_path / "walk")
    (folder / TARGET).unlink()
    with pytest.raises(CaptureError, match=r"target\.npz is missing"):
        load_capture(folder)
    (folder / CONFIG).write_text((folder / CONFIG).read_text().replace("[run]", '[run]\ntrack_key = "00"'))
    with pytest.raises(CaptureError, match=r"target\.npz.*tracking has not ended.*--resume"):
        load_capture(folder)
