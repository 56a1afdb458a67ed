"""Limbs that a track has lost: where they are looked for, that they are found, and descents that end at the best they met."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from performed import poses, shaken, side_camera, walk_at_30_fps
from threadpoolctl import threadpool_limits
from tiny_video import walk_prior

from mocap2ctrl.character import Character
from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.track.descent import FINE, Fitted, Level, descend
from mocap2ctrl.track.energy import energy_of
from mocap2ctrl.track.evidence import NEAR, Evidence, TrackWeights, evidence_of
from mocap2ctrl.track.limbs import SETTLED_LIMBS, limb_moves, worst
from mocap2ctrl.track.moves import improved
from mocap2ctrl.track.path import Path, sides_of
from mocap2ctrl.track.tree import FACTORS
from mocap2ctrl.types import Array, Silhouettes

STANDARD = np.ones(FACTORS)
LIFTED = slice(8, 17)


@pytest.fixture(scope="module")
def walk(character: Character) -> Path:
    return poses(walk_at_30_fps(character, 4, 28))


@pytest.fixture(scope="module")
def waving(walk: Path, character: Character) -> Path:
    """The same with an arm that goes up and comes down again."""
    angles, hinge = np.array(walk.angles), character.hinge_names.index("right_upper_arm.flexion")
    angles[2:23, hinge] += (2.6 - angles[2:23, hinge]) * np.sin(np.pi * np.arange(21) / 20.0) ** 2
    return walk.with_angles(angles)


@pytest.fixture(scope="module")
def evidence(waving: Path, character: Character) -> Evidence:
    shape, camera = body_shape(character), side_camera(walk_at_30_fps(character, 4, 28))
    masks = rasterise(capsule_ends(shape, *segment_frames(character, *waving)), shape.radii, camera)
    return evidence_of(
        Silhouettes("waving", 30.0, masks, camera), character, walk_prior(character), TrackWeights(prior=0.05)
    )


def judged(evidence: Evidence, path: Path) -> Fitted:
    return Fitted(path, STANDARD, energy_of(evidence, path, STANDARD, NEAR, 1), {})


def wrist(character: Character, path: Path) -> Array:
    names = [point.name for point in character.evaluation_points]
    return evaluation_points(character, *segment_frames(character, *path))[:, names.index("right_wrist")]


def test_a_lost_arm_is_found(evidence: Evidence, walk: Path, waving: Path, character: Character) -> None:
    """No descent lifts it beside the head: the outline there does not pull at an arm beside the hip."""
    lost, truth = descend(evidence, walk, STANDARD, FINE), wrist(character, waving)[LIFTED]
    known = np.concatenate([waving.angles[12:13], np.zeros_like(waving.angles[:2])])
    moves = limb_moves(evidence, lost, known, sides_of(character))
    with threadpool_limits(limits=1), ThreadPoolExecutor(1) as executor:
        found = improved(evidence, lost, moves, executor, levels=SETTLED_LIMBS)
    assert found is not None
    assert found.energy < lost.energy
    kept = descend(
        evidence, found.path, found.body, FINE[2:], fit_body=True
    )  # as the tracker does with what it has found
    off = [np.linalg.norm(wrist(character, fit.path)[LIFTED] - truth, axis=1).mean() for fit in (lost, found, kept)]
    assert off[0] > 0.5
    assert off[1] < 0.3
    assert off[2] < 0.05


def test_nothing_is_looked_for_where_nothing_covers_better(
    evidence: Evidence, waving: Path, character: Character
) -> None:
    far = np.full((1, waving.angles.shape[1]), 1.2)
    still = Path(*(np.repeat(array[12:13], 24, axis=0) for array in waving))
    here = evidence.window(12, 13)
    alone = Path(*(array[12:13] for array in still))
    assert limb_moves(here, judged(here, alone), far, sides_of(character)) == []


def test_the_worst_moments_are_apart() -> None:
    energy = np.array([1.0, 9.0, 8.0, 1.0, 1.0, 7.0, 0.0, 6.0])
    assert worst(energy, 3, 2) == [1, 5]
    assert worst(energy, 2, 1) == [1, 5]
    assert worst(energy[:1], 3, 2) == [0]


def test_a_descent_ends_at_the_best_that_it_met(evidence: Evidence, waving: Path) -> None:
    """What is believed of the feet changes from step to step, and energies may rise with it."""
    lower = 0
    for scale in (0.0, 0.02, 0.05, 0.1):
        begun = shaken(waving, scale)
        flying = begun._replace(root_position=begun.root_position + np.array([0.0, 0.0, 0.05]))
        for path in (begun, flying):
            before = energy_of(evidence, path, STANDARD, NEAR, 1)
            after = descend(evidence, path, STANDARD, (Level(NEAR, 1, 4),)).energy
            assert after <= before
            lower += after < before
    assert lower >= 6
