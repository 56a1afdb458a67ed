"""Where feet go so that they stand still while they stand: a least-squares path of each foot, smooth between contacts.

A foot is moved by u(t) and turned by w(t), small, from where it was. In every frame the two are drawn to zero, and their
second differences are small, so that what contacts demand fades in and out over about `BLEND_S`; while heel or ball
stands, its place does not change along the ground and it touches z = 0; and no part of the foot is below the ground.
The whole is one banded system for a foot (the smoothing spline's), so that footskate is removed with bounded
accelerations, where per-frame corrections with blends (Kovar, Schreiner, Gleicher 2002) have kinks.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solveh_banded

from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, Masks

BLEND_S = 0.08
FIRM = 1e4
"""Weight of a contact against staying where the foot was."""
MOST_FPS = 1000.0
"""Rate above which blends become shorter, so that the system stays well conditioned."""
TURN_M = 0.3
"""How far a turn of one radian counts as a move."""
EDGE_M = 0.003
"""Difference in height by which the lower end of heel or ball counts rather than the middle: a foot is not forced flat."""
ROUNDS = 3
"""Linearisations: which end of heel and ball is lowest, what is below the ground, and the turn itself change little."""

UNKNOWNS = 6
LAST = 3 * UNKNOWNS - 1


def foot_path(
    position: Array, orientation: Array, local: Array, radius: Array, standing: Masks, fps: float
) -> tuple[Array, Array]:
    """The path of one foot, made to stand still and on the ground where it stands.

    Args:
        position, orientation: (T, 3) and (T, 4) of the ankle joint.
        local: (2, 2, 3) in the foot's frame, metres: of heel and ball, each, the two ends of what touches the ground.
        radius: (2, 2) of those ends.
        standing: (T, 2) whether heel and ball stand.
        fps: frames a second.

    Returns:
        positions (T, 3) and orientations (T, 4).
    """
    change = np.zeros((len(position), UNKNOWNS))
    sunk = np.zeros(standing.shape, dtype=bool)
    for _ in range(ROUNDS):
        turned = rotations.multiply(rotations.from_rotation_vector(change[:, 3:]), orientation)
        arms = rotations.rotate(turned[:, None, None], local)
        heights = position[:, None, None, 2] + change[:, None, None, 2] + arms[..., 2] - radius
        sunk |= np.min(heights, axis=-1) < 0.0
        system = _System(len(position), fps)
        for part in range(2):
            places = (position, arms[:, part], heights[:, part])
            _add_part(system, places, change, standing[:, part], sunk[:, part])
        change = system.solve()
    turned = rotations.multiply(rotations.from_rotation_vector(change[:, 3:]), orientation)
    return position + change[:, :3], rotations.normalise(turned)


def _add_part(system: _System, places: tuple[Array, Array, Array], change: Array, standing: Masks, sunk: Masks) -> None:
    """Adds what heel or ball demands of the path.

    `places` are the ankle's (T, 3) before the change, and after it, of the part's two ends, the arms (T, 2, 3) from the
    ankle and the heights (T, 2) above the ground.
    """
    position, arms, heights = places
    middle = np.mean(arms, axis=1)
    slope = _point_rows(middle)
    # The turn so far is in the arms: a further turn w' = w - w0 moves them by w' x arm.
    place = position[:, :2] + middle[:, :2] - np.einsum("tij,tj->ti", slope[:, :2, 3:], change[:, 3:])
    system.add_steps(slope[:, :2], -np.diff(place, axis=0), standing[1:] & standing[:-1])
    share = np.exp((np.min(heights, axis=1, keepdims=True) - heights) / EDGE_M)
    share /= np.sum(share, axis=1, keepdims=True)
    rows = _point_rows(np.sum(share[..., None] * arms, axis=1))[:, 2]
    wanted = np.einsum("ti,ti->t", rows, change) - np.sum(share * heights, axis=1)
    system.add_rows(rows, wanted, standing | sunk)


def _point_rows(arms: Array) -> Array:
    """(T, 3, 6) how a point at `arms` (T, 3) moves with u and w: u + w x arm."""
    rows = np.zeros((len(arms), 3, UNKNOWNS))
    rows[:, :, :3] = np.eye(3)
    for this, other, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        rows[:, other, 3 + this] = -arms[:, third]
        rows[:, third, 3 + this] = arms[:, other]
    return rows


class _System:
    """Normal equations of T frames of six unknowns: blocks on the diagonal, one and two below it."""

    def __init__(self, frames: int, fps: float) -> None:
        size = np.diag([1.0] * 3 + [TURN_M**2] * 3)
        self.blocks = [np.zeros((max(frames - below, 0), UNKNOWNS, UNKNOWNS)) for below in range(3)]
        self.right = np.zeros((frames, UNKNOWNS))
        self.blocks[0] += size
        blend = BLEND_S * min(fps, MOST_FPS)
        self.step_weight = FIRM * blend**2
        if frames > 2:
            bend = blend**4 * size
            for at, factor in enumerate((1.0, -2.0, 1.0)):
                for other, second in enumerate((1.0, -2.0, 1.0)[: at + 1]):
                    self.blocks[at - other][other : other + frames - 2] += factor * second * bend

    def add_rows(self, rows: Array, wanted: Array, where: Masks) -> None:
        """Adds rows (T, 6) . x = wanted (T,) in the frames `where` (T,)."""
        weight = FIRM * where
        self.blocks[0] += weight[:, None, None] * rows[:, :, None] * rows[:, None, :]
        self.right += (weight * wanted)[:, None] * rows

    def add_steps(self, rows: Array, wanted: Array, where: Masks) -> None:
        """Adds rows(t + 1) . x(t + 1) - rows(t) . x(t) = wanted (T - 1, R) for rows (T, R, 6) in the steps `where`."""
        weight = self.step_weight * where
        after, before = rows[1:], rows[:-1]
        self.blocks[0][1:] += weight[:, None, None] * np.einsum("tra,trb->tab", after, after)
        self.blocks[0][:-1] += weight[:, None, None] * np.einsum("tra,trb->tab", before, before)
        self.blocks[1] -= weight[:, None, None] * np.einsum("tra,trb->tab", after, before)
        self.right[1:] += weight[:, None] * np.einsum("tra,tr->ta", after, wanted)
        self.right[:-1] -= weight[:, None] * np.einsum("tra,tr->ta", before, wanted)

    def solve(self) -> Array:
        """(T, 6) the unknowns."""
        frames = len(self.right)
        banded = np.zeros((LAST + 1, frames, UNKNOWNS))
        for below, block in enumerate(self.blocks):
            for row in range(UNKNOWNS):
                for column in range(UNKNOWNS):
                    diagonal = UNKNOWNS * below + row - column
                    if diagonal >= 0:
                        banded[diagonal, : len(block), column] = block[:, row, column]
        size = frames * UNKNOWNS
        return np.asarray(
            solveh_banded(banded.reshape(LAST + 1, size), self.right.reshape(size), lower=True, check_finite=False)
        ).reshape(frames, UNKNOWNS)
