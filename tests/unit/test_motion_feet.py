"""Feet that stand: found in the source, planted on the ground without slide, and what must not change is not changed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_motion_in_place import SPEED_M_S, stilts

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import clip_frames, clip_points, lowest_points, segment_frames
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion import planting_check
from mocap2ctrl.motion.clips import velocities
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.feet import measured
from mocap2ctrl.motion.foot_paths import BLEND_S, foot_path
from mocap2ctrl.motion.footfalls import body_footfalls, footfalls
from mocap2ctrl.motion.inverse_kinematics import State
from mocap2ctrl.motion.load import LoadedMotion, load_motion
from mocap2ctrl.motion.planting import plant
from mocap2ctrl.motion.runs import runs
from mocap2ctrl.motion.toes import bent_toes
from mocap2ctrl.types import Array, Masks, MotionClip

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from benchmarks.retargeting import path_of

FPS = 60.0
HEEL_AND_BALL = np.array([[[-0.02, -0.02, -0.04], [-0.02, 0.02, -0.04]], [[0.14, -0.03, -0.04], [0.14, 0.03, -0.04]]])
RADIUS = np.full((2, 2), 0.02)
ANKLE_M = 0.06


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


def skating(frames: int, speed: float = 0.2) -> tuple[Array, Array]:
    """An ankle that skates along x at the height of a flat foot, and its orientation."""
    place = np.tile([0.0, 0.0, ANKLE_M], (frames, 1))
    place[:, 0] = speed * np.arange(frames) / FPS
    return place, np.tile(rotations.IDENTITY_QUATERNION, (frames, 1))


def test_a_foot_that_stands_stays_where_it_stood_on_average() -> None:
    place, turned = skating(61)
    standing = np.zeros((61, 2), dtype=bool)
    standing[20:41] = True
    moved, orientation = foot_path(place, turned, HEEL_AND_BALL, RADIUS, standing, FPS)
    speeds = np.abs(np.diff(moved[20:41, 0])) * FPS
    assert np.max(speeds) < 0.002  # of 0.2 m/s
    assert moved[30, 0] == pytest.approx(place[30, 0], abs=1e-4)  # by symmetry
    np.testing.assert_allclose(moved[:, 1:], place[:, 1:], atol=1e-4)
    np.testing.assert_allclose(orientation, turned, atol=1e-3)
    assert np.max(np.abs(moved - place)) < 0.5 * 0.2 * 21 / FPS + 0.002


@pytest.mark.parametrize("fps", [60.0, 240.0])
def test_corrections_fade_in_and_out_without_a_jolt(fps: float) -> None:
    """The largest acceleration belongs to the time of a blend, whatever the rate: not to a stop within a frame."""
    frames = round(2 * fps)
    place, turned = skating(frames)
    place[:, 0] = 0.2 * np.arange(frames) / fps
    standing = np.zeros((frames, 2), dtype=bool)
    standing[round(0.8 * fps) : round(1.2 * fps)] = True
    moved, _ = foot_path(place, turned, HEEL_AND_BALL, RADIUS, standing, fps)
    assert np.max(np.abs(np.diff(moved[:, 0], 2))) * fps**2 < 4 * 0.2 / BLEND_S
    np.testing.assert_allclose(moved[[0, -1]], place[[0, -1]], atol=2e-3)


def test_a_foot_that_never_stands_nor_sinks_is_left_alone() -> None:
    place, turned = skating(30)
    place[:, 2] += 0.03 * np.arange(30) / 30 + 1e-6
    moved, orientation = foot_path(place, turned, HEEL_AND_BALL, RADIUS, np.zeros((30, 2), dtype=bool), FPS)
    np.testing.assert_array_equal(moved, place)
    np.testing.assert_allclose(orientation, turned, atol=1e-15)


@pytest.mark.parametrize("pitch", [-0.1, 0.1])
def test_a_tilted_foot_stands_flat_and_a_sunk_one_is_raised(pitch: float) -> None:
    place, _ = skating(40, speed=0.0)
    turned = np.tile(rotations.about_axis((0.0, 1.0, 0.0), pitch), (40, 1))
    standing = np.zeros((40, 2), dtype=bool)
    standing[10:30] = True
    moved, orientation = foot_path(place, turned, HEEL_AND_BALL, RADIUS, standing, FPS)
    bottom = moved[:, None, None] + rotations.rotate(orientation[:, None, None], HEEL_AND_BALL)
    heights = np.min(bottom[..., 2] - RADIUS, axis=2)
    assert np.max(np.abs(heights[10:30])) < 5e-4
    assert np.min(heights) > -5e-4


@pytest.mark.parametrize("seed", [0, 1, 2, 6])
def test_a_foot_whose_markers_jump_is_neither_rolled_over_nor_carried_off(seed: int) -> None:
    """Jumps of 5 mm ask the linear system for turns of 100 degrees and more, which do not do what it promises."""
    frames, fps = 126, 250.0
    jumps = np.random.default_rng(seed)
    place = np.tile([0.0, 0.0, ANKLE_M + 0.01], (frames, 1))
    place[:, :2] += 0.005 * jumps.standard_normal((frames, 2))
    tilt = 0.3 * np.linspace(0.0, 1.0, frames)[:, None] * [1.0, 0.3, 0.0] + 0.04 * jumps.standard_normal((frames, 3))
    turned = rotations.from_rotation_vector(tilt)
    standing = np.zeros((frames, 2), dtype=bool)
    standing[60:96, 0] = standing[77:, 1] = True
    moved, orientation = foot_path(place, turned, HEEL_AND_BALL, RADIUS, standing, fps)
    turn = rotations.to_rotation_vector(rotations.multiply(orientation, rotations.conjugate(turned)))
    assert np.max(np.linalg.norm(turn, axis=1)) < 1.0
    assert np.max(np.linalg.norm(moved - place, axis=1)) < 0.15
    for ball in (0, 1):
        slides = []
        for ankle, q in ((place, turned), (moved, orientation)):
            spots = ankle + rotations.rotate(q, np.mean(HEEL_AND_BALL[ball], axis=0))
            steps = np.linalg.norm(np.diff(spots[:, :2], axis=0), axis=1)
            slides.append(np.mean(steps[standing[1:, ball] & standing[:-1, ball]]))
        assert slides[1] < 0.5 * slides[0]


def stepping(steps: int = 3) -> Array:
    """Tracks (T, 2, 2, 3) of feet that stand half a second and swing half a second in turn, heels first and last."""
    frames = round(steps * FPS)
    tracks = np.zeros((frames, 2, 2, 3))
    for side in range(2):
        for part, late in enumerate((0.0, 0.05)):
            phase = (np.arange(frames) / FPS - late + 0.5 * side) % 1.0
            swing = np.clip(2.0 * phase - 1.0, 0.0, 1.0)
            along = np.floor(np.arange(frames) / FPS - late + 0.5 * side) + swing * swing * (3.0 - 2.0 * swing)
            tracks[:, side, part] = np.stack([along, 0.1 + 0 * along, 0.07 + 0.1 * np.sin(np.pi * swing)], axis=1)
    return tracks


def test_footfalls_are_found_when_they_are() -> None:
    tracks = stepping()
    standing = footfalls(tracks, np.ones(tracks.shape[:3], dtype=bool), FPS)
    for side in range(2):
        for part, late in enumerate((0.0, 0.05)):
            true = ((np.arange(len(tracks)) / FPS - late + 0.5 * side) % 1.0) < 0.5
            assert (
                np.mean(true == standing[:, side, part]) > 0.93
            )  # the edges, where feet are slow and low, belong to both
            assert abs(len(runs(standing[:, side, part])) - len(runs(true))) <= 1


def test_noise_does_not_break_contacts_apart() -> None:
    tracks = stepping()
    noisy = tracks + 0.002 * np.random.default_rng(0).standard_normal(tracks.shape)
    allowed = np.ones(tracks.shape[:3], dtype=bool)
    for side in range(2):
        clean, rough = (runs(footfalls(t, allowed, FPS)[:, side, 1]) for t in (tracks, noisy))
        assert len(clean) == len(rough)


def standing_clip(character: Character, frames: int = 61, *, slide: float = 0.15, raised: float = 0.0) -> MotionClip:
    """Someone with slightly bent knees who slides along as a whole."""
    angles = np.zeros((frames, len(character.hinges)))
    for side in ("left", "right"):
        for hinge, value in (("thigh.flexion", 0.25), ("shank.flexion", 0.5), ("foot.dorsiflexion", 0.25)):
            angles[:, character.hinge_names.index(f"{side}_{hinge}")] = value
    root = np.zeros((frames, 3))
    root[:, 0] = slide * np.arange(frames) / FPS
    turned = np.tile(rotations.IDENTITY_QUATERNION, (frames, 1))
    lowest = np.min(lowest_points(character, *segment_frames(character, root[:1], turned[:1], angles[:1])))
    root[:, 2] = raised - lowest
    return MotionClip("standing", FPS, root, turned, angles)


def test_planting_holds_feet_and_leaves_the_trunk(character: Character) -> None:
    clip = standing_clip(character)
    standing = np.ones((len(clip), 2, 2), dtype=bool)
    before = measured(character, (clip.root_position, clip.root_orientation, clip.angles), standing, FPS)
    planted = plant(clip, character, standing)
    after = measured(character, planted, standing, FPS)
    assert before.slide_cm_s == pytest.approx(15.0)
    assert after.slide_cm_s is not None
    assert after.slide_cm_s < 0.1
    assert after.height_mm is not None
    assert after.height_mm < 0.5
    np.testing.assert_array_equal(planted[1], clip.root_orientation)
    np.testing.assert_array_equal(planted[0][:, :2], clip.root_position[:, :2])
    arms = [i for i, name in enumerate(character.hinge_names) if "arm" in name or "hand" in name]
    np.testing.assert_array_equal(planted[2][:, arms], clip.angles[:, arms])


def test_a_skating_walk_is_planted_without_popping(character: Character) -> None:
    """Steps of 90 % of the legs' length: planted, hinges turn no more abruptly than twice as much as before."""
    walk = stilts(character)
    skates = replace(walk, root_position=walk.root_position * np.array([0.9, 1.0, 1.0]))
    standing = body_footfalls(walk, character)
    before = measured(character, (skates.root_position, skates.root_orientation, skates.angles), standing, FPS)
    planted = plant(skates, character, standing)
    after = measured(character, planted, standing, FPS)
    assert before.slide_cm_s == pytest.approx(10.0 * SPEED_M_S, rel=0.1)
    assert after.slide_cm_s is not None
    assert after.slide_cm_s < 0.5
    was, now = (np.abs(np.diff(angles, 2, axis=0)) * FPS**2 for angles in (skates.angles, planted[2]))
    legs = [i for i, name in enumerate(character.hinge_names) if "thigh" in name or "shank" in name]
    assert np.percentile(now[:, legs], 99.5) < 2.0 * np.percentile(was[:, legs], 99.5)


def test_planting_what_is_planted_changes_nothing(character: Character) -> None:
    walk = stilts(character)
    standing = body_footfalls(walk, character)
    once = plant(walk, character, standing)
    again = plant(replace(walk, root_position=once[0], root_orientation=once[1], angles=once[2]), character, standing)
    np.testing.assert_allclose(again[2], once[2], atol=5e-3)
    np.testing.assert_allclose(again[0], once[0], atol=1e-3)


def two_contacts(character: Character) -> tuple[MotionClip, Masks, int]:
    """Feet that stand, hover for a while, and stand again; and the column of the angle that a bad planter throws about."""
    clip = standing_clip(character, slide=0.05)
    standing = np.ones((len(clip), 2, 2), dtype=bool)
    standing[25:35] = False
    return clip, standing, character.hinge_names.index("right_thigh.flexion")


def test_a_contact_that_planting_makes_worse_is_left_and_told(
    character: Character, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planter that throws the right foot about wherever it stands late in the clip."""
    clip, standing, column = two_contacts(character)

    def throws(clip: MotionClip, character: Character, held: Masks) -> State:
        angles = clip.angles.copy()
        angles[::2, column] += 0.2 * held[::2, 1, 0] * (np.arange(len(clip)) >= 35)[::2]
        return clip.root_position, clip.root_orientation, angles

    monkeypatch.setattr(planting_check, "plant", throws)
    state, warnings = planting_check.planted_or_left(clip, character, standing)
    np.testing.assert_array_equal(state[2], clip.angles)
    (warning,) = warnings
    assert "the right foot was left as it was from 0.58 to 1.00 s: planted, it would slide 5 →" in warning
    monkeypatch.setattr(planting_check, "plant", lambda clip, character, _: throws(clip, character, standing))
    state, (warning,) = planting_check.planted_or_left(clip, character, standing)
    np.testing.assert_array_equal(state[2], clip.angles)
    assert "could not be planted" in warning


def test_a_foot_that_stays_worse_without_a_contact_is_let_go(
    character: Character, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planter for whom any contact of the right foot spoils the late one."""
    clip, standing, column = two_contacts(character)

    def throws(clip: MotionClip, character: Character, held: Masks) -> State:
        angles = clip.angles.copy()
        angles[36::2, column] += 0.2 * np.any(held[:, 1])
        return clip.root_position, clip.root_orientation, angles

    monkeypatch.setattr(planting_check, "plant", throws)
    state, warnings = planting_check.planted_or_left(clip, character, standing)
    np.testing.assert_array_equal(state[2], clip.angles)
    assert any("the right foot was not planted at all" in warning for warning in warnings)
    assert not any("left foot" in warning for warning in warnings)


def test_the_pelvis_comes_down_where_legs_do_not_reach(character: Character) -> None:
    clip = standing_clip(character, slide=0.0, raised=0.05)
    straight = MotionClip(
        "straight", FPS, clip.root_position + np.array([0.0, 0.0, 0.06]), clip.root_orientation, 0.0 * clip.angles
    )
    standing = np.ones((len(clip), 2, 2), dtype=bool)
    standing[:20] = standing[41:] = False
    position, _, angles = plant(straight, character, standing)
    down = straight.root_position[:, 2] - position[:, 2]
    assert 0.02 < np.max(down) <= 0.06 + 1e-9
    assert np.max(np.abs(np.diff(down, 2))) * FPS**2 < 20.0
    assert np.all(angles >= character.lower_limits)
    assert np.all(angles <= character.upper_limits)


def test_toes_bend_where_the_ground_is(character: Character) -> None:
    clip = standing_clip(character, 30)
    pitch = np.linspace(0.0, 1.0, 30)
    angles = clip.angles.copy()
    column = character.hinge_names.index("left_foot.dorsiflexion")
    angles[:, column] -= pitch  # heels up, about the ankle
    positions, orientations = segment_frames(character, clip.root_position, clip.root_orientation, angles)
    foot = np.min(lowest_points(character, positions, orientations)[:, [character.segment_index("left_foot")]], axis=1)
    root = clip.root_position - foot[:, None] * [0.0, 0.0, 1.0]
    bent = bent_toes(character, (root, clip.root_orientation, angles))
    heights = lowest_points(character, *segment_frames(character, root, clip.root_orientation, bent))
    toes = character.segment_index("left_toes")
    assert np.min(heights[:, toes]) > -0.004
    extension = bent[:, character.hinge_names.index("left_toes.extension")]
    np.testing.assert_allclose(extension, pitch, atol=0.1)
    others = [i for i, name in enumerate(character.hinge_names) if "toes" not in name]
    np.testing.assert_array_equal(bent[:, others], angles[:, others])


def file_or_skip(name: str) -> Path:
    file = path_of(name)
    if file is None:
        pytest.skip(f"{name} is absent: of the shared data beside the project, or of pybullet's")
    return file


FILES = [
    "walk_games105_m_yup",
    "walk_mixamo_3ch_colon_names",
    "run_games105_m_yup",
    "humanoid3d_walk",
    "humanoid3d_run",
    "humanoid3d_cartwheel",
]


@pytest.fixture(scope="module", params=FILES)
def loaded(request: pytest.FixtureRequest, character: Character) -> LoadedMotion:
    return load_motion(file_or_skip(request.param), character)


def test_feet_of_files_are_clean_afterwards(loaded: LoadedMotion, character: Character) -> None:
    before, after = loaded.feet.before, loaded.feet.after
    assert before.slide_cm_s is not None
    assert after.slide_cm_s is not None
    assert after.height_mm is not None
    assert after.slide_cm_s < 1.0 < before.slide_cm_s
    assert after.height_mm < 2.0
    assert all(len(spans) > 0 for spans in loaded.feet.contacts)
    assert all(0.0 <= a <= b <= loaded.clip.duration_s for spans in loaded.feet.contacts for a, b in spans)
    assert np.all(loaded.clip.angles >= character.lower_limits)
    assert np.all(loaded.clip.angles <= character.upper_limits)
    assert np.max(np.abs(velocities(loaded.clip).joints)) < 30.0


@pytest.mark.parametrize("seconds", [None, (2.0, 2.5), (1.7, 2.3)])
def test_a_recording_whose_markers_jump_is_planted(seconds: tuple[float, float] | None, character: Character) -> None:
    """Malleoli of OpenSim's walk jump by up to 3 cm between frames of 4 ms."""
    file = Path(__file__).parents[3] / "shared" / "data" / "c3d" / "opensim_walking2.c3d"
    if not file.is_file():
        pytest.skip("the test data folder ../shared/data/c3d is absent")
    motion = load_motion(file, character, time_range=seconds)
    before, after = motion.feet.before, motion.feet.after
    assert before.slide_cm_s is not None
    assert after.slide_cm_s is not None
    assert before.height_mm is not None
    assert after.height_mm is not None
    assert after.slide_cm_s < 0.25 * before.slide_cm_s
    assert after.height_mm < 0.5 * before.height_mm
    inversion = [i for i, name in enumerate(character.hinge_names) if name.endswith("foot.inversion")]
    limits = np.array([character.lower_limits[inversion], character.upper_limits[inversion]])
    at_limit = np.any(np.abs(motion.clip.angles[:, None, inversion] - limits) < 1e-6, axis=1)
    assert np.mean(at_limit) < 0.03


def test_a_loops_feet_stand_across_its_seam(character: Character) -> None:
    """The walk's right foot, which comes down as the period ends, ends where the next one has it; in the file it is 8 cm off."""
    clip = load_motion(file_or_skip("humanoid3d_walk"), character).clip
    ends = clip_points(character, clip)[[0, -1]] - clip.root_position[[0, -1], None] * [1.0, 1.0, 0.0]
    foot = [point.name for point in character.evaluation_points].index("right_ankle")
    assert np.linalg.norm(ends[1, foot] - ends[0, foot]) < 0.03


@pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")
def test_who_crawls_keeps_the_feet_as_they_were(character: Character) -> None:
    motion = load_motion("humanoid3d_crawl", character)
    assert motion.feet.contacts == ((), ())
    assert motion.feet.after.slide_cm_s is None
    lowest = np.min(lowest_points(character, *clip_frames(character, motion.clip)), axis=1)
    assert np.min(lowest) > -0.025
