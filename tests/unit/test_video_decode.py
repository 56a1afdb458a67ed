"""Decoding: rates, ranges and sizes of small videos, and files that are none."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from video_scene import write_video

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video import decode
from mocap2ctrl.video.decode import default_fps, probe, read_footage, working_size

WIDTH, HEIGHT = 64, 48


def counting(count: int) -> list[np.ndarray]:
    """Frames whose grey level is five times their number."""
    return [np.full((HEIGHT, WIDTH, 3), 5 * number, np.uint8) for number in range(count)]


def numbers(images: np.ndarray) -> list[int]:
    return [round(float(image.mean()) / 5) for image in images]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty frames at 40 a second."""
    return write_video(tmp_path_factory.mktemp("clip") / "clip.mp4", counting(40), fps=40)


def test_probe_says_what_the_video_is(clip: Path) -> None:
    info = probe(clip)
    assert (info.size, info.fps, info.frames, info.rotation) == ((WIDTH, HEIGHT), 40.0, 40, 0)
    assert info.duration_s == pytest.approx(1.0)


def test_all_frames_come_in_order(clip: Path) -> None:
    footage = read_footage(clip)
    assert footage.fps == 40.0
    assert numbers(footage.images) == list(range(40))


def test_a_lower_rate_takes_the_nearest_frames(clip: Path) -> None:
    assert numbers(read_footage(clip, fps=20).images) == list(range(0, 40, 2))
    assert numbers(read_footage(clip, fps=15).images) == [0, 3, 5, 8, 11, 13, 16, 19, 21, 24, 27, 29, 32, 35, 37]


def test_a_range_starts_and_ends_where_it_says(clip: Path) -> None:
    footage = read_footage(clip, time_range=(0.25, 0.5))
    assert footage.start_s == 0.25
    assert numbers(footage.images) == list(range(10, 20))
    assert numbers(read_footage(clip, time_range=(0.9, 7.0)).images) == [36, 37, 38, 39]


def test_frames_that_are_not_evenly_spaced_are_resampled_by_their_time_stamps(tmp_path: Path) -> None:
    stamps = [0, 1, 2, 8, 9, 10]
    video = write_video(tmp_path / "v.mp4", counting(6), fps=30, stamps=stamps)
    found = numbers(read_footage(video, fps=10).images)
    assert found == [0, 2, 3, 4][: len(found)]  # at 0, 0.1, 0.2, 0.3 s: stamps 0, 2 (nearer than 8), 8, 9
    assert len(found) >= 2


@pytest.mark.parametrize(
    ("fps", "wanted"),
    [
        (25.0, 25.0),
        (29.97, 29.97),
        (30.0, 30.0),
        (50.0, 25.0),
        (60.0, 30.0),
        (59.94, 29.97),
        (120.0, 30.0),
        (24.0, 24.0),
    ],
)
def test_the_rate_is_the_videos_own_or_a_whole_fraction_near_30(fps: float, wanted: float) -> None:
    assert default_fps(fps) == pytest.approx(wanted)


def test_sizes_keep_the_shape_and_never_grow() -> None:
    assert working_size((1920, 1080), 640 * 360) == (640, 360)
    assert working_size((1080, 1920), 640 * 360) == (360, 640)
    assert working_size((100, 50), 640 * 360) == (100, 50)


def test_frames_are_reduced_by_the_mean_of_the_area(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stripes = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    stripes[:, ::2] = 200
    monkeypatch.setattr(decode, "WORKING_PIXELS", WIDTH * HEIGHT / 4)
    images = read_footage(write_video(tmp_path / "v.mp4", [stripes] * 3)).images
    assert images.shape[1:3] == (HEIGHT // 2, WIDTH // 2)
    np.testing.assert_allclose(images[1].mean(axis=-1), 100, atol=12)


def test_more_frames_are_smaller_and_too_many_are_refused(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "MEMORY_PIXELS", 40 * WIDTH * HEIGHT // 4)
    monkeypatch.setattr(decode, "LEAST_PIXELS", 100)
    assert read_footage(clip).images.shape == (40, HEIGHT // 2, WIDTH // 2, 3)
    monkeypatch.setattr(decode, "LEAST_PIXELS", WIDTH * HEIGHT)
    with pytest.raises(VideoError, match=r"40 frames are too many.*--time-range"):
        read_footage(clip)


def write_turned(path: Path, picture: np.ndarray, degrees: int) -> Path:
    """An MP4 of four times the picture, whose display matrix turns it counter-clockwise, as phones do."""
    if not hasattr(av.VideoStream, "set_display_rotation"):
        pytest.skip("this PyAV cannot write a display matrix")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"crf": "8"})
        stream.height, stream.width = picture.shape[:2]
        stream.pix_fmt = "yuv444p"
        stream.set_display_rotation(degrees)
        for _ in range(4):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_rotated_video_is_shown_upright(tmp_path: Path, turns: int) -> None:
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    picture[:10, :10] = 255
    video = write_turned(tmp_path / "v.mp4", picture, 90 * turns)
    size = (WIDTH, HEIGHT) if turns % 2 == 0 else (HEIGHT, WIDTH)
    assert (probe(video).size, probe(video).rotation) == (size, turns)
    shown = read_footage(video).images
    assert shown.shape == (4, size[1], size[0], 3)
    np.testing.assert_allclose(shown[0], np.rot90(picture, turns), atol=12)


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"fps": 60.0}, r"fps is 60; allowed is 1 to 40"),
            ({"fps": 0.0}, r"fps is 0"),
            ({"fps": float("nan")}, r"fps is nan"),
            ({"time_range": (2.0, 3.0)}, r"runs from 0 to 1.00 s"),
            ({"time_range": (0.5, 0.5)}, r"time range 0.5 to 0.5"),
        ],
    )
    def test_settings(self, clip: Path, settings: dict, says: str) -> None:
        with pytest.raises(VideoError, match=says):
            read_footage(clip, **settings)

    @pytest.mark.parametrize("data", [b"", b"no video at all", b"\x00" * 5000])
    def test_files_that_are_no_video(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "v.mp4"
        path.write_bytes(data)
        with pytest.raises(VideoError, match=r"v\.mp4") as error:
            read_footage(path)
        assert "\n" not in str(error.value)

    def test_a_video_cut_off_in_its_head(self, clip: Path, tmp_path: Path) -> None:
        path = tmp_path / "v.mp4"
        path.write_bytes(clip.read_bytes()[: clip.stat().st_size // 2])
        with pytest.raises(VideoError, match=r"damaged"):
            read_footage(path)

    def test_sound_only(self, tmp_path: Path) -> None:
        import wave

        with wave.open(str(tmp_path / "s.wav"), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            sound.writeframes(b"\x00" * 16000)
        with pytest.raises(VideoError, match="no video stream"):
            probe(tmp_path / "s.wav")

    def test_no_file_and_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(VideoError, match="no such file"):
            probe(tmp_path / "none.mp4")
        with pytest.raises(VideoError, match="is a folder"):
            probe(tmp_path)
