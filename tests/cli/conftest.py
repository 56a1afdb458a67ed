"""Fixtures of the command line's tests: `run` a command in this process, one small capture, a BVH file of a walk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.cli.main import main
from mocap2ctrl.fit import config
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.npz import write_motion
from mocap2ctrl.track.tracker import TrackConfig
from mocap2ctrl.types import Camera
from mocap2ctrl.video.camera_file import save_camera

WALK = "humanoid3d_walk"
FIT_KEYS = {
    "capture",
    "joint_error_cm",
    "silhouette_iou",
    "fell",
    "elsewhere",
    "states",
    "evaluations",
    "recorded",
    "diverged",
    "interrupted",
    "wall_s",
    "core_s",
}
"""What `fit --json` tells."""

TINY = ("--budget", "tiny", "--workers", 1)
CAMERA = Camera(
    "side",
    (192, 144),
    [[120.0, 0.0, 95.5], [0.0, 120.0, 71.5], [0.0, 0.0, 1.0]],
    [np.pi / 2, 0.0, 0.0],
    [-0.3, 0.9, 3.0],
)


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout; fails when there is anything else."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        value = json.loads(lines[0])
        assert isinstance(value, dict)
        return value

    def refused(self, *says: str) -> None:
        """Bad input: exit code 2, nothing on stdout, the last line on stderr says all of `says`, and no traceback."""
        assert self.code == 2, self.err
        assert self.out == ""
        assert "Traceback" not in self.err
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self.err
        for text in says:
            assert text in lines[0]


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `mocap2ctrl` with the given arguments."""

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as end:  # argparse's way
            code = end.code if isinstance(end.code, int) else 1
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session", autouse=True)
def tiny_budget() -> Iterator[None]:
    """A budget called `tiny`, for fits of a second, and tracks of a second."""
    tracking = TrackConfig(candidates=8, headings=4, hypotheses=2, explored=1, finished=1, rounds=1, moves=1)
    tiny = replace(config.budget("quick"), generations=4, descents=1, tracking=tracking)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(config.BUDGETS, "tiny", tiny)  # type: ignore[arg-type]
        yield


@pytest.fixture(scope="session")
def walk() -> str:
    """The name of a clip that pybullet ships."""
    if deepmimic_directory() is None:
        pytest.skip("DeepMimic's clips come with pybullet, which is not installed")
    return WALK


@pytest.fixture(scope="session")
def walk_bvh(tmp_path_factory: pytest.TempPathFactory, walk: str, character: Character) -> Path:
    """The first half second of a walk as a BVH file."""
    path = tmp_path_factory.mktemp("motion") / "walk.bvh"
    write_bvh(path, load_motion(walk, character, time_range=(0.0, 0.5)).clip, character)
    return path


@dataclass(frozen=True)
class Fitted:
    """The session's capture and what the command said when it was made. Not to be changed: copy it."""

    folder: Path
    ran: Ran


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory, walk_bvh: Path) -> Fitted:
    """A fit of half a second of a walk, by the command line, with `--json`."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("fitted") / "walk"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["fit", str(walk_bvh), "-o", str(folder), "--budget", "tiny", "--workers", "1", "--json"])
    return Fitted(folder, Ran(code, out.getvalue(), err.getvalue()))


@pytest.fixture
def capture(fitted: Fitted, tmp_path: Path) -> Path:
    """A copy of the session's capture."""
    return shutil.copytree(fitted.folder, tmp_path / "capture")


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
    masks = rasterise(capsule_ends(shape, *frames), shape.radii_at(1.1), CAMERA)
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


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below `folder`."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
