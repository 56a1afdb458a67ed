"""The package as its users meet it: a light import, working commands, and its data; also run on the installed wheel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import mocap2ctrl
from mocap2ctrl.cli.main import COMMANDS, main

HEAVY = ("mujoco", "pybullet", "numba", "llvmlite", "matplotlib", "scipy", "cv2", "av", "cma", "distributed", "mpi4py")
IN_A_WHEEL = os.environ.get("MOCAP2CTRL_INSTALLED") == "1"
"""Set by `make wheel`: the package under test must be the one in site-packages."""


def loaded_after(statement: str) -> set[str]:
    """Names of the heavy libraries that a new interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(run.stdout.splitlines()[-1].split())


def help_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_import_loads_no_engine_compiler_or_plotting_library() -> None:
    assert loaded_after("import mocap2ctrl") == set()


def test_what_is_heavy_can_be_seen() -> None:
    loaded = loaded_after("import mocap2ctrl; mocap2ctrl.fit")
    assert {"mujoco", "numba"} <= loaded
    assert not {"distributed", "mpi4py"} & loaded, "clusters are for those who ask for one"


def test_command_line_loads_no_engine_before_it_needs_one() -> None:
    for command in COMMANDS:
        module = f"mocap2ctrl.cli.{command.replace('-', '_')}"
        assert not loaded_after(f"import mocap2ctrl.cli.main, {module}") & {"mujoco", "pybullet", "numba"}, command


def test_help_loads_nothing_heavy_and_no_numbers() -> None:
    code = "import sys, mocap2ctrl.cli.main as m\ntry: m.main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.startswith("usage: mocap2ctrl")
    loaded = set(run.stdout.splitlines()[-1].split())
    assert "argparse" in loaded  # the list is there
    assert not loaded & {*HEAVY, "numpy", "rich", "jinja2", "skimage"}


def test_workers_load_neither_video_nor_plots() -> None:
    assert not loaded_after("import mocap2ctrl.fit.pool") & {"pybullet", "matplotlib", "cv2", "av", "cma"}


def callable_after(statement: str, name: str) -> bool:
    code = f"import mocap2ctrl\n{statement}\nprint(callable(mocap2ctrl.{name}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return run.stdout.strip() == "True"


@pytest.mark.parametrize("name", sorted(set(mocap2ctrl.__all__) - {"fit"}))
def test_public_names_resolve(name: str) -> None:
    assert callable(getattr(mocap2ctrl, name))


def test_fit_resolves() -> None:
    assert callable_after("", "fit")


@pytest.mark.parametrize("before", ["mocap2ctrl.fit", "from mocap2ctrl.fit.config import budget"])
def test_fit_resolves_whatever_was_imported_before(before: str) -> None:
    assert callable_after(before, "fit")


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = mocap2ctrl.no_such_name


def test_version_is_the_metadata() -> None:
    assert metadata.version("mocap2ctrl") == mocap2ctrl.__version__


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of([], capsys)
    assert "example: mocap2ctrl " in text
    for command, does in COMMANDS.items():
        assert re.search(rf"^    {command}\s+{does.split()[0]}", text, re.MULTILINE), command


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of([command], capsys)
    assert "--json" in text
    assert f"\n  mocap2ctrl {command} " in text.split("example", 1)[1]


@pytest.mark.parametrize(
    "start", [[sys.executable, "-m", "mocap2ctrl"], [str(Path(sys.executable).parent / "mocap2ctrl")]]
)
def test_starts_as_a_module_and_as_a_script(start: list[str], tmp_path: Path) -> None:
    run = subprocess.run([*start, "--version"], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120)
    assert (run.returncode, run.stdout, run.stderr) == (0, f"mocap2ctrl {mocap2ctrl.__version__}\n", "")


def test_data_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mocap2ctrl.character.model import load_character
    from mocap2ctrl.character.strength import human_torque_limits
    from mocap2ctrl.prior.choose import load_prior, shipped_priors

    monkeypatch.chdir(tmp_path)
    character = load_character()
    assert len(character.segments) == 18
    assert human_torque_limits(character).shape[0] == len(character.hinges)
    assert {"walk", "all", "all-but-walk"} <= set(shipped_priors())
    for name in shipped_priors():
        assert load_prior(name, character).size > 0


def test_sample_footage_is_found_by_name_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mocap2ctrl.evaluation.reference import load_reference
    from mocap2ctrl.video.samples import shipped_videos
    from mocap2ctrl.video.silhouettes import load_silhouettes

    monkeypatch.chdir(tmp_path)
    assert {"walk.mp4", "jump.mp4", "spinkick.mp4"} <= set(shipped_videos())
    loaded = load_silhouettes("jump.mp4", time_range=(0.0, 0.2))
    assert "sample footage" in loaded.notes[0]
    assert any("clean plate" in note for note in loaded.notes)
    assert load_reference("jump.truth.npz", 1.75).source_points is not None


def test_report_template_is_shipped() -> None:
    from importlib import resources

    assert "<html" in resources.files("mocap2ctrl.report").joinpath("template.html").read_text(encoding="utf-8")


@pytest.mark.skipif(not IN_A_WHEEL, reason="make wheel runs this on the installed wheel")
def test_wheel_holds_the_package_and_nothing_beside_it() -> None:
    assert "site-packages" in Path(mocap2ctrl.__file__).parts
    files = [str(file).replace("\\", "/") for file in metadata.files("mocap2ctrl") or ()]
    folders = {file.split("/")[0] for file in files if not file.startswith("../")}
    assert folders == {"mocap2ctrl", f"mocap2ctrl-{mocap2ctrl.__version__}.dist-info"}
    assert any(file.startswith("mocap2ctrl/priors/") and file.endswith(".npz") for file in files)
    endings = {file.split(".", 1)[1] for file in files if file.startswith("mocap2ctrl/footage/")}
    assert endings == {"mp4", "toml", "background.jpg", "truth.npz"}
