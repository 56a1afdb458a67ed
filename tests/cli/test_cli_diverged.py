"""Simulations that diverge during a fit: said at the end, with a command that replays the first."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import av
import pytest
from conftest import Fitted, Ran, Run, contents

from mocap2ctrl.character.model import Character
from mocap2ctrl.fit import config
from mocap2ctrl.fit.problem import Spreads
from mocap2ctrl.motion.npz import read_motion

OPTIONS = ("--budget", "wild", "--workers", 1, "--time-range", 0, 0.2)


@pytest.fixture(autouse=True)
def _wild_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """First velocities of hundreds of radians a second."""
    wild = replace(config.BUDGETS["tiny"], spreads=Spreads(velocity=25.0))
    monkeypatch.setitem(config.BUDGETS, "wild", wild)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def known() -> list[tuple[Path, Ran]]:
    return []


@pytest.fixture
def wild(
    known: list[tuple[Path, Ran]], tmp_path_factory: pytest.TempPathFactory, walk_bvh: Path, run: Run
) -> Iterator[tuple[Path, Ran]]:
    """The folder of a fit with divergences, and what the command said; made once."""
    if not known:
        folder = tmp_path_factory.mktemp("wild") / "a walk"
        known.append((folder, run("fit", walk_bvh, "-o", folder, *OPTIONS, "--json")))
    yield known[0]
    shutil.rmtree(known[0][0] / "simulations", ignore_errors=True)


def test_a_fit_says_how_many_and_how_to_see_the_first(wild: tuple[Path, Ran], run: Run) -> None:
    folder, ran = wild
    assert ran.code == 0
    count = ran.json["diverged"]
    assert 5 < count < ran.json["evaluations"]
    line = next(line for line in ran.err.splitlines() if "diverged" in line)
    assert line.startswith(f"{count:,} of {ran.json['evaluations']:,} simulations diverged")
    program, *command = shlex.split(line.partition("with: ")[2])
    assert program == "mocap2ctrl"
    said = run(*command, "--no-video", "--json").json
    assert said["diverged"] is True
    assert said["diverged_at_step"] == round(said["diverged_at_s"] * 120)
    assert said["velocity"] >= 300.0
    assert (said["fell"], said["fell_at_s"], said["seed"], said["generation"]) == (None, None, 1, 1)
    kept = json.loads((folder / "diverged" / "0001.json").read_text())
    assert [said[name] for name in ("stage", "generation", "search", "sample", "engine")] == [
        kept[name] for name in ("stage", "generation", "search", "sample", "engine")
    ]


def test_a_replay_speaks_and_writes_motion_and_video(wild: tuple[Path, Ran], run: Run, character: Character) -> None:
    folder, _ = wild
    for number in range(1, 6):
        ran = run("simulate", folder, "--diverged", number)
        assert ran.code == 0
        assert ran.out.startswith("diverges at step ")
        output = folder / "simulations" / f"diverged_{number}"
        assert str(output / "overlay.mp4") in ran.out
        assert {p.name for p in output.iterdir()} == {"motion.npz", "motion.bvh", "overlay.mp4"}
        step = int(ran.out.split()[3])
        assert len(read_motion(output / "motion.npz", character)) == max(step, 1)
        with av.open(str(output / "overlay.mp4")) as video:
            assert sum(1 for _ in video.decode(video=0)) >= 1


def test_a_replay_does_not_need_a_controller(wild: tuple[Path, Ran], run: Run, tmp_path: Path) -> None:
    """The fit may have ended otherwise."""
    copy = shutil.copytree(wild[0], tmp_path / "copy")
    (copy / "controller.json").unlink()
    first = run("simulate", wild[0], "--diverged", 1, "--no-video", "--json").json
    assert run("simulate", copy, "--diverged", 1, "--no-video", "--json").json == first


@pytest.mark.parametrize(
    "options",
    [
        ("--push", 1, 0, 0),
        ("--push-at", 0.1),
        ("--motion", "x.glb"),
        ("--seconds", 2),
        ("--torque-limit", 0.5),
        ("--engine", "mujoco"),
    ],
    ids=str,
)
def test_what_would_make_it_another_simulation_is_refused(
    wild: tuple[Path, Ran], run: Run, options: tuple[object, ...]
) -> None:
    before = contents(wild[0])
    run("simulate", wild[0], "--diverged", 1, *options).refused(f"leave {options[0]} out")
    assert contents(wild[0]) == before


def test_one_that_is_not_there_is_refused(wild: tuple[Path, Ran], fitted: Fitted, run: Run, tmp_path: Path) -> None:
    run("simulate", wild[0], "--diverged", 77).refused("0077.json", "there are 1, 2, 3, 4, 5")
    run("simulate", fitted.folder, "--diverged", 1).refused("no simulation of this fit has diverged")
    run("simulate", tmp_path, "--diverged", 1).refused("is no capture folder")
    run("simulate", wild[0], "--diverged", 0).refused("--diverged", "1 to 9999")
    run("simulate", wild[0], "--diverged", 1, "-o", wild[0]).refused("is a capture", "another -o")
