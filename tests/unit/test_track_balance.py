"""What a track must be able to bear: its mass above its feet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from performed import poses, shaken, side_camera, walk_at_30_fps
from tiny_video import walk_prior

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import centre_of_mass, segment_frames
from mocap2ctrl.character.model import SIDES
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.track.balance import Masses, lean_of, masses_of, place_between
from mocap2ctrl.track.energy import belief_at, equations
from mocap2ctrl.track.evidence import MIDDLE, Evidence, evidence_of
from mocap2ctrl.track.path import Path
from mocap2ctrl.track.tree import FACTORS, Tree, tree_of
from mocap2ctrl.types import Array, Silhouettes

STANDARD = np.ones(FACTORS)


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


@pytest.fixture(scope="module")
def masses(character: Character) -> Masses:
    return masses_of(character)


@pytest.fixture(scope="module")
def tree(character: Character) -> Tree:
    return tree_of(character)


@pytest.fixture(scope="module")
def evidence(character: Character) -> Evidence:
    walk = walk_at_30_fps(character, 4, 16)
    camera = side_camera(walk)
    shape = body_shape(character)
    ends = capsule_ends(shape, *segment_frames(character, walk.root_position, walk.root_orientation, walk.angles))
    return evidence_of(
        Silhouettes("walk", walk.fps, rasterise(ends, shape.radii, camera), camera), character, walk_prior(character)
    )


def standing(character: Character, frames: int, forwards: float = 0.0) -> Path:
    """The body at rest, leant so far forwards at its ankles, whose soles stay where they are."""
    pose = character.zero_pose()
    ankle = np.array([0.0, 0.0, 0.08])
    turn = rotations.from_rotation_vector(np.array([0.0, forwards, 0.0]))
    place = rotations.rotate(turn, pose.root_position - ankle) + ankle
    angles = pose.angles.copy()
    angles[[character.hinge_names.index(f"{side}_foot.dorsiflexion") for side in SIDES]] = forwards
    turned = rotations.multiply(turn, pose.root_orientation)
    return Path(np.tile(place, (frames, 1)), np.tile(turned, (frames, 1)), np.tile(angles, (frames, 1)))


def between(masses: Masses, tree: Tree, path: Path) -> Array:
    return place_between(masses, tree, STANDARD, path)


def test_a_body_at_rest_stands_over_its_feet(character: Character, masses: Masses, tree: Tree) -> None:
    path = standing(character, 3)
    along = between(masses, tree, path)
    np.testing.assert_allclose(along, 0.5, atol=1e-6)
    offset = lean_of(masses, tree, STANDARD, path, along, False).offset
    assert np.abs(offset).max() < 0.1


def test_the_lean_is_that_of_the_centre_of_mass(character: Character, masses: Masses, tree: Tree) -> None:
    """Another program part computes it too; the nearest place on the line never lies beyond a foot."""
    walk = walk_at_30_fps(character, 0, 12)
    path = poses(walk)
    com = centre_of_mass(character, *segment_frames(character, *path))
    at_left, at_right = (
        lean_of(masses, tree, STANDARD, path, np.full(path.frames, place), False).offset for place in (0.0, 1.0)
    )
    left, right = com[:, :2] - at_left, com[:, :2] - at_right
    along = between(masses, tree, path)
    assert np.all((along >= 0.0) & (along <= 1.0))
    nearest = lean_of(masses, tree, STANDARD, path, along, False).offset
    for place in np.linspace(0.0, 1.0, 9):
        other = com[:, :2] - (1.0 - place) * left - place * right
        assert np.all(np.linalg.norm(nearest, axis=1) <= np.linalg.norm(other, axis=1) + 1e-9)


def test_derivatives_of_the_lean(character: Character, masses: Masses, tree: Tree) -> None:
    path, body = shaken(poses(walk_at_30_fps(character, 0, 2)), 0.1), np.array([1.1, 0.97, 1.03, 1.02, 1.12])
    along = place_between(masses, tree, body, path)
    jacobian = lean_of(masses, tree, body, path, along, True).jacobian
    size, eps = jacobian.shape[-1] - FACTORS, 1e-6
    for k in range(size + FACTORS):
        step, growth = np.zeros((path.frames, size)), np.zeros(FACTORS)
        if k < size:
            step[:, k] = eps
        else:
            growth[k - size] = eps
        there, back = (
            lean_of(masses, tree, body + s * growth, path.moved(s * step), along, False).offset for s in (1.0, -1.0)
        )
        np.testing.assert_allclose(jacobian[..., k], (there - back) / (2 * eps), atol=1e-7)


def balance_of(evidence: Evidence, path: Path) -> float:
    belief = belief_at(evidence, path, STANDARD)
    return equations(evidence, path, STANDARD, belief, MIDDLE, 2, derivatives=False).parts["balance"]


def test_who_leans_too_far_pays_and_who_has_no_foot_on_the_ground_does_not(
    evidence: Evidence, character: Character
) -> None:
    window = evidence.window(0, 6)
    upright, little, far = (balance_of(window, standing(character, 6, angle)) for angle in (0.0, 0.05, 0.4))
    assert upright < 0.2 * 6
    assert little < far
    assert far > 2.0 * 6
    fallen = standing(character, 6, 0.4)
    flying = Path(fallen.root_position + np.array([0.0, 0.0, 0.5]), fallen.root_orientation, fallen.angles)
    assert balance_of(window, flying) < 0.01 * far


def test_a_weight_that_is_none_changes_nothing(evidence: Evidence, character: Character) -> None:
    window = replace(evidence.window(0, 6), weights=replace(evidence.weights, balance_m=1e6))
    assert balance_of(window, standing(character, 6, 0.4)) == pytest.approx(0.0, abs=1e-6)
