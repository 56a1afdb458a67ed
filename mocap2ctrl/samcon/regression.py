"""The feedback policy of a fragment from its simulation tuples (Liu 2016, §5.2)."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.graph.fragments import FeedbackPolicy
from mocap2ctrl.types import Array

LAMBDA = 1e-6
"""λ of Eq. 19."""


def regress(features: Array, actions: Array, ridge: float = LAMBDA) -> FeedbackPolicy:
    """The policy that best predicts N actions (N, 11) from N states' features (N, 18)."""
    mean_s, mean_a = features.mean(axis=0), actions.mean(axis=0)
    s, a = features - mean_s, actions - mean_a  # Eq. 17, 18
    gain = np.linalg.solve(s.T @ s + ridge * np.eye(s.shape[1]), s.T @ a).T  # Eq. 19
    residual = a - s @ gain.T
    return FeedbackPolicy(gain, mean_a - gain @ mean_s, np.mean(residual**2, axis=0))  # Eq. 15, 16
