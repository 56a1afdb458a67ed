"""`mocap2ctrl export-mjcf`: a model that plain MuJoCo loads, with our body in it, and the motion of controller.json."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from conftest import Run, contents

from mocap2ctrl import api
from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.control.closed_loop import run as simulate
from mocap2ctrl.control.closed_loop import start_vector
from mocap2ctrl.control.controller import compile_program
from mocap2ctrl.geometry import rotations

EXAMPLE = Path(__file__).parents[2] / "docs" / "play_mjcf.py"


@pytest.fixture
def exported(capture: Path, run: Run, tmp_path: Path) -> Path:
    """The model's file."""
    path = tmp_path / "out" / "walk.xml"
    ran = run("export-mjcf", capture, "-o", path, "--json")
    assert ran.code == 0, ran.err
    assert ran.json == {
        "model": str(path),
        "motion": str(path.with_suffix(".npz")),
        "keys": 16,
        "fps": 30.0,
        "seconds": 0.5,
        "diverged": False,
    }
    return path


def test_the_model_is_our_body(exported: Path, capture: Path) -> None:
    character = api.load(capture).character
    model = mujoco.MjModel.from_xml_path(str(exported))
    bodies = [model.body(name) for name in character.segment_names]
    np.testing.assert_allclose([b.mass[0] for b in bodies], [s.mass for s in character.segments], rtol=1e-12)
    np.testing.assert_allclose([b.inertia for b in bodies], [s.inertia for s in character.segments], rtol=1e-12)
    np.testing.assert_allclose([b.ipos for b in bodies], [s.com for s in character.segments], atol=1e-12)
    joints = [model.joint(name) for name in character.hinge_names]
    np.testing.assert_allclose([j.range for j in joints], [h.limits for h in character.hinges], rtol=1e-12)
    np.testing.assert_allclose([j.axis for j in joints], [h.axis for h in character.hinges], atol=1e-12)
    assert [j.qposadr[0] for j in joints] == list(range(7, 42))
    assert model.body_subtreemass[0] == pytest.approx(character.mass_kg)
    assert (model.nu, model.nkey, model.opt.timestep) == (0, 16, pytest.approx(1 / 120))
    assert model.geom("ground").friction[0] == character.friction


def test_kinematics_of_every_key_are_ours(exported: Path, capture: Path) -> None:
    character = api.load(capture).character
    model = mujoco.MjModel.from_xml_path(str(exported))
    data = mujoco.MjData(model)
    for key in range(model.nkey):
        mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_forward(model, data)
        qpos = model.key_qpos[key]
        positions, orientations = segment_frames(character, qpos[:3], qpos[3:7], qpos[7:])
        np.testing.assert_allclose(data.xpos[1:], positions, atol=1e-6)
        np.testing.assert_allclose(data.xmat[1:].reshape(-1, 3, 3), rotations.to_matrix(orientations), atol=1e-6)


def test_keys_are_the_simulated_states(exported: Path, capture: Path) -> None:
    loaded = api.load(capture)
    engine, controller = api.engine_for(loaded), loaded.finished_controller()
    program, start = compile_program([controller], engine.character, engine.time_step_s), start_vector(controller.start)
    model = mujoco.MjModel.from_xml_path(str(exported))
    for key in (0, 1, 7, 15):
        final = simulate(engine, program, start, 4 * key).final[0]
        np.testing.assert_allclose(model.key_qpos[key], final[:42], atol=1e-12)
        np.testing.assert_allclose(model.key_qvel[key], final[42:83], atol=1e-9)
        assert model.key_time[key] == pytest.approx(key / 30)


def test_arrays_are_the_keys_and_say_what_they_are(exported: Path, capture: Path) -> None:
    character = api.load(capture).character
    model = mujoco.MjModel.from_xml_path(str(exported))
    with np.load(exported.with_suffix(".npz"), allow_pickle=False) as motion:
        for name in ("time", "qpos", "qvel"):
            # MuJoCo normalises quaternions once more
            np.testing.assert_allclose(motion[name], getattr(model, f"key_{name}"), atol=1e-12)
        assert tuple(motion["joint_names"]) == character.hinge_names
        assert tuple(motion["body_names"]) == character.segment_names
        text = {name: str(motion[name]) for name in ("length_unit", "angle_unit", "time_unit", "quaternion_order")}
    assert text == {"length_unit": "m", "angle_unit": "rad", "time_unit": "s", "quaternion_order": "wxyz"}


@pytest.mark.parametrize("writer", ["export-mjcf", "convert"])
def test_the_example_plays_it_without_this_package(writer: str, capture: Path, run: Run, tmp_path: Path) -> None:
    model = tmp_path / "walk.xml"
    ran = run(writer, capture, "-o", model)
    assert ran.code == 0, ran.err
    code = (
        "import sys, runpy\n"
        f"sys.argv = ['play', {str(model)!r}, '--headless']\n"
        f"runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')\n"
        "assert not any(name.startswith('mocap2ctrl') for name in sys.modules if 'editable' not in name)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    numbers = np.array([line.split() for line in ran.stdout.splitlines()], float)
    assert numbers.shape == (16, 5)
    assert np.all((numbers[:, 3] > 1.2) & (numbers[:, 3] < 1.8))  # the head of somebody who walks
    assert numbers[-1, 1] > numbers[0, 1] + 0.1


def test_rate_and_length_are_chosen(capture: Path, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "fine.xml"
    ran = run("export-mjcf", capture, "-o", path, "--fps", 120, "--seconds", 0.25)
    assert ran.code == 0, ran.err
    assert "31 keyframes at 120 a second" in ran.out
    model = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_allclose(model.key_time, np.arange(31) / 120)


def test_controller_json_is_what_moves(capture: Path, run: Run, tmp_path: Path) -> None:
    (capture / "motion.npz").write_bytes(b"nonsense")
    assert run("export-mjcf", capture, "-o", tmp_path / "a.xml").code == 0
    data = json.loads((capture / "controller.json").read_text())
    for state in data["states"]:
        state["target"]["angles"]["left_upper_arm.flexion"] = 1.5
    (capture / "controller.json").write_text(json.dumps(data))
    assert run("export-mjcf", capture, "-o", tmp_path / "b.xml").code == 0
    before, after = (mujoco.MjModel.from_xml_path(str(tmp_path / name)) for name in ("a.xml", "b.xml"))
    column = before.joint("left_upper_arm.flexion").qposadr[0]
    assert after.key_qpos[-1, column] > before.key_qpos[-1, column] + 0.5


def test_default_place_and_overwrite(capture: Path, run: Run) -> None:
    before = contents(capture)
    assert run("export-mjcf", capture).code == 0
    assert set(contents(capture)) - set(before) == {"mujoco.xml", "mujoco.npz"}
    run("export-mjcf", capture).refused("mujoco.xml", "--overwrite")
    assert run("export-mjcf", capture, "--overwrite").code == 0
    elsewhere = capture.parent / "one.xml"
    elsewhere.with_suffix(".npz").write_bytes(b"mine")
    run("export-mjcf", capture, "-o", elsewhere).refused("one.npz", "--overwrite")
    assert elsewhere.with_suffix(".npz").read_bytes() == b"mine"


def test_what_a_capture_holds_is_never_overwritten(capture: Path, run: Run) -> None:
    before = contents(capture)
    run("export-mjcf", capture, "-o", capture / "target.xml", "--overwrite").refused(
        "target.npz", "belongs to the capture"
    )
    assert contents(capture) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-o", "walk.mjcf"), ("walk.mjcf", ".xml")),
        (("--fps", 50), ("fps is 50", "divisor", "120")),
        (("--fps", 240), ("fps is 240", "divisor")),
        (("--engine", "havok"), ("havok",)),
        (("--seconds", -1), ("--seconds", "0.01 to 3600")),
    ],
)
def test_bad_options_are_refused(
    capture: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple, says: tuple
) -> None:
    monkeypatch.chdir(tmp_path)
    run("export-mjcf", capture, *options).refused(*says)


def test_no_capture_is_refused(run: Run, tmp_path: Path) -> None:
    run("export-mjcf", tmp_path / "nowhere").refused("nowhere")
