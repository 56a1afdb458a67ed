"""Rotations of single vectors and quaternions for compiled loops, written to the caller's arrays; wxyz as everywhere."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.compiled import njit


@njit
def rotate(q, v, out):  # type: ignore[no-untyped-def]
    """Writes the vector `v` (3,), rotated by the quaternion `q` (4,), to `out`."""
    tx = 2.0 * (q[2] * v[2] - q[3] * v[1])
    ty = 2.0 * (q[3] * v[0] - q[1] * v[2])
    tz = 2.0 * (q[1] * v[1] - q[2] * v[0])
    out[0] = v[0] + q[0] * tx + q[2] * tz - q[3] * ty
    out[1] = v[1] + q[0] * ty + q[3] * tx - q[1] * tz
    out[2] = v[2] + q[0] * tz + q[1] * ty - q[2] * tx


@njit
def multiply(a, b, out):  # type: ignore[no-untyped-def]
    """Writes the product of the quaternions `a` and `b` (4,) to `out`, which is neither of them."""
    out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
    out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]
    out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]


@njit
def axis_quaternion(axis, angle, out):  # type: ignore[no-untyped-def]
    """Writes the quaternion that turns by `angle` about the unit vector `axis` (3,) to `out`."""
    s = np.sin(0.5 * angle)
    out[0] = np.cos(0.5 * angle)
    for k in range(3):
        out[1 + k] = s * axis[k]


@njit
def rotation_difference(q, target, out):  # type: ignore[no-untyped-def]
    """Writes log(q target^-1), the world rotation vector (3,) from `target` to `q`, to `out`."""
    inverse = np.empty(4)
    inverse[0] = target[0]
    for k in range(1, 4):
        inverse[k] = -target[k]
    d = np.empty(4)
    multiply(q, inverse, d)
    sign = 1.0 if d[0] >= 0.0 else -1.0
    sine = np.sqrt(d[1] * d[1] + d[2] * d[2] + d[3] * d[3])
    scale = 2.0 * np.arctan2(sine, sign * d[0]) / sine if sine > 1e-12 else 2.0
    for k in range(3):
        out[k] = sign * scale * d[1 + k]
