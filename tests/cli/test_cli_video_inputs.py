"""What users get wrong with videos and masks: exit code 2 and one line, before any long work."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from conftest import CAMERA, TINY, Filmed, Run, contents

from mocap2ctrl.video.camera_file import load_camera, save_camera


def write_video(path: Path, frames: int, draw: Callable[[Any, int], None]) -> Path:
    """A film of a grey wall in which `draw` may change what is in a frame."""
    wall = np.random.default_rng(3).integers(90, 150, (144, 192, 3)).astype(np.uint8)
    wall = cv2.GaussianBlur(wall, (9, 9), 0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 192, 144, "yuv420p"
        for t in range(frames):
            image = wall.copy()
            draw(image, t)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    save_camera(path.with_suffix(".toml"), CAMERA)
    cv2.imwrite(str(path.with_suffix(".background.jpg")), wall[..., ::-1])
    return path


class TestRefused:
    """Exit code 2 and one line, before any long work; nothing is written."""

    @pytest.fixture(autouse=True)
    def _in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filmed: Filmed) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("stroll.npz", "stroll.toml", "stroll.truth.npz"):
            shutil.copy(filmed.folder / name, name)

    def refused(self, run: Run, arguments: tuple[object, ...], *says: str) -> None:
        before = contents(Path())
        run("fit", *arguments, *TINY).refused(*says)
        assert contents(Path()) == before

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--camera", "nowhere.toml"), ("nowhere.toml", "no such camera file")),
            (("--camera", "stroll.toml:left"), ("no camera 'left'", "stroll.toml:side")),
            (("--background", "b.jpg"), ("holds masks", "--background")),
            (("--cycles", 2), ("--cycles", "leave it out")),
            (("--belt", "fast"), ("belt is 'fast'", "auto, none, or a speed")),
            (("--prior", "none"), ("prior is 'none'", "auto", "walk")),
            (("--prior", "nobody"), ("nobody", "walk")),
            (("--time-range", 3, 4), ("3 to 4", "0.4")),
            (("--time-range", 0.1, 0.15), ("at least 0.1 s",)),
            (("--reference", "nowhere.npz"), ("nowhere.npz",)),
            (("--reference", "stroll.npz"), ("stroll.npz", "truth.npz")),
            (("--resume",), ("no capture to resume",)),
            (("-o", "stroll.toml"), ("is a file",)),
            (("-o", "."), ("not empty",)),
        ],
    )
    def test_options(self, run: Run, arguments: tuple[object, ...], says: tuple[str, ...]) -> None:
        self.refused(run, ("stroll.npz:stroll", *arguments), *says)

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--camera", "stroll.toml"), "--camera"),
            (("--background", "b.jpg"), "--background"),
            (("--allow-ground",), "--allow-ground"),
            (("--reference", "stroll.truth.npz"), "--reference"),
            (("--method", "growth"), "growth"),
        ],
    )
    def test_options_of_a_video_with_a_motion(
        self, run: Run, walk_bvh: Path, arguments: tuple[object, ...], says: str
    ) -> None:
        self.refused(run, (walk_bvh, *arguments), "is a motion", says)

    def test_no_camera_is_no_reason(self, run: Run) -> None:
        Path("stroll.toml").unlink()
        ran = run("fit", "stroll.npz:stroll", *TINY, "-o", "captures/stroll", "--height", 1.8)
        assert ran.code == 0, ran.err
        assert "camera: estimated from heads and feet" in ran.err
        assert "1.8 m tall" in ran.err
        assert load_camera("captures/stroll/camera.toml").name == "estimated"
        assert "camera: estimated from heads and feet" in Path("captures/stroll/report.html").read_text("utf-8")

    def test_a_camera_of_pictures_of_another_shape(self, run: Run) -> None:
        save_camera("stroll.toml", replace(CAMERA, size=(144, 192)))
        self.refused(run, ("stroll.npz:stroll",), "144x192", "192x144")

    @pytest.mark.parametrize(
        ("masks", "says"),
        [
            (np.zeros((3, 144, 192, 3), bool), "expected masks (frames, height, width)"),
            (np.zeros((144, 192), bool), "expected masks (frames, height, width)"),
            (np.zeros((9, 144, 192), bool), "no person"),
            (np.full((9, 144, 192), 0.5), "expected bool"),
        ],
    )
    def test_masks_that_are_none(self, run: Run, masks: np.ndarray, says: str) -> None:
        np.savez("stroll.npz", stroll=masks, fps=30.0)
        self.refused(run, ("stroll.npz:stroll",), "stroll.npz", says)

    def test_masks_without_a_rate_or_a_key(self, run: Run) -> None:
        with np.load("stroll.npz") as data:
            masks = data["stroll"]
        np.savez("stroll.npz", stroll=masks)
        self.refused(run, ("stroll.npz:stroll",), "--fps")
        self.refused(run, ("stroll.npz:nobody",), "nobody", "stroll")

    def test_a_folder_without_pictures(self, run: Run) -> None:
        Path("empty").mkdir()
        self.refused(run, ("empty", "--camera", "stroll.toml", "--fps", 30), "empty", "PNG")

    def test_files_that_are_no_videos(self, run: Run) -> None:
        Path("broken.mp4").write_bytes(b"\0\0\0\x18ftypmp42 and no more")
        self.refused(run, ("broken.mp4", "--camera", "stroll.toml"), "broken.mp4")
        self.refused(run, ("nowhere.mp4", "--camera", "stroll.toml"), "nowhere.mp4")

    def test_nobody_moves(self, run: Run) -> None:
        write_video(Path("still.mp4"), 20, lambda image, t: None)
        self.refused(run, ("still.mp4",), "still.mp4")

    def test_somebody_cut_off_by_the_border(self, run: Run) -> None:
        """Only the upper half of a body is ever in the picture."""

        def draw(image: Any, t: int) -> None:
            image[60:, 30 + 4 * t : 60 + 4 * t] = (20, 20, 160)

        write_video(Path("close.mp4"), 20, draw)
        self.refused(run, ("close.mp4",), "close.mp4", "border")
