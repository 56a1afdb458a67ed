"""Eq. (8) as a sum of squares, for searches that descend by Gauss and Newton's way.

Markers (Eq. 10), the drift of the centre of mass and the pose held past the end (Eq. 11) are sums of squares already. Eq. (9) of a
frame, and the mean distance of its keypoints, are numbers from 0 on: their roots are residuals. Penalties and contacts are left
out; they are in the cost by which steps are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mocap2ctrl.control.closed_loop import Rollouts
from mocap2ctrl.objective.terms import DIVERGED_CM2, Objective, TermValue
from mocap2ctrl.types import Array

CM = 100.0


def residuals(
    objective: Objective, rollouts: Rollouts, terms: Sequence[TermValue], first_frame: int, end_frame: int
) -> Array:
    """(P, R) whose squares sum to the weighted cost of markers, velocity, stability, silhouettes and keypoints.

    Frames of simulations that diverged, and those that are farther off than the cost looks, count as far off in every number alike.

    Args:
        objective: what is weighed, and how.
        rollouts: recorded at the target's frame rate.
        terms: `objective.terms` of them, over the same window: silhouettes are drawn once.
        first_frame, end_frame: the window, in the target's frames, both included.
    """
    w, target = objective.weights, objective.target
    evidence = max(min(end_frame + 1, len(target)) - first_frame, 0)
    markers = _bounded(CM * objective.marker_errors(rollouts, first_frame, end_frame))
    seen = {term.name: term.per_frame for term in terms}
    beyond = np.empty((len(markers), 0))
    if markers.shape[1] > evidence:
        beyond = np.nan_to_num(objective.mask_distances(rollouts, first_frame + evidence, end_frame))
    drift = _bounded(CM * objective.drift_errors(rollouts, first_frame, min(end_frame, len(target) - 1))[:, :, None])
    held = w.stability * (w.markers if objective.view is not None else 1.0)
    parts = [
        _mean_square(markers[:, :evidence], w.markers),
        _mean_square(drift, w.velocity),
        _mean_square(markers[:, evidence:], held),
        _mean_square(_roots(_seen(seen["silhouette"])), w.silhouette),
        _mean_square(_roots(beyond), w.stability * w.silhouette),
        _mean_square(_roots(_seen(seen["keypoints"])), w.keypoints),
    ]
    return np.concatenate(parts, axis=1)


def _bounded(errors: Array) -> Array:
    """Errors (P, F, N, 3) of which no frame's mean square exceeds `DIVERGED_CM2`."""
    square = np.mean(np.sum(errors**2, axis=-1), axis=-1)
    far = ~(square <= DIVERGED_CM2)
    shrunk = np.where(far, np.sqrt(DIVERGED_CM2 / np.maximum(np.nan_to_num(square, nan=np.inf), 1e-12)), 1.0)
    finite = np.isfinite(square)
    errors = np.where(finite[..., None, None], errors, 0.0) * shrunk[..., None, None]
    lost = np.sqrt(DIVERGED_CM2 / errors.shape[-1])
    return np.where(finite[..., None, None], errors, lost)


def _seen(distances: Array) -> Array:
    """Those of (P, F) distances whose frames hold evidence."""
    return distances[:, ~np.isnan(distances).all(axis=0)]


def _roots(distances: Array) -> Array:
    """(P, F, 1, 1) roots of (P, F), each an error of one point in one direction."""
    return np.asarray(np.sqrt(distances)[:, :, None, None])


def _mean_square(errors: Array, weight: float) -> Array:
    """(P, R) numbers whose squares sum to `weight` times the mean over frames and points of the squares of (P, F, N, K)."""
    population, frames, count = errors.shape[:3]
    scale = np.sqrt(weight / max(frames * count, 1))
    return np.asarray(scale * errors.reshape(population, -1))
