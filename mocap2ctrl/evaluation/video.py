"""The numbers of a video's capture: silhouettes, falls, and errors where a reference is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.evaluation.keypoints import keypoint_error_px
from mocap2ctrl.evaluation.metrics import Evaluation, Ground, fall_time, judged_seconds, mean_errors, source_error
from mocap2ctrl.evaluation.reference import Reference, at_rate
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.evaluation.silhouettes import silhouette_iou
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.fit.config import budget
from mocap2ctrl.track.doubts import track_doubts
from mocap2ctrl.types import Array

LITTLE_OVERLAP = 0.75
"""A controller whose overlap is less than this share of the track's has lost much of what was seen."""

SINKING, SINKING_S = 0.75, 0.3
"""A pelvis that is lower than this share of the track's so shortly before the end is about to fall."""


def ground_rule(capture: Capture, *, has_reference: bool = False) -> Ground:
    """Where a capture's body may touch the ground (DESIGN, honest numbers)."""
    if capture.silhouettes is None or has_reference:
        return "reference"
    return "anywhere" if capture.run.get("allow_ground") else "never"


def video_part(capture: Capture) -> tuple[float, float]:
    """The seconds of its video at which a capture begins and ends."""
    known = capture.silhouettes.provenance if capture.silhouettes is not None else {}
    start_s = float(known.get("start_s", 0.0))
    return start_s, start_s + capture.reference.duration_s


def video_judged_seconds(capture: Capture, reference: Reference | None) -> float:
    """How long a video's controller is judged."""
    return judged_seconds(capture.reference if reference is None else reference.clip)


def evaluate_video(capture: Capture, replay: Replay, reference: Reference | None = None) -> Evaluation:
    """Compares a replay with the silhouettes and the track and, where there is one, with a reference.

    Args:
        capture: of a video.
        replay: from time 0, long enough for `video_judged_seconds`.
        reference: ground truth, or a motion capture of the same performance.
    """
    if capture.silhouettes is None:
        raise ValueError("the capture holds no silhouettes")
    fps = replay.clip.fps
    track = at_rate(capture.reference, fps)
    track_points = clip_points(capture.character, track)
    fell_at = _fall(capture, replay, reference)
    evaluation = Evaluation(
        joint_error_cm=None,
        root_aligned_error_cm=None,
        source_error_cm=None,
        fell=fell_at is not None,
        fell_at_s=fell_at,
        frames=len(track_points),
        silhouette_iou=silhouette_iou(capture.character, replay.clip, capture.girth, capture.silhouettes),
        track_silhouette_iou=silhouette_iou(capture.character, capture.reference, capture.girth, capture.silhouettes),
        track_error_cm=mean_errors(replay.points, track_points)[0],
        keypoint_error_px=keypoint_error_px(capture.character, replay.clip, capture.silhouettes),
        track_keypoint_error_px=keypoint_error_px(capture.character, capture.reference, capture.silhouettes),
    )
    return evaluation if reference is None else _with_reference(evaluation, replay.points, track_points, reference, fps)


def video_warnings(capture: Capture, evaluation: Evaluation, replay: Replay) -> tuple[str, ...]:
    """Sentences on a video's track that is doubtful, and a controller that is much worse; none for motion capture.

    Args:
        capture: what was fitted.
        evaluation: of `replay`.
        replay: as for `evaluate_video`.
    """
    ours, tracks = evaluation.silhouette_iou, evaluation.track_silhouette_iou
    if ours is None or tracks is None:
        return ()
    warnings = [*track_doubts(capture.reference, tracks)]
    if ours < LITTLE_OVERLAP * tracks:
        more = capture.config.generations < budget("thorough").generations
        advice = "try --budget thorough" if more else "look at overlay.mp4"
        warnings.append(
            f"the controller covers the silhouettes much less than the track: {ours:.3f} against {tracks:.3f}; {advice}"
        )
    share = _lowest_share(capture, replay)
    if not evaluation.fell and share < SINKING and ground_rule(capture) != "anywhere":
        warnings.append(
            f"a fall has begun at the end: in the last {SINKING_S:g} s the pelvis sinks to {100.0 * share:.0f} % of the "
            "track's height"
        )
    return tuple(warnings)


def _lowest_share(capture: Capture, replay: Replay) -> float:
    """How low the pelvis comes in the last moments that are judged, as a share of the track's height."""
    fps = replay.clip.fps
    track = np.maximum(at_rate(capture.reference, fps).root_position[:, 2], 0.01)
    stop = min(round(video_judged_seconds(capture, None) * fps) + 1, len(replay.clip))
    rows = np.arange(max(0, stop - round(SINKING_S * fps)), stop)
    return float(np.min(replay.clip.root_position[rows, 2] / track[np.minimum(rows, len(track) - 1)]))


def _with_reference(
    evaluation: Evaluation, simulated: Array, track: Array, reference: Reference, fps: float
) -> Evaluation:
    points, source = reference.points(fps), reference.source_points
    error, aligned = mean_errors(simulated, points)
    track_error, track_aligned = mean_errors(track, points)
    return replace(
        evaluation,
        joint_error_cm=error,
        root_aligned_error_cm=aligned,
        source_error_cm=None if source is None else source_error(simulated, fps, source, reference.clip.fps),
        track_joint_error_cm=track_error,
        track_root_aligned_error_cm=track_aligned,
        track_source_error_cm=None if source is None else source_error(track, fps, source, reference.clip.fps),
        frames=len(points),
    )


def _fall(capture: Capture, replay: Replay, reference: Reference | None) -> float | None:
    clip = capture.reference if reference is None else reference.clip
    return fall_time(
        capture.character,
        replay,
        at_rate(clip, replay.clip.fps),
        ground=ground_rule(capture, has_reference=reference is not None),
        reference_character=None if reference is None else reference.character,
    )
