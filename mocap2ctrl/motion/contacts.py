"""Where a motion touches the ground."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import clip_frames, lowest_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.types import Array, MotionClip

CONTACT_HEIGHT_M = 0.025
CONTACT_SPEED_M_S = 0.6
"""A foot that stands moves slower than this, at its joint, so that rolling over the toes still counts."""

FEET = ("left_foot", "left_toes", "right_foot", "right_toes")


def contacts(
    clip: MotionClip, character: Character, height_m: float = CONTACT_HEIGHT_M, speed_m_s: float = CONTACT_SPEED_M_S
) -> npt.NDArray[np.bool_]:
    """(T, S) whether each segment touches the ground: lower than `height_m` and, feet only, slower than `speed_m_s`."""
    positions, orientations = clip_frames(character, clip)
    touching = lowest_points(character, positions, orientations) < height_m
    for name in FEET:
        segment = character.segment_index(name)
        touching[:, segment] &= speed(positions[:, segment], clip.fps) < speed_m_s
    return touching


def foot_contacts(clip: MotionClip, character: Character) -> npt.NDArray[np.bool_]:
    """(T, 2) whether the left and the right foot, with its toes, touches the ground."""
    touching = contacts(clip, character)
    sides = [[character.segment_index(name) for name in FEET if name.startswith(side)] for side in ("left", "right")]
    return np.stack([np.any(touching[:, side], axis=1) for side in sides], axis=1)


def speed(points: Array, fps: float) -> Array:
    """(T,) speed in m/s of a point (T, 3), over about 50 ms so that capture noise does not count."""
    if len(points) < 2:
        return np.zeros(len(points))
    reach = max(1, round(0.025 * fps))
    index = np.arange(len(points))
    before, after = np.maximum(index - reach, 0), np.minimum(index + reach, len(points) - 1)
    return np.asarray(np.linalg.norm(points[after] - points[before], axis=1) / ((after - before) / fps))
