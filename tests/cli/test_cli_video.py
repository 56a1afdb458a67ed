"""`mocap2ctrl fit` and `evaluate` on what a camera saw: masks of half a second of a walk, and the sample footage."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from conftest import Ran, Run, contents

from mocap2ctrl import api
from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.cli.main import main
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.npz import read_motion, write_motion
from mocap2ctrl.types import Camera
from mocap2ctrl.video.camera_file import save_camera

CAMERA = Camera(
    "side",
    (192, 144),
    [[120.0, 0.0, 95.5], [0.0, 120.0, 71.5], [0.0, 0.0, 1.0]],
    [np.pi / 2, 0.0, 0.0],
    [-0.3, 0.9, 3.0],
)
SAMPLE = Path(__file__).resolve().parents[2] / "video" / "walk.mp4"
KEYS = {"capture", "joint_error_cm", "silhouette_iou", "fell", "states", "evaluations", "wall_s", "core_s"}
TINY = ("--budget", "tiny", "--workers", 1)


@dataclass(frozen=True)
class Filmed:
    """A walk as a camera saw it: masks with their camera beside them, and the truth."""

    folder: Path

    @property
    def masks(self) -> str:
        """`FILE.npz:KEY`."""
        return f"{self.folder / 'stroll.npz'}:stroll"

    @property
    def truth(self) -> Path:
        """What was performed."""
        return self.folder / "stroll.truth.npz"


@pytest.fixture(scope="session")
def filmed(tmp_path_factory: pytest.TempPathFactory, walk: str, character: Character) -> Filmed:
    folder = tmp_path_factory.mktemp("filmed")
    clip = replace(load_motion(walk, character, time_range=(0.0, 0.4)).clip, loop=False)
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    shape = body_shape(character)
    masks = rasterise(capsule_ends(shape, *frames), 1.1 * shape.radii, CAMERA)
    np.savez(folder / "stroll.npz", stroll=masks, fps=30.0)
    save_camera(folder / "stroll.toml", CAMERA)
    write_motion(folder / "stroll.truth.npz", clip, character)
    with np.load(folder / "stroll.truth.npz") as data:
        arrays = {name: data[name] for name in data.files}
    np.savez(folder / "stroll.truth.npz", **arrays, points_m=evaluation_points(character, *frames))
    pictures = folder / "pictures"
    pictures.mkdir()
    for number, mask in enumerate(masks):
        cv2.imwrite(str(pictures / f"{number}.png"), mask.astype(np.uint8) * 255)
    return Filmed(folder)


@pytest.fixture(scope="session")
def fitted_video(tmp_path_factory: pytest.TempPathFactory, filmed: Filmed) -> tuple[Path, Ran]:
    """A fit to masks with a reference and `--json`. Not to be changed: copy it."""
    folder = tmp_path_factory.mktemp("fitted") / "stroll"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        arguments = ("fit", filmed.masks, "-o", folder, *TINY, "--reference", filmed.truth, "--json")
        code = main([str(a) for a in arguments])
    return folder, Ran(code, out.getvalue(), err.getvalue())


@pytest.fixture
def capture(fitted_video: tuple[Path, Ran], tmp_path: Path) -> Path:
    """A copy of the fitted capture."""
    return shutil.copytree(fitted_video[0], tmp_path / "capture")


def test_a_fit_says_what_the_contract_says(fitted_video: tuple[Path, Ran]) -> None:
    folder, ran = fitted_video
    assert ran.code == 0, ran.err
    said = ran.json
    assert set(said) == KEYS
    assert said["capture"] == str(folder)
    assert 0.5 < said["silhouette_iou"] <= 1.0
    assert 0.0 < said["joint_error_cm"] < 60.0
    assert said["fell"] is False
    assert re.search(r"camera: \S+stroll\.toml, found beside the input", ran.err)
    assert "tracking …" in ran.err
    assert "trained on the very motion that is performed" in ran.err
    assert re.search(r"stage 2/2 .* silhouettes 0\.\d\d", ran.err)


def test_the_folder_holds_evidence_and_result(fitted_video: tuple[Path, Ran], character: Character) -> None:
    folder, _ = fitted_video
    assert {
        "camera.toml",
        "target.npz",
        "prior.npz",
        "controller.json",
        "overlay.mp4",
        "report.html",
        "motion.bvh",
    } <= set(contents(folder))
    assert "checkpoint/track.npz" not in contents(folder)
    capture = api.load(folder)
    assert capture.prior.name == "all"
    assert capture.silhouettes is not None
    assert 0.8 < capture.girth < 1.5
    assert capture.config.weights.silhouette > 0.0
    assert read_motion(folder / "motion.npz", capture.character).duration_s == pytest.approx(0.4, abs=0.02)
    with av.open(str(folder / "overlay.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) > 5
    generations = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert all(0.0 < e["terms"]["silhouette"] < 2.0 for e in generations if e["event"] == "generation")


def test_evaluate_gives_the_same_numbers_and_errors_only_against_a_reference(
    fitted_video: tuple[Path, Ran], filmed: Filmed, run: Run
) -> None:
    folder, fit = fitted_video
    plain = run("evaluate", folder, "--json").json
    assert plain["silhouette_iou"] == fit.json["silhouette_iou"]
    assert plain["joint_error_cm"] is plain["root_aligned_error_cm"] is plain["source_error_cm"] is None
    assert plain["track_joint_error_cm"] is None
    assert plain["track_error_cm"] > 0.0
    assert 0.5 < plain["track_silhouette_iou"] <= 1.0
    said = run("evaluate", folder, "--reference", filmed.truth, "--json").json
    assert said["joint_error_cm"] == fit.json["joint_error_cm"]
    assert set(said) == set(plain)
    for name in ("root_aligned_error_cm", "source_error_cm", "track_joint_error_cm", "track_root_aligned_error_cm"):
        assert 0.0 < said[name] < 60.0
    assert said["track_source_error_cm"] == pytest.approx(said["track_joint_error_cm"], rel=0.1)  # at 30 and at 120 fps
    spoken = run("evaluate", folder, "--reference", filmed.truth)
    assert "the track's error" in spoken.out
    assert "very motion" in spoken.err


def test_a_video_s_capture_is_simulated(capture: Path, run: Run) -> None:
    said = run("simulate", capture, "--seconds", 0.4, "--no-video", "--json").json
    assert said["fell"] is False
    assert (capture / "simulations" / "0.4s" / "motion.bvh").is_file()


def test_a_fit_goes_on_from_its_track(capture: Path, filmed: Filmed, run: Run) -> None:
    """What the track came to is in target.npz; only controllers are simulated anew."""
    before = contents(capture)
    for name in ("controller.json", "report.html", "checkpoint/journal.bin"):
        (capture / name).unlink()
    ran = run("fit", filmed.masks, "-o", capture, *TINY, "--resume")
    assert ran.code == 0, ran.err
    after = contents(capture)
    for name in ("checkpoint/journal.bin", "character.toml", "camera.toml"):
        assert after[name] == before[name]
    assert re.search(r"silhouettes overlap by 0\.\d{3}, the track's by 0\.\d{3}", ran.out)
    assert re.search(r"cm from the track, no fall", ran.out)
    assert re.search(r"\d states, [\d,]+ evaluations", ran.out)


def test_another_fit_is_not_resumed(capture: Path, filmed: Filmed, run: Run) -> None:
    (capture / "controller.json").unlink()
    before = contents(capture)
    ran = run("fit", filmed.masks, "-o", capture, *TINY, "--resume", "--prior", "walk")
    assert ran.code == 2
    assert "other input, settings or version" in ran.err.splitlines()[-1]
    assert contents(capture) == before


def test_growth_from_pictures(filmed: Filmed, tmp_path: Path, run: Run) -> None:
    """A folder of PNGs with its rate and camera given; targets are coefficients of the prior."""
    folder = tmp_path / "grown"
    ran = run(
        *(
            "fit",
            filmed.folder / "pictures",
            "-o",
            folder,
            *TINY,
            "--fps",
            30,
            "--camera",
            filmed.folder / "stroll.toml",
        ),
        *("--method", "growth", "--prior", "locomotion", "--allow-ground", "--time-range", 0, 0.3, "--json"),
    )
    assert ran.code == 0, ran.err
    assert ran.json["joint_error_cm"] is None
    capture = api.load(folder)
    assert capture.config.method == "growth"
    assert capture.config.weights.markers == 0.0
    assert capture.run["allow_ground"] is True
    assert capture.finished_controller().prior == "locomotion"
    assert run("evaluate", folder, "--json").json["silhouette_iou"] == ran.json["silhouette_iou"]


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the sample footage is in the checkout only")
def test_the_sample_footage(tmp_path: Path, run: Run) -> None:
    """A video with its camera and clean plate beside it, from a second of its own."""
    folder = tmp_path / "walk"
    truth = SAMPLE.with_suffix(".truth.npz")
    ran = run(
        *("fit", SAMPLE, "-o", folder, *TINY, "--time-range", 0.5, 0.9, "--prior", "all-but-walk"),
        *("--reference", truth, "--json"),
    )
    assert ran.code == 0, ran.err
    assert ran.json["silhouette_iou"] > 0.5
    assert "very motion" not in ran.err
    said = run("evaluate", folder, "--reference", truth, "--json").json
    assert said["track_root_aligned_error_cm"] < 40.0
    assert api.load(folder).reference.provenance["file"] == "walk.mp4"


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

    def test_no_camera(self, run: Run) -> None:
        Path("stroll.toml").unlink()
        self.refused(run, ("stroll.npz:stroll",), "no camera", "--camera FILE.toml", "stroll.toml")

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
