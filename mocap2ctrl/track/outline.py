"""The evidence of silhouettes as a smooth energy: masks softened by distance transforms, compared pixel by pixel.

Eq. 9 counts pixels, so it is flat wherever no pixel changes. For descent both masks are softened: a pixel at the signed
distance d from the outline (negative inside) counts as 1 / (1 + exp(d / tau)); with a large tau a limb feels a silhouette
that lies far away, with a small one the two agree with Eq. 9's masks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import body_shape
from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry.camera import world_to_camera
from mocap2ctrl.geometry.rasteriser import pinhole_parameters
from mocap2ctrl.track.tree import empty_frames, point_world, pose_frames, wrench_map
from mocap2ctrl.types import Array, Camera, Masks

REACH = 4.0
"""Pixels further from the outline than this many tau are taken as wholly inside or outside."""


class View(NamedTuple):
    """What sees and what is seen.

    Attributes:
        turn, shift: (3, 3) and (3,) world to camera.
        pinhole: (4,) focal lengths and principal point, pixels.
        owner, local, radii: the body's capsules as in `BodyShape`.
    """

    turn: Array
    shift: Array
    pinhole: Array
    owner: np.ndarray
    local: Array
    radii: Array


def view_of(camera: Camera, character: Character) -> View:
    """The arrays of `camera` and of `character`'s shape."""
    shape = body_shape(character)
    return View(
        world_to_camera(camera),
        np.array(camera.translation),
        pinhole_parameters(camera),
        shape.owner,
        np.array(shape.local),
        np.array(shape.radii),
    )


def signed_distances(masks: Masks) -> Array:
    """(T, H, W) distance in pixels of each pixel's centre from the outline of the mask, negative inside."""
    result = np.empty(masks.shape)
    for mask, out in zip(masks.astype(np.uint8), result, strict=True):
        padded = np.pad(mask, 1)  # a mask that touches the border ends there
        inside = cv2.distanceTransform(padded, cv2.DIST_L2, 5)[1:-1, 1:-1]
        outside = cv2.distanceTransform(1 - padded, cv2.DIST_L2, 5)[1:-1, 1:-1]
        out[:] = np.where(mask > 0, 0.5 - inside, outside - 0.5)
    return result


def softened(distances: Array, tau: float) -> Array:
    """(T, H, W) soft masks of signed distances."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(distances / tau, -30.0, 30.0))))


@njit
def outline_equations(tree, view, body, root_position, root_orientation, angles, soft, seen, tau, step, derivatives):  # type: ignore[no-untyped-def]
    """Gauss-Newton's equations of T frames.

    Args:
        tree, view: body and camera.
        body: (4,) factors of `BODY`.
        root_position, root_orientation, angles: (T, 3), (T, 4), (T, J).
        soft: (T, H, W) softened silhouettes.
        seen: (T,) whether a frame has evidence.
        tau: softness, pixels.
        step: only every `step`-th pixel of every `step`-th row is looked at, and counts for the rest.
        derivatives: whether gradients are wanted.

    Returns:
        Energies (T,), gradients (T, D + 4) and matrices (T, D + 4, D + 4) of half the sum of squared differences, with
        respect to the coordinates and the body's factors.
    """
    count, height, width = soft.shape
    coordinates = 6 + len(tree.axis)
    size = coordinates + 4
    energy = np.zeros(count)
    gradient = np.zeros((count, size))
    matrix = np.zeros((count, size, size))
    frames = empty_frames(tree)
    capsules = len(view.radii)
    ends = np.empty((capsules, 2, 3))
    growth = np.empty((capsules, 2, 4, 3))
    pixel = np.empty((capsules, 2, 3))  # x, y, radius in pixels
    depth = np.empty((capsules, 2))
    nearest = np.empty((height, width))
    which = np.empty((height, width), np.int64)
    row = np.empty((8, size))
    columns = np.empty(size, np.int64)
    product = np.empty((8, size))
    wrench = np.empty(8)
    force = wrench[:3]
    point = np.empty(3)
    pulls = np.empty((len(tree.parent), 8))
    stiffness = np.empty((len(tree.parent), 8, 8))
    focal = 0.5 * (view.pinhole[0] + view.pinhole[1])
    margin = REACH * tau
    area = float(step * step)
    for t in range(count):
        if not seen[t]:
            continue
        pose_frames(frames, tree, body, root_position[t], root_orientation[t], angles[t])
        nearest[:] = margin
        pulls[:] = 0.0
        stiffness[:] = 0.0
        left, right, top, bottom = width, -1, height, -1
        behind = False
        for c in range(capsules):
            for e in range(2):
                point_world(ends[c, e], growth[c, e], frames, tree, body, view.owner[c], view.local[c, e])
                x, y, z = view.shift
                for k in range(3):
                    x += view.turn[0, k] * ends[c, e, k]
                    y += view.turn[1, k] * ends[c, e, k]
                    z += view.turn[2, k] * ends[c, e, k]
                behind = behind or not z > 0.2
                depth[c, e] = z
                pixel[c, e, 0] = view.pinhole[0] * x / z + view.pinhole[2]
                pixel[c, e, 1] = view.pinhole[1] * y / z + view.pinhole[3]
                pixel[c, e, 2] = body[0] * focal * view.radii[c] / z
        if behind:
            energy[t] = 1e6
            continue
        for c in range(capsules):
            reach = margin + max(pixel[c, 0, 2], pixel[c, 1, 2])
            x0 = max(0, math.ceil(min(pixel[c, 0, 0], pixel[c, 1, 0]) - reach))
            x1 = min(width - 1, math.floor(max(pixel[c, 0, 0], pixel[c, 1, 0]) + reach))
            y0 = max(0, math.ceil(min(pixel[c, 0, 1], pixel[c, 1, 1]) - reach))
            y1 = min(height - 1, math.floor(max(pixel[c, 0, 1], pixel[c, 1, 1]) + reach))
            x0, y0 = (x0 + step - 1) // step * step, (y0 + step - 1) // step * step
            if x1 < x0 or y1 < y0:
                continue
            left, right, top, bottom = min(left, x0), max(right, x1), min(top, y0), max(bottom, y1)
            ax, ay, ar = pixel[c, 0]
            bx, by, br = pixel[c, 1] - pixel[c, 0]
            inverse = 1.0 / max(bx * bx + by * by, 1e-12)
            for v in range(y0, y1 + 1, step):
                for u in range(x0, x1 + 1, step):
                    px, py = u - ax, v - ay
                    s = min(1.0, max(0.0, (px * bx + py * by) * inverse))
                    dx, dy = px - s * bx, py - s * by
                    limit = nearest[v, u] + ar + s * br
                    squared = dx * dx + dy * dy
                    if limit > 0.0 and squared < limit * limit:
                        nearest[v, u] = math.sqrt(squared) - ar - s * br
                        which[v, u] = c
        for v in range(0, height, step):
            for u in range(0, width, step):
                observed = soft[t, v, u]
                inside = left <= u <= right and top <= v <= bottom and nearest[v, u] < margin
                if not inside:
                    energy[t] += 0.5 * area * observed * observed
                    continue
                distance = nearest[v, u] / tau
                model = 1.0 / (1.0 + math.exp(max(distance, -30.0)))
                difference = model - observed
                energy[t] += 0.5 * area * difference * difference
                slope = -model * (1.0 - model) / tau
                if not derivatives or slope > -2e-3 / tau:
                    continue
                c = which[v, u]
                bx, by, br = pixel[c, 1] - pixel[c, 0]
                px, py = u - pixel[c, 0, 0], v - pixel[c, 0, 1]
                s = min(1.0, max(0.0, (px * bx + py * by) / max(bx * bx + by * by, 1e-12)))
                dx, dy = px - s * bx, py - s * by
                length = math.sqrt(dx * dx + dy * dy) + 1e-9
                nx, ny = dx / length, dy / length
                # The point of the axis that the pixel is nearest to, in space: s runs along the image, depth is not linear there.
                z0, z1 = depth[c, 0], depth[c, 1]
                along = s * z0 / (s * z0 + (1.0 - s) * z1)
                z = z0 + along * (z1 - z0)
                ix, iy = pixel[c, 0, 0] + s * bx, pixel[c, 0, 1] + s * by
                radius = pixel[c, 0, 2] + s * br
                fx, fy = -nx * view.pinhole[0] / z, -ny * view.pinhole[1] / z
                fz = (nx * (ix - view.pinhole[2]) + ny * (iy - view.pinhole[3]) + radius) / z
                for k in range(3):
                    point[k] = ends[c, 0, k] + along * (ends[c, 1, k] - ends[c, 0, k])
                    force[k] = slope * (view.turn[0, k] * fx + view.turn[1, k] * fy + view.turn[2, k] * fz)
                wrench[3] = point[1] * force[2] - point[2] * force[1]
                wrench[4] = point[2] * force[0] - point[0] * force[2]
                wrench[5] = point[0] * force[1] - point[1] * force[0]
                wrench[6] = point[0] * force[0] + point[1] * force[1] + point[2] * force[2]
                wrench[7] = -slope * radius / body[0]
                owner = view.owner[c]
                for i in range(8):
                    weighted = area * wrench[i]
                    pulls[owner, i] += weighted * difference
                    for j in range(i + 1):
                        stiffness[owner, i, j] += weighted * wrench[j]
        if not derivatives:
            continue
        for owner in range(len(tree.parent)):
            used = wrench_map(row, columns, frames, tree, body, owner)
            for k in range(used):
                for i in range(8):
                    gradient[t, columns[k]] += row[i, k] * pulls[owner, i]
                    product[i, k] = 0.0
                    for j in range(8):
                        product[i, k] += stiffness[owner, max(i, j), min(i, j)] * row[j, k]
            for k in range(used):
                for m in range(k + 1):
                    total = 0.0
                    for i in range(8):
                        total += row[i, k] * product[i, m]
                    matrix[t, columns[k], columns[m]] += total
        for i in range(size):
            for j in range(i):
                matrix[t, j, i] = matrix[t, i, j]
    return energy, gradient, matrix
