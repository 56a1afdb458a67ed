"""Points files: both forms, what is refused, and clicks that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CameraError, VideoError
from mocap2ctrl.video.calibration.pixel_grid import with_pixel_grid
from mocap2ctrl.video.calibration.points_file import load_points, save_joints

JOINTS = {
    name: [100.0 + 10 * i, 200.0 + i]
    for i, name in enumerate(("head", "neck", "left_hip", "right_hip", "left_ankle", "right_ankle"))
}
PLACES = [{"pixel": [10 * i, 20], "world": [i, i * i, 0.0]} for i in range(4)]


@pytest.fixture
def names(character: Character) -> list[str]:
    return [point.name for point in character.evaluation_points]


def toml(frames: list[dict[str, object]], points: list[dict[str, object]]) -> str:
    lines = []
    for key, tables in (("frame", frames), ("point", points)):
        for table in tables:
            lines += [f"[[{key}]]", *(f"{k} = {v}" for k, v in table.items())]
    return "\n".join(lines)


def test_both_forms_say_the_same(tmp_path: Path, names: list[str]) -> None:
    frame = {"time_s": 0.4, **JOINTS}
    (tmp_path / "p.toml").write_text(toml([frame, {"frame": 7, **JOINTS}], PLACES))
    (tmp_path / "p.json").write_text(json.dumps({"frame": [frame, {"frame": 7, **JOINTS}], "point": PLACES}))
    for file in ("p.toml", "p.json"):
        points = load_points(tmp_path / file, names)
        assert points.when == ("time_s 0.4", "frame 7")
        assert points.joints.shape == (2, 15, 2)
        assert points.joints[1, names.index("left_hip")] == pytest.approx([120.0, 202.0])
        assert np.isnan(points.joints[:, names.index("left_wrist")]).all()
        assert points.world[3] == pytest.approx([3.0, 9.0, 0.0])
        assert points.pixels.shape == (4, 2)


def test_clicks_are_kept(tmp_path: Path, names: list[str]) -> None:
    save_joints(tmp_path / "p.toml", 1.25, {name: (x, y) for name, (x, y) in JOINTS.items()})
    points = load_points(tmp_path / "p.toml", names)
    assert points.when == ("time_s 1.25",)
    assert points.joints[0, names.index("head")] == pytest.approx([100.0, 200.0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no points"),
        ("frame = 3", r"write \[\[frame\]\]"),
        ("[x]", "unknown table 'x'"),
        ("[[frame", "is no TOML"),
        (toml([{**JOINTS, "left_toe": [1, 2]}], []), "no joint 'left_toe'; allowed are pelvis"),
        (toml([{"head": [1, 2]}], []), "1 joints; give 6 or more"),
        (toml([{**JOINTS, "head": [1, 2, 3]}], []), r"head is \[1, 2, 3\]; expected a pixel"),
        (toml([{**JOINTS, "head": "'x'"}], []), "head is x"),
        (toml([{**JOINTS, "head": "[nan, 1]"}], []), "head is"),
        (toml([], PLACES[:3]), "3 known places; give none, or 4"),
        (toml([], [*PLACES, {"pixel": [1, 2]}]), "point 5: has pixel; expected pixel and world"),
        (toml([], [*PLACES, {"pixel": [1, 2], "world": [1, 2]}]), r"world is \[1, 2\]"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, names: list[str], text: str, says: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(CameraError, match=says) as caught:
        load_points(tmp_path / "p.toml", names)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "data"), [("p.json", b"[1]"), ("p.json", b"{"), ("p.toml", b"\xff\xfe")])
def test_files_of_another_kind(tmp_path: Path, names: list[str], name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CameraError, match=name):
        load_points(tmp_path / name, names)
    with pytest.raises(CameraError, match="cannot be read"):
        load_points(tmp_path / "none.toml", names)


def test_grid_has_a_line_at_round_pixels() -> None:
    picture = with_pixel_grid(np.full((90, 160, 3), 100, np.uint8))
    assert picture.shape == (900, 1600, 3)
    assert (picture[450, 202:208] == 255).all(axis=-1).any()  # pixel 20 of 160, ten times as large
    assert (picture[455, 150] == 100).all()


def test_grid_is_for_frames_that_there_are(tmp_path: Path) -> None:
    from mocap2ctrl.video.calibration.pixel_grid import frame_at

    with pytest.raises(VideoError, match="no such file"):
        frame_at(tmp_path / "none.mp4", 0.0)
