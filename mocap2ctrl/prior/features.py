"""A pose as a vector for PCA: 3 root angles in the heading frame and the J hinge angles, each as sine and cosine.

The root's position and heading are left out, so that a prior does not care where or which way somebody goes (Vondrak
§4.1.2). The 3 angles are the rotation vector that is left when the heading is taken off.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, MotionClip

ROOT_ANGLES = 3
_TURN = 2.0 * np.pi


def root_rotation_vector(root_orientation: npt.ArrayLike) -> Array:
    """Rotation vector (..., 3) in radians of world orientations (..., 4), their heading taken off."""
    q = np.asarray(root_orientation, dtype=float)
    return rotations.to_rotation_vector(rotations.multiply(rotations.yaw(-rotations.heading(q)), q))


def pose_angles(clip: MotionClip) -> Array:
    """(T, 3 + J) radians: what a prior encodes of a clip."""
    return np.concatenate([root_rotation_vector(clip.root_orientation), clip.angles], axis=1)


def to_features(angles: npt.ArrayLike) -> Array:
    """(..., 2 A) sines, then cosines, of angles (..., A)."""
    angles = np.asarray(angles, dtype=float)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def from_features(features: Array, centre: Array) -> Array:
    """Angles (..., A) of features (..., 2 A), each within half a turn of `centre` (A,); (sin, cos) of any length."""
    half = features.shape[-1] // 2
    angles = np.arctan2(features[..., :half], features[..., half:])
    return np.asarray(angles + _TURN * np.round((centre - angles) / _TURN))
