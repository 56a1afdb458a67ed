"""A character as flat arrays for compiled code: forward kinematics with the derivatives of points on its segments.

One frame has D = 6 + J coordinates: the root's position, a small world rotation of the root, and the hinge angles. The body
has G = 5 more that all frames share: its girth, a factor each on the lengths of legs, arms and trunk, and one on the trunk's
radii.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.compiled import njit
from mocap2ctrl.types import Array

ROOT = 6
"""Coordinates of the root: position, then rotation."""

BODY = ("girth", "legs", "arms", "trunk", "build")
FACTORS = len(BODY)
GIRTH, BUILD = BODY.index("girth"), BODY.index("build")
LIMBS = (("thigh", "shank", "foot", "toes"), ("upper_arm", "forearm", "hand"), ("abdomen", "chest", "head"))
"""Names, or their ends, of the segments whose lengths have one factor."""


Points = tuple[npt.NDArray[np.int64], Array]
"""Segments (N,) and places (N, 3), in the segments' frames, of points on the body."""


class Tree(NamedTuple):
    """Segments and hinges of a character.

    Attributes:
        parent: (S,) index of the segment above, -1 for the root.
        offset: (S, 3) origin in the parent's frame, metres, before lengths are changed.
        limb: (S,) which factor of `BODY` a segment's own length has, 0 for none.
        first_hinge: (S + 1,) hinges `first_hinge[s]` to `first_hinge[s + 1]` move segment s.
        axis: (J, 3) in the frame that the segment's earlier hinges leave.
        chain: (S, L) hinges from the root to each segment, padded with -1.
        lower, upper: (J,) limits, radians.
    """

    parent: np.ndarray
    offset: Array
    limb: np.ndarray
    first_hinge: np.ndarray
    axis: Array
    chain: np.ndarray
    lower: Array
    upper: Array


class Frames(NamedTuple):
    """Where segments and hinges are in one frame, world.

    Attributes:
        position: (S, 3) metres.
        rotation: (S, 3, 3) segment to world.
        axis: (J, 3) of the hinges.
        anchor: (J, 3) a point on each hinge's axis, metres.
        growth: (S, G, 3) how the segments' positions change with the body's factors, metres.
    """

    position: Array
    rotation: Array
    axis: Array
    anchor: Array
    growth: Array


def tree_of(character: Character) -> Tree:
    """The arrays of `character`."""
    counts = [len(segment.hinges) for segment in character.segments]
    first = np.concatenate([[0], np.cumsum(counts)])
    chains: list[list[int]] = []
    for index, segment in enumerate(character.segments):
        above = chains[segment.parent] if segment.parent >= 0 else []
        chains.append([*above, *range(first[index], first[index + 1])])
    length = max(map(len, chains))
    return Tree(
        parent=np.array([segment.parent for segment in character.segments]),
        offset=np.array([segment.offset for segment in character.segments]),
        limb=np.array([_limb(segment.name) for segment in character.segments]),
        first_hinge=first.astype(np.int64),
        axis=np.array([hinge.axis for hinge in character.hinges]),
        chain=np.array([chain + [-1] * (length - len(chain)) for chain in chains]),
        lower=np.array(character.lower_limits),
        upper=np.array(character.upper_limits),
    )


def limb_factors(character: Character, body: Array) -> Array:
    """(S,) factor on the length of each segment, from the body's factors (G,)."""
    limbs = np.array([_limb(segment.name) for segment in character.segments])
    return np.where(limbs > 0, body[limbs], 1.0)


def _limb(name: str) -> int:
    return next((i + 1 for i, ends in enumerate(LIMBS) if name.endswith(ends)), 0)


@njit
def empty_frames(tree):  # type: ignore[no-untyped-def]
    """Frames to be filled by `pose_frames`."""
    segments, hinges = len(tree.parent), len(tree.axis)
    return Frames(
        np.empty((segments, 3)),
        np.empty((segments, 3, 3)),
        np.empty((hinges, 3)),
        np.empty((hinges, 3)),
        np.zeros((segments, FACTORS, 3)),
    )


@njit
def pose_frames(frames, tree, body, root_position, root_orientation, angles):  # type: ignore[no-untyped-def]
    """Fills `frames` for the body's factors (G,), a root position (3,), a root orientation (4,) and hinge angles (J,)."""
    for i in range(3):
        frames.position[0, i] = root_position[i]
    w, x, y, z = root_orientation[0], root_orientation[1], root_orientation[2], root_orientation[3]
    turn = frames.rotation[0]
    turn[0, 0], turn[0, 1], turn[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    turn[1, 0], turn[1, 1], turn[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    turn[2, 0], turn[2, 1], turn[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
    for s in range(1, len(tree.parent)):
        above = tree.parent[s]
        limb = tree.limb[above]
        length = body[limb] if limb > 0 else 1.0
        for g in range(FACTORS):
            for i in range(3):
                frames.growth[s, g, i] = frames.growth[above, g, i]
        for i in range(3):
            shift = 0.0
            for k in range(3):
                shift += frames.rotation[above, i, k] * tree.offset[s, k]
                frames.rotation[s, i, k] = frames.rotation[above, i, k]
            frames.position[s, i] = frames.position[above, i] + length * shift
            if limb > 0:
                frames.growth[s, limb, i] += shift
        for j in range(tree.first_hinge[s], tree.first_hinge[s + 1]):
            for i in range(3):
                frames.anchor[j, i] = frames.position[s, i]
            _turn_about(frames.rotation[s], frames.axis[j], tree.axis[j], angles[j])


@njit
def _turn_about(rotation, world_axis, axis, angle):  # type: ignore[no-untyped-def]
    """Multiplies `rotation` (3, 3) from the right by a turn about `axis`, and writes the axis in the world."""
    c, s = np.cos(angle), np.sin(angle)
    x, y, z = axis[0], axis[1], axis[2]
    v = 1.0 - c
    for i in range(3):
        a, b, d = rotation[i, 0], rotation[i, 1], rotation[i, 2]
        world_axis[i] = a * x + b * y + d * z
        rotation[i, 0] = a * (c + x * x * v) + b * (y * x * v + z * s) + d * (z * x * v - y * s)
        rotation[i, 1] = a * (x * y * v - z * s) + b * (c + y * y * v) + d * (z * y * v + x * s)
        rotation[i, 2] = a * (x * z * v + y * s) + b * (y * z * v - x * s) + d * (c + z * z * v)


@njit
def point_world(point, frames, tree, body, segment, local):  # type: ignore[no-untyped-def]
    """Writes the world position (3,) of a point `local` (3,) of a segment."""
    limb = tree.limb[segment]
    length = body[limb] if limb > 0 else 1.0
    for i in range(3):
        shift = 0.0
        for k in range(3):
            shift += frames.rotation[segment, i, k] * local[k]
        point[i] = frames.position[segment, i] + length * shift


@njit
def wrench_map(row, columns, frames, tree, body, segment):  # type: ignore[no-untyped-def]
    """How forces on a segment pull at the coordinates and at the body's factors.

    A force f at a world point p of the segment is the 8 numbers (f, p x f, p . f, r), where r is what it would do to the
    radius there; its pull at every coordinate is linear in them, so forces of one segment (on radii: of one capsule) can be
    summed before they are mapped.

    Args:
        row: (8, D + G) the map's columns that are not zero, written.
        columns: (D + G,) their coordinates, ascending, written.
        frames, tree, body: of the frame.
        segment: the segment.

    Returns:
        How many columns were written.
    """
    row[:] = 0.0
    root_rows(row, frames)
    for i in range(6):
        columns[i] = i
    count = 6
    for j in tree.chain[segment]:
        if j < 0:
            break
        hinge_row(row[:, count], frames, j)
        columns[count] = 6 + j
        count += 1
    body_rows(row[:, count:], frames, tree, body, segment)
    for g in range(FACTORS):
        columns[count + g] = 6 + len(tree.axis) + g
    return count + FACTORS


@njit
def root_rows(rows, frames):  # type: ignore[no-untyped-def]
    """Writes the columns (8, 6) of the root's position and rotation, as of `wrench_map`; their zeros are there."""
    origin = frames.position[0]
    for i in range(3):
        rows[i, i] = 1.0
        rows[3 + i, 3 + i] = 1.0
    rows[1, 3], rows[2, 3] = origin[2], -origin[1]  # (p - o) x f = p x f - o x f
    rows[0, 4], rows[2, 4] = -origin[2], origin[0]
    rows[0, 5], rows[1, 5] = origin[1], -origin[0]


@njit
def hinge_row(row, frames, j):  # type: ignore[no-untyped-def]
    """Writes the column (8,) of hinge j, as of `wrench_map`, but for its zeros."""
    a, o = frames.axis[j], frames.anchor[j]
    row[0] = -(a[1] * o[2] - a[2] * o[1])  # a . ((p - o) x f) = a . (p x f) - (a x o) . f
    row[1] = -(a[2] * o[0] - a[0] * o[2])
    row[2] = -(a[0] * o[1] - a[1] * o[0])
    row[3], row[4], row[5] = a[0], a[1], a[2]


@njit
def body_rows(rows, frames, tree, body, segment):  # type: ignore[no-untyped-def]
    """Writes the columns (8, G) of the body's factors, as of `wrench_map`, but for their zeros; radii are left out."""
    limb = tree.limb[segment]
    for g in range(FACTORS):
        for i in range(3):
            rows[i, g] = frames.growth[segment, g, i]
        if g == limb and limb > 0:  # its own length: (p - position) / length
            for i in range(3):
                rows[i, g] -= frames.position[segment, i] / body[limb]
            rows[6, g] = 1.0 / body[limb]


@njit
def points_with_jacobian(tree, body, root_position, root_orientation, angles, segment, local, derivatives):  # type: ignore[no-untyped-def]
    """World points (T, N, 3) of N points `local` (N, 3) on `segment` (N,) in T frames, and their derivatives (T, N, 3, D + G).

    Without `derivatives` they stay zero, in an array of no frames.
    """
    count, points = len(root_position), len(segment)
    size = 6 + len(tree.axis)
    world = np.empty((count, points, 3))
    jacobian = np.zeros((count if derivatives else 0, points, 3, size + FACTORS))
    frames = empty_frames(tree)
    row = np.empty((8, size + FACTORS))
    columns = np.empty(size + FACTORS, np.int64)
    used = 0
    for t in range(count):
        pose_frames(frames, tree, body, root_position[t], root_orientation[t], angles[t])
        for n in range(points):
            point_world(world[t, n], frames, tree, body, segment[n], local[n])
            if not derivatives:
                continue
            if n == 0 or segment[n] != segment[n - 1]:
                used = wrench_map(row, columns, frames, tree, body, segment[n])
            x, y, z = world[t, n]
            for k in range(used):
                moment_x, moment_y, moment_z, stretch = row[3, k], row[4, k], row[5, k], row[6, k]
                jacobian[t, n, 0, columns[k]] = row[0, k] - y * moment_z + z * moment_y + x * stretch
                jacobian[t, n, 1, columns[k]] = row[1, k] - z * moment_x + x * moment_z + y * stretch
                jacobian[t, n, 2, columns[k]] = row[2, k] - x * moment_y + y * moment_x + z * stretch
    return world, jacobian
