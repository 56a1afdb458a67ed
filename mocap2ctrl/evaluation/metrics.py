"""Joint error and falls, as DESIGN's "honest numbers" defines them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import evaluation_points, lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.evaluation.replay import Replay
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


@dataclass(frozen=True)
class Evaluation:
    """How well a controller performs its reference.

    Attributes:
        joint_error_cm: mean distance over 15 joints and all frames, no alignment, frames after a fall included.
        root_aligned_error_cm: the same with the pelvises laid over each other.
        source_error_cm: against the source's own skeleton instead of the retargeted reference; None without one.
        fell: whether it fell, up to one second past the end, or up to the end for clips that stop in mid-stride.
        fell_at_s: when; None if it did not.
        frames: of the reference that were compared.
    """

    joint_error_cm: float
    root_aligned_error_cm: float
    source_error_cm: float | None
    fell: bool
    fell_at_s: float | None
    frames: int


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
    positions, orientations = segment_frames(character, dense.root_position, dense.root_orientation, dense.angles)
    points = evaluation_points(character, positions, orientations)
    frames = min(len(points), len(replay.points))
    missing = len(points) - frames
    errors = joint_error(replay.points[:frames], points[:frames])
    aligned = joint_error(replay.points[:frames] - replay.points[:frames, :1], points[:frames] - points[:frames, :1])
    fell_at = fall_time(character, replay, dense)
    return Evaluation(
        joint_error_cm=_with_missing(errors, missing),
        root_aligned_error_cm=_with_missing(aligned, missing),
        source_error_cm=None if source_points is None else _source_error(replay, reference, source_points),
        fell=fell_at is not None,
        fell_at_s=fell_at,
        frames=len(points),
    )


def error_over_time(character: Character, replay: Replay, reference: MotionClip) -> Array:
    """(T, E) joint error in cm at the replay's frames, up to the reference's end."""
    dense = resample(reference, replay.clip.fps)
    frames = segment_frames(character, dense.root_position, dense.root_orientation, dense.angles)
    points = evaluation_points(character, *frames)
    count = min(len(points), len(replay.points))
    return joint_error(replay.points[:count], points[:count])


def fall_time(
    character: Character, replay: Replay, reference: MotionClip, seconds: float | None = None
) -> float | None:
    """Seconds until the fall, or None, judged up to `seconds` (`judged_seconds` of the reference if not given).

    `reference` is sampled at the replay's rate; past its end its last frame holds.
    """
    fps = replay.clip.fps
    limit = round((judged_seconds(reference) if seconds is None else seconds) * fps) + 1
    count = min(len(replay.clip), limit)
    index = np.minimum(np.arange(count), len(reference) - 1)
    frames = segment_frames(character, reference.root_position, reference.root_orientation, reference.angles)
    watched = [character.segment_index(name) for name in FALL_SEGMENTS if name in character.segment_names]
    clear = lowest_points(character, *frames)[:, watched] > REFERENCE_CLEAR_M
    touching = lowest_points(character, replay.positions[:count], replay.orientations[:count])[:, watched] < TOUCH_M
    touched = np.any(touching & _clear_nearby(clear, round(0.2 * fps))[index], axis=1)
    low = replay.clip.root_position[:count, 2] < LOW_FRACTION * reference.root_position[index, 2]
    lying = _runs_of(low, max(1, round(LOW_S * fps)))
    fallen = np.flatnonzero(touched | lying)
    if len(fallen):
        return float(fallen[0] / fps)
    return float(count / fps) if replay.diverged and len(replay.clip) < limit else None


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


def _source_error(replay: Replay, reference: MotionClip, source_points: Array) -> float:
    rows = np.round(np.arange(len(source_points)) / reference.fps * replay.clip.fps).astype(int)
    seen = rows < len(replay.points)
    return float(np.nanmean(joint_error(replay.points[rows[seen]], source_points[seen])))
