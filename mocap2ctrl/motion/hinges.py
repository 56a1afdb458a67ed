"""From relative orientations to hinge angles: exact for three hinges, nearest for fewer, continuous in time."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Hinge
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array

_TURN = 2.0 * np.pi
LIMIT_WEIGHT = 30.0
"""What a radian beyond a limit costs against a squared radian of jump between frames."""


def hinge_angles(hinges: tuple[Hinge, ...], relative: Array) -> Array:
    """Angles (T, H) of one joint's hinges that bring its child to `relative` (T, 4), the child in the parent's frame.

    With one or two hinges the remaining rotation about the missing axes is dropped.
    """
    if len(hinges) == 1:
        return _twist(hinges[0].axis, relative)[:, None]
    axes = [hinge.axis for hinge in hinges]
    if len(axes) == 2:
        axes.append(np.cross(axes[0], axes[1]))
    candidates = _candidates(np.array(axes), rotations.to_matrix(relative))[..., : len(hinges)]
    lower = np.array([hinge.limits[0] for hinge in hinges])
    upper = np.array([hinge.limits[1] for hinge in hinges])
    excess = np.maximum(lower - candidates, 0.0) + np.maximum(candidates - upper, 0.0)
    return _smoothest(candidates, LIMIT_WEIGHT * np.sum(excess, axis=-1) + 1e-3 * np.sum(candidates**2, axis=-1))


def _twist(axis: Array, relative: Array) -> Array:
    """Angle (T,) about `axis` nearest to each rotation, unwrapped in time."""
    angle = 2.0 * np.arctan2(relative[:, 1:] @ axis, relative[:, 0])
    return np.unwrap((angle + np.pi) % _TURN - np.pi)


def _candidates(axes: Array, matrices: Array) -> Array:
    """(T, C, 3) all angles within one turn about three orthogonal axes, in order, that compose to `matrices`."""
    handedness = float(np.sign(np.linalg.det(axes)))
    basis = axes.copy()
    basis[2] *= handedness
    m = basis @ matrices @ basis.T
    middle = np.arcsin(np.clip(m[:, 0, 2], -1.0, 1.0))
    first = np.arctan2(-m[:, 1, 2], m[:, 2, 2])
    third = np.arctan2(-m[:, 0, 1], m[:, 0, 0])
    solutions = [(first, middle, third), (first + np.pi, np.pi - middle, third + np.pi)]
    rows = []
    for (a, b, c), (turn_a, turn_c) in product(solutions, product((-1, 0, 1), repeat=2)):
        wrapped = [(angle + np.pi) % _TURN - np.pi for angle in (a, b, c)]
        rows.append(np.stack([wrapped[0] + turn_a * _TURN, wrapped[1], handedness * (wrapped[2] + turn_c * _TURN)], -1))
    return np.stack(rows, axis=1)


def _smoothest(candidates: Array, cost: npt.NDArray[np.float64]) -> Array:
    """The path (T, H) through candidates (T, C, H) with the least node cost and squared steps (Viterbi)."""
    frames = len(candidates)
    total = cost[0]
    back = np.zeros(cost.shape, dtype=np.int64)
    for t in range(1, frames):
        step = np.sum((candidates[t][:, None] - candidates[t - 1][None]) ** 2, axis=-1)
        reach = total[None] + step
        back[t] = np.argmin(reach, axis=1)
        total = np.take_along_axis(reach, back[t][:, None], axis=1)[:, 0] + cost[t]
    path = [int(np.argmin(total))]
    for t in range(frames - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return np.asarray(candidates[np.arange(frames), path[::-1]])
