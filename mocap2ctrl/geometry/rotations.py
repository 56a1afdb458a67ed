"""Quaternions (w, x, y, z; active; right-handed), rotation vectors and matrices, over leading batch dimensions.

`scipy.spatial.transform.Rotation` does the conversions whose branches matter; what is here is what it lacks: scalar-first
order, batches of any shape, and continuity in time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

IDENTITY_QUATERNION: Array = np.array([1.0, 0.0, 0.0, 0.0])
IDENTITY_QUATERNION.setflags(write=False)


def multiply(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """Hamilton product of quaternions (..., 4): first rotate by `b`, then by `a`."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: npt.ArrayLike) -> Array:
    """Inverse of unit quaternions (..., 4)."""
    return np.asarray(np.asarray(q, float) * np.array([1.0, -1.0, -1.0, -1.0]))


def normalise(q: npt.ArrayLike) -> Array:
    """Quaternions (..., 4) scaled to unit length."""
    q = np.asarray(q, float)
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))


def unit(vectors: Array) -> Array:
    """Vectors (..., 3) at length 1; zero stays zero."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


def rotate(q: npt.ArrayLike, v: npt.ArrayLike) -> Array:
    """Vectors (..., 3) rotated by unit quaternions (..., 4)."""
    q, v = np.asarray(q, float), np.asarray(v, float)
    u = q[..., 1:]
    t = 2.0 * np.cross(u, v)
    return np.asarray(v + q[..., :1] * t + np.cross(u, t))


def from_rotation_vector(r: npt.ArrayLike) -> Array:
    """Unit quaternions (..., 4) of rotation vectors (..., 3), in radians; the exponential map."""
    r = np.asarray(r, float)
    angle = np.linalg.norm(r, axis=-1, keepdims=True)
    half_sinc = 0.5 * np.sinc(angle / (2.0 * np.pi))
    return np.concatenate([np.cos(0.5 * angle), half_sinc * r], axis=-1)


def to_rotation_vector(q: npt.ArrayLike) -> Array:
    """Rotation vectors (..., 3) of unit quaternions (..., 4), length at most pi; the logarithm."""
    q = np.asarray(q, float)
    q = np.where(q[..., :1] < 0.0, -q, q)
    sine = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, q[..., :1])
    scale = np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)
    return np.asarray(scale * q[..., 1:])


def to_matrix(q: npt.ArrayLike) -> Array:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(q, float), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(m: npt.ArrayLike) -> Array:
    """Unit quaternions (..., 4) of rotation matrices (..., 3, 3), with w >= 0."""
    from scipy.spatial.transform import Rotation

    m = np.asarray(m, float)
    flat = Rotation.from_matrix(m.reshape(-1, 3, 3)).as_quat()[:, [3, 0, 1, 2]]
    flat = np.where(flat[:, :1] < 0.0, -flat, flat)
    return np.asarray(flat.reshape(*m.shape[:-2], 4))


def about_axis(axis: npt.ArrayLike, angle: npt.ArrayLike) -> Array:
    """Unit quaternions (..., 4) turning by `angle` (...) radians about the unit vector `axis` (3,)."""
    half = 0.5 * np.asarray(angle, float)[..., None]
    return np.concatenate([np.cos(half), np.sin(half) * np.asarray(axis, float)], axis=-1)


def slerp(a: npt.ArrayLike, b: npt.ArrayLike, t: npt.ArrayLike) -> Array:
    """Quaternions (..., 4) at fraction `t` (...) of the shorter way from `a` to `b`."""
    a = np.asarray(a, float)
    step = to_rotation_vector(multiply(b, conjugate(a)))
    return multiply(from_rotation_vector(np.asarray(t, float)[..., None] * step), a)


def continuous(q: npt.ArrayLike) -> Array:
    """Quaternions (T, 4) with signs chosen so that neighbours in time lie in the same half space."""
    q = np.asarray(q, float)
    flips = np.where(np.sum(q[1:] * q[:-1], axis=-1) < 0.0, -1.0, 1.0)
    return np.concatenate([q[:1], q[1:] * np.cumprod(flips)[:, None]], axis=0)


def unwrapped_rotation_vectors(q: npt.ArrayLike) -> Array:
    """Rotation vectors (T, 3) of quaternions (T, 4), continuous in time, so their length may exceed pi."""
    vectors = to_rotation_vector(q)
    for t in range(1, len(vectors)):
        angle = np.linalg.norm(vectors[t])
        source, length = (vectors[t - 1], np.linalg.norm(vectors[t - 1])) if angle < 1e-9 else (vectors[t], angle)
        axis = source / max(float(length), 1e-9)
        turns = np.round((vectors[t - 1] @ axis - angle) / (2.0 * np.pi))
        vectors[t] = axis * (angle + 2.0 * np.pi * turns)
    return vectors


def angular_velocity_world(q: npt.ArrayLike, dt: float) -> Array:
    """World angular velocity (T, 3) in rad/s of orientations (T, 4) sampled every `dt` seconds; central differences."""
    q = np.asarray(q, float)
    if len(q) < 2:
        return np.zeros((len(q), 3))
    forward = to_rotation_vector(multiply(q[1:], conjugate(q[:-1]))) / dt
    padded = np.concatenate([forward[:1], forward, forward[-1:]])
    return np.asarray(0.5 * (padded[1:] + padded[:-1]))


def heading(q: npt.ArrayLike) -> Array:
    """Yaw (...) in radians about world z of orientations (..., 4): the swing-twist decomposition's twist angle."""
    q = np.asarray(q, float)
    return np.asarray(2.0 * np.arctan2(q[..., 3], q[..., 0]))


def yaw(angle: npt.ArrayLike) -> Array:
    """Quaternions (..., 4) that turn by `angle` radians about world z."""
    return about_axis((0.0, 0.0, 1.0), angle)
