"""How far a motion is from the keypoints of a video, in the video's pixels."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames, points_world
from mocap2ctrl.character.landmarks import landmarks_of
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry.camera import project
from mocap2ctrl.motion.clips import at_times
from mocap2ctrl.types import MotionClip, Silhouettes


def keypoint_error_px(character: Character, clip: MotionClip, silhouettes: Silhouettes) -> float | None:
    """Mean reprojection error, weighted by confidence, in pixels of the video; None without keypoints.

    Args:
        character: the body.
        clip: of any rate, from the time of the first silhouette; frames that it has ended before do not count.
        silhouettes: whose times, camera and keypoints.
    """
    seen = silhouettes.keypoints
    if seen is None:
        return None
    times = silhouettes.times_s
    marks = landmarks_of(character, seen.names)
    frames = clip_frames(character, at_times(clip, times))
    points = points_world(*frames, marks.segment, marks.local) + silhouettes.carried(times)[:, None]
    pixels = project(silhouettes.camera, points)
    errors = seen.scale * np.linalg.norm(pixels - seen.pixels, axis=-1)
    weights = np.where(np.isfinite(errors), seen.confidence, 0.0)
    weights[times > clip.duration_s + 1.0 / clip.fps] = 0.0
    return float(np.sum(weights * np.nan_to_num(errors)) / weights.sum()) if weights.any() else None
