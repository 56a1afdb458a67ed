"""The Python API behind the command line: `fit`, `load`, `evaluate`, `simulate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mocap2ctrl.character.model import load_character
from mocap2ctrl.control.closed_loop import Push
from mocap2ctrl.errors import CaptureError, ConfigError
from mocap2ctrl.evaluation.metrics import Evaluation, evaluate_replay, judged_seconds
from mocap2ctrl.evaluation.replay import Replay, replay
from mocap2ctrl.fit.capture import Capture, load_capture, prepare_folder
from mocap2ctrl.fit.config import FitConfig, budget
from mocap2ctrl.fit.run import FitOutcome, FitProgress, fit_capture
from mocap2ctrl.motion.load import LoadedMotion, load_motion
from mocap2ctrl.prior.choose import load_prior
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.simulation.choose import make_engine
from mocap2ctrl.simulation.engine import Engine

EVALUATION_FPS = 120.0


@dataclass(frozen=True, eq=False)
class FitResult:
    """A finished fit and how good it is.

    Attributes:
        capture: the folder's contents.
        outcome: effort spent.
        evaluation: against the reference.
        replay: the simulation that was evaluated.
        warnings: what a user should know before trusting the numbers.
    """

    capture: Capture
    outcome: FitOutcome
    evaluation: Evaluation
    replay: Replay
    warnings: tuple[str, ...]


def fit(
    motion: Path | str,
    output: Path | str | None = None,
    *,
    config: FitConfig | None = None,
    seed: int | None = None,
    workers: int | None = None,
    engine: str = "mujoco",
    prior: str = "auto",
    height_m: float | None = None,
    time_range: tuple[float, float] | None = None,
    fps: float | None = None,
    cycles: int = 1,
    torque_scale: float = 1.0,
    resume: bool = False,
    overwrite: bool = False,
    command: str = "",
    on_progress: Callable[[FitProgress], None] = lambda progress: None,
    on_input: Callable[[LoadedMotion], None] = lambda motion: None,
) -> FitResult:
    """Fits a physics controller to a motion file and writes a capture folder.

    Args:
        motion: a BVH or DeepMimic file, or the name of a DeepMimic clip that pybullet ships.
        output: the capture's folder; `captures/<name>` if not given.
        config: settings; the default budget if not given. `seed` and `fps` override its own.
        seed: of all random numbers.
        workers: processes; all cores if not given. Does not change the result.
        engine: name of the physics engine.
        prior: `auto`, `none`, or the name or path of a pose prior; `auto` is none for motion capture.
        height_m: of the simulated body.
        time_range: seconds of the file to use.
        fps: frames a second that the objective looks at.
        cycles: how often a loop is repeated.
        torque_scale: factor on the torque bounds.
        resume: go on with an interrupted fit in `output`.
        overwrite: replace a capture in `output`.
        command: what the user typed, for the provenance.
        on_progress, on_input: told how the fit goes, and what was understood of the input.

    Raises:
        Mocap2CtrlError: input, settings or folder cannot be used; says why.
    """
    from mocap2ctrl.report.capture import REPORT, write_outputs  # plots and video only when they are wanted

    config = config or budget("default")
    config = replace(config, seed=config.seed if seed is None else seed, fps=config.fps if fps is None else fps)
    workers = default_workers() if workers is None else workers
    if workers < 1:
        raise ConfigError(f"workers is {workers}; allowed is 1 or more")
    if not 0.01 <= torque_scale <= 10:
        raise ConfigError(f"torque scale is {torque_scale}; allowed is 0.01 to 10")
    character = load_character(height_m=height_m)
    make_engine(engine, character)
    pose_prior = load_prior("identity" if prior in ("auto", "none") else prior, character)
    loaded = load_motion(motion, character, time_range=time_range, cycles=cycles)
    if loaded.clip.duration_s < 0.1:
        raise ConfigError(f"{motion}: lasts {loaded.clip.duration_s:.2f} s; a fit needs at least 0.1 s of motion")
    folder = Path(output) if output is not None else Path("captures") / Path(motion).stem
    capture = Capture(
        folder=folder,
        character=character,
        prior=pose_prior,
        reference=loaded.clip,
        source_points=loaded.source_points,
        config=config,
        run={"engine": engine, "torque_scale": float(torque_scale), "cycles": cycles, "command": command},
    )
    if resume and (folder / REPORT).exists() and load_capture(folder).complete:
        raise CaptureError(f"{folder}: its fit has ended; there is nothing to resume. Use --overwrite to fit anew")
    prepare_folder(folder, resume=resume, overwrite=overwrite)
    on_input(loaded)
    outcome = fit_capture(capture, workers, resume, on_progress)
    evaluation, run = evaluate(outcome.capture)
    warnings = (*loaded.warnings, *capture_warnings(outcome.capture))
    effort = {"evaluations": outcome.evaluations, "wall_s": outcome.wall_s, "core_s": outcome.core_s}
    write_outputs(outcome.capture, evaluation, run, effort, warnings)
    return FitResult(outcome.capture, outcome, evaluation, run, warnings)


def load(folder: Path | str) -> Capture:
    """Reads a capture folder; see `fit.capture.load_capture`."""
    return load_capture(folder)


def engine_for(capture: Capture, engine: str | None = None, torque_scale: float | None = None) -> Engine:
    """The engine that a capture was fitted in, or another; with its torque bounds, or others."""
    scale = capture.torque_scale if torque_scale is None else torque_scale
    return make_engine(engine or capture.engine_name, capture.character, torque_scale=scale)


def evaluate(
    capture: Capture, *, reference: Path | str | None = None, engine: str | None = None
) -> tuple[Evaluation, Replay]:
    """Simulates a capture's controller and compares it with its reference, or with the motion file `reference`."""
    clip, points = capture.reference, capture.source_points
    if reference is not None:
        loaded = load_motion(reference, capture.character)
        own, other = (clip.provenance.get("sha256") for clip in (capture.reference, loaded.clip))
        if own == other:  # its own input: the part that it was fitted to
            cycles = int(capture.run.get("cycles", 1))
            loaded = load_motion(reference, capture.character, time_range=_time_range(capture), cycles=cycles)
        clip, points = loaded.clip, loaded.source_points
    clip = replace(clip, loop=False)
    run = replay(
        engine_for(capture, engine), capture.finished_controller(), judged_seconds(clip) + 0.1, fps=EVALUATION_FPS
    )
    return evaluate_replay(capture.character, run, clip, points), run


def _time_range(capture: Capture) -> tuple[float, float] | None:
    """The part of its input that a capture was fitted to, seconds; None for all."""
    values = capture.reference.provenance.get("time_range_s")
    return None if not values else (float(values[0]), float(values[1]))


def simulate(
    capture: Capture,
    seconds: float | None = None,
    *,
    fps: float = 60.0,
    pushes: tuple[Push, ...] = (),
    torque_limit: float | None = None,
    engine: str | None = None,
) -> Replay:
    """Replays a capture's controller for `seconds` (its clip's length if not given), pushed or weakened if asked for."""
    duration = capture.reference.duration_s if seconds is None else seconds
    scale = None if torque_limit is None else torque_limit * capture.torque_scale
    return replay(engine_for(capture, engine, scale), capture.finished_controller(), duration, fps=fps, pushes=pushes)


def capture_warnings(capture: Capture) -> tuple[str, ...]:
    """What a user should know before trusting a capture's numbers."""
    warnings = []
    if isinstance(capture.prior, PosePrior) and prior_contains(capture.prior.provenance, capture.reference.provenance):
        warnings.append(f"prior {capture.prior.name!r} was trained on this very clip; its error is not an honest test")
    return tuple(warnings)


def prior_contains(prior: Mapping[str, Any], clip: Mapping[str, Any]) -> bool:
    """Whether a prior's provenance lists the file that a clip comes from."""
    digest = clip.get("sha256")
    return digest is not None and any(entry.get("sha256") == digest for entry in prior.get("clips", ()))


def default_workers() -> int:
    """As many processes as this one may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
