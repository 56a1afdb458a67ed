"""Several hypotheses followed through the frames: grown some frames at a time, the most likely that differ are kept.

A silhouette does not tell left from right, nor forward from backward. So each step tries, beside going on as before, to exchange
legs or arms, and to stop; what the evidence contradicts dies out later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor

import numpy as np

from mocap2ctrl.track.descent import ROUGH, SEAM, Fitted, Level, descend
from mocap2ctrl.track.energy import energy_of
from mocap2ctrl.track.evidence import Evidence
from mocap2ctrl.track.path import Followed, Path, Sides, extrapolated, held, joined
from mocap2ctrl.track.tree import Points, points_with_jacobian
from mocap2ctrl.types import Array

EXCHANGED_BEFORE = 3
"""How many frames before the new ones are exchanged with them: where limbs cross, it shows a little late."""

SAME_M = 0.04
"""Hypotheses whose joints are closer than this over the last frames are one."""
SAME_FRAMES = 4

PROMISING = 1.5
"""So many times the hypotheses that are kept are descended further, after all have been descended roughly."""


def settle(evidence: Evidence, paths: Sequence[Path], body: Array, executor: Executor) -> list[Fitted]:
    """The paths over the first frames, descended."""
    window = evidence.window(0, paths[0].frames)
    return list(executor.map(lambda path: descend(window, path, body, ROUGH), paths))


def grow(
    evidence: Evidence,
    begun: Followed,
    body: Array,
    sides: Sides,
    points: Points,
    *,
    hypotheses: int,
    explored: int,
    look_back: int,
    frames: int,
    executor: Executor,
) -> Iterator[Followed]:
    """Yields the hypotheses, most likely first, each time that they have grown by `frames`, until all frames are covered.

    Args:
        evidence: of all frames.
        begun: hypotheses over the first frames.
        body: (G,) factors, fixed.
        sides, points: of the character.
        hypotheses: how many to keep.
        explored: how many of the best are also tried with limbs exchanged.
        look_back: how many frames before the new ones are reconsidered.
        frames: new ones a step.
        executor: of threads.
    """
    total = len(evidence.seen)
    paths, past = begun
    while (end := paths[0].frames) < total:
        new = min(frames, total - end)
        begin = max(0, end - look_back)
        window = evidence.window(begin, end + new)
        jobs = [
            (rank, proposal)
            for rank, path in enumerate(paths)
            for proposal in proposals(path.part(begin, end), new, sides if rank < explored else None)
        ]
        for levels, count in ((ROUGH[:1], round(PROMISING * hypotheses)), (ROUGH[1:], hypotheses)):
            fits = executor.map(_follow(window, body, levels, SEAM if begin else 0), [path for _, path in jobs])
            grown = [
                Fitted(joined(paths[rank].part(0, begin), fit.path), body, past[rank] + fit.energy, fit.parts)
                for (rank, _), fit in zip(jobs, fits, strict=True)
            ]
            ranks = {id(fit): rank for (rank, _), fit in zip(jobs, grown, strict=True)}
            kept = distinct(evidence, grown, points, count)
            jobs = [(ranks[id(fit)], fit.path.part(begin, end + new)) for fit in kept]
        rest = max(0, end + new - look_back), end + new
        past = [fit.energy - energy_of(evidence.window(*rest), fit.path.part(*rest), body) for fit in kept]
        paths = [fit.path for fit in kept]
        yield Followed(paths, past)


def _follow(window: Evidence, body: Array, levels: tuple[Level, ...], frozen: int) -> Callable[[Path], Fitted]:
    return lambda path: descend(window, path, body, levels, frozen=(frozen, 0))


def proposals(head: Path, frames: int, sides: Sides | None) -> list[Path]:
    """`head` carried on by `frames` frames: as it went, and, given `sides`, with limbs exchanged or standing still."""
    onward = joined(head, extrapolated(head, frames))
    if sides is None:
        return [onward]
    tail = slice(-(frames + EXCHANGED_BEFORE), None)
    still = joined(head, held(head, frames))
    return [onward, still, *(sides.exchanged_in(onward, tail, hinges) for hinges in sides.groups)]


def distinct(evidence: Evidence, fits: Sequence[Fitted], points: Points, count: int) -> list[Fitted]:
    """The `count` fits of least energy of which no two are the same in their last frames."""
    kept: list[Fitted] = []
    places: list[Array] = []
    for fit in sorted(fits, key=lambda f: f.energy):
        tail = fit.path.part(max(0, fit.path.frames - SAME_FRAMES), fit.path.frames)
        here, _ = points_with_jacobian(evidence.tree, fit.body, *tail, *points, False)
        if all(np.linalg.norm(here - there, axis=-1).mean() > SAME_M for there in places):
            kept.append(fit)
            places.append(here)
        if len(kept) == count:
            break
    return kept
