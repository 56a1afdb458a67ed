"""Bullet's own traits: its world is the character's, its output is silent, its coordinates are exact."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import centre_of_mass, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import run, single_state_program, start_vector
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.control.law import Span, body_arrays
from mocap2ctrl.control.stepped_loop import run_stepped
from mocap2ctrl.errors import EngineError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation import choose
from mocap2ctrl.simulation.body_motion import centre_of_mass_motion, masses_of
from mocap2ctrl.simulation.coordinates import coordinates
from mocap2ctrl.simulation.engine import TIME_STEP_S, Servo
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.simulation.urdf import build_urdf
from mocap2ctrl.types import Pose, SimState

pybullet = pytest.importorskip("pybullet", reason="pybullet has no wheel for this Python")

from mocap2ctrl.simulation.bullet import BulletEngine  # noqa: E402


def moving(character: Character, seed: int) -> SimState:
    rng = np.random.default_rng(seed)
    quaternion = rng.normal(size=4)
    angles = rng.uniform(0.5 * character.lower_limits, 0.5 * character.upper_limits)
    pose = Pose(np.array([0.3, -0.2, 2.0]), quaternion / np.linalg.norm(quaternion), angles)
    return SimState(pose, rng.normal(size=3), rng.normal(size=3), rng.normal(size=len(angles)))


def test_world_has_the_characters_masses_and_friction(character: Character):
    engine = BulletEngine(character)
    infos = [pybullet.getDynamicsInfo(engine._body, link, physicsClientId=engine._world) for link in range(-1, 35)]
    assert sum(info[0] for info in infos) == pytest.approx(character.mass_kg)
    assert {info[1] for info in infos} == {character.friction}
    limits = [pybullet.getJointInfo(engine._body, j, physicsClientId=engine._world)[8:10] for j in range(35)]
    np.testing.assert_allclose(limits, np.stack([character.lower_limits, character.upper_limits], axis=1))


def test_urdf_has_no_line_that_bullet_would_cut(character: Character):
    assert max(map(len, build_urdf(character).splitlines())) < 1000


def test_nothing_is_printed():
    # Bullet's C code prints when it is imported, and when a world is made; the rest of C's buffer comes out at the end.
    code = (
        "from mocap2ctrl.simulation.bullet import BulletEngine\n"
        "from mocap2ctrl.character.model import load_character\n"
        "engine = BulletEngine(load_character())\nengine.step()\nprint('only this')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("only this\n", "")


def test_worlds_end_with_their_engines(character: Character):
    engine = BulletEngine(character)
    world = engine._world
    del engine
    gc.collect()
    assert not pybullet.isConnected(world)


def test_a_step_leaves_coordinates_that_place_the_body_where_bullet_has_it(character: Character):
    engine = BulletEngine(character)
    engine.reset(moving(character, 0))
    engine.step()
    wanted = centre_of_mass(character, *engine.segment_frames())
    masses, places = [], []
    here = {"physicsClientId": engine._world}
    for link in range(-1, 35):
        masses.append(pybullet.getDynamicsInfo(engine._body, link, **here)[0])
        place = (
            pybullet.getBasePositionAndOrientation(engine._body, **here)
            if link < 0
            else pybullet.getLinkState(engine._body, link, computeForwardKinematics=1, **here)
        )
        places.append(place[0])
    np.testing.assert_allclose(np.average(places, axis=0, weights=masses), wanted, atol=1e-9)


def test_centre_of_mass_motion_is_the_kinematics_derivative(character: Character):
    state = moving(character, 1)
    qpos, qvel = coordinates(state)
    com, velocity = np.empty(3), np.empty(3)
    centre_of_mass_motion(masses_of(character), qpos, qvel, com, velocity)

    def centre(time_s: float) -> np.ndarray:
        turn = rotations.from_rotation_vector(time_s * state.root_angular_velocity)
        position = state.pose.root_position + time_s * state.root_velocity
        orientation = rotations.multiply(turn, state.pose.root_orientation)
        angles = state.pose.angles + time_s * state.joint_velocities
        return centre_of_mass(character, *segment_frames(character, position, orientation, angles))

    np.testing.assert_allclose(com, centre(0.0), atol=1e-12)
    np.testing.assert_allclose(velocity, (centre(1e-5) - centre(-1e-5)) / 2e-5, atol=1e-7)


def test_both_loops_run_mujoco_to_the_same_motion(character: Character, stepping: Controller):
    # The loop that asks an engine step by step against the compiled one; they round a centre of mass differently.
    program, start = compile_program([stepping] * 2, character, TIME_STEP_S), start_vector(stepping.start)
    compiled = run(MujocoEngine(character), program, start, 60, stride=2, record_torques=True)
    shapes = (compiled.qpos, compiled.positions, compiled.orientations)
    record = (
        *(np.full_like(a, np.nan) for a in shapes),
        np.zeros_like(compiled.load),
        np.zeros_like(compiled.state),
        np.zeros_like(compiled.torques),
        np.zeros_like(compiled.final),
        np.zeros(2, dtype=bool),
    )
    starts = np.array([start, start])
    body = body_arrays(character, TIME_STEP_S)
    span = Span(starts, 0, 60, 2, -1, np.zeros((2, 0, 7)), np.zeros((0, 8)), np.zeros((0, 3)))
    run_stepped(MujocoEngine(character), program, body, span, True, record)
    np.testing.assert_allclose(record[0], compiled.qpos, atol=1e-7)
    np.testing.assert_allclose(record[1], compiled.positions, atol=1e-7)
    np.testing.assert_array_equal(record[4], compiled.state)
    np.testing.assert_allclose(record[3], compiled.load, atol=1e-3)


def test_a_diverged_run_is_data(character: Character):
    state = moving(character, 2)
    fast = SimState(state.pose, state.root_velocity, state.root_angular_velocity, np.full(35, 1e3))
    program = single_state_program([1, 0, 0, 0], np.zeros(35), 0.1)
    rollouts = run(BulletEngine(character), program, start_vector(fast), 10)
    assert rollouts.diverged[0]
    assert np.isnan(rollouts.qpos).all()


def test_without_servos_there_is_none(character: Character):
    with pytest.raises(EngineError, match="made with servo='none'"):
        BulletEngine(character, servo=False).set_servo(np.zeros(35))


@pytest.mark.parametrize("servo", ["velocity", "none"])
def test_pd_servos_are_for_engines_that_were_made_for_them(character: Character, servo: Servo):
    with pytest.raises(EngineError, match=f"made with servo='{servo}'"):
        BulletEngine(character, servo=servo).set_pd(np.zeros(35), 1.0, 0.1)


def test_a_missing_library_is_said(character: Character, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(choose, "has_bullet", lambda: False)
    with pytest.raises(EngineError, match=r"pybullet is not installed.*choose 'mujoco'"):
        choose.make_engine("bullet", character)
    assert choose.available_engines() == ("mujoco",)
