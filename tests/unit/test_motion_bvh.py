"""BVH reader and writer: against closed forms, against pybvh on real files, and against files that lie."""

from __future__ import annotations

import re
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character import load_character
from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.bvh import parse_bvh, read_bvh
from mocap2ctrl.motion.bvh_writer import joint_name, write_bvh
from mocap2ctrl.motion.calibration import calibration_frames
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.names import map_joints
from mocap2ctrl.motion.stated import Stated
from mocap2ctrl.motion.units import infer_scale
from mocap2ctrl.types import MotionClip

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "bvh"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the test data folder ../shared/data/bvh is absent")
REAL_FILES = sorted(path.name for path in DATA.glob("*.bvh"))

TWO_JOINTS = """HIERARCHY
ROOT Hips
{
  OFFSET 7 8 9
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Spine
  {
    OFFSET 0 10 0
    CHANNELS 3 Xrotation Yrotation Zrotation
    End Site
    {
      OFFSET 0 5 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.04
1 2 3 90 0 0 90 0 0
0 0 0 0 0 0 0 0 0
"""


def parse(text: str):
    return parse_bvh(text, "file.bvh", "file")


def test_closed_form_forward_kinematics():
    source = parse(TWO_JOINTS)
    assert source.joint_names == ("Hips", "Spine", "Spine:tip")
    assert source.is_tip == (False, False, True)
    assert source.fps == 25.0
    # Root at (1, 2, 3), not OFFSET plus that; +90 degrees about z takes the spine from +y to -x; then +90 about its x,
    # which is the world's y, takes the tip from the spine's y (world -x) to the spine's z (world z).
    expected = [[1, 2, 3], [-9, 2, 3], [-9, 2, 8]]
    np.testing.assert_allclose(source.positions[0], expected, atol=1e-12)
    np.testing.assert_allclose(source.positions[1], [[0, 0, 0], [0, 10, 0], [0, 15, 0]], atol=1e-12)


def test_rotation_channels_before_position_channels_give_the_same_motion():
    swapped = TWO_JOINTS.replace(
        "Xposition Yposition Zposition Zrotation Xrotation Yrotation",
        "Zrotation Xrotation Yrotation Xposition Yposition Zposition",
    ).replace("1 2 3 90 0 0 90 0 0", "90 0 0 1 2 3 90 0 0")
    np.testing.assert_allclose(parse(swapped).positions, parse(TWO_JOINTS).positions)


def test_position_channels_of_an_inner_joint_replace_its_offset():
    text = TWO_JOINTS.replace("CHANNELS 3 X", "CHANNELS 6 Xposition Yposition Zposition X")
    text = text.replace("90 0 0 90 0 0", "0 0 0 0 4 0 0 0 0").replace(
        "\n0 0 0 0 0 0 0 0 0", "\n0 0 0 0 0 0 0 4 0 0 0 0"
    )
    np.testing.assert_allclose(parse(text).positions[0], [[1, 2, 3], [1, 6, 3], [1, 11, 3]])


@pytest.mark.parametrize("order", ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"])
def test_every_rotation_order_is_applied_as_listed(order: str):
    channels = " ".join(f"{axis}rotation" for axis in order)
    text = TWO_JOINTS.replace("Zrotation Xrotation Yrotation", channels).replace("90 0 0 90 0 0", "10 20 30 0 0 0")
    expected = rotations.IDENTITY_QUATERNION
    for axis, degrees in zip(order, (10, 20, 30), strict=True):
        expected = rotations.multiply(expected, rotations.about_axis(np.eye(3)["XYZ".index(axis)], np.radians(degrees)))
    np.testing.assert_allclose(parse(text).orientations[0, 0], expected, atol=1e-12)


def test_line_ends_tabs_and_byte_order_mark_do_not_matter(tmp_path: Path):
    path = tmp_path / "crlf.bvh"
    path.write_bytes(b"\xef\xbb\xbf" + TWO_JOINTS.replace("  ", "\t").replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(read_bvh(path).positions, parse(TWO_JOINTS).positions)


# What each file is, as its folder's README and its makers say: unit, up axis, rate, and frames once a T-pose is left out.
KNOWN: dict[str, tuple[str, str, float, int]] = {
    "boxing_fall_getup": ("cm", "y", 100.0, 3070),
    "dance_rokoko": ("cm", "y", 100.0, 1007),
    "jump_forward_fair1_zup_inch": ("inch", "z", 119.875, 654),
    "jumping_jacks_cmu": ("cmu", "y", 30.0, 125),
    "run_games105_m_yup": ("m", "y", 60.0, 45),
    "sit_stand_mocapbank": ("cm", "y", 30.0, 455),
    "stand_idle_games105": ("m", "y", 60.0, 200),
    "tiny_example": ("inch", "y", 30.0, 2),
    "walk_8_pattern_root_offset": ("inch", "y", 120.0, 1064),
    "walk_cmu12_01": ("cmu", "y", 120.0, 523),
    "walk_games105_m_yup": ("m", "y", 60.0, 182),
    "walk_mixamo_3ch_colon_names": ("cm", "y", 30.0, 69),
    "walk_turn_left_games105_100fps": ("m", "y", 100.0, 420),
}
METRES = {"m": 1.0, "cm": 0.01, "inch": 0.0254, "cmu": 0.0254 / 0.45}


@needs_data
@pytest.mark.parametrize("name", KNOWN)
def test_unit_axis_and_rate_of_real_files(name: str):
    source = read_bvh(DATA / f"{name}.bvh")
    joints = map_joints(source, name)
    scale = infer_scale(source, joints, name)
    frames = len(source) - calibration_frames(source, joints)
    assert (scale.unit, scale.up, pytest.approx(source.fps, abs=1e-3), frames) == KNOWN[name]
    assert set(joints.how.values()) == {"name"}
    assert scale.warnings == ()


@needs_data
def test_every_well_formed_file_with_a_body_is_known():
    assert {path.stem for path in DATA.glob("*.bvh")} - set(KNOWN) == {"fixture_rotation_first_root"}


def metres(name: str) -> float:
    """Of a file's unit; a centimetre where the file has no body to tell."""
    return METRES[KNOWN[name][0]] if name in KNOWN else 0.01


def honest(name: str, folder: Path, frames: list[int]) -> Path:
    """A copy of a file with these frames, and a header that counts them: pybvh refuses others, bvhio hangs."""
    lines = (DATA / name).read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith("Frame Time")) + 1
    head = re.sub(r"Frames:\s*\d+", f"Frames: {len(frames)}", "\n".join(lines[:start]))
    rows = [line for line in lines[start:] if line.strip()]
    (folder / name).write_text("\n".join([head, *(rows[frame] for frame in frames)]) + "\n", "utf-8")
    return folder / name


@needs_data
@pytest.mark.parametrize("name", REAL_FILES)
def test_parity_with_pybvh(name: str, tmp_path: Path):
    """To a tenth of a millimetre."""
    pybvh = pytest.importorskip("pybvh")
    source = read_bvh(DATA / name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = pybvh.read_bvh_file(honest(name, tmp_path, list(range(len(source)))))
    expected = other.node_positions()
    ours = np.array([i for i, tip in enumerate(source.is_tip) if not tip])
    theirs = [other.node_index[source.joint_names[i]] for i in ours]
    apart = (source.positions[:, ours] - expected[:, theirs]) * metres(Path(name).stem)
    assert np.max(np.linalg.norm(apart, axis=-1)) < 1e-4
    assert source.fps == pytest.approx(other.fps, rel=1e-3)


@needs_data
@pytest.mark.parametrize("name", REAL_FILES)
def test_parity_with_bvhio(name: str, tmp_path: Path):
    """To a tenth of a millimetre, in five frames."""
    bvhio = pytest.importorskip("bvhio")
    source = read_bvh(DATA / name)
    frames = np.linspace(0, len(source) - 1, 5).astype(int).tolist()
    root = bvhio.readAsHierarchy(str(honest(name, tmp_path, frames)))
    compared = 0
    for number, frame in enumerate(frames):
        root.loadPose(number)
        for joint, _, _ in root.layout():
            if joint.Name in source.joint_names:
                ours = source.positions[frame, source.joint_names.index(joint.Name)]
                assert np.linalg.norm(ours - np.array(joint.PositionWorld)) * metres(Path(name).stem) < 1e-4
                compared += 1
    assert compared >= len(frames) * sum(not tip for tip in source.is_tip)


@needs_data
@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("bad_merge_conflict", "line 2939: a version-control conflict marker"),
        ("bad_more_rows_than_frames", "line 131: more rows of motion than the header says"),
    ],
)
def test_real_malformed_files_are_refused_with_line_and_cause(name: str, cause: str):
    with pytest.raises(MotionFileError, match=re.escape(cause)) as caught:
        read_bvh(DATA / "malformed" / f"{name}.bvh")
    assert f"{name}.bvh" in str(caught.value)
    assert "\n" not in str(caught.value)


@needs_data
def test_a_real_rate_that_cannot_be_true_is_asked_for():
    path = DATA / "malformed" / "bad_frame_time_1s.bvh"
    with pytest.raises(MotionFileError, match=r"bad_frame_time_1s.bvh, line \d+: Frame Time is 1 s; .*--fps"):
        load_motion(path, load_character())
    motion = load_motion(path, load_character(), time_range=(0.0, 0.5), stated=Stated(fps=30.0))
    assert (motion.clip.fps, len(motion.clip), motion.unit, motion.up) == (30.0, 16, "m", "y")


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("HIERARCHY\n", "", "must begin with HIERARCHY"),
        ("MOTION\nFrames: 2\nFrame Time: 0.04\n1 2 3 90 0 0 90 0 0\n0 0 0 0 0 0 0 0 0\n", "", "the file ends where"),
        ("Frames: 2", "Frames: 3", "line 20: 2 rows of motion, but the header says Frames: 3; the file is truncated"),
        ("Frames: 2", "Frames: 1", "more rows of motion than the header says"),
        ("Frames: 2", "Frames: 2.5", "it must be a whole number"),
        ("Frames: 2", "Frames:", "should stand here"),
        ("Frame Time: 0.04", "Frame Time: x", "'Frame Time: <seconds>' should stand here"),
        ("1 2 3 90 0 0 90 0 0", "1 2 3 90 0 0 90 0", "line 19: 8 values in this frame; the skeleton has 9 channels"),
        ("1 2 3 90 0 0 90 0 0", "1 2 3 90 0 zero 90 0 0", "line 19: 'zero' where a number"),
        ("1 2 3 90 0 0 90 0 0", "1 2 3 90 0 nan 90 0 0", "line 19: 'nan' as a channel value"),
        ("1 2 3 90 0 0 90 0 0", "1 2 3 90 0 1e999 90 0 0", "finite numbers"),
        ("OFFSET 0 10 0", "OFFSET 0 10", "where a number (OFFSET) should be"),
        ("    OFFSET 0 10 0\n", "", "joint 'Spine' has no OFFSET"),
        ("Xrotation Yrotation Zrotation", "Xrotation Yrotation Wrotation", "channel 'Wrotation'"),
        ("Xrotation Yrotation Zrotation", "Xrotation Yrotation Yrotation", "a channel is listed twice"),
        ("CHANNELS 3", "CHANNELS 7", "allowed are 0 to 6"),
        ("  JOINT Spine", "  ROOT Spine", "ROOT is out of place"),
        ("}\nMOTION", "MOTION", "unexpected 'MOTION'"),
    ],
)
def test_damaged_files_are_refused(old: str, new: str, cause: str):
    assert old in TWO_JOINTS
    with pytest.raises(MotionFileError, match=re.escape(cause)):
        parse(TWO_JOINTS.replace(old, new, 1))


def test_a_row_too_many_in_a_long_file_is_used_with_a_warning():
    rows = "0 0 0 0 0 0 0 0 0\n" * 1001
    text = TWO_JOINTS[: TWO_JOINTS.index("1 2 3 90")].replace("Frames: 2", "Frames: 1000") + rows
    source = parse(text)
    assert len(source) == 1001
    assert "Frames: 1000" in source.warnings[0]


def test_unreadable_path_is_refused(tmp_path: Path):
    with pytest.raises(MotionFileError, match="cannot be read"):
        read_bvh(tmp_path / "absent.bvh")


@pytest.fixture
def random_clip() -> MotionClip:
    character = load_character()
    random = np.random.default_rng(7)
    count = 12
    low, high = character.lower_limits, character.upper_limits
    return MotionClip(
        name="random",
        fps=50.0,
        root_position=random.normal(size=(count, 3)),
        root_orientation=rotations.normalise(random.normal(size=(count, 4))),
        angles=low + (high - low) * random.random((count, len(low))),
    )


def test_writer_round_trip_through_our_reader(random_clip: MotionClip, tmp_path: Path):
    character = load_character()
    write_bvh(tmp_path / "x.bvh", random_clip, character)
    source = read_bvh(tmp_path / "x.bvh")
    expected, _ = segment_frames(character, random_clip.root_position, random_clip.root_orientation, random_clip.angles)
    order = [source.joint_names.index(joint_name(name)) for name in character.segment_names]
    world = source.positions[:, order][..., [2, 0, 1]] / 100.0
    np.testing.assert_allclose(world, expected, atol=1e-4)
    assert source.fps == 50.0
    assert [path.name for path in tmp_path.iterdir()] == ["x.bvh"]


def test_writer_round_trip_through_pybvh(random_clip: MotionClip, tmp_path: Path):
    pybvh = pytest.importorskip("pybvh")
    character = load_character()
    write_bvh(tmp_path / "x.bvh", random_clip, character)
    other = pybvh.read_bvh_file(tmp_path / "x.bvh", world_up="+y")
    expected, _ = segment_frames(character, random_clip.root_position, random_clip.root_orientation, random_clip.angles)
    order = [other.node_index[joint_name(name)] for name in character.segment_names]
    world = other.node_positions()[:, order][..., [2, 0, 1]] / 100.0
    np.testing.assert_allclose(world, expected, atol=1e-4)


@needs_data
def test_ten_seconds_of_a_whole_body_with_fingers_are_read_in_no_time():
    """A thousand frames of seventy joints; the best of three, since others may be at work."""
    times = []
    for _ in range(3):
        begun = time.process_time()
        read_bvh(DATA / "dance_rokoko.bvh")
        times.append(time.process_time() - begun)
    assert min(times) < 0.3


@needs_data
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("name", ["run_games105_m_yup", "walk_games105_m_yup", "walk_mixamo_3ch_colon_names"])
def test_rest_poses_put_in_front_of_slowly_sampled_files_are_told(name: str, count: int, tmp_path: Path):
    """At 30 frames a second a runner's hand goes nearly as far in one step as it does from the rest pose to the first."""
    lines = (DATA / f"{name}.bvh").read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith("Frame Time")) + 1
    rows = [line for line in lines[start:] if line.strip()]
    rows = rows[:: 2 if len(rows) != 69 else 1]
    rest = " ".join([*rows[0].split()[:3], *["0"] * (len(rows[0].split()) - 3)])
    head = re.sub(r"Frames:\s*\d+", f"Frames: {len(rows) + count}", "\n".join(lines[:start]))
    (tmp_path / "f.bvh").write_text("\n".join([head, *[rest] * count, *rows]) + "\n")
    source = read_bvh(tmp_path / "f.bvh")
    assert calibration_frames(source, map_joints(source, name)) == count
