"""A smooth skin over the character's capsules, in T-pose, whose points follow the segments near them: for other programs' meshes.

The surface is the zero level of a smooth union of the capsules' distances, found by marching cubes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.character.rest_pose import rest_pose
from mocap2ctrl.character.shape import BodyShape, body_shape, capsule_ends
from mocap2ctrl.types import Array

BLEND = 0.005
"""Radius within which shapes melt into each other, as a share of the body's height: 9 mm of 1.75 m."""

WEIGHT_BLEND = 0.012
"""Depth over which a joint's skin passes from one segment to the next, as a share of the body's height: 2 cm of 1.75 m."""

CELL = 0.009
"""Edge of a cube, as a share of the body's height: 16 mm of 1.75 m."""

SIDE_BY_SIDE = 0.2
"""Cosine to a capsule of the way to another, below which that lies beside it and not behind."""

LEAST_SHARE = 1e-3
JOINTS_A_VERTEX = 4
"""As many as every program reads."""


@dataclass(frozen=True, eq=False)
class Skin:
    """A closed mesh of V vertices and F triangles in the T-pose; metres, world axes.

    Attributes:
        vertices: (V, 3) places.
        normals: (V, 3) unit vectors, outwards.
        triangles: (F, 3) indices, counter-clockwise as seen from outside.
        segments: (V, 4) the segments that move each vertex; 0 where fewer do.
        weights: (V, 4) their shares, descending, of sum 1.
    """

    vertices: Array
    normals: Array
    triangles: npt.NDArray[np.int64]
    segments: npt.NDArray[np.int64]
    weights: Array


@lru_cache(maxsize=8)
def body_skin(character: Character) -> Skin:
    """The skin of `character`."""
    from skimage.measure import marching_cubes  # a quarter of a second to import, for meshes only

    shape, rest, cell = _soles_closed(body_shape(character)), rest_pose(character), CELL * character.height_m
    ends = capsule_ends(shape, rest.positions, rest.orientations)
    low, level = _smooth_union(ends, shape.radii, BLEND * character.height_m, cell)
    vertices, triangles, normals, _ = marching_cubes(level, 0.0, spacing=(cell,) * 3, gradient_direction="ascent")
    vertices = low + vertices
    distances = np.array([_distance(vertices, *each) for each in zip(ends, shape.radii, strict=True)])
    segments, weights = _weights(character, shape.owner, distances)
    return Skin(vertices, normals, triangles.astype(np.int64), segments, weights)


def _soles_closed(shape: BodyShape) -> BodyShape:
    """The shape with one more capsule between two of a segment that lie side by side, as the two rails of a foot do."""
    first = np.array([one for one in range(len(shape.owner) - 1) if _beside(shape, one)], int)
    both = np.stack([first, first + 1])
    return BodyShape(
        np.append(shape.owner, shape.owner[first]),
        np.append(shape.local, shape.local[both].mean(axis=0), axis=0),
        np.append(shape.radii, shape.radii[both].mean(axis=0)),
        np.append(shape.worn, shape.worn[first]),
        np.append(shape.trunk, shape.trunk[first]),
    )


def _beside(shape: BodyShape, one: int) -> bool:
    """Whether a capsule and the next one are of a segment, and lie side by side."""
    other = one + 1
    line, aside = np.diff(shape.local[one], axis=0)[0], shape.local[other, 0] - shape.local[one, 0]
    across = abs(aside @ line) < SIDE_BY_SIDE * np.linalg.norm(aside) * np.linalg.norm(line)
    return bool(shape.owner[one] == shape.owner[other] and across)


def _distance(points: Array, ends: Array, radius: float) -> Array:
    """(...) distances of points (..., 3) from the surface of a capsule with ends (2, 3); negative inside."""
    start, line = ends[0], ends[1] - ends[0]
    along = np.clip((points - start) @ line / max(float(line @ line), 1e-12), 0.0, 1.0)
    return np.asarray(np.linalg.norm(points - start - along[..., None] * line, axis=-1) - radius)


def _smooth_union(ends: Array, radii: Array, blend: float, cell: float) -> tuple[Array, Array]:
    """The corner (3,) of a grid, and (X, Y, Z) minus the distance d from the union of capsules at its points.

    d = -b log sum_c exp(-d_c / b) is the least of the capsules' distances, less where several are near it. A capsule has no say
    at points that are more than three cells away from it.
    """
    reach = radii[:, None] + 3.0 * cell
    boxes = np.stack([ends.min(axis=1) - reach, ends.max(axis=1) + reach], axis=1)
    low = boxes[:, 0].min(axis=0) - cell
    shape = np.ceil((boxes[:, 1].max(axis=0) - low) / cell).astype(int) + 2
    total = np.full(shape, np.exp(-3.0 * cell / blend))
    for capsule, radius, (first, last) in zip(ends, radii, np.floor((boxes - low) / cell).astype(int), strict=True):
        axes = [np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
        points = low + cell * np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        total[np.ix_(*axes)] += np.exp(-_distance(points, capsule, radius) / blend)
    return low, blend * np.log(total)


def _weights(
    character: Character, owner: npt.NDArray[np.int64], distances: Array
) -> tuple[npt.NDArray[np.int64], Array]:
    """Segments (V, 4) and weights (V, 4) of points from distances (C, V) to capsules of segments `owner` (C,).

    Only the nearest segment and those that are joined to it have a say, so that a thigh does not pull the skin of the other.
    """
    parents = [segment.parent for segment in character.segments]
    count = len(parents)
    nearness = np.array([distances[owner == s].min(axis=0) for s in range(count)])
    share = np.exp((nearness.min(axis=0) - nearness) / (WEIGHT_BLEND * character.height_m))
    joined = np.eye(count, dtype=bool)
    for child, parent in enumerate(parents[1:], start=1):
        joined[child, parent] = joined[parent, child] = True
    share = np.where(joined[nearness.argmin(axis=0)].T & (share > LEAST_SHARE), share, 0.0).T
    best = np.argsort(-share, axis=1, kind="stable")[:, :JOINTS_A_VERTEX]
    weights = np.take_along_axis(share, best, axis=1)
    return np.where(weights > 0.0, best, 0), weights / weights.sum(axis=1, keepdims=True)
