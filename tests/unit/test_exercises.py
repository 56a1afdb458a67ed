"""Authored movements: within the joints' limits, on their feet, the same each time; and the priors that have learnt them."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import clip_frames, clip_points, lowest_points, points_world
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.prior import PosePrior, load_prior, train
from mocap2ctrl.track.pose_gaussian import PoseGaussian, pose_gaussian
from mocap2ctrl.types import Array, MotionClip

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from exercises import MOVEMENTS, perform
from exercises.posture import Arm, Foot, Posture, posture_of

JUMPING_JACKS = Path(__file__).parents[3] / "shared" / "data" / "bvh" / "jumping_jacks_cmu.bvh"
LEAPS = ("jumping_jack", "jump_up", "hop", "side_step")
"""Movements that leave the ground."""


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


def performed(name: str, character: Character, seed: int = 0) -> MotionClip:
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    return perform(MOVEMENTS[name](rng), character, name, rng)


@pytest.fixture(scope="module")
def clips(character: Character) -> dict[str, MotionClip]:
    return {name: performed(name, character, 1000) for name in MOVEMENTS}  # a seed that no shipped prior has seen


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movements_keep_to_the_joints_limits_and_to_the_ground(
    name: str, clips: dict[str, MotionClip], character: Character
) -> None:
    clip = clips[name]
    assert np.all(clip.angles >= character.lower_limits)
    assert np.all(clip.angles <= character.upper_limits)
    assert np.max(np.abs(np.diff(clip.angles, axis=0))) * clip.fps < 30.0  # rad/s: a fast throw's shoulder has 100
    lowest = lowest_points(character, *clip_frames(character, clip)).min(axis=1)
    assert np.min(lowest) > -0.04
    assert np.max(lowest) < (0.08 if name in LEAPS else 0.01)


@pytest.mark.parametrize("name", ["wave_one", "wave_both", "bend_down", "squat", "hands_together"])
def test_feet_that_stand_stay_where_they_are(name: str, clips: dict[str, MotionClip], character: Character) -> None:
    positions, orientations = clip_frames(character, clips[name])
    for side in ("left", "right"):
        foot = character.segment_index(f"{side}_foot")
        ball = character.segments[foot].capsules[0].end
        places = points_world(positions, orientations, [foot], ball[None])
        still = np.abs(places[:, 0, 2] - character.segments[foot].capsules[0].radius) < 0.01
        assert np.ptp(places[still, 0, :2], axis=0).max() < 0.06  # a foot may be turned out further, never slide away


def test_a_posture_is_what_it_says(character: Character) -> None:
    high, low = Arm(aside=180.0, elbow=0.0), Arm(aside=0.0, elbow=0.0)
    feet = {"left_foot": Foot(aside=0.1, out=0.0), "right_foot": Foot(lift=0.1, ahead=0.1)}
    posture = Posture(left_arm=high, right_arm=low, drop=0.04, **feet)
    clip = perform([(0.0, posture), (0.1, posture)], character, "still")
    points = dict(zip([p.name for p in character.evaluation_points], clip_points(character, clip)[0], strict=True))
    height = character.height_m
    assert points["left_wrist"][2] - points["left_shoulder"][2] == pytest.approx(0.332 * height, abs=0.01)
    assert points["right_wrist"][2] - points["right_shoulder"][2] == pytest.approx(-0.332 * height, abs=0.01)
    assert points["left_ankle"][1] - points["left_hip"][1] == pytest.approx(0.1 * height, abs=0.02)
    assert points["right_ankle"][2] - points["left_ankle"][2] == pytest.approx(0.1 * height, abs=0.02)


def test_numbers_and_postures_are_each_others_inverse() -> None:
    posture = Posture(left_arm=Arm(1, 2, 3, 4, 5), right_foot=Foot(6, 7, 8, 9, 10), drop=11.0, nod=12.0)
    assert posture_of(posture.numbers()) == posture
    several = posture_of(np.stack([posture.numbers(), Posture().numbers()]))
    np.testing.assert_array_equal(several.right_foot.lift, [8, 0])


def test_the_same_movement_and_the_same_prior_each_time(clips: dict[str, MotionClip], character: Character) -> None:
    again = performed("jumping_jack", character, 1000)
    np.testing.assert_array_equal(again.angles, clips["jumping_jack"].angles)
    priors = [train([clip], character, name="jack") for clip in (again, clips["jumping_jack"])]
    np.testing.assert_array_equal(priors[0].basis, priors[1].basis)
    np.testing.assert_array_equal(priors[0].exemplars, priors[1].exemplars)
    assert not np.array_equal(performed("jumping_jack", character, 1001).angles[0], again.angles[0])


def test_shipped_priors_say_that_they_hold_authored_movements(character: Character) -> None:
    for name, recorded in (("exercise", 0), ("everyday", 15)):
        prior = load_prior(name, character)
        assert isinstance(prior, PosePrior)
        known = [clip["name"] for clip in prior.provenance["clips"]]
        assert {clip.rsplit("_", 1)[0] for clip in known} >= set(MOVEMENTS)
        assert len([clip for clip in known if clip.startswith("humanoid3d_")]) == recorded


def energies(gaussian: PoseGaussian, clip: MotionClip) -> Array:
    return gaussian.energy(clip.root_orientation, clip.angles)


def shipped(name: str, character: Character) -> PosePrior:
    prior = load_prior(name, character)
    assert isinstance(prior, PosePrior)
    return prior


@pytest.mark.parametrize("name", ["wave_one", "wave_both", "jumping_jack", "bend_down"])
def test_unseen_performances_are_far_likelier_than_before(
    name: str, clips: dict[str, MotionClip], character: Character
) -> None:
    old, new = (pose_gaussian(shipped(prior, character)) for prior in ("all", "everyday"))
    assert np.median(energies(new, clips[name])) < 0.7 * np.median(energies(old, clips[name]))


@pytest.mark.skipif(not JUMPING_JACKS.is_file(), reason="the recorded jumping jacks are not beside the project")
def test_a_recorded_jumping_jack_is_far_likelier_than_before(character: Character) -> None:
    clip = load_motion(JUMPING_JACKS, character).clip
    old, new = shipped("all", character), shipped("everyday", character)
    before, after = (np.median(energies(pose_gaussian(prior), clip)) for prior in (old, new))
    assert after < 0.5 * before
