"""Treadmills and clips to be played in place: recognised by feet that slide back, travel put back, nothing else mistaken."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl import api
from mocap2ctrl.character import Character, load_character
from mocap2ctrl.errors import ConfigError, MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.types import MotionClip

SPEED_M_S = 1.2
FPS = 60.0


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


def stilts(character: Character, steps: float = 4.0) -> MotionClip:
    """Someone who travels at a steady speed, each foot flat on the ground in turn: legs fold and swing in closed form."""
    times = np.arange(round(steps * FPS)) / FPS
    angles = np.zeros((len(times), len(character.hinges)))
    length = 0.491 * character.height_m
    for side, late in (("left", 0.0), ("right", 0.5)):
        phase = (times + late) % 1.0
        stands = phase < 0.5
        swing = np.clip(2.0 * phase - 1.0, 0.0, 1.0)
        along = SPEED_M_S * np.where(stands, 0.25 - phase, -0.25 + 0.5 * swing)  # of the foot, from the hip
        height = 0.93 * length - np.where(stands, 0.0, 0.12 * np.sin(np.pi * swing) ** 2)
        reach = np.hypot(along, height)
        knee = 2.0 * np.arccos(np.clip(reach / length, -1.0, 1.0))
        hip = np.arctan2(along, height) + 0.5 * knee
        for hinge, value in (("thigh.flexion", hip), ("shank.flexion", knee), ("foot.dorsiflexion", knee - hip)):
            angles[:, character.hinge_names.index(f"{side}_{hinge}")] = value
    root = np.zeros((len(times), 3))
    root[:, 0] = SPEED_M_S * times
    root[:, 2] = 0.93 * length + 0.039 * character.height_m
    return MotionClip("stilts", FPS, root, np.tile(rotations.IDENTITY_QUATERNION, (len(times), 1)), angles)


@pytest.fixture(scope="module")
def files(character: Character, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same walk as it travels, and on a treadmill."""
    folder = tmp_path_factory.mktemp("belt")
    walk = stilts(character)
    still = replace(walk, root_position=walk.root_position * np.array([0.0, 1.0, 1.0]))
    places = {"travels": folder / "travels.bvh", "treadmill": folder / "treadmill.bvh"}
    for place, clip in zip(places.values(), (walk, still), strict=True):
        write_bvh(place, clip, character)
    return places


def test_a_treadmill_is_recognised_and_told(files: dict[str, Path], character: Character) -> None:
    loaded = load_motion(files["treadmill"], character)
    assert loaded.belt.speed_m_s == pytest.approx(SPEED_M_S, rel=0.05)
    assert not loaded.belt.put_back
    assert not loaded.travels
    assert any("slide back at 1.2" in warning and "--belt" in warning for warning in loaded.warnings)
    assert np.max(np.abs(loaded.clip.root_position[:, :2])) < 0.05


def test_travel_put_back_is_the_walk_over_ground(files: dict[str, Path], character: Character) -> None:
    walked = load_motion(files["travels"], character)
    assert walked.belt.speed_m_s == 0.0
    assert not any("slide" in warning for warning in walked.warnings)
    for belt in ("auto", SPEED_M_S):
        loaded = load_motion(files["treadmill"], character, belt=belt)
        assert loaded.belt.put_back
        assert loaded.travels
        way = loaded.clip.root_position[-1, 0] / walked.clip.root_position[-1, 0]
        assert way == pytest.approx(1.0, abs=0.05)
        assert loaded.feet.after.slide_cm_s is not None
        assert loaded.feet.after.slide_cm_s < 1.0
        assert loaded.clip.provenance["belt"] == str(belt)


def test_a_stated_belt_is_told_as_such_and_doubted_where_feet_contradict_it(
    files: dict[str, Path], character: Character
) -> None:
    said = "the ground was taken to move back at 1.20 m/s, as --belt says"
    for place, belt, feet in (("treadmill", 1.2, None), ("travels", 1.2, 0.0), ("treadmill", 3.0, 1.2)):
        loaded = load_motion(files[place], character, belt=belt)
        (told,) = (warning for warning in loaded.warnings if "--belt" in warning)
        assert said.replace("1.20", f"{belt:.2f}") in told
        assert "stays in place" not in told
        assert ("but the feet" in told) == (feet is not None)
        if feet is not None:
            assert loaded.belt.feet_m_s == pytest.approx(feet, abs=0.06)


def test_the_ground_is_still_where_that_is_said(files: dict[str, Path], character: Character) -> None:
    loaded = load_motion(files["treadmill"], character, belt="none")
    assert loaded.belt.speed_m_s == 0.0
    assert not any("slide" in warning for warning in loaded.warnings)


@pytest.mark.parametrize("belt", ["fast", -1.0, 0.0, 50.0, float("nan")])
def test_belts_that_cannot_be_are_refused(belt: str | float, files: dict[str, Path], character: Character) -> None:
    with pytest.raises(MotionFileError, match=r"belt is .*allowed are auto, none, or a speed"):
        load_motion(files["treadmill"], character, belt=belt)


def test_inspect_puts_travel_back_and_says_so(files: dict[str, Path]) -> None:
    seen = api.inspect(files["treadmill"])
    said = json.loads(json.dumps(seen.summary(), allow_nan=False))
    assert said["travels"]
    assert said["belt_m_s"] == pytest.approx(SPEED_M_S, rel=0.05)
    assert any("--belt none" in warning for warning in said["warnings"])
    with pytest.raises(ConfigError, match="belt is 'fast'"):
        api.inspect(files["treadmill"], belt="fast")


@pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")
@pytest.mark.parametrize("name", ["walk", "spin", "punch", "cartwheel", "getup_faceup", "backflip"])
def test_nothing_else_is_taken_for_a_belt(name: str, character: Character) -> None:
    assert load_motion(f"humanoid3d_{name}", character).belt.speed_m_s == 0.0
