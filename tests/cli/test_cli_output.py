"""What stdout and stderr get when they cannot be written, when arguments do not parse, and on Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import Run

from mocap2ctrl import api
from mocap2ctrl.character.model import load_character
from mocap2ctrl.cli import learn
from mocap2ctrl.fit.capture import save_begun
from mocap2ctrl.fit.config import budget

COMMAND = [sys.executable, "-m", "mocap2ctrl", "evaluate", "nowhere", "--json"]
BUFFERED = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
UNBUFFERED = {**BUFFERED, "PYTHONUNBUFFERED": "1"}
FULL = Path("/dev/full")


@pytest.mark.parametrize("environment", [BUFFERED, UNBUFFERED], ids=["buffered", "unbuffered"])
class TestOutputThatCannotBeWritten:
    def test_a_closed_pipe_is_silent(self, environment: dict[str, str]) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        try:
            ran = subprocess.run(
                COMMAND, stdout=writing, stderr=subprocess.PIPE, text=True, env=environment, check=False
            )
        finally:
            os.close(writing)
        assert ran.returncode == 1
        assert all(line.startswith("mocap2ctrl evaluate: nowhere") for line in ran.stderr.splitlines())

    @pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
    def test_a_full_disk_is_one_line(self, environment: dict[str, str]) -> None:
        with FULL.open("w") as out:
            ran = subprocess.run(COMMAND, stdout=out, stderr=subprocess.PIPE, text=True, env=environment, check=False)
        assert ran.returncode == 1
        assert "cannot be written" in ran.stderr.splitlines()[-1]
        assert "Traceback" not in ran.stderr
        assert "ignored" not in ran.stderr


def test_a_closed_stdout_is_no_error_of_its_own() -> None:
    ran = subprocess.run(
        COMMAND, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1), env=BUFFERED, check=False
    )
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["fit", "x.bvh", "--height", "5"], ["fit"], ["evaluate", "x", "--what"]])
def test_arguments_that_do_not_parse_are_an_object_too(run: Run, arguments: list[str]) -> None:
    ran = run(*arguments, "--json")
    assert ran.code == 2
    assert set(ran.json) == {"error"}
    assert ran.json["error"] in ran.err


GO_ON = "captures/walk holds what there is; go on with the same command and --resume"
NOT_BEGUN = "interrupted; nothing is kept: the fit had not begun"


@pytest.mark.parametrize(
    ("arguments", "there", "told"),
    [
        pytest.param("fit walk", "mocap2ctrl fit walk", GO_ON, id="begun"),
        pytest.param("fit walk --resume", "mocap2ctrl fit walk", GO_ON, id="resumed"),
        pytest.param(
            "fit walk --overwrite", "mocap2ctrl fit walk --overwrite", f"{GO_ON} in place of --overwrite", id="anew"
        ),
        pytest.param("fit walk --overwrite", "mocap2ctrl fit walk", NOT_BEGUN, id="another's"),
        pytest.param("fit walk", None, NOT_BEGUN, id="not begun"),
        pytest.param("evaluate walk", "mocap2ctrl fit walk", "interrupted", id="evaluate"),
        pytest.param("simulate walk", "mocap2ctrl fit walk", "interrupted", id="simulate"),
    ],
)
def test_ctrl_c_promises_a_resume_only_where_there_is_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: str, there: str | None, told: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "load", interrupt)
    monkeypatch.setattr(api, "fit", interrupt)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "captures" / "walk"
    folder.mkdir(parents=True)
    if there is not None:
        save_begun(folder, load_character(), budget("tiny"), {"command": there})
    ran = run(*arguments.split())
    assert ran.code == 130
    assert ran.err.strip().endswith(told)
    assert ("--resume" in ran.err) == ("--resume" in told)


def test_ctrl_c_while_modules_load_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a module is in `sys.modules` then, and cannot be imported again."""

    def interrupt(*_: object, **__: object) -> None:
        monkeypatch.setitem(sys.modules, "mocap2ctrl.api", ModuleType("mocap2ctrl.api"))
        raise ImportError("half of it") from KeyboardInterrupt()

    monkeypatch.setattr(api, "fit", interrupt)
    ran = run("fit", "walk")
    assert ran.code == 130
    assert ran.err.strip().endswith(NOT_BEGUN)


def test_ctrl_c_says_what_learning_has_kept(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(learn, "_graph", interrupt)
    output = tmp_path / "learned.json"
    ran = run("learn", "walk", "-o", output)
    assert ran.code == 130
    assert "nothing is kept" in ran.err
    assert "--resume" not in ran.err
    output.with_suffix(".learning").mkdir()
    (output.with_suffix(".learning") / "state.json").write_text("{}")
    assert "go on with --resume" in run("learn", "walk", "-o", output).err


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_ctrl_c_while_a_library_in_c_is_loaded(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """MuJoCo's modules make an ImportError of it."""

    def interrupt(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise ImportError("initialization failed") from error

    monkeypatch.setattr(api, "load", interrupt)
    monkeypatch.setattr(api, "fit", interrupt)
    assert run(command, "walk").code == 130

    def missing(*_: object, **__: object) -> None:
        raise ImportError("No module named mujoco")

    monkeypatch.setattr(api, "load", missing)
    monkeypatch.setattr(api, "fit", missing)
    with pytest.raises(ImportError, match="mujoco"):
        run(command, "walk")


def test_simulate_refuses_a_file_as_its_output_folder(run: Run, capture: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    run("simulate", capture, "--no-video", "-o", tmp_path / "file").refused("is a file")
    assert (tmp_path / "file").read_text() == "x"
