"""A video that goes over to another scene: told when, and one scene of it is used; light and cameras that turn are no cuts."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from video_scene import figure, noisy, painted, room, walk, write_video

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.choice import PersonAt
from mocap2ctrl.video.cuts import keeps_its_place, scenes
from mocap2ctrl.video.extract import from_video

FPS, SIZE = 30.0, (160, 120)
ACROSS = np.linspace(40, 120, 30)


def shot(seed: int, level: int = 0) -> list[np.ndarray]:
    """Thirty frames of somebody who walks through a room of its own."""
    scene = np.clip(room(SIZE, seed).astype(int) + level, 0, 255).astype(np.uint8)
    return noisy([painted(scene, figure(x, SIZE)) for x in ACROSS], seed=seed)


def blended(a: np.ndarray, b: np.ndarray, frames: int) -> list[np.ndarray]:
    """A dissolve."""
    return [cv2.addWeighted(a, 1 - k / frames, b, k / frames, 0.0) for k in range(1, frames)]


def test_cuts_are_found_to_the_frame_and_dissolves_are_left_out() -> None:
    one, two, black = shot(1), shot(2, 50), [np.full((120, 160, 3), 8, np.uint8)] * 20
    assert scenes(np.stack(one + two), FPS) == [(0, 30), (30, 60)]
    assert scenes(np.stack(one + black + two), FPS) == [(0, 30), (30, 50), (50, 80)]
    (_, end), (begin, _) = scenes(np.stack(one + blended(one[-1], two[0], 8) + two), FPS)
    assert 27 <= end <= 31
    assert 36 <= begin <= 40


@pytest.mark.parametrize("what", ["nothing", "light", "flash", "turn", "near"])
def test_what_is_no_cut(what: str) -> None:
    images = np.stack(shot(1))
    if what == "light":
        images[15:] = np.clip(images[15:] * 0.5, 0, 255).astype(np.uint8)
    if what == "flash":
        images[15] = 250
    if what == "turn":
        wide = room((900, 120), 1)
        images = np.stack([wide[:, 24 * t : 24 * t + 160] for t in range(30)])
    if what == "near":  # a body of half the picture comes in fast
        images[15:, :, :90] = 200
    assert scenes(images, FPS) == [(0, 30)]


def test_the_longest_scene_of_a_video_is_used_and_told(tmp_path: Path) -> None:
    images, masks = walk([None] * 8 + list(np.linspace(35, 125, 40)) + [None] * 8)
    clip = write_video(tmp_path / "clip.mp4", shot(7, 50)[:20] + images)
    found = from_video(clip)
    assert "another scene at 0.67 s" in found.warnings[0]
    assert "0.67 to 2.53 s" in found.warnings[0]
    assert found.start_s == pytest.approx(28 / 30, abs=0.05)
    overlap = np.count_nonzero(found.masks & masks[8:48]) / np.count_nonzero(found.masks | masks[8:48])
    assert overlap > 0.85
    chosen = from_video(clip, person_at=PersonAt(80, 60, 0.3))
    assert "used is that of --person, 0.00 to 0.67 s" in chosen.warnings[0]
    with pytest.raises(VideoError, match=r"no moving person.*another scene at 1\.00 s"):
        from_video(write_video(tmp_path / "empty.mp4", shot(1) + noisy([room(SIZE, 4)] * 40)))


def test_a_still_camera_keeps_the_texture_in_its_place_and_one_that_turns_does_not() -> None:
    images = np.stack(shot(1))
    assert keeps_its_place(images)
    blocks = np.stack([cv2.resize(cv2.resize(i, (40, 30)), SIZE, interpolation=cv2.INTER_NEAREST) for i in images])
    assert keeps_its_place(blocks)
    wide = room((900, 120), 1)
    assert not keeps_its_place(np.stack([wide[:, 24 * t : 24 * t + 160] for t in range(30)]))
    assert not keeps_its_place(np.full((5, 120, 160, 3), 90, np.uint8))
