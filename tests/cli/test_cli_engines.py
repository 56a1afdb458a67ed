"""Two engines by the command line: fit in one, look in the other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import TINY, Fitted, Run

from mocap2ctrl import api
from mocap2ctrl.evaluation.metrics import Evaluation, verdict
from mocap2ctrl.simulation.choose import has_bullet

pytestmark = pytest.mark.skipif(not has_bullet(), reason="pybullet has no wheel for this Python")


@pytest.fixture(scope="module")
def in_bullet(tmp_path_factory: pytest.TempPathFactory, walk_bvh: Path) -> api.FitResult:
    """The walk of `fitted`, fitted in Bullet."""
    from mocap2ctrl.fit.config import budget

    return api.fit(
        walk_bvh, tmp_path_factory.mktemp("bullet") / "walk", config=budget("tiny"), workers=1, engine="bullet"
    )


def states(folder: Path) -> Any:
    return json.loads((folder / "controller.json").read_text())["states"]


def test_a_fit_tells_how_its_controller_does_elsewhere(fitted: Fitted, run: Run) -> None:
    elsewhere = fitted.ran.json["elsewhere"]
    assert set(elsewhere) == {"bullet"}
    said = run("evaluate", fitted.folder, "--engine", "bullet", "--json").json
    assert said["engine"] == "bullet"
    assert elsewhere["bullet"] == {name: said[name] for name in ("joint_error_cm", "fell", "fell_at_s")}
    assert said["joint_error_cm"] != fitted.ran.json["joint_error_cm"]
    assert "in Bullet" in (fitted.folder / "report.html").read_text("utf-8")


def test_a_fit_in_bullet_follows_the_walk_and_is_looked_at_in_mujoco(in_bullet: api.FitResult, run: Run) -> None:
    assert in_bullet.evaluation.joint_error_cm is not None
    assert in_bullet.evaluation.joint_error_cm < 15.0
    folder = in_bullet.capture.folder
    said = run("evaluate", folder, "--json").json
    assert said["engine"] == "bullet"  # what it was fitted in
    assert said["joint_error_cm"] == in_bullet.evaluation.joint_error_cm
    shown = run("evaluate", folder, "--engine", "mujoco").out
    assert "mujoco (fitted in bullet)" in shown
    assert set(in_bullet.elsewhere) == {"mujoco"}
    assert "in MuJoCo" in (folder / "report.html").read_text("utf-8")


def test_a_fit_in_bullet_is_the_same_for_two_workers(
    in_bullet: api.FitResult, walk_bvh: Path, tmp_path: Path, run: Run
) -> None:
    ran = run("fit", walk_bvh, "-o", tmp_path / "walk", "--engine", "bullet", *TINY[:2], "--workers", 2, "--json")
    assert ran.code == 0
    assert states(tmp_path / "walk") == states(in_bullet.capture.folder)


def test_engines_search_each_for_itself(in_bullet: api.FitResult, fitted: Fitted) -> None:
    assert states(in_bullet.capture.folder) != states(fitted.folder)


def test_a_push_in_bullet(in_bullet: api.FitResult, run: Run, tmp_path: Path) -> None:
    folder = in_bullet.capture.folder
    ran = run(
        "simulate", folder, "--seconds", 0.4, "--push", 60, 0, 0, "--push-at", 0.1, "--json", "-o", tmp_path / "s"
    )
    assert ran.code == 0
    assert ran.json["seconds"] == 0.4


def test_an_unknown_engine_is_refused(walk_bvh: Path, run: Run, tmp_path: Path) -> None:
    run("fit", walk_bvh, "-o", tmp_path / "x", "--engine", "havok").refused("'havok'", "'mujoco'", "'bullet'")


def test_who_survives_in_one_engine_only_is_told(fitted: Fitted) -> None:
    good = Evaluation(4.0, 3.0, None, False, None, 60)
    fallen = replace(good, joint_error_cm=40.0, fell=True, fell_at_s=0.31)
    capture = api.load(fitted.folder)
    assert api.engine_warnings(capture, good, {"bullet": fallen}) == (
        "in engine 'bullet' the controller falls at 0.31 s: it depends on details of 'mujoco'",
    )
    assert api.engine_warnings(capture, good, {"bullet": good}) == ()
    assert api.engine_warnings(capture, fallen, {"bullet": fallen}) == ()  # that it falls is told already
    assert verdict(good) == "4.0 cm, no fall"
    assert verdict(fallen) == "40.0 cm, fell at 0.31 s"
    assert verdict(replace(good, joint_error_cm=None, track_error_cm=2.0)) == "2.0 cm from the track, no fall"


def test_a_fit_in_both_engines(walk_bvh: Path, run: Run, tmp_path: Path, fitted: Fitted) -> None:
    ran = run("fit", walk_bvh, "-o", tmp_path / "both", "--also-in", "bullet", *TINY, "--json")
    assert ran.code == 0, ran.err
    assert states(tmp_path / "both") != states(fitted.folder)
    saved = api.load(tmp_path / "both")
    assert saved.also_in == ("bullet",)
    assert json.loads((tmp_path / "both" / "controller.json").read_text())["provenance"]["also_in"] == ["bullet"]


@pytest.mark.parametrize(("also_in", "says"), [("mujoco", "name another one"), ("havok", "'havok' is not available")])
def test_the_other_engine_must_be_another(walk_bvh: Path, run: Run, tmp_path: Path, also_in: str, says: str) -> None:
    run("fit", walk_bvh, "-o", tmp_path / "x", "--also-in", also_in).refused(says)
    assert not (tmp_path / "x").exists()
