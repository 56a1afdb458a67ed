"""Capsules to masks: a capsule's image is the hull of the circles that its two end spheres make, filled row by row."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry.camera import world_to_camera
from mocap2ctrl.types import Array, Camera, Masks

NEAREST_M = 0.05
"""A capsule with an end nearer to the camera's plane than this is not drawn."""


def rasterise(ends: npt.ArrayLike, radii: npt.ArrayLike, camera: Camera) -> Masks:
    """(N, H, W) masks of N bodies.

    Args:
        ends: (N, C, 2, 3) world positions of the capsules' ends, metres.
        radii: (C,) metres.
        camera: an ideal pinhole.
    """
    ends = np.ascontiguousarray(ends, float)
    width, height = camera.size
    masks = np.zeros((len(ends), height, width), np.uint8)
    turn, shift = world_to_camera(camera), np.array(camera.translation)
    pinhole = pinhole_parameters(camera)
    for frame, mask in zip(ends, masks, strict=True):
        fill_capsules(mask, frame, np.asarray(radii, float), turn, shift, pinhole)
    return masks.astype(bool)


def pinhole_parameters(camera: Camera) -> Array:
    """(4,) focal lengths and principal point in x and y, pixels: what the compiled functions take."""
    m = camera.matrix
    return np.array([m[0, 0], m[1, 1], m[0, 2], m[1, 2]])


@njit
def fill_capsules(mask, ends, radii, turn, shift, pinhole):  # type: ignore[no-untyped-def]
    """Sets the pixels of `mask` (H, W) uint8 whose centres the capsules cover to 1.

    Args:
        mask: changed in place.
        ends: (C, 2, 3) world.
        radii: (C,).
        turn, shift: (3, 3) and (3,) world to camera.
        pinhole: (4,) as `pinhole_parameters` gives them.

    Returns:
        First row, last row + 1, first column and last column + 1 of what was set; nothing was if they are empty.
    """
    circle = np.empty((2, 3))
    top, bottom, left, right = mask.shape[0], 0, mask.shape[1], 0
    for c in range(len(radii)):
        visible = True
        for e in range(2):
            visible = visible and _project_sphere(circle[e], ends[c, e], radii[c], turn, shift, pinhole)
        if visible:
            first, end, low, high = _fill_hull(mask, circle)
            top, bottom, left, right = min(top, first), max(bottom, end), min(left, low), max(right, high)
    return top, bottom, left, right


@njit
def _project_sphere(circle, centre, radius, turn, shift, pinhole):  # type: ignore[no-untyped-def]
    """Writes centre and radius in pixels of a sphere's image into `circle` (3,); False where it is not before the camera."""
    z = turn[2, 0] * centre[0] + turn[2, 1] * centre[1] + turn[2, 2] * centre[2] + shift[2]
    if not z > NEAREST_M:
        return False
    x = turn[0, 0] * centre[0] + turn[0, 1] * centre[1] + turn[0, 2] * centre[2] + shift[0]
    y = turn[1, 0] * centre[0] + turn[1, 1] * centre[1] + turn[1, 2] * centre[2] + shift[1]
    circle[0] = pinhole[0] * x / z + pinhole[2]
    circle[1] = pinhole[1] * y / z + pinhole[3]
    circle[2] = 0.5 * (pinhole[0] + pinhole[1]) * radius / z
    return True


@njit
def _fill_hull(mask, circle):  # type: ignore[no-untyped-def]
    """Fills the convex hull of two circles (2, 3); first row, last row + 1, first column, last column + 1 of it."""
    height, width = mask.shape
    left, right = width, 0
    x1, y1, r1 = circle[0, 0], circle[0, 1], circle[0, 2]
    x2, y2, r2 = circle[1, 0], circle[1, 1], circle[1, 2]
    length = math.hypot(x2 - x1, y2 - y1)
    has_sides = length > abs(r1 - r2) + 1e-9
    tangent = np.empty((2, 4))
    if has_sides:
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        sine = (r1 - r2) / length
        cosine = math.sqrt(1.0 - sine * sine)
        for side in range(2):
            sign = 2.0 * side - 1.0
            nx, ny = ux * sine - sign * uy * cosine, uy * sine + sign * ux * cosine
            tangent[side, 0], tangent[side, 1] = x1 + r1 * nx, y1 + r1 * ny
            tangent[side, 2], tangent[side, 3] = x2 + r2 * nx, y2 + r2 * ny
    top = max(0, math.ceil(min(y1 - r1, y2 - r2)))
    bottom = min(height - 1, math.floor(max(y1 + r1, y2 + r2)))
    for row in range(top, bottom + 1):
        low, high = math.inf, -math.inf
        for e in range(2):
            across = circle[e, 2] ** 2 - (row - circle[e, 1]) ** 2
            if across >= 0.0:
                half = math.sqrt(across)
                low, high = min(low, circle[e, 0] - half), max(high, circle[e, 0] + half)
        if has_sides:
            for side in range(2):
                ya, yb = tangent[side, 1], tangent[side, 3]
                if (ya <= row) != (yb <= row):
                    x = tangent[side, 0] + (row - ya) / (yb - ya) * (tangent[side, 2] - tangent[side, 0])
                    low, high = min(low, x), max(high, x)
        if high >= low and high >= 0.0 and low <= width - 1.0:
            first, end = max(0, math.ceil(low)), min(width - 1, math.floor(high)) + 1
            mask[row, first:end] = 1
            left, right = min(left, first), max(right, end)
    return top, bottom + 1, left, right
