"""Fits that are cut off: Ctrl-C and SIGTERM keep the best so far, a kill loses no evaluation, and nobody is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Run

from mocap2ctrl import api
from mocap2ctrl.cli.main import main
from mocap2ctrl.fit import config

PATIENCE_S = 120.0
GENERATIONS, STAGES = 40, 3
ARGUMENTS = ("--budget", "tiny", "--json", "--seed", 3, "--time-range", 0, 0.3)
PROGRAM = f"""
import sys
from dataclasses import replace
from mocap2ctrl.cli.main import main
from mocap2ctrl.fit import config
config.BUDGETS["tiny"] = replace(config.budget("quick"), generations={GENERATIONS}, descents=2, stage_s=0.1)
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """`mocap2ctrl` in a process group of its own."""
    command = [sys.executable, "-P", "-c", PROGRAM, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.01)


def stages(folder: Path) -> int:
    log = folder / "log.jsonl"
    return log.read_text().count('"event": "stage"') if log.exists() else 0


def wait_for_first_stage(process: subprocess.Popen[str], folder: Path) -> None:
    wait_until(lambda: stages(folder) > 0 or process.poll() is not None, "the first stage was logged")
    assert process.poll() is None, process.communicate()


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(autouse=True)
def _same_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `PROGRAM` calls tiny, in this process too."""
    monkeypatch.setitem(
        config.BUDGETS, "tiny", replace(config.budget("quick"), generations=GENERATIONS, descents=2, stage_s=0.1)
    )  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def undisturbed() -> list[Path]:
    """The folder of the fit that nothing interrupted, once a test has needed it."""
    return []


def controller_of_an_undisturbed_fit(run: Run, walk_bvh: Path, folder: Path, known: list[Path]) -> dict[str, object]:
    if not known:
        assert run("fit", walk_bvh, "-o", folder / "plain", "--workers", 1, *ARGUMENTS).code == 0
        known.append(folder / "plain")
    return controller_in(known[0])


def controller_in(folder: Path) -> dict[str, object]:
    data = json.loads((folder / "controller.json").read_text())
    return {"states": data["states"], "start": data["start"], "structure": data["structure"]}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_ctrl_c_keeps_the_best_so_far_and_the_fit_can_go_on(
    number: signal.Signals, walk_bvh: Path, tmp_path: Path, run: Run, undisturbed: list[Path]
) -> None:
    """As a terminal does it: SIGINT to the whole group, workers included. As a job scheduler does: SIGTERM to the process."""
    folder = tmp_path / "walk"
    with running("fit", walk_bvh, "-o", folder, "--workers", 2, *ARGUMENTS) as process:
        wait_for_first_stage(process, folder)
        (os.kill if number == signal.SIGTERM else os.killpg)(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "leaked" not in err
    assert "interrupted" in err.splitlines()[-1]
    assert "--resume" in err.splitlines()[-1]
    said = json.loads(out)
    assert 1 <= stages(folder) < STAGES
    assert len(api.load(folder).finished_controller().states) == said["states"]
    assert run("evaluate", folder, "--json").json["joint_error_cm"] == said["joint_error_cm"]
    resumed = run("fit", walk_bvh, "-o", folder, "--workers", 1, *ARGUMENTS, "--resume").json
    assert said["recorded"] == 0
    assert said["evaluations"] <= resumed["recorded"] < resumed["evaluations"]
    assert "of them by earlier runs" in (folder / "report.html").read_text(encoding="utf-8")
    assert stages(folder) == STAGES
    assert controller_in(folder) == controller_of_an_undisturbed_fit(run, walk_bvh, tmp_path, undisturbed)
    run("fit", walk_bvh, "-o", folder, "--workers", 1, "--budget", "tiny", "--resume").refused("has ended")


def test_a_killed_fit_leaves_nobody_behind_and_is_resumed_to_the_same_end(
    walk_bvh: Path, tmp_path: Path, run: Run, undisturbed: list[Path]
) -> None:
    folder = tmp_path / "walk"
    with running("fit", walk_bvh, "-o", folder, "--workers", 2, *ARGUMENTS) as process:
        wait_for_first_stage(process, folder)
        workers = children(process.pid)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    assert len(workers) >= 2
    wait_until(lambda: not any(map(alive, workers)), "the workers had ended")
    assert not (folder / "controller.json").exists()
    journal = folder / "checkpoint" / "journal.bin"
    before = journal.read_bytes()
    assert run("fit", walk_bvh, "-o", folder, "--workers", 1, *ARGUMENTS, "--resume").code == 0
    assert journal.read_bytes().startswith(before[: int(0.9 * len(before))])
    assert controller_in(folder) == controller_of_an_undisturbed_fit(run, walk_bvh, tmp_path, undisturbed)


def test_ctrl_c_in_compiled_code_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setattr("mocap2ctrl.cli.inspect.run", interrupted)
    assert main(["inspect", "walk.mp4"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_an_error_of_compiled_code_is_no_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise SystemError("of its own")

    monkeypatch.setattr("mocap2ctrl.cli.inspect.run", broken)
    with pytest.raises(SystemError, match="of its own"):
        main(["inspect", "walk.mp4"])
