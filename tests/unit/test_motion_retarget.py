"""Retargeting: a known motion comes back; units, axes and mirrors do not matter; knees, elbows and feet are right."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import evaluation_points, lowest_points, segment_frames
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.clips import mirror, velocities
from mocap2ctrl.motion.contacts import foot_contacts
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.hinges import hinge_angles
from mocap2ctrl.motion.inverse_kinematics import PointTargets, point_jacobian, reach
from mocap2ctrl.motion.load import LoadedMotion, load_motion
from mocap2ctrl.types import MotionClip

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "bvh"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the test data folder ../shared/data/bvh is absent")
needs_clips = pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")
WALK = "walk_games105_m_yup.bvh"


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


def points(character: Character, clip: MotionClip) -> np.ndarray:
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    return evaluation_points(character, *frames)


def retarget_error_cm(character: Character, motion: LoadedMotion) -> float:
    return float(100 * np.nanmean(np.linalg.norm(points(character, motion.clip) - motion.source_points, axis=-1)))


def made_up_walk(character: Character, frames: int = 40) -> MotionClip:
    """A striding, arm-swinging motion in closed form, within all limits."""
    phase = np.linspace(0, 2 * np.pi, frames)
    names = character.hinge_names
    angles = np.zeros((frames, len(names)))

    def put(name: str, values: np.ndarray) -> None:
        angles[:, names.index(name)] = values

    for side, sign in (("left", 1.0), ("right", -1.0)):
        put(f"{side}_thigh.flexion", 0.1 + 0.4 * sign * np.sin(phase))
        put(f"{side}_thigh.internal_rotation", 0.15 * sign * np.cos(phase))
        put(f"{side}_shank.flexion", 0.6 + 0.4 * np.cos(phase + sign))
        put(f"{side}_foot.dorsiflexion", 0.15 * np.cos(phase))
        put(f"{side}_upper_arm.flexion", -0.4 * sign * np.sin(phase))
        put(f"{side}_upper_arm.abduction", 0.3 + 0.1 * np.cos(phase))
        put(f"{side}_upper_arm.internal_rotation", 0.3 * np.sin(phase))
        put(f"{side}_forearm.flexion", 0.9 + 0.3 * np.sin(phase))
    put("abdomen.rotation", 0.1 * np.sin(phase))
    put("chest.rotation", 0.1 * np.sin(phase))
    put("head.rotation", -0.3 * np.sin(phase))
    root = np.stack([np.linspace(0, 1.2, frames), 0.02 * np.sin(phase), 0.9 + 0.02 * np.cos(2 * phase)], axis=1)
    return MotionClip("made_up", 30.0, root, rotations.yaw(0.1 * np.sin(phase)), angles)


def test_a_known_motion_of_the_character_itself_comes_back(character: Character, tmp_path: Path):
    clip = made_up_walk(character)
    write_bvh(tmp_path / "known.bvh", clip, character)
    motion = load_motion(tmp_path / "known.bvh", character)
    assert (motion.kind, motion.unit, motion.up) == ("bvh", "cm", "y")
    assert motion.scale == pytest.approx(0.01, rel=1e-4)
    assert np.max(np.abs(motion.clip.angles - clip.angles)) < 0.03
    turn = np.linalg.norm(
        rotations.to_rotation_vector(
            rotations.multiply(motion.clip.root_orientation, rotations.conjugate(clip.root_orientation))
        ),
        axis=1,
    )
    assert np.max(turn) < 0.01
    moved = motion.clip.root_position - clip.root_position
    assert np.max(np.ptp(moved, axis=0)) < 0.01
    assert retarget_error_cm(character, motion) < 0.7


@pytest.fixture(scope="module")
def walk(character: Character) -> LoadedMotion:
    if not DATA.is_dir():
        pytest.skip("the test data folder ../shared/data/bvh is absent")
    return load_motion(DATA / WALK, character)


def test_the_walk_faces_x_above_the_origin_and_goes_there(walk: LoadedMotion):
    np.testing.assert_allclose(walk.clip.root_position[0, :2], 0.0, atol=1e-12)
    assert float(rotations.heading(walk.clip.root_orientation[0])) == pytest.approx(0.0, abs=1e-9)
    travel = walk.clip.root_position[-1]
    assert travel[0] > 3.0
    assert abs(travel[1]) < 0.3 * travel[0]
    assert walk.travels
    assert walk.warnings == ()


def test_knees_and_elbows_bend_the_way_they_do(character: Character, walk: LoadedMotion):
    for name, least, most in (("shank", -0.1, 1.4), ("forearm", -0.1, 1.5)):
        for side in ("left", "right"):
            angle = walk.clip.angles[:, character.hinge_names.index(f"{side}_{name}.flexion")]
            assert np.min(angle) >= least
            assert np.max(angle) <= most
    knee = walk.clip.angles[:, character.hinge_names.index("left_shank.flexion")]
    assert np.max(knee) > 0.7  # it swings


def test_left_is_left_and_stance_alternates(character: Character, walk: LoadedMotion):
    names = [point.name for point in character.evaluation_points]
    at = points(character, walk.clip)[0]
    assert at[names.index("left_hip"), 1] > at[names.index("right_hip"), 1]
    left, right = foot_contacts(walk.clip, character).T
    assert 0.2 < np.mean(left) < 0.8
    assert np.mean(left & ~right) > 0.1
    assert np.mean(right & ~left) > 0.1


def test_feet_are_on_the_ground_and_do_not_skate(character: Character, walk: LoadedMotion):
    clip = walk.clip
    positions, orientations = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    lowest = np.min(lowest_points(character, positions, orientations), axis=1)
    assert np.min(lowest) > -0.025
    assert abs(np.median(lowest)) < 0.02
    feet = foot_contacts(clip, character)
    for side, name in enumerate(("left_foot", "right_foot")):
        speed = np.linalg.norm(np.gradient(positions[:, character.segment_index(name), :2], axis=0), axis=1) * clip.fps
        assert np.median(speed[feet[:, side]]) < 0.25


def test_angles_are_within_limits_and_continuous(character: Character, walk: LoadedMotion):
    angles = walk.clip.angles
    assert np.all(angles >= character.lower_limits - 1e-12)
    assert np.all(angles <= character.upper_limits + 1e-12)
    assert np.max(np.abs(np.diff(angles, axis=0))) * walk.clip.fps < 25.0


def scaled_text(text: str, factor: float) -> str:
    """The same file in another unit: OFFSETs and the root's position channels (the first three) times `factor`."""
    text = re.sub(r"OFFSET +(\S+) +(\S+) +(\S+)", lambda m: "OFFSET " + scaled_numbers(m.groups(), factor), text)
    head, frame_time, rows = re.split(r"(Frame Time:.*\n)", text)
    lines = [line.split() for line in rows.splitlines() if line.strip()]
    return head + frame_time + "\n".join(scaled_numbers(row[:3], factor) + " " + " ".join(row[3:]) for row in lines)


def scaled_numbers(numbers, factor: float) -> str:
    return " ".join(f"{float(number) * factor:.9f}" for number in numbers)


def turned_text(text: str) -> str:
    """The same file with its axes exchanged in a cycle, x to y to z to x: y up becomes z up."""
    text = re.sub(r"OFFSET +(\S+) +(\S+) +(\S+)", r"OFFSET \3 \1 \2", text)
    following = {"X": "Y", "Y": "Z", "Z": "X"}
    return re.sub(r"([XYZ])(position|rotation)", lambda m: following[m[1]] + m[2], text)


def mirrored_text(text: str) -> str:
    """The same file in a mirror across x = 0, with left and right names exchanged; channels Xpos Ypos Zpos X Y Z."""
    text = re.sub(r"\b([lr])(?=[A-Z])", lambda m: "r" if m[1] == "l" else "l", text)
    text = re.sub(r"OFFSET +(\S+)", lambda m: f"OFFSET {-float(m[1])}", text)
    head, frame_time, rows = re.split(r"(Frame Time:.*\n)", text)
    table = np.array([[float(word) for word in line.split()] for line in rows.splitlines() if line.strip()])
    sign = np.tile([1.0, -1.0, -1.0], table.shape[1] // 3)
    sign[:3] = [-1.0, 1.0, 1.0]
    return head + frame_time + "\n".join(" ".join(f"{value:.6f}" for value in row) for row in table * sign)


def walk_text() -> str:
    return (DATA / WALK).read_text("utf-8").replace("\r\n", "\n")


@needs_data
@pytest.mark.parametrize(
    ("name", "factor", "unit"),
    [("cm", 100.0, "cm"), ("inch", 1 / 0.0254, "inch"), ("cmu", 0.45 / 0.0254, "cmu"), ("mm", 1000.0, "mm")],
)
def test_the_unit_does_not_matter(
    name: str, factor: float, unit: str, character: Character, walk: LoadedMotion, tmp_path: Path
):
    path = tmp_path / f"{name}.bvh"
    path.write_text(scaled_text(walk_text(), factor))
    motion = load_motion(path, character)
    assert motion.unit == unit
    np.testing.assert_allclose(motion.clip.root_position, walk.clip.root_position, atol=1e-4)
    np.testing.assert_allclose(motion.clip.angles, walk.clip.angles, atol=2e-3)


@needs_data
@pytest.mark.parametrize(("turns", "up"), [(1, "z"), (2, "x")])
def test_the_axes_do_not_matter(turns: int, up: str, character: Character, walk: LoadedMotion, tmp_path: Path):
    text = walk_text()
    for _ in range(turns):
        text = turned_text(text)
    (tmp_path / "turned.bvh").write_text(text)
    motion = load_motion(tmp_path / "turned.bvh", character)
    assert motion.up == up
    np.testing.assert_allclose(motion.clip.root_position, walk.clip.root_position, atol=1e-5)
    np.testing.assert_allclose(motion.clip.angles, walk.clip.angles, atol=1e-4)


@needs_data
def test_the_mirrored_file_gives_the_mirrored_clip(character: Character, walk: LoadedMotion, tmp_path: Path):
    (tmp_path / "mirrored.bvh").write_text(mirrored_text(walk_text()))
    motion = load_motion(tmp_path / "mirrored.bvh", character)
    expected = mirror(walk.clip, character)
    assert motion.warnings == ()
    np.testing.assert_allclose(motion.clip.root_position, expected.root_position, atol=1e-3)
    np.testing.assert_allclose(motion.clip.angles, expected.angles, atol=0.02)


@needs_data
def test_exchanged_sides_are_warned_about(character: Character, tmp_path: Path):
    text = re.sub(r"\b([lr])(?=[A-Z])", lambda m: "r" if m[1] == "l" else "l", walk_text())
    (tmp_path / "exchanged.bvh").write_text(text)
    assert "may be exchanged" in load_motion(tmp_path / "exchanged.bvh", character).warnings[0]


@needs_data
def test_straight_legs_are_not_taken_for_exchanged_ones(character: Character):
    """Someone who stands with the knees pushed back by a fraction of a degree."""
    assert load_motion(DATA / "stand_idle_games105.bvh", character, time_range=(0.0, 0.8)).warnings == ()


# What it costs to give a source's pose to a body of other proportions; each about 10 % above what is reached.
@needs_data
@pytest.mark.parametrize(
    ("name", "unit", "up", "most_cm"),
    [
        ("walk_cmu12_01", "cmu", "y", 8.6),
        ("jump_forward_fair1_zup_inch", "inch", "z", 3.8),
        ("walk_mixamo_3ch_colon_names", "cm", "y", 5.2),
        ("walk_8_pattern_root_offset", "inch", "y", 3.8),
        ("sit_stand_mocapbank", "cm", "y", 9.2),
        ("jumping_jacks_cmu", "cmu", "y", 8.1),
        ("dance_rokoko", "cm", "y", 2.4),
    ],
)
def test_real_files(name: str, unit: str, up: str, most_cm: float, character: Character):
    motion = load_motion(DATA / f"{name}.bvh", character, time_range=(0.1, 2.1))
    assert (motion.unit, motion.up) == (unit, up)
    assert retarget_error_cm(character, motion) < most_cm


@needs_data
def test_calibration_pose_in_front_is_left_out_with_a_warning(character: Character):
    motion = load_motion(DATA / "walk_cmu12_01.bvh", character)
    assert len(motion.clip) == 523
    assert "calibration pose" in motion.warnings[0]
    assert motion.clip.root_position[-1, 0] > 3.0
    longer = load_motion(DATA / "walk_cmu12_01.bvh", character, time_range=(1.0, 9.0))
    assert longer.warnings == ("time range 1 to 9 s goes on after the input's end at 4.36 s",)
    part = load_motion(DATA / "walk_cmu12_01.bvh", character, time_range=(0.0, 0.5))
    assert len(part.clip) == 60
    assert "calibration pose" in part.warnings[0]
    assert part.clip.start_s == motion.clip.start_s == pytest.approx(1.0 / 120.0)


@needs_data
def test_standing_clips_end_standing(character: Character, walk: LoadedMotion):
    assert load_motion(DATA / "stand_idle_games105.bvh", character).clip.ends_standing
    assert not walk.clip.ends_standing


@needs_clips
@pytest.mark.parametrize(
    ("name", "most_cm"),
    [
        ("walk", 2.8),
        ("run", 2.9),
        ("jump", 3.2),
        ("spinkick", 3.4),
        ("cartwheel", 3.2),
        ("backflip", 3.3),
        ("roll", 5.8),
    ],
)
def test_deepmimic_clips(name: str, most_cm: float, character: Character):
    motion = load_motion(f"humanoid3d_{name}", character)
    assert motion.kind == "deepmimic"
    assert motion.clip.loop
    assert retarget_error_cm(character, motion) < most_cm
    speed = np.max(np.abs(velocities(motion.clip).joints))
    assert speed < 30.0


@needs_clips
def test_provenance_range_rate_and_cycles(character: Character):
    motion = load_motion("humanoid3d_walk", character, fps=60.0, cycles=3)
    once = load_motion("humanoid3d_walk", character)
    assert motion.clip.fps == 60.0
    assert motion.clip.duration_s == pytest.approx(3 * once.clip.duration_s, abs=1 / 60)
    assert motion.clip.root_position[-1, 0] == pytest.approx(3 * once.clip.root_position[-1, 0], rel=0.01)
    assert motion.source_points.shape == (len(motion.clip), 15, 3)
    assert retarget_error_cm(character, motion) < 2.9
    assert motion.clip.provenance["file"] == "humanoid3d_walk.txt"
    assert len(motion.clip.provenance["sha256"]) == 64
    part = load_motion("humanoid3d_walk", character, time_range=(0.2, 0.6))
    assert part.clip.duration_s == pytest.approx(0.4, abs=0.01)
    assert not part.clip.loop


@pytest.mark.parametrize(
    ("content", "cause"),
    [("hello", "not a motion file"), ("{", "not valid JSON"), ("HIERARCHY\n", "the file ends where")],
)
def test_content_decides_the_reader(content: str, cause: str, character: Character, tmp_path: Path):
    path = tmp_path / "motion.txt"
    path.write_text(content)
    with pytest.raises(MotionFileError, match=cause):
        load_motion(path, character)


def test_bad_requests_are_refused(character: Character, tmp_path: Path):
    with pytest.raises(MotionFileError, match="no such file"):
        load_motion(tmp_path / "absent.bvh", character)
    with pytest.raises(MotionFileError, match="is a folder"):
        load_motion(tmp_path, character)
    write_bvh(tmp_path / "x.bvh", made_up_walk(character, 12), character)
    with pytest.raises(MotionFileError, match="only a loop can be repeated"):
        load_motion(tmp_path / "x.bvh", character, cycles=2)
    for bad, says in (
        ((1.0, 0.5), "the first number must be less"),
        ((-1.0, 0.2), "the file runs from 0 to"),
        ((9.0, 10.0), "the file runs from 0 to"),
        ((float("nan"), 1.0), "the file runs from 0 to"),
    ):
        with pytest.raises(MotionFileError, match=says):
            load_motion(tmp_path / "x.bvh", character, time_range=bad)
    with pytest.raises(MotionFileError, match="fps is 0"):
        load_motion(tmp_path / "x.bvh", character, fps=0.0)


def test_a_floating_body_is_warned_about(character: Character, tmp_path: Path):
    clip = made_up_walk(character)
    ramp = np.linspace(0, 1.5, len(clip))[:, None] * np.array([0.0, 0.0, 1.0])
    write_bvh(tmp_path / "up.bvh", replace(clip, root_position=clip.root_position + ramp), character)
    assert "floats" in load_motion(tmp_path / "up.bvh", character).warnings[-1]


def test_a_single_frame_is_a_motion(character: Character, tmp_path: Path):
    write_bvh(tmp_path / "one.bvh", made_up_walk(character).cut(3, 4), character)
    motion = load_motion(tmp_path / "one.bvh", character)
    assert len(motion.clip) == 1
    assert not motion.travels


@pytest.mark.parametrize(
    "segment", ["chest", "left_upper_arm", "right_upper_arm", "left_thigh", "right_thigh", "left_hand", "left_shank"]
)
def test_hinge_angles_compose_to_the_orientation(segment: str, character: Character):
    hinges = character.segments[character.segment_index(segment)].hinges
    random = np.random.default_rng(3)
    low, high = np.array([h.limits for h in hinges]).T
    knots = low + (high - low) * random.random((6, len(hinges)))
    angles = np.stack([np.interp(np.linspace(0, 5, 200), np.arange(6), column) for column in knots.T], axis=1)
    relative = np.tile(rotations.IDENTITY_QUATERNION, (200, 1))
    for hinge, column in zip(hinges, angles.T, strict=True):
        relative = rotations.multiply(relative, rotations.about_axis(hinge.axis, column))
    found = hinge_angles(hinges, relative)
    np.testing.assert_allclose(found, angles, atol=1e-7)


def test_point_jacobian_against_finite_differences(character: Character):
    clip = made_up_walk(character, 4)
    state = (clip.root_position, clip.root_orientation, clip.angles)
    segments = np.array([3, 6, 11, 17])
    local = np.array([[0.1, 0, 0.1], [0, 0, -0.1], [0.05, 0.02, 0], [0.0, 0.01, 0.02]])
    targets = PointTargets(segments, local, np.zeros((4, 4, 3)), np.ones(4))
    jacobian, at = point_jacobian(character, state, targets)
    step = 1e-6
    for column in range(6 + clip.angles.shape[1]):
        position, orientation, angles = (part.copy() for part in state)
        if column < 3:
            position[:, column] += step
        elif column < 6:
            turn = rotations.from_rotation_vector(step * np.eye(3)[column - 3])
            orientation = rotations.multiply(turn, orientation)
        else:
            angles[:, column - 6] += step
        _, moved = point_jacobian(character, (position, orientation, angles), targets)
        np.testing.assert_allclose(jacobian[..., column], ((moved - at) / step).reshape(4, -1), atol=1e-5)


def test_inverse_kinematics_reaches_what_can_be_reached(character: Character):
    clip = made_up_walk(character, 6)
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    wanted = evaluation_points(character, *frames)
    segments = np.array([point.segment for point in character.evaluation_points])
    local = np.array([point.at for point in character.evaluation_points])
    targets = PointTargets(segments, local, wanted, np.ones(len(segments)))
    start = (clip.root_position + 0.1, clip.root_orientation, np.zeros_like(clip.angles))
    found = reach(character, start, targets, start[2], stay_weight=1e-7, iterations=30)
    at = evaluation_points(character, *segment_frames(character, *found))
    assert np.max(np.linalg.norm(at - wanted, axis=-1)) < 0.01
    assert np.all(found[2] <= character.upper_limits)
    assert np.all(found[2] >= character.lower_limits)
