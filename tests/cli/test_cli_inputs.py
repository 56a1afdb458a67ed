"""What users get wrong: exit code 2 and one clear line, whatever they give; nothing of theirs is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import Fitted, Run, contents

MALFORMED = Path(__file__).resolve().parents[3] / "shared" / "data" / "bvh" / "malformed"


def test_without_a_command_it_prints_help(run: Run) -> None:
    ran = run()
    assert ran.code == 2
    assert "train-prior" in ran.out + ran.err


@pytest.mark.parametrize("command", ["fit", "evaluate", "simulate", "train-prior"])
def test_help_has_an_example_and_every_command_speaks_json(run: Run, command: str) -> None:
    ran = run(command, "--help")
    assert ran.code == 0
    assert f"mocap2ctrl {command}" in ran.out.split("example")[1]
    assert "--json" in ran.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fitt"], "fitt"),
        (["fit"], "INPUT"),
        (["fit", "x.bvh", "--nonsense"], "--nonsense"),
        (["fit", "x.bvh", "--seed", "-1"], "0 to"),
        (["fit", "x.bvh", "--seed", "1.5"], "whole number"),
        (["fit", "x.bvh", "--workers", "0"], "1 to"),
        (["fit", "x.bvh", "--height", "17.5"], "0.8 to 2.4"),
        (["fit", "x.bvh", "--height", "nan"], "0.8 to 2.4"),
        (["fit", "x.bvh", "--time-range", "1"], "--time-range"),
        (["fit", "x.bvh", "--time-range", "a", "b"], "number"),
        (["fit", "x.bvh", "--fps", "7"], "10 to 120"),
        (["fit", "x.bvh", "--cycles", "0"], "1 to 100"),
        (["fit", "x.bvh", "--torque-limit", "0"], "0.01 to 10"),
        (["fit", "x.bvh", "--method", "magic"], "incremental"),
        (["simulate", "x", "--push", "1", "2"], "--push"),
        (["simulate", "x", "--push", "1", "2", "inf"], "number"),
        (["simulate", "x", "--seconds", "0"], "0.01"),
        (["train-prior", "x.bvh"], "-o"),
        (["train-prior", "x.bvh", "-o", "p.npz", "--variance", "1.5"], "0.5 to 1"),
    ],
)
def test_bad_options(run: Run, arguments: list[str], says: str) -> None:
    run(*arguments).refused(says)


class TestFitInputs:
    @pytest.fixture(autouse=True)
    def _in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize(
        ("name", "content", "says"),
        [
            ("empty.bvh", b"", "empty.bvh"),
            ("garbage.bvh", bytes(range(256)) * 20, "garbage.bvh"),
            ("garbage.txt", bytes(range(256)) * 20, "BVH (begins with HIERARCHY)"),
            ("notes.txt", b"dear diary", "BVH (begins with HIERARCHY)"),
            ("half.txt", b'{"Loop": "wrap", "Frames": [[1, 2', "half.txt"),
            ("other.txt", b'{"hello": "world"}', "Frames"),
            ("short.txt", b'{"Loop": "none", "Frames": [[0.1, 1, 2, 3]]}', "44"),
            ("video.mp4", b"\0\0\0\x18ftypmp42", "video.mp4"),
        ],
    )
    def test_files_that_are_no_motion(self, run: Run, name: str, content: bytes, says: str) -> None:
        Path(name).write_bytes(content)
        run("fit", name).refused(name, says)
        assert not Path("captures").exists()

    def test_a_missing_file_and_a_folder(self, run: Run) -> None:
        run("fit", "nowhere.bvh").refused("nowhere.bvh", "no such file")
        run("fit", "nowhere.mp4").refused("nowhere.mp4", "no such file")
        Path("folder").mkdir()
        run("fit", "folder").refused("folder", "no PNG", "FILE.npz:KEY")

    def test_joints_that_cannot_be_mapped_are_listed(self, run: Run, walk_bvh: Path) -> None:
        """A body with one leg: what names do not tell, its shape does not tell either."""
        lines = walk_bvh.read_text().splitlines()
        start = next(i for i, line in enumerate(lines) if line.strip() == "JOINT LeftUpLeg")
        pad = lines[start].index("JOINT")
        stop = next(i for i, line in enumerate(lines) if i > start and line.rstrip() == " " * pad + "}") + 1
        legless = [line for line in lines[:start] + lines[stop:]]
        gone = sum(line.split()[0] == "CHANNELS" and int(line.split()[1]) for line in lines[start:stop] if line.strip())
        row = next(i for i, line in enumerate(legless) if line.startswith("Frame Time")) + 1
        Path("leg.bvh").write_text("\n".join([*legless[:row], *(" ".join(r.split()[:-gone]) for r in legless[row:])]))
        run("fit", "leg.bvh").refused("leg.bvh", "no joint found for left hip", "RightUpLeg", "--joint-map")

    def test_a_bvh_cut_short_says_where(self, run: Run, walk_bvh: Path) -> None:
        lines = walk_bvh.read_text().splitlines()
        Path("cut.bvh").write_text("\n".join([*lines[:-1], "1.0 2.0"]))
        run("fit", "cut.bvh").refused("cut.bvh", str(len(lines)))

    @pytest.mark.parametrize("name", ["bad_merge_conflict.bvh", "bad_more_rows_than_frames.bvh"])
    def test_malformed_files_from_the_wild(self, run: Run, name: str) -> None:
        path = MALFORMED / name
        if not path.is_file():
            pytest.skip("needs the shared collection of malformed BVH files")
        run("fit", path, "--budget", "tiny", "--workers", 1).refused(name)

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--time-range", 3, 4), "from 0 to 0.5"),
            (("--time-range", 0.4, 0.2), "0.4 to 0.2"),
            (("--time-range", 0.2, 0.21), "at least 0.1 s"),
            (("--cycles", 2), "loop"),
            (("--fps", 29), "divisor of 120"),
            (("--budget", "huge"), "quick, default, thorough"),
            (("--engine", "ode"), "mujoco"),
            (("--prior", "nobody"), "walk"),
            (("--prior", "nowhere.npz"), "no such file"),
            (("--prior", "garbage.npz"), "garbage.npz"),
            (("--resume",), "no capture to resume"),
            (("--resume", "--overwrite"), "choose one"),
            (("-o", "file"), "is a file"),
            (("-o", "file/below"), "cannot be made"),
            (("-o", "full"), "not empty"),
            (("-o", "full", "--overwrite"), "not empty"),
        ],
    )
    def test_options_that_do_not_fit_the_input(
        self, run: Run, walk_bvh: Path, arguments: tuple[object, ...], says: str
    ) -> None:
        Path("file").write_text("x")
        Path("garbage.npz").write_bytes(b"PK nothing")
        Path("full").mkdir()
        Path("full", "config.toml").write_text('title = "my website"\n')
        before = contents(Path())
        run("fit", walk_bvh, "--workers", 1, *arguments).refused(says)
        assert contents(Path()) == before

    def test_a_prior_for_another_body_does_not_fit(self, run: Run, walk_bvh: Path, walk: str) -> None:
        import numpy as np

        run("train-prior", walk_bvh, "-o", "mine.npz")
        with np.load("mine.npz") as data:
            arrays = {k: data[k] for k in data.files}
        np.savez("other.npz", **{**arrays, "hinge_names": arrays["hinge_names"][::-1]})
        run("fit", walk_bvh, "--prior", "other.npz").refused("other.npz", "train one for this character")


def test_a_capture_is_not_touched_without_being_told(capture: Path, walk_bvh: Path, run: Run) -> None:
    before = contents(capture)
    run("fit", walk_bvh, "-o", capture, "--budget", "tiny").refused(str(capture), "--resume", "--overwrite")
    assert contents(capture) == before


def test_a_bad_input_does_not_overwrite_a_capture(capture: Path, walk_bvh: Path, run: Run) -> None:
    before = contents(capture)
    run("fit", "nowhere.bvh", "-o", capture, "--overwrite").refused("nowhere.bvh")
    run("fit", walk_bvh, "-o", capture, "--prior", "nobody", "--overwrite").refused("nobody")
    assert contents(capture) == before


def test_a_finished_fit_is_not_resumed(capture: Path, walk_bvh: Path, run: Run) -> None:
    before = contents(capture)
    again = ("fit", walk_bvh, "-o", capture, "--budget", "tiny", "--resume")
    run(*again).refused("has ended; there is nothing to resume", "--overwrite")
    run(*again, "--seed", 4).refused("has ended and was another (--seed was not given and is 4)", "--overwrite")
    assert contents(capture) == before


def test_a_finished_growth_is_refined(capture: Path, walk_bvh: Path, run: Run) -> None:
    again = ("fit", walk_bvh, "-o", capture, "--budget", "tiny", "--workers", 1, "--resume")
    earlier = (capture / "controller.json").read_bytes()
    assert run(*again, "--refine").code == 0
    assert (capture / "controller.earlier.json").read_bytes() == earlier
    assert "refine" in json.loads((capture / "controller.json").read_text())["provenance"]["beyond_growth"]
    before = contents(capture)
    run(*again, "--refine").refused("has ended", "--overwrite")
    run(*again, "--robust").refused("has ended, with --refine", "--overwrite")
    run(*again).refused("has ended, with --refine", "--overwrite")
    assert contents(capture) == before


def test_another_fit_is_not_resumed(capture: Path, walk_bvh: Path, run: Run) -> None:
    (capture / "controller.json").unlink()
    before = contents(capture)
    ran = run("fit", walk_bvh, "-o", capture, "--budget", "tiny", "--workers", 1, "--seed", 9, "--resume")
    assert ran.code == 2
    assert "other input, settings or version" in ran.err.splitlines()[-1]
    assert contents(capture) == before


@pytest.mark.parametrize("command", ["evaluate", "simulate"])
class TestCaptureFolders:
    def test_missing_empty_or_something_else(self, run: Run, tmp_path: Path, command: str) -> None:
        run(command, tmp_path / "nowhere").refused("nowhere", "no capture folder")
        (tmp_path / "empty").mkdir()
        run(command, tmp_path / "empty").refused("empty", "no capture folder")
        (tmp_path / "file").write_text("x")
        run(command, tmp_path / "file").refused("file", "no capture folder")

    def test_not_fitted_yet(self, run: Run, capture: Path, command: str) -> None:
        (capture / "controller.json").unlink()
        run(command, capture).refused("controller.json", "--resume")

    def test_damaged_target(self, run: Run, capture: Path, command: str) -> None:
        data = (capture / "target.npz").read_bytes()
        for damaged in (data[: len(data) // 2], b"", b"garbage" * 100):
            (capture / "target.npz").write_bytes(damaged)
            run(command, capture).refused("target.npz", "restore the file or fit anew")

    def test_damaged_settings(self, run: Run, capture: Path, command: str) -> None:
        path = capture / "config.toml"
        text = path.read_text()
        path.write_text(text.replace("fps = 30.0", "fps = 31.0"))
        run(command, capture).refused("config.toml", "fps")
        path.write_text(text.replace('engine = "mujoco"', 'engine = "ode"'))
        run(command, capture).refused("ode", "mujoco")

    @pytest.mark.parametrize(
        ("old", "new", "says"),
        [
            ('"swing": "auto"', '"swnig": "auto"', "states[0].swnig"),
            ('"swing": "auto"', '"swing": "middle"', "left"),
            ('"exit": null', '"exit": {"time": -1, "to": "1"}', "exit.time"),
            ('"exit": null', '"exit": {"time": 0.2, "to": "nowhere"}', "nowhere"),
            ('"version": 1', '"version": 99', "version"),
            ('"states": [', '"states": 3, "x": [', "x"),
            ("{", "[", "JSON"),
        ],
    )
    def test_hand_edits_that_went_wrong(
        self, run: Run, capture: Path, command: str, old: str, new: str, says: str
    ) -> None:
        path = capture / "controller.json"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        run(command, capture).refused("controller.json", says)

    def test_an_unknown_engine(self, run: Run, capture: Path, command: str) -> None:
        run(command, capture, "--engine", "ode").refused("ode", "mujoco")
        assert run(command, capture, "--engine", "MuJoCo").code == 0

    def test_errors_with_json_are_an_object_too(self, run: Run, capture: Path, command: str) -> None:
        shutil.rmtree(capture)
        ran = run(command, capture, "--json")
        assert ran.code == 2
        assert set(ran.json) == {"error"}
        assert "no capture folder" in ran.json["error"]
        assert "no capture folder" in ran.err


def test_the_session_s_capture_was_not_touched(fitted: Fitted) -> None:
    """These tests damage copies only."""
    assert (fitted.folder / "controller.json").is_file()
