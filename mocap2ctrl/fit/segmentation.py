"""Where the states of a chain end, so that servos with one target each can follow the reference as nearly as possible. Ours.

Algorithm 3 cuts a motion into equal stages. An arm that turns round in the middle of one is then followed by no target, and exit
times, which move little by little, seldom find out of it. A servo of rate alpha approaches its target q_d as
q(t) = q_d + (q_0 - q_d) e^{-k t}; how nearly that follows the reference between two frames is a least-squares problem of one number
for each hinge, so the best ends of a given number of states are found at once, by dynamic programming (Bellman, 1961, on curves
and segments of lines).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames, marker_layout, points_world
from mocap2ctrl.character.model import Character
from mocap2ctrl.fit.structure import stages_of
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.types import Array, MotionClip

ALPHAS = np.array([0.01, 0.02, 0.04, 0.06, 0.09, 0.12, 0.16, 0.2])
"""Rates that servos may have; those of a group of hinges have the same."""

SHORTEST, LONGEST = 0.5, 2.5
"""Of a state, as multiples of the mean."""

TURN = 1e-4
"""Radians of a difference."""


def following_errors(clip: MotionClip, character: Character, stage_s: float) -> Array:
    """(T, T) squared distance of markers, m^2, summed over frames, if one state follows a clip from a frame to a later one.

    To first order in the hinges' errors, as a mean over markers; infinite for states that are too short or too long.

    Args:
        clip: the reference, T frames at the objective's rate, not looped.
        character: whose hinges, groups and markers count.
        stage_s: T_s of Algorithm 3, seconds.
    """
    angles, frames = clip.angles, len(clip)
    mean = (frames - 1) / stages_of(frames, clip.fps, stage_s)
    shortest, longest = max(1, int(SHORTEST * mean)), min(int(np.ceil(LONGEST * mean)), frames - 1)
    weights = np.eye(len(character.groups))[character.hinge_group] * marker_levers(clip, character)[:, None] ** 2
    rates = -np.log(1.0 - ALPHAS) / TIME_STEP_S
    errors = np.full((frames, frames), np.inf)
    for length in range(shortest, longest + 1):
        first = np.arange(frames - length)
        moved = angles[first[:, None] + np.arange(1, length + 1)] - angles[first][:, None]
        low, high = character.lower_limits - angles[first], character.upper_limits - angles[first]
        approach = 1.0 - np.exp(-rates[:, None] * np.arange(1, length + 1) / clip.fps)
        along = np.einsum("kt,atj->kaj", approach, moved)
        square = np.sum(approach**2, axis=1)[:, None, None]
        reach = np.clip(along / square, low, high)
        missed = np.sum(moved**2, axis=1) - 2.0 * reach * along + reach**2 * square
        errors[first, first + length] = np.sum(np.min(missed @ weights, axis=0), axis=-1)
    return errors


def marker_levers(clip: MotionClip, character: Character) -> Array:
    """(J,) how far the markers move when a hinge turns by a radian, metres: root mean square over markers and frames."""
    segment, local = marker_layout(character)

    def markers(angles: Array) -> Array:
        return points_world(*clip_frames(character, replace(clip, angles=angles)), segment, local)

    before = markers(clip.angles)
    turned = [markers(clip.angles + TURN * one) for one in np.eye(len(character.hinges))]
    return np.array([np.sqrt(np.mean(np.sum((after - before) ** 2, axis=-1))) / TURN for after in turned])
