"""How the empty scene is found, method by method: which is chosen, and how well the masks fit the truth on tiny clips."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from video_scene import SIZE, figure, noisy, overlap, painted, room, walk, write_png, write_video

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.backdrop import plain_backdrop
from mocap2ctrl.video.extract import ExtractedMasks, from_video
from mocap2ctrl.video.light import steady_light
from mocap2ctrl.video.medians import median_where

LARGE = (240, 180)
HERE = 120.0


def seen(found: ExtractedMasks, truth: Masks) -> float:
    first = round(found.start_s * found.fps)
    return overlap(found.masks, truth[first : first + len(found.masks)])


def jumping_jacks(scene: np.ndarray, frames: int = 40) -> tuple[list[np.ndarray], Masks]:
    """A figure that bobs on the spot and swings its arms."""
    images, masks = [], []
    for t in range(frames):
        phase = 2 * np.pi * t / 20
        mask = figure(HERE + 4 * np.sin(phase), LARGE, lower=4 * np.cos(phase)).astype(np.uint8)
        shoulder = np.array([HERE + 4 * np.sin(phase), 74 + 4 * np.cos(phase)])
        for side in (-1, 1):
            hand = shoulder + 46 * np.array([side * np.cos(phase), np.sin(phase)])
            cv2.line(mask, np.rint(shoulder).astype(int), np.rint(hand).astype(int), 1, 9)
        images.append(painted(scene, mask > 0))
        masks.append(mask > 0)
    return noisy(images), np.stack(masks)


def studio() -> np.ndarray:
    """A green wall, unevenly lit, above a grey floor."""
    width, height = LARGE
    picture = np.full((height, width, 3), (60, 170, 80), np.float32)
    picture[int(0.75 * height) :] = (120, 120, 125)
    return np.asarray(picture * np.linspace(0.85, 1.1, width)[None, :, None], np.uint8)


@pytest.mark.parametrize("method", ["median", "mog2"])
def test_a_walk_without_an_empty_frame(method: str, tmp_path: Path) -> None:
    images, masks = walk(np.linspace(35, 125, 30))
    found = from_video(write_video(tmp_path / "v.mp4", images), method=method)
    assert found.method == method
    assert seen(found, masks) > (0.9 if method == "median" else 0.7)


def test_the_median_is_chosen_for_it(tmp_path: Path) -> None:
    images, _ = walk(np.linspace(35, 125, 30))
    assert from_video(write_video(tmp_path / "v.mp4", images)).method == "median"


def test_empty_frames_and_plates(tmp_path: Path) -> None:
    images, masks = walk([*[None] * 8, *np.linspace(-20, 130, 30)])
    video = write_video(tmp_path / "v.mp4", images)
    found = from_video(video)
    assert found.method == "empty"
    assert seen(found, masks) > 0.9
    found = from_video(video, plate=write_png(tmp_path / "plate.png", room()))
    assert found.method == "plate"
    assert seen(found, masks) > 0.9


def test_a_studio_in_which_the_person_stays_is_keyed(tmp_path: Path) -> None:
    images, masks = jumping_jacks(studio())
    found = from_video(write_video(tmp_path / "v.mp4", images))
    assert found.method == "key"
    assert seen(found, masks) > 0.9
    assert any("plain backdrop" in note for note in found.notes)


def test_tiles_under_the_feet_are_no_plain_backdrop(tmp_path: Path) -> None:
    """However plain the wall is; and that there is little on it does not make the body's motion the camera's."""
    width, height = LARGE
    scene, floor = np.full((height, width, 3), (205, 200, 190), np.float32), int(0.9 * height)
    scene[height // 2 :] = (120, 90, 60)
    down, across = np.mgrid[: height - floor, :width]
    scene[floor:] = np.where(((across // 14 + down // 5) % 2 == 0)[..., None], 150.0, 102.0)
    scene = np.asarray(scene * np.linspace(0.92, 1.05, width)[None, :, None], np.uint8)
    images, masks = jumping_jacks(scene)
    found = from_video(write_video(tmp_path / "v.mp4", images))
    assert found.method == "motion"
    assert any("of the height there is more beside it" in note for note in found.notes)
    assert not any("shakes" in note for note in found.notes)
    assert seen(found, masks) > 0.6


def test_a_person_who_stays_before_an_ordinary_wall(tmp_path: Path) -> None:
    images, masks = jumping_jacks(room(LARGE))
    found = from_video(write_video(tmp_path / "v.mp4", images))
    assert found.method == "motion"
    assert seen(found, masks) > 0.8
    assert any("unsure" in warning for warning in found.warnings)


def test_leaves_that_move_and_a_mixture(tmp_path: Path) -> None:
    _, masks = walk(np.linspace(35, 125, 40))
    across = np.arange(SIZE[0], dtype=np.float32)[None] + np.zeros((SIZE[1], 1), np.float32)
    down = np.arange(SIZE[1], dtype=np.float32)[:, None] + np.zeros((1, SIZE[0]), np.float32)
    frames = []
    for t, mask in enumerate(masks):
        shift = 4.0 * np.sin(2 * np.pi * t / 9 + across / 10) * (down < 80)
        moved = cv2.remap(room(), (across + shift).astype(np.float32), down, cv2.INTER_LINEAR)
        frames.append(painted(moved, mask))
    found = from_video(write_video(tmp_path / "v.mp4", noisy(frames)), method="mog2")
    assert found.method == "mog2"
    assert seen(found, masks) > 0.7


def test_a_method_that_is_none_is_refused_before_anything_is_read() -> None:
    with pytest.raises(VideoError, match="'magic'; allowed are plate, empty, median, mog2, key, motion"):
        from_video("none.mp4", method="magic")


class TestLight:
    def test_a_gain_is_undone_in_spite_of_a_person(self) -> None:
        scene = np.clip(room(), 40, 180)
        still = [painted(scene, figure(x)) for x in np.linspace(40, 120, 9)]
        gains = 1.0 + 0.25 * np.sin(np.arange(9))
        images = np.stack([np.clip(g * i, 0, 255).astype(np.uint8) for g, i in zip(gains, still, strict=True)])
        result, change = steady_light(images)
        middle = float(np.median(gains))
        away = ~np.any([figure(x) for x in np.linspace(40, 120, 9)], axis=0)
        wrong = np.abs(result.astype(float) - middle * np.stack(still))[:, away].mean()
        assert wrong < 2.0
        assert change == pytest.approx(np.abs(np.log(middle / gains)).max(), abs=0.05)

    def test_a_clouds_edge_is_undone(self) -> None:
        scene, width = np.clip(room(), 60, 220), SIZE[0]
        shade = [1 - 0.35 / (1 + np.exp(-(t * 30 - np.arange(width)) / 18.0)) for t in range(-2, 8)]
        images = np.stack([(scene * s[None, :, None]).astype(np.uint8) for s in shade])
        result, _ = steady_light(images)
        before, after = (np.ptp(i.astype(float).mean(axis=(1, 3)), axis=0).mean() for i in (images, result))
        assert after < 0.3 * before

    def test_steady_frames_stay_as_they_are(self) -> None:
        images = np.stack([room()] * 4)
        result, change = steady_light(images)
        assert result is images
        assert change == 0.0


def test_a_backdrop_is_continued_row_by_row() -> None:
    person = np.zeros(LARGE[::-1], bool)
    person[30:160, 90:150] = True
    picture = studio().astype(np.float32)
    covered = picture.copy()
    covered[person] = (200, 60, 50)
    found = plain_backdrop(covered, person)
    assert found.plain > 0.99
    assert np.abs(found.picture - picture).max() < 4
    assert plain_backdrop(room(LARGE).astype(np.float32), person).plain < 0.7


def test_median_of_the_frames_that_are_wanted() -> None:
    images = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 3), np.uint8)
    wanted = np.ones((5, 2, 2), bool)
    wanted[2:, 0, 0] = False
    wanted[:, 1, 1] = False
    result = median_where(images, wanted)[..., 0]
    np.testing.assert_array_equal(result, [[0.5, 2.0], [2.0, 2.0]])
