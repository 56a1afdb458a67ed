"""`mocap2ctrl train-prior`: a prior that `fit` accepts; nothing is overwritten by accident."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Run

from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.prior.choose import load_prior
from mocap2ctrl.prior.pca import PosePrior


def test_a_trained_prior_is_one_that_fit_accepts(
    run: Run, walk_bvh: Path, walk: str, tmp_path: Path, character: Character
) -> None:
    path = tmp_path / "deep" / "mine.npz"
    ran = run("train-prior", walk_bvh, walk.replace("walk", "run"), "-o", path, "--variance", 0.95, "--json")
    assert ran.code == 0
    said = ran.json
    assert set(said) == {"prior", "components", "variance"}
    assert said["prior"] == str(path)
    assert 0.95 <= said["variance"] < 1
    prior = load_prior(path, character)
    assert isinstance(prior, PosePrior)
    assert prior.name == "mine"
    assert prior.size == said["components"]
    assert [clip["name"] for clip in prior.provenance["clips"]] == ["walk", "humanoid3d_run"]
    folder = tmp_path / "capture"
    fit = run(
        *("fit", walk_bvh, "-o", folder, "--prior", path, "--budget", "tiny", "--workers", 1, "--time-range", 0, 0.2),
        "--json",
    )
    assert fit.code == 0
    assert "trained on this very clip" in fit.err
    path.unlink()
    assert api.load(folder).prior.name == "mine"


def test_more_variance_takes_more_components(run: Run, walk_bvh: Path, tmp_path: Path) -> None:
    sizes = [
        run("train-prior", walk_bvh, "-o", tmp_path / f"{share}.npz", "--variance", share, "--json").json["components"]
        for share in (0.8, 0.95, 1.0)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_name_of_its_own_and_words_for_people(run: Run, walk_bvh: Path, tmp_path: Path, character: Character) -> None:
    ran = run("train-prior", walk_bvh, "-o", tmp_path / "a.npz", "--name", "gait", "--no-mirror")
    assert ran.code == 0
    assert "components keep" in ran.out
    prior = load_prior(tmp_path / "a.npz", character)
    assert isinstance(prior, PosePrior)
    assert prior.name == "gait"
    assert prior.provenance["mirrored"] is False


def test_refuses_to_overwrite(run: Run, walk_bvh: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(b"precious")
    run("train-prior", walk_bvh, "-o", path).refused("mine.npz", "--overwrite")
    assert path.read_bytes() == b"precious"
    assert run("train-prior", walk_bvh, "-o", path, "--overwrite").code == 0
    assert path.read_bytes() != b"precious"


@pytest.mark.parametrize("name", ["nowhere.bvh", "nobody_walks"])
def test_refuses_what_is_no_motion(run: Run, tmp_path: Path, name: str) -> None:
    run("train-prior", name, "-o", tmp_path / "a.npz").refused(name, "no such file")
    assert not list(tmp_path.iterdir())


def test_refuses_an_output_that_fit_would_not_find(run: Run, walk_bvh: Path, tmp_path: Path) -> None:
    run("train-prior", walk_bvh, "-o", tmp_path / "prior.bin").refused("prior.bin", ".npz")
