"""What kind of input is given, what its capture is called, and which options go with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, PriorError
from mocap2ctrl.fit.inputs import Options, input_name, is_video_input, motion_prior, refuse_options, video_priors
from mocap2ctrl.prior.pca import IdentityPrior


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Holds a folder of pictures and a file of masks; the working directory."""
    (tmp_path / "frames").mkdir()
    np.savez(tmp_path / "two.npz", left=np.zeros((1, 9, 9), bool), right=np.zeros((1, 9, 9), bool))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "seen", "name"),
    [
        ("clips/walk.mp4", True, "walk"),
        ("Walk.MOV", True, "Walk"),
        ("two.npz:left", True, "left"),
        ("two.npz", True, "two"),
        ("frames", True, "frames"),
        ("frames/", True, "frames"),
        ("walk.bvh", False, "walk"),
        ("humanoid3d_walk", False, "humanoid3d_walk"),
        ("motion.txt", False, "motion"),
        ("take.1.bvh", False, "take.1"),
        ("gait.c3d", False, "gait"),
        ("01_02.amc", False, "01_02"),
    ],
)
def test_kinds_and_names(folder: Path, source: str, seen: bool, name: str) -> None:
    assert is_video_input(source) is seen
    assert input_name(source) == name


def test_the_working_directory_has_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "frames")
    assert input_name(".") == "frames"


@pytest.mark.parametrize(
    ("source", "method", "options", "says"),
    [
        ("walk.bvh", "incremental", Options(camera="c.toml"), r"is a motion; --camera .* leave it out"),
        (
            "plain.npy",
            "incremental",
            Options(camera="c.toml"),
            r"unknown kind of input for --camera; allowed are a video",
        ),
        ("walk.bvh", "incremental", Options(background="b.jpg"), "--background"),
        ("walk.bvh", "incremental", Options(person="3,4"), "--person"),
        ("walk.bvh", "incremental", Options(masks=True), "--masks"),
        ("walk.bvh", "incremental", Options(allow_ground=True), "--allow-ground"),
        ("walk.bvh", "incremental", Options(reference="r.bvh"), "--reference"),
        ("walk.bvh", "incremental", Options(slowmo=4.0), "--slowmo"),
        ("two.npz:left", "batch", Options(slowmo=4.0), "holds masks; --slowmo"),
        ("walk.bvh", "growth", Options(), "growth.*choose incremental or batch"),
        ("walk.mp4", "incremental", Options(cycles=2), "--cycles"),
        ("walk.mp4", "incremental", Options(skeleton="a.asf"), "no motion file; --skeleton goes with"),
        ("two.npz:left", "batch", Options(cycles=2), "--cycles"),
        ("frames", "incremental", Options(background="b.jpg"), r"holds masks; --background"),
        ("frames", "incremental", Options(background_method="key"), r"holds masks; --background-method"),
        ("walk.bvh", "incremental", Options(background_method="key"), "--background-method"),
    ],
)
def test_options_that_do_not_fit(folder: Path, source: str, method: str, options: Options, says: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{source}: .*{says}"):
        refuse_options(source, method, options)


@pytest.mark.parametrize("method", ["incremental", "batch", "growth"])
def test_options_that_fit(folder: Path, method: str) -> None:
    refuse_options("walk.mp4", method, Options("walk", (0, 1), 25.0, 1, "c.toml", "b.jpg", True, "r.bvh"))
    refuse_options("frames", method, Options(camera="c.toml", allow_ground=True, reference="r.bvh"))
    if method != "growth":
        refuse_options("walk.bvh", method, Options("walk", (0, 1), 30.0, 2))


def test_another_npz_is_no_prior(folder: Path, character: Character) -> None:
    with pytest.raises(PriorError, match=r"two\.npz: not a prior .* train-prior"):
        motion_prior("two.npz", character)


def test_a_video_needs_a_prior_and_a_motion_does_not(character: Character) -> None:
    assert [prior.name for prior in video_priors("auto", character)][:2] == ["everyday", "all"]
    assert [prior.name for prior in video_priors("walk", character)] == ["walk"]
    for name in ("none", "identity", "NONE"):
        with pytest.raises(ConfigError, match=rf"prior is '{name}'.*allowed are auto, .*walk"):
            video_priors(name, character)
        assert isinstance(motion_prior(name, character), IdentityPrior)
    with pytest.raises(PriorError, match="'nobody'; allowed are auto, ") as refused:
        video_priors("nobody", character)
    assert "identity" not in str(refused.value)
    with pytest.raises(PriorError, match="allowed are identity, none, "):
        motion_prior("nobody", character)
    assert isinstance(motion_prior("auto", character), IdentityPrior)
    assert motion_prior("walk", character).name == "walk"
