"""Compiled points and distances: the bits of the same arithmetic in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import points_world
from mocap2ctrl.geometry import rotations
from mocap2ctrl.objective.markers import mean_squared_distances, points_of
from mocap2ctrl.types import Array

SEGMENTS, FRAMES, POPULATION = 5, 7, 4


def bodies(seed: int) -> tuple[Array, Array]:
    """Positions (P, F, S, 3) and orientations (P, F, S, 4)."""
    rng = np.random.default_rng(seed)
    turn = rotations.normalise(rng.normal(size=(POPULATION, FRAMES, SEGMENTS, 4)))
    return rng.normal(size=(POPULATION, FRAMES, SEGMENTS, 3)), turn


def layout(count: int) -> tuple[np.ndarray, Array]:
    rng = np.random.default_rng(count)
    return rng.integers(0, SEGMENTS, count), rng.normal(size=(count, 3))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 15, 16, 54, 127, 128])
def test_points_and_distances_are_numpys_to_the_bit(count: int):
    positions, orientations = bodies(count)
    segment, local = layout(count)
    reference = np.random.default_rng(0).normal(size=(FRAMES, count, 3))
    points = points_of(positions, orientations, segment, local)
    expected = points_world(positions, orientations, segment, local)
    np.testing.assert_array_equal(points, expected)
    squared = np.sum((expected - reference) ** 2, axis=-1).mean(axis=-1)
    np.testing.assert_array_equal(mean_squared_distances(points, reference), squared)


def test_parts_of_read_only_arrays_are_taken_too():
    positions, orientations = bodies(1)
    segment, local = layout(9)
    whole = points_of(positions, orientations, segment, local)
    for array in (positions, orientations):
        array.setflags(write=False)
    np.testing.assert_array_equal(points_of(positions[:, 2:5], orientations[:, 2:5], segment, local), whole[:, 2:5])


def test_a_frame_that_was_never_reached_is_not_a_number():
    positions, orientations = bodies(2)
    segment, local = layout(54)
    positions[1, 3], orientations[1, 3] = np.nan, np.nan
    distances = mean_squared_distances(points_of(positions, orientations, segment, local), np.zeros((FRAMES, 54, 3)))
    assert np.argwhere(np.isnan(distances)).tolist() == [[1, 3]]
