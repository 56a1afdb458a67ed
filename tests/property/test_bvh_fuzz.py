"""Whatever happens to a BVH or DeepMimic file, reading it gives a motion or a `MotionFileError`, nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mocap2ctrl.character import load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion import load_motion
from mocap2ctrl.motion.bvh import parse_bvh
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.deepmimic import parse_deepmimic
from mocap2ctrl.types import MotionClip

BVH = """HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT LeftUpLeg
  {
    OFFSET 1 0 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 -4 0
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.033333
0 1 0 0 0 0 10 20 30
0 1 1 0 0 0 11 21 31
0 1 2 0 0 0 12 22 32
"""

UNIT = [1.0, 0.0, 0.0, 0.0]
ROW = [0.03, 0, 0.9, 0, *UNIT, *UNIT, *UNIT, *UNIT, -0.2, *UNIT, *UNIT, 0.3, *UNIT, -0.2, *UNIT, *UNIT, 0.3]
DEEPMIMIC = json.dumps({"Loop": "wrap", "Frames": [ROW, ROW, ROW]})

JUNK = st.sampled_from(
    [
        "",
        "nan",
        "inf",
        "-1e400",
        "{",
        "}",
        "<<<<<<< HEAD",
        "MOTION",
        "End Site",
        "JOINT",
        "0x10",
        "1_0",
        "٣",
        "\x00",
        "ROOT x",
    ]
)


def read_bvh_text(text: str) -> None:
    message = ""
    try:
        source = parse_bvh(text, "f.bvh", "f")
    except MotionFileError as error:
        message = str(error)
    if message:
        assert "f.bvh" in message
        assert "\n" not in message
        return
    assert np.all(np.isfinite(source.positions))
    np.testing.assert_allclose(np.linalg.norm(source.orientations, axis=-1), 1.0, atol=1e-9)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.data())
def test_bvh_with_a_word_replaced(data: st.DataObject) -> None:
    words = BVH.split(" ")
    index = data.draw(st.integers(0, len(words) - 1))
    words[index] = data.draw(st.one_of(JUNK, st.text(max_size=6)))
    read_bvh_text(" ".join(words))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.data())
def test_bvh_with_lines_deleted_repeated_or_cut(data: st.DataObject) -> None:
    lines = BVH.splitlines()
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start, len(lines)))
    lines[start:stop] = data.draw(st.sampled_from([[], lines[start:stop] * 2, ["  "]]))
    text = "\n".join(lines)
    read_bvh_text(text[: data.draw(st.integers(0, len(text)))])


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_bvh_from_any_text(text: str) -> None:
    read_bvh_text(text)
    read_bvh_text("HIERARCHY\n" + text)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.data())
def test_deepmimic_with_a_piece_replaced(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(DEEPMIMIC) - 1))
    stop = data.draw(st.integers(start, min(len(DEEPMIMIC), start + 30)))
    piece = data.draw(
        st.one_of(st.text(max_size=6), st.sampled_from(["NaN", "[]", "null", "1e999", "-5", "true", '"x"', "{}"]))
    )
    try:
        source = parse_deepmimic(DEEPMIMIC[:start] + piece + DEEPMIMIC[stop:], "f.txt", "f")
    except MotionFileError:
        return
    assert np.all(np.isfinite(source.positions))


@pytest.mark.parametrize("text", ["[" * 100000, '{"Frames": ' + "[" * 100000, "{}", "[]", "3", '{"Frames": {}}'])
def test_deepmimic_hostile_json(text: str) -> None:
    with pytest.raises(MotionFileError):
        parse_deepmimic(text, "f.txt", "f")


@pytest.fixture(scope="module")
def whole_body(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A scratch file, and the words of a valid file of a whole body."""
    character = load_character()
    pose = character.zero_pose()
    clip = MotionClip("x", 30.0, [pose.root_position] * 2, [pose.root_orientation] * 2, [pose.angles] * 2)
    path = tmp_path_factory.mktemp("fuzz") / "body.bvh"
    write_bvh(path, clip, character)
    return path, re.split(r"(\s+)", path.read_text("utf-8"))


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.data())
def test_retargeting_a_body_with_absurd_numbers(whole_body: tuple[Path, list[str]], data: st.DataObject) -> None:
    path, words = whole_body
    numbers = [index for index, word in enumerate(words) if re.fullmatch(r"-?\d+\.\d+", word)]
    changed = list(words)
    for index in data.draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=40)):
        changed[index] = data.draw(st.sampled_from(["0", "-0.0", "1e-9", "-50", "180", "1e6", "-7e6"]))
    path.write_text("".join(changed), "utf-8")
    character = load_character()
    try:
        motion = load_motion(path, character)
    except MotionFileError:
        return
    assert np.all(motion.clip.angles >= character.lower_limits - 1e-9)
    assert np.all(motion.clip.angles <= character.upper_limits + 1e-9)
