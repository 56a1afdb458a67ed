"""The built-in body against published proportions, its scaling, its kinematics, and descriptions that contradict themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mocap2ctrl.character.kinematics import (
    centre_of_mass,
    evaluation_points,
    lowest_points,
    marker_layout,
    points_world,
    segment_frames,
)
from mocap2ctrl.character.model import Character, load_character, parse_character, swap_sides
from mocap2ctrl.errors import CharacterError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, Pose

# Winter, table 4.1 (after Dempster): mass over body mass; centre of mass over segment length from the proximal joint;
# radius of gyration about the centre of mass over segment length.
WINTER = {
    "hand": (0.006, 0.506, 0.297),
    "forearm": (0.016, 0.430, 0.303),
    "upper_arm": (0.028, 0.436, 0.322),
    "shank": (0.0465, 0.433, 0.302),
    "thigh": (0.100, 0.433, 0.323),
}
WINTER_MASSES = {"pelvis": 0.142, "abdomen": 0.139, "chest": 0.216, "head": 0.081}
FOOT_MASS = 0.0145
"""Foot and toes together."""

LIMBS = ("upper_arm", "forearm", "hand", "thigh", "shank", "foot", "toes")

BODY = load_character()
"""For property tests, which take no fixtures."""


def frames_of(character: Character, pose: Pose) -> tuple[Array, Array]:
    return segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)


def top(character: Character) -> float:
    positions, orientations = frames_of(character, character.zero_pose())
    heights = []
    for index, segment in enumerate(character.segments):
        ends = np.array([end for c in segment.capsules for end in (c.start, c.end)])
        radii = np.array([c.radius for c in segment.capsules for _ in (0, 1)])
        heights.append((points_world(positions, orientations, [index] * len(ends), ends)[:, 2] + radii).max())
    return float(max(heights))


def test_structure_is_vondraks(character: Character):
    assert len(character.segments) == 18
    assert len(character.hinges) + 6 == 41
    degrees = {s.name: len(s.hinges) for s in character.segments}
    expected = {"pelvis": 0, "abdomen": 3, "chest": 3, "head": 3}
    for side in ("left", "right"):
        for name, count in zip(LIMBS, (3, 1, 2, 3, 1, 2, 1), strict=True):
            expected[f"{side}_{name}"] = count
    assert degrees == expected
    assert len(character.evaluation_points) == 15
    assert character.groups[0] == "root"
    assert (character.height_m, character.mass_kg) == (1.75, 75.0)


def test_hinge_axes_are_unit_vectors_and_limits_hold_the_zero_pose(character: Character):
    for hinge in character.hinges:
        assert np.linalg.norm(hinge.axis) == pytest.approx(1.0)
        assert hinge.limits[0] < 0.0 < hinge.limits[1]


def test_zero_pose_stands_on_the_ground_at_body_height(character: Character):
    pose = character.zero_pose()
    lowest = lowest_points(character, *frames_of(character, pose))
    soles = [character.segment_index(f"{side}_foot") for side in ("left", "right")]
    np.testing.assert_allclose(lowest[soles], 0.0, atol=1e-9)
    assert lowest.min() == pytest.approx(0.0, abs=1e-9)
    assert top(character) == pytest.approx(character.height_m, abs=0.01)


def test_masses_are_winters(character: Character):
    masses = {s.name: s.mass / character.mass_kg for s in character.segments}
    assert sum(masses.values()) == pytest.approx(1.0)
    for name, fraction in WINTER_MASSES.items():
        assert masses[name] == pytest.approx(fraction)
    for side in ("left", "right"):
        for name, (fraction, _, _) in WINTER.items():
            assert masses[f"{side}_{name}"] == pytest.approx(fraction)
        assert masses[f"{side}_foot"] + masses[f"{side}_toes"] == pytest.approx(FOOT_MASS)


@pytest.mark.parametrize("name", WINTER)
def test_limbs_have_winters_centres_and_gyration(character: Character, name: str):
    _, centre, gyration = WINTER[name]
    for side in ("left", "right"):
        segment = character.segments[character.segment_index(f"{side}_{name}")]
        length = np.linalg.norm(segment.tip)
        assert np.linalg.norm(segment.com) / length == pytest.approx(centre, abs=0.002)
        across = np.sqrt(segment.inertia[:2] / segment.mass) / length
        np.testing.assert_allclose(across, gyration, atol=0.002)


def test_inertias_are_those_of_solid_bodies(character: Character):
    for segment in character.segments:
        a, b, c = np.sort(segment.inertia)
        assert a > 0.0
        assert a + b >= c * (1.0 - 1e-9), segment.name  # triangle inequality: no mass is negative


def test_whole_body_centre_of_mass_is_at_a_persons_height(character: Character):
    com = centre_of_mass(character, *frames_of(character, character.zero_pose()))
    assert 0.54 * character.height_m < com[2] < 0.58 * character.height_m
    assert com[1] == pytest.approx(0.0, abs=1e-12)
    foot = character.segments[character.segment_index("left_foot")]
    assert -0.012 * character.height_m < com[0] < foot.tip[0]  # over the feet: it can stand


def test_torque_bounds_follow_eq_15(character: Character):
    mass = {s.name: s.mass for s in character.segments}
    bounds = dict(zip(character.hinge_names, character.torque_bounds, strict=True))
    assert bounds["left_thigh.flexion"] == pytest.approx(60.0 * (mass["pelvis"] + mass["left_thigh"]))
    assert bounds["right_hand.flexion"] == pytest.approx(60.0 * (mass["right_forearm"] + mass["right_hand"]))
    assert bounds["head.rotation"] == pytest.approx(60.0 * (mass["chest"] + mass["head"]))


def test_left_and_right_are_mirror_images(character: Character):
    for segment in character.segments:
        other = character.segments[character.segment_index(swap_sides(segment.name))]
        for name in ("offset", "tip", "com"):
            np.testing.assert_allclose(getattr(segment, name), getattr(other, name) * [1, -1, 1], atol=1e-12)
        np.testing.assert_array_equal(segment.inertia, other.inertia)
        assert segment.group == other.group
        assert [h.limits for h in segment.hinges] == [h.limits for h in other.hinges]


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_mirrored_angles_make_the_mirrored_pose(seed: int):
    rng = np.random.default_rng(seed)
    index, sign = BODY.mirror_hinges
    angles = rng.uniform(BODY.lower_limits, BODY.upper_limits)
    root, q = rng.normal(size=3), rotations.normalise(rng.normal(size=4))
    a, _ = segment_frames(BODY, root, q, angles)
    b, _ = segment_frames(BODY, root * [1, -1, 1], q * [1, -1, 1, -1], sign * angles[index])
    swapped = [BODY.segment_index(swap_sides(n)) for n in BODY.segment_names]
    np.testing.assert_allclose(a[swapped] * [1, -1, 1], b, atol=1e-12)
    np.testing.assert_array_equal(index[index], np.arange(len(index)))


# Scaling.


@pytest.mark.parametrize(("height", "mass"), [(1.2, 30.0), (2.0, 110.0)])
def test_scaling_keeps_proportions(character: Character, height: float, mass: float):
    other = character.scaled(height, mass)
    h, m = height / character.height_m, mass / character.mass_kg
    assert (other.height_m, other.mass_kg) == (height, mass)
    for a, b in zip(character.segments, other.segments, strict=True):
        for name in ("offset", "tip", "marker", "com"):
            np.testing.assert_allclose(getattr(b, name), h * getattr(a, name), rtol=1e-12)
        assert b.mass == pytest.approx(m * a.mass)
        np.testing.assert_allclose(b.inertia, m * h**2 * a.inertia, rtol=1e-12)
        for c, d in zip(a.capsules, b.capsules, strict=True):
            assert d.radius == pytest.approx(h * c.radius)
            np.testing.assert_allclose([d.start, d.end], [h * c.start, h * c.end], rtol=1e-12)
    np.testing.assert_allclose(other.torque_bounds, m * character.torque_bounds, rtol=1e-12)
    assert top(other) == pytest.approx(h * top(character))
    assert other.hinge_names == character.hinge_names


def test_scaling_by_height_alone_keeps_the_density(character: Character):
    other = load_character(height_m=1.4)
    assert other.mass_kg == pytest.approx(75.0 * (1.4 / 1.75) ** 3)
    back = other.scaled(1.75)
    for a, b in zip(character.segments, back.segments, strict=True):
        np.testing.assert_allclose(a.inertia, b.inertia, rtol=1e-12)


# Kinematics.


def test_bending_one_joint_moves_what_hangs_on_it(character: Character, angles_of: Callable[..., Array]):
    pose = character.zero_pose()
    start, _ = frames_of(character, pose)
    bent = Pose(pose.root_position, pose.root_orientation, angles_of(left_forearm__flexion=90))
    moved, _ = frames_of(character, bent)
    hand, elbow = character.segment_index("left_hand"), character.segment_index("left_forearm")
    length = 0.146 * character.height_m
    np.testing.assert_allclose(moved[hand], start[elbow] + [length, 0, 0], atol=1e-12)  # the forearm points forward
    others = np.delete(np.arange(len(start)), hand)
    np.testing.assert_array_equal(moved[others], start[others])


@pytest.mark.parametrize(
    ("hinge", "point", "axis", "sign"),
    [
        ("left_thigh.flexion", "left_knee", 0, 1),
        ("left_thigh.abduction", "left_knee", 1, 1),
        ("right_thigh.abduction", "right_knee", 1, -1),
        ("right_shank.flexion", "right_ankle", 0, -1),
        ("left_upper_arm.flexion", "left_elbow", 0, 1),
        ("right_upper_arm.abduction", "right_elbow", 1, -1),
        ("abdomen.flexion", "head", 0, 1),
        ("chest.lateral_bend", "head", 1, 1),
    ],
)
def test_movements_have_the_direction_of_their_name(character: Character, hinge: str, point: str, axis: int, sign: int):
    names = [p.name for p in character.evaluation_points]
    pose, angles = character.zero_pose(), np.zeros(len(character.hinges))
    before = evaluation_points(character, *frames_of(character, pose))[names.index(point)]
    angles[character.hinge_names.index(hinge)] = 0.3
    after = evaluation_points(character, *segment_frames(character, pose.root_position, pose.root_orientation, angles))
    assert sign * (after[names.index(point)] - before)[axis] > 0.05


def test_kinematics_take_batches(character: Character):
    rng = np.random.default_rng(0)
    angles = rng.normal(size=(2, 3, len(character.hinges)))
    root, q = rng.normal(size=(2, 3, 3)), rotations.normalise(rng.normal(size=(2, 3, 4)))
    positions, orientations = segment_frames(character, root, q, angles)
    assert positions.shape == (2, 3, 18, 3)
    one = segment_frames(character, root[1, 2], q[1, 2], angles[1, 2])
    np.testing.assert_array_equal(positions[1, 2], one[0])
    np.testing.assert_array_equal(orientations[1, 2], one[1])
    assert centre_of_mass(character, positions, orientations).shape == (2, 3, 3)
    assert lowest_points(character, positions, orientations).shape == (2, 3, 18)


def test_three_markers_a_segment_show_every_motion_of_it(character: Character):
    segment, local = marker_layout(character)
    np.testing.assert_array_equal(segment, np.repeat(np.arange(18), 3))
    for index in range(18):
        a, b, c = local[3 * index : 3 * index + 3]
        assert np.linalg.norm(np.cross(b - a, c - a)) > 1e-4  # not on one line: twist shows


# Descriptions that are wrong.


def changed(character: Character, change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    data = copy.deepcopy(dict(character.description))
    change(data)
    return data


def segment(data: dict[str, Any], name: str) -> dict[str, Any]:
    return next(s for s in data["segment"] if s["name"] == name)


def swap_segments(data: dict[str, Any]) -> None:
    """Right shank before the left leg is complete: parents still come first, but the order is not depth first."""
    names = [s["name"] for s in data["segment"]]
    data["segment"].insert(names.index("left_shank"), data["segment"].pop(names.index("right_thigh")))


WRONG = {
    "other format": (lambda d: d.update(format=2), "format is 2"),
    "no format": (lambda d: d.pop("format"), "format is None"),
    "too tall": (lambda d: d.update(height_m=175), r"height_m is 175; allowed are 0.8 to 2.4"),
    "height not a number": (lambda d: d.update(height_m="tall"), "tall"),
    "height NaN": (lambda d: d.update(height_m=float("nan")), "height_m is nan"),
    "no mass": (lambda d: d.update(mass_kg=0), "mass_kg is 0; it must be positive"),
    "no segments": (lambda d: d.pop("segment"), "'segment' is missing"),
    "empty segments": (lambda d: d.update(segment=[]), "segment"),
    "segments not tables": (lambda d: d.update(segment=[1, 2]), "must be tables"),
    "segment without mass": (lambda d: segment(d, "chest").pop("mass"), "'mass' is missing"),
    "unknown parent": (lambda d: segment(d, "chest").update(parent="waist"), "'chest' has parent 'waist'"),
    "parent behind": (lambda d: segment(d, "abdomen").update(parent="chest"), "'abdomen' has parent 'chest'"),
    "heavy head": (lambda d: segment(d, "head").update(mass=0.2), r"mass fractions add up to 1\.119"),
    "negative mass": (
        lambda d: (segment(d, "head").update(mass=-0.081), segment(d, "chest").update(mass=0.378)),
        "head",
    ),
    "not depth first": (swap_segments, "depth first"),
    "same name twice": (lambda d: segment(d, "left_hand").update(name="head"), "'head'"),
    "name with a blank": (lambda d: segment(d, "head").update(name="the head"), "'the head'"),
    "offset too short": (lambda d: segment(d, "head").update(offset=[0, 1]), "head.offset has shape"),
    "offset NaN": (lambda d: segment(d, "head").update(offset=[0, 0, float("nan")]), "head.offset holds NaN"),
    "axis not a unit": (lambda d: segment(d, "head")["hinges"][0].update(axis=[0, 2, 0]), "head.flexion.axis is"),
    "limits swapped": (lambda d: segment(d, "head")["hinges"][0].update(limits=[65, -65]), "head.flexion.limits are"),
    "point on nothing": (lambda d: d["evaluation_point"][0].update(segment="tail"), "tail"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_description_is_refused_in_one_line(character: Character, case: str):
    change, message = WRONG[case]
    with pytest.raises(CharacterError, match=message) as caught:
        parse_character(changed(character, change), "body.toml")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("body.toml: ")


def test_the_unchanged_description_is_accepted(character: Character):
    again = parse_character(changed(character, lambda d: None), "body.toml")
    assert again.hinge_names == character.hinge_names


@pytest.mark.parametrize("content", [b"height_m = ", b"\xff\xfe", None])
def test_unreadable_files_are_named(tmp_path: Path, content: bytes | None):
    path = tmp_path / "body.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CharacterError, match=r"body\.toml") as caught:
        load_character(path)
    assert "\n" not in str(caught.value)


def test_arrays_of_a_character_are_read_only(character: Character):
    for item in character.segments[5], character.segments[5].capsules[0], character.segments[5].hinges[0]:
        for f in fields(item):
            value = getattr(item, f.name)
            if isinstance(value, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    value[...] = 0.0
