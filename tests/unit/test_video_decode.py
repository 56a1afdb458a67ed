"""Decoding: rates, ranges and sizes of small videos, and files that are none."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from video_scene import room, walk, write_png, write_video

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video import decode
from mocap2ctrl.video import frames as frames_module
from mocap2ctrl.video.decode import default_fps, probe, read_footage, working_size
from mocap2ctrl.video.extract import from_video

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
    assert footage.warnings == read_footage(clip, time_range=(0.9, 1.02)).warnings == ()


def test_a_range_that_goes_on_after_the_end_is_used_as_far_as_the_video_goes(clip: Path) -> None:
    footage = read_footage(clip, time_range=(0.9, 7.0))
    assert numbers(footage.images) == [36, 37, 38, 39]
    assert footage.warnings == ("time range 0.9 to 7 s goes on after the input's end at 1.00 s",)


def test_frames_that_are_not_evenly_spaced_are_resampled_by_their_time_stamps(tmp_path: Path) -> None:
    stamps = [0, 1, 2, 8, 9, 10]
    video = write_video(tmp_path / "v.mp4", counting(6), fps=30, stamps=stamps)
    found = numbers(read_footage(video, fps=10).images)
    assert found == [0, 2, 3, 4][: len(found)]  # at 0, 0.1, 0.2, 0.3 s: stamps 0, 2 (nearer than 8), 8, 9
    assert len(found) >= 2


def write_coded(
    path: Path,
    images: Sequence[np.ndarray],
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    *,
    fps: int = 25,
    stamps: Sequence[int] | None = None,
    aspect: Fraction | None = None,
    tags: dict[str, str] | None = None,
    form: str | None = None,
    **options: str,
) -> Path:
    """The frames in the format that the path's ending, or `form`, names."""
    with av.open(str(path), "w", format=form, options={"movflags": "use_metadata_tags"} if tags else {}) as container:
        container.metadata.update(tags or {})
        stream = container.add_stream(codec, rate=fps, options={key.replace("_", "-"): v for key, v in options.items()})
        stream.height, stream.width, stream.pix_fmt = *images[0].shape[:2], pix_fmt
        if aspect:
            stream.codec_context.sample_aspect_ratio = aspect
        for number, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = (number if stamps is None else stamps[number]), Fraction(1, fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


class TestTimeStamps:
    def test_a_gap_is_filled_by_the_nearest_and_is_no_damage(self, tmp_path: Path) -> None:
        stamps = [*range(6), *range(10, 24)]
        footage = read_footage(write_coded(tmp_path / "v.mkv", counting(20), stamps=stamps))
        nearest = [min(range(20), key=lambda k: (abs(stamps[k] - t), k)) for t in range(24)]
        assert (footage.fps, numbers(footage.images)) == (25.0, nearest)
        assert any("unevenly spaced" in note for note in footage.notes)
        assert footage.warnings == ()

    def test_the_rate_is_measured_not_believed(self, tmp_path: Path) -> None:
        """The head says 100 frames a second, and every fifth is there."""
        video = write_coded(tmp_path / "v.mp4", counting(20), fps=100, stamps=range(0, 100, 5))
        info = probe(video)
        assert (info.fps, info.frames, info.duration_s) == (pytest.approx(20.0), 20, pytest.approx(1.0))
        assert numbers(read_footage(video).images) == list(range(20))

    def test_what_an_edit_list_hides_is_not_there(self, tmp_path: Path) -> None:
        footage = read_footage(write_coded(tmp_path / "v.mp4", counting(20), stamps=range(-10, 10)))
        assert numbers(footage.images) == list(range(10, 20))
        assert footage.warnings == ()

    def test_a_late_start_is_the_start(self, tmp_path: Path) -> None:
        video = write_coded(tmp_path / "v.mp4", counting(20), stamps=range(30, 50))
        assert numbers(read_footage(video, time_range=(0.2, 0.4)).images) == [5, 6, 7, 8, 9]

    @pytest.mark.parametrize(("name", "form"), [("v.264", "h264"), ("v.avi", "avi")])
    def test_without_time_stamps_frames_are_evenly_spaced(self, tmp_path: Path, name: str, form: str) -> None:
        footage = read_footage(write_coded(tmp_path / name, counting(20), form=form))
        assert numbers(footage.images) == list(range(20))
        assert any("without time stamps" in note for note in footage.notes)

    def test_a_part_that_is_sought_is_the_part(self, tmp_path: Path) -> None:
        """Key frames every 25; black and white in turn every second frame tell 0.04 s apart, grey the second."""
        images = [np.full((HEIGHT, WIDTH, 3), 10 * (k // 25) + 100 * (k % 2), np.uint8) for k in range(250)]
        video = write_coded(tmp_path / "v.mp4", images, g="25")
        found = read_footage(video, time_range=(8.04, 8.2)).images.mean(axis=(1, 2, 3))
        np.testing.assert_allclose(found, [180, 80, 180, 80], atol=8)

    def test_frames_that_nobody_wants_are_not_decoded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        video = write_coded(tmp_path / "v.mp4", counting(50), fps=50, x264_params="b-adapt=0:bframes=1:b-pyramid=none")
        seen: list[int] = []
        real = frames_module.decoded
        monkeypatch.setattr(frames_module, "decoded", lambda *of: [seen.append(1) or frame for frame in real(*of)])
        assert numbers(read_footage(video).images) == list(range(0, 50, 2))
        assert len(seen) < 30


class TestShapes:
    @pytest.mark.parametrize(("aspect", "size"), [((2, 1), (128, 48)), ((1, 2), (64, 96)), ((100, 1), (64, 48))])
    def test_pixels_that_are_not_square_are_shown_square(self, tmp_path: Path, aspect: tuple, size: tuple) -> None:
        video = write_coded(tmp_path / "v.mp4", counting(5), aspect=Fraction(*aspect))
        assert probe(video).size == size
        assert read_footage(video).images.shape[2:0:-1] == size

    def test_odd_sizes(self, tmp_path: Path) -> None:
        images = [np.full((37, 51, 3), 5 * k, np.uint8) for k in range(10)]
        video = write_coded(tmp_path / "v.mp4", images, pix_fmt="yuv444p")
        assert (probe(video).size, numbers(read_footage(video).images)) == ((51, 37), list(range(10)))

    @pytest.mark.parametrize(
        ("name", "codec", "pix_fmt"),
        [
            ("v.mp4", "libx264", "yuv420p10le"),
            ("v.mkv", "ffv1", "gray"),
            ("v.mkv", "ffv1", "gray16le"),
            ("v.mp4", "libx264", "yuvj420p"),
            ("v.gif", "gif", "gray"),
            ("v.avi", "mjpeg", "yuvj420p"),
        ],
    )
    def test_ten_bits_greys_and_gifs(self, tmp_path: Path, name: str, codec: str, pix_fmt: str) -> None:
        footage = read_footage(write_coded(tmp_path / name, counting(20), codec, pix_fmt))
        np.testing.assert_allclose(footage.images.mean(axis=(1, 2, 3)), 5.0 * np.arange(20), atol=2.0)
        assert footage.warnings == ()

    def test_interlaced_frames_show_one_moment(self, tmp_path: Path) -> None:
        """A bar moves by 4 pixels a field; rows of both fields in one frame make a comb, whose teeth are columns of change."""
        fields = np.zeros((40, HEIGHT, WIDTH, 3), np.uint8)
        for t in range(40):
            fields[t, :, t : t + 12] = 220
        woven = fields[::2].copy()
        woven[:, 1::2] = fields[1::2, 1::2]
        comb = [float(np.abs(np.diff(f[8:-8, :, 0].astype(int), axis=0)).mean()) for f in woven]
        video = write_coded(tmp_path / "v.mp4", woven, x264_params="tff=1", crf="8")
        assert probe(video).interlaced
        footage = read_footage(video)
        assert len(footage.images) == 20
        assert any("interlaced" in note for note in footage.notes)
        found = [float(np.abs(np.diff(f[8:-8, :, 0].astype(int), axis=0)).mean()) for f in footage.images[2:-2]]
        assert max(found) < 0.3 * min(comb)


class TestSlowMotion:
    def test_rates_are_real_and_ranges_the_files(self, clip: Path) -> None:
        footage = read_footage(clip, slowmo=4.0, time_range=(0.2, 1.0))
        assert (footage.fps, footage.source_fps, footage.start_s) == (32.0, 160.0, pytest.approx(0.05))
        assert numbers(footage.images) == list(range(8, 40, 5))
        assert any("4 times slower than life, as --slowmo says" in note for note in footage.notes)
        assert numbers(read_footage(clip, slowmo=4.0, fps=80).images) == list(range(0, 40, 2))

    def test_what_the_file_says_is_used_unless_the_user_knows_better(self, tmp_path: Path) -> None:
        video = write_coded(tmp_path / "v.mp4", counting(40), tags={"com.android.capture.fps": "100.000000"})
        footage = read_footage(video)
        assert (footage.slowmo, footage.source_fps, len(footage.images)) == (4.0, 100.0, 14)
        assert any("as the file says" in note for note in footage.notes)
        assert len(read_footage(video, slowmo=1.0).images) == 40

    @pytest.mark.parametrize("tag", ["25.3", "nonsense", "-100", "nan", "inf"])
    def test_a_tag_that_says_nothing(self, tmp_path: Path, tag: str) -> None:
        assert probe(write_coded(tmp_path / "v.mp4", counting(5), tags={"com.android.capture.fps": tag})).slowmo == 1.0


class TestDamaged:
    @staticmethod
    def coded(tmp_path: Path, name: str = "v.mp4") -> Path:
        rng = np.random.default_rng(0)
        images = [np.clip(rng.normal(6 * k, 8, (HEIGHT, WIDTH, 3)), 0, 255).astype(np.uint8) for k in range(40)]
        return write_coded(tmp_path / name, images, g="5", bf="0")

    @staticmethod
    def spoil(path: Path, begin: float, end: float) -> Path:
        data = bytearray(path.read_bytes())
        part = slice(int(begin * len(data)), int(end * len(data)))
        data[part] = np.random.default_rng(1).bytes(len(data[part]))
        path.write_bytes(data)
        return path

    def test_garbage_in_the_middle_is_told_and_the_longest_sound_part_used(self, tmp_path: Path) -> None:
        footage = read_footage(self.spoil(self.coded(tmp_path), 0.6, 0.75))
        (warning,) = footage.warnings
        assert "missing or damaged in the file; used is the longest sound part, 0.00 to" in warning
        assert 20 <= len(footage.images) <= 26
        np.testing.assert_allclose(footage.images.mean(axis=(1, 2, 3))[:20], 6.0 * np.arange(20), atol=6.0)

    def test_a_cut_off_tail_is_told(self, tmp_path: Path) -> None:
        video = self.coded(tmp_path, "v.mkv")
        video.write_bytes(video.read_bytes()[: video.stat().st_size // 2])
        footage = read_footage(video)
        assert 15 <= len(footage.images) <= 24
        (warning,) = footage.warnings
        assert "of 40 frames that the file announces cannot be decoded" in warning
        assert read_footage(video, time_range=(0.0, 0.4)).warnings == ()
        with pytest.raises(VideoError, match=r"runs from 0 to 0\.\d+ s; .* of 40 frames that the file announces"):
            read_footage(video, time_range=(1.0, 1.2))

    @pytest.mark.parametrize("name", ["v.mp4", "v.mkv", "v.avi", "v.ts"])
    def test_whatever_the_damage_it_is_read_or_refused_in_one_line(self, tmp_path: Path, name: str) -> None:
        sound = self.coded(tmp_path, name).read_bytes()
        rng, refusals = np.random.default_rng(5), list[str]()
        for _ in range(60):
            data, (a, b) = bytearray(sound), sorted(rng.integers(0, len(sound), 2))
            match rng.integers(4):
                case 0:
                    del data[a:]
                case 1:
                    del data[a:b]
                case 2:
                    data[a:b] = rng.bytes(int(b - a))
                case 3:
                    for place in rng.integers(0, len(sound), 12):
                        data[place] = rng.integers(256)
            (tmp_path / name).write_bytes(data)
            try:
                assert len(read_footage(tmp_path / name).images) >= 1
            except VideoError as error:
                refusals.append(str(error))
        assert 5 <= len(refusals) <= 55
        assert not any("\n" in refusal for refusal in refusals)

    def test_huge_frames_are_refused_before_they_are_decoded(self, tmp_path: Path) -> None:
        video = write_coded(tmp_path / "v.gif", counting(3), "gif", "gray")
        data = bytearray(video.read_bytes())
        data[6:10] = (9000).to_bytes(2, "little") * 2
        video.write_bytes(data)
        with pytest.raises(VideoError, match=r"9000x9000 pixels; allowed are up to 67 million"):
            probe(video)


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


def write_turned(path: Path, picture: np.ndarray, degrees: int, *, mirrored: bool) -> Path:
    """An MP4 of four times the picture, whose display matrix turns it counter-clockwise, then mirrors it, as phones do."""
    if not hasattr(av.VideoStream, "set_display_rotation"):
        pytest.skip("this PyAV cannot write a display matrix")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"crf": "8"})
        stream.height, stream.width = picture.shape[:2]
        stream.pix_fmt = "yuv444p"
        stream.set_display_rotation(degrees, hflip=mirrored)
        for _ in range(4):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_rotated_video_is_shown_upright(tmp_path: Path, turns: int, mirrored: bool) -> None:
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    picture[:10, :20] = 255
    video = write_turned(tmp_path / "v.mp4", picture, 90 * turns, mirrored=mirrored)
    size = (WIDTH, HEIGHT) if turns % 2 == 0 else (HEIGHT, WIDTH)
    info = probe(video)
    assert (info.size, info.rotation, info.mirrored) == (size, turns, mirrored)
    shown = read_footage(video).images
    assert shown.shape == (4, size[1], size[0], 3)
    upright = np.rot90(picture, turns)
    np.testing.assert_allclose(shown[0], upright[:, ::-1] if mirrored else upright, atol=12)


def test_masks_of_slow_motion_are_at_the_real_rate(tmp_path: Path) -> None:
    video = write_video(tmp_path / "v.mp4", walk(np.linspace(35, 125, 60))[0])
    plate = write_png(tmp_path / "plate.png", room())
    found = from_video(video, plate=plate, slowmo=2.0)
    assert (found.fps, len(found.masks)) == (30.0, 30)
    assert any("2 times slower" in note for note in found.notes)


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"fps": 60.0}, r"fps is 60; allowed is 1 to 40"),
            ({"fps": 0.0}, r"fps is 0"),
            ({"fps": float("nan")}, r"fps is nan"),
            ({"slowmo": 0.5}, r"slow motion is 0.5 times slower.*allowed is 1"),
            ({"slowmo": 1000.0}, r"allowed is 1 \(as fast as life\) to 25"),
            ({"slowmo": float("nan")}, r"slow motion is nan"),
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
