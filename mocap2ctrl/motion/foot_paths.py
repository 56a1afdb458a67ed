"""Where feet go so that they stand still while they stand: a least-squares path of each foot, smooth between contacts.

A foot is moved by u(t) and turned by w(t), small, from where it was. In every frame the two are drawn to zero, and their
second differences are small, so that what contacts demand fades in and out over about `BLEND_S`; while heel or ball
stands, its place does not change along the ground and it touches z = 0; and no part of the foot is below the ground.
Each round is one banded system for a foot (the smoothing spline's), so that footskate is removed with bounded
accelerations, where per-frame corrections with blends (Kovar, Schreiner, Gleicher 2002) have kinks. Markers that jump ask
for turns that are not small, for which the linear system promises what the turned foot does not keep; so a round goes only
as far as what was asked for is indeed met better (Gauss-Newton with backtracking, Nocedal and Wright 2006, 10.3).
"""

from __future__ import annotations

from dataclasses import dataclass

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
MOST_ROUNDS = 12
"""The same where the last one took off more than `LITTLE` of the cost."""
LITTLE = 0.1
HALVINGS = 6

MOST_TURN = 0.35
"""Radians that a foot turns freely; beyond, it is drawn back as firmly as contacts hold it, `TURN_M` for a radian."""

UNKNOWNS = 6
LAST = 3 * UNKNOWNS - 1
SIZE = np.array([1.0] * 3 + [TURN_M**2] * 3)


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
    foot = _Foot(position, orientation, local, radius, standing, fps)
    change = np.zeros((len(position), UNKNOWNS))
    sunk = np.zeros(standing.shape, dtype=bool)
    for done in range(1, MOST_ROUNDS + 1):
        placed = foot.placed(change)
        sunk |= np.min(placed.heights, axis=-1) < 0.0
        step = _linearised(foot, placed, change, standing | sunk).solve() - change
        change, gain = _stepped(foot, change, step, standing | sunk)
        if done >= ROUNDS and gain < LITTLE:
            break
    turned = rotations.multiply(rotations.from_rotation_vector(change[:, 3:]), orientation)
    return position + change[:, :3], rotations.normalise(turned)


@dataclass(frozen=True, eq=False)
class _Placed:
    """Where a change brings heel and ball.

    Attributes:
        arms: (T, 2, 2, 3) from the ankle to the two ends of each.
        heights: (T, 2, 2) of those ends above the ground.
        spots: (T, 2, 2) of their middles along it.
    """

    arms: Array
    heights: Array
    spots: Array


@dataclass(frozen=True, eq=False)
class _Foot:
    """What `foot_path` is given."""

    position: Array
    orientation: Array
    local: Array
    radius: Array
    standing: Masks
    fps: float

    @property
    def blend(self) -> float:
        """Frames over which a change fades."""
        return BLEND_S * min(self.fps, MOST_FPS)

    def placed(self, change: Array) -> _Placed:
        """After a change (T, 6)."""
        turned = rotations.multiply(rotations.from_rotation_vector(change[:, 3:]), self.orientation)
        arms = rotations.rotate(turned[:, None, None], self.local)
        ankle = self.position + change[:, :3]
        heights = ankle[:, None, None, 2] + arms[..., 2] - self.radius
        return _Placed(arms, heights, ankle[:, None, :2] + np.mean(arms, axis=2)[..., :2])

    def cost(self, change: Array, grounded: Masks) -> float:
        """What the least squares are of, of the turned foot itself; (T, 2) are `grounded`."""
        placed = self.placed(change)
        stays = self.standing[1:] & self.standing[:-1]
        slides = np.sum(np.diff(placed.spots, axis=0)[stays] ** 2)
        off = np.sum((_lower_shares(placed.heights) * placed.heights).sum(axis=-1)[grounded] ** 2)
        bends = self.blend**4 * np.sum(np.diff(change, 2, axis=0) ** 2 * SIZE)
        beyond = TURN_M**2 * np.sum(np.maximum(np.linalg.norm(change[:, 3:], axis=1) - MOST_TURN, 0.0) ** 2)
        return float(np.sum(change**2 * SIZE) + bends + FIRM * (self.blend**2 * slides + off + beyond))


def _stepped(foot: _Foot, change: Array, step: Array, grounded: Masks) -> tuple[Array, float]:
    """The change after as much of a step, halving it, as makes the cost less; and the share of the cost that it took off."""
    cost = foot.cost(change, grounded)
    for halving in range(HALVINGS + 1):
        further = change + 0.5**halving * step
        less = foot.cost(further, grounded)
        if less < cost:
            return further, 1.0 - less / cost
    return change, 0.0


def _lower_shares(heights: Array) -> Array:
    """(T, 2, 2) how much each end of heel and ball counts for its height: the lower one, or both."""
    share = np.exp((np.min(heights, axis=-1, keepdims=True) - heights) / EDGE_M)
    return np.asarray(share / np.sum(share, axis=-1, keepdims=True))


def _linearised(foot: _Foot, placed: _Placed, change: Array, grounded: Masks) -> _System:
    """What is demanded of the path, near a change that it has already."""
    system = _System(len(change), foot.blend)
    turning = _turning(change[:, 3:])
    shares = _lower_shares(placed.heights)
    for part in range(2):
        arms, stands = placed.arms[:, part], foot.standing[:, part]
        slope = _point_rows(np.mean(arms, axis=1), turning)[:, :2]
        # Where the part would be without the change, if it moved as the slope says.
        place = placed.spots[:, part] - np.einsum("tij,tj->ti", slope, change)
        system.add_steps(slope, -np.diff(place, axis=0), stands[1:] & stands[:-1])
        share, heights = shares[:, part], placed.heights[:, part]
        rows = _point_rows(np.sum(share[..., None] * arms, axis=1), turning)[:, 2]
        wanted = np.einsum("ti,ti->t", rows, change) - np.sum(share * heights, axis=1)
        system.add_rows(rows, wanted, grounded[:, part])
    turn = np.linalg.norm(change[:, 3:], axis=1)
    along = TURN_M * change[:, 3:] / np.maximum(turn, MOST_TURN)[:, None]
    bound = np.concatenate([np.zeros((len(turn), 3)), along], axis=1)
    system.add_rows(bound, np.full(len(turn), TURN_M * MOST_TURN), turn > MOST_TURN)
    return system


def _turning(w: Array) -> Array:
    """(T, 3, 3) the small turn, after the turn w (T, 3), that one more radian of each of its components is.

    The left Jacobian of the exponential map of rotations.
    """
    angle = np.linalg.norm(w, axis=1)[:, None, None]
    cross = np.cross(w[:, None], np.eye(3)).transpose(0, 2, 1)
    safe = np.maximum(angle, 1e-4)
    once = np.where(angle > safe / 2, (1.0 - np.cos(safe)) / safe**2, 0.5)
    twice = np.where(angle > safe / 2, (safe - np.sin(safe)) / safe**3, 1.0 / 6.0)
    return np.asarray(np.eye(3) + once * cross + twice * cross @ cross)


def _point_rows(arms: Array, turning: Array) -> Array:
    """(T, 3, 6) how a point at `arms` (T, 3) moves with u and w: u + (turning w) x arm."""
    rows = np.zeros((len(arms), 3, UNKNOWNS))
    rows[:, :, :3] = np.eye(3)
    for this, other, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        rows[:, other, 3 + this] = -arms[:, third]
        rows[:, third, 3 + this] = arms[:, other]
    rows[:, :, 3:] = rows[:, :, 3:] @ turning
    return rows


class _System:
    """Normal equations of T frames of six unknowns: blocks on the diagonal, one and two below it."""

    def __init__(self, frames: int, blend: float) -> None:
        size = np.diag(SIZE)
        self.blocks = [np.zeros((max(frames - below, 0), UNKNOWNS, UNKNOWNS)) for below in range(3)]
        self.right = np.zeros((frames, UNKNOWNS))
        self.blocks[0] += size
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
