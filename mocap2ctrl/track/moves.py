"""Improvements of a whole track: exchange limbs in an interval, or take them over from another hypothesis, and keep what pays."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mocap2ctrl.track.descent import Fitted, Level, descend
from mocap2ctrl.track.energy import belief_at, equations
from mocap2ctrl.track.evidence import FAR, MIDDLE, Evidence
from mocap2ctrl.track.path import Path, Sides, joined
from mocap2ctrl.track.tree import Points, points_with_jacobian
from mocap2ctrl.types import Array

MARGIN = 6
"""Frames on each side of an interval that may adapt."""
SEAM = 2
"""Of these, frames next to the rest of the path that stay; the smoothness terms need two."""
LONGEST = 24
TO_THE_END, FROM_THE_BEGINNING, BORROWED = 0.2, 0.2, 0.4
"""Shares of moves: that last to the end, that last from the beginning, that take over instead of exchanging."""

LEAST_GAIN = 1.0

MEETING_M = 0.2
"""Limbs' ends that come closer than this in the picture may have been confused."""
SETTLE = (Level(FAR, 2, 4), Level(MIDDLE, 2, 6))


class Move(NamedTuple):
    """One change of some hinges in the frames `begin` up to `end`: exchanged with the other side, or taken from `source`."""

    begin: int
    end: int
    hinges: np.ndarray
    source: Path | None

    def applied(self, path: Path, sides: Sides) -> Path:
        """The changed path."""
        part = slice(self.begin, self.end)
        angles = np.array(path.angles)
        if self.source is None:
            angles[part] = sides.exchanged(angles[part], self.hinges)
        else:
            angles[part, self.hinges] = self.source.angles[part, self.hinges]
        return path.with_angles(angles)


def crossing_moves(evidence: Evidence, path: Path, body: Array, sides: Sides, ends: Points) -> list[Move]:
    """Exchanges of limbs between any two moments at which left and right meet in the picture, or the path begins or ends.

    Where limbs cross, the outline cannot tell whether they passed each other or turned back: what a track confuses, it
    confuses there.

    Args:
        evidence: with the camera.
        path, body: the track.
        sides: of the character.
        ends: segments and places of four points: left and right of the legs' ends, left and right of the arms'.
    """
    world, _ = points_with_jacobian(evidence.tree, body, *path, *ends, False)
    view = evidence.view
    seen = world @ view.turn.T + view.shift
    across = seen[..., :2] / seen[..., 2:] * np.median(seen[..., 2])  # metres in the person's plane
    moves = []
    for hinges, (left, right) in zip(sides.groups, ((0, 1), (2, 3), (0, 1)), strict=True):
        moments = [0, *_meetings(np.linalg.norm(across[:, left] - across[:, right], axis=-1)), path.frames]
        moves += [Move(a, b, hinges, None) for i, a in enumerate(moments) for b in moments[i + 1 :] if b - a > 1]
    return moves


def _meetings(distance: Array) -> list[int]:
    """Frames at which a distance (T,) is least and small."""
    inner = np.arange(1, len(distance) - 1)
    least = (distance[inner] <= distance[inner - 1]) & (distance[inner] < distance[inner + 1])
    return [int(t) for t in inner[least & (distance[inner] < MEETING_M)]]


def random_move(rng: np.random.Generator, frames: int, sides: Sides, others: Sequence[Path]) -> Move:
    """A move over a random interval."""
    length = int(rng.integers(3, LONGEST + 1))
    begin = int(rng.integers(-length // 2, max(frames - 2, 1)))
    begin, end = max(begin, 0), min(begin + length, frames)
    kind = rng.random()
    if kind < TO_THE_END:
        end = frames
    elif kind < TO_THE_END + FROM_THE_BEGINNING:
        begin = 0
    hinges = sides.groups[int(rng.integers(len(sides.groups)))]
    borrow = rng.random() < BORROWED and len(others) > 0
    return Move(begin, max(end, begin + 1), hinges, others[int(rng.integers(len(others)))] if borrow else None)


def improved(evidence: Evidence, fit: Fitted, moves: Sequence[Move], sides: Sides, executor: Executor) -> Fitted | None:
    """`fit` after the best of `moves`, each settled in its surroundings; None if none of them pays."""
    tried = list(executor.map(lambda move: _tried(evidence, fit, move, sides), moves))
    gain, path = max(tried, key=lambda result: result[0])
    return Fitted(path, fit.body, fit.energy - gain, fit.parts) if gain > LEAST_GAIN else None


def _tried(evidence: Evidence, fit: Fitted, move: Move, sides: Sides) -> tuple[float, Path]:
    total = len(evidence.seen)
    begin, end = max(0, move.begin - MARGIN), min(total, move.end + MARGIN)
    window, frozen = evidence.window(begin, end), (SEAM if begin else 0, SEAM if end < total else 0)
    changed = move.applied(fit.path, sides)
    settled = descend(window, changed.part(begin, end), fit.body, SETTLE, frozen=frozen)
    path = joined(fit.path.part(0, begin), settled.path, fit.path.part(end, total))
    before, after = (_energy(window, p.part(begin, end), fit.body) for p in (fit.path, path))
    return before - after, path


def _energy(window: Evidence, part: Path, body: Array) -> float:
    """Energy of a part of a path."""
    return equations(window, part, body, belief_at(window, part, body), MIDDLE, 2, derivatives=False).energy
