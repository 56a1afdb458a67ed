"""Algorithm 3: a chain of states grown over an expanding window, the last one or two states optimised in each stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mocap2ctrl.control.controller import EXIT_TIME_RANGE_S, Controller, ControlState, Exit
from mocap2ctrl.fit.batch import BatchResult, Generation, descend, optimise
from mocap2ctrl.fit.config import FitConfig
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Evaluator, Problem, mean_terms, states_problem
from mocap2ctrl.fit.structure import Step
from mocap2ctrl.objective.terms import TermValue, total
from mocap2ctrl.types import Array, SimState

GuessState = Callable[[str, float, float, ControlState | None], ControlState]
"""From a state's name, the seconds at which it begins and ends, and the state before it (None: it is the first) to a guess."""

WAIT_S = 0.2
"""How long past its time a state waits for the contact that ends it."""

OPENED_AGAIN = 2
"""States that are opened again, beside those that a stage optimises, where the controller is astray."""

OPENED = " again"
"""End of the labels of searches that open states again."""

AGAIN = 2**29
"""In the seed of a last descent, where those of a stage's searches have the number of the start."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One finished stage.

    Attributes:
        index: number, from 0.
        stages: how many there will be.
        end_s: end of the window, seconds.
        controller: the best so far.
        cost: its E over the whole window; after growth, by the weights of refinement.
        added_state: whether the stage added one.
        told: what became of a refinement, for people; empty for growth.
        label: of the searches in whose places the controller is judged, where these are not the fit's own.
    """

    index: int
    stages: int
    end_s: float
    controller: Controller
    cost: float
    added_state: bool
    told: str = ""
    label: str = ""


@dataclass(frozen=True, eq=False)
class Growth:
    """What growing a controller needs beside a pool and the stages.

    Attributes:
        guess: proposes each new state.
        start: first pose and velocity, optimised with the first state.
        heading: of the capture.
        config: how hard to try.
        stability_frames: frames past the end of the evidence in which the last stage also looks (Eq. 11).
        on_generation: told of each generation.
        errors: by which states are placed (`fit.structure.chain_steps`); None where they are equal.
        alive: called now and then by long work that has no generations; it may raise.
    """

    guess: GuessState
    start: SimState
    heading: float
    config: FitConfig
    stability_frames: int
    on_generation: Callable[[Generation], None]
    errors: Array | None = None
    alive: Callable[[], None] = lambda: None


def grow(pool: EvaluationPool, steps: Sequence[Step], growth: Growth) -> Iterator[Stage]:
    """Yields the controller after each stage; the last is the result.

    Where some steps end on contacts the structure is given, and no stage is tried without a new state. After a stage that went
    astray one search more opens `OPENED_AGAIN` states more, and none goes without a new one: what leads astray was frozen before
    it was seen to. That is ours.
    """
    config, guess = growth.config, growth.guess
    evaluator = pool.evaluator
    fps = evaluator.objective.target.fps
    first = guess("1", 0.0, steps[0].end_frame / fps, None)
    controller = Controller((first,), growth.start, growth.heading, evaluator.prior.name)
    cost = np.inf
    try_without = config.try_without and not any(step.contact for step in steps)
    lost = False
    wider = replace(config, free_states=config.free_states + OPENED_AGAIN)
    tell = growth.on_generation
    growth = replace(growth, on_generation=lambda g: tell(replace(g, stages=len(steps))))
    for index, (end, _) in enumerate(steps):
        begin = steps[index - 1].end_frame if index > 0 else 0
        window = end + (growth.stability_frames if index == len(steps) - 1 else 0)
        label = f"{end / fps:.2f} s"
        proposal = controller if index == 0 else with_new_state(controller, guess, steps[: index + 1], fps)
        problems = [last_states_problem(evaluator, proposal, begin, window, config, label)] * config.starts
        if lost:
            problems.append(last_states_problem(evaluator, proposal, begin, window, wider, label))
        elif index > 0 and try_without and may_go_on(controller, steps[: index + 1], len(steps), fps):
            problems.append(last_states_problem(evaluator, controller, begin, window, config, label))
        rngs = [np.random.default_rng([config.seed, index, i]) for i in range(len(problems))]
        results = search(pool, problems, rngs, config, growth.on_generation)
        previous = len(controller.states)
        controller, cost = _best(evaluator, results, window)
        lost = astray(evaluator, controller, steps[index - 2].end_frame if index > 1 else 0, end, config)
        if lost and index == len(steps) - 1:
            problem = last_states_problem(evaluator, controller, begin, window, wider, label)
            problem = replace(problem, label=opened_label(problem.free))
            again = descended(pool, problem, growth, [index, AGAIN])
            controller, cost = min(
                (controller, cost), (again, window_cost(evaluator, again, window)), key=lambda c: c[1]
            )
        added = index > 0 and len(controller.states) > previous
        yield Stage(index, len(steps), end / fps, controller, cost, added)


def opened_label(free: Sequence[int]) -> str:
    """Label of a search over states in a row that were frozen before."""
    return f"states {free[0] + 1} to {free[-1] + 1}{OPENED}"


def astray(evaluator: Evaluator, controller: Controller, first_frame: int, end_frame: int, config: FitConfig) -> bool:
    """Whether the markers are farther than `astray_cm` from the reference's between two frames, in the root mean square."""
    if config.astray_cm == 0.0:
        return False
    squared = [
        float(evaluator.objective.marker_distances(rollouts, first_frame, end_frame).mean())
        for rollouts in evaluator.rollouts(controller, end_frame)
    ]
    return bool(evaluator.weights @ squared / evaluator.weights.sum() > config.astray_cm**2)


def descended(pool: EvaluationPool, problem: Problem, growth: Growth, seeds: list[int]) -> Controller:
    """Where a descent from a problem's own controller arrives."""
    config = growth.config
    if config.descents == 0:
        return problem.controller
    rng = np.random.default_rng([config.seed, *seeds])
    start = np.zeros(len(pool.evaluator.spec(problem)))
    (found,) = descend(pool, [problem], [start], [rng], config.descents, growth.on_generation)
    return found.controller


def search(
    pool: EvaluationPool,
    problems: Sequence[Problem],
    rngs: Sequence[np.random.Generator],
    config: FitConfig,
    on_generation: Callable[[Generation], None],
) -> list[BatchResult]:
    """CMA-ES for each problem (Algorithm 2), and a descent from where it arrives, which is not the paper's."""
    planned = config.generations + 2 * config.descents

    def tell(begun: int) -> Callable[[Generation], None]:
        return lambda generation: on_generation(generation.within(begun, planned))

    evolved = optimise(pool, problems, rngs, config.generations, config.first_sigma, tell(0))
    if config.descents == 0:
        return evolved
    arrived = [result.z for result in evolved]
    return descend(pool, problems, arrived, rngs, config.descents, tell(config.generations))


def with_new_state(controller: Controller, guess: GuessState, steps: Sequence[Step], fps: float) -> Controller:
    """S+ of Algorithm 3, line 6: the last state gets an exit to a new last state, where the last but one of `steps` ends.

    On time, or on contact; then it waits `WAIT_S` for it, and goes on.
    """
    begin_s, end_s = steps[-2].end_frame / fps, steps[-1].end_frame / fps
    name = str(len(controller.states) + 1)
    time_s = begin_s - _entered_s(controller, steps, fps)
    if steps[-2].contact:
        exit_ = Exit(steps[-2].contact, time_s + WAIT_S, name)
    else:
        exit_ = Exit("time", float(np.clip(time_s, *EXIT_TIME_RANGE_S)), name)
    last = replace(controller.states[-1], exit=exit_)
    return controller.with_states([*controller.states[:-1], last, guess(name, begin_s, end_s, last)])


def may_go_on(controller: Controller, steps: Sequence[Step], stages: int, fps: float) -> bool:
    """Whether the last state may act to the end of the last of `steps`, of so many stages: an exit on time can end it there."""
    return (
        len(steps) == stages or steps[-1].end_frame / fps - _entered_s(controller, steps, fps) <= EXIT_TIME_RANGE_S[1]
    )


def _entered_s(controller: Controller, steps: Sequence[Step], fps: float) -> float:
    """When the last state is entered: the times of the exits since the last contact, or the beginning, after it."""
    before = controller.states[:-1]
    landed = max((i for i, state in enumerate(before) if state.exit.kind != "time"), default=-1)
    begin_s = steps[landed].end_frame / fps if landed >= 0 else 0.0
    return begin_s + sum(state.exit.time_s for state in before[landed + 1 :])


def last_states_problem(
    evaluator: Evaluator, controller: Controller, begin_frame: int, end_frame: int, config: FitConfig, label: str
) -> Problem:
    """Optimise the last states over the window that begins when the first of them is entered; earlier ones are fixed.

    Where the reference flies from `begin_frame` on one more is free: in the air it is too late to change what the body has left
    the ground with.
    """
    flies = evaluator.objective.flies(begin_frame, end_frame)
    first = max(len(controller.states) - config.free_states - flies, 0)
    free = tuple(range(first, len(controller.states)))
    return states_problem(evaluator, controller, free, end_frame, config.spreads, label)


def window_cost(evaluator: Evaluator, controller: Controller, end_frame: int) -> float:
    """E of a controller, simulated from the start over frames 0 to `end_frame`; structures of any size compare."""
    return float(total(window_terms(evaluator, controller, end_frame))[0])


def window_terms(evaluator: Evaluator, controller: Controller, end_frame: int) -> tuple[TermValue, ...]:
    """The terms of which `window_cost` is the sum; a population of one."""
    found = [
        evaluator.objective.terms(rollouts, np.zeros(1), 0, end_frame)
        for rollouts in evaluator.rollouts(controller, end_frame)
    ]
    return mean_terms(found, evaluator.weights)


def _best(evaluator: Evaluator, results: list[BatchResult], end_frame: int) -> tuple[Controller, float]:
    """The result with the lowest E over the whole window; of equals the one with fewer states."""
    costs = [window_cost(evaluator, r.controller, end_frame) for r in results]
    order = sorted(range(len(results)), key=lambda i: (costs[i], len(results[i].controller.states)))
    return results[order[0]].controller, costs[order[0]]
