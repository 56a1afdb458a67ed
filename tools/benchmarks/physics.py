"""How much faster than real time bodies are simulated: the closed loop of each engine, and fragments under PD servos."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.loops import dense_program
from benchmarks.motions import CASES, reference
from benchmarks.rows import Row, engine_names, engine_or_none
from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.control.closed_loop import run, start_vector
from mocap2ctrl.motion.clips import state
from mocap2ctrl.simulation.choose import has_bullet, make_engine
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S, Engine
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.types import Array, MotionClip

MOTIONS = ("walk", "jump", "cartwheel")
FRAGMENT_STEPS = 20
NOISE_RAD = np.radians(5.0)
"""Spread of sampled targets: Liu's sigma_0."""

NOTE = (
    "Simulated seconds a second of processor time (a core), or of wall time. Closed loop: a state machine with a state each "
    "1/60 s, torque bounds on. "
    "PD fragments: 0.1 s each, in steps of 5 ms, targets of the clip with noise of 5 degrees."
)


def physics(options: argparse.Namespace) -> Iterator[Row]:
    """Closed loops of all engines that are there, then fragments."""
    character = load_character()
    clips = {name: reference(CASES[name], character) for name in MOTIONS}
    for engine_name in engine_names(options):
        engine = engine_or_none(engine_name, character)
        for name, clip in clips.items():
            factor = None if engine is None else closed_loop_factor(engine, clip, 3 if options.quick else 20)
            yield Row(f"{name}, closed loop, real time a core", engine_name, factor, "x", None)
    if "bullet" in engine_names(options) and has_bullet():
        for name, clip in clips.items():
            factor = pd_factor(make_engine("bullet", character, servo="pd"), clip)
            yield Row(f"{name}, PD servos step by step, real time a core", "bullet", factor, "x", None)
    if "mujoco" in engine_names(options):
        for threads in (1, 2):
            yield from fragment_rows(character, clips, threads, options)


def closed_loop_factor(engine: Engine, clip: MotionClip, repeats: int) -> float:
    """Simulated seconds a second, the median of `repeats` runs."""
    program = dense_program(clip, 0.1, clip.duration_s)
    start, steps = start_vector(state(clip, 0)), len(clip) - 1
    run(engine, program, start, 1)
    processor, _ = median_s(lambda: run(engine, program, start, steps), repeats)
    return steps * engine.time_step_s / processor


def pd_factor(engine: Engine, clip: MotionClip) -> float:
    """Simulated seconds a second of one fragment after the other all over a clip, each target its angles one step later."""
    gains = pd_gains(engine.character)
    frames = np.linspace(0, len(clip) - 1 - FRAGMENT_STEPS, 10).astype(int)

    def track() -> None:
        for first in frames:
            engine.reset(state(clip, int(first)))
            for step in range(1, FRAGMENT_STEPS + 1):
                ahead = min(int(first) + round(step * PD_TIME_STEP_S * clip.fps), len(clip) - 1)
                engine.set_pd(clip.angles[ahead], gains.stiffness, gains.damping)
                engine.step()

    processor, _ = median_s(track, 1)
    return len(frames) * FRAGMENT_STEPS * PD_TIME_STEP_S / processor


def fragment_rows(
    character: Character, clips: dict[str, MotionClip], threads: int, options: argparse.Namespace
) -> Iterator[Row]:
    """Fragments that begin all over a clip, for each clip; a core, and all threads together."""
    count, repeats = (60, 1) if options.quick else (1000, 5)
    many = f"{threads} thread{'s' if threads > 1 else ''}"
    with PdRollouts(character, threads=threads) as rollouts:
        for name, clip in clips.items():
            for what, seconds in zip(
                ("real time a core", "real time"), fragments_s(rollouts, clip, count, repeats), strict=True
            ):
                factor = count * FRAGMENT_STEPS * PD_TIME_STEP_S / seconds
                yield Row(f"{name}, PD fragments on {many}, {what}", "mujoco", factor, "x", 0)


def fragments_s(rollouts: PdRollouts, clip: MotionClip, count: int, repeats: int) -> tuple[float, float]:
    """Processor and wall seconds that `count` fragments take."""
    starts, targets = fragments(rollouts, clip, count)
    rollouts.run(starts, targets)
    return median_s(lambda: rollouts.run(starts, targets), repeats)


def fragments(rollouts: PdRollouts, clip: MotionClip, count: int) -> tuple[Array, Array]:
    """Starts (P, K) on a clip, and targets (P, N, J): its angles one step later each, with noise; seed 0."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, len(clip) - round(FRAGMENT_STEPS * PD_TIME_STEP_S * clip.fps), count)
    ahead = np.round(np.arange(1, FRAGMENT_STEPS + 1) * PD_TIME_STEP_S * clip.fps).astype(int)
    starts = np.array([rollouts.snapshot(state(clip, int(frame))) for frame in first])
    targets = clip.angles[np.minimum(first[:, None] + ahead, len(clip) - 1)]
    return starts, targets + NOISE_RAD * rng.standard_normal((count, 1, targets.shape[2]))


def median_s(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Processor seconds of `work`, which threads add to, and wall seconds; medians of `repeats`."""
    processor, wall = [], []
    for _ in range(repeats):
        begun = time.process_time(), time.perf_counter()
        work()
        processor.append(time.process_time() - begun[0])
        wall.append(time.perf_counter() - begun[1])
    return statistics.median(processor), statistics.median(wall)
