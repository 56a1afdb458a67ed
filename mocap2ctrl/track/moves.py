"""Improvements of a whole track: exchange limbs in an interval, or take them over from another hypothesis, and keep what pays."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from mocap2ctrl.track.descent import ROUGH, Fitted, Level, descend
from mocap2ctrl.track.energy import equations, standing_weights
from mocap2ctrl.track.evidence import MIDDLE, Evidence
from mocap2ctrl.track.path import Path, Sides, joined
from mocap2ctrl.types import Array

MARGIN = 6
"""Frames on each side of an interval that may adapt."""
SEAM = 2
LONGEST = 24
TO_THE_END, FROM_THE_BEGINNING, BORROWED = 0.2, 0.2, 0.4
"""Shares of moves: that last to the end, that last from the beginning, that take over instead of exchanging."""

LEAST_GAIN = 1.0
SEAM_LEVELS = (Level(MIDDLE, 2, 4),)


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
    path = move.applied(fit.path, sides)
    for margin, levels in ((MARGIN, ROUGH), (MARGIN + SEAM, SEAM_LEVELS)):
        begin, end = max(0, move.begin - margin), min(total, move.end + margin)
        window = evidence.window(begin, end)
        settled = descend(window, path.part(begin, end), fit.body, levels, frozen=SEAM if begin else 0)
        path = joined(path.part(0, begin), settled.path, path.part(end, total))
    begin, end = max(0, begin - SEAM), min(total, end + SEAM)
    before, after = (_energy(evidence, p, fit.body, begin, end) for p in (fit.path, path))
    return before - after, path


def _energy(evidence: Evidence, path: Path, body: Array, begin: int, end: int) -> float:
    """Energy of a part of a path."""
    window, part = evidence.window(begin, end), path.part(begin, end)
    return equations(window, part, body, standing_weights(window, part, body), MIDDLE, 2, derivatives=False).energy
