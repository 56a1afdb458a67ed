"""First guesses for a state from a reference: the servo's closed form, fitted to the reference over the state's time.

A servo of rate alpha approaches its target q_d as q(t) = q_d + (q_0 - q_d) e^{-k t}. For a given alpha the target with which it
follows the reference most nearly, from the reference's own angle at the state's beginning on, is a least-squares problem of one
number for each hinge; of a few alphas each group of hinges takes the one that follows it best. The target exaggerates the pose, as
the paper's do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames, marker_layout, points_world
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import ControlState, Exit, TargetPose
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import values_at
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.types import Array, MotionClip

ALPHA = 0.1
"""Algorithm 2, line 3."""

ALPHAS = np.array([0.01, 0.02, 0.04, 0.07, ALPHA, 0.14, 0.2])
"""Of servos that are fitted."""

TRIFLE = 1e-4
"""Square radians by which a servo must follow better for its rate to be e times `ALPHA`: one that rests has `ALPHA`."""

FURTHEST_TURN = 2.0
"""Radians by which a root's target may lie from where the root is when its state begins, about each axis."""

TURN = 1e-4
"""Radians of a difference."""


@dataclass(frozen=True, eq=False)
class Reference:
    """What states are guessed from.

    Attributes:
        clip: the motion, not looped, at a rate of which every frame is looked at.
        root_rotations: (T, 3) its unwrapped root rotations in the heading frame.
        character: whose joint limits and alpha groups apply.
    """

    clip: MotionClip
    root_rotations: Array
    character: Character

    @cached_property
    def weights(self) -> Array:
        """(J, G) squares of the hinges' `marker_levers`, each in the column of its group, m^2."""
        levers = marker_levers(self.clip, self.character)
        return np.asarray(np.eye(len(self.character.groups))[self.character.hinge_group] * levers[:, None] ** 2)

    def state(self, name: str, begin_s: float, end_s: float) -> ControlState:
        """The state that follows the clip best from `begin_s` to `end_s`, seconds, if the servos had their way.

        Past the clip's end the last frame holds.
        """
        character, clip = self.character, self.clip
        times = np.linspace(begin_s, end_s, max(1, round((end_s - begin_s) * clip.fps)) + 1)
        angles, roots = (values_at(values, clip.fps, times) for values in (clip.angles, self.root_rotations))
        low, high = character.lower_limits - angles[0], character.upper_limits - angles[0]
        reach, missed = servo_fits(angles[1:] - angles[0], times[1:] - begin_s, low, high)
        turn, turned = servo_fits(roots[1:] - roots[0], times[1:] - begin_s, -FURTHEST_TURN, FURTHEST_TURN)
        off = missed @ self.weights / np.maximum(np.sum(self.weights, axis=0), 1e-12)
        off[:, 0] = turned.mean(axis=1)
        unusual = TRIFLE * np.log(ALPHAS / ALPHA) ** 2
        best = np.argmin(off / (len(times) - 1) + unusual[:, None], axis=0)
        hinges = np.arange(len(character.hinges))
        return ControlState(
            name=name,
            target=TargetPose(roots[0] + turn[best[0]], angles[0] + reach[best[character.hinge_group], hinges]),
            alpha=ALPHAS[best],
            balance=np.zeros(3),
            exit=Exit(),
        )


def reference_of(clip: MotionClip, heading: float, character: Character) -> Reference:
    """Guesses from a clip, for a controller of that heading, radians."""
    return Reference(clip, heading_rotations(clip, heading), character)


def servo_fits(moved: Array, times_s: Array, low: Array | float, high: Array | float) -> tuple[Array, Array]:
    """How far servos are best to reach, and what they miss: (K, ..., N) each, for K `ALPHAS`; the latter sums of squares.

    Args:
        moved: (..., T, N) what they are to follow, less where they begin.
        times_s: (T,) seconds after that.
        low, high: (..., N) bounds of what they may reach for.
    """
    rates = -np.log(1.0 - ALPHAS) / TIME_STEP_S
    approach = 1.0 - np.exp(-rates[:, None] * times_s)
    along = np.tensordot(approach, moved, ([1], [-2]))
    square = np.sum(approach**2, axis=1).reshape(-1, *[1] * (moved.ndim - 1))
    reach = np.clip(along / square, low, high)
    return reach, np.sum(moved**2, axis=-2) - 2.0 * reach * along + reach**2 * square


def marker_levers(clip: MotionClip, character: Character) -> Array:
    """(J,) how far the markers move when a hinge turns by a radian, metres: root mean square over markers and frames."""
    segment, local = marker_layout(character)

    def markers(angles: Array) -> Array:
        return points_world(*clip_frames(character, replace(clip, angles=angles)), segment, local)

    before = markers(clip.angles)
    turned = [markers(clip.angles + TURN * one) for one in np.eye(len(character.hinges))]
    return np.array([np.sqrt(np.mean(np.sum((after - before) ** 2, axis=-1))) / TURN for after in turned])


def previous_state(name: str, previous: ControlState | None, first: TargetPose, character: Character) -> ControlState:
    """A state that goes on like the one before it (Algorithm 3 without a reference); the very first holds the pose `first`."""
    return ControlState(
        name=name,
        target=first if previous is None else previous.target,
        alpha=np.full(len(character.groups), ALPHA),
        balance=np.zeros(3),
        exit=Exit(),
    )


def heading_rotations(clip: MotionClip, heading: float) -> Array:
    """(T, 3) unwrapped rotation vectors of the clip's root in the heading frame."""
    return rotations.unwrapped_rotation_vectors(rotations.multiply(rotations.yaw(-heading), clip.root_orientation))
