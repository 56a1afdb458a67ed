"""The evidence of silhouettes as a smooth energy: masks softened by distance transforms, compared pixel by pixel.

Eq. 9 counts pixels, so it is flat wherever no pixel changes. For descent both masks are softened: a pixel at the signed
distance d from the outline (negative inside) counts as 1 / (1 + exp(d / tau)); with a large tau a limb feels a silhouette
that lies far away, with a small one the two agree with Eq. 9's masks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mocap2ctrl.compiled import add_scaled_8, njit
from mocap2ctrl.track.tree import (
    BUILD,
    FACTORS,
    GIRTH,
    body_rows,
    empty_frames,
    hinge_row,
    point_world,
    pose_frames,
    root_rows,
)
from mocap2ctrl.types import Array

REACH = 4.0
"""Pixels further from the outline than this many tau are taken as wholly outside."""

LEAST_SLOPE = 2e-3
"""Of the soft step; flatter pixels exert no force."""

NEAREST_M, BEHIND = 0.2, 1e6
"""A body nearer to the camera's plane than this has no picture; its energy."""

TINY = 1e-12

LANES = 4
"""Pixels of a row that are drawn at once: the loop over so many has no branch, and compiles to vectors."""


def softened(distances: Array, tau: float) -> Array:
    """(T, H, W) soft masks of signed distances."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(distances / tau, -30.0, 30.0))))


class Picture(NamedTuple):
    """A body's image in one frame: working memory. Only each `step`-th pixel of each `step`-th row is there.

    Attributes:
        ends: (C, 2, 3) world ends of the capsules.
        circle, depth: (C, 2, 3) the ends' images, x, y and radius in pixels; (C, 2) their depths, metres.
        taper: (C, 4) of `_write_taper`.
        across: (W,) the columns' places, pixels; more than the image has, to a multiple of `LANES`.
        nearest, capsule: (H, W) signed distance of each pixel from the outline, pixels, and the capsule it is nearest to.
        pulls, stiffness: (C, 8) and (C, 8, 8) sums of forces on capsules, and of their products, as `wrench_map` takes them;
            of the products only the lower triangles count.
    """

    ends: Array
    circle: Array
    depth: Array
    taper: Array
    across: Array
    nearest: Array
    capsule: np.ndarray
    pulls: Array
    stiffness: Array


@njit
def _empty_picture(capsules, height, width, step):  # type: ignore[no-untyped-def]
    rows, columns = (height + step - 1) // step, (width + step - 1) // step
    columns = (columns + LANES - 1) // LANES * LANES
    return Picture(
        np.empty((capsules, 2, 3)),
        np.empty((capsules, 2, 3)),
        np.empty((capsules, 2)),
        np.empty((capsules, 4)),
        np.arange(columns) * float(step),
        np.empty((rows, columns)),
        np.zeros((rows, columns), np.int64),
        np.empty((capsules, 8)),
        np.empty((capsules, 8, 8)),
    )


@njit
def outline_equations(  # type: ignore[no-untyped-def]
    tree, view, body, root_position, root_orientation, angles, shifts, soft, seen, tau, step, derivatives
):
    """Gauss-Newton's equations of T frames.

    Args:
        tree, view: body and camera; where the camera is `shifts` say.
        body: (G,) factors of `BODY`.
        root_position, root_orientation, angles: (T, 3), (T, 4), (T, J).
        shifts: (T, 3) the camera's translation in each frame.
        soft: (T, H, W) softened silhouettes, or (1, H, W) the one of all frames.
        seen: (T,) whether a frame has evidence.
        tau: softness, pixels.
        step: only every `step`-th pixel of every `step`-th row is looked at, and counts for the rest.
        derivatives: whether gradients are wanted.

    Returns:
        Energies (T,), gradients (T, D + G) and matrices (T, D + G, D + G) of half the sum of squared differences, with
        respect to the coordinates and the body's factors; of no frames without derivatives.
    """
    count, (_, height, width) = len(root_position), soft.shape
    size = 6 + len(tree.axis) + FACTORS
    energy = np.zeros(count)
    wanted = count if derivatives else 0
    gradient = np.zeros((wanted, size))
    matrix = np.zeros((wanted, size, size))
    frames = empty_frames(tree)
    picture = _empty_picture(len(view.radii), height, width, step)
    for t in range(count):
        if not seen[t]:
            continue
        pose_frames(frames, tree, body, root_position[t], root_orientation[t], angles[t])
        if not _take_picture(picture, frames, tree, view, body, shifts[t]):
            energy[t] = BEHIND
            continue
        picture.nearest[:] = REACH * tau
        for c in range(len(view.radii)):
            _draw_distance(picture, c, REACH * tau, height, width, step)
        picture.pulls[:] = 0.0
        picture.stiffness[:] = 0.0
        energy[t] = _compare(picture, view, body, soft[t if len(soft) > 1 else 0], tau, step, derivatives)
        if derivatives:
            _map_forces(gradient[t], matrix[t], picture, frames, tree, view, body)
    return energy, gradient, matrix


@njit
def _take_picture(picture, frames, tree, view, body, shift):  # type: ignore[no-untyped-def]
    """Projects all capsules; False if one of them is not before the camera."""
    focal = 0.5 * (view.pinhole[0] + view.pinhole[1])
    for c in range(len(view.radii)):
        radius = _radius(view, body, c)
        for e in range(2):
            end, circle = picture.ends[c, e], picture.circle[c, e]
            point_world(end, frames, tree, body, view.owner[c], view.local[c, e])
            x, y, z = shift
            for k in range(3):
                x += view.turn[0, k] * end[k]
                y += view.turn[1, k] * end[k]
                z += view.turn[2, k] * end[k]
            if not z > NEAREST_M:
                return False
            picture.depth[c, e] = z
            circle[0] = view.pinhole[0] * x / z + view.pinhole[2]
            circle[1] = view.pinhole[1] * y / z + view.pinhole[3]
            circle[2] = focal * radius / z
        _write_taper(picture.taper[c], picture.circle[c])
    return True


@njit
def _radius(view, body, c):  # type: ignore[no-untyped-def]
    """Metres, of capsule `c`."""
    return view.radii[c] + view.worn[c] * (body[GIRTH] - 1.0) + view.trunk[c] * (body[BUILD] - 1.0)


@njit
def _write_taper(taper, circle):  # type: ignore[no-untyped-def]
    """Writes to `taper` (4,) where the circles between two end circles (2, 3) come nearest to a pixel.

    The circles' centres move by (bx, by) and their radii by br as s goes from 0 to 1. For a pixel at p from the first centre
    it is s = first + p . along + lean |p x along|: the distance less the radius is least there.
    """
    bx, by, br = circle[1, 0] - circle[0, 0], circle[1, 1] - circle[0, 1], circle[1, 2] - circle[0, 2]
    squared = bx * bx + by * by
    taper[:] = 0.0
    if squared <= br * br + TINY:  # one circle holds the other
        taper[0] = 1.0 if br > 0.0 else 0.0
    else:
        taper[1], taper[2], taper[3] = bx / squared, by / squared, br / math.sqrt(squared - br * br)


@njit
def _draw_distance(picture, c, margin, height, width, step):  # type: ignore[no-untyped-def]
    """Lowers the distances of the pixels within `margin` of capsule `c` to theirs from it."""
    circle, taper = picture.circle[c], picture.taper[c]
    ax, ay, ar = circle[0, 0], circle[0, 1], circle[0, 2]
    bx, by, br = circle[1, 0] - ax, circle[1, 1] - ay, circle[1, 2] - ar
    reach = margin + max(ar, ar + br)
    x0, x1 = max(0, math.ceil(min(ax, ax + bx) - reach)), min(width - 1, math.floor(max(ax, ax + bx) + reach))
    y0, y1 = max(0, math.ceil(min(ay, ay + by) - reach)), min(height - 1, math.floor(max(ay, ay + by) + reach))
    if x0 > x1:
        return
    first, along_x, along_y, lean = taper[0], taper[1], taper[2], taper[3]
    begin, end = x0 // step // LANES * LANES, (x1 // step // LANES + 1) * LANES
    across = picture.across[begin:end]
    for row in range((y0 + step - 1) // step, y1 // step + 1):
        py = row * step - ay
        nearest, capsule = picture.nearest[row, begin:end], picture.capsule[row, begin:end]
        for k in range(len(across)):
            px = across[k] - ax
            s = first + px * along_x + py * along_y + lean * abs(px * along_y - py * along_x)
            s = min(1.0, max(0.0, s))
            dx, dy = px - s * bx, py - s * by
            radius = ar + s * br
            limit = nearest[k] + radius
            squared = dx * dx + dy * dy
            nearer = (limit > 0.0) & (squared < limit * limit)
            nearest[k] = math.sqrt(squared) - radius if nearer else nearest[k]
            capsule[k] = c if nearer else capsule[k]


@njit
def _compare(picture, view, body, soft, tau, step, derivatives):  # type: ignore[no-untyped-def]
    """Half the sum of squared differences to a soft silhouette (H, W); adds up the forces that it exerts on capsules."""
    height, width = soft.shape
    area = float(step * step)
    energy = 0.0
    wrench = np.empty(8)
    for v in range(0, height, step):
        nearest, capsule = picture.nearest[v // step], picture.capsule[v // step]
        for u in range(0, width, step):
            distance = nearest[u // step] / tau
            model = 1.0 / (1.0 + math.exp(max(distance, -30.0))) if distance < REACH else 0.0
            difference = model - soft[v, u]
            energy += 0.5 * area * difference * difference
            slope = model * (1.0 - model)
            if derivatives and slope > LEAST_SLOPE:
                c = capsule[u // step]
                _pixel_wrench(wrench, picture, view, body, c, u, v, slope / tau)
                _add_wrench(picture.pulls[c], picture.stiffness[c], wrench, area, difference)
    return energy


@njit
def _pixel_wrench(wrench, picture, view, body, c, u, v, slope):  # type: ignore[no-untyped-def]
    """How the soft mask at pixel (u, v) changes when capsule `c` is moved, as `wrench_map` takes it."""
    circle, ends, taper = picture.circle[c], picture.ends[c], picture.taper[c]
    ax, ay = circle[0, 0], circle[0, 1]
    bx, by = circle[1, 0] - ax, circle[1, 1] - ay
    br = circle[1, 2] - circle[0, 2]
    first, along_x, along_y, lean = taper[0], taper[1], taper[2], taper[3]
    px, py = u - ax, v - ay
    s = first + px * along_x + py * along_y + lean * abs(px * along_y - py * along_x)
    s = min(1.0, max(0.0, s))
    x, y, radius = ax + s * bx, ay + s * by, circle[0, 2] + s * br
    length = math.hypot(u - x, v - y) + 1e-9
    nx, ny = (u - x) / length, (v - y) / length
    # s runs along the image; along the capsule in space, depth makes it another fraction.
    z0, z1 = picture.depth[c, 0], picture.depth[c, 1]
    along = s * z0 / (s * z0 + (1.0 - s) * z1)
    z = z0 + along * (z1 - z0)
    fx, fy = slope * nx * view.pinhole[0] / z, slope * ny * view.pinhole[1] / z
    fz = -slope * (nx * (x - view.pinhole[2]) + ny * (y - view.pinhole[3]) + radius) / z
    for k in range(3):
        wrench[k] = view.turn[0, k] * fx + view.turn[1, k] * fy + view.turn[2, k] * fz
        wrench[3 + k] = ends[0, k] + along * (ends[1, k] - ends[0, k])
    px, py, pz = wrench[3], wrench[4], wrench[5]
    wrench[6] = px * wrench[0] + py * wrench[1] + pz * wrench[2]
    wrench[3] = py * wrench[2] - pz * wrench[1]
    wrench[4] = pz * wrench[0] - px * wrench[2]
    wrench[5] = px * wrench[1] - py * wrench[0]
    wrench[7] = slope * radius / _radius(view, body, c)


@njit
def _add_wrench(pull, stiffness, wrench, area, difference):  # type: ignore[no-untyped-def]
    """Adds a pixel's wrench to its capsule's pull (8,), and its products to the capsule's stiffness (8, 8)."""
    row, source = stiffness.ctypes.data, wrench.ctypes.data
    for i in range(8):
        weighted = area * wrench[i]
        pull[i] += weighted * difference
        add_scaled_8(row + i * 64, weighted, source)  # a whole row at once: what is above the diagonal is never read


@njit
def _map_forces(gradient, matrix, picture, frames, tree, view, body):  # type: ignore[no-untyped-def]
    """Adds the capsules' forces to a gradient (D + G,) and a matrix (D + G, D + G).

    A hinge feels the forces on all that it carries, so these are summed from the limbs' ends inwards, and each pair of
    coordinates is looked at once (the composite bodies of Featherstone 2008, §6.2).
    """
    size = len(gradient)
    first = size - FACTORS
    pulls, stiffness, mapped = _map_body(gradient, matrix, picture, frames, tree, view, body)
    for s in range(len(tree.parent) - 1, 0, -1):
        above = tree.parent[s]
        pulls[above] += pulls[s]
        stiffness[above] += stiffness[s]
        mapped[above] += mapped[s]
    rows = np.zeros((8, first))
    product = np.empty(6)
    root_rows(rows, frames)
    for j in range(len(tree.axis)):
        hinge_row(rows[:, 6 + j], frames, j)
    for s in range(len(tree.parent)):
        if s == 0:
            for k in range(6):
                _map_coordinate(gradient, matrix, k, rows, product, pulls[s], stiffness[s], mapped[s], tree.chain[s])
        for k in range(6 + tree.first_hinge[s], 6 + tree.first_hinge[s + 1]):
            _map_coordinate(gradient, matrix, k, rows, product, pulls[s], stiffness[s], mapped[s], tree.chain[s])
    for i in range(size):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@njit
def _map_coordinate(gradient, matrix, k, rows, product, pull, stiffness, mapped, chain):  # type: ignore[no-untyped-def]
    """Adds the forces on all that coordinate k, of a segment, carries: against itself, those before it, and the body's factors."""
    first = len(gradient) - FACTORS
    product[:] = 0.0
    for i in range(6):
        gradient[k] += rows[i, k] * pull[i]
        for g in range(FACTORS):
            matrix[first + g, k] += rows[i, k] * mapped[i, g]
        for j in range(6):
            product[i] += stiffness[max(i, j), min(i, j)] * rows[j, k]
    for m in range(min(6, k + 1)):
        for i in range(6):
            matrix[k, m] += rows[i, m] * product[i]
    for j in chain:
        if j < 0 or 6 + j > k:
            break
        for i in range(6):
            matrix[k, 6 + j] += rows[i, 6 + j] * product[i]


@njit
def _map_body(gradient, matrix, picture, frames, tree, view, body):  # type: ignore[no-untyped-def]
    """Adds what forces do to the body's factors.

    Returns:
        The forces on segments (S, 8), their stiffness (S, 8, 8), and that against the body's factors (S, 8, G).
    """
    first = len(gradient) - FACTORS
    rows = np.empty((8, FACTORS))
    pulls = np.zeros((len(tree.parent), 8))
    stiffness = np.zeros((len(tree.parent), 8, 8))
    mapped = np.zeros((len(tree.parent), 8, FACTORS))
    own = np.empty((8, FACTORS))
    for c in range(len(view.owner)):
        s = view.owner[c]
        rows[:] = 0.0
        own[:] = 0.0
        body_rows(rows, frames, tree, body, s)
        rows[7, GIRTH], rows[7, BUILD] = view.worn[c], view.trunk[c]
        for g in range(FACTORS):
            for i in range(8):
                gradient[first + g] += rows[i, g] * picture.pulls[c, i]
            for j in range(8):
                if rows[j, g] != 0.0:
                    for i in range(8):
                        own[i, g] += picture.stiffness[c, max(i, j), min(i, j)] * rows[j, g]
            for h in range(g + 1):
                for i in range(8):
                    matrix[first + g, first + h] += rows[i, h] * own[i, g]
        pulls[s] += picture.pulls[c]
        stiffness[s] += picture.stiffness[c]
        mapped[s] += own
    return pulls, stiffness, mapped
