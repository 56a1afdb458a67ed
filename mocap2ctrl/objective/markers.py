"""Points of simulated bodies in the world, and their distances from a reference (Eq. 10), for whole populations, compiled.

The sums are taken in numpy's own order, so that the same arithmetic in numpy gives the same bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.compiled import njit
from mocap2ctrl.types import Array

LANES = 8
"""Partial sums of numpy's pairwise summation, which this follows for up to 128 numbers."""


def points_of(positions: Array, orientations: Array, segment: npt.NDArray[np.int64], local: Array) -> Array:
    """(P, F, N, 3) world positions of N points `local` (N, 3) that are fixed in segments `segment` (N,).

    Args:
        positions, orientations: (P, F, S, 3) and (P, F, S, 4) of segments; NaN gives NaN.
        segment, local: where the points are.
    """
    return np.asarray(_points(_writable(positions), _writable(orientations), segment, local))


def mean_squared_distances(points: Array, reference: Array) -> Array:
    """(P, F) mean over N points (P, F, N, 3) of the squared distance from `reference` (F, N, 3), up to 128 of them."""
    return np.asarray(_distances(points, _writable(reference)))


def _writable(array: Array) -> Array:
    """Contiguous and writable: what is read-only or strided is another type to numba."""
    return np.require(array, float, ["C", "W"])


@njit
def _turned(q, a, b, c):  # type: ignore[no-untyped-def]
    """The vector (a, b, c) rotated by the quaternion `q`, four numbers, with the arithmetic of `rotations.rotate`."""
    w, x, y, z = q
    u = 2.0 * (y * c - z * b)
    v = 2.0 * (z * a - x * c)
    s = 2.0 * (x * b - y * a)
    return (a + w * u) + (y * s - z * v), (b + w * v) + (z * u - x * s), (c + w * s) + (x * v - y * u)


@njit
def _points(positions, orientations, segment, local):  # type: ignore[no-untyped-def]
    population, frames = positions.shape[:2]
    points = np.empty((population, frames, len(segment), 3))
    for p in range(population):
        for f in range(frames):
            for n in range(len(segment)):
                s = segment[n]
                q = (
                    orientations[p, f, s, 0],
                    orientations[p, f, s, 1],
                    orientations[p, f, s, 2],
                    orientations[p, f, s, 3],
                )
                x, y, z = _turned(q, local[n, 0], local[n, 1], local[n, 2])
                points[p, f, n, 0] = positions[p, f, s, 0] + x
                points[p, f, n, 1] = positions[p, f, s, 1] + y
                points[p, f, n, 2] = positions[p, f, s, 2] + z
    return points


@njit
def _distances(points, reference):  # type: ignore[no-untyped-def]
    population, frames, count = points.shape[:3]
    squared = np.empty(count)
    result = np.empty((population, frames))
    for p in range(population):
        for f in range(frames):
            for n in range(count):
                x = points[p, f, n, 0] - reference[f, n, 0]
                y = points[p, f, n, 1] - reference[f, n, 1]
                z = points[p, f, n, 2] - reference[f, n, 2]
                squared[n] = (x * x + y * y) + z * z
            result[p, f] = _pairwise_sum(squared) / count
    return result


@njit
def _pairwise_sum(values):  # type: ignore[no-untyped-def]
    """The sum of at most 128 numbers, in the order in which numpy adds them."""
    whole = len(values) - len(values) % LANES
    if whole == 0:
        total = 0.0
    else:
        lanes = values[:LANES].copy()
        for i in range(LANES, whole):
            lanes[i % LANES] += values[i]
        total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
    for i in range(whole, len(values)):
        total += values[i]
    return total
