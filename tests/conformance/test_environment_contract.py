"""What every engine's environments do, against closed forms: slopes, belts, loads, low friction, sway, gravity, steps."""

from __future__ import annotations

import numpy as np
import pytest
from subjects import Subject

from mocap2ctrl.character.kinematics import points_world, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import Rollouts, run, single_state_program, start_vector
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.engine import TIME_STEP_S, Engine
from mocap2ctrl.simulation.environment import Belt, Curb, Environment, Load, Slope, Stairs, Sway, laden
from mocap2ctrl.simulation.terrain import lowest_clearances, surfaces, sway_at
from mocap2ctrl.types import Array, Pose, SimState

G = 9.81
BRICK = Load("right_hand", 13.0, (0.0, 0.0, -0.1), (0.0, 0.0, -0.1), 0.03)


def lying(character: Character, environment: Environment, ahead_m: float = 0.0) -> SimState:
    """Face down on the ground, all along it, at rest."""
    ground = surfaces(environment)
    upper = max(ground, key=lambda s: float(s.height(np.array([ahead_m, 0.0]))))
    turn = rotations.multiply(upper.orientation, rotations.about_axis((0.0, 1.0, 0.0), np.pi / 2))
    place = np.array([ahead_m, 0.0, float(upper.height(np.array([ahead_m, 0.0])))]) + upper.normal
    angles = np.zeros(len(character.hinges))
    gap = lowest_clearances(character, *segment_frames(character, place, turn, angles), ground).min()
    return SimState(Pose(place - gap * upper.normal, turn, angles), np.zeros(3), np.zeros(3), np.zeros(len(angles)))


def slid(subject: Subject, character: Character, environment: Environment, seconds: float) -> tuple[SimState, Engine]:
    """A stiff body that lies there after some time."""
    engine = subject.make(character, torque_scale=10.0, servo=True, environment=environment)
    engine.reset(lying(character, environment))
    for _ in range(round(seconds / TIME_STEP_S)):
        engine.set_servo(np.zeros(len(character.hinges)))
        engine.step()
    return engine.state(), engine


def rolled(
    subject: Subject, character: Character, environment: Environment, start: SimState, seconds: float
) -> Rollouts:
    """The body that keeps the pose that it starts in."""
    engine = subject.make(character, torque_scale=10.0, servo=True, environment=environment)
    program = single_state_program(start.pose.root_orientation, start.pose.angles, 0.1)
    return run(engine, program, start_vector(start), round(seconds / TIME_STEP_S), root_mode=3)


def speed_after(state: SimState) -> Array:
    return np.asarray(state.root_velocity)


@pytest.mark.parametrize("direction", [0.0, 90.0])
def test_a_body_slides_down_a_slope_at_g_sin_minus_mu_cos(subject: Subject, character: Character, direction: float):
    angle, friction = np.radians(20.0), 0.1
    slope = Environment(friction=friction, slope=Slope(20.0, direction))
    early, _ = slid(subject, character, slope, 0.25)
    late, _ = slid(subject, character, slope, 0.5)
    acceleration = (speed_after(late) - speed_after(early)) / 0.25
    expected = G * (np.sin(angle) - friction * np.cos(angle))
    downhill = -np.array(
        [np.cos(np.radians(direction)) * np.cos(angle), np.sin(np.radians(direction)) * np.cos(angle), np.sin(angle)]
    )
    np.testing.assert_allclose(acceleration @ downhill, expected, rtol=0.04)


def test_a_body_stays_on_a_slope_that_friction_holds(subject: Subject, character: Character):
    state, _ = slid(subject, character, Environment(friction=0.6, slope=Slope(20.0)), 0.5)
    assert np.linalg.norm(speed_after(state)) < 0.05  # without friction it is 1.7 m/s


def test_a_belt_carries_a_body_at_its_velocity(subject: Subject, character: Character):
    belt = Environment(belt=Belt((0.3, -0.4)), heading=np.pi / 2)
    state, _ = slid(subject, character, belt, 0.5)
    np.testing.assert_allclose(speed_after(state)[:2], (0.4, 0.3), atol=0.02)
    slippery = Environment(belt=Belt((3.0, 0.0)), friction=0.1)
    state, _ = slid(subject, character, slippery, 0.5)
    np.testing.assert_allclose(speed_after(state)[0], 0.1 * G * 0.5, rtol=0.05)


def test_a_belt_of_some_length_carries_on_it_and_nowhere_else(subject: Subject, character: Character):
    for start, moves in ((-2.0, True), (3.0, False)):
        state, _ = slid(subject, character, Environment(belt=Belt((0.0, 0.5), start, 4.0)), 0.4)
        assert abs(speed_after(state)[1] - (0.5 if moves else 0.0)) < 0.02


def test_what_is_carried_adds_its_weight_to_the_ground_forces(
    subject: Subject, character: Character, standing: SimState
):
    loads = []
    for environment in (Environment(), Environment(loads=(BRICK,))):
        engine = subject.make(character, torque_scale=10.0, servo=True, environment=environment)
        engine.reset(standing)
        force = []
        for _ in range(36):
            engine.set_servo(np.zeros(len(character.hinges)))
            engine.step()
            force.append(engine.foot_contacts().load.sum())
        loads.append(np.mean(force[12:]))
    np.testing.assert_allclose(loads[0], character.mass_kg * G, rtol=0.03)
    np.testing.assert_allclose(loads[1] - loads[0], 13.0 * G, rtol=0.1)


@pytest.mark.parametrize("segment", ["pelvis", "chest"])
def test_a_body_that_tumbles_with_a_slanted_load_keeps_its_angular_momentum(
    subject: Subject, character: Character, segment: str
):
    load = Load(segment, 9.0, (0.1, 0.0, 0.05), (0.3, 0.2, 0.4), 0.06)
    engine = subject.make(character, torque_scale=10.0, servo=True, environment=Environment(loads=(load,)))
    spin = np.array([2.0, -1.0, 3.0])
    pose = Pose([0.0, 0.0, 50.0], [1, 0, 0, 0], np.zeros(35))
    engine.reset(SimState(pose, np.zeros(3), spin, np.zeros(35)))
    both = laden(character, (load,))
    before = _angular_momentum(both, engine.state())
    for _ in range(60):
        engine.set_servo(np.zeros(35))
        engine.step()
    after = _angular_momentum(both, engine.state())
    assert np.linalg.norm(after - before) < 0.03 * np.linalg.norm(before)
    bare = _angular_momentum(character, SimState(pose, np.zeros(3), spin, np.zeros(35)))
    assert np.linalg.norm(before - bare) > 0.05 * np.linalg.norm(before)  # the load matters


def _angular_momentum(body: Character, state: SimState) -> Array:
    """(3,) of a stiff body about its centre of mass, from its description."""
    pose, spin = state.pose, state.root_angular_velocity
    places, turns = segment_frames(body, pose.root_position, pose.root_orientation, pose.angles)
    mass = np.array([s.mass for s in body.segments])
    centres = points_world(places, turns, np.arange(len(mass)), np.array([s.com for s in body.segments]))
    arms = centres - mass @ centres / mass.sum()
    total = np.zeros((3, 3))
    for m, arm, turn, segment in zip(mass, arms, turns, body.segments, strict=True):
        axes = rotations.to_matrix(turn)
        total += axes @ segment.inertia_tensor @ axes.T + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return total @ spin


def test_nothing_holds_horizontally_on_ice(subject: Subject, character: Character):
    ice = Environment(friction_divisor=2000.0)
    engine = subject.make(character, torque_scale=10.0, servo=True, environment=ice)
    engine.reset(lying(character, ice))
    force = np.array([[60.0, 30.0, 0.0]]) * np.array([s.mass for s in character.segments])[:, None] / character.mass_kg
    for _ in range(60):
        for segment, share in enumerate(force):
            engine.apply_wrench(segment, share)
        engine.set_servo(np.zeros(len(character.hinges)))
        engine.step()
    expected = np.array([60.0, 30.0]) / character.mass_kg * 0.5
    np.testing.assert_allclose(speed_after(engine.state())[:2], expected, rtol=0.05)


def test_gravity_is_the_environments(subject: Subject, character: Character):
    high = SimState(Pose([0.0, 0.0, 50.0], [1, 0, 0, 0], np.zeros(35)), np.zeros(3), np.zeros(3), np.zeros(35))
    engine = subject.make(character, environment=Environment(gravity_m_s2=1.62))
    engine.reset(high)
    for _ in range(120):
        engine.step()
    np.testing.assert_allclose(speed_after(engine.state())[2], -1.62, rtol=1e-6)


def test_swaying_ground_leaves_who_flies_alone(subject: Subject, character: Character):
    high = SimState(Pose([0.0, 0.0, 50.0], [1, 0, 0, 0], np.zeros(35)), [1.0, 0, 0], np.zeros(3), np.zeros(35))
    still = rolled(subject, character, Environment(), high, 0.5)
    swaying = rolled(subject, character, Environment(sway=Sway((0.1, 0.2, 0.05), 0.7)), high, 0.5)
    np.testing.assert_allclose(swaying.positions, still.positions, atol=1e-9)
    np.testing.assert_allclose(swaying.qpos, still.qpos, atol=1e-9)


def test_swaying_ground_takes_who_lies_on_it_along(subject: Subject, character: Character):
    ship = Environment(sway=Sway((0.0, 0.1, 0.0), 1.0), heading=np.pi)
    start = lying(character, ship)
    rollouts = rolled(subject, character, ship, start, 1.0)
    moved = rollouts.qpos[0, :, :2] - rollouts.qpos[0, 0, :2]
    expected = sway_at(ship, np.arange(121) * TIME_STEP_S)[:, :2]
    assert expected[60, 1] == pytest.approx(-0.1)
    np.testing.assert_allclose(moved, expected, atol=0.02)  # it rocks a little as it settles
    still = rolled(subject, character, Environment(), start, 0.1)  # and the engine is at rest again afterwards
    again = rolled(subject, character, ship, start, 0.0)
    assert len(still.qpos[0]) == 13
    np.testing.assert_array_equal(again.qpos[0, 0], still.qpos[0, 0])


@pytest.mark.parametrize(
    "environment",
    [
        Environment(stairs=Stairs(-0.2, 4.0, 3, start_m=-2.0)),
        Environment(stairs=Stairs(0.1, 4.0, 3, start_m=-2.0)),
        Environment(curbs=(Curb(-1.5, 0.15, 3.0),)),
    ],
)
def test_a_body_rests_on_the_step_below_it(subject: Subject, character: Character, environment: Environment):
    state, _ = slid(subject, character, environment, 0.3)
    pose = state.pose
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    lowest = lowest_clearances(character, *frames, surfaces(environment)).min()
    assert -0.01 < lowest < 0.005
    assert np.linalg.norm(speed_after(state)) < 0.05


@pytest.mark.parametrize(
    "environment",
    [
        Environment(slope=Slope(8.0, start_m=0.1)),
        Environment(stairs=Stairs(0.03, 0.3, 3, start_m=0.1)),
        Environment(belt=Belt((0.2, 0.1)), loads=(BRICK,)),
        Environment(sway=Sway((0.05, 0.0, 0.0), 0.5)),
    ],
    ids=["slope", "stairs", "belt", "sway"],
)
def test_pieces_make_the_same_bits_as_the_whole(
    subject: Subject, character: Character, stepping: Controller, environment: Environment
):
    engine = subject.make(character, servo=True, environment=environment)
    program = compile_program([stepping], character, TIME_STEP_S)
    whole = run(engine, program, start_vector(stepping.start), 70)
    half = run(engine, program, start_vector(stepping.start), 33)
    rest = run(engine, program, half.final, 70)
    np.testing.assert_array_equal(rest.qpos[0], whole.qpos[0, 33:])
    np.testing.assert_array_equal(rest.final, whole.final)


def test_walking_on_a_belt_is_walking_on_ground_that_moves(
    subject: Subject, character: Character, stepping: Controller
):
    """Galileo: a controller on a belt that takes the body along does what it does on the ground at rest."""
    velocity, start = np.array([0.7, -0.2, 0.0]), stepping.start
    moving = SimState(start.pose, start.root_velocity + velocity, start.root_angular_velocity, start.joint_velocities)
    program = compile_program([stepping], character, TIME_STEP_S)
    still = run(subject.make(character, servo=True), program, start_vector(start), 60)
    belt = subject.make(character, servo=True, environment=Environment(belt=Belt((0.7, -0.2))))
    carried = run(belt, program, start_vector(moving), 60)
    there = carried.qpos[0, :, :3] - np.arange(61)[:, None] * TIME_STEP_S * velocity
    np.testing.assert_allclose(there, still.qpos[0, :, :3], atol=1e-3)
    assert np.ptp(still.qpos[0, :, 2]) > 0.005
