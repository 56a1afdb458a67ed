"""Resampling, mirroring, repeating, velocities, contacts and the npz file, in closed form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import centre_of_mass, segment_frames
from mocap2ctrl.errors import Mocap2CtrlError, MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import close_loop, mirror, repeat, resample, state, velocities
from mocap2ctrl.motion.contacts import contacts, foot_contacts
from mocap2ctrl.motion.npz import read_motion, write_motion
from mocap2ctrl.types import MotionClip


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


def gliding(character: Character, frames: int = 31, *, fps: float = 30.0, loop: bool = False) -> MotionClip:
    """Constant velocity (1, 0.5, 0) m/s, constant turn of 0.8 rad/s about z, one joint at 0.3 rad/s."""
    times = np.arange(frames) / fps
    root = np.array([0.0, 0.0, 0.93]) + times[:, None] * np.array([1.0, 0.5, 0.0])
    angles = np.zeros((frames, len(character.hinges)))
    angles[:, 4] = 0.3 * times
    return MotionClip("gliding", fps, root, rotations.yaw(0.8 * times), angles, loop=loop)


def test_velocities_of_a_steady_motion(character: Character):
    v = velocities(gliding(character))
    np.testing.assert_allclose(v.root, np.tile([1.0, 0.5, 0.0], (31, 1)), atol=1e-9)
    np.testing.assert_allclose(v.root_angular, np.tile([0.0, 0.0, 0.8], (31, 1)), atol=1e-9)
    np.testing.assert_allclose(v.joints[:, 4], 0.3, atol=1e-9)
    assert state(gliding(character), 5).joint_velocities[4] == pytest.approx(0.3)


@pytest.mark.parametrize("fps", [24.0, 60.0, 120.0, 29.97])
def test_resampling_keeps_duration_and_motion(fps: float, character: Character):
    clip = gliding(character)
    other = resample(clip, fps)
    assert other.fps == fps
    assert clip.duration_s - 1 / fps < other.duration_s <= clip.duration_s + 1e-9
    np.testing.assert_allclose(velocities(other).root_angular[:, 2], 0.8, atol=1e-9)
    np.testing.assert_allclose(other.root_position[:, 0], np.arange(len(other)) / fps, atol=1e-9)


def test_resampling_a_loop_keeps_its_period_and_last_frame(character: Character):
    clip = gliding(character, 32, loop=True)
    other = resample(clip, 47.0)
    assert other.duration_s == pytest.approx(clip.duration_s)
    np.testing.assert_allclose(other.root_position[-1], clip.root_position[-1])


@pytest.mark.parametrize("fps", [0.0, -1.0, float("nan"), float("inf")])
def test_resampling_to_no_rate_is_refused(fps: float, character: Character):
    with pytest.raises(Mocap2CtrlError, match="expected a positive number"):
        resample(gliding(character), fps)


def random_clip(character: Character, count: int = 8) -> MotionClip:
    random = np.random.default_rng(1)
    low, high = character.lower_limits, character.upper_limits
    return MotionClip(
        "random",
        30.0,
        random.normal(size=(count, 3)),
        rotations.normalise(random.normal(size=(count, 4))),
        low + (high - low) * random.random((count, len(low))),
        provenance={"file": "x"},
    )


def test_mirror_is_an_involution_and_reflects_every_joint(character: Character):
    clip = random_clip(character)
    image = mirror(clip, character)
    twice = mirror(image, character)
    np.testing.assert_allclose(twice.angles, clip.angles)
    np.testing.assert_allclose(twice.root_orientation, clip.root_orientation)
    assert image.provenance["mirrored"]
    assert not twice.provenance["mirrored"]
    here, turned = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    there, turned_image = segment_frames(character, image.root_position, image.root_orientation, image.angles)
    other = {"left": "right", "right": "left"}
    for index, name in enumerate(character.segment_names):
        side, _, part = name.partition("_")
        twin = character.segment_index(f"{other[side]}_{part}" if side in other else name)
        np.testing.assert_allclose(there[:, twin], here[:, index] * [1, -1, 1], atol=1e-9)
    reflect = np.array([1.0, -1.0, 1.0])
    np.testing.assert_allclose(
        centre_of_mass(character, there, turned_image), centre_of_mass(character, here, turned) * reflect, atol=1e-9
    )


def test_repeat_carries_travel_and_turn_on(character: Character):
    clip = gliding(character, 31, loop=True)
    clip = MotionClip("loop", 30.0, clip.root_position, clip.root_orientation, np.zeros_like(clip.angles), loop=True)
    many = repeat(clip, 3)
    assert len(many) == 91
    assert not many.loop
    np.testing.assert_allclose(rotations.heading(many.root_orientation), 0.8 * np.arange(91) / 30, atol=1e-9)
    step = many.root_position[60] - many.root_position[30]
    expected = rotations.rotate(rotations.yaw(0.8), clip.root_position[30] - clip.root_position[0])
    np.testing.assert_allclose(step, expected, atol=1e-9)


def test_repeat_closes_the_seam(character: Character):
    clip = gliding(character, 31, loop=True)  # its joint ends 0.3 rad from where it began
    closed = close_loop(clip)
    np.testing.assert_allclose(closed.angles[-1], closed.angles[0], atol=1e-12)
    np.testing.assert_allclose(closed.angles[:26], clip.angles[:26])
    assert np.max(np.abs(velocities(repeat(clip, 2)).joints)) < 5.0


def test_a_small_turn_is_a_seam_and_the_loop_goes_straight_on(character: Character):
    times = np.arange(31) / 30.0
    clip = gliding(character, 31, loop=True)
    clip = replace(clip, root_orientation=rotations.yaw(0.1 * times))
    many = repeat(clip, 10)
    np.testing.assert_allclose(many.root_position[-1, :2], 10 * (clip.root_position[-1] - clip.root_position[0])[:2])
    assert np.max(np.abs(rotations.heading(many.root_orientation))) <= 0.1 + 1e-9


def test_only_loops_repeat(character: Character):
    with pytest.raises(Mocap2CtrlError, match="not a loop"):
        repeat(gliding(character), 2)
    with pytest.raises(Mocap2CtrlError, match="from 1"):
        repeat(gliding(character, loop=True), 0)


def standing(character: Character, height: float = 0.0, speed: float = 0.0, frames: int = 20) -> MotionClip:
    pose = character.zero_pose()
    root = np.tile(pose.root_position, (frames, 1))
    root[:, 0] += speed * np.arange(frames) / 30.0
    root[:, 2] += height
    zeros = np.zeros((frames, len(character.hinges)))
    return MotionClip("standing", 30.0, root, np.tile(pose.root_orientation, (frames, 1)), zeros)


def test_contacts_need_a_low_and_slow_foot(character: Character):
    assert np.all(foot_contacts(standing(character), character))
    assert not np.any(foot_contacts(standing(character, height=0.05), character))
    assert not np.any(foot_contacts(standing(character, speed=1.5), character))
    touching = contacts(standing(character), character)
    names = {character.segment_names[i] for i in np.flatnonzero(touching[0])}
    assert names == {"left_foot", "left_toes", "right_foot", "right_toes"}


def test_npz_round_trip(character: Character, tmp_path: Path):
    clip = random_clip(character)
    write_motion(tmp_path / "motion.npz", clip, character)
    again = read_motion(tmp_path / "motion.npz", character)
    np.testing.assert_array_equal(again.angles, clip.angles)
    np.testing.assert_array_equal(again.root_orientation, clip.root_orientation)
    assert (again.name, again.fps, again.loop, dict(again.provenance)) == ("random", 30.0, False, {"file": "x"})
    with np.load(tmp_path / "motion.npz", allow_pickle=False) as data:
        assert str(data["quaternion_order"]) == "wxyz"


def test_damaged_npz_files_are_refused(character: Character, tmp_path: Path):
    path = tmp_path / "motion.npz"
    write_motion(path, random_clip(character), character)
    whole = path.read_bytes()
    for content in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"hello"):
        path.write_bytes(content)
        with pytest.raises(MotionFileError, match=r"motion\.npz"):
            read_motion(path, character)
    np.savez(path, format=1)
    with pytest.raises(MotionFileError, match="is missing"):
        read_motion(path, character)
    np.savez(path, format=99)
    with pytest.raises(MotionFileError, match="this version reads format 1 to 2"):
        read_motion(path, character)
    with pytest.raises(MotionFileError, match="not a readable"):
        read_motion(tmp_path / "absent.npz", character)
