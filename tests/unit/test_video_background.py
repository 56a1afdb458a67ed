"""The background model: what it measures, what it forgives (exposure, shifts, shadows) and where its picture comes from."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from video_scene import SIZE, figure, noisy, painted, room, walk, write_png

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.background import (
    COLOUR_FLOOR,
    GRADIENT_FLOOR,
    THRESHOLD,
    build_background,
    features,
    smoothed,
    squared_distance,
)
from mocap2ctrl.video.decode import Footage
from mocap2ctrl.video.empties import empty_middle, empty_stretch, shows_somebody
from mocap2ctrl.video.masks import bridged, clean, half_covered, restored
from mocap2ctrl.video.medians import masked_median
from mocap2ctrl.video.motion import moving_bodies
from mocap2ctrl.video.shadows import cast_shadow
from mocap2ctrl.video.sources import Scene, empty_scene

NOBODY: list[float | None] = [None]


def footage(images: list[np.ndarray]) -> Footage:
    return Footage(np.stack(images), 30.0, 0.0, SIZE, 30.0)


def scene_of(clip: Footage, video: Path, plate: Path | None, method: str | None) -> Scene:
    return empty_scene(clip, moving_bodies(clip.images, clip.fps), video, plate, method)


class TestModel:
    def test_features_are_colour_and_the_intensitys_gradient(self) -> None:
        ramp = np.zeros((20, 30, 3), np.float32)
        ramp += 3.0 * np.arange(30)[None, :, None] + 2.0 * np.arange(20)[:, None, None]
        inner = features(ramp)[2:-2, 2:-2]
        np.testing.assert_allclose(inner[..., :3], ramp[2:-2, 2:-2])
        np.testing.assert_allclose(inner[..., 3], 3.0, rtol=1e-4)
        np.testing.assert_allclose(inner[..., 4], 2.0, rtol=1e-4)

    def test_the_covariance_is_the_noises_whatever_the_person_does(self) -> None:
        still = np.full((120, 160, 3), 128, np.uint8)
        rng = np.random.default_rng(0)
        common = rng.normal(0, 8, (30, 120, 160, 1)) + rng.normal(0, 2, (30, 120, 160, 3))
        images = np.clip(128 + common, 0, 255).astype(np.uint8)
        alone = build_background(still.astype(np.float32), images).covariance
        images[:, 40:100, 60:90] = (250, 20, 20)
        with_person = build_background(still.astype(np.float32), images).covariance
        np.testing.assert_allclose(with_person, alone, rtol=0.15, atol=0.6)
        blurred = smoothed(images[0, :, 100:])
        np.testing.assert_allclose(alone[0, 0], blurred[..., 0].var() + COLOUR_FLOOR**2, rtol=0.15)
        assert alone[0, 1] > 0.5 * alone[0, 0] - COLOUR_FLOOR**2  # channels share most of it

    def test_the_squared_distance_is_mahalanobis(self) -> None:
        scene = room()
        background = build_background(scene.astype(np.float32), np.stack(noisy([scene] * 10)))
        frame = painted(scene, figure(80))
        distance, colour = squared_distance(background, frame)
        offset = (features(colour) - background.mean).reshape(-1, 5).astype(float)
        expected = np.einsum("ni,ij,nj->n", offset, np.linalg.inv(background.covariance), offset) / THRESHOLD
        np.testing.assert_allclose(distance.ravel(), expected, rtol=2e-3, atol=1e-3)

    def test_a_scene_without_noise_has_the_floor(self) -> None:
        scene = room()
        covariance = build_background(scene.astype(np.float32), np.stack([scene] * 5)).covariance
        np.testing.assert_allclose(np.diag(covariance), [COLOUR_FLOOR**2] * 3 + [GRADIENT_FLOOR**2] * 2, rtol=1e-3)


class TestShadows:
    """A figure of which a slanted shadow falls on the floor: the scene, darker and a little bluer."""

    shadow = np.zeros((120, 160), bool)

    @pytest.fixture(autouse=True)
    def _cast(self) -> None:
        outline = np.zeros((120, 160), np.uint8)
        cv2.fillPoly(outline, [np.array([[88, 100], [150, 94], [150, 112], [88, 106]])], 1)
        self.shadow = (outline > 0) & ~figure(80)

    def found(self, frame: np.ndarray) -> np.ndarray:
        scene = room()
        background = build_background(scene.astype(np.float32), np.stack(noisy([scene] * 10)))
        distance, colour = squared_distance(background, frame)
        return cast_shadow(background, (slice(None), slice(None)), distance, colour)

    @pytest.mark.parametrize("factor", [0.6, 0.75])
    def test_is_found_and_the_figure_is_not(self, factor: float) -> None:
        frame = painted(room(), figure(80)).astype(float)
        frame[self.shadow] *= (factor * 0.97, factor, factor * 1.03)
        found = self.found(np.clip(frame, 0, 255).astype(np.uint8))
        inner = cv2.erode(self.shadow.astype(np.uint8), np.ones((5, 5))) > 0
        assert np.mean(found[inner]) > 0.9
        assert np.mean(found[figure(80)]) < 0.05

    def test_paint_of_the_same_shape_is_none(self) -> None:
        frame = painted(room(), figure(80))
        frame[self.shadow] = (40, 90, 40)
        assert np.mean(self.found(frame)[self.shadow]) < 0.05

    def test_grey_cloth_without_the_scenes_texture_is_none(self) -> None:
        frame = painted(room(), figure(80))
        frame[self.shadow] = (70, 66, 63)
        assert np.mean(self.found(frame)[self.shadow]) < 0.25

    def test_a_dark_piece_inside_the_body_is_none(self) -> None:
        frame = painted(room(), figure(80))
        frame[60:75, 76:85] = (0.6 * room()[60:75, 76:85]).astype(np.uint8)
        assert not self.found(frame)[62:73, 78:83].any()


class TestCleaning:
    def test_specks_go_and_small_holes_are_filled(self) -> None:
        distance = np.where(figure(80), 4.0, 0.0).astype(np.float32)
        distance[5, 5] = 9.0
        distance[60, 80] = 0.0
        mask = clean(distance, np.zeros_like(figure(80)), distance.size)
        assert not mask[5, 5]
        assert mask[60, 80]
        assert np.mean(mask == figure(80)) > 0.995

    def test_weak_pixels_count_only_next_to_strong_ones(self) -> None:
        distance = np.zeros((60, 80), np.float32)
        distance[10:30, 10:30] = 1.5
        distance[10:30, 50:70] = 1.5
        distance[20, 60] = 3.0
        mask = clean(distance, np.zeros((60, 80), bool), distance.size)
        assert not mask[:, :40].any()
        assert mask[12:28, 52:68].all()

    def test_a_rim_of_which_less_than_half_is_body_goes(self) -> None:
        difference = np.zeros((40, 40), np.float32)
        difference[10:30, 10:30] = 100.0
        difference[10:30, 30], difference[10:30, 9] = 30.0, 70.0
        mask = half_covered(difference > 0, np.zeros((40, 40), bool), difference)
        assert not mask[12:28, 30].any()
        assert mask[12:28, 9].all()

    def test_a_frames_gap_in_time_is_bridged_and_nothing_taken_away(self) -> None:
        masks = np.zeros((5, 4, 4), bool)
        masks[0], masks[2, 0], masks[4] = True, True, True
        expected = masks.copy()
        expected[1, 0] = expected[3, 0] = True
        np.testing.assert_array_equal(bridged(masks), expected)

    def test_legs_that_are_cut_off_in_one_frame_are_given_back_and_a_passer_by_is_not(self) -> None:
        whole = np.stack([figure(x) for x in (60, 63, 66)])
        cut, found = whole.copy(), whole.copy()
        cut[1, 60:] = False
        found[1, 55:63] = False
        found[1, 40:60, 130:140] = True
        cut[1, 55:63] = False
        result = restored(cut, found)
        assert result[1, 63:].sum() == whole[1, 63:].sum()
        assert not result[1, :, 130:].any()
        np.testing.assert_array_equal(result[[0, 2]], cut[[0, 2]])

    def test_a_lifted_leg_that_is_cut_off_for_some_frames_is_given_back(self) -> None:
        """A runner's, before a wall like their trousers; what lies on the ground, or stays where it is, is not theirs."""
        found = np.zeros((16, 120, 250), bool)
        for t, at in enumerate(range(60, 220, 10)):
            found[t, 20:100, at : at + 20] = True
            found[t, 62:74, at - 30 : at] = True  # the leg, joined to the body
        person = found.copy()
        for t, gap in ((4, 8), (5, 12), (6, 8)):
            cut = slice(50 + 10 * t, 60 + 10 * t)
            person[t, :, : cut.stop] = False
            found[t, :, cut.stop - gap : cut.stop] = False
            found[t, 96:99, cut.start - 20 : cut.start] = True  # a shadow
        found[:, 2:12, 235:245] = True
        result = restored(person, found)
        for t in (4, 5, 6):
            at = 60 + 10 * t
            np.testing.assert_array_equal(result[t, 62:74, :at], found[t, 62:74, :at])
            assert result[t, 62:74, :at].any()
            assert not result[t, 96:99, : at - 10].any()
        assert not result[:, :12].any()
        np.testing.assert_array_equal(result[[*range(4), *range(7, 16)]], person[[*range(4), *range(7, 16)]])

    def test_a_limb_that_stays_cut_off_is_given_back_for_a_while(self) -> None:
        found = np.zeros((16, 120, 250), bool)
        for t, at in enumerate(range(60, 220, 10)):
            found[t, 20:100, at : at + 20] = True
            found[t, 62:74, at - 30 : at] = True
        person = found.copy()
        for t in range(1, 16):
            person[t, :, : 60 + 10 * t] = False
            found[t, :, 52 + 10 * t : 60 + 10 * t] = False
        given = (restored(person, found) & ~person).any(axis=(1, 2))
        assert given.tolist() == [False, True, True, True, *[False] * 12]


class TestSources:
    crossing = (*[None] * 8, *np.linspace(-20, 180, 40))

    def test_empty_frames_are_found_at_both_ends(self) -> None:
        images, masks = walk(self.crossing)
        seen = masks.any(axis=(1, 2))
        first = empty_stretch(np.stack(images), 30.0)
        assert first is not None
        assert first[0] == 0
        assert not seen[slice(*first)].any()
        assert first[1] >= 6
        last = empty_stretch(np.stack(images[::-1]), 30.0)
        assert last is not None
        assert last[1] == len(images)

    def test_empty_frames_are_found_between_two_visits(self) -> None:
        images, masks = walk([*np.linspace(80, 200, 18), *[None] * 14, *np.linspace(-20, 80, 15)])
        seen = masks.any(axis=(1, 2))
        middle = empty_middle(moving_bodies(np.stack(images), 30.0), 30.0)
        assert middle is not None
        assert not seen[slice(*middle)].any()
        scene = scene_of(footage(images), Path("v.mp4"), None, None)
        assert scene.method == "empty"

    def test_frames_that_hold_somebody_who_stands_still_are_told_by_where_the_outline_is(self) -> None:
        """A still stretch next to somebody at the border: but the one who walks off, or marches, was there all the time."""
        waits, _ = walk((*[60.0] * 10, *np.linspace(60, 150, 30)))
        marches, _ = walk((*[60.0] * 10, *(60 + 6 * np.sin(np.arange(30)))))
        crossing, _ = walk(self.crossing)
        stays, _ = walk((*[None] * 8, *np.linspace(-20, 60, 16), *(60 + 3 * np.sin(np.arange(30)))))
        for images, end, expected in ((waits, 9, True), (marches, 9, True), (crossing, 7, False), (stays, 7, False)):
            clip = np.stack(images).astype(np.float32)
            assert shows_somebody(np.median(clip[:end], axis=0), np.stack(images[end:])) == expected

    def test_somebody_who_stops_in_the_middle_is_not_an_empty_stretch(self) -> None:
        images, _ = walk([*np.linspace(40, 80, 18), *[80.0] * 14, *np.linspace(80, 120, 15)])
        assert empty_middle(moving_bodies(np.stack(images), 30.0), 30.0) is None

    def test_somebody_who_stands_still_at_first_is_not_an_empty_stretch(self) -> None:
        images, _ = walk([*[40.0] * 15, *np.linspace(40, 130, 30)])
        assert empty_stretch(np.stack(images), 30.0) is None

    def test_the_median_leaves_a_body_out_that_moves_on_the_spot_for_most_of_the_clip(self) -> None:
        images, _ = walk([*np.linspace(30, 100, 20), *(100 + 5 * np.sin(np.arange(40)))])
        scene = scene_of(footage(images), Path("v.mp4"), None, "median")
        plain = np.median(np.stack(images), axis=0)
        body = figure(100)
        wrong = [np.abs(p - room().astype(float)).max(axis=-1)[body].mean() for p in (plain, scene.picture)]
        assert wrong[0] > 60
        assert wrong[1] < 0.65 * wrong[0]

    def test_masked_median(self) -> None:
        images = np.full((9, 4, 4, 3), 10, np.uint8)
        images[3:, 1, 1] = 200
        covered = np.zeros((9, 4, 4), bool)
        covered[3:, 1, 1] = True
        covered[1:, 2, 2] = True
        picture, hidden = masked_median(images, covered)
        np.testing.assert_array_equal(picture[1, 1], 10)
        assert np.argwhere(hidden).tolist() == [[2, 2]]

    def test_the_order_is_plate_empty_median_and_each_says_so(self, tmp_path: Path) -> None:
        images, _ = walk(self.crossing)
        video = tmp_path / "v.mp4"
        assert scene_of(footage(images), video, None, None).method == "empty"
        assert scene_of(footage(images[18:38]), video, None, None).method == "median"
        beside = write_png(tmp_path / "v.background.png", room())
        scene = scene_of(footage(images), video, None, None)
        assert (scene.method, str(beside) in scene.reason) == ("plate", True)
        np.testing.assert_allclose(scene.picture.mean(), room().mean(), rtol=0.02)
        assert scene_of(footage(images), video, None, "median").method == "median"
        given = write_png(tmp_path / "given.png", room())
        assert str(given) in scene_of(footage(images), video, given, None).reason

    def test_refused(self, tmp_path: Path) -> None:
        inside, _ = walk(list(np.linspace(40, 120, 20)))
        video = tmp_path / "v.mp4"
        with pytest.raises(VideoError, match=r"no clean plate; .*v\.background\.png"):
            scene_of(footage(inside), video, None, "plate")
        with pytest.raises(VideoError, match="no empty frames"):
            scene_of(footage(inside), video, None, "empty")
        with pytest.raises(VideoError, match="plate, empty, median, mog2, key, motion"):
            scene_of(footage(inside), video, None, "magic")
        with pytest.raises(VideoError, match=r"none\.png: cannot be read"):
            scene_of(footage(inside), video, tmp_path / "none.png", None)
        (tmp_path / "bad.png").write_bytes(b"nothing")
        with pytest.raises(VideoError, match=r"bad\.png: is not a picture"):
            scene_of(footage(inside), video, tmp_path / "bad.png", None)
        wide = write_png(tmp_path / "wide.png", room((200, 100)))
        with pytest.raises(VideoError, match=r"200x100 pixels, the video 160x120"):
            scene_of(footage(inside), video, wide, None)
