"""Eq. (9) and (11) against closed forms: masks made by hand, and a body against its own image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from performed import rollouts_of

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import THICK_M, body_shape, capsule_ends, thickness
from mocap2ctrl.control.closed_loop import Rollouts
from mocap2ctrl.geometry.masks import masks_at_rate, signed_distances
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.objective.silhouettes import (
    _distances,
    _equation_9,
    compile_silhouettes,
    silhouette_distances,
    view_of,
)
from mocap2ctrl.objective.target import SilhouetteTarget, marker_target, silhouette_target
from mocap2ctrl.objective.terms import Objective, TermValue, Weights
from mocap2ctrl.types import Array, Camera, Masks, MotionClip, Silhouettes

FRAMES = 6
CAMERA = Camera(
    "side",
    (120, 100),
    [[110.0, 0.0, 59.5], [0.0, 110.0, 49.5], [0.0, 0.0, 1.0]],
    [np.pi / 2, 0.0, 0.0],
    [0.0, 1.0, 3.0],
)
"""Three metres to the right of the body, one metre high, level: x is to the right in the image."""


@pytest.fixture(scope="module")
def clip(character: Character) -> MotionClip:
    """A body that slides along x with bent arms, 5 cm a frame."""
    pose = character.zero_pose()
    rng = np.random.default_rng(2)
    angles = np.clip(pose.angles + rng.normal(0, 0.3, len(pose.angles)), character.lower_limits, character.upper_limits)
    position = pose.root_position + np.array([[0.05 * t, 0.0, 0.0] for t in range(FRAMES)])
    return MotionClip(
        "slide", 30.0, position, np.tile(pose.root_orientation, (FRAMES, 1)), np.tile(angles, (FRAMES, 1))
    )


def frames_of(character: Character, clip: MotionClip) -> tuple[Array, Array]:
    return segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)


def image_of(character: Character, clip: MotionClip, girth: float = 1.0) -> Masks:
    shape = body_shape(character)
    return rasterise(capsule_ends(shape, *frames_of(character, clip)), shape.radii_at(girth), CAMERA)


def distances(character: Character, clip: MotionClip, masks: Masks, girth: float = 1.0) -> Array:
    """(F,) Eq. (9) of a body that performs `clip`, frame by frame with `masks`."""
    view = view_of(character, SilhouetteTarget(30.0, masks, CAMERA, np.zeros((len(masks), 3)), girth))
    positions, orientations = frames_of(character, clip)
    return silhouette_distances(view, positions[None], orientations[None], np.arange(len(clip)))[0]


def by_hand(seen: Masks, model: Masks) -> Array:
    """Eq. (9) as it is printed."""
    both = (seen & model).sum(axis=(1, 2))
    only_seen, only_model = (seen & ~model).sum(axis=(1, 2)), (~seen & model).sum(axis=(1, 2))
    return np.asarray(only_model / (only_model + both) + only_seen / (only_seen + both))


def test_a_girth_is_as_thick_everywhere_and_leaves_hands_and_feet_as_they_are(character: Character) -> None:
    shape = body_shape(character)
    names = [character.segments[owner].name for owner in shape.owner]
    thicker = dict(zip(names, shape.radii_at(1.25) - shape.radii, strict=True))
    for name in character.segment_names:
        assert thicker[name] == pytest.approx(0.0 if name.endswith(("hand", "foot", "toes")) else 0.25 * THICK_M), name
    np.testing.assert_array_equal(shape.radii_at(1.0), shape.radii)


def test_a_small_body_has_thin_clothes_and_no_radius_below_nothing(character: Character) -> None:
    for height in (0.8, 1.75, 2.4):
        body = character.scaled(height)
        assert thickness(body, 2.0) == pytest.approx(THICK_M * height / 1.75)
        assert body_shape(body).radii_at(0.5).min() > 0.0


def test_hands_hang_with_bent_fingers(character: Character) -> None:
    shape = body_shape(character)
    for side in ("left", "right"):
        index = character.segment_names.index(f"{side}_hand")
        tip = shape.local[shape.owner == index, 1, 2] - shape.radii[shape.owner == index]
        stretched = character.segments[index].tip[2]
        assert 0.8 < tip.min() / stretched < 0.9  # a relaxed hand is some 16 of 19 cm long


@pytest.mark.parametrize(
    ("both", "only_seen", "only_model", "value"),
    [(50, 0, 0, 0.0), (0, 50, 50, 2.0), (30, 10, 10, 0.5), (50, 50, 0, 0.5), (50, 0, 150, 0.75), (0, 9, 0, 2.0)],
)
def test_equation_9_of_boxes(both: int, only_seen: int, only_model: int, value: float) -> None:
    """Identical, disjoint, a box of 10 x 4 shifted by one of its columns, twice as large, four times as small, no model."""
    assert _equation_9(both, only_seen, only_model) == pytest.approx(value)


def test_a_body_s_own_image_costs_nothing(character: Character, clip: MotionClip) -> None:
    for girth in (1.0, 1.2):
        assert distances(character, clip, image_of(character, clip, girth), girth) == pytest.approx(np.zeros(FRAMES))


def test_any_two_masks_cost_what_the_equation_says(character: Character, clip: MotionClip) -> None:
    """The box inside which pixels are counted leaves none out: a body in the middle, half outside, and larger than the image."""
    seen = image_of(character, clip)
    for shift in ([0.1, 0.0, 0.05], [1.6, 0.0, 0.0], [-1.5, 0.0, -0.9], [0.0, -2.4, 0.0]):
        moved = replace(clip, root_position=clip.root_position + np.array(shift))
        expected = by_hand(seen, image_of(character, moved))
        assert distances(character, moved, seen) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shift", [[9.0, 0.0, 0.0], [0.0, 0.0, -9.0], [0.0, -9.0, 0.0]])
def test_a_body_outside_the_picture_or_behind_the_camera_is_the_worst(
    character: Character, clip: MotionClip, shift: list[float]
) -> None:
    moved = replace(clip, root_position=clip.root_position + np.array(shift))
    assert distances(character, moved, image_of(character, clip)) == pytest.approx(np.full(FRAMES, 2.0))


def test_a_scale_error_of_the_girth_shows(character: Character, clip: MotionClip) -> None:
    seen = image_of(character, clip, 1.2)
    assert np.all(distances(character, clip, seen, 1.0) > 0.05)


def terms_of(objective: Objective, rollouts: Rollouts, end_frame: int = FRAMES - 1) -> dict[str, TermValue]:
    return {t.name: t for t in objective.terms(rollouts, np.zeros(len(rollouts.positions)), 0, end_frame)}


def objective_of(character: Character, clip: MotionClip, masks: Masks, weights: Weights) -> Objective:
    target = SilhouetteTarget(clip.fps, masks, CAMERA, np.zeros((len(masks), 3)))
    return Objective(character, marker_target(character, clip), weights, target)


def test_frames_without_evidence_are_left_out_of_the_mean(character: Character, clip: MotionClip) -> None:
    masks = image_of(character, clip)
    masks[1] = masks[4] = False
    moved = replace(clip, root_position=clip.root_position + np.array([0.1, 0.0, 0.0]))
    term = terms_of(objective_of(character, clip, masks, Weights(silhouette=1.0)), rollouts_of(character, moved))[
        "silhouette"
    ]
    seen = [0, 2, 3, 5]
    expected = by_hand(masks[seen], image_of(character, moved)[seen])
    assert np.isnan(term.per_frame[0, [1, 4]]).all()
    assert term.value == pytest.approx([expected.mean()])
    nothing = objective_of(character, clip, np.zeros_like(masks), Weights(silhouette=1.0))
    assert terms_of(nothing, rollouts_of(character, moved))["silhouette"].value == pytest.approx([0.0])


def test_a_diverged_simulation_is_the_worst_from_there_on(character: Character, clip: MotionClip) -> None:
    rollouts = rollouts_of(character, clip)
    rollouts.positions[0, 3:] = np.nan
    rollouts.orientations[0, 3:] = np.nan
    objective = objective_of(character, clip, image_of(character, clip), Weights(silhouette=1.0))
    assert terms_of(objective, rollouts)["silhouette"].per_frame[0] == pytest.approx([0, 0, 0, 2, 2, 2])


def test_past_the_end_the_last_silhouette_and_the_last_markers_are_held(character: Character, clip: MotionClip) -> None:
    """Eq. (11): a body that slides on while the evidence has ended, its last mask empty."""
    seen = clip.cut(0, 4)
    masks = image_of(character, seen)
    masks[3] = False
    weights = Weights(silhouette=60.0, markers=0.3)
    term = terms_of(objective_of(character, seen, masks, weights), rollouts_of(character, clip))["stability"]
    beyond = image_of(character, clip.cut(4, 6))
    expected = 60.0 * by_hand(np.stack([masks[2]] * 2), beyond) + 0.3 * np.array([5.0, 10.0]) ** 2
    assert term.per_frame[0] == pytest.approx(expected)
    assert term.value == pytest.approx([expected.mean()])


def test_without_silhouettes_there_is_no_silhouette_term(character: Character, clip: MotionClip) -> None:
    objective = Objective(character, marker_target(character, clip), Weights(silhouette=60.0))
    term = terms_of(objective, rollouts_of(character, clip))["silhouette"]
    assert term.value == pytest.approx([0.0])
    assert term.per_frame.shape == (1, 0)


def box(left: int, right: int) -> Masks:
    mask = np.zeros((20, 40), bool)
    mask[5:15, left:right] = True
    return mask


def test_signed_distances_change_sign_at_the_outline() -> None:
    d = signed_distances(box(10, 20)[None])[0]
    assert d[10, 8:12] == pytest.approx([1.5, 0.5, -0.5, -1.5])
    assert (d < 0).sum() == 100


def test_masks_between_frames_are_blended() -> None:
    """A box that moves by two pixels a frame, seen at twice the rate: every other mask stays, the rest lose their corners."""
    masks = np.stack([box(10, 20), box(12, 22), box(14, 24)])
    twice = masks_at_rate(masks, 15.0, 30.0)
    assert len(twice) == 5
    np.testing.assert_array_equal(twice[::2], masks)
    between = box(11, 21)
    between[[5, 5, 14, 14], [11, 20, 11, 20]] = False
    np.testing.assert_array_equal(twice[1], between)
    assert masks_at_rate(masks, 30.0, 30.0) is masks


@pytest.mark.parametrize(("fps", "frames", "count"), [(25.0, 26, 31), (29.97, 60, 60), (60.0, 61, 31), (24.0, 1, 1)])
def test_any_rate_comes_to_the_objective_s(fps: float, frames: int, count: int) -> None:
    """The count is that of a clip of the same frames, resampled."""
    masks = np.stack([box(5 + t // 4, 15 + t // 4) for t in range(frames)])
    result = masks_at_rate(masks, fps, 30.0)
    assert len(result) == count
    assert np.abs(result.sum(axis=(1, 2)) - 100).max() <= 10


def test_what_needs_an_empty_mask_is_empty() -> None:
    masks = np.stack([box(10, 20), box(10, 20) & False, box(14, 24), box(14, 24)])
    twice = masks_at_rate(masks, 15.0, 30.0)
    assert [bool(m.any()) for m in twice] == [True, False, False, False, True, True, True]


def test_a_target_keeps_camera_girth_and_rate() -> None:
    masks = np.stack([box(10, 20)] * 26)
    camera = replace(CAMERA, size=(40, 20))
    target = silhouette_target(Silhouettes("box", 25.0, masks, camera), 1.1, 30.0)
    assert (target.fps, target.girth, len(target), target.last_seen) == (30.0, 1.1, 31, 30)
    assert target.camera is camera


def test_warming_up_compiles_what_evaluations_need(character: Character, clip: MotionClip) -> None:
    """A second variant would cost each worker of a first fit many seconds."""
    objective = objective_of(character, clip, image_of(character, clip), Weights(silhouette=1.0))
    assert objective.view is not None
    compile_silhouettes(objective.view)
    compiled = list(_distances.signatures)
    rollouts = rollouts_of(character, clip)
    terms_of(objective, rollouts)
    for name in ("positions", "orientations"):
        getattr(rollouts, name).setflags(write=False)
    terms_of(objective, rollouts)
    assert list(_distances.signatures) == compiled
