"""How near two moments of motion are: the point clouds of Kovar et al. 2002.

Kovar, Gleicher and Pighin, Motion Graphs, §3.1: around each moment a cloud of points of the body in the frames of a window, so that
velocities count as well as poses; two clouds are as far from each other as the weighted squares of their points' distances, after
the best turn about the vertical and shift along the ground. Here all points weigh the same, and the distance is the root of their
mean, in metres.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.graph.skills import Skill
from mocap2ctrl.types import Array

FRAMES_IN_WINDOW = 8


def clouds(skill: Skill, character: Character, times_s: Array, window_s: float) -> Array:
    """(F, N, 3) world points of the body over the window that begins at each of the times (F,)."""
    offsets = np.linspace(0.0, window_s, FRAMES_IN_WINDOW)
    frames = skill.at((times_s[:, None] + offsets).ravel())
    points = evaluation_points(character, *segment_frames(character, *frames))
    return points.reshape(len(times_s), -1, 3)


def cloud_distances(a: Array, b: Array) -> Array:
    """(F, G) metres between all clouds of (F, N, 3) and of (G, N, 3).

    With the ground as the complex plane and clouds about their own means, Σ |a - e^{iθ} b|² is least at θ = arg Σ a b*, and is
    then Σ |a|² + Σ |b|² - 2 |Σ a b*| (Kovar's Eq. 2 to 4 in one line).
    """
    ours, theirs = _on_ground(a), _on_ground(b)
    level = np.sum(np.abs(ours) ** 2, axis=1)[:, None] + np.sum(np.abs(theirs) ** 2, axis=1)
    level = level - 2.0 * np.abs(ours @ theirs.conj().T)
    upright = np.sum(a[..., 2] ** 2, axis=1)[:, None] + np.sum(b[..., 2] ** 2, axis=1) - 2.0 * a[..., 2] @ b[..., 2].T
    return np.asarray(np.sqrt(np.maximum(level + upright, 0.0) / a.shape[1]))


def _on_ground(points: Array) -> npt.NDArray[np.complex128]:
    """Points (..., N, 3) seen from above, about their mean."""
    plane = points[..., 0] + 1j * points[..., 1]
    return np.asarray(plane - plane.mean(axis=-1, keepdims=True))
