"""How a capture's controller is found: the methods that a user chooses from, as a run of stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from mocap2ctrl.control.closed_loop import start_vector
from mocap2ctrl.control.controller import Controller, ControlState, Exit, TargetPose
from mocap2ctrl.fit.batch import Generation, optimise
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.fit.incremental import Growth, Stage, grow, window_cost, window_terms
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Problem
from mocap2ctrl.fit.refine import refine, refined_weights
from mocap2ctrl.fit.robust import hardened
from mocap2ctrl.fit.segmentation import following_errors
from mocap2ctrl.fit.structure import chain_steps
from mocap2ctrl.fit.warm_start import previous_state, reference_of
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import resample, state
from mocap2ctrl.objective.terms import TermValue

DENSE_FPS = 120.0


def stages(
    pool: EvaluationPool, capture: Capture, on_generation: Callable[[Generation], None], alive: Callable[[], None]
) -> Iterator[Stage]:
    """The stages of the capture's method; the controller of the last is the result."""
    growth, target = replace(growth_of(capture, on_generation), alive=alive), pool.evaluator.objective.target
    if growth.config.method == "batch":
        return _batch(pool, growth)
    steps = chain_steps(len(target), target.fps, growth.config.stage_s, growth.errors)
    found = refine(pool, steps, growth, capture) if growth.config.refine else grow(pool, steps, growth)
    return hardened(pool, found, growth) if growth.config.robust else found


def growth_of(capture: Capture, on_generation: Callable[[Generation], None]) -> Growth:
    """Where the capture's states begin, and how hard they are searched."""
    dense = resample(replace(capture.reference, loop=False), DENSE_FPS)
    # A motion file's clip faces along x from the start; the person in a video may face any way.
    heading = float(rotations.heading(dense.root_orientation[0])) if capture.silhouettes is not None else 0.0
    reference = reference_of(dense, heading, capture.character)
    first = TargetPose(reference.root_rotations[0], dense.angles[0])

    def follow(name: str, begin_s: float, end_s: float, previous: ControlState | None) -> ControlState:
        return reference.state(name, begin_s, end_s)

    def go_on(name: str, begin_s: float, end_s: float, previous: ControlState | None) -> ControlState:
        return previous_state(name, previous, first, capture.character)

    config = capture.config if capture.config.method == "incremental" else capture.config.evolving()
    errors = None
    if config.method == "incremental":
        errors = following_errors(capture.objective_clip, reference, config.stage_s)
    guess = go_on if config.method == "growth" else follow
    return Growth(guess, state(dense, 0), heading, config, stability_frames(capture), on_generation, errors)


def stability_frames(capture: Capture) -> int:
    """For how many frames past the end of its evidence a capture's last pose is to be held (Delta T of Eq. 11)."""
    return round(capture.config.stability_s * capture.config.fps) if capture.reference.ends_standing else 0


def final_terms(pool: EvaluationPool, capture: Capture, controller: Controller) -> tuple[TermValue, ...]:
    """The terms of a controller's E over the whole clip, by the weights that the capture's method ends with."""
    config = capture.config
    with pool.weighing(refined_weights(config) if config.refine else config.weights):
        return window_terms(
            pool.evaluator, controller, len(pool.evaluator.objective.target) - 1 + stability_frames(capture)
        )


def _batch(pool: EvaluationPool, growth: Growth) -> Iterator[Stage]:
    """Algorithm 2 over the whole clip at once: a chain of states of `stage_s` each, all free. Yields one stage."""
    target, config = pool.evaluator.objective.target, growth.config
    ends = [step.end_frame for step in chain_steps(len(target), target.fps, config.stage_s)]
    times = [0.0, *(end / target.fps for end in ends)]
    states = [growth.guess(str(i + 1), times[i], times[i + 1], None) for i in range(len(ends))]
    chain = [
        replace(s, exit=Exit("time", times[i + 1] - times[i], str(i + 2))) if i + 1 < len(states) else s
        for i, s in enumerate(states)
    ]
    controller = Controller(tuple(chain), growth.start, growth.heading, pool.evaluator.prior.name)
    window = ends[-1] + growth.stability_frames
    free = tuple(range(len(chain)))
    start = start_vector(growth.start)
    problem = Problem(controller, free, True, start, 0, window, config.spreads, "batch")
    rngs = [np.random.default_rng([config.seed, 0, i]) for i in range(config.starts)]
    results = optimise(
        pool,
        [problem] * config.starts,
        rngs,
        config.generations * len(ends),
        config.first_sigma,
        growth.on_generation,
    )
    best = min(results, key=lambda r: r.cost)
    cost = window_cost(pool.evaluator, best.controller, window)
    yield Stage(0, 1, ends[-1] / target.fps, best.controller, cost, False)
