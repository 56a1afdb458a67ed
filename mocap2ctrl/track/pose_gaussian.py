"""A pose prior as a Gaussian over poses: the principal components with their spreads, and a little spread beyond them.

Probabilistic PCA (Tipping and Bishop 1999): poses outside the subspace are unlikely, not forbidden, so a motion that the
prior has not seen can still be followed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry import rotations
from mocap2ctrl.prior.features import ROOT_ANGLES, root_rotation_vector, to_features
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.types import Array

RESIDUAL_FLOOR = 0.05
"""Least spread of a feature beyond the subspace; about 3 degrees of a joint."""

_STEP = 1e-5
_TURNS = rotations.from_rotation_vector(_STEP * np.concatenate([np.zeros((1, 3)), np.eye(3)]))


@dataclass(frozen=True, eq=False)
class PoseGaussian:
    """The Gaussian.

    Attributes:
        mean: (F,) features.
        precision: (F, F) inverse covariance.
        normaliser: half the logarithm of the covariance's determinant, by which Gaussians can be compared.
    """

    mean: Array
    precision: Array
    normaliser: float

    def energy(self, root_orientation: Array, angles: Array) -> Array:
        """(T,) half the squared Mahalanobis distances of poses."""
        features = to_features(np.concatenate([root_rotation_vector(root_orientation), angles], axis=1))
        difference = features - self.mean
        return np.asarray(0.5 * np.einsum("tf,tf->t", difference @ self.precision, difference))

    def equations(self, root_orientation: Array, angles: Array) -> tuple[Array, Array, Array]:
        """Energies (T,), gradients (T, 3 + J) and Gauss-Newton matrices (T, 3 + J, 3 + J); a world rotation of the root first."""
        vectors, turned = _with_derivatives(root_orientation)
        both = np.concatenate([vectors, angles], axis=1)
        difference = to_features(both) - self.mean
        pulled = difference @ self.precision
        half = both.shape[1]
        sine, cosine = np.sin(both), np.cos(both)
        gradient = cosine * pulled[:, :half] - sine * pulled[:, half:]
        matrix = _angle_matrices(self.precision, sine, cosine)
        root = slice(0, ROOT_ANGLES)
        gradient[:, root] = np.einsum("tij,ti->tj", turned, gradient[:, root])
        matrix[:, root] = turned.transpose(0, 2, 1) @ matrix[:, root]
        matrix[:, :, root] = matrix[:, :, root] @ turned
        return 0.5 * np.einsum("tf,tf->t", pulled, difference), gradient, matrix


@njit
def _angle_matrices(precision, sine, cosine):  # type: ignore[no-untyped-def]
    """(T, A, A) of the features' `precision` (2 A, 2 A) in the angles that have these sines and cosines (T, A)."""
    count, half = sine.shape
    matrix = np.empty((count, half, half))
    for t in range(count):
        for i in range(half):
            c, s = cosine[t, i], sine[t, i]
            by_sine, by_cosine, row = precision[i], precision[half + i], matrix[t, i]
            for j in range(half):
                by_sine_of_j = c * by_sine[j] - s * by_cosine[j]
                by_cosine_of_j = c * by_sine[half + j] - s * by_cosine[half + j]
                row[j] = by_sine_of_j * cosine[t, j] - by_cosine_of_j * sine[t, j]
    return matrix


def _with_derivatives(root_orientation: Array) -> tuple[Array, Array]:
    """(T, 3) the root's rotation vectors without heading, and (T, 3, 3) how they change with small world rotations."""
    vectors = root_rotation_vector(rotations.multiply(_TURNS[:, None], root_orientation))
    return vectors[0], np.asarray((vectors[1:] - vectors[0]) / _STEP).transpose(1, 2, 0)


def pose_gaussian(prior: PosePrior) -> PoseGaussian:
    """The Gaussian of `prior`."""
    size = len(prior.mean)
    explained = float(np.sum(prior.explained))
    total = float(np.sum(prior.sigma**2)) / max(explained, 1e-9)
    left = total * (1.0 - min(explained, 1.0)) / max(size - prior.size, 1)
    residual = max(left, RESIDUAL_FLOOR**2)
    kept = prior.basis * (1.0 / (prior.sigma**2 + residual) - 1.0 / residual)
    precision = np.eye(size) / residual + kept @ prior.basis.T
    return PoseGaussian(np.array(prior.mean), precision, -0.5 * float(np.linalg.slogdet(precision)[1]))
