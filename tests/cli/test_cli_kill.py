"""Fits whose main process is killed, again and again, at random points: what is resumed ends as if nothing had happened."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mocap2ctrl.cli.main import main
from mocap2ctrl.fit import config
from mocap2ctrl.fit.capture import holds_capture
from mocap2ctrl.fit.problem import Spreads

PATIENCE_S = 100.0
SETTINGS = {"generations": 15, "descents": 2, "stage_s": 0.1, "spreads": Spreads(velocity=20.0)}
"""Of which some simulations diverge."""

PROGRAM = """
import sys
from dataclasses import replace
from mocap2ctrl.cli.main import main
from mocap2ctrl.fit import config
from mocap2ctrl.fit.problem import Spreads
config.BUDGETS["tiny"] = replace(config.budget("quick"), **SETTINGS)
sys.exit(main(sys.argv[1:]))
""".replace("SETTINGS", repr(SETTINGS))
ARGUMENTS = ("--budget", "tiny", "--json", "--seed", 3, "--time-range", 0, 0.3)
JOURNAL = Path("checkpoint") / "journal.bin"


def started(folder: Path, walk_bvh: Path, workers: int, *options: str) -> subprocess.Popen[str]:
    command = ("fit", walk_bvh, "-o", folder, *ARGUMENTS, "--workers", workers, *options)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(folder: Path, walk_bvh: Path, *options: str) -> None:
    """Fits to the end, in this process."""
    command = ("fit", walk_bvh, "-o", folder, *ARGUMENTS, "--workers", 1, *options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(config.BUDGETS, "tiny", replace(config.budget("quick"), **SETTINGS))  # type: ignore[arg-type]
        assert main([str(argument) for argument in command]) == 0


def wait_for_journal(process: subprocess.Popen[str], journal: Path, size: float) -> None:
    """Until the journal has grown to `size` bytes."""
    end = time.monotonic() + PATIENCE_S
    while not (journal.exists() and journal.stat().st_size >= size):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "the journal does not grow"
        time.sleep(0.001)


def kill_when(process: subprocess.Popen[str], journal: Path, size: float, later_s: float) -> None:
    """SIGKILL to the main process alone, `later_s` after its journal has grown to `size` bytes."""
    wait_for_journal(process, journal, size)
    time.sleep(later_s)
    process.kill()
    process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, walk_bvh: Path) -> Path:
    """The folder of a fit that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "walk"
    finish(folder, walk_bvh)
    return folder


def without_command(folder: Path) -> str:
    """The controller but for the line that says how it was called."""
    lines = (folder / "controller.json").read_text().splitlines()
    return "\n".join(line for line in lines if '"command"' not in line)


def diverged(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (folder / "diverged").iterdir()}


def test_the_main_process_killed_at_random_points(tmp_path: Path, walk_bvh: Path, whole: Path) -> None:
    """Before the first record, and twice later; with one worker and with two."""
    folder, draw = tmp_path / "walk", random.Random(7)
    size = (whole / JOURNAL).stat().st_size
    for number, share in enumerate(sorted((0.0, draw.uniform(0.1, 0.9), draw.uniform(0.1, 0.9)))):
        options = ("--resume",) if holds_capture(folder) else ()
        process = started(folder, walk_bvh, 1 + number % 2, *options)
        kill_when(process, folder / JOURNAL, share * size, draw.uniform(0.0, 0.05))
        assert (folder / JOURNAL).stat().st_size >= 0.9 * share * size, "more than a generation was lost"
        assert not (folder / "controller.json").exists()
    finish(folder, walk_bvh, "--resume")
    assert without_command(folder) == without_command(whole)
    assert (folder / JOURNAL).read_bytes() == (whole / JOURNAL).read_bytes()
    assert diverged(folder) == diverged(whole)
    assert len(diverged(folder)) > 0
