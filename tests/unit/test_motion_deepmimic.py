"""DeepMimic reader: the skeleton in closed form, durations, loops, and pybullet's own clips."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mocap2ctrl.character import load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.deepmimic import deepmimic_directory, parse_deepmimic, read_deepmimic
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.stated import Stated

UNIT = [1.0, 0.0, 0.0, 0.0]
needs_clips = pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")


def row(duration: float = 1 / 30, *, root=(0.0, 0.9, 0.0), knee: float = 0.0, elbow: float = 0.0) -> list[float]:
    right = [*UNIT, knee, *UNIT, *UNIT, elbow]
    return [duration, *root, *UNIT, *UNIT, *UNIT, *right, *UNIT, 0.0, *UNIT, *UNIT, 0.0]


def parse(rows, loop: str = "none"):
    return parse_deepmimic(json.dumps({"Loop": loop, "Frames": rows}), "clip.txt", "clip")


def test_zero_pose_stands_upright_with_right_on_positive_z():
    source = parse([row(), row()])
    at = dict(zip(source.joint_names, source.positions[0], strict=True))
    np.testing.assert_allclose(at["right_ankle"], [0, 0.9 - 0.421546 - 0.40987, 0.084887], atol=1e-9)
    np.testing.assert_allclose(at["left_wrist"][1], 0.9 + 0.236151 + 0.2435 - 0.274788 - 0.258947, atol=1e-9)
    assert at["left_wrist"][2] < 0 < at["right_wrist"][2]


def test_knees_flex_backwards_with_negative_and_elbows_forwards_with_positive_angles():
    source = parse([row(knee=-np.pi / 2, elbow=np.pi / 2)])
    at = dict(zip(source.joint_names, source.positions[0], strict=True))
    np.testing.assert_allclose(at["right_ankle"] - at["right_knee"], [-0.40987, 0, 0], atol=1e-9)
    np.testing.assert_allclose(at["right_wrist"] - at["right_elbow"], [0.258947, 0, 0], atol=1e-9)


def test_uneven_durations_are_resampled_in_time():
    rows = [
        row(0.05, root=(0.0, 0.9, 0)),
        row(0.1, root=(0.1, 0.9, 0)),
        row(0.05, root=(0.3, 0.9, 0)),
        row(0, root=(0.4, 0.9, 0)),
    ]
    source = parse(rows)
    assert source.fps == 20.0
    np.testing.assert_allclose(source.positions[:, 0, 0], [0, 0.1, 0.2, 0.3, 0.4], atol=1e-9)


def test_a_loop_of_uneven_durations_keeps_its_period():
    rows = [row(d, root=(x, 0.9, 0)) for d, x in ((0.1, 0.0), (0.1, 0.1), (0.1, 0.2), (0.07, 0.3), (0.0, 0.37))]
    source = parse(rows, "wrap")
    np.testing.assert_allclose((len(source) - 1) / source.fps, 0.37)
    np.testing.assert_allclose(source.positions[-1, 0, 0], 0.37)
    np.testing.assert_allclose(np.diff(source.positions[:, 0, 0]), 1.0 / source.fps, rtol=1e-9)


def test_what_a_loop_may_be_and_numbers_that_are_none():
    with pytest.raises(MotionFileError, match="Loop is 'pingpong'; allowed are 'none' and 'wrap'"):
        parse([row(), row()], "PingPong")
    with pytest.raises(MotionFileError, match="not valid JSON"):
        parse_deepmimic('{"Frames": [[' + "1" * 5000 + "]]}", "clip.txt", "clip")


def test_loop_flag():
    assert parse([row(), row()], "wrap").loop
    assert not parse([row(), row()], "none").loop


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ([], "at least one frame"),
        ([row()[:-1]], "frame 0 is 43 numbers"),
        ([row(), [*row()[:-1], "x"]], "frame 1 holds a value that is not a finite number"),
        ([row(0.0), row()], "frame 0 lasts 0 s"),
        ([row(2.0), row()], "frame 0 lasts 2 s"),
        ([[*row()[:4], 0, 0, 0, 0, *row()[8:]]], "a quaternion of length 0"),
        ([row()[:37]], r"frame 0 is 37 numbers; .*clips of other characters, such as atlas"),
    ],
)
def test_damaged_clips_are_refused(rows, cause: str):
    with pytest.raises(MotionFileError, match=cause):
        parse(rows)


@needs_clips
def test_a_robot_dog_is_refused_with_its_row_length():
    with pytest.raises(MotionFileError, match="20 numbers"):
        read_deepmimic(deepmimic_directory() / "laikago_walk.txt")


@needs_clips
def test_another_up_axis_than_the_formats_is_doubted():
    character = load_character()
    wrong = load_motion("humanoid3d_walk", character, stated=Stated(up="x"))
    assert any("was given, x, is not the one that the file states, y" in warning for warning in wrong.warnings)
    right = load_motion("humanoid3d_walk", character, stated=Stated(up="y"))
    assert not any("up axis" in warning for warning in right.warnings)


@needs_clips
def test_all_of_pybullets_humanoid_clips_are_read():
    paths = sorted(deepmimic_directory().glob("humanoid3d_*.txt"))
    assert len(paths) >= 15
    for path in paths:
        assert np.max(np.abs(read_deepmimic(path).positions)) < 10.0
