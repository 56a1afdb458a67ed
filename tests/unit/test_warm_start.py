"""First guesses of states: what the servo's closed form promises, on clips whose course is known."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import ALPHA_RANGE
from mocap2ctrl.fit import warm_start
from mocap2ctrl.fit.warm_start import ALPHA, ALPHAS, heading_rotations, marker_levers, reference_of
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, MotionClip

FPS = 120.0
SECONDS = 1.0


def clip_of(character: Character, angles: Array, turn: Array | None = None) -> MotionClip:
    frames = len(angles)
    pose = character.zero_pose()
    orientation = np.tile(pose.root_orientation, (frames, 1)) if turn is None else turn
    return MotionClip("made up", FPS, np.tile(pose.root_position, (frames, 1)), orientation, angles)


@pytest.fixture(scope="module")
def bend(character: Character) -> MotionClip:
    """Every joint moves evenly, by up to 0.3 rad in a second, in the middle of its range; the root pitches by 0.4 rad."""
    share = np.linspace(0.0, 1.0, round(SECONDS * FPS) + 1)[:, None]
    middle = 0.5 * (character.lower_limits + character.upper_limits)
    span = np.minimum(0.3, 0.2 * (character.upper_limits - character.lower_limits))
    pitch = rotations.from_rotation_vector(share * np.array([0.0, 0.4, 0.0]))
    return clip_of(character, middle + (share - 0.5) * span, pitch)


def test_a_clip_that_rests_is_its_own_target(character: Character) -> None:
    rest = 0.3 * character.lower_limits + 0.7 * character.upper_limits
    clip = clip_of(character, np.tile(rest, (30, 1)))
    guess = reference_of(clip, 0.0, character).state("a", 0.05, 0.2)
    assert guess.target.angles == pytest.approx(rest)
    assert guess.target.root_rotation == pytest.approx(np.zeros(3))
    assert guess.alpha == pytest.approx(np.full(len(character.groups), ALPHA))
    assert guess.name == "a"
    assert guess.exit.kind == "never"
    assert guess.balance == pytest.approx(np.zeros(3))


@pytest.mark.parametrize(("begin_s", "end_s"), [(0.0, 0.2), (0.2, 0.4), (0.3, 0.7)])
def test_a_free_servo_ends_where_the_reference_does(
    character: Character, bend: MotionClip, begin_s: float, end_s: float
) -> None:
    """Eq. 5 step by step, with nothing else acting, from the reference's pose at the state's beginning to the one at its end."""
    reference = reference_of(bend, 0.0, character)
    guess, turns = reference.state("1", begin_s, end_s), reference.root_rotations
    first, last = round(begin_s * FPS), round(end_s * FPS)
    alpha = guess.alpha[character.hinge_group]
    q, root = bend.angles[first].copy(), turns[first].copy()
    for _ in range(last - first):
        q -= alpha * (q - guess.target.angles)
        root -= guess.alpha[0] * (root - guess.target.root_rotation)
    assert q == pytest.approx(bend.angles[last], abs=0.04)
    assert root == pytest.approx(turns[last], abs=0.04)


def test_a_servo_is_known_again(character: Character, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a servo of a known rate does, towards a known target, is fitted without error, by every hinge of the group."""
    monkeypatch.setattr(warm_start, "TRIFLE", 0.0)
    groups = character.hinge_group
    alpha = ALPHAS[np.arange(len(character.groups)) % len(ALPHAS)]
    middle, far = 0.5 * (character.lower_limits + character.upper_limits), 0.4 * character.upper_limits
    rate = -120.0 * np.log(1.0 - alpha[groups])
    left = np.exp(-rate * np.arange(25)[:, None] / FPS)
    guess = reference_of(clip_of(character, far + left * (middle - far)), 0.0, character).state("1", 0.0, 0.2)
    moving = [g for g in range(1, len(alpha)) if np.abs(far - middle)[groups == g].max() > 0.3]
    assert len(moving) > 5
    assert guess.alpha[moving] == pytest.approx(alpha[moving])
    hinges = np.isin(groups, moving)
    assert guess.target.angles[hinges] == pytest.approx(far[hinges])


def test_targets_exaggerate_in_the_direction_of_motion(character: Character, bend: MotionClip) -> None:
    guess = reference_of(bend, 0.0, character).state("1", 0.2, 0.4)
    moved = bend.angles[48] - bend.angles[24]
    beyond = (guess.target.angles - bend.angles[48]) * np.sign(moved)
    assert np.all(beyond[np.abs(moved) > 0.05] > 0.0)


def test_targets_keep_the_joint_limits(character: Character) -> None:
    """A clip that runs from one limit to the other within a short state asks for no more than the limit."""
    low, high = character.lower_limits, character.upper_limits
    share = np.linspace(0.0, 1.0, 13)[:, None]
    clip = clip_of(character, low + share * (high - low))
    guess = reference_of(clip, 0.0, character).state("1", 0.0, 0.1)
    assert np.all(guess.target.angles <= high + 1e-12)
    assert np.all(guess.target.angles >= low - 1e-12)
    assert np.all((guess.alpha >= ALPHA_RANGE[0]) & (guess.alpha <= ALPHA_RANGE[1]))
    assert guess.alpha.shape == (len(character.groups),)


def test_past_the_clip_s_end_its_last_frame_holds(character: Character, bend: MotionClip) -> None:
    guess = reference_of(bend, 0.0, character).state("1", SECONDS + 0.1, SECONDS + 0.3)
    assert guess.target.angles == pytest.approx(bend.angles[-1])
    assert guess.target.root_rotation == pytest.approx([0.0, 0.4, 0.0])


def test_a_clip_of_one_frame_is_enough(character: Character) -> None:
    clip = clip_of(character, np.zeros((1, len(character.hinges))))
    guess = reference_of(clip, 0.0, character).state("1", 0.0, 0.2)
    assert guess.target.angles == pytest.approx(np.zeros(len(character.hinges)))


def test_root_rotations_go_on_past_half_a_turn(character: Character) -> None:
    """A body that turns twice about the vertical: the vectors grow evenly, no jump back by a whole turn."""
    angle = np.linspace(0.0, 4.0 * np.pi, 200)
    clip = clip_of(
        character,
        np.zeros((200, len(character.hinges))),
        rotations.from_rotation_vector(np.outer(angle, [0.0, 0.0, 1.0])),
    )
    np.testing.assert_allclose(heading_rotations(clip, 0.0), np.outer(angle, [0.0, 0.0, 1.0]), atol=1e-9)


def test_root_rotations_are_relative_to_the_heading(character: Character, bend: MotionClip) -> None:
    """The same motion facing another way has the same rotations in its own heading frame."""
    turned = clip_of(character, bend.angles, rotations.multiply(rotations.yaw(2.0), bend.root_orientation))
    np.testing.assert_allclose(heading_rotations(turned, 2.0), heading_rotations(bend, 0.0), atol=1e-9)


def test_hinges_near_the_trunk_weigh_more(character: Character) -> None:
    clip = clip_of(character, np.tile(character.zero_pose().angles, (2, 1)))
    lever = dict(zip(character.hinge_names, marker_levers(clip, character), strict=True))
    assert lever["left_thigh.flexion"] > lever["left_shank.flexion"] > lever["left_foot.dorsiflexion"] > 0.0
    assert lever["left_upper_arm.flexion"] == pytest.approx(lever["right_upper_arm.flexion"], rel=1e-6)
