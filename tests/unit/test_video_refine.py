"""The second look: shadows that hang on the person go, limbs and soles stay, and outlines lie where a pixel is half covered."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from video_scene import figure, noisy, overlap, painted, room, write_png, write_video

from mocap2ctrl.types import Masks
from mocap2ctrl.video.appearance import learn_appearance, log_factors
from mocap2ctrl.video.background import build_background, smoothed
from mocap2ctrl.video.extract import ExtractedMasks, from_video
from mocap2ctrl.video.refine import (
    at_measured_share,
    linear_light,
    with_joints,
    with_neighbours,
    with_soles,
    without_doubtful_pieces,
)

SIZE = (320, 240)
PLACES = np.linspace(70, 220, 24)
SOLE_PX = 3


def shadow_of(x: float) -> np.ndarray:
    """(H, W) factors of a soft shadow: slanted across the floor, with knots, and dark where it meets the feet."""
    factor = np.ones(SIZE[::-1], np.float32)
    feet = round(0.85 * SIZE[1])
    outline = np.array([[x - 18, feet - 4], [x + 60, feet - 26], [x + 66, feet - 12], [x + 16, feet + 3]])
    cv2.fillPoly(factor, [np.round(outline).astype(np.int32)], 0.62)
    cv2.ellipse(factor, (round(x + 58), feet - 18), (12, 9), 0, 0, 360, 0.62, -1)
    contact = np.ones_like(factor)
    cv2.ellipse(contact, (round(x) + 4, feet + 1), (22, 4), 0, 0, 360, 0.6, -1)
    return np.asarray(cv2.GaussianBlur(factor, (0, 0), 2.5) * cv2.GaussianBlur(contact, (0, 0), 1.5))


def seen(scene: np.ndarray, x: float) -> tuple[np.ndarray, Masks]:
    """A frame with a figure in grey trousers with pale soles, and its shadow; and its mask."""
    mask = figure(x, SIZE)
    ground = scene * shadow_of(x)[..., None] ** np.array([1.04, 1.0, 0.96])
    frame = painted(ground.astype(np.uint8), mask)
    rows = np.flatnonzero(mask.any(axis=1))
    legs, soles = mask.copy(), mask.copy()
    legs[: int(rows[0] + 0.55 * np.ptp(rows))] = False
    soles[: rows[-1] + 1 - SOLE_PX] = False
    frame[legs] = (74, 76, 84)
    frame[soles] = (205, 200, 190)
    return frame, mask


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExtractedMasks, Masks]:
    """What is made of a walk in the sun, and the truth."""
    folder, scene = tmp_path_factory.mktemp("sun"), room(SIZE)
    frames, masks = zip(*[seen(scene, x) for x in PLACES], strict=True)
    plate = write_png(folder / "plate.png", scene)
    result = from_video(write_video(folder / "sun.mp4", noisy(frames)), plate=plate)
    assert len(result.masks) == len(PLACES)
    return result, np.stack(masks)


class TestInTheSun:
    def test_no_shadow_hangs_on_the_person(self, found: tuple[ExtractedMasks, Masks]) -> None:
        masks, truth = found[0].masks, found[1]
        near = np.stack([cv2.dilate(m.astype(np.uint8), np.ones((5, 5))) > 0 for m in truth])
        assert np.count_nonzero(masks & ~near) < 0.004 * np.count_nonzero(truth)

    def test_the_lowest_row_is_the_soles(self, found: tuple[ExtractedMasks, Masks]) -> None:
        lowest = [[np.flatnonzero(m.any(axis=1))[-1] for m in masks] for masks in (found[0].masks, found[1])]
        error = np.subtract(*lowest)
        assert abs(error.mean()) < 0.5
        assert np.abs(error).max() <= 2

    def test_the_area_is_unbiased(self, found: tuple[ExtractedMasks, Masks]) -> None:
        masks, truth = found[0].masks, found[1]
        assert np.count_nonzero(masks) / np.count_nonzero(truth) == pytest.approx(1.0, abs=0.02)
        assert overlap(masks, truth) > 0.95


def test_evidence_tells_the_person_from_the_scene_and_from_its_shadow() -> None:
    scene = room(SIZE)
    frames, masks = zip(*[seen(scene, x) for x in PLACES[::3]], strict=True)
    images = np.stack(noisy(frames))
    background = build_background(scene.astype(np.float32), images)
    looks = learn_appearance(background, images, np.stack(masks), both_ways=False)
    evidence = looks.evidence(smoothed(images[0]), background.colour)
    around = cv2.dilate(masks[0].astype(np.uint8), np.ones((7, 7))) > 0
    shadow = (shadow_of(PLACES[0]) < 0.7) & ~around
    inside = cv2.erode(masks[0].astype(np.uint8), np.ones((7, 7))) > 0
    assert np.mean(evidence[inside] > -2.0) > 0.95
    assert np.mean(evidence[shadow] < -2.0) > 0.9
    assert np.mean(evidence[~around & (shadow_of(PLACES[0]) > 0.99)] < -2.0) > 0.99


@pytest.mark.parametrize("both_ways", [False, True])
def test_light_where_the_scene_has_a_shadow_is_a_shadow_only_if_it_may_be(both_ways: bool) -> None:
    scene = room(SIZE)
    images = np.stack([seen(scene, x)[0] for x in PLACES[:3]])
    background = build_background(scene.astype(np.float32), images)
    looks = learn_appearance(background, images, np.stack([figure(x, SIZE) for x in PLACES[:3]]), both_ways=both_ways)
    colour = np.full((4, 4, 3), 120, np.float32)
    odds = looks.evidence(colour, 0.6 * colour)
    assert np.all(odds < 0) if both_ways else np.all(odds > 0)


def test_factors_are_of_intensity_and_of_tint() -> None:
    behind = np.array([[[100.0, 90.0, 80.0]]], np.float32)
    factor, red, blue = log_factors(0.5 * behind, behind)
    np.testing.assert_allclose([factor.item(), red.item(), blue.item()], [np.log(0.5), 0.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("levels", [(20.0, 220.0), (220.0, 20.0)])
def test_the_outline_lies_where_the_person_is_most_of_the_light(levels: tuple[float, float]) -> None:
    """A pixel's share is of light, which is far from that of the grey levels."""
    person, scene = levels
    for share, wanted in ((0.2, False), (0.6, True)):
        light = share * (person / 255) ** 2.2 + (1 - share) * (scene / 255) ** 2.2
        row = np.full(24, scene, np.float32)
        row[12:] = person
        row[11] = 255 * light ** (1 / 2.2)
        frame = np.tile(row[None, :, None], (24, 1, 3)).astype(np.float32)
        first = np.zeros((24, 24), bool)
        first[:, 11 if not wanted else 12 :] = True  # wrong by a pixel
        exact = at_measured_share(first, linear_light(frame), linear_light(np.full_like(frame, scene)))
        assert np.all(exact[:, 11] == wanted)
        assert exact[:, 12:].all()
        assert not exact[:, :11].any()


def test_thin_pieces_stay_only_where_their_colour_speaks_for_a_limb() -> None:
    mask = np.zeros((60, 80), bool)
    mask[10:50, 20:40] = True
    mask[20:23, 40:60] = mask[44:47, 40:60] = True
    mask[40:52, 60:75] = True
    odds = np.where(mask, np.float32(4.0), np.float32(-4.0))
    odds[40:52, 40:75] = np.where(mask[40:52, 40:75], np.float32(0.5), np.float32(-4.0))
    kept = without_doubtful_pieces(mask, odds, 3)
    assert kept[20:23, 40:60].all()
    assert not kept[40:52, 42:].any()
    assert kept[10:50, 20:38].all()


def test_what_joins_two_large_pieces_is_given_back_and_nothing_else() -> None:
    first = np.zeros((60, 40), bool)
    first[5:55, 10:20] = True
    first[50:55, 20:36] = True
    mask = first.copy()
    mask[25:32] = False
    mask[:, 20:] = False
    joined = with_joints(mask, first)
    assert joined[25:32, 11:19].all()
    assert not joined[:, 21:].any()
    np.testing.assert_array_equal(with_joints(first, first), first)


def strip_of(*light: float) -> tuple[Masks, Masks, np.ndarray]:
    """A shoe, a first look that goes on below it, and the light of the rows from the shoe's last on."""
    first = np.zeros((30, 20), bool)
    first[5 : 10 + len(light), 4:16] = True
    mask = first.copy()
    mask[10:] = False
    factor = np.ones(first.shape, np.float32)
    factor[5:10] = 0.3
    factor[10 : 10 + len(light)] = np.array(light, np.float32)[:, None]
    return mask, first, factor


def test_a_pale_sole_above_a_dark_line_is_given_back_to_the_line() -> None:
    mask, first, light = strip_of(0.82, 0.8, 0.66, 0.6, 0.75, 0.9)
    found = with_soles(mask, first, light, 8)
    assert found[10:14, 4:16].all()
    assert np.count_nonzero(found & ~mask) == 4 * 12


@pytest.mark.parametrize(
    "light",
    [
        pytest.param((0.5, 0.58, 0.66, 0.75, 0.9), id="a shadow, darkest where it meets the shoe"),
        pytest.param((0.8, 0.79, 0.8, 0.78, 0.8), id="even light"),
        pytest.param((), id="nothing below"),
    ],
)
def test_a_shadow_below_a_shoe_is_no_sole(light: tuple[float, ...]) -> None:
    mask, first, factor = strip_of(*light)
    np.testing.assert_array_equal(with_soles(mask, first, factor, 8), mask)


def test_a_dark_line_farther_down_than_a_sole_is_none() -> None:
    mask, first, light = strip_of(*[0.8] * 6, 0.5, 0.7)
    assert np.count_nonzero(with_soles(mask, first, light, 8) & ~mask) == 7 * 12
    np.testing.assert_array_equal(with_soles(mask, first, light, 5), mask)


def test_neighbours_of_the_same_colour_agree_and_others_do_not_matter() -> None:
    colour = np.zeros((20, 20, 3), np.float32)
    colour[:, 10:] = 200.0
    own = np.where(np.arange(20)[None, :] < 10, np.float32(-1.0), np.float32(1.0)) * np.ones((20, 1), np.float32)
    own[10, 4], own[10, 15] = 0.5, -0.5
    before = own.copy()
    result = with_neighbours(own, colour)
    assert np.all(result[:, :10] < 0)
    assert np.all(result[:, 10:] > 0)
    np.testing.assert_array_equal(own, before)
