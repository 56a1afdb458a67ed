"""Joint error and falls, as DESIGN's "honest numbers" defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames, clip_points, lowest_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.evaluation.surroundings import clearances_in, root_heights_in
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.objective.target import joint_error
from mocap2ctrl.types import Array, MotionClip

FALL_SEGMENTS = ("pelvis", "abdomen", "chest", "head", "left_hand", "right_hand")
TOUCH_M = 0.005
"""A surface point lower than this touches the ground."""

REFERENCE_CLEAR_M = 0.05
"""A segment whose reference stays higher than this does not touch in the reference."""

LOW_FRACTION, LOW_S = 0.6, 0.3
DIVERGED_ERROR_CM = 100.0
"""Joint error of a frame that a diverged simulation never reached."""

Ground = Literal["reference", "never", "anywhere"]
"""Where pelvis, trunk, head and hands may touch the ground: where the reference's do, nowhere, or wherever they like."""


@dataclass(frozen=True)
class Evaluation:
    """How well a controller performs its reference.

    Attributes:
        joint_error_cm: mean distance over 15 joints and all frames, no alignment, frames after a fall included; None for a
            video's capture without a reference, for the track is no truth.
        root_aligned_error_cm: the same with the pelvises laid over each other.
        source_error_cm: against the source's own skeleton instead of the retargeted reference; None without one.
        fell: whether it fell, up to one second past the end, or up to the end for clips that stop in mid-stride.
        fell_at_s: when; None if it did not.
        frames: of the reference that were compared.
        silhouette_iou: mean intersection over union of the simulated body and the silhouettes; None for motion capture.
        track_silhouette_iou: the same of the track.
        track_error_cm: joint error against the track.
        track_joint_error_cm, track_root_aligned_error_cm, track_source_error_cm: the track's own errors against the reference:
            what seeing loses; what simulating loses is the rest.
        keypoint_error_px, track_keypoint_error_px: mean reprojection error of a video's keypoints, in its pixels, of the controller
            and of the track; None without keypoints.
    """

    joint_error_cm: float | None
    root_aligned_error_cm: float | None
    source_error_cm: float | None
    fell: bool
    fell_at_s: float | None
    frames: int
    silhouette_iou: float | None = None
    track_silhouette_iou: float | None = None
    track_error_cm: float | None = None
    track_joint_error_cm: float | None = None
    track_root_aligned_error_cm: float | None = None
    track_source_error_cm: float | None = None
    keypoint_error_px: float | None = None
    track_keypoint_error_px: float | None = None


def verdict(evaluation: Evaluation) -> str:
    """An evaluation in a few words: error, against the track where no motion is known, and fall."""
    error, against = evaluation.joint_error_cm, ""
    if error is None:
        error, against = evaluation.track_error_cm, " from the track"
    fell = "no fall" if evaluation.fell_at_s is None else f"fell at {evaluation.fell_at_s:.2f} s"
    return fell if error is None else f"{error:.1f} cm{against}, {fell}"


def judged_seconds(reference: MotionClip) -> float:
    """How long a controller is judged: one second past the end, or to the end for clips that stop in mid-stride."""
    return reference.duration_s + (1.0 if reference.ends_standing else 0.0)


def evaluate_replay(
    character: Character, replay: Replay, reference: MotionClip, source_points: Array | None = None
) -> Evaluation:
    """Compares a replay with its reference, frame by frame at the replay's rate.

    Args:
        character: the body.
        replay: from time 0, long enough for `judged_seconds`.
        reference: retargeted motion.
        source_points: (T, E, 3) of the source's skeleton at the reference's frames, NaN where it has no such joint.
    """
    dense = resample(reference, replay.clip.fps)
    points = clip_points(character, dense)
    error, aligned = mean_errors(replay.points, points)
    fell_at = fall_time(character, replay, dense)
    return Evaluation(
        joint_error_cm=error,
        root_aligned_error_cm=aligned,
        source_error_cm=(
            None
            if source_points is None
            else source_error(replay.points, replay.clip.fps, source_points, reference.fps)
        ),
        fell=fell_at is not None,
        fell_at_s=fell_at,
        frames=len(points),
    )


def mean_errors(points: Array, reference: Array) -> tuple[float, float]:
    """Joint error and root-aligned error in cm of points (N, E, 3) against (T, E, 3) of the same times; missing frames count."""
    frames = min(len(points), len(reference))
    ours, theirs = points[:frames], reference[:frames]
    missing = len(reference) - frames
    errors = joint_error(ours, theirs)
    aligned = joint_error(ours - ours[:, :1], theirs - theirs[:, :1])
    return _with_missing(errors, missing), _with_missing(aligned, missing)


def error_over_time(character: Character, replay: Replay, reference: MotionClip) -> Array:
    """(T, E) joint error in cm at the replay's frames, up to the reference's end."""
    dense = resample(reference, replay.clip.fps)
    points = clip_points(character, dense)
    count = min(len(points), len(replay.points))
    return joint_error(replay.points[:count], points[:count])


def fall_time(
    character: Character,
    replay: Replay,
    reference: MotionClip,
    seconds: float | None = None,
    *,
    ground: Ground = "reference",
    reference_character: Character | None = None,
) -> float | None:
    """Seconds until the fall, or None, judged up to `seconds` (`judged_seconds` of the reference if not given).

    `reference` is sampled at the replay's rate; past its end its last frame holds. It is a motion of `reference_character`, or
    of `character` if not given.
    """
    fps = replay.clip.fps
    limit = round((judged_seconds(reference) if seconds is None else seconds) * fps) + 1
    count = min(len(replay.clip), limit)
    index = np.minimum(np.arange(count), len(reference) - 1)
    watched = [character.segment_index(name) for name in FALL_SEGMENTS if name in character.segment_names]
    where, times = replay.environment, np.arange(count) / fps
    frames = replay.positions[:count], replay.orientations[:count]
    touching = clearances_in(where, character, *frames, times)[:, watched] < TOUCH_M
    clear = _must_be_clear(reference_character or character, reference, watched, ground)
    touched = np.any(touching & _clear_nearby(clear, round(0.2 * fps))[index], axis=1)
    low = (
        root_heights_in(where, replay.clip.root_position[:count], times)
        < LOW_FRACTION * reference.root_position[index, 2]
    )
    lying = _runs_of(low, max(1, round(LOW_S * fps)))
    fallen = np.flatnonzero(touched | lying)
    if len(fallen):
        return float(fallen[0] / fps)
    return float(count / fps) if replay.diverged and len(replay.clip) < limit else None


def _must_be_clear(character: Character, reference: MotionClip, watched: list[int], ground: Ground) -> np.ndarray:
    """(T, K) whether a watched segment touching the ground at a frame of the reference is a fall."""
    if ground != "reference":
        return np.full((len(reference), len(watched)), ground == "never")
    frames = clip_frames(character, reference)
    return np.asarray(lowest_points(character, *frames)[:, watched] > REFERENCE_CLEAR_M)


def _clear_nearby(clear: np.ndarray, frames: int) -> np.ndarray:
    """(T, K) whether a segment stays clear within `frames` before and after: a hand that lands a little early is no fall."""
    padded = np.pad(clear, ((frames, frames), (0, 0)), constant_values=True)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * frames + 1, axis=0)
    return np.asarray(windows.all(axis=-1))


def _runs_of(flags: np.ndarray, length: int) -> np.ndarray:
    """(T,) True where `flags` has been True for `length` frames."""
    count = np.zeros(len(flags), dtype=int)
    for t, flag in enumerate(flags):
        count[t] = (count[t - 1] if t else 0) + 1 if flag else 0
    return np.asarray(count >= length)


def _with_missing(errors: Array, missing: int) -> float:
    total = float(errors.mean(axis=1).sum()) + missing * DIVERGED_ERROR_CM
    return total / (len(errors) + missing)


def source_error(points: Array, fps: float, source_points: Array, source_fps: float) -> float | None:
    """Joint error in cm of points (N, E, 3) at `fps` against those of a source's skeleton, NaN where it has no such joint."""
    rows = np.round(np.arange(len(source_points)) / source_fps * fps).astype(int)
    seen = rows < len(points)
    errors = joint_error(points[rows[seen]], source_points[seen])
    return float(np.nanmean(errors)) if np.isfinite(errors).any() else None
