"""Where states end: servos in closed form know their own ends again, and what they miss is what markers miss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import clip_frames, marker_layout, points_world
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import EXIT_TIME_RANGE_S
from mocap2ctrl.fit.segmentation import following_errors
from mocap2ctrl.fit.structure import Step, chain_steps
from mocap2ctrl.fit.warm_start import ALPHAS, reference_of
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.types import Array, MotionClip

FPS, STAGE_S = 30.0, 0.2


def clip_of(character: Character, angles: Array) -> MotionClip:
    """A body that turns nothing but its joints."""
    frames = len(angles)
    places, turns = np.tile([0.0, 0.0, 1.0], (frames, 1)), np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1))
    return MotionClip("servos", FPS, places, turns, angles)


def errors_of(clip: MotionClip, character: Character, stage_s: float) -> Array:
    return following_errors(clip, reference_of(clip, 0.0, character), stage_s)


def servos(character: Character, ends: list[int], alpha: float = ALPHAS[3]) -> Array:
    """(T, J) what one servo after the other does, each towards a pose by chance."""
    rng = np.random.default_rng(5)
    lower, upper = character.lower_limits, character.upper_limits
    rate = -np.log(1.0 - alpha) / TIME_STEP_S
    angles = [0.5 * (lower + upper)]
    for begin, end in zip([0, *ends], ends, strict=False):
        target = rng.uniform(lower, upper)
        left = np.exp(-rate * np.arange(1, end - begin + 1) / FPS)[:, None]
        angles += list(target + left * (angles[-1] - target))
    return np.array(angles)


def test_a_chain_of_servos_is_cut_where_they_change(character: Character) -> None:
    ends = [4, 9, 20, 26, 36]
    clip = clip_of(character, servos(character, ends))
    errors = errors_of(clip, character, STAGE_S)
    assert chain_steps(37, FPS, 0.24, errors) == [Step(end) for end in ends]
    assert sum(errors[a, b] for a, b in zip([0, *ends], ends, strict=False)) == pytest.approx(0.0, abs=1e-9)
    assert errors[4, 10] > 1e-3


@pytest.mark.parametrize(("stage_s", "bounds"), [(0.2, (3, 15)), (0.1, (3, 8)), (0.4, (6, 15)), (0.5, (6, 15))])
def test_states_have_bounds(character: Character, stage_s: float, bounds: tuple[int, int]) -> None:
    """Half to two and a half times the mean, and what exits on time allow: 0.1 to 0.5 s."""
    clip = clip_of(character, servos(character, [36]))
    finite = np.isfinite(errors_of(clip, character, stage_s))
    lengths = np.subtract(*np.nonzero(finite)[::-1])
    assert (lengths.min(), lengths.max()) == bounds
    assert np.array_equal(finite, np.triu(np.tril(np.ones((37, 37), bool), bounds[1]), bounds[0]))


@pytest.mark.parametrize("fps", [10.0, 12.0, 15.0, 24.0, 30.0])
@pytest.mark.parametrize("stage_s", [0.1, 0.15, 0.2, 0.4, 0.5])
def test_an_exit_on_time_can_end_every_state(character: Character, fps: float, stage_s: float) -> None:
    """Placed or equal, however few frames a second there are and however short a clip is."""
    for frames in range(3, 40):
        clip = replace(clip_of(character, servos(character, [frames - 1])), fps=fps)
        for errors in (None, errors_of(clip, character, stage_s)):
            ends = [step.end_frame for step in chain_steps(frames, fps, stage_s, errors)]
            assert ends[-1] == frames - 1
            lengths_s = np.diff([0, *ends]) / fps
            assert len(ends) == 1 or EXIT_TIME_RANGE_S[0] - 1e-9 <= lengths_s.min()
            assert lengths_s.max() <= EXIT_TIME_RANGE_S[1] + 1e-9


def test_what_is_missed_is_what_markers_miss(character: Character) -> None:
    """One knee swings to and fro by a little; the best servo of its kind stays about where it is."""
    knee = character.hinge_names.index("left_shank.flexion")
    angles = np.tile(0.5 * (character.lower_limits + character.upper_limits), (13, 1))
    angles[:, knee] += 0.02 * np.sin(np.linspace(0.0, 4.0 * np.pi, 13))
    segment, local = marker_layout(character)
    still = clip_of(character, np.tile(angles[0], (13, 1)))
    moved, rest = (
        points_world(*clip_frames(character, clip), segment, local) for clip in (clip_of(character, angles), still)
    )
    missed = float(np.sum(np.mean(np.sum((moved - rest)[1:] ** 2, axis=-1), axis=-1)))
    error = errors_of(clip_of(character, angles), character, 0.4)[0, 12]
    assert 0.8 * missed < error <= missed * (1.0 + 1e-6)


def test_targets_stay_within_joint_limits(character: Character) -> None:
    """A knee at its limit cannot be asked to go beyond it, however slow its servo is."""
    knee = character.hinge_names.index("left_shank.flexion")
    angles = np.tile(0.5 * (character.lower_limits + character.upper_limits), (13, 1))
    angles[:, knee] = character.upper_limits[knee] + np.linspace(0.0, 0.3, 13)
    errors = errors_of(clip_of(character, angles), character, STAGE_S)
    free = angles.copy()
    free[:, knee] = np.linspace(character.lower_limits[knee], character.lower_limits[knee] + 0.3, 13)
    assert errors[0, 6] > 10.0 * errors_of(clip_of(character, free), character, STAGE_S)[0, 6]
