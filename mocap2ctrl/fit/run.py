"""From a reference clip, and a video's silhouettes, to a controller: sets up evidence, runs a method, logs, survives Ctrl-C."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import mocap2ctrl
from mocap2ctrl.errors import INTERRUPTIONS, is_interruption
from mocap2ctrl.fit.batch import Generation
from mocap2ctrl.fit.capture import JOURNAL, LOG, REPORT, Capture, save_inputs, save_result
from mocap2ctrl.fit.crew import Crew
from mocap2ctrl.fit.differing import other_settings
from mocap2ctrl.fit.divergence_log import DivergenceLog
from mocap2ctrl.fit.incremental import Stage, window_terms
from mocap2ctrl.fit.interrupt import Interrupts
from mocap2ctrl.fit.journal import Journal
from mocap2ctrl.fit.key import camera_arrays, digest_of, keypoint_arrays
from mocap2ctrl.fit.methods import final_terms, stages
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.robust import IN_WORLDS
from mocap2ctrl.fit.setup import EvaluationSetup
from mocap2ctrl.objective.target import marker_target, silhouette_target
from mocap2ctrl.objective.terms import TermValue
from mocap2ctrl.prior.pca import PosePrior

LOG_EVERY_S = 0.5


@dataclass(frozen=True, eq=False)
class FitProgress:
    """Told to whoever watches a fit.

    Attributes:
        fraction: of the planned work, 0 to 1.
        stage, stages: number of the present stage, from 1, and how many there are.
        cost: E of the best so far, over its window.
        error_cm: distance of markers from the reference's in cm.
        silhouette: Eq. (9), 0 to 2; None without silhouettes.
        evaluations: simulations so far.
        elapsed_s: seconds since the fit began.
        states: of the controller so far.
        label: of what is being searched, as in the log.
        ended: whether the stage has ended; errors are those of the controller that is kept then.
    """

    fraction: float
    stage: int
    stages: int
    cost: float
    error_cm: float
    evaluations: int
    elapsed_s: float
    states: int
    silhouette: float | None = None
    label: str = ""
    ended: bool = False

    @property
    def in_worlds(self) -> bool:
        """Whether costs and errors are means over drawn worlds."""
        return self.label.startswith(IN_WORLDS)


@dataclass(frozen=True, eq=False)
class FitOutcome:
    """What a fit came to.

    Attributes:
        capture: with the controller.
        evaluations: simulations that it took, those of runs that it went on with included.
        cost: E over the whole clip.
        wall_s, core_s: seconds of this run; core_s counts workers, a cluster's too.
        interrupted: whether Ctrl-C ended it early; the controller is then the best so far.
        diverged: evaluations whose simulation had to be stopped; the first are kept in the capture.
        remote_s: what of core_s was spent on a cluster.
        told: what became of each refinement, in words.
        earlier: where the controller is kept that was there before; None if there was none.
        recorded: how many of the evaluations earlier runs had made.
    """

    capture: Capture
    evaluations: int
    cost: float
    wall_s: float
    core_s: float
    interrupted: bool
    diverged: int = 0
    remote_s: float = 0.0
    told: tuple[str, ...] = ()
    earlier: Path | None = None
    recorded: int = 0


def fit_capture(
    capture: Capture,
    crew: Crew | int,
    resume: bool,
    on_progress: Callable[[FitProgress], None] = lambda progress: None,
) -> FitOutcome:
    """Saves the capture's inputs, fits a controller to its reference, and silhouettes, and saves that too.

    Ctrl-C keeps the best so far. The result depends on the capture's settings and seed, not on who evaluates: `crew`, or so many
    processes on this machine.

    Raises:
        CaptureError: the capture's checkpoint is of another fit. That of the same fit's growth alone will do.
        FitError: nobody is left to evaluate; the checkpoint holds what was.
    """
    setup = evaluation_setup(capture)
    begun, cpu = time.perf_counter(), cpu_seconds()
    best: Stage | None = None
    told: tuple[str, ...] = ()
    with ExitStack() as stack:
        other = partial(other_settings, capture.folder, capture.config, capture.run)
        grown = replace(capture, config=capture.config.grown())
        journal = Journal(capture.folder / JOURNAL, _key(capture), resume, other, _key(grown))
        stack.enter_context(closing(journal))
        save_inputs(capture)  # not before the journal has accepted them: a refused resume changes nothing
        (capture.folder / REPORT).unlink(missing_ok=True)  # of what was there before; with a report, a fit has ended
        log = stack.enter_context(closing(_Log(capture, begun)))
        pool = stack.enter_context(EvaluationPool(setup, crew, journal, DivergenceLog(capture)))
        # One BLAS thread: two that spin beside the workers make an eigenvalue problem of 100 numbers 80 times slower.
        stack.enter_context(threadpool_limits(limits=1))
        watch = _Watch(log, on_progress, begun, capture)
        interrupts = stack.enter_context(Interrupts())

        def on_generation(generation: Generation) -> None:
            watch.generation(generation)
            interrupts.check()

        try:
            for stage in stages(pool, capture, on_generation, interrupts.check):
                best, told = stage, (*told, stage.told) if stage.told else told
                end_frame = round(stage.end_s * capture.config.fps)
                watch.stage(stage, window_terms(pool.evaluator, stage.controller, end_frame))
                interrupts.check()
            interrupts.wait()  # within, so that Ctrl-C never falls between the last stage and what is saved
        except INTERRUPTIONS as error:
            interrupts.wait()
            if best is None or not is_interruption(error):
                raise
        if best is None:
            raise RuntimeError("the method yielded no stage")
        interrupted = best.index + 1 < best.stages
        controller = replace(best.controller, provenance={**provenance(capture), "complete": not interrupted})
        finished = replace(capture, controller=controller)
        earlier = save_result(finished)
        if not interrupted:
            watch.controller(final_terms(pool, capture, controller))
    wall, core = time.perf_counter() - begun, cpu_seconds() - cpu + pool.remote_s
    effort = (wall, core, interrupted, pool.diverged, pool.remote_s)
    return FitOutcome(finished, pool.evaluations, best.cost, *effort, told, earlier, journal.recorded)


def evaluation_setup(capture: Capture) -> EvaluationSetup:
    """What workers need to judge controllers for `capture`: its evidence at the objective's rate."""
    fps, seen = capture.config.fps, capture.silhouettes
    return EvaluationSetup(
        character=capture.character.description,
        engine=capture.engine_name,
        also_in=capture.also_in,
        torque_scale=capture.torque_scale,
        target=marker_target(capture.character, capture.objective_clip),
        weights=capture.config.weights,
        prior=capture.target_prior,
        silhouettes=None if seen is None else silhouette_target(seen, capture.girth, fps),
    )


def provenance(capture: Capture) -> dict[str, Any]:
    """Where a controller comes from: version, seed, settings, input."""
    return {
        "mocap2ctrl": mocap2ctrl.__version__,
        "seed": capture.config.seed,
        "engine": capture.engine_name,
        **({"also_in": list(capture.also_in)} if capture.also_in else {}),
        "torque_scale": capture.torque_scale,
        "method": capture.config.method,
        "beyond_growth": list(capture.config.beyond_growth),
        "input": dict(capture.reference.provenance),
        "command": str(capture.run.get("command", "")),
    }


def _key(capture: Capture) -> bytes:
    """Digest of all that a fit's costs depend on, so that a journal is never told to another fit."""
    settings = {
        "version": mocap2ctrl.__version__,
        "config": asdict(capture.config),
        "engine": capture.engine_name,
        "also_in": list(capture.also_in),
        "torque_scale": capture.torque_scale,
        "character": capture.character.description,
        "prior": capture.prior.name,
        "girth": capture.girth,
    }
    arrays: list[npt.NDArray[Any]] = [
        capture.reference.root_position,
        capture.reference.root_orientation,
        capture.reference.angles,
    ]
    if isinstance(capture.prior, PosePrior):
        arrays += [capture.prior.basis, capture.prior.mean, capture.prior.sigma]
    if capture.silhouettes is not None:
        seen = capture.silhouettes
        arrays += [seen.masks, *camera_arrays(seen.camera), seen.ground_velocity, *keypoint_arrays(seen.keypoints)]
    return digest_of(settings, arrays)


def cpu_seconds() -> float:
    """Processor time of this process and of the workers that have ended, seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class _Log:
    """`log.jsonl`: one line a stage, at most twice a second one a generation, and one about the controller at the end."""

    def __init__(self, capture: Capture, begun: float) -> None:
        self._file = open(capture.folder / LOG, "w", encoding="utf-8")  # noqa: SIM115  # lives as long as the fit
        self._begun = begun

    def write(self, event: str, **values: Any) -> None:
        line = {"event": event, "elapsed_s": round(time.perf_counter() - self._begun, 3), **values}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class _Watch:
    """Turns what optimisers tell into log lines and progress."""

    def __init__(self, log: _Log, on_progress: Callable[[FitProgress], None], begun: float, capture: Capture) -> None:
        self._log, self._tell, self._begun = log, on_progress, begun
        seen = capture.silhouettes
        self._seen = seen is not None
        evidence = {"silhouette": self._seen, "keypoints": seen is not None and seen.keypoints is not None}
        self._silent = {name for name, there in evidence.items() if not there}
        self._finished, self._stages, self._states, self._logged, self._done = 0, 1, 1, 0.0, 0.0
        self._evaluations = 0

    def generation(self, g: Generation) -> None:
        now = time.perf_counter()
        last = g.generation == g.generations
        if now - self._logged > LOG_EVERY_S or last or g.generation == 1:
            self._logged = now
            self._log.write(
                "generation",
                stage=g.label,
                generation=g.generation,
                evaluations=g.evaluations,
                diverged=g.diverged,
                cost=g.cost,
                terms={name: value for name, value in g.terms.items() if name not in self._silent},
                weights={name: getattr(g.weights, name) for name in g.terms if name not in self._silent},
            )
        self._stages = max(self._stages, g.stages)
        # What is searched again within a stage is not announced before: what is done stays done.
        self._done = max(self._done, min((self._finished + g.generation / g.generations) / self._stages, 1.0))
        self._evaluations = g.evaluations
        self._say(self._finished + 1, g.cost, g.terms, g.label)

    def stage(self, stage: Stage, terms: Sequence[TermValue]) -> None:
        self._finished = stage.index + 1
        self._states = len(stage.controller.states)
        self._stages, self._done = stage.stages, max(self._done, self._finished / stage.stages)
        values = {term.name: float(term.value[0]) for term in terms}
        self._say(self._finished, stage.cost, values, stage.label, ended=True)
        self._log.write(
            "stage",
            stage=stage.index + 1,
            stages=stage.stages,
            end_s=stage.end_s,
            cost=stage.cost,
            states=self._states,
            structure=stage.controller.structure,
            **({"told": stage.told} if stage.told else {}),
        )

    def _say(self, stage: int, cost: float, terms: Mapping[str, float], label: str, *, ended: bool = False) -> None:
        self._tell(
            FitProgress(
                fraction=self._done,
                stage=stage,
                stages=self._stages,
                cost=cost,
                error_cm=float(np.sqrt(max(terms["markers"], 0.0))),
                evaluations=self._evaluations,
                elapsed_s=time.perf_counter() - self._begun,
                states=self._states,
                silhouette=terms["silhouette"] if self._seen else None,
                label=label,
                ended=ended,
            )
        )

    def controller(self, terms: Sequence[TermValue]) -> None:
        there = [term for term in terms if term.name not in self._silent]
        self._log.write(
            "controller",
            terms={term.name: float(term.value[0]) for term in there},
            weights={term.name: term.weight for term in there},
        )
