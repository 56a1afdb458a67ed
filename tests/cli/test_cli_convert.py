"""`mocap2ctrl convert`, and `simulate --motion`: what a capture performs, in other programs' formats."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from conftest import Run, contents

from mocap2ctrl import api
from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.fit.capture import save_inputs
from mocap2ctrl.motion.bvh import read_bvh
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.npz import read_body, read_motion
from mocap2ctrl.types import MotionClip

SUFFIXES = ("bvh", "glb", "npz", "csv", "xml")


def read_npz(path: Path) -> MotionClip:
    return read_motion(path, read_body(path))


def test_a_capture_s_controller_in_every_format(capture: Path, run: Run, tmp_path: Path) -> None:
    files = [tmp_path / "out" / f"walk.{suffix}" for suffix in SUFFIXES]
    (capture / "motion.npz").write_bytes(b"nonsense")  # it is simulated anew
    ran = run("convert", capture, *(word for file in files for word in ("-o", file)), "--json")
    assert ran.code == 0, ran.err
    assert ran.json == {
        "kind": "simulation",
        "frames": 16,
        "fps": 30.0,
        "start_s": 0.0,
        "loop": False,
        "seconds": 0.5,
        "height_m": 1.75,
        "files": [str(file) for file in files],
    }
    loaded = api.load(capture)
    expected = api.simulate(loaded, fps=120.0).clip
    clip = read_npz(files[2])
    np.testing.assert_array_equal(clip.angles, expected.angles[::4])
    assert clip.provenance["reference"]["file"] == "walk.bvh"
    positions, _ = clip_frames(loaded.character, clip)
    head = loaded.character.segment_index("head")
    source = read_bvh(files[0])
    places = 0.01 * source.positions[:, source.joint_names.index("Neck")][:, [2, 0, 1]]
    np.testing.assert_allclose(places, positions[:, head], atol=1e-4)
    model = mujoco.MjModel.from_xml_path(str(files[4]))
    np.testing.assert_allclose(model.key_qpos[:, 7:], clip.angles, atol=1e-12)
    assert len(files[3].read_text().splitlines()) == 17
    assert files[1].read_bytes()[:4] == b"glTF"


def test_edits_of_the_controller_are_performed(capture: Path, run: Run, tmp_path: Path, character: Character) -> None:
    data = json.loads((capture / "controller.json").read_text())
    for state in data["states"]:
        state["target"]["angles"]["left_upper_arm.flexion"] = 1.5
    (capture / "controller.json").write_text(json.dumps(data))
    assert run("convert", capture, "-o", tmp_path / "simulated.npz").code == 0
    assert run("convert", capture, "--reference", "-o", tmp_path / "reference.npz").code == 0
    column = character.hinge_names.index("left_upper_arm.flexion")
    reference, simulated = (read_npz(tmp_path / f"{name}.npz") for name in ("reference", "simulated"))
    np.testing.assert_array_equal(reference.angles, api.load(capture).reference.angles)
    assert simulated.angles[-1, column] > reference.angles[-1, column] + 0.5


def test_a_motion_file_on_our_body(walk_bvh: Path, run: Run, tmp_path: Path, character: Character) -> None:
    ran = run("convert", walk_bvh, "-o", tmp_path / "x.npz", "--time-range", 0.2, 0.4, "--fps", 60, "--height", 1.6)
    assert ran.code == 0, ran.err
    assert "13 frames at 60 a second, from 0.20 s" in ran.out
    clip, expected = (
        read_npz(tmp_path / "x.npz"),
        load_motion(walk_bvh, character.scaled(1.6), time_range=(0.2, 0.4)).clip,
    )
    np.testing.assert_allclose(clip.angles[::2], expected.angles, atol=1e-12)
    assert (clip.start_s, read_body(tmp_path / "x.npz").height_m) == (pytest.approx(0.2), 1.6)


def test_a_fit_keeps_rate_and_start_of_a_part(
    capture: Path, walk: str, run: Run, tmp_path: Path, character: Character
) -> None:
    """A file of 119.88 frames a second, of which a part was fitted at 30: the files are at its rate and on its clock."""
    from dataclasses import replace

    rate = 120000 / 1001
    whole = load_motion(walk, character, fps=rate).clip
    write_bvh(tmp_path / "fast.bvh", replace(whole, fps=rate), character)
    part = load_motion(tmp_path / "fast.bvh", character, time_range=(0.25, 0.6))
    save_inputs(replace(api.load(capture), reference=part.clip, source_points=part.source_points))
    for options in ((), ("--reference",)):
        ran = run("convert", capture, *options, "-o", tmp_path / "x.npz", "--overwrite", "--json")
        assert ran.json["fps"] == pytest.approx(rate, rel=1e-9)
        assert ran.json["start_s"] == pytest.approx(30 / rate)
        assert ran.json["frames"] == len(part.clip)


def test_what_a_capture_holds_is_never_overwritten(capture: Path, run: Run) -> None:
    before = contents(capture)
    for name in ("target.npz", "motion.npz", "motion.bvh", "prior.npz"):
        run("convert", capture, "-o", capture / name, "--overwrite").refused(name, "belongs to the capture")
    assert contents(capture) == before
    assert run("convert", capture, "-o", capture / "walk.glb").code == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), ("no output", ".glb")),
        (("-o", "x.fbx"), ("x.fbx", ".bvh")),
        (("-o", "x.bvh", "--height", 9), ("--height", "0.8 to 2.4")),
        (("-o", "x.bvh", "--cycles", 2), ("is not a loop",)),
        (("-o", "x.bvh", "--time-range", 7, 8), ("runs from 0 to 0.5 s",)),
    ],
)
def test_bad_options_are_refused(
    capture: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple, says: tuple
) -> None:
    monkeypatch.chdir(tmp_path)
    run("convert", capture, *options).refused(*says)
    assert not list(tmp_path.glob("x.*"))


def test_inputs_that_cannot_be_read_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    for name in ("nowhere.bvh", "nowhere.npz", "empty", "notes.txt", "walk.mp4"):
        run("convert", tmp_path / name, "-o", tmp_path / "x.bvh").refused(name)
    assert not (tmp_path / "x.bvh").exists()


def test_an_unfinished_capture_has_a_reference_only(capture: Path, run: Run, tmp_path: Path) -> None:
    (capture / "controller.json").unlink()
    run("convert", capture, "-o", tmp_path / "x.bvh").refused("its fit has not ended")
    assert run("convert", capture, "--reference", "-o", tmp_path / "x.bvh").code == 0


def test_simulate_writes_further_files(capture: Path, run: Run, tmp_path: Path) -> None:
    pushed = tmp_path / "pushed.npz"
    options = ("simulate", capture, "--no-video", "--push", 0, 300, 0, "--push-at", 0.1, "--motion", pushed)
    assert run(*options, "--motion", tmp_path / "pushed.glb").code == 0
    run(*options).refused("pushed.npz", "--overwrite")
    run("convert", capture, "-o", tmp_path / "plain.npz")
    plain, clip = read_npz(tmp_path / "plain.npz"), read_npz(pushed)
    assert clip.fps == plain.fps == 30.0
    assert clip.root_position[-1, 1] > plain.root_position[-1, 1] + 0.01
    np.testing.assert_array_equal(clip.angles, read_npz(next(capture.glob("simulations/*/motion.npz"))).angles)


MOTION_OPTIONS = (("--unit", "cm"), ("--up", "y"), ("--joint-map", "x.toml"), ("--skeleton", "x.asf"))


@pytest.mark.parametrize("option", MOTION_OPTIONS, ids=lambda option: option[0])
def test_what_is_said_of_other_programs_files_is_refused_of_our_own(
    capture: Path, run: Run, tmp_path: Path, option: tuple
) -> None:
    for source, what in ((capture, "is a capture"), (capture / "motion.npz", "itself")):
        run("convert", source, "-o", tmp_path / "x.bvh", *option).refused(source.name, what, option[0], "leave it out")
    assert not (tmp_path / "x.bvh").exists()


def test_a_skeleton_goes_with_acclaims_motion_only(walk_bvh: Path, run: Run, tmp_path: Path) -> None:
    for words in (("convert", "-o", tmp_path / "x.npz"), ("fit",), ("inspect", "-o", tmp_path / "page")):
        ran = run(words[0], walk_bvh, *words[1:], "--skeleton", tmp_path / "x.asf")
        ran.refused("walk.bvh", "is BVH", "--skeleton goes with .amc")
    assert list(tmp_path.iterdir()) == []


def test_a_loops_rate_that_is_not_the_one_asked_for_is_said(walk: str, run: Run, tmp_path: Path) -> None:
    ran = run("convert", walk, "-o", tmp_path / "x.npz", "--fps", 24)
    clip = read_npz(tmp_path / "x.npz")
    assert clip.fps != 24.0
    assert ran.err == (
        f"note: --fps 24: a loop keeps its period, a whole number of frames; it is at {clip.fps:.6g} frames a second. "
        "A part of it (--time-range) is no loop, and obeys\n"
    )
    ran = run("convert", walk, "-o", tmp_path / "y.npz", "--fps", 24, "--time-range", 0.1, 0.9)
    assert (ran.err, read_npz(tmp_path / "y.npz").fps) == ("", 24.0)


def test_a_usage_error_names_the_command(walk_bvh: Path, run: Run) -> None:
    run("convert", walk_bvh, "-o", "x.bvh", "--belt", 1.2).refused(
        "mocap2ctrl convert: unrecognized arguments: --belt 1.2; see mocap2ctrl convert --help"
    )


@pytest.mark.parametrize("command", ["fit", "inspect", "convert", "simulate", "evaluate", "export-mjcf", "silhouettes"])
def test_an_input_without_a_name_is_told(command: str, run: Run) -> None:
    run(command, "").refused(f"mocap2ctrl {command}: ", "is empty; give a name")


def test_folders_are_told_from_files(capture: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dir.bvh").mkdir()
    run("convert", "dir.bvh", "-o", "x.npz").refused("dir.bvh: is a folder but no capture; give a motion file")
    for command in ("inspect", "fit"):
        run(command, "dir.bvh").refused("dir.bvh: is a folder that holds no PNG; give a file")
        run(command, capture).refused("capture: is a capture, not an input; give what it was fitted to")


def test_a_motion_with_the_name_of_a_video_is_told_so(walk_bvh: Path, run: Run, tmp_path: Path) -> None:
    named = tmp_path / "walk.mp4"
    named.write_bytes(walk_bvh.read_bytes())
    run("convert", named, "-o", tmp_path / "x.npz").refused("walk.mp4: has the name of a video", "ends in", ".bvh")


def test_help_tells_what_cycles_and_rate_do_to_motion_files(run: Run) -> None:
    text = " ".join(run("convert", "--help").out.split())
    assert "the best cycle of a motion file that is none" in text
    assert "whose own rate cannot be true" in text
    assert "the nearest rate that divides its period evenly" in text
