"""From silhouettes to a motion without physics: first poses, a beam through the frames, improvements, and a last descent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.track.beam import distinct, grow, settle
from mocap2ctrl.track.body import reshaped
from mocap2ctrl.track.checkpoint import Checkpoint
from mocap2ctrl.track.descent import FINE, Fitted, Level, descend
from mocap2ctrl.track.evidence import MIDDLE, Evidence, TrackWeights, evidence_of
from mocap2ctrl.track.limbs import SETTLED_LIMBS, limb_moves
from mocap2ctrl.track.moves import (
    LEAST_GAIN,
    SETTLE,
    Move,
    Part,
    alike_moves,
    bridges,
    crossing_moves,
    improved,
    random_move,
    splices,
)
from mocap2ctrl.track.path import Followed, Path
from mocap2ctrl.track.pose_gaussian import pose_gaussian
from mocap2ctrl.track.start import first_paths
from mocap2ctrl.track.tree import BODY, FACTORS, GIRTH, Points
from mocap2ctrl.types import MotionClip, Silhouettes

OUTLINE_LOST = 0.05
"""By this share at most may the outline's energy under a chosen prior be above that under the search's."""

AT_REST = (Level(MIDDLE, 2, 12),)
"""Moves are judged here; a track that is not at rest is improved by any of them."""

HELD_BUILD = 1e-3
"""Standard deviation of a build that is not fitted yet: among poses that are wrong it makes up for them, and keeps them so."""

KEPT_BYTES = 30 * 2**20
"""Just below the largest block that glibc's thresholds follow, 32 MB."""

TellProgress = Callable[[float, str], None]
"""Told the share of the work that is done, and what is being done."""


@dataclass(frozen=True)
class TrackConfig:
    """How hard the tracker tries.

    Attributes:
        candidates: first poses that are descended.
        headings: directions in which each pose of the prior is tried.
        hypotheses: kept from step to step.
        explored: of these, how many are also tried with limbs exchanged.
        first_s, look_back_s, step_s: seconds that the first poses explain, that each step reconsiders, and that it adds.
        finished: hypotheses that are descended to the bottom at the end.
        splices: rounds of taking beginnings and ends over from other hypotheses.
        crossings: rounds of exchanging limbs where they cross, and of one arm doing what the other does.
        searches: rounds of looking for limbs where the outline is covered worst.
        turns: how often exchanges at crossings and random moves take turns, at most.
        rounds, moves: rounds of random moves, and how many are tried in each.
        patience: rounds without success after which no more are tried.
    """

    candidates: int = 96
    headings: int = 12
    hypotheses: int = 16
    explored: int = 8
    first_s: float = 0.2
    look_back_s: float = 0.4
    step_s: float = 0.1
    finished: int = 6
    splices: int = 3
    crossings: int = 4
    searches: int = 4
    turns: int = 3
    rounds: int = 40
    moves: int = 8
    patience: int = 10


QUICK = TrackConfig(
    candidates=64,
    hypotheses=10,
    explored=5,
    finished=4,
    splices=1,
    crossings=2,
    searches=1,
    turns=1,
    rounds=4,
    patience=2,
)
DEFAULT = TrackConfig()
THOROUGH = TrackConfig(
    candidates=192,
    headings=16,
    hypotheses=32,
    explored=16,
    finished=12,
    splices=6,
    crossings=8,
    searches=8,
    turns=6,
    rounds=80,
    patience=20,
)
TRACK_BUDGETS = {"quick": QUICK, "default": DEFAULT, "thorough": THOROUGH}


@dataclass(frozen=True, eq=False)
class Track:
    """A motion that explains silhouettes.

    Attributes:
        character: with the person's proportions.
        clip: of that character, at the silhouettes' rate.
        girth: of the body's shape, for silhouettes (`BodyShape.radii_at`).
        prior: under which it is most likely.
        energy: of the tracker, less is better.
        parts: its terms by name.
        hypotheses: energies of the other hypotheses that were followed to the end, ascending.
    """

    character: Character
    clip: MotionClip
    girth: float
    prior: PosePrior
    energy: float
    parts: dict[str, float]
    hypotheses: tuple[float, ...]


def track(
    silhouettes: Silhouettes,
    character: Character,
    prior: PosePrior,
    *,
    others: Sequence[PosePrior] = (),
    seed: int = 1,
    workers: int = 1,
    config: TrackConfig = DEFAULT,
    weights: TrackWeights | None = None,
    checkpoint: FilePath | None = None,
    key: bytes = b"",
    on_progress: TellProgress = lambda share, what: None,
) -> Track:
    """Follows the person in `silhouettes`.

    Args:
        silhouettes: with at least one mask that is not empty.
        character: a body of the person's height.
        prior: over poses, for the search.
        others: that the track may end under instead, if one of them makes it more likely.
        seed: of the improvements' random numbers.
        workers: threads; they do not change the result.
        config, weights: how hard to try, and what to believe.
        checkpoint: file that holds the search's state, written after every step; the search goes on from there if it exists
            and was written under the same `key`.
        key: digest of everything that the result depends on.
        on_progress: told how it goes.
    """
    _keep_freed_memory()
    evidence = evidence_of(silhouettes, character, prior, weights)
    saved = Checkpoint(checkpoint, key)
    with threadpool_limits(limits=1), ThreadPoolExecutor(workers) as executor:
        search = _Search(evidence, silhouettes, character, prior, config, saved, executor, on_progress)
        forward, backward = search.follow()
        fits = search.finish([*forward, *backward])
        best = search.improve(fits[: len(forward)], fits[len(forward) :], seed)
        best, chosen = search.with_best_prior(best, [prior, *others])
    on_progress(1.0, "done")
    energies = tuple(sorted(fit.energy for fit in fits))
    clip = MotionClip(
        name=silhouettes.name,
        fps=silhouettes.fps,
        root_position=best.path.root_position,
        root_orientation=best.path.root_orientation,
        angles=best.path.angles,
        provenance={**silhouettes.provenance, "prior": chosen.name, "track": _account(best, energies)},
    )
    return Track(
        character=reshaped(character, best.body),
        clip=clip,
        girth=float(best.body[GIRTH]),
        prior=chosen,
        energy=best.energy,
        parts=best.parts,
        hypotheses=energies,
    )


def _keep_freed_memory() -> None:
    """Has the C library keep what an evaluation frees for the next one.

    Else glibc hands the matrices of a long window back to the system each time, and a third of the time goes into asking for them
    again. It keeps twice as much as the largest block that was ever freed; this one is never written to, and takes no memory.
    """
    np.empty(KEPT_BYTES, np.uint8)


def _account(best: Fitted, hypotheses: Sequence[float]) -> dict[str, Any]:
    """What reports say of a track."""
    return {
        "energy": round(best.energy, 3),
        "parts": {name: round(value, 3) for name, value in best.parts.items()},
        "body": dict(zip(BODY, (round(float(factor), 4) for factor in best.body), strict=True)),
        "hypotheses": [round(energy, 3) for energy in hypotheses],
    }


class _Search:
    """The steps of `track`, each of which goes on from the checkpoint if there is one."""

    def __init__(
        self,
        evidence: Evidence,
        silhouettes: Silhouettes,
        character: Character,
        prior: PosePrior,
        config: TrackConfig,
        saved: Checkpoint,
        executor: Executor,
        tell: TellProgress,
    ) -> None:
        self._evidence, self._silhouettes, self._character, self._prior = evidence, silhouettes, character, prior
        self._with_build_held = replace(evidence, weights=replace(evidence.weights, build=HELD_BUILD))
        self._config, self._saved, self._executor, self._tell = config, saved, executor, tell
        self._sides = evidence.sides
        points = character.evaluation_points
        self._points: Points = (np.array([p.segment for p in points]), np.array([p.at for p in points]))
        names = [f"{side}_{joint}" for joint in ("ankle", "wrist") for side in SIDES]
        ends = [next(p for p in points if p.name == name) for name in names]
        self._ends: Points = (np.array([p.segment for p in ends]), np.array([p.at for p in ends]))
        self._body = np.ones(FACTORS)

    def _frames(self, seconds: float) -> int:
        return max(3, round(seconds * self._evidence.fps))

    def follow(self) -> tuple[list[Path], list[Path]]:
        """Hypotheses over all frames, some followed forwards in time, as many backwards; the most likely of each first.

        What one end of a video leaves open, the other may show; hypotheses that have met different ends err in different places.
        """
        forward = self._followed("forward", self._evidence, self._silhouettes, 0.0)
        turned = replace(self._silhouettes, masks=self._silhouettes.masks[::-1])
        backward = self._followed("backward", self._evidence.reversed(), turned, 0.35)
        half = -(-self._config.finished // 2)
        return forward[:half], [path.reversed() for path in backward[:half]]

    def _followed(self, stage: str, evidence: Evidence, silhouettes: Silhouettes, begun: float) -> list[Path]:
        """Hypotheses over all frames of `evidence`, most likely first."""
        found = self._saved.hypotheses(stage)
        if found is None:
            self._tell(begun, "first pose")
            found = self._first(evidence, silhouettes)
        steps = grow(
            evidence,
            found,
            self._body,
            self._sides,
            self._points,
            hypotheses=self._config.hypotheses,
            explored=self._config.explored,
            look_back=self._frames(self._config.look_back_s),
            frames=self._frames(self._config.step_s),
            executor=self._executor,
        )
        for found in steps:
            self._saved.save(stage, found)
            share = found.paths[0].frames / len(evidence.seen)
            self._tell(begun + 0.35 * share, f"{len(found.paths)} hypotheses, {stage}")
        return found.paths

    def _first(self, evidence: Evidence, silhouettes: Silhouettes) -> Followed:
        """Hypotheses over the first frames."""
        config = self._config
        headings = 2.0 * np.pi * np.arange(config.headings) / config.headings
        frames = min(self._frames(config.first_s), len(evidence.seen))
        poses = self._prior.exemplars
        paths = first_paths(evidence, silhouettes, self._character, poses, headings, frames, config.candidates)
        fits = settle(evidence, paths, self._body, self._executor)
        kept = distinct(evidence, fits, self._points, config.hypotheses)
        return Followed([fit.path for fit in kept], [0.0] * len(kept))

    def finish(self, paths: Sequence[Path]) -> list[Fitted]:
        """Hypotheses descended to the bottom, together with the body's proportions but its build."""
        self._tell(0.7, "proportions")
        evidence = self._with_build_held
        fits = self._executor.map(lambda path: descend(evidence, path, self._body, FINE, fit_body=True), paths)
        return list(fits)

    def improve(self, forward: Sequence[Fitted], backward: Sequence[Fitted], seed: int) -> Fitted:
        """The best of the hypotheses from the first and from the last frame, improved by moves until they cease to pay."""
        first, *rest = sorted([*forward, *backward], key=lambda fit: fit.energy)
        others, turns = [fit.path for fit in rest], self._config.turns
        at_rest = descend(self._evidence, first.path, first.body, AT_REST)
        best = self._spliced(self._bridged(at_rest, forward, backward), others)
        crossed: dict[Part, Fitted] = {}
        alike: dict[Part, Fitted] = {}
        for turn in range(turns):
            before, begun = best.energy, 0.78 + 0.17 * turn / turns
            best = self._uncrossed(best, crossed, begun, 0.06 / turns)
            best = self._with_arms_alike(best, alike, begun + 0.06 / turns, 0.03 / turns)
            best = self._shaken(best, others, (seed, turn), begun + 0.09 / turns, 0.08 / turns)
            if best.energy > before - LEAST_GAIN:
                break
        last = descend(self._with_build_held, best.path, best.body, FINE[1:], fit_body=True)
        best = min([last, first], key=lambda fit: fit.energy)
        free = descend(self._evidence, best.path, best.body, FINE[2:], fit_body=True)
        return self._found(min([free, best], key=lambda fit: fit.energy))

    def _bridged(self, fit: Fitted, forward: Sequence[Fitted], backward: Sequence[Fitted]) -> Fitted:
        """The best way from a hypothesis from the first frame to one from the last; `fit` if that is better."""
        self._tell(0.72, "bridging hypotheses")
        firsts, lasts = ([each.path for each in fits] for fits in (forward, backward))
        moves = bridges(self._evidence, fit.body, firsts, lasts, self._executor)
        return improved(self._evidence, fit, moves, self._executor) or fit

    def _spliced(self, fit: Fitted, others: Sequence[Path]) -> Fitted:
        """`fit` with beginnings and ends of the other hypotheses."""
        told = (self._config.splices, 0.74, 0.04, "splicing hypotheses")
        return self._moved(fit, lambda best: splices(best.path, others), *told)

    def _uncrossed(self, fit: Fitted, known: dict[Part, Fitted], begun: float, share: float) -> Fitted:
        """`fit` with limbs exchanged from crossing to crossing."""

        def moves(best: Fitted) -> list[Move]:
            return crossing_moves(self._evidence, best.path, best.body, self._sides, self._ends)

        return self._moved(fit, moves, self._config.crossings, begun, share, "left and right", known=known)

    def _with_arms_alike(self, fit: Fitted, known: dict[Part, Fitted], begun: float, share: float) -> Fitted:
        """`fit` with arms that do what the other one does, where that pays."""

        def moves(best: Fitted) -> list[Move]:
            return alike_moves(best.path, self._sides)

        return self._moved(fit, moves, self._config.crossings, begun, share, "arms alike", known=known)

    def _shaken(self, best: Fitted, others: Sequence[Path], key: tuple[int, ...], begun: float, share: float) -> Fitted:
        """`best` after random moves, as long as they pay."""
        config, failures = self._config, 0
        for number in range(config.rounds):
            self._tell(begun + share * number / config.rounds, "shaking")
            rng = np.random.default_rng([*key, number])
            moves = [random_move(self._evidence, best, others, self._sides, rng) for _ in range(config.moves)]
            better = improved(self._evidence, best, moves, self._executor)
            best, failures = (best, failures + 1) if better is None else (better, 0)
            if failures == config.patience:
                break
        return best

    def _found(self, fit: Fitted) -> Fitted:
        """`fit` with limbs found anew where it covers the outline worst."""
        poses = self._prior.exemplars[:, 3:]

        def moves(best: Fitted) -> list[Move]:
            return limb_moves(self._evidence, best, poses, self._sides)

        found = self._moved(fit, moves, self._config.searches, 0.95, 0.03, "lost limbs", SETTLED_LIMBS)
        if found is fit:
            return fit
        last = descend(self._evidence, found.path, found.body, FINE[2:], fit_body=True)
        return min([fit, last], key=lambda f: f.energy)

    def _moved(
        self,
        fit: Fitted,
        moves: Callable[[Fitted], Sequence[Move]],
        rounds: int,
        begun: float,
        share: float,
        what: str,
        levels: tuple[Level, ...] = SETTLE,
        known: dict[Part, Fitted] | None = None,
    ) -> Fitted:
        """`fit` after the best of its `moves` in each of some rounds, as long as that pays; they are that share of all work.

        `known` holds what the last round of the same moves has settled, and is kept up to date.
        """
        known = {} if known is None else known
        for number in range(rounds):
            self._tell(begun + share * number / rounds, what)
            better = improved(self._evidence, fit, moves(fit), self._executor, known, levels)
            if better is None:
                break
            fit = better
        return fit

    def with_best_prior(self, fit: Fitted, priors: Sequence[PosePrior]) -> tuple[Fitted, PosePrior]:
        """`fit`, descended under each of `priors`, where it is most likely, and that prior.

        Narrow priors have the more to gain, their normaliser, and the more to lose. They may settle what silhouettes leave open,
        not overrule them: one under which the outline is lost, such as an arm that is raised where the prior knows none, is out.
        `fit` itself, under the first prior, is one to choose: from soft outlines a descent may not find back to short flights.
        """
        if len(priors) == 1:
            return fit, priors[0]
        self._tell(0.98, "choosing a prior")
        evidences = [replace(self._evidence, prior=pose_gaussian(prior)) for prior in priors]
        fits = list(self._executor.map(lambda e: descend(e, fit.path, fit.body, FINE[1:], fit_body=True), evidences))
        fits[0] = min([fit, fits[0]], key=lambda found: found.energy)
        scale = self._evidence.weights.prior * len(self._evidence.seen)
        most = (1.0 + OUTLINE_LOST) * fits[0].parts["outline"]
        costs = [
            found.energy + scale * e.prior.normaliser if found.parts["outline"] <= most else np.inf
            for found, e in zip(fits, evidences, strict=True)
        ]
        best = int(np.argmin(costs))
        return fits[best], priors[best]
