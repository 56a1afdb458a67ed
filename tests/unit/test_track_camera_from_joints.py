"""Cameras from joints that somebody has pointed at: bodies of known pose before known cameras."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import evaluation_points, lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.camera import camera_centre, project
from mocap2ctrl.prior.choose import load_prior, shipped_priors
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.track.camera_from_joints import camera_from_joints
from mocap2ctrl.types import Camera
from mocap2ctrl.video.calibration.ground_view import GroundView
from mocap2ctrl.video.calibration.points_file import SeenPoints

pytestmark = pytest.mark.skipif("all" not in shipped_priors(), reason="a checkout without priors/")

SIZE = (1280, 720)
VIEW = GroundView(0.95, 1.25, np.radians(6.0), np.radians(1.0))
NONE = np.zeros((0, 2))


@pytest.fixture(scope="module")
def prior(character: Character) -> PosePrior:
    found = load_prior("all", character)
    assert isinstance(found, PosePrior)
    return found


def walkers(character: Character, prior: PosePrior, places: np.ndarray, headings: np.ndarray) -> np.ndarray:
    """(F, E, 3) joints of people in upright poses of the prior, standing on the ground."""
    upright = prior.exemplars[np.linalg.norm(prior.exemplars[:, :2], axis=1) < 0.15][: len(places)]
    turns = rotations.multiply(rotations.yaw(headings), rotations.from_rotation_vector(upright[:, :3]))
    positions, turned = segment_frames(character, np.zeros((len(places), 3)), turns, upright[:, 3:])
    down = np.min(lowest_points(character, positions, turned), axis=1)
    return evaluation_points(character, positions, turned) + np.column_stack([places, -down])[:, None]


def seen(camera: Camera, joints: np.ndarray, noise_px: float = 0.0) -> SeenPoints:
    pixels = project(camera, joints) + np.random.default_rng(5).normal(0, 1, (*joints.shape[:2], 2)) * noise_px
    return SeenPoints(tuple(map(str, range(len(joints)))), pixels, NONE, np.zeros((0, 3)))


def test_one_frame(character: Character, prior: PosePrior) -> None:
    camera = VIEW.camera(SIZE, "x")
    joints = walkers(character, prior, np.array([[0.3, 5.0]]), np.array([0.4]))
    found = camera_from_joints(seen(camera, joints, 2.0), SIZE, character, prior, height_known=True)
    assert np.all(np.abs(np.array(found.view) - VIEW) < 2.5 * np.array(found.spread) * [0.95, 1, 1, 1])
    assert np.median(found.joint_errors) < 5.0
    assert found.tall_px[0] == pytest.approx(1.75 * 0.95 * 1280 / 5.0, rel=0.15)


def test_more_frames_tell_more_and_a_joint_need_not_be_given(character: Character, prior: PosePrior) -> None:
    camera = VIEW.camera(SIZE, "x")
    joints = walkers(character, prior, np.array([[-1.0, 4.0], [0.0, 5.5], [1.5, 8.0]]), np.array([0.4, 1.2, 3.0]))
    points = seen(camera, joints, 1.0)
    hidden = np.array(points.joints)
    hidden[1, 5] = np.nan
    found = camera_from_joints(replace(points, joints=hidden), SIZE, character, prior)
    single = camera_from_joints(replace(points, when=("0",), joints=hidden[:1]), SIZE, character, prior)
    assert found.spread.tilt < single.spread.tilt
    assert np.degrees(found.view.tilt) == pytest.approx(6.0, abs=2.5 * np.degrees(found.spread.tilt))
    assert found.view.focal == pytest.approx(0.95, rel=0.25)
    assert np.isnan(found.joint_errors[1, 5])


def test_a_lens_that_the_file_says_is_kept(character: Character, prior: PosePrior) -> None:
    joints = walkers(character, prior, np.array([[0.3, 5.0]]), np.array([0.4]))
    points = seen(VIEW.camera(SIZE, "x"), joints)
    assert camera_from_joints(points, SIZE, character, prior, focal=0.95).view.focal == pytest.approx(0.95, rel=0.1)


def test_known_places_alone_give_the_camera_in_their_world(character: Character, prior: PosePrior) -> None:
    view = GroundView(1.2, 2.0, np.radians(12.0), np.radians(1.0))
    standing = view.camera(SIZE, "x")
    # The world turned by 100 degrees and moved: the same pictures.
    turn, shift = rotations.to_matrix(rotations.yaw(np.radians(100.0))), np.array([3.0, -1.0, 0.0])
    local = np.random.default_rng(1).uniform([-2, 4, 0], [2, 9, 1.5], (7, 3))
    points = SeenPoints((), np.zeros((0, 15, 2)), project(standing, local), local @ turn.T + shift)
    found = camera_from_joints(points, SIZE, character, prior)
    assert found.view.focal == pytest.approx(1.2, rel=0.01)
    assert np.degrees(found.view.tilt) == pytest.approx(12.0, abs=0.3)
    assert camera_centre(found.camera) == pytest.approx(np.array([0.0, 0.0, 2.0]) @ turn.T + shift, abs=0.05)
    assert np.max(found.place_errors) < 0.5


def test_known_places_and_a_person(character: Character, prior: PosePrior) -> None:
    camera = VIEW.camera(SIZE, "x")
    world = np.array([[-1.5, 4.0, 0.0], [1.5, 4.0, 0.0], [2.0, 8.0, 0.0], [-2.0, 8.0, 0.0], [0.0, 6.0, 1.0]])
    joints = walkers(character, prior, np.array([[0.3, 5.0]]), np.array([0.4]))
    points = replace(seen(camera, joints), pixels=project(camera, world), world=world)
    found = camera_from_joints(points, SIZE, character, prior)
    assert found.view.focal == pytest.approx(0.95, rel=0.02)
    assert found.view.height_m == pytest.approx(1.25, abs=0.03)
    assert np.median(found.joint_errors) < 6.0
