"""Empty frames outside of the part of a video that is used, on tiny drawn clips: somebody comes, does jumping jacks, and goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_video_methods import HERE, LARGE, jumping_jacks
from video_scene import figure, noisy, overlap, painted, room, write_video

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.extract import from_video

COMES, STAYS = 45, 40
PART = (COMES / 30, (COMES + STAYS) / 30)


def coming_and_going() -> tuple[list[np.ndarray], Masks]:
    """Nobody, somebody who walks up, jumping jacks, who walks away; and the exact masks of the jacks."""
    jacks, masks = jumping_jacks(room(LARGE))
    comes = [None] * 15 + list(np.linspace(-20, HERE, 30))
    goes = list(np.linspace(HERE, LARGE[0] + 20, 30)) + [None] * 5
    ways = [
        [room(LARGE) if x is None else painted(room(LARGE), figure(x, LARGE)) for x in way] for way in (comes, goes)
    ]
    return [*noisy(ways[0]), *jacks, *noisy(ways[1])], masks


def test_the_scene_is_taken_from_before_and_after_the_part(tmp_path: Path) -> None:
    images, masks = coming_and_going()
    video = write_video(tmp_path / "v.mp4", images)
    found = from_video(video, time_range=PART)
    assert found.method == "empty"
    (note,) = (n for n in found.notes if "outside of the part" in n)
    assert "from 0.00 to" in note
    assert len(found.masks) == STAYS
    assert overlap(found.masks, masks) > 0.9
    assert not any("unsure" in warning for warning in found.warnings)
    insisted = from_video(video, time_range=PART, method="empty")
    np.testing.assert_array_equal(insisted.masks, found.masks)


@pytest.mark.parametrize(
    "part", [(0.0, PART[1]), (PART[1] - 0.1, PART[1]), (PART[0], 9.0)], ids=["start", "short", "end"]
)
def test_parts_at_the_ends_of_the_file_and_short_ones(part: tuple[float, float], tmp_path: Path) -> None:
    found = from_video(write_video(tmp_path / "v.mp4", coming_and_going()[0]), time_range=part)
    assert found.method == "empty"
    assert len(found.masks) >= 3


def test_times_of_slow_motion(tmp_path: Path) -> None:
    """Shot at 60 frames a second, played at 30: the part is named in the file's time, the scene's time is real."""
    images, _ = coming_and_going()
    found = from_video(write_video(tmp_path / "v.mp4", images), time_range=PART, slowmo=2.0)
    assert found.start_s == pytest.approx(PART[0] / 2.0, abs=1e-3)
    assert any("from 0.00 to 0." in note and "outside of the part" in note for note in found.notes)


def test_a_camera_that_is_put_down_first_shows_another_scene(tmp_path: Path) -> None:
    images, masks = coming_and_going()
    images[:30] = [np.roll(image, 3 * (30 - t), axis=(0, 1)) for t, image in enumerate(images[:30])]
    images[COMES + STAYS + 10 :] = [np.roll(images[-1], 5 * t, axis=1) for t in range(len(images) - COMES - STAYS - 10)]
    found = from_video(write_video(tmp_path / "v.mp4", images), time_range=PART)
    assert found.method == "motion"
    assert overlap(found.masks, masks) > 0.75


def test_a_camera_that_is_picked_up_and_another_scene_leave_the_rest_to_look_at(tmp_path: Path) -> None:
    """A title first, then nobody, somebody who comes, the part, and a camera that is picked up."""
    images, masks = coming_and_going()
    title = noisy([np.full_like(images[0], 30)] * 12)
    for image in title:
        image[60:90, 40:200:7] = 220
    picked_up = [np.roll(images[-1], 5 * t, axis=1) for t in range(30)]
    video = write_video(tmp_path / "v.mp4", [*title, *images[: COMES + STAYS + 10], *picked_up])
    found = from_video(video, time_range=(PART[0] + 0.4, PART[1] + 0.4))
    assert found.method == "empty"
    assert overlap(found.masks, masks) > 0.9


def test_who_stands_there_while_somebody_else_comes_is_no_empty_scene(tmp_path: Path) -> None:
    _, masks = coming_and_going()
    stands = [painted(room(LARGE), masks[0])] * 15
    helper = [painted(stands[0], figure(x, LARGE)) for x in (*np.linspace(-20, 30, 12), *np.linspace(30, -20, 12))]
    jacks = [painted(room(LARGE), mask) for mask in masks]
    images = noisy([*stands, *helper, *stands[:6], *jacks])
    found = from_video(write_video(tmp_path / "v.mp4", images), time_range=PART)
    assert found.method == "motion"
    assert overlap(found.masks, masks) > 0.75


def test_what_is_put_down_before_the_part_is_no_part_of_the_person(tmp_path: Path) -> None:
    images, masks = coming_and_going()
    bag = (slice(120, 150), slice(20, 45))
    for image in images[COMES - 10 :]:
        image[bag] = (60, 30, 20)
    found = from_video(write_video(tmp_path / "v.mp4", images), time_range=PART)
    assert found.method == "empty"
    assert overlap(found.masks, masks) > 0.9
    assert not found.masks[(slice(None), *bag)].any()


def test_who_never_leaves(tmp_path: Path) -> None:
    images, _ = jumping_jacks(room(LARGE), 80)
    video = write_video(tmp_path / "v.mp4", images)
    assert from_video(video, time_range=(1.0, 2.2)).method == "motion"
    with pytest.raises(VideoError, match="no empty frames"):
        from_video(video, time_range=(1.0, 2.2), method="empty")
