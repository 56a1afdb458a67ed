"""Fits to motion capture: joint error, falls, effort and torques."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts import in_parts, of_growth
from benchmarks.rows import FALLS, SHARED, Row, measured_before
from benchmarks.settings import config_of, named
from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.strength import directional_torque_limits
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.types import MotionClip


@dataclass(frozen=True)
class Case:
    """A clip of the accuracy table: what is fitted, and what the paper reports for the same kind of motion."""

    name: str
    motion: str
    cycles: int = 1
    time_range: tuple[float, float] | None = None
    paper_cm: float | None = None


CASES = {
    case.name: case
    for case in (
        Case("walk", "humanoid3d_walk", cycles=2, paper_cm=2.3),
        Case("jump", "humanoid3d_jump", paper_cm=4.3),
        Case("cartwheel", "humanoid3d_cartwheel", paper_cm=11.8),
        Case("walk-games105", str(SHARED / "bvh" / "walk_games105_m_yup.bvh"), time_range=(0.0, 2.0)),
        Case("run", "humanoid3d_run", cycles=2),
        Case("kick", "humanoid3d_kick"),
        Case("spinkick", "humanoid3d_spinkick", paper_cm=9.2),
        Case("backflip", "humanoid3d_backflip", paper_cm=6.3),
        Case("punch", "humanoid3d_punch"),
        Case("spin", "humanoid3d_spin"),
        Case("roll", "humanoid3d_roll"),
        Case("crawl", "humanoid3d_crawl"),
        Case("dance_a", "humanoid3d_dance_a"),
        Case("dance_b", "humanoid3d_dance_b"),
        Case("getup_facedown", "humanoid3d_getup_facedown"),
        Case("getup_faceup", "humanoid3d_getup_faceup"),
    )
}
MAIN_CASES = ("walk", "jump", "spinkick", "cartwheel", "backflip", "walk-games105")
NOTE = (
    "Joint error: 15 joints, all frames, not aligned. No prior, no torque from outside. The paper's clips show the\n"
    "same kinds of motion, not the same motions. With --results FILE what the file has is not fitted again."
)


def accuracy(options: argparse.Namespace) -> Iterator[Row]:
    """Fits each clip with each seed; the joint error is DESIGN's: 15 joints, all frames, not aligned."""
    config = config_of(options)
    done = measured_before(options.results)
    for name in options.clips or MAIN_CASES:
        case = CASES[name]
        if case.motion.endswith(".bvh") and not Path(case.motion).is_file():
            print(f"{name}: left out, {Path(case.motion).name} is not beside the project", file=sys.stderr)
            continue
        for seed in options.seeds:
            if (named(name, options), seed) not in done:
                yield from fit_rows(case, replace(config, seed=seed), options)


def fitted(
    case: Case, config: api.FitConfig, options: argparse.Namespace, **arguments: Any
) -> tuple[api.FitResult | None, api.FitResult]:
    """A case's growth and its fit (`in_parts`), whose folder is gone; `arguments` of `api.fit` come before the benchmark's own."""
    with tempfile.TemporaryDirectory() as folder:

        def fit(of: api.FitConfig, resume: bool) -> api.FitResult:
            return api.fit(
                case.motion,
                Path(folder) / case.name,
                config=of,
                cycles=case.cycles,
                time_range=case.time_range,
                workers=options.workers,
                resume=resume,
                **{"torque_scale": options.torque_limit, **arguments},
            )

        return in_parts(fit, config)


def fit_rows(case: Case, config: api.FitConfig, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of one fit."""
    grown, result = fitted(case, config, options)
    seconds = result.capture.reference.duration_s
    evaluation, outcome, torques = result.evaluation, result.outcome, np.abs(result.replay.torques)
    hips = [i for i, n in enumerate(result.capture.character.hinge_names) if "thigh" in n]
    knees = [i for i, n in enumerate(result.capture.character.hinge_names) if "shank" in n]
    limits = np.nan_to_num(directional_torque_limits(result.capture.character), nan=np.inf)
    signed = result.replay.torques
    beyond = (signed > limits[:, 1]) | (signed < -limits[:, 0])
    values = {
        "joint error": (evaluation.joint_error_cm, "cm"),
        "root-aligned error": (evaluation.root_aligned_error_cm, "cm"),
        FALLS: (float(evaluation.fell), ""),
        "states a second": (result.replay.states_entered(seconds) / seconds, "1/s"),
        "core time": (outcome.core_s / 60.0, "min"),
        "the paper, same kind of motion": (case.paper_cm, "cm"),
        "wall time": (outcome.wall_s / 60.0, "min"),
        "evaluations": (float(outcome.evaluations), ""),
        "peak hip torque": (float(torques[:, hips].max()), "N m"),
        "95 % hip torque": (float(np.percentile(torques[:, hips].max(axis=1), 95)), "N m"),
        "peak knee torque": (float(torques[:, knees].max()), "N m"),
        "steps beyond human strength": (100.0 * float(beyond.any(axis=1).mean()), "%"),
    }
    values |= of_growth(grown)
    for what, (value, unit) in values.items():
        yield Row(f"{named(case.name, options)} | {what}", result.capture.engine_name, value, unit, config.seed)


def reference(case: Case, character: Character) -> MotionClip:
    """A case's clip at 120 frames a second."""
    loaded = load_motion(case.motion, character, cycles=case.cycles, time_range=case.time_range)
    return resample(replace(loaded.clip, loop=False), 120.0)
