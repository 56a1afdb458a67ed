"""Improvements of a whole track: exchange limbs in an interval, borrow them from another hypothesis, shake; keep what pays."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from mocap2ctrl.track.descent import LONGEST_STEP, SEAM, Fitted, Level, descend, random_step
from mocap2ctrl.track.energy import belief_at, energy_of, equations
from mocap2ctrl.track.evidence import FAR, MIDDLE, Evidence
from mocap2ctrl.track.path import Path, Sides, bridged
from mocap2ctrl.track.tree import Points, points_with_jacobian
from mocap2ctrl.types import Array

MARGIN = 6
"""Frames on each side of an interval that may adapt."""
LONGEST = 24
SHAKEN, BORROWED = 0.6, 0.6
"""Shares of random moves that shake the path, and of the others that take over instead of exchanging."""

SHAKES = (2.0, 4.0, 8.0)
"""Lengths of shakes, standard deviations."""

LEAST_GAIN = 1.0

JUDGED = 8
"""Moves of which the whole track is judged, of all that were settled in their surroundings."""

SPLITS = 5
"""Parts into which the frames are cut for splices."""

BRIDGES, BRIDGED = (4, 8, 12, 16), 6
"""Frames that a bridge takes from one hypothesis to another, and how many of each length are settled."""

CUT_STEP, MOST_CUTS, CUT_PIXELS = 3, 32, 4
"""Frames between bridges that are tried, the most of one length, and every so manieth pixel, by which they are compared."""

HELD = 5
"""Frames at an end of the path in which exchanged limbs are held."""

ALIKE_FRAMES, ALIKE_STEP = (12, 24), 6
"""Lengths of intervals in which one arm does what the other does, and from one to the next."""

MEETING_M = 0.2
"""Limbs' ends that come closer than this in the picture may have been confused."""
SETTLE = (Level(FAR, 2, 4), Level(MIDDLE, 2, 6))
"""How a move is settled in its surroundings. Energies before and after are compared at the last level."""


class Move(NamedTuple):
    """A path that was changed in the frames `begin` up to `end`."""

    begin: int
    end: int
    changed: Path


class Part(NamedTuple):
    """Frames that are settled after a move, `begin` up to `end`, by the digest of their poses: what settles alike is equal."""

    begin: int
    end: int
    poses: bytes


def exchanged(path: Path, begin: int, end: int, hinges: np.ndarray, sides: Sides) -> Move:
    """Some hinges exchanged with the other side."""
    return Move(begin, end, sides.exchanged_in(path, slice(begin, end), hinges))


def borrowed(path: Path, begin: int, end: int, hinges: np.ndarray, source: Path) -> Move:
    """Some hinges taken from another path."""
    angles = np.array(path.angles)
    angles[begin:end, hinges] = source.angles[begin:end, hinges]
    return Move(begin, end, path.with_angles(angles))


def held_at_ends(move: Move, hinges: np.ndarray) -> Move:
    """A move that leaves some hinges as they are `HELD` frames inside, where it reaches an end of the path.

    Exchanged limbs are right where they crossed; at an end, where nothing comes before or after, they may settle otherwise.
    """
    angles = np.array(move.changed.angles)
    if move.begin == 0:
        angles[:HELD, hinges] = angles[HELD, hinges]
    if move.end == len(angles):
        angles[-HELD:, hinges] = angles[-HELD - 1, hinges]
    return Move(move.begin, move.end, move.changed.with_angles(angles))


def spliced(path: Path, begin: int, end: int, source: Path) -> Move:
    """Whole poses taken from another path."""
    return Move(begin, end, path.with_part(begin, source.part(begin, end)))


def splices(path: Path, others: Sequence[Path]) -> list[Move]:
    """The beginnings and ends of all `others`, cut at `SPLITS` - 1 moments."""
    cuts = [round(path.frames * i / SPLITS) for i in range(1, SPLITS)]
    spans = [span for cut in cuts for span in ((0, cut), (cut, path.frames)) if span[0] < span[1]]
    return [spliced(path, *span, other) for other in others for span in spans]


def bridges(
    evidence: Evidence, body: Array, beginnings: Sequence[Path], ends: Sequence[Path], executor: Executor
) -> list[Move]:
    """The most promising ways from one of `beginnings` over to one of `ends`, wherever and however fast.

    Who was followed from the first frame is right until they are lost, upside down say, and who was followed from the last one
    from there on; what lies between is a short way.
    """
    total = len(evidence.seen)
    step = max(CUT_STEP, -(-total // MOST_CUTS))
    kept: list[Move] = []
    for length in BRIDGES:
        for_each: list[tuple[float, Path]] = []
        for begin in range(step, total - length - step + 1, step):
            ways = [bridged(first, second, begin, begin + length) for first in beginnings for second in ends]
            costs = executor.map(lambda way: energy_of(evidence, way, body, FAR, CUT_PIXELS), ways)
            for_each.append(min(zip(costs, ways, strict=True), key=lambda found: found[0]))
        best = sorted(for_each, key=lambda found: found[0])[:BRIDGED]
        kept += [Move(0, total, way) for _, way in best]
    return kept


def shaken(evidence: Evidence, fit: Fitted, begin: int, end: int, scale: float, rng: np.random.Generator) -> Move:
    """A step `scale` standard deviations long in what the evidence leaves open.

    Drawn from the Gaussian that the energy looks like around the path; long steps along its uncertain directions reach the
    next minimum (covariance scaled sampling, Sminchisescu and Triggs 2001).
    """
    window, part = evidence.window(begin, end), fit.path.part(begin, end)
    here = equations(window, part, fit.body, belief_at(window, part, fit.body), MIDDLE, 2, fit_body=False)
    step = scale * random_step(here, seams(begin, end, len(evidence.seen)), rng)
    moved = part.moved(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
    return Move(begin, end, fit.path.with_part(begin, moved))


def seams(begin: int, end: int, total: int) -> tuple[int, int]:
    """How many frames at both ends of a window belong to the rest of the path."""
    return (SEAM if begin else 0, SEAM if end < total else 0)


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
    seen = world @ view.turn.T + evidence.shifts[:, None]
    across = seen[..., :2] / seen[..., 2:] * np.median(seen[..., 2])  # metres in the person's plane
    moves = []
    for hinges, (left, right) in zip(sides.groups, ((0, 1), (2, 3), (0, 1)), strict=True):
        moments = [0, *_meetings(np.linalg.norm(across[:, left] - across[:, right], axis=-1)), path.frames]
        spans = [(a, b) for i, a in enumerate(moments) for b in moments[i + 1 :] if b - a > 1]
        plain = [exchanged(path, a, b, hinges, sides) for a, b in spans]
        at_ends = [move for move in plain if (move.begin == 0) != (move.end == path.frames)]
        moves += plain + [held_at_ends(move, hinges) for move in at_ends if move.end - move.begin > HELD]
    return moves


def alike_moves(path: Path, sides: Sides) -> list[Move]:
    """One arm does what the other does, in intervals all along the path: what an arm does that the body hides."""
    first = sides.source[sides.arms] > sides.arms
    spans = [
        (max(0, begin), min(begin + length, path.frames))
        for length in ALIKE_FRAMES
        for begin in range(-length // 2, path.frames - ALIKE_STEP // 2, ALIKE_STEP)
    ]
    return [exchanged(path, *span, arm, sides) for span in spans for arm in (sides.arms[first], sides.arms[~first])]


def _meetings(distance: Array) -> list[int]:
    """Frames at which a distance (T,) is least and small."""
    inner = np.arange(1, len(distance) - 1)
    least = (distance[inner] <= distance[inner - 1]) & (distance[inner] < distance[inner + 1])
    return [int(t) for t in inner[least & (distance[inner] < MEETING_M)]]


def random_move(
    evidence: Evidence, fit: Fitted, others: Sequence[Path], sides: Sides, rng: np.random.Generator
) -> Move:
    """A move over a random interval."""
    frames = fit.path.frames
    length = int(rng.integers(3, LONGEST + 1))
    begin = int(rng.integers(-length // 2, max(frames - 2, 1)))
    begin, end = max(begin, 0), max(min(begin + length, frames), begin + 1)
    if rng.random() < SHAKEN:
        margins = max(0, begin - MARGIN), min(frames, end + MARGIN)
        return shaken(evidence, fit, *margins, float(rng.choice(SHAKES)), rng)
    hinges = sides.groups[int(rng.integers(len(sides.groups)))]
    if others and rng.random() < BORROWED:
        return borrowed(fit.path, begin, end, hinges, others[int(rng.integers(len(others)))])
    return exchanged(fit.path, begin, end, hinges, sides)


def improved(
    evidence: Evidence,
    fit: Fitted,
    moves: Sequence[Move],
    executor: Executor,
    known: dict[Part, Fitted] | None = None,
    levels: tuple[Level, ...] = SETTLE,
) -> Fitted | None:
    """`fit` after the best of `moves`, each settled in its surroundings; None if none of them pays, or there are none.

    What a move gains among the frames that settle is a first guess: beside them, the travel and who stands may change.

    Args:
        evidence: of all frames.
        fit: the best so far.
        moves: to be tried.
        executor: of threads.
        known: what the last round of such moves has settled, of the same evidence and body; replaced by what this one has. A
            move changes some frames of a track, and most moves after it are what they were before it.
        levels: by which a move is settled.
    """
    parts = [_part(move, len(evidence.seen)) for move in moves]
    known = {} if known is None else known
    new = {part: move.changed for part, move in zip(parts, moves, strict=True) if part not in known}
    settled = executor.map(lambda part: _settled(evidence, new[part], fit.body, part, levels), new)
    found = {part: known[part] for part in parts if part in known} | dict(zip(new, settled, strict=True))
    known.clear()
    known.update(found)
    spans = {(part.begin, part.end) for part in found}
    at = levels[-1][:2]
    energies = executor.map(lambda span: energy_of(evidence.window(*span), fit.path.part(*span), fit.body, *at), spans)
    before = dict(zip(spans, energies, strict=True))
    gain = {part: before[part.begin, part.end] - after.energy for part, after in found.items()}
    judged = [part for part in sorted(gain, key=lambda part: -gain[part]) if gain[part] > LEAST_GAIN][:JUDGED]
    if not judged:
        return None
    paths = [fit.path, *(fit.path.with_part(part.begin, found[part].path) for part in judged)]
    whole = list(executor.map(lambda path: energy_of(evidence, path, fit.body, *at), paths))
    energy, path = min(zip(whole, paths, strict=True), key=lambda way: way[0])
    return Fitted(path, fit.body, energy, fit.parts) if energy < whole[0] - LEAST_GAIN else None


def _part(move: Move, total: int) -> Part:
    begin, end = max(0, move.begin - MARGIN), min(total, move.end + MARGIN)
    poses = sha256(b"".join(array.tobytes() for array in move.changed.part(begin, end)))
    return Part(begin, end, poses.digest())


def _settled(evidence: Evidence, path: Path, body: Array, part: Part, levels: tuple[Level, ...]) -> Fitted:
    window, frozen = evidence.window(part.begin, part.end), seams(part.begin, part.end, len(evidence.seen))
    return descend(window, path.part(part.begin, part.end), body, levels, frozen=frozen)
