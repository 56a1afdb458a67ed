"""Files of keypoints in the shapes that their writers give them; and what is said of those that cannot be read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mocap2ctrl.errors import KeypointsError
from mocap2ctrl.video.keypoints_files import read_keypoints
from mocap2ctrl.video.keypoints_layouts import BODY_25, COCO_18, HALPE_26, LAYOUTS, MEDIAPIPE_33, MEDIAPIPE_NAMES
from mocap2ctrl.video.keypoints_people import people_of

OPENPOSE_BODY_25 = {
    0: "Nose",
    1: "Neck",
    4: "RWrist",
    7: "LWrist",
    8: "MidHip",
    9: "RHip",
    14: "LAnkle",
    19: "LBigToe",
    24: "RHeel",
}
OPENPOSE_COCO = {0: "Nose", 1: "Neck", 4: "RWrist", 8: "RHip", 13: "LAnkle", 16: "REar", 17: "LEar"}
HALPE = {
    0: "Nose",
    9: "LWrist",
    11: "LHip",
    16: "RAnkle",
    17: "Head",
    18: "Neck",
    19: "Hip",
    20: "LBigToe",
    23: "RSmallToe",
    25: "RHeel",
}
BLAZEPOSE = {
    0: "Nose",
    2: "LEye",
    5: "REye",
    11: "LShoulder",
    16: "RWrist",
    24: "RHip",
    27: "LAnkle",
    30: "RHeel",
    31: "LBigToe",
}
"""Numbers as in OpenPose's doc/02_output.md, and in the skeletons of Pose2Sim 0.10.49 (HALPE_26, BLAZEPOSE)."""


def ours(name: str) -> str:
    """A name of OpenPose in our words."""
    words = {"MidHip": "pelvis", "Hip": "pelvis", "Head": "head_top", "Nose": "nose", "Neck": "neck"}
    if name in words:
        return words[name]
    part = name[1:].replace("BigToe", "big_toe").replace("SmallToe", "small_toe").lower()
    return f"{'left' if name[0] == 'L' else 'right'}_{part}"


@pytest.mark.parametrize(
    ("layout", "known"),
    [(BODY_25, OPENPOSE_BODY_25), (COCO_18, OPENPOSE_COCO), (HALPE_26, HALPE), (MEDIAPIPE_33, BLAZEPOSE)],
)
def test_numbers_are_those_of_the_detectors(layout: tuple[str | None, ...], known: dict[int, str]) -> None:
    assert {number: layout[number] for number in known} == {number: ours(name) for number, name in known.items()}


def test_layouts_are_symmetric_and_as_long_as_they_say() -> None:
    for count, (_, layout) in LAYOUTS.items():
        names = [name for name in layout if name is not None]
        assert len(layout) == count
        assert len(set(names)) == len(names)
        assert {n.replace("left", "right") for n in names if n.startswith("left")} == {
            n for n in names if n.startswith("right")
        }


def person(count: int, shift: float = 0.0, confidence: float = 0.9) -> list[float]:
    """x, y, c in turn: point i at (100 + i, 200 + 2 i), moved to the right; the third is missing, as detectors write it."""
    numbers = [v for i in range(count) for v in (100.0 + i + shift, 200.0 + 2 * i, confidence)]
    numbers[6:9] = [0.0, 0.0, 0.0]
    return numbers


def openpose(*people: list[float]) -> dict[str, Any]:
    """A frame as OpenPose 1.3 writes it, and after it Pose2Sim."""
    return {
        "version": 1.3,
        "people": [{"person_id": [-1], "pose_keypoints_2d": numbers, "face_keypoints_2d": []} for numbers in people],
    }


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize(("count", "what"), [(25, "BODY_25"), (18, "COCO, 18 points"), (26, "HALPE_26")])
def test_a_folder_of_openpose(tmp_path: Path, count: int, what: str) -> None:
    for number, people in enumerate([[person(count)], [], [person(count, 5.0), person(count, 300.0)]]):
        write(tmp_path / f"clip_{number:012d}_keypoints.json", openpose(*people))
    write(tmp_path / "notes.json", {"other": 1})
    found = read_keypoints(tmp_path)
    assert (found.what, found.normalised) == (what, False)
    assert [(m.moment, m.unit, len(m.people)) for m in found.moments] == [
        (0, "frame", 1),
        (1, "frame", 0),
        (2, "frame", 2),
    ]
    layout = LAYOUTS[count][1]
    assert found.names == tuple(name for name in layout if name)
    np.testing.assert_allclose(found.moments[2].people[1, 3], [100 + 3 + 300.0, 206.0, 0.9])
    assert not found.moments[0].people[0, 2].any()


def test_files_of_pose2sim_are_named_by_frames_in_any_number_of_digits(tmp_path: Path) -> None:
    for number in (2, 10, 9):
        write(tmp_path / f"cam1_{number}.json", openpose(person(26)))
    assert [m.moment for m in read_keypoints(tmp_path).moments] == [2, 9, 10]


def landmarks(frame: int) -> list[dict[str, float]]:
    """33 landmarks in shares of the picture."""
    return [
        {"x": 0.3 + 0.01 * i, "y": 0.1 + 0.02 * i + 0.001 * frame, "z": -0.1, "visibility": 0.99} for i in range(33)
    ]


SHAPES = {
    "a list of frames": lambda: [landmarks(0), [], landmarks(2)],
    "null for nobody": lambda: [landmarks(0), None, landmarks(2)],
    "frames beside a size": lambda: {"width": 640, "height": 480, "frames": [landmarks(0), [], landmarks(2)]},
    "with frame numbers": lambda: [{"frame": 0, "landmarks": landmarks(0)}, {"frame": 2, "landmarks": landmarks(2)}],
    "lists of four": lambda: [[[p["x"], p["y"], p["z"], p["visibility"]] for p in landmarks(0)], [], landmarks(2)],
    "by frame": lambda: {"0": landmarks(0), "2": landmarks(2)},
    "people": lambda: {
        "frames": [{"pose_landmarks": [landmarks(0)]}, {"pose_landmarks": []}, {"pose_landmarks": [landmarks(2)]}]
    },
    "protobuf": lambda: [{"landmark": landmarks(0)}, {}, {"landmark": landmarks(2)}],
    "by name": lambda: [dict(zip(MEDIAPIPE_NAMES, landmarks(f), strict=True)) if f != 1 else {} for f in range(3)],
    "by loud name": lambda: [
        {n.upper(): p for n, p in zip(MEDIAPIPE_NAMES, landmarks(f), strict=True)} for f in (0, 1, 2)
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_landmarks_of_mediapipe(tmp_path: Path, shape: str) -> None:
    found = read_keypoints(write(tmp_path / "pose.json", SHAPES[shape]()))
    by_moment = {m.moment: m.people for m in found.moments if len(m.people)}
    assert (found.what, found.normalised) == ("MediaPipe, 33 points", True)
    assert {0, 2} <= set(by_moment) <= {0, 1, 2}
    knee = found.names.index("left_knee")
    np.testing.assert_allclose(by_moment[2][0, knee], [0.3 + 0.25, 0.1 + 0.5 + 0.002, 0.99])


def test_time_stamps_in_milliseconds(tmp_path: Path) -> None:
    value = [{"timestamp_ms": 40 * i, "landmarks": [landmarks(i)]} for i in range(3)]
    moments = read_keypoints(write(tmp_path / "pose.json", value)).moments
    assert [(round(m.moment, 9), m.unit) for m in moments] == [(0.0, "s"), (0.04, "s"), (0.08, "s")]


def test_pixels_are_told_from_shares_by_their_range(tmp_path: Path) -> None:
    pixels = [{"x": 640 * p["x"], "y": 480 * p["y"], "visibility": 1.0} for p in landmarks(0)]
    assert not read_keypoints(write(tmp_path / "pose.json", [pixels])).normalised


def test_clicks_on_a_few_frames(tmp_path: Path) -> None:
    value = {
        "frames": [
            {"frame": 12, "points": {"left_knee": [10, 20], "head": [1.5, 2]}},
            {"time_s": 0.9, "points": {"right_wrist": [3, 4]}},
        ]
    }
    found = read_keypoints(write(tmp_path / "points.json", value))
    assert found.names == ("left_knee", "head", "right_wrist")
    assert [(m.moment, m.unit) for m in found.moments] == [(12.0, "frame"), (0.9, "s")]
    np.testing.assert_array_equal(found.moments[0].people[0], [[10, 20, 1], [1.5, 2, 1], [0, 0, 0]])
    np.testing.assert_array_equal(found.moments[1].people[0], [[0, 0, 0], [0, 0, 0], [3, 4, 1]])


TRC = (
    "PathFileType\t4\t(X/Y/Z)\tdemo_px_person00.trc\n"
    "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames\n"
    "30\t30\t2\t3\tm\t30\t0\t2\n"
    "Frame#\tTime\tHip\t\t\tRKnee\t\t\tLBigToe\t\t\t\n"
    "\t\tX1\tY1\tZ1\tX2\tY2\tZ2\tX3\tY3\tZ3\n"
    "0\t0.0\t310.5\t220.0\t0.0\t\t\t\t300.0\t400.0\t0.0\n"
    "1\t0.0333\t311.5\t221.0\t0.0\t0.0\t0.0\t0.0\t301.0\t401.0\t0.0\n"
)
"""As Sports2D 0.8 writes it; its header says metres of pixels, too."""


def test_trc_in_pixels(tmp_path: Path) -> None:
    file = tmp_path / "demo_px_person00.trc"
    file.write_text(TRC)
    found = read_keypoints(file)
    assert found.names == ("pelvis", "right_knee", "left_big_toe")
    assert [m.moment for m in found.moments] == [0.0, 0.0333]
    np.testing.assert_array_equal(found.moments[0].people[0], [[310.5, 220, 1], [0, 0, 0], [300, 400, 1]])
    np.testing.assert_array_equal(found.moments[1].people[0][:, 2], [1, 0, 1])


def test_trc_in_metres_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "demo_m_person00.trc"
    file.write_text(re.sub(r"[234]\d\d\.\d", lambda number: f"{float(number[0]) / 200:.3f}", TRC))
    with pytest.raises(KeypointsError, match="in metres; give the file in pixels"):
        read_keypoints(file)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1", "line 9: not enough values"),
        ("1\t\t300", "line 9: time is nan"),
        ("1\t0.07\tx", "line 9: could not convert"),
    ],
)
def test_damaged_lines_of_a_trc_are_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "demo_px_person00.trc"
    file.write_text(TRC + "\n" + line)
    with pytest.raises(KeypointsError, match=message):
        read_keypoints(file)


def test_a_trc_that_is_cut_off_keeps_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "demo_px_person00.trc"
    file.write_text(TRC + "2\t0.0667\t312.5\t222.0\t0.0\t30")
    last = read_keypoints(file).moments[-1]
    np.testing.assert_array_equal(last.people[0], [[312.5, 222, 1], [0, 0, 0], [0, 0, 0]])


BAD: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "is no JSON"),
    "a number": (7, "holds no list of frames"),
    "nothing": ([], "holds no list of frames"),
    "nobody": ([[], None], "no person in any of 2 frames"),
    "five points": ([openpose(person(5))], "people of 5 points; allowed is one of 17"),
    "two kinds": ([openpose(person(25)), openpose(person(18))], "people of 18, 25 points"),
    "not in threes": ([openpose(person(25)[:-1])], "no pose_keypoints_2d"),
    "words": ([[["a", "b"]] * 33], "a point is"),
    "no confidence": ([openpose(person(25, confidence=0.0))], "no point is seen"),
    "from -1 to 1": ([[{"x": p["x"] - 0.5, "y": p["y"] - 0.5} for p in landmarks(0)]], "run from -1 to 1"),
    "strange keys": ([{"joints": 3}], "has joints; expected people"),
    "an unknown click": ({"frames": [{"frame": 1, "points": {"tail": [1, 2]}}]}, "no point 'tail'; known are pelvis"),
    "a click in space": (
        {"frames": [{"frame": 1, "points": {"head": [1, 2, 3]}}]},
        r"head is \[1, 2, 3\]; expected \[x, y\]",
    ),
    "a click at no time": ({"frames": [{"points": {"head": [1, 2]}}]}, "entry 1 of frames: neither frame nor time_s"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    value, message = BAD[kind]
    file = tmp_path / "points.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    with pytest.raises(KeypointsError, match=message) as caught:
        read_keypoints(file)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_missing_and_empty_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KeypointsError, match="no such file or folder"):
        read_keypoints(tmp_path / "nothing.json")
    with pytest.raises(KeypointsError, match="holds no JSON file"):
        read_keypoints(tmp_path)
    write(tmp_path / "first_keypoints.json", openpose(person(25)))
    with pytest.raises(KeypointsError, match="holds no frame number"):
        read_keypoints(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["people", "landmarks", "x", "y", "nose", "pose_keypoints_2d", "frames"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=200)
def test_any_json_gives_people_or_an_error_of_ours(value: Any) -> None:
    try:
        people = people_of(value, "frame 1")
    except KeypointsError:
        return
    assert all(p.ndim == 2 and p.shape[1] == 3 and np.isfinite(p).all() for p in people)
