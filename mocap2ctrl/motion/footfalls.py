"""When the feet of a source motion stand, heel and ball apart, from how fast and how high its own joints are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.motion.contacts import speed
from mocap2ctrl.motion.runs import runs
from mocap2ctrl.motion.soles import sole_heights, soles, turned_to_ground
from mocap2ctrl.types import Array, Masks, MotionClip

PARTS = ("heel", "ball")

SLOW_M_S = (0.3, 0.5)
"""A contact begins below the first speed and ends above the second."""
LOW_M = (0.02, 0.03)
"""The same for the height above the one at which the joint usually rests."""
LEVEL_M_S = 0.2
NEAR_M = 0.06
"""A part of the body's foot that is farther from the ground does not stand, whatever its joint's speed."""
SHORTEST_S = 0.05
"""Contacts that last less, or one frame, are none, and gaps that last less are no gaps."""
RESTING_PERCENTILE = 20.0
"""Of a joint's heights while it is slow: the one at which it rests on the ground. Who boxes stands on the balls for long,
with heels up, so it is not the usual one; nor the lowest, which noise and sinking feet reach."""


def footfalls(tracks: Array, possible: Masks, fps: float) -> Masks:
    """(T, 2, 2) whether heel and ball of the left and the right foot stand.

    Args:
        tracks: (T, 2, 2, 3) metres, z up: of each side the ankle, and the joint of the toes or the end of the foot.
        possible: (T, 2, 2) where heel and ball might stand at all.
        fps: frames a second.
    """
    standing = np.zeros(tracks.shape[:3], dtype=bool)
    for side, part in np.ndindex(2, len(PARTS)):
        track, allowed = tracks[:, side, part], possible[:, side, part]
        speeds = speed(track, fps)
        resting = track[(speeds < SLOW_M_S[0]) & allowed, 2]
        if not len(resting):
            continue
        above = track[:, 2] - np.percentile(resting, RESTING_PERCENTILE)
        begin = (speeds < SLOW_M_S[0]) & (above < LOW_M[0]) & allowed
        stay = (speeds < SLOW_M_S[1]) & (above < LOW_M[1]) & allowed
        standing[:, side, part] = _without_blips(_held(begin, stay), fps)
    return standing


def body_footfalls(clip: MotionClip, character: Character) -> Masks:
    """(T, 2, 2) the same of a clip of the character that is on the ground."""
    positions, orientations = clip_frames(character, clip)
    parts = [[character.segment_index(f"{side}_{part}") for part in ("foot", "toes")] for side in SIDES]
    standing = footfalls(positions[:, parts], turned_to_ground(character, positions, orientations), clip.fps)
    return on_ground(standing, character, positions, orientations, clip.fps)


def on_ground(standing: Masks, character: Character, positions: Array, orientations: Array, fps: float) -> Masks:
    """`standing` without the heels and balls of the body that are far from the ground z = 0, or come down to it or leave it.

    Feet may rest on a chair, or on each other; and a body that was lifted because it is thicker than the source comes down
    later than the source does.
    """
    heights = np.stack([sole_heights(sole, positions, orientations) for sole in soles(character)], axis=1)
    near = standing & (np.abs(heights) < NEAR_M)
    for side, part in np.ndindex(2, len(PARTS)):
        height = heights[:, side, part, None]
        level = near[:, side, part] & (speed(height, fps) < LEVEL_M_S)
        near[:, side, part] = _without_blips(level, fps)
    return near


def _held(begin: npt.NDArray[np.bool_], stay: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Runs of `stay` that hold a frame of `begin`: hysteresis that is the same forwards and backwards in time."""
    held = np.zeros(len(begin), dtype=bool)
    for first, last in runs(stay | begin):
        held[first:last] = np.any(begin[first:last])
    return held


def _without_blips(standing: npt.NDArray[np.bool_], fps: float) -> npt.NDArray[np.bool_]:
    """Short gaps filled, then short contacts taken out; those that the clip's ends cut off are left alone."""
    cleaned = standing.copy()
    shortest = round(SHORTEST_S * fps)
    for value, least in ((True, shortest), (False, max(2, shortest))):
        for first, last in runs(cleaned != value):
            if last - first < least and first > 0 and last < len(cleaned):
                cleaned[first:last] = value
    return cleaned
