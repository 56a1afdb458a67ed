"""From relative orientations to hinge angles: exact for three hinges, nearest for fewer, continuous in time."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Hinge
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array

_TURN = 2.0 * np.pi
MOST_FRAMES = 100_000
"""Frames times joints whose candidates are held at once: half a kilobyte each."""
LIMIT_WEIGHT = 30.0
"""What a radian beyond a limit costs against a squared radian of jump between frames."""


def hinge_angles(hinges: tuple[Hinge, ...], relative: Array) -> Array:
    """Angles (T, H) of one joint's hinges that bring its child to `relative` (T, 4), the child in the parent's frame.

    With one or two hinges the remaining rotation about the missing axes is dropped.
    """
    return all_hinge_angles([(hinges, relative)])[0]


def all_hinge_angles(joints: list[tuple[tuple[Hinge, ...], Array]]) -> list[Array]:
    """`hinge_angles` of several joints over the same frames, in one pass through time, or a few where there are many frames."""
    many = [index for index, (hinges, _) in enumerate(joints) if len(hinges) > 1]
    found = [_twist(hinges[0].axis, relative)[:, None] for hinges, relative in joints]
    together = max(1, MOST_FRAMES // max(len(relative) for _, relative in joints)) if many else 1
    for first in range(0, len(many), together):
        group = many[first : first + together]
        choices = [_choices(*joints[index]) for index in group]
        paths = _smoothest(np.stack([c for c, _ in choices], axis=1), np.stack([cost for _, cost in choices], axis=1))
        for place, index in enumerate(group):
            found[index] = paths[:, place, : len(joints[index][0])]
    return found


def _choices(hinges: tuple[Hinge, ...], relative: Array) -> tuple[Array, Array]:
    """Candidates (T, C, 3) for a joint of two or three hinges, the third 0 where there is none, and their costs (T, C)."""
    axes = [hinge.axis for hinge in hinges]
    if len(axes) == 2:
        axes.append(np.cross(axes[0], axes[1]))
    candidates = _candidates(np.array(axes), rotations.to_matrix(relative))
    candidates[..., len(hinges) :] = 0.0
    lower = np.array([hinge.limits[0] for hinge in hinges])
    upper = np.array([hinge.limits[1] for hinge in hinges])
    bent = candidates[..., : len(hinges)]
    excess = np.maximum(lower - bent, 0.0) + np.maximum(bent - upper, 0.0)
    return candidates, LIMIT_WEIGHT * np.sum(excess, axis=-1) + 1e-3 * np.sum(bent**2, axis=-1)


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
    """For each of B joints, the path (T, B, H) through candidates (T, B, C, H) that costs least (Viterbi).

    It pays the `cost` (T, B, C) of its nodes, and its squared steps.
    """
    frames, joints = cost.shape[:2]
    total = cost[0]
    back = np.zeros(cost.shape, dtype=np.int64)
    for t in range(1, frames):
        step = candidates[t][:, :, None] - candidates[t - 1][:, None]
        reach = total[:, None] + np.einsum("bijh,bijh->bij", step, step)
        back[t] = reach.argmin(axis=-1)
        total = reach.min(axis=-1) + cost[t]
    each = np.arange(joints)
    path = [total.argmin(axis=-1)]
    for t in range(frames - 1, 0, -1):
        path.append(back[t, each, path[-1]])
    return np.asarray(candidates[np.arange(frames)[:, None], each, np.array(path[::-1])])
