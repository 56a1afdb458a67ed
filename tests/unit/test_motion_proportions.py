"""Other bodies' motions: the same angles from other proportions and from skeletons that lack joints; mirrors are exact."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import numpy as np
import pytest
from test_motion_retarget import made_up_walk

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import lowest_points, segment_frames
from mocap2ctrl.character.model import parse_character
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.load import LoadedMotion, load_motion
from mocap2ctrl.types import Array, MotionClip

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from benchmarks.retargeting import mirror_asymmetry, path_of

SAME_DEG = 4.0
"""What planted feet, joint limits and numbers in files cost."""


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


def part_of(name: str) -> str:
    return name.removeprefix("left_").removeprefix("right_")


def stretched(character: Character, factors: dict[str, float]) -> Character:
    """The character with bones of some parts of the body longer or shorter."""
    description = copy.deepcopy(dict(character.description))
    for segment in description["segment"]:
        segment["tip"] = [factors.get(part_of(segment["name"]), 1.0) * x for x in segment["tip"]]
        segment["offset"] = [factors.get(part_of(segment["parent"]), 1.0) * x for x in segment["offset"]]
    return parse_character(description, "stretched")


def without(character: Character, *parts: str) -> Character:
    """The character without some segments; what hung on them hangs on their parents."""
    description = copy.deepcopy(dict(character.description))
    segments = {segment["name"]: segment for segment in description["segment"]}
    for name in [name for name in segments if part_of(name) in parts]:
        gone = segments.pop(name)
        for segment in segments.values():
            if segment["parent"] == name:
                segment["parent"] = gone["parent"]
                segment["offset"] = [a + b for a, b in zip(segment["offset"], gone["offset"], strict=True)]
    total = sum(segment["mass"] for segment in segments.values())
    for segment in segments.values():
        segment["mass"] /= total
    points = [point for point in description["evaluation_point"] if point["segment"] in segments]
    description.update(segment=list(segments.values()), evaluation_point=points)
    return parse_character(description, "without")


def longer_spine(character: Character, joints: int) -> Character:
    """The character with joints between abdomen and chest that do not turn."""
    description = copy.deepcopy(dict(character.description))
    segments = description["segment"]
    chest = next(i for i, segment in enumerate(segments) if segment["name"] == "chest")
    whole = segments[chest]["offset"][2]
    for number in range(joints):
        added = copy.deepcopy(segments[chest - 1])
        added.update(name="spine_" + "abc"[number], parent=segments[chest - 1 + number]["name"], hinges=[], mass=1e-9)
        added["offset"] = [0.0, 0.0, whole / (joints + 1)]
        segments.insert(chest + number, added)
    segments[chest + joints].update(
        parent=segments[chest + joints - 1]["name"], offset=[0.0, 0.0, whole / (joints + 1)]
    )
    return parse_character(description, "longer_spine")


def performed(character: Character, body: Character, folder: Path) -> tuple[LoadedMotion, Array]:
    """The made-up walk, written on `body` and read onto the character; and its angles where `body` has the hinge."""
    walk = made_up_walk(character)
    hinges = [character.hinge_names.index(name) for name in body.hinge_names]
    angles = walk.angles[:, hinges]
    frames = segment_frames(body, walk.root_position, walk.root_orientation, angles)
    lift = -np.min(lowest_points(body, *frames))
    root = walk.root_position + np.array([0.0, 0.0, lift])
    write_bvh(folder / "walk.bvh", MotionClip("walk", walk.fps, root, walk.root_orientation, angles), body)
    return load_motion(folder / "walk.bvh", character), walk.angles


def worst_deg(character: Character, found: Array, true: Array, ignored: tuple[str, ...]) -> float:
    kept = [i for i, name in enumerate(character.hinge_names) if part_of(name.partition(".")[0]) not in ignored]
    return float(np.degrees(np.max(np.abs(found - true)[:, kept])))


@pytest.mark.parametrize(
    "factors",
    [
        {},
        {"thigh": 0.8, "shank": 0.8, "upper_arm": 0.85, "forearm": 0.85, "head": 1.3},
        {"thigh": 1.2, "shank": 1.2},
        {"abdomen": 1.3, "chest": 1.2, "upper_arm": 0.8},
        {"upper_arm": 1.3, "forearm": 1.4, "hand": 1.5},
        {"thigh": 1.15, "shank": 0.85},
    ],
    ids=["own", "child", "long legs", "long trunk", "long arms", "long thighs"],
)
def test_other_proportions_give_the_same_angles(
    factors: dict[str, float], character: Character, tmp_path: Path
) -> None:
    motion, true = performed(character, stretched(character, factors), tmp_path)
    assert worst_deg(character, motion.clip.angles, true, ("toes",)) < SAME_DEG
    assert motion.limb_error_cm < 2.0
    assert np.all(motion.clip.angles >= character.lower_limits)
    assert np.all(motion.clip.angles <= character.upper_limits)


@pytest.mark.parametrize("parts", [("toes",), ("hand",), ("head",), ("toes", "hand", "head")], ids="+".join)
def test_missing_joints_leave_the_others_as_they_are(
    parts: tuple[str, ...], character: Character, tmp_path: Path
) -> None:
    motion, true = performed(character, without(character, *parts), tmp_path)
    assert worst_deg(character, motion.clip.angles, true, (*parts, "toes")) < SAME_DEG
    assert np.max(np.abs(motion.clip.angles - true)) < 1.0


def test_a_spine_of_one_joint_turns_by_half_in_each_of_ours(character: Character, tmp_path: Path) -> None:
    motion, true = performed(character, without(character, "abdomen"), tmp_path)
    assert worst_deg(character, motion.clip.angles, true, ("abdomen", "chest", "toes")) < SAME_DEG
    chest, abdomen = (character.hinge_names.index(f"{name}.rotation") for name in ("chest", "abdomen"))
    np.testing.assert_allclose(motion.clip.angles[:, abdomen], 0.5 * true[:, chest], atol=0.02)
    np.testing.assert_allclose(motion.clip.angles[:, chest], 0.5 * true[:, chest], atol=0.02)


@pytest.mark.parametrize("joints", [1, 2])
def test_longer_spines_add_up(joints: int, character: Character, tmp_path: Path) -> None:
    motion, true = performed(character, longer_spine(character, joints), tmp_path)
    assert worst_deg(character, motion.clip.angles, true, ("toes",)) < SAME_DEG


@pytest.mark.parametrize("height", [1.2, 2.0])
def test_height_scales_the_motion_and_nothing_else(height: float, character: Character, tmp_path: Path) -> None:
    write_bvh(tmp_path / "walk.bvh", made_up_walk(character), character)
    here = load_motion(tmp_path / "walk.bvh", character)
    there = load_motion(tmp_path / "walk.bvh", load_character(height_m=height))
    size = height / character.height_m
    np.testing.assert_allclose(there.clip.root_position, here.clip.root_position * size, atol=1e-9)
    np.testing.assert_allclose(there.source_points, here.source_points * size, atol=1e-9)
    np.testing.assert_allclose(there.clip.angles, here.clip.angles, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["walk_games105_m_yup", "jump_forward_fair1_zup_inch", "humanoid3d_cartwheel", "humanoid3d_spinkick"]
)
def test_mirrored_input_gives_the_mirrored_result(name: str, character: Character) -> None:
    if path_of(name) is None:
        pytest.skip(f"{name} is absent: of the shared data beside the project, or of pybullet's")
    asymmetry = mirror_asymmetry(name, character)
    assert asymmetry is not None
    assert asymmetry < np.degrees(1e-6)
