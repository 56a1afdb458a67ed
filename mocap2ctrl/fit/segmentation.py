"""Where the states of a chain end, so that servos with one target each can follow the reference as nearly as possible. Ours.

Algorithm 3 cuts a motion into equal stages. An arm that turns round in the middle of one is then followed by no target, and exit
times, which move little by little, seldom find out of it. What the best servo of a state misses between any two frames is a small
least-squares problem (`fit/warm_start.py`); of these numbers the best ends of so many states follow by dynamic programming
(`fit.structure.chain_steps`), as Bellman approximated curves by lines (Communications of the ACM 4, 1961).
"""

from __future__ import annotations

import math

import numpy as np

from mocap2ctrl.fit.structure import stages_of, state_frames
from mocap2ctrl.fit.warm_start import Reference, servo_fits
from mocap2ctrl.types import Array, MotionClip

SHORTEST, LONGEST = 0.5, 2.5
"""Of a state, as multiples of the mean."""


def following_errors(clip: MotionClip, reference: Reference, stage_s: float) -> Array:
    """(T, T) squared distance of markers, m^2, summed over frames, if one state follows a clip from a frame to a later one.

    To first order in the hinges' errors, as a mean over markers; infinite for states that are too short or too long.

    Args:
        clip: the reference, T frames at the objective's rate, not looped.
        reference: the same motion, whose character and weights count.
        stage_s: T_s of Algorithm 3, seconds.
    """
    angles, frames, character = clip.angles, len(clip), reference.character
    mean = (frames - 1) / stages_of(frames, clip.fps, stage_s)
    shortest, longest = _bounds(mean, clip.fps)
    errors = np.full((frames, frames), np.inf)
    for length in range(shortest, min(longest, frames - 1) + 1):
        first, after = np.arange(frames - length), np.arange(1, length + 1)
        begun = angles[first]
        moved = angles[first[:, None] + after] - begun[:, None]
        low, high = character.lower_limits - begun, character.upper_limits - begun
        _, missed = servo_fits(moved, after / clip.fps, low, high)
        errors[first, first + length] = np.sum(np.min(missed @ reference.weights, axis=0), axis=-1)
    return errors


def _bounds(mean: float, fps: float) -> tuple[int, int]:
    """Frames that a state has at least and at most."""
    shortest, longest = state_frames(fps)
    return max(int(SHORTEST * mean), shortest), min(math.ceil(LONGEST * mean), longest)
