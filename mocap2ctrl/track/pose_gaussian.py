"""A pose prior as a Gaussian over poses: the principal components with their spreads, and a little spread beyond them.

Probabilistic PCA (Tipping and Bishop 1999): poses outside the subspace are unlikely, not forbidden, so a motion that the
prior has not seen can still be followed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.geometry import rotations
from mocap2ctrl.prior.features import ROOT_ANGLES, root_rotation_vector, to_features
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.types import Array

RESIDUAL_FLOOR = 0.05
"""Least spread of a feature beyond the subspace; about 3 degrees of a joint."""

_STEP = 1e-5


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
        vectors = root_rotation_vector(root_orientation)
        both = np.concatenate([vectors, angles], axis=1)
        difference = to_features(both) - self.mean
        pulled = difference @ self.precision
        half = both.shape[1]
        turned = np.zeros((len(both), half, half))
        index = np.arange(half)
        turned[:, index, index] = 1.0
        turned[:, :ROOT_ANGLES, :ROOT_ANGLES] = _by_rotation(root_orientation, vectors)
        by_angle = np.concatenate([np.cos(both)[..., None] * turned, -np.sin(both)[..., None] * turned], axis=1)
        gradient = np.einsum("tf,tfd->td", pulled, by_angle)
        matrix = by_angle.transpose(0, 2, 1) @ (self.precision @ by_angle)
        return 0.5 * np.einsum("tf,tf->t", pulled, difference), gradient, matrix


def _by_rotation(root_orientation: Array, vectors: Array) -> Array:
    """(T, 3, 3) how the root's rotation vectors without heading change with small world rotations."""
    result = np.empty((len(vectors), ROOT_ANGLES, 3))
    for axis in range(3):
        turn = rotations.from_rotation_vector(_STEP * np.eye(3)[axis])
        result[:, :, axis] = (root_rotation_vector(rotations.multiply(turn, root_orientation)) - vectors) / _STEP
    return result


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
