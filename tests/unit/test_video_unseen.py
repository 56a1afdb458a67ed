"""What is behind somebody who stays: the usual colour of a pixel, and whether it is the person's, on tiny drawn clips."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from video_scene import figure, noisy, overlap, painted, room, walk, write_video

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.extract import from_video
from mocap2ctrl.video.usual import next_colours, usual_colours

LARGE = (240, 180)
FRAMES = 40


def test_a_scene_that_shows_itself_for_moments_is_told_from_cloth_that_moves() -> None:
    rng = np.random.default_rng(2)
    behind, cloth = rng.uniform(40, 200, (40, 60, 3)), cv2.GaussianBlur(rng.uniform(0, 255, (40, 260, 3)), (0, 0), 1.5)
    frames = []
    for t in range(FRAMES):
        frame = cloth[:, 5 * t : 5 * t + 60].copy()
        if t % 5 < 2:
            frame[:, :20] = behind[:, :20]  # seen in two of five frames
        frame[:, 40:] = behind[:, 40:]  # seen always
        frames.append(np.clip(frame + rng.normal(0, 1, frame.shape), 0, 255).astype(np.uint8))
    usual = usual_colours(np.stack(frames))
    seen, worn, always = (usual.moves[5:-5, columns] for columns in (slice(4, 16), slice(26, 36), slice(46, 56)))
    assert np.mean(seen < -1.0) > 0.9
    assert np.mean(worn > 2.0) > 0.9
    assert np.max(np.abs(always)) < 0.5  # somebody can stand still
    assert np.median(np.abs(usual.picture - behind)[5:-5, 4:16]) < 3.0
    assert usual.steady[5:-5, 46:56].all()
    assert not usual.steady[5:-5, 26:36].any()


def test_flat_cloth_that_moves_is_not_taken_for_the_scene() -> None:
    rng = np.random.default_rng(3)
    behind, frames = rng.uniform(60, 190, (40, 60, 3)).astype(np.uint8), []
    for t in range(1, FRAMES):
        left, frame = 20 + round(6 * np.sin(0.7 * t)), behind.copy()
        frame[:, left : left + 24] = 12
        frames += noisy([frame], 1.0, t)
    moves = usual_colours(np.stack(frames)).moves
    assert np.min(moves[5:-5, 28:36]) > -1.0


def test_what_else_a_pixel_shows_is_found_beside_its_usual_colour() -> None:
    rng = np.random.default_rng(4)
    usual, other = (rng.uniform(low, low + 80, (30, 40, 3)) for low in (30, 140))
    frames = []
    for t in range(FRAMES):
        frame = usual.copy()
        if t % 4 == 0:
            frame[:, 20:] = other[:, 20:]
        if t in (12, 20):
            frame[:10, :20] = other[:10, :20]  # too seldom
        frames.append(np.clip(frame + rng.normal(0, 1, frame.shape), 0, 255).astype(np.uint8))
    images, where = np.stack(frames), np.ones((30, 40), bool)
    where[20:] = False
    found, there = next_colours(images, usual_colours(images), where)
    assert there[:20, 23:].all()
    assert not there[:, :17].any()
    assert not there[20:].any()
    assert np.median(np.abs(found.picture - other)[:18, 23:]) < 3.0
    assert np.median(np.abs(found.picture - usual)[22:]) < 3.0
    assert np.array_equal(np.flatnonzero(found.agree[:, 10, 30]), np.arange(0, FRAMES, 4))


def furnished(colour: tuple[int, int, int]) -> np.ndarray:
    """A room with a cupboard in somebody's reach."""
    picture = room(LARGE)
    picture[60:110, 160:185] = colour
    return picture


def jumping(scene: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """A figure that bobs and swings one arm, over the cupboard's edge at times."""
    images, masks = [], []
    for t in range(FRAMES):
        phase = 2 * np.pi * t / 20
        x, lower = 120 + 5 * np.sin(phase), 4 * np.cos(phase)
        mask = figure(x, LARGE, lower=lower).astype(np.uint8)
        shoulder = np.array([x, 74 + lower])
        hand = shoulder + 50 * np.array([np.sin(phase), np.cos(phase)])
        cv2.line(mask, np.rint(shoulder).astype(int), np.rint(hand).astype(int), 1, 9)
        images.append(painted(scene, mask > 0))
        masks.append(mask > 0)
    return noisy(images), np.stack(masks)


@pytest.mark.parametrize(("colour", "least"), [((200, 60, 50), 0.78), ((30, 40, 90), 0.84)], ids=["shirt", "trousers"])
def test_what_stands_behind_in_the_colours_of_the_person_is_no_part_of_it(
    colour: tuple[int, int, int], least: float, tmp_path: Path
) -> None:
    """And what shows itself at times where the person is mostly is in the picture of the scene."""
    scene = furnished(colour)
    images, masks = jumping(scene)
    found = from_video(write_video(tmp_path / "v.mp4", images), method="motion")
    first = round(found.start_s * found.fps)
    truth = masks[first : first + len(found.masks)]
    assert overlap(found.masks, truth) > least
    assert found.background is not None
    person_there = np.abs(found.background.astype(float) - scene).max(axis=2) > 15
    assert np.mean(person_there[truth.any(axis=0)]) < 0.21
    cupboard = np.zeros(truth.shape[1:], bool)
    cupboard[64:106, 164:181] = True
    assert np.mean(found.masks[:, cupboard] & ~truth[:, cupboard]) < 0.1


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
def test_who_stands_still_is_no_background(order: int, tmp_path: Path) -> None:
    images, masks = walk([*[60.0] * 40, *np.linspace(60, 160, 25)][::order], (240, 180))
    found = from_video(write_video(tmp_path / "v.mp4", images))
    assert found.method == "median"
    assert len(found.masks) == len(masks)
    assert overlap(found.masks, masks) > 0.8


def test_who_appears_from_nowhere_is_told(tmp_path: Path) -> None:
    images, _ = walk([*[None] * 25, *np.linspace(60, 180, 25)], (240, 180))
    found = from_video(write_video(tmp_path / "v.mp4", images), method="median")
    assert any("appears in the middle of the picture at 0.83 s" in warning for warning in found.warnings)
    images, _ = walk(np.linspace(60, 180, 25), (240, 180))
    assert not any("middle" in warning for warning in from_video(write_video(tmp_path / "w.mp4", images)).warnings)


def test_nothing_moves(tmp_path: Path) -> None:
    still = noisy([painted(room(LARGE), figure(120, LARGE))] * 20)
    with pytest.raises(VideoError, match="nothing moves in the clip"):
        from_video(write_video(tmp_path / "v.mp4", still), method="motion")
