"""What makes a track doubtful by itself: it goes where it does not face, or its body is not where the silhouettes are."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, MotionClip

LITTLE_OVERLAP = 0.7
"""Of the track's body with the silhouettes; tracks of sound masks reach 0.8 and more."""
ASIDE_DEG = 60.0
"""Between where a body faces and where it goes, over most of its way."""
STEP_S = 0.5
"""Time over which a way is measured: about one step, within which a body sways."""
LEAST_WAY_M = 1.0


def track_doubts(clip: MotionClip, overlap: float) -> tuple[str, ...]:
    """Sentences for the user.

    Args:
        clip: the track, over ground that rests.
        overlap: mean intersection over union of its body with the silhouettes.
    """
    doubts = []
    if overlap < LITTLE_OVERLAP:
        doubts.append(
            f"the track's body covers the silhouettes by {overlap:.2f} only (intersection over union): they may hold more than the "
            f"person, or miss a part; look at them with mocap2ctrl inspect, and give --background FILE if a part of the scene is "
            f"never seen"
        )
    aside = facing_aside_deg(clip)
    if aside > ASIDE_DEG:
        doubts.append(
            f"the track faces {aside:.0f}° away from where it goes, over the whole way (the median): unless the person walks "
            f"{'backwards' if aside > 120.0 else 'sideways'}, it faces the wrong way; --keypoints settle that"
        )
    return tuple(doubts)


def facing_aside_deg(clip: MotionClip) -> float:
    """The angle between a body's forward axis and its way over the ground, the median over the way; 0 for who stays."""
    lag = max(1, round(STEP_S * clip.fps))
    if len(clip) <= lag:
        return 0.0
    way: Array = clip.root_position[lag:, :2] - clip.root_position[:-lag, :2]
    forward = rotations.rotate(clip.root_orientation, np.array([1.0, 0.0, 0.0]))[lag // 2 :, :2][: len(way)]
    if np.linalg.norm(way, axis=1).sum() / lag < LEAST_WAY_M:
        return 0.0
    turn = np.arctan2(way[:, 1], way[:, 0]) - np.arctan2(forward[:, 1], forward[:, 0])
    angles = np.abs((turn + np.pi) % (2.0 * np.pi) - np.pi)
    order = np.argsort(angles)
    along = np.cumsum(np.linalg.norm(way, axis=1)[order])
    return float(np.degrees(angles[order][np.searchsorted(along, 0.5 * along[-1])]))
