"""The camera's motion: measured where it is known, undone where it is small, refused where it is not, never imagined."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from video_scene import Image, figure, noisy, painted, room

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.alignment import MOST_PX, STEADY_PX, held_still, onto_clip, warped
from mocap2ctrl.video.camera_path import camera_path
from mocap2ctrl.video.decode import Footage, read_footage
from mocap2ctrl.video.registration import Register, Similarity

SIZE, FRAMES, FPS = (320, 240), 60, 30.0
WIDE = room((960, 720), seed=3)
TIME = np.arange(FRAMES) / FPS
VIDEO = Path(__file__).resolve().parents[3] / "shared" / "data" / "video"


def seen(pose: Similarity) -> Image:
    """What a camera sees of a wide scene whose middle it has moved by `pose`."""
    centre = complex(*(0.5 * (length - 1) for length in SIZE))
    wide = complex(0.5 * (WIDE.shape[1] - 1), 0.5 * (WIDE.shape[0] - 1))
    a, b = pose.a, centre + pose.b - pose.a * wide
    matrix = np.array([[a.real, -a.imag, b.real], [a.imag, a.real, b.imag]])
    return cv2.warpAffine(WIDE, matrix, SIZE, flags=cv2.INTER_AREA | cv2.INTER_LINEAR).astype(np.uint8)


def film(
    poses: list[Similarity], place: Callable[[int], float] = lambda t: 60.0 + 3.0 * t, scale: float = 1.0
) -> Image:
    """A figure walks before a scene that is seen in these poses."""
    images = [painted(seen(pose), figure(place(t), SIZE, scale)) for t, pose in enumerate(poses)]
    return np.stack(noisy(images))


def footage(images: Image, source: float = 1.0, slowmo: float = 1.0) -> Footage:
    size = (round(SIZE[0] * source), round(SIZE[1] * source))
    return Footage(images, FPS, 0.0, size, FPS, slowmo)


def still() -> list[Similarity]:
    return [Similarity()] * FRAMES


def shaken(radius: float) -> list[Similarity]:
    """In all directions by the same amount, in no order."""
    angles = np.random.default_rng(1).permutation(FRAMES) * 2 * np.pi / FRAMES
    return [Similarity(1.0, radius * np.exp(1j * angle)) for angle in angles]


class TestMeasured:
    @pytest.mark.parametrize("radius", [0.5, 1.0, 1.6, 5.0, 15.0])
    def test_shake(self, radius: float) -> None:
        path = camera_path(film(shaken(radius)))
        if path.known.all():
            assert path.shake_px == pytest.approx(radius, rel=0.15, abs=0.1)
        assert path.known.mean() > 0.8
        assert path.farthest_px == pytest.approx(2 * radius, rel=0.15, abs=0.1)

    def test_what_joins_on_to_a_part_while_the_camera_stands(self) -> None:
        """It is put down in the first frames, and picked up in the last ones."""
        away = [40.0 - 5.0 * t if t < 8 else 6.0 * max(0, t - FRAMES + 7) for t in range(FRAMES)]
        path = camera_path(film([Similarity(1.0, x) for x in away]))
        assert path.still_around((14, 20), 2.0) == (8, FRAMES - 6)
        assert path.still_around((0, 3), 2.0) == (0, 3)

    @pytest.mark.parametrize("total", [8.0, 80.0, 300.0])
    def test_pan(self, total: float) -> None:
        """300 pixels are as many as the picture is wide: the first frame is long out of sight."""
        path = camera_path(film([Similarity(1.0, -total * t / (FRAMES - 1) + total / 2) for t in range(FRAMES)]))
        assert path.known.all()
        assert path.farthest_px == pytest.approx(total, rel=0.1)
        assert path.turn_range < 0.01
        assert path.zoom_range < 0.02

    @pytest.mark.parametrize("degrees", [1.0, 6.0, 30.0])
    def test_roll(self, degrees: float) -> None:
        path = camera_path(
            film([Similarity(np.exp(1j * np.radians(degrees) * t / (FRAMES - 1))) for t in range(FRAMES)])
        )
        assert np.degrees(path.turn_range) == pytest.approx(degrees, rel=0.1)
        assert path.farthest_px < 0.02 * SIZE[0]

    @pytest.mark.parametrize("zoom", [1.04, 1.25, 1.8])
    def test_zoom(self, zoom: float) -> None:
        path = camera_path(film([Similarity(zoom ** (t / (FRAMES - 1))) for t in range(FRAMES)]))
        assert path.zoom_range == pytest.approx(zoom - 1.0, rel=0.1)

    def test_a_drift_that_returns(self) -> None:
        path = camera_path(film([Similarity(1.0, (12 + 5j) * np.sin(np.pi * t) ** 2) for t in TIME]))
        assert path.farthest_px == pytest.approx(13.0, rel=0.1)

    def test_each_part_of_a_pose(self) -> None:
        truth = Similarity(1.07 * np.exp(0.05j), 9 - 4j)
        found = Register(cv2.cvtColor(seen(Similarity()), cv2.COLOR_RGB2GRAY)).find(
            cv2.cvtColor(seen(truth), cv2.COLOR_RGB2GRAY)
        )
        assert found is not None
        assert found.a == pytest.approx(truth.a, abs=0.002)
        assert found.b == pytest.approx(truth.b, abs=0.2)


def waving(images: Image) -> Image:
    """The left two fifths wave like leaves in the wind, by up to 3 pixels."""
    x, y = np.meshgrid(np.arange(SIZE[0], dtype=np.float32), np.arange(SIZE[1], dtype=np.float32))
    part = (x < 0.4 * SIZE[0]).astype(np.float32)
    swings = [3 * part * np.sin(0.07 * x + 0.05 * y + 0.4 * t) for t in range(len(images))]
    return np.stack(
        [
            cv2.remap(i, x + s.astype(np.float32), y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
            for i, s in zip(images, swings, strict=True)
        ]
    )


def with_belt(images: Image) -> Image:
    """The lowest third runs to the left by 6 pixels a frame."""
    belt = np.tile(room((40, 80), seed=8), (1, 8, 1))
    result = images.copy()
    for t, image in enumerate(result):
        image[160:] = np.roll(belt, -6 * t, axis=1)[:, : SIZE[0]]
    return result


def crowded(images: Image) -> Image:
    """A dozen people walk to the right, all alike, all over the picture."""
    result = images.copy()
    rng = np.random.default_rng(4)
    clothes = room((400, 300), seed=6)
    for x, y in rng.uniform((-100, -60), (320, 60), (12, 2)):
        for t, image in enumerate(result):
            mask = np.roll(figure(x + 3 * t, SIZE, 0.6), round(y), axis=0)
            left = round(150 - (x + 3 * t))
            image[mask] = np.roll(clothes, -left, axis=1)[: SIZE[1], : SIZE[0]][mask] if left > -400 else 90
    return result


class TestNotImagined:
    @pytest.mark.parametrize(
        "change", [waving, with_belt, crowded, lambda images: images], ids=["trees", "belt", "crowd", "no"]
    )
    def test_a_camera_that_stands_still(self, change: Callable[[Image], Image]) -> None:
        images = change(film(still()))
        assert camera_path(images).shake_px < STEADY_PX
        kept, notes = held_still(footage(images), "v.mp4")
        assert kept.images is images
        assert notes == ()

    def test_a_person_who_fills_the_picture(self) -> None:
        rng = np.random.default_rng(7)
        clothes = rng.integers(0, 255, (*SIZE[::-1], 3), dtype=np.uint8)
        images = film(still())
        for t, image in enumerate(images):
            mask = figure(110 + 1.5 * t, SIZE, 1.6, lower=50)
            image[mask] = np.roll(clothes, round(1.5 * t), axis=1)[mask]
        assert camera_path(images).shake_px < STEADY_PX

    def test_a_wall_without_anything_on_it(self) -> None:
        images = np.stack(
            noisy([painted(np.full((*SIZE[::-1], 3), 128, np.uint8), figure(60 + 3.0 * t, SIZE)) for t in range(40)])
        )
        kept, notes = held_still(footage(images), "v.mp4")
        assert kept.images is images
        assert notes == ()

    @pytest.mark.parametrize(
        "name",
        [
            "run_fence_side.mp4",
            "treadmill_run_side.mp4",
            "neg_partial_bodies_indoor.mp4",
            "pose2sim_cam03_balancing.mp4",
        ],
    )
    def test_real_cameras_on_tripods(self, name: str) -> None:
        if not (VIDEO / name).is_file():
            pytest.skip(f"{VIDEO / name} is not there")
        assert camera_path(read_footage(VIDEO / name, time_range=(0.0, 20.0), fps=4.0).images).shake_px < STEADY_PX


class TestHeldStill:
    def test_a_little_shake_is_undone(self) -> None:
        poses = [pose.after(Similarity(np.exp(0.002j * np.sin(t)))) for t, pose in enumerate(shaken(1.5))]
        images = film(poses, lambda t: 60.0)
        held, (note,) = held_still(footage(images, source=2.0), "v.mp4")
        assert "shakes by up to 3." in note
        background = np.ones(SIZE[::-1], bool)
        background[:, 20:100] = background[:8] = background[-8:] = False

        def unrest(clip: Image) -> float:
            return float(np.std(clip[:, background].astype(float), axis=0).mean())

        assert unrest(held.images) < 1.5 * unrest(film(still(), lambda t: 60.0))
        assert unrest(images) > 2.5 * unrest(film(still(), lambda t: 60.0))

    def test_a_plate_is_moved_to_the_clip(self) -> None:
        images, truth = film(still()), Similarity(1.0, 2.4 - 1.3j)
        darker = np.clip(0.8 * seen(truth.inverse()).astype(float), 0, 255).astype(np.uint8)
        moved, away = onto_clip(darker, images)
        assert away == pytest.approx(abs(truth.b), rel=0.1)
        np.testing.assert_allclose(
            moved[20:-20, 20:-20].astype(float), 0.8 * seen(Similarity())[20:-20, 20:-20], atol=14
        )

    def test_a_plate_of_something_else_stays(self) -> None:
        other = room(SIZE, seed=77)
        assert onto_clip(other, film(still()))[0] is other

    def test_a_similarity_of_whole_pixels_is_a_roll(self) -> None:
        image = room(SIZE)
        np.testing.assert_array_equal(warped(image, Similarity(1.0, 3 + 2j))[2:, 3:], image[:-2, :-3])


class TestRefused:
    @staticmethod
    def refusal(poses: list[Similarity], **settings: float) -> str:
        with pytest.raises(VideoError) as error:
            held_still(footage(film(poses), **settings), "v.mp4")
        assert "\n" not in str(error.value)
        return str(error.value)

    def test_it_says_how_much_and_when_and_what_is_still(self) -> None:
        """A pan by 90 pixels of the video from 1.2 to 1.6 s."""
        poses = [Similarity(1.0, -45 * np.clip((t - 1.2) / 0.4, 0, 1)) for t in TIME]
        message = self.refusal(poses, source=2.0)
        found = re.search(r"between ([\d.]+) and ([\d.]+) s .*?by up to (\d+) pixels", message)
        assert found
        begin, end, amount = map(float, found.groups())
        assert begin == pytest.approx(1.2, abs=0.08)
        assert end == pytest.approx(1.6, abs=0.08)
        assert amount == pytest.approx(90, rel=0.1)
        assert "choose the still part with --time-range 0.00 1.2" in message

    def test_times_are_the_files_in_slow_motion(self) -> None:
        poses = [Similarity(1.0, -45 * np.clip((t - 1.2) / 0.4, 0, 1)) for t in TIME]
        assert "between 4.6" in self.refusal(poses, slowmo=4.0) or "between 4.8" in self.refusal(poses, slowmo=4.0)

    def test_a_roll_and_a_zoom_are_named(self) -> None:
        roll = self.refusal([Similarity(np.exp(0.1j * t)) for t in TIME])
        assert "(the picture turns by 11." in roll
        assert "(the picture grows by 2" in self.refusal([Similarity(1.1**t) for t in TIME])

    @pytest.mark.parametrize("radius", [MOST_PX + 0.5, 12.0])
    def test_a_hand(self, radius: float) -> None:
        assert "the camera moves between 0.0" in self.refusal(shaken(radius))

    def test_before_a_person_who_is_followed_by_the_camera(self) -> None:
        images = film([Similarity(1.0, 60 - 2.0 * t) for t in range(FRAMES)], lambda t: 160.0, scale=1.3)
        with pytest.raises(VideoError, match="the camera moves"):
            held_still(footage(images), "v.mp4")

    @pytest.mark.parametrize(
        ("part", "says"),
        [
            ((0.0, 4.0), r"the camera moves between .* pixels of the video"),
            ((8.0, 12.0), "nothing in the picture keeps"),
        ],
    )
    def test_real_footage(self, part: tuple[float, float], says: str) -> None:
        """Of the second part, lines on a track and lawn tell nothing, and two captions stand still."""
        if not (VIDEO / "neg_moving_camera_pan_run.mp4").is_file():
            pytest.skip(f"{VIDEO} is not there")
        clip = read_footage(VIDEO / "neg_moving_camera_pan_run.mp4", time_range=part)
        with pytest.raises(VideoError, match=says):
            held_still(clip, "v.mp4")
