"""Whatever happens to a BVH or DeepMimic file, reading it gives a motion or a `MotionFileError`, nothing else."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from bvh_dialects import FRAMES, Dialect, all_axes
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import MOST_BYTES, SLOWEST_S, cpu_seconds, peak_bytes, survive

from mocap2ctrl.character import load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.bvh import parse_bvh
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.deepmimic import parse_deepmimic
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.names import map_joints
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.text import decoded
from mocap2ctrl.motion.trees import person
from mocap2ctrl.motion.units import infer_scale
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

FIXED = """HIERARCHY
ROOT Reference
{
\tOFFSET 0 0 0
\tJOINT "Hips main"
\t{
\t\tOFFSET 1,5 0 0
\t\tCHANNELS 2 Yposition Xrotation
\t}
}
MOTION
Frame Time: ,02
Frames: 2
1 2
3 4
"""
PROP = re.sub(
    r"( 3\d)\n", r"\1 5\n", BVH.replace("MOTION", "ROOT Stick\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n}\nMOTION")
)


def whole_bodies() -> list[bytes]:
    """A small body in three dialects, three frames each."""
    dialects = (Dialect(), Dialect(channels=all_axes, tips=False), Dialect(number="%.3e"))
    texts = [re.sub(r"(Frames: )\d+", r"\g<1>3", dialect.write()) for dialect in dialects]
    return ["\n".join(text.splitlines()[: 3 - FRAMES]).encode() for text in texts]


def read_bvh_file(data: bytes, name: str) -> SourceMotion:
    """A motion, which is finite, of a skeleton."""
    source = parse_bvh(decoded(data), name, "f")
    assert np.all(np.isfinite(source.positions))
    np.testing.assert_allclose(np.linalg.norm(source.orientations, axis=-1), 1.0, atol=1e-9)
    assert all(parent < joint for joint, parent in enumerate(source.parents))
    assert (source.fps > 0.0) != bool(source.rate_doubt)
    return source


def understand_bvh_file(data: bytes, name: str) -> None:
    """What `load_motion` does before it retargets."""
    source = person(read_bvh_file(data, name), {})
    joints = map_joints(source, name)
    infer_scale(source, joints, name)


def test_ten_thousand_mutants_are_read_or_refused_in_a_clear_line() -> None:
    few = [text.encode() for text in (BVH, FIXED, PROP)]
    small = survive(read_bvh_file, few, 9000, seed=1)
    bodies = survive(understand_bvh_file, whole_bodies(), 1000, seed=2)
    assert small.refused > 3000, "the mutations do harm"
    assert bodies.read > 100, "but do not destroy"
    for data in (*small.slowest, *bodies.slowest):
        assert peak_bytes(understand_bvh_file, data) < MOST_BYTES


def test_the_harness_sees_what_is_no_clear_line() -> None:
    with pytest.raises(AssertionError, match=r"mutant . of seed 1: ValueError"):
        survive(lambda data, name: float(data), [b"1.5"], 100)

    def nameless(data: bytes, name: str) -> None:
        if data != b"x":
            raise MotionFileError("broken")

    with pytest.raises(AssertionError, match="broken"):
        survive(nameless, [b"x"], 10)


def read_bvh_text(text: str) -> None:
    with suppress(MotionFileError):
        understand_bvh_file(text.encode("utf-8", "replace"), "f.bvh")


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_bvh_from_any_text(text: str) -> None:
    read_bvh_text(text)
    read_bvh_text("HIERARCHY\n" + text)
    read_bvh_text(BVH[: BVH.index("Frames")] + text)


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


@settings(derandomize=True, max_examples=40, deadline=None)
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


def hostile(joints: str, width: int, rows: str = "") -> str:
    return f"HIERARCHY\n{joints}MOTION\nFrames: 9\nFrame Time: 0.01\n" + (rows or f"{'1 ' * width}\n" * 9)


LIMB = "JOINT {0}\n{{\nOFFSET 0 1 0\nCHANNELS 1 Xrotation\nJOINT {0}\n{{\nOFFSET 0 1 0\nJOINT {0}\n{{\nOFFSET 0 1 0\n}}\n}}\n}}\n"
ROOT = "ROOT r\n{{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n{0}}}\n"
HOSTILE = {
    "a star of equal branches": hostile(ROOT.format(LIMB.format("x") * 600), 601),
    "one name a thousand times": hostile(ROOT.format(LIMB.format("LeftUpLeg") * 600), 601),
    "two hundred levels": hostile(ROOT.format("JOINT j\n{\nOFFSET 0 1 0\n" * 199 + "}\n" * 199), 1),
    "a hundred thousand levels": "HIERARCHY\nROOT r\n{\n" + "JOINT j\n{\n" * 100_000,
    "a hundred thousand rows of nothing": hostile(ROOT.format(""), 1, "1\n" * 100_000),
    "a thousand skeletons": hostile(ROOT.format("") * 1000, 1000),
    "one line without end": hostile(ROOT.format(""), 1, "1 " * 500_000),
    "a name without end": hostile(ROOT.format("JOINT " + "x" * 1_000_000 + "\n{\n}\n"), 1),
    "a number without end": hostile(ROOT.format(""), 1, "1" * 1_000_000),
    "nothing but line ends": "HIERARCHY" + "\n" * 300_000,
    "nothing but blanks and commas": "HIERARCHY" + "\n   ,  " * 300_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_cost_neither_time_nor_memory(name: str) -> None:
    data, said = HOSTILE[name].encode(), ""
    try:
        understand_bvh_file(data, "f.bvh")
    except MotionFileError as error:
        said = str(error)
    assert len(said) < 3000
    assert cpu_seconds(understand_bvh_file, data) < SLOWEST_S
    assert peak_bytes(read_bvh_file, data) < MOST_BYTES
