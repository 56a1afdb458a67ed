"""Masks as other programs write them: soft greys, alpha channels, labels, and videos; each against the exact masks."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from video_scene import SIZE, figure, overlap, room, walk, write_png, write_video

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.choice import PersonAt
from mocap2ctrl.video.extract import from_masks
from mocap2ctrl.video.mask_files import holds_masks, load_masks
from mocap2ctrl.video.mask_pictures import kind_of

PATH = np.linspace(30, 60, 12)
TRUTH = np.stack([figure(x) for x in PATH])
OTHER = np.stack([figure(x) for x in np.linspace(130, 100, 12)])
SCENE = room()


def soft(mask: np.ndarray) -> np.ndarray:
    """A matte with soft edges, as rembg makes them, 0 to 255."""
    return np.round(cv2.GaussianBlur(mask.astype(np.float32), (0, 0), 1.0) * 255).astype(np.uint8)


def folder(path: Path, pictures: list[np.ndarray]) -> Path:
    for t, picture in enumerate(pictures):
        write_png(path / f"{t}.png", picture)
    return path


def raw_png(path: Path, picture: np.ndarray) -> None:
    """A PNG of blue, green, red and opacity."""
    path.write_bytes(cv2.imencode(".png", picture)[1].tobytes())


class TestPictures:
    def test_soft_greys_are_cut_at_their_half(self, tmp_path: Path) -> None:
        found = load_masks(folder(tmp_path, [soft(m) for m in TRUTH]), 30.0)
        assert overlap(found.masks, TRUTH) > 0.97
        np.testing.assert_array_equal(found.masks[3], soft(TRUTH[3]) > 127)
        assert found.notes == ()

    def test_the_opaque_part_of_a_cut_out_person(self, tmp_path: Path) -> None:
        """rembg's own output: the photograph with an alpha channel. Its colours mean nothing."""
        for t, mask in enumerate(TRUTH):
            raw_png(tmp_path / f"{t}.png", np.dstack([SCENE, soft(mask)]))
        found = load_masks(tmp_path, 30.0)
        np.testing.assert_array_equal(found.masks, np.stack([soft(m) > 127 for m in TRUTH]))
        assert "alpha channel" in found.notes[0]

    def test_an_alpha_channel_that_is_opaque_everywhere_means_nothing(self, tmp_path: Path) -> None:
        for t, mask in enumerate(TRUTH):
            grey = mask.astype(np.uint8) * 255
            raw_png(tmp_path / f"{t}.png", np.dstack([grey, grey, grey, np.full_like(grey, 255)]))
        np.testing.assert_array_equal(load_masks(tmp_path, 30.0).masks, TRUTH)

    @pytest.mark.parametrize(
        ("value", "dtype"), [(1, np.uint8), (38, np.uint8), (255, np.uint8), (1, np.uint16), (65535, np.uint16)]
    )
    def test_a_single_value_is_the_person_whatever_it_is(self, tmp_path: Path, value: int, dtype: type) -> None:
        found = load_masks(folder(tmp_path, [m.astype(dtype) * dtype(value) for m in TRUTH]), 30.0)
        np.testing.assert_array_equal(found.masks, TRUTH)
        assert not found.chosen

    def test_photographs_are_no_masks(self, tmp_path: Path) -> None:
        with pytest.raises(VideoError, match=r"holds photographs and no masks; white = person"):
            load_masks(folder(tmp_path, walk(PATH)[0]), 30.0)

    def test_soft_edges_of_few_levels_are_no_labels(self) -> None:
        assert kind_of([(soft(m) // 16) * 17 for m in TRUTH], "v") == "grey"
        assert (
            kind_of([np.where(a, np.uint8(255), np.uint8(128) * b) for a, b in zip(TRUTH, OTHER, strict=True)], "v")
            == "labels"
        )


class TestLabels:
    @pytest.fixture(params=["numbers", "colours"])
    def two(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        """Two people of one size as segmentation programs tell them apart."""
        pictures = [np.where(b, np.uint8(2), a.astype(np.uint8)) for a, b in zip(TRUTH, OTHER, strict=True)]
        if request.param == "colours":
            palette = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0]], np.uint8)
            pictures = [palette[p] for p in pictures]
        return folder(tmp_path, pictures)

    def test_which_one_is_asked_and_what_it_says_works(self, two: Path) -> None:
        with pytest.raises(
            VideoError, match=r"holds 2 labels, which of them is the person\? choose with --person .* or --person"
        ):
            load_masks(two, 30.0)
        found = load_masks(two, 30.0, PersonAt(130.0, 70.0, 0.0))
        np.testing.assert_array_equal(found.masks, OTHER)
        assert found.chosen
        np.testing.assert_array_equal(from_masks(two, fps=30.0, person_at=PersonAt(30.0, 70.0)).masks, TRUTH)

    def test_no_label_there(self, two: Path) -> None:
        with pytest.raises(VideoError, match=r"no label at 80,5 \(pixels\) at 0.10 s; choose with --person"):
            load_masks(two, 30.0, PersonAt(80.0, 5.0, 0.1))

    def test_by_far_the_largest_needs_no_question(self, tmp_path: Path) -> None:
        pictures = [m.astype(np.uint8) for m in TRUTH]
        for picture in pictures:
            picture[5:15, 5:20] = 2
        found = load_masks(folder(tmp_path, pictures), 30.0)
        np.testing.assert_array_equal(found.masks, TRUTH)
        assert "one of 2 labels, by far the largest" in found.notes[0]


def write_alpha(path: Path, codec: str, form: str, **options: str) -> Path:
    """A video of a photograph of the scene, transparent but for the person."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(30), options=options)
        stream.width, stream.height, stream.pix_fmt = *SIZE, form
        for mask in TRUTH:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(np.dstack([SCENE, soft(mask)])), format="rgba")
            container.mux(stream.encode(frame.reformat(format=form)))
        container.mux(stream.encode())
    return path


class TestVideos:
    @staticmethod
    def grey(masks: np.ndarray) -> list[np.ndarray]:
        return [np.repeat(m.astype(np.uint8)[..., None] * 255, 3, axis=2) for m in masks]

    @pytest.fixture
    def lossy(self, tmp_path: Path) -> Path:
        """White on black, compressed as hard as people do."""
        path = tmp_path / "masks.mp4"
        with av.open(str(path), "w") as container:
            stream = container.add_stream("libx264", rate=Fraction(30), options={"crf": "32"})
            stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
            for picture in self.grey(TRUTH):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
        return path

    def test_black_and_white_is_recognised_and_said(self, lossy: Path) -> None:
        assert holds_masks(lossy)
        found = from_masks(lossy)
        assert overlap(found.masks, TRUTH) > 0.95
        assert (found.fps, found.source_size, found.images) == (30.0, SIZE, None)
        assert "the video holds masks and no footage, white = person" in found.notes[0]

    def test_one_that_begins_with_nobody(self, tmp_path: Path) -> None:
        nobody = np.zeros_like(TRUTH)
        assert holds_masks(write_video(tmp_path / "late.mp4", self.grey(np.concatenate([nobody, TRUTH]))))
        assert not holds_masks(write_video(tmp_path / "black.mp4", self.grey(nobody)))

    def test_footage_is_none_unless_a_user_insists(self, tmp_path: Path) -> None:
        images, _ = walk(PATH)
        video = write_video(tmp_path / "v.mp4", images)
        assert not holds_masks(video)
        assert holds_masks(video, insist=True)
        with pytest.raises(VideoError, match=r"is footage and no video of masks.*leave out --masks"):
            from_masks(video)
        assert not holds_masks(write_video(tmp_path / "grey.mp4", [np.repeat(i[..., :1], 3, 2) for i in images]))
        assert not holds_masks(write_video(tmp_path / "white.mp4", self.grey(~TRUTH)))
        assert not holds_masks(tmp_path / "nothing.mp4")

    @pytest.mark.parametrize(
        ("name", "codec", "form", "options"),
        [
            ("cut.mov", "qtrle", "argb", {}),
            ("cut.webm", "libvpx-vp9", "yuva420p", {"crf": "20", "b": "0"}),
        ],
    )
    def test_an_alpha_channel(self, tmp_path: Path, name: str, codec: str, form: str, options: dict) -> None:
        video = write_alpha(tmp_path / name, codec, form, **options)
        assert holds_masks(video)
        found = from_masks(video)
        assert overlap(found.masks, TRUTH) > 0.93
        assert "alpha channel" in found.notes[0]

    def test_a_large_one_is_reduced_and_points_are_in_its_own_pixels(self, tmp_path: Path) -> None:
        size = (1280, 960)
        both = [np.stack([figure(8 * x, size) for x in path]) for path in (PATH, np.linspace(130, 100, 12))]
        video = write_video(tmp_path / "large.mp4", self.grey(both[0] | both[1]), fps=12.0)
        with pytest.raises(VideoError, match="two people are in view"):
            from_masks(video)
        found = from_masks(video, person_at=PersonAt(8 * 130, 8 * 70, 0.0))
        assert found.source_size == size
        assert found.masks.shape[1] < size[1] / 2
        columns = np.nonzero(found.masks.any(axis=(0, 1)))[0] / found.masks.shape[2]
        assert 0.55 < columns.min() < columns.max() < 0.9
