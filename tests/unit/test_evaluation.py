"""Joint error and falls on replays made by hand: nothing here simulates, so every number has a closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import evaluation_points, lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.evaluation.metrics import error_over_time, evaluate_replay, fall_time, judged_seconds
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.types import Array, MotionClip

FPS = 120.0


def standing_clip(character: Character, seconds: float, *, fps: float = FPS, ends_standing: bool = False) -> MotionClip:
    frames = round(seconds * fps) + 1
    pose = character.zero_pose()
    return MotionClip(
        "standing",
        fps,
        np.tile(pose.root_position, (frames, 1)),
        np.tile(pose.root_orientation, (frames, 1)),
        np.tile(pose.angles, (frames, 1)),
        ends_standing=ends_standing,
    )


def swaying_clip(character: Character, seconds: float, *, fps: float = FPS) -> MotionClip:
    """Moves every joint a little, so that wrong frames show."""
    clip = standing_clip(character, seconds, fps=fps)
    phase = np.arange(len(clip)) / fps * 5.0
    angles = 0.1 + 0.1 * np.sin(phase)[:, None] * np.linspace(0.5, 1.0, clip.angles.shape[1])
    travel = clip.root_position + np.outer(phase, [0.1, 0.02, 0.0])
    return replace(clip, root_position=travel, angles=angles)


def replay_of(character: Character, clip: MotionClip, *, diverged: bool = False) -> Replay:
    positions, orientations = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    frames = len(clip)
    return Replay(
        clip=clip,
        points=evaluation_points(character, positions, orientations),
        positions=positions,
        orientations=orientations,
        contacts=np.ones((frames, 2), dtype=bool),
        state=np.zeros(frames, dtype=np.int64),
        torques=np.zeros((frames - 1, clip.angles.shape[1])),
        steps_per_frame=1,
        diverged=diverged,
    )


def moved(replay: Replay, displacement: tuple[float, float, float]) -> Replay:
    d = np.array(displacement)
    return replace(
        replay,
        clip=replace(replay.clip, root_position=replay.clip.root_position + d),
        points=replay.points + d,
        positions=replay.positions + d,
    )


def with_low_segment(
    character: Character, replay: Replay, name: str, begin_s: float, end_s: float | None = None
) -> Replay:
    """`name` touches the ground from `begin_s` on."""
    index = character.segment_index(name)
    rows = slice(round(begin_s * FPS), None if end_s is None else round(end_s * FPS))
    positions = replay.positions.copy()
    positions[rows, index, 2] -= lowest_points(character, replay.positions, replay.orientations)[rows, index]
    return replace(replay, positions=positions)


def with_root_height(replay: Replay, fraction: float, begin_s: float, seconds: float) -> Replay:
    """The root's recorded height is scaled for `seconds`; nothing touches."""
    root = replay.clip.root_position.copy()
    first = round(begin_s * FPS)
    root[first : first + round(seconds * FPS), 2] *= fraction
    return replace(replay, clip=replace(replay.clip, root_position=root))


def test_the_reference_itself_has_no_error(character: Character) -> None:
    clip = swaying_clip(character, 0.5)
    result = evaluate_replay(character, replay_of(character, clip), clip)
    assert result.joint_error_cm == pytest.approx(0.0, abs=1e-9)
    assert result.root_aligned_error_cm == pytest.approx(0.0, abs=1e-9)
    assert (result.fell, result.fell_at_s, result.frames, result.source_error_cm) == (False, None, 61, None)


@pytest.mark.parametrize("displacement", [(0.03, 0.04, 0.0), (0.0, 0.0, 0.1)])
def test_a_displaced_replay_is_off_by_its_distance_and_root_alignment_removes_it(
    character: Character, displacement: tuple[float, float, float]
) -> None:
    clip = swaying_clip(character, 0.5)
    result = evaluate_replay(character, moved(replay_of(character, clip), displacement), clip)
    assert result.joint_error_cm == pytest.approx(100 * np.linalg.norm(displacement))
    assert result.root_aligned_error_cm == pytest.approx(0.0, abs=1e-9)


def test_root_alignment_keeps_what_the_limbs_do(character: Character) -> None:
    """One of 15 points 30 cm off is 2 cm on average, aligned or not."""
    clip = swaying_clip(character, 0.5)
    replay = replay_of(character, clip)
    points = replay.points.copy()
    points[:, 7] += np.array([0.0, 0.3, 0.0])
    result = evaluate_replay(character, replace(replay, points=points), clip)
    assert len(character.evaluation_points) == 15
    assert result.joint_error_cm == pytest.approx(2.0)
    assert result.root_aligned_error_cm == pytest.approx(2.0)


def test_root_alignment_is_at_the_pelvis(character: Character) -> None:
    assert character.evaluation_points[0].name == "pelvis"


def test_error_is_taken_at_the_same_times_whatever_the_reference_s_rate(character: Character) -> None:
    slow, fast = swaying_clip(character, 0.5, fps=30.0), swaying_clip(character, 0.5)
    result = evaluate_replay(character, replay_of(character, fast), slow)
    assert result.frames == 61
    assert result.joint_error_cm < 0.05


def test_frames_past_the_reference_do_not_count(character: Character) -> None:
    clip = swaying_clip(character, 0.5)
    longer = swaying_clip(character, 1.0)
    replay = replay_of(character, longer)
    points = replay.points.copy()
    points[61:] += 5.0
    result = evaluate_replay(character, replace(replay, points=points), clip)
    assert result.joint_error_cm == pytest.approx(0.0, abs=1e-9)
    assert error_over_time(character, replay, clip).shape == (61, 15)


def test_frames_after_a_fall_count(character: Character) -> None:
    clip = swaying_clip(character, 1.0)
    replay = replay_of(character, clip)
    points = replay.points.copy()
    points[60:, :, 2] -= 0.5
    fallen = with_low_segment(character, replace(replay, points=points), "head", 0.5)
    result = evaluate_replay(character, fallen, clip)
    assert result.fell_at_s == pytest.approx(0.5)
    assert result.joint_error_cm == pytest.approx(50.0 * 61 / 121)


def test_frames_that_a_divergence_took_count_a_metre_each(character: Character) -> None:
    clip = swaying_clip(character, 1.0)
    result = evaluate_replay(character, replay_of(character, clip.cut(0, 41), diverged=True), clip)
    assert result.frames == 121
    assert result.joint_error_cm == pytest.approx(100.0 * 80 / 121)
    assert result.root_aligned_error_cm == pytest.approx(100.0 * 80 / 121)
    assert result.fell
    assert result.fell_at_s == pytest.approx(41 / FPS)


def test_source_error_leaves_out_what_the_source_does_not_have(character: Character) -> None:
    clip = swaying_clip(character, 0.5, fps=30.0)
    points = evaluation_points(
        character, *segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    )
    source = points + np.array([0.0, 0.06, 0.08])
    source[:, 3] = np.nan
    result = evaluate_replay(character, replay_of(character, swaying_clip(character, 0.5)), clip, source)
    assert result.source_error_cm == pytest.approx(10.0)
    assert result.joint_error_cm < 0.05


@pytest.mark.parametrize("segment", ["pelvis", "abdomen", "chest", "head", "left_hand", "right_hand"])
def test_touching_the_ground_where_the_reference_does_not_is_a_fall(character: Character, segment: str) -> None:
    clip = standing_clip(character, 1.0)
    replay = with_low_segment(character, replay_of(character, clip), segment, 0.4)
    assert fall_time(character, replay, clip) == pytest.approx(0.4)


@pytest.mark.parametrize("segment", ["left_foot", "right_toes", "left_shank", "right_forearm"])
def test_feet_knees_and_forearms_may_touch(character: Character, segment: str) -> None:
    clip = standing_clip(character, 1.0)
    replay = with_low_segment(character, replay_of(character, clip), segment, 0.4)
    assert fall_time(character, replay, clip) is None


def reaching_down(character: Character, begin_s: float) -> MotionClip:
    """From `begin_s` on so low that both hands are at the ground; pelvis, torso and head stay clear."""
    clip = standing_clip(character, 1.0)
    hand = character.segment_index("left_hand")
    heights = lowest_points(character, *segment_frames(character, *_pose(clip)))
    root = clip.root_position.copy()
    root[round(begin_s * FPS) :, 2] -= heights[hand]
    return replace(clip, root_position=root)


def _pose(clip: MotionClip) -> tuple[Array, Array, Array]:
    return clip.root_position[0], clip.root_orientation[0], clip.angles[0]


def test_hands_may_touch_where_the_reference_s_do_or_a_little_early(character: Character) -> None:
    """A hand that lands up to 0.2 s early is no fall; earlier, or another segment, is."""
    reference = reaching_down(character, 0.6)
    upright = replay_of(character, standing_clip(character, 1.0))
    for begin_s, fell in ((0.7, None), (0.45, None), (0.35, 0.35)):
        replay = with_low_segment(character, upright, "left_hand", begin_s)
        assert fall_time(character, replay, reference) == (None if fell is None else pytest.approx(fell))
    head = with_low_segment(character, upright, "head", 0.7)
    assert fall_time(character, head, reference) == pytest.approx(0.7)


def test_lying_is_a_fall_after_three_tenths_of_a_second(character: Character) -> None:
    clip = standing_clip(character, 1.5)
    replay = replay_of(character, clip)
    assert fall_time(character, with_root_height(replay, 0.59, 0.5, 0.29), clip) is None
    assert fall_time(character, with_root_height(replay, 0.61, 0.5, 0.9), clip) is None
    fell_at = fall_time(character, with_root_height(replay, 0.59, 0.5, 0.32), clip)
    assert fell_at == pytest.approx(0.8, abs=1.5 / FPS)


def test_two_short_dips_are_no_fall(character: Character) -> None:
    clip = standing_clip(character, 1.5)
    replay = with_root_height(replay_of(character, clip), 0.5, 0.3, 0.2)
    assert fall_time(character, with_root_height(replay, 0.5, 0.6, 0.2), clip) is None


@pytest.mark.parametrize(
    ("ends_standing", "begin_s", "fell_at"),
    [(True, 0.8, 0.8), (True, 1.9, 1.9), (True, 2.1, None), (False, 0.8, 0.8), (False, 1.1, None)],
)
def test_only_clips_that_end_standing_are_judged_past_their_end(
    character: Character, ends_standing: bool, begin_s: float, fell_at: float | None
) -> None:
    """A clip of one second; the replay goes on for longer than anybody judges."""
    clip = standing_clip(character, 1.0, ends_standing=ends_standing)
    assert judged_seconds(clip) == pytest.approx(2.0 if ends_standing else 1.0)
    replay = with_low_segment(character, replay_of(character, standing_clip(character, 2.5)), "chest", begin_s)
    result = evaluate_replay(character, replay, clip)
    assert result.fell_at_s == (None if fell_at is None else pytest.approx(fell_at))
    assert result.fell is (fell_at is not None)


def test_past_the_end_the_last_pose_is_the_reference(character: Character) -> None:
    """Lying down at the end of a clip that ends lying is no fall; falling to 60 % of a standing end is."""
    low = replace(
        standing_clip(character, 1.0, ends_standing=True),
        root_position=standing_clip(character, 1.0).root_position * 0.5,
    )
    lying = with_root_height(replay_of(character, standing_clip(character, 2.0)), 0.5, 0.0, 2.1)
    assert fall_time(character, lying, low) is None
    assert fall_time(character, lying, standing_clip(character, 1.0, ends_standing=True)) == pytest.approx(
        0.3, abs=1.5 / FPS
    )


def test_a_divergence_after_what_is_judged_is_no_fall(character: Character) -> None:
    clip = standing_clip(character, 1.0)
    replay = replay_of(character, standing_clip(character, 1.05), diverged=True)
    assert fall_time(character, replay, clip) is None


def test_a_longer_time_can_be_asked_for(character: Character) -> None:
    clip = standing_clip(character, 1.0)
    replay = with_low_segment(character, replay_of(character, standing_clip(character, 2.5)), "head", 2.0)
    assert fall_time(character, replay, clip) is None
    assert fall_time(character, replay, clip, 2.2) == pytest.approx(2.0)


def test_frame_torques_keep_the_largest_of_each_frame_with_its_sign(character: Character) -> None:
    replay = replay_of(character, standing_clip(character, 0.05))
    joints = replay.clip.angles.shape[1]
    torques = np.zeros((12, joints))
    torques[:, 0] = [1, -5, 2, 0, 7, -6, 0, 0, 0, -1, 3, -4]
    clip = standing_clip(character, 0.05, fps=60.0)
    frames = replace(replay, clip=clip, torques=torques[:6], steps_per_frame=2).frame_torques
    assert frames.shape == (4, joints)
    np.testing.assert_array_equal(frames[:, 0], [-5, 2, 7, 0])


def test_states_are_counted_as_often_as_they_are_entered_until_the_clip_ends(character: Character) -> None:
    replay = replay_of(character, standing_clip(character, 0.05))
    cycle = replace(replay, state=np.array([0, 0, 1, 2, 1, 2, 2]))
    assert cycle.states_entered(0.05) == 5
    assert cycle.states_entered(2.0 / FPS) == 2
    assert replay.states_entered(0.05) == 1
