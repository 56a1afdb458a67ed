"""Momentum in flight against closed forms: rigid bodies that turn, parabolas, and motions that do not fly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from performed import rollouts_of, walk_at_30_fps

from mocap2ctrl.character.kinematics import centre_of_mass, clip_frames, points_world
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.objective.flight import Momentum, flight_momentum, point_masses, spin
from mocap2ctrl.objective.residuals import residuals
from mocap2ctrl.objective.target import marker_target
from mocap2ctrl.objective.terms import HORIZON_S, Objective
from mocap2ctrl.simulation.environment import GRAVITY_M_S2
from mocap2ctrl.types import Array, MotionClip

FPS = 30.0
STANDS, FLIES = 6, 12
"""Frames before and after a flight, and of it."""

CLEAR_M = 0.3
"""What the flight is higher than the stand: a body that turns needs room."""


def leap(character: Character, gravity: float = GRAVITY_M_S2, turn: Array | None = None) -> MotionClip:
    """Stands stiffly, rises along a parabola while it turns about its centre of mass by `turn` (F,) rad, and stands."""
    pose = character.zero_pose()
    time = np.arange(1, FLIES + 1) / FPS
    rise = CLEAR_M + 0.5 * gravity * time * ((FLIES + 1) / FPS - time)
    travel = np.concatenate([np.zeros(STANDS), 1.5 * time, np.full(STANDS, 1.5 * time[-1])])
    height = np.concatenate([np.zeros(STANDS), rise, np.zeros(STANDS)])
    angle = np.zeros(FLIES) if turn is None else turn
    pitch = np.concatenate([np.zeros(STANDS), angle, np.zeros(STANDS)])
    orientation = rotations.about_axis(np.array([0.0, 1.0, 0.0]), pitch)
    standing = MotionClip("leap", FPS, pose.root_position[None], pose.root_orientation[None], pose.angles[None])
    com = centre_of_mass(character, *clip_frames(character, standing))[0]
    place = com + rotations.rotate(orientation, pose.root_position - com)
    place = place + np.stack([travel, np.zeros_like(travel), height], axis=1)
    return MotionClip("leap", FPS, place, orientation, np.repeat(pose.angles[None], len(place), axis=0))


def momentum_of(character: Character, clip: MotionClip) -> Momentum | None:
    frames = clip_frames(character, clip)
    return flight_momentum(character, *frames, centre_of_mass(character, *frames), clip.fps)


def test_point_masses_have_the_segments_masses_and_moments(character: Character) -> None:
    body = point_masses(character)
    for index, segment in enumerate(character.segments):
        mass, local = body.mass[body.segment == index], body.local[body.segment == index]
        assert mass.sum() == pytest.approx(segment.mass)
        np.testing.assert_allclose(mass @ local / mass.sum(), segment.com, atol=1e-12)
        r = local - segment.com
        inertia = np.einsum("n,n,ij->ij", mass, np.sum(r * r, axis=1), np.eye(3)) - np.einsum("n,ni,nj->ij", mass, r, r)
        np.testing.assert_allclose(inertia, segment.inertia_tensor, atol=1e-9)


def test_a_stiff_body_spins_with_its_moment_of_inertia(character: Character) -> None:
    """L = I w about a principal axis, less what a chord is shorter than its arc."""
    body, rate, fps = point_masses(character), 2.0, 120.0
    clip = replace(leap(character, turn=np.arange(FLIES) * rate / fps), fps=fps).cut(STANDS, STANDS + FLIES)
    points = points_world(*clip_frames(character, clip), body.segment, body.local)
    still = points[0] - body.mass @ points[0] / body.mass.sum()
    moment = body.mass @ (still[:, 0] ** 2 + still[:, 2] ** 2)
    found = spin(points, body, fps) * body.gyration_m * body.mass.sum()
    assert found[:, 1] == pytest.approx(np.full(FLIES - 1, moment * rate), rel=1e-3)


def test_a_flight_as_physics_has_it_is_asked_for_as_it_is(character: Character) -> None:
    found = momentum_of(character, leap(character, turn=-0.2 * np.arange(FLIES)))
    assert found is not None
    np.testing.assert_array_equal(np.flatnonzero(found.flying), np.arange(STANDS, STANDS + FLIES - 1))
    np.testing.assert_allclose(found.velocity, 0.0, atol=1e-9)
    assert np.ptp(found.spin[found.flying, 1]) < 1e-9
    assert found.spin[STANDS, 1] < -1.0


def test_a_flight_as_no_body_flies_is_asked_for_as_the_nearest_that_does(character: Character) -> None:
    """It turns faster in the middle, and falls by 0.7 g; lines fitted to its way and its turns tell how fast it is to be."""
    angle = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, FLIES))
    clip = leap(character, 0.7 * GRAVITY_M_S2, angle)
    time = np.arange(FLIES) / FPS
    rate = np.polyfit(time, angle, 1)[0]
    found, even = momentum_of(character, clip), momentum_of(character, leap(character, turn=rate * time))
    assert found is not None
    assert even is not None
    assert found.spin[STANDS, 1] == pytest.approx(even.spin[STANDS, 1], rel=0.01)
    way = centre_of_mass(character, *clip_frames(character, clip))
    velocity = np.diff(way, axis=0) * FPS + found.velocity
    flown = way[STANDS : STANDS + FLIES] + 0.5 * GRAVITY_M_S2 * np.outer((time - time.mean()) ** 2, (0.0, 0.0, 1.0))
    np.testing.assert_allclose(np.diff(velocity[found.flying, 2]) * FPS, -GRAVITY_M_S2, rtol=1e-9)
    np.testing.assert_allclose(velocity[found.flying].mean(axis=0), np.polyfit(time, flown, 1)[0], atol=1e-9)


def test_what_does_not_fly_asks_for_nothing(character: Character) -> None:
    walk = walk_at_30_fps(character, 0, 30)
    hovering = replace(walk, root_position=walk.root_position + np.array([0.0, 0.0, 0.3]))
    hop = leap(character).cut(STANDS, STANDS + 5)
    for clip in (walk, hovering, hop):
        assert momentum_of(character, clip) is None
        assert marker_target(character, clip).momentum is None


def test_the_asked_momentum_costs_nothing_and_another_its_drift(character: Character) -> None:
    physical, turning = (leap(character, turn=rate * np.arange(FLIES)) for rate in (0.0, -0.1))
    objective = Objective(character, marker_target(character, physical))
    window = (STANDS, STANDS + FLIES - 1)
    assert objective.drift_errors(rollouts_of(character, physical), *window) == pytest.approx(0.0, abs=1e-9)
    errors = objective.drift_errors(rollouts_of(character, turning), *window)
    body = point_masses(character)
    points = points_world(*clip_frames(character, turning), body.segment, body.local)
    np.testing.assert_allclose(
        errors[0, :, 3:], HORIZON_S * spin(points, body, FPS)[STANDS : STANDS + FLIES - 1], atol=1e-9
    )
    assert objective.drift_errors(rollouts_of(character, turning), 0, STANDS).shape == (1, STANDS, 3)


def test_squares_of_residuals_sum_to_the_cost_in_flight_too(character: Character) -> None:
    performed = leap(character, turn=-0.1 * np.arange(FLIES))
    objective = Objective(character, marker_target(character, leap(character)))
    rollouts, window = rollouts_of(character, performed), (2, STANDS + 5)
    said = objective.terms(rollouts, np.zeros(1), *window)
    expected = sum(term.weight * term.value for term in said if term.name in ("markers", "velocity"))
    assert np.sum(residuals(objective, rollouts, said, *window) ** 2, axis=1) == pytest.approx(expected)
