"""Puts a retargeted motion on the ground z = 0."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter1d, uniform_filter1d

from mocap2ctrl.character.kinematics import lowest_points
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.motion.contacts import FEET, speed
from mocap2ctrl.motion.soles import sole_heights, soles
from mocap2ctrl.types import Array, Masks

CONTACT_BAND_M = 0.04
DEEPEST_M = 0.02
"""Penetration that is left alone."""
STANDING_M_S = 0.4
MIN_STANDING = 5
MIN_STANDING_SHARE = 0.05
LIFT_SMOOTHING_S = 0.1
TOES = ("left_toes", "right_toes")
"""They bend where the ground is, and lift nobody."""


def ground_shift(character: Character, positions: Array, orientations: Array, standing: Masks, fps: float) -> Array:
    """(T, 3) the vertical shift that puts the motion on the ground.

    It is one constant, the height at which the feet usually stand, plus a smooth lift where the body would sink deeper
    than `DEEPEST_M`: lying or rolling, because it is thicker than the source's skeleton, or because a capture drifts.

    Args:
        character: the body.
        positions, orientations: (T, S, 3) and (T, S, 4) of its segments.
        standing: (T, 2, 2) whether heel and ball of the left and the right foot stand.
        fps: frames a second.
    """
    heights = lowest_points(character, positions, orientations)
    level = _usual_level(character, positions, heights, fps)
    feet = np.stack([sole_heights(sole, positions, orientations) for sole in soles(character)], axis=1)
    feet = feet[standing & (np.abs(feet - level) < CONTACT_BAND_M)]
    if len(feet) >= MIN_STANDING:
        level = float(np.median(feet))
    lowest = np.min(np.delete(heights, [character.segment_index(name) for name in TOES], axis=1), axis=1)
    shift = np.zeros((len(lowest), 3))
    shift[:, 2] = _smooth_lift(level - DEEPEST_M - lowest, fps) - level
    return shift


def _usual_level(character: Character, positions: Array, heights: Array, fps: float) -> float:
    """The height of slow feet that are the lowest of the body, or, where there are hardly any, of its lowest parts."""
    lowest = np.min(heights, axis=1)
    lows, moving = [], []
    for side in SIDES:
        parts = [character.segment_index(name) for name in FEET if name.startswith(side)]
        lows.append(np.min(heights[:, parts], axis=1))
        moving.append(np.min([speed(positions[:, part], fps) for part in parts], axis=0))
    feet = np.stack(lows, axis=1)
    slow = (np.stack(moving, axis=1) < STANDING_M_S) & (feet < lowest[:, None] + CONTACT_BAND_M)
    if np.count_nonzero(slow) >= max(MIN_STANDING, MIN_STANDING_SHARE * len(lowest)):
        return _densest(feet[slow])
    floor = np.percentile(lowest, 3.0)
    return float(np.percentile(lowest[lowest <= floor + CONTACT_BAND_M], 25.0))


def _densest(values: Array) -> float:
    """The middle of the shortest interval that holds a third of the values: a mode that outliers do not move."""
    values = np.sort(values)
    count = max(2, len(values) // 3)
    widths = values[count - 1 :] - values[: len(values) - count + 1]
    start = int(np.argmin(widths))
    return float(np.median(values[start : start + count]))


def _smooth_lift(depth: Array, fps: float) -> Array:
    """Make a smooth curve (T,) that is never below `depth` and never negative."""
    if np.max(depth) <= 0.0:
        return np.zeros(len(depth))
    size = 2 * max(1, round(LIFT_SMOOTHING_S * fps)) + 1
    return np.asarray(uniform_filter1d(maximum_filter1d(np.maximum(depth, 0.0), size), size))
