"""A body whose mass is above its feet: how far it leans towards the camera, which silhouettes hardly show, it must be able to bear.

Statics, not dynamics: on the ground, between steps, the centre of mass of who walks, squats, bends or kicks keeps within half a
foot's length of the line from one foot to the other; who brakes or pushes off leaves it for some frames, and pays little for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.compiled import njit
from mocap2ctrl.track.path import Path
from mocap2ctrl.track.tree import FACTORS, Points, Tree, empty_frames, point_world, pose_frames, wrench_map
from mocap2ctrl.types import Array


class Masses(NamedTuple):
    """Points whose weighted sums are the centre of mass and the middles of the feet.

    Attributes:
        points: the segments' centres of mass, then heel and toes of each foot.
        shares: (3, N) of each point in the centre of mass, the left foot and the right foot.
    """

    points: Points
    shares: Array


class Lean(NamedTuple):
    """How far the centre of mass is from above the line between the feet.

    Attributes:
        offset: (T, 2) on the ground, metres.
        jacobian: (T, 2, D + G) of the offset, the nearest place on the line taken for granted; no frames without derivatives.
    """

    offset: Array
    jacobian: Array


def masses_of(character: Character) -> Masses:
    """The points of `character`."""
    parts = character.segments
    segment, local = list(range(len(parts))), [np.asarray(part.com) for part in parts]
    rows = [np.array([part.mass for part in parts]) / sum(part.mass for part in parts)]
    for side in SIDES:
        ends = [
            (k, np.asarray(end))
            for k, part in enumerate(parts)
            if part.name == f"{side}_foot"
            for capsule in part.capsules
            for end in (capsule.start, capsule.end)
        ]
        rows.append(np.concatenate([np.zeros(len(segment)), np.full(len(ends), 1.0 / len(ends))]))
        segment += [k for k, _ in ends]
        local += [end for _, end in ends]
    shares = np.zeros((len(rows), len(segment)))
    for row, share in zip(shares, rows, strict=True):
        row[: len(share)] = share
    return Masses((np.array(segment), np.array(local)), shares)


def place_between(masses: Masses, tree: Tree, body: Array, path: Path) -> Array:
    """(T,) where on the line from the left foot, 0, to the right one, 1, the place nearest to the centre of mass is."""
    (com, left, right), _ = _points(masses, tree, body, path, derivatives=False)
    line = right - left
    along = np.sum((com - left) * line, axis=-1) / np.maximum(np.sum(line**2, axis=-1), 1e-9)
    return np.asarray(np.clip(along, 0.0, 1.0))


def lean_of(masses: Masses, tree: Tree, body: Array, path: Path, between: Array, derivatives: bool) -> Lean:
    """The lean over the places `between` (T,) of `place_between`."""
    points, jacobians = _points(masses, tree, body, path, derivatives=derivatives)
    return Lean(_over(points, between[:, None]), _over(jacobians, between[: len(jacobians[0]), None, None]))


def _over(values: Array, between: Array) -> Array:
    com, left, right = values
    return np.asarray(com - (1.0 - between) * left - between * right)


def _points(masses: Masses, tree: Tree, body: Array, path: Path, *, derivatives: bool) -> tuple[Array, Array]:
    """(3, T, 2) centre of mass and feet on the ground, metres, and their derivatives (3, T, 2, D + G)."""
    found: tuple[Array, Array] = _sums(tree, body, *path, *masses.points, masses.shares, derivatives)
    return found


@njit
def _sums(tree, body, root_position, root_orientation, angles, segment, local, shares, derivatives):  # type: ignore[no-untyped-def]
    """Sums of points with `shares` (K, N): (K, T, 2), and derivatives (K, T, 2, D + G), of no frames unless they are wanted."""
    count, size, sums = len(root_position), 6 + len(tree.axis) + FACTORS, len(shares)
    ground = np.zeros((sums, count, 2))
    slopes = np.zeros((sums, count if derivatives else 0, 2, size))
    frames = empty_frames(tree)
    row = np.empty((8, size))
    columns = np.empty(size, np.int64)
    point = np.empty(3)
    used = 0
    for t in range(count):
        pose_frames(frames, tree, body, root_position[t], root_orientation[t], angles[t])
        for n in range(len(segment)):
            point_world(point, frames, tree, body, segment[n], local[n])
            if derivatives and (n == 0 or segment[n] != segment[n - 1]):
                used = wrench_map(row, columns, frames, tree, body, segment[n])
            for k in range(sums):
                share = shares[k, n]
                if share == 0.0:
                    continue
                ground[k, t, 0] += share * point[0]
                ground[k, t, 1] += share * point[1]
                if not derivatives:
                    continue
                for c in range(used):
                    x = row[0, c] - point[1] * row[5, c] + point[2] * row[4, c] + point[0] * row[6, c]
                    y = row[1, c] - point[2] * row[3, c] + point[0] * row[5, c] + point[1] * row[6, c]
                    slopes[k, t, 0, columns[c]] += share * x
                    slopes[k, t, 1, columns[c]] += share * y
    return ground, slopes
