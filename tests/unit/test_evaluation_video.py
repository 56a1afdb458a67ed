"""The numbers of a video's capture on motions made by hand: overlaps, falls, errors against a reference, each in closed form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_fit import needs_walk
from tiny_video import replay_of, silhouettes_of, tiny_config, true_track

from mocap2ctrl.character.kinematics import clip_points, lowest_points, segment_frames
from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.evaluation.metrics import DIVERGED_ERROR_CM
from mocap2ctrl.evaluation.reference import Reference, load_reference
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.evaluation.silhouettes import model_masks, overlaps, silhouette_iou
from mocap2ctrl.evaluation.video import evaluate_video, ground_rule, video_judged_seconds, video_part, video_warnings
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.fit.video import video_capture
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.npz import write_motion
from mocap2ctrl.types import Array, MotionClip

SECONDS, FPS = 0.6, 120.0


def sliding_clip(character: Character, fps: float = FPS, seconds: float = SECONDS) -> MotionClip:
    """Upright, moving along x at 1 m/s: exact at any rate."""
    pose = character.zero_pose()
    frames = int(np.floor(seconds * fps + 1e-9)) + 1
    position = np.tile(pose.root_position, (frames, 1))
    position[:, 0] += np.arange(frames) / fps - 0.3
    orientation = np.tile(pose.root_orientation, (frames, 1))
    return MotionClip("slide", fps, position, orientation, np.tile(pose.angles, (frames, 1)))


def moved(clip: MotionClip, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> MotionClip:
    return replace(clip, root_position=clip.root_position + np.array([x, y, z]))


def capture_of(
    character: Character, track: MotionClip, seen: MotionClip | None = None, start_s: float = 0.0, **run: Any
) -> Capture:
    """A capture whose track is `track` and whose silhouettes are those of `seen`."""
    silhouettes = silhouettes_of(character, track if seen is None else seen, start_s=start_s)
    options = {"engine": "mujoco", **run}
    return video_capture(Path("x"), silhouettes, true_track(character, track), tiny_config(), options)


@pytest.fixture(scope="module")
def capture(character: Character) -> Capture:
    return capture_of(character, sliding_clip(character, 25.0))


def test_a_perfect_simulation_covers_the_silhouettes_at_their_own_times(character: Character, capture: Capture) -> None:
    """25 silhouettes a second fall between 120 frames a second."""
    said = evaluate_video(capture, replay_of(character, sliding_clip(character)))
    assert said.silhouette_iou == pytest.approx(1.0)
    assert said.track_silhouette_iou == pytest.approx(1.0)
    assert said.track_error_cm == pytest.approx(0.0, abs=1e-9)
    assert (said.fell, said.fell_at_s, said.frames) == (False, None, 73)
    assert (
        said.joint_error_cm is said.root_aligned_error_cm is said.source_error_cm is said.track_joint_error_cm is None
    )


def test_overlap_counts_pixels() -> None:
    seen = np.zeros((4, 10, 10), bool)
    model = np.zeros((4, 10, 10), bool)
    seen[:3, 2:6, 2:6] = True
    model[0] = seen[0]
    model[1, 2:6, 4:8] = True
    model[3, 2:6, 4:8] = True
    assert overlaps(model, seen) == pytest.approx([1.0, 8 / 24, 0.0, np.nan], nan_ok=True)


def test_a_body_beside_itself_overlaps_less(character: Character, capture: Capture) -> None:
    clip = moved(sliding_clip(character), x=0.1)
    said = evaluate_video(capture, replay_of(character, clip))
    assert capture.silhouettes is not None
    masks = model_masks(character, clip, capture.girth, capture.silhouettes)
    assert said.silhouette_iou == pytest.approx(np.mean(overlaps(masks, capture.silhouettes.masks)))
    assert 0.2 < (said.silhouette_iou or 0.0) < 0.9
    assert said.track_error_cm == pytest.approx(10.0)
    assert said.track_silhouette_iou == pytest.approx(1.0)


def test_frames_without_evidence_do_not_count(character: Character, capture: Capture) -> None:
    assert capture.silhouettes is not None
    masks = np.array(capture.silhouettes.masks)
    masks[3:] = False
    seen = replace(capture.silhouettes, masks=masks)
    clip = sliding_clip(character)
    late = replace(clip, root_position=clip.root_position + np.where(np.arange(len(clip)) > 15, 1.0, 0.0)[:, None])
    assert silhouette_iou(character, late, capture.girth, seen) == pytest.approx(1.0)
    assert np.isnan(silhouette_iou(character, clip, capture.girth, replace(seen, masks=np.zeros_like(masks))))


def test_what_a_diverged_simulation_never_reached_overlaps_with_nothing(character: Character, capture: Capture) -> None:
    run = replay_of(character, sliding_clip(character).cut(0, 37), diverged=True)
    said = evaluate_video(capture, run)
    assert said.silhouette_iou == pytest.approx(8 / 16)
    assert said.track_error_cm == pytest.approx(DIVERGED_ERROR_CM * 36 / 73)
    assert said.fell_at_s == pytest.approx(37 / FPS)


def lying(character: Character, fps: float = FPS) -> MotionClip:
    """Face down for the whole time, the trunk's or head's lowest point on the ground."""
    clip = sliding_clip(character, fps)
    half = np.sqrt(0.5)
    clip = replace(clip, root_orientation=np.tile([half, 0.0, half, 0.0], (len(clip), 1)))
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    trunk = [character.segment_index(name) for name in ("pelvis", "abdomen", "chest", "head")]
    return moved(clip, z=-float(np.min(lowest_points(character, *frames)[:, trunk])))


def test_a_trunk_on_the_ground_is_a_fall_in_a_video(character: Character) -> None:
    """Even if the track lies there, which may be wrong; unless the user or a true motion says so."""
    track, run = lying(character, 30.0), replay_of(character, lying(character))
    plain = capture_of(character, track)
    assert ground_rule(plain) == "never"
    assert evaluate_video(plain, run).fell_at_s == 0.0
    allowed = capture_of(character, track, allow_ground=True)
    assert ground_rule(allowed) == "anywhere"
    assert not evaluate_video(allowed, run).fell
    truth = Reference(character, lying(character, 30.0), None)
    assert ground_rule(plain, has_reference=True) == "reference"
    assert not evaluate_video(plain, run, truth).fell
    upright = Reference(character, sliding_clip(character, 30.0), None)
    assert evaluate_video(allowed, run, upright).fell


def test_on_allowed_ground_lying_down_where_the_track_stands_is_a_fall_still(character: Character) -> None:
    """By the height of the root, after 0.3 s."""
    allowed = capture_of(character, sliding_clip(character, 30.0), allow_ground=True)
    assert evaluate_video(allowed, replay_of(character, lying(character))).fell_at_s == pytest.approx(0.3, abs=0.01)


def warned(capture: Capture, run: Replay) -> tuple[str, ...]:
    return video_warnings(capture, evaluate_video(capture, run), run)


def test_a_controller_that_loses_much_of_what_was_seen_is_told(character: Character, capture: Capture) -> None:
    assert warned(capture, replay_of(character, sliding_clip(character))) == ()
    (said,) = warned(capture, replay_of(character, moved(sliding_clip(character), x=0.15)))
    assert "covers the silhouettes much less than the track: 0." in said
    assert said.endswith("against 1.000; try --budget thorough")


def test_a_fall_that_has_begun_at_the_end_is_told(character: Character) -> None:
    """The pelvis sinks by 30 % in the last tenth of a second: no fall yet; the same earlier is none either."""
    clip = sliding_clip(character)
    height = clip.root_position[0, 2]

    def sinking(begin: int, end: int) -> Replay:
        position = np.array(clip.root_position)
        position[begin:end, 2] = 0.7 * height
        return replay_of(character, replace(clip, root_position=position))

    plain, allowed = (
        capture_of(character, sliding_clip(character, 30.0), **run) for run in ({}, {"allow_ground": True})
    )
    assert not evaluate_video(plain, sinking(61, 73)).fell
    assert any("a fall has begun at the end" in w and "70 %" in w for w in warned(plain, sinking(61, 73)))
    assert not any("fall" in w for w in warned(plain, sinking(10, 22)))
    assert not any("fall" in w for w in warned(allowed, sinking(61, 73)))


def test_errors_against_a_reference_say_what_seeing_and_what_acting_loses(character: Character) -> None:
    """The truth, a track 20 cm beside it, a simulation 10 cm beside it the other way, a performer 3 cm higher."""
    truth = sliding_clip(character, 30.0)
    capture = capture_of(character, moved(truth, y=0.2), truth)
    reference = Reference(character, truth, clip_points(character, truth) + np.array([0.0, 0.0, 0.03]))
    said = evaluate_video(capture, replay_of(character, moved(sliding_clip(character), y=-0.1)), reference)
    assert said.joint_error_cm == pytest.approx(10.0)
    assert said.root_aligned_error_cm == pytest.approx(0.0, abs=1e-9)
    assert said.source_error_cm == pytest.approx(np.hypot(10.0, 3.0))
    assert said.track_joint_error_cm == pytest.approx(20.0)
    assert said.track_root_aligned_error_cm == pytest.approx(0.0, abs=1e-9)
    assert said.track_source_error_cm == pytest.approx(np.hypot(20.0, 3.0))
    assert said.track_error_cm == pytest.approx(30.0)


def test_the_simulated_body_s_own_limbs_are_compared_with_the_standard_ones(character: Character) -> None:
    """A body of other proportions in the same pose has an error of its own; the reference stays the standard body."""
    tall = load_character(height_m=1.9)
    clip = sliding_clip(tall, 30.0)
    standard = sliding_clip(character, 30.0)
    said = evaluate_video(
        capture_of(tall, clip), replay_of(tall, sliding_clip(tall)), Reference(character, standard, None)
    )
    difference = clip_points(tall, clip)[0] - clip_points(character, standard)[0]
    assert said.joint_error_cm == pytest.approx(100.0 * np.linalg.norm(difference, axis=1).mean())


class TestReferenceFiles:
    @staticmethod
    def written(path: Path, character: Character, points: Array | None = None, **changes: Any) -> Path:
        clip = sliding_clip(character, 30.0, 2.0)
        write_motion(path, clip, character)
        with np.load(path) as data:
            arrays = {name: data[name] for name in data.files}
        if points is not None:
            arrays["points_m"] = points
        np.savez(path, **{**arrays, **changes})
        return path

    def test_a_truth_file_is_read_on_the_body_of_its_height(self, tmp_path: Path) -> None:
        short = load_character(height_m=1.6)
        clip = sliding_clip(short, 30.0, 2.0)
        path = self.written(tmp_path / "truth.npz", short, clip_points(short, clip))
        reference = load_reference(path, 1.75)
        assert reference.character.height_m == 1.6
        np.testing.assert_allclose(reference.points(30.0), clip_points(short, clip), atol=1e-12)
        assert reference.source_points is not None
        np.testing.assert_allclose(reference.source_points, clip_points(short, clip), atol=1e-12)

    def test_a_part_of_the_video_is_compared_with_that_part(self, tmp_path: Path, character: Character) -> None:
        """A capture of 0.6 s that begins between two frames of the reference, 0.52 s into the video."""
        capture = capture_of(character, sliding_clip(character, 25.0), start_s=0.52)
        assert video_part(capture) == pytest.approx((0.52, 1.12))
        clip = sliding_clip(character, 30.0, 2.0)
        path = self.written(tmp_path / "truth.npz", character, clip_points(character, clip))
        reference = load_reference(path, 1.75, video_part(capture))
        assert reference.clip.duration_s == pytest.approx(0.6)
        begin = clip.root_position[0, 0] + 0.52
        assert reference.clip.root_position[:, 0] == pytest.approx(begin + np.arange(19) / 30.0)
        assert reference.source_points is not None
        assert reference.source_points[:, 0, 0] == pytest.approx(reference.points(30.0)[:, 0, 0])
        assert video_judged_seconds(capture, reference) == pytest.approx(
            0.6 + (1.0 if reference.clip.ends_standing else 0.0)
        )

    def test_a_reference_that_begins_late_is_compared_by_its_clock(self, tmp_path: Path, character: Character) -> None:
        """Recorded from 0.3 s of the video on; the capture begins at 0.52 s, which is 0.22 s into the reference."""
        clip = sliding_clip(character, 30.0, 2.0)
        path = self.written(tmp_path / "late.npz", character, start_s=0.3)
        reference = load_reference(path, 1.75, (0.52, 1.12))
        assert reference.clip.start_s == pytest.approx(0.52)
        assert reference.clip.root_position[0, 0] == pytest.approx(clip.root_position[0, 0] + 0.22)
        with pytest.raises(MotionFileError, match=r"from 0\.30 to 2\.30 s.*begins 0\.00 s into"):
            load_reference(path, 1.75)
        assert load_reference(path, 1.75, (0.26, 1.0)).clip.start_s == pytest.approx(0.3)

    @needs_walk
    def test_a_motion_file_is_retargeted_to_the_capture_s_height(self, tmp_path: Path, character: Character) -> None:
        """A walk as BVH, without a height of its own; the same world place as in the file."""
        clip = replace(load_motion("humanoid3d_walk", character).clip, loop=False)
        write_bvh(tmp_path / "walk.bvh", clip, character)
        reference = load_reference(tmp_path / "walk.bvh", character.height_m, (0.2, 0.8))
        assert reference.character.height_m == character.height_m
        assert reference.source_points is not None
        assert len(reference.source_points) == len(reference.clip)
        expected = load_motion(tmp_path / "walk.bvh", character).clip.root_position[6:25]
        np.testing.assert_allclose(reference.clip.root_position, expected, atol=1e-9)

    def test_a_reference_that_ends_too_early_is_refused(self, tmp_path: Path, character: Character) -> None:
        path = self.written(tmp_path / "truth.npz", character)
        with pytest.raises(MotionFileError, match=r"truth\.npz: is there from 0\.00 to 2\.00 s.*1\.95 s into"):
            load_reference(path, 1.75, (1.95, 2.5))

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"points_m": np.zeros((3, 15, 3))}, "points_m"),
            ({"points_m": np.full((61, 15, 3), np.nan)}, "points_m"),
            ({"height_m": 17.5}, "height_m"),
            ({"hinge_names": np.array(["knee"])}, "joint angles"),
            ({"format": 9}, "format"),
        ],
    )
    def test_a_damaged_one_is_named(
        self, tmp_path: Path, character: Character, changes: dict[str, Any], says: str
    ) -> None:
        path = self.written(tmp_path / "truth.npz", character, **changes)
        with pytest.raises(MotionFileError, match=rf"truth\.npz.*{says}"):
            load_reference(path, 1.75)

    @pytest.mark.parametrize("content", [b"", b"PK nothing", b"text"])
    def test_what_is_no_npz_is_refused(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "truth.npz").write_bytes(content)
        with pytest.raises(MotionFileError, match=r"truth\.npz"):
            load_reference(tmp_path / "truth.npz", 1.75)
        with pytest.raises(MotionFileError, match=r"nowhere\.npz: no such file"):
            load_reference(tmp_path / "nowhere.npz", 1.75)
