"""How long learned graphs keep up: random walks of many bodies at once, undisturbed or under pushes that grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from mocap2ctrl.graph.body import character_of
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.rising import starts_of
from mocap2ctrl.samcon.sampling import Sampler, Task
from mocap2ctrl.samcon.tasks import task_of
from mocap2ctrl.samcon.walks import random_walk
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.types import Array

PUSH_S, PUSH_EVERY_S = 0.2, 2.0
PUSH_GROWTH_N = 10.0
"""Pushes last 0.2 s if nothing else is said, and begin every 2 s; the n-th has |N(0, 10 n)| newtons and a random horizontal way."""


@dataclass(frozen=True, eq=False)
class GrowingPushes:
    """The schedule of Liu 2016, §6.1, for R runs: vectors (R, n, 3) of the pushes, newtons, which last `push_s` each."""

    vectors: Array
    push_s: float = PUSH_S

    @staticmethod
    def draw(runs: int, seconds: float, seed: int, push_s: float = PUSH_S) -> GrowingPushes:
        """Of `runs` runs of up to `seconds`. A run's pushes depend on the seed and its number only."""
        count = int(seconds / PUSH_EVERY_S) + 1
        vectors = np.zeros((runs, count, 3))
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            force = np.abs(rng.standard_normal(count)) * PUSH_GROWTH_N * np.arange(1, count + 1)
            way = rng.uniform(0.0, 2.0 * np.pi, count)
            vectors[run] = np.stack([force * np.cos(way), force * np.sin(way), np.zeros(count)], axis=1)
        return GrowingPushes(vectors, push_s)

    def forces(self, runs: npt.NDArray[np.int64], times_s: Array) -> Array | None:
        """(P, N, 3) on `runs` (P,) at times (P, N) since their begin; None if nobody is pushed."""
        number = np.floor(times_s / PUSH_EVERY_S + 1e-9).astype(int) - 1
        on = (number >= 0) & (times_s - PUSH_EVERY_S * (number + 1) < self.push_s - 1e-9)
        if not on.any():
            return None
        number = np.clip(number, 0, self.vectors.shape[1] - 1)
        return np.asarray(np.where(on[..., None], self.vectors[runs[:, None], number], 0.0))


def survival(
    sampler: Sampler,
    graph: ControlGraph,
    tasks: Mapping[str, Task],
    starts: Mapping[str, Array],
    *,
    runs: int,
    seconds: float,
    seed: int,
    pushes: GrowingPushes | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Array:
    """(R,) seconds until each of R random walks falls, `seconds` if it does not; by the policies alone, without noise.

    Args:
        sampler: simulates.
        graph: whose edges are walked.
        tasks: of all fragments.
        starts: (N, K) starts of each fragment at which a walk may begin; runs take them in turn.
        runs: how many.
        seconds: at which a run ends.
        seed: of the walks.
        pushes: on the bodies.
        progress: is told the share of the time that has passed.
    """
    walks = [random_walk(graph, np.random.default_rng([seed, run, 1])) for run in range(runs)]
    states = np.zeros((runs, next(iter(starts.values())).shape[1]))
    passed, alive = np.zeros(runs), np.ones(runs, dtype=bool)
    while np.any(going := alive & (passed < seconds - 1e-9)):
        index = np.flatnonzero(going)
        steps = [next(walks[run]) for run in index]
        for run, step in zip(index, steps, strict=True):
            if step.restart:
                states[run] = starts[step.fragment][run % len(starts[step.fragment])]
        for name in dict.fromkeys(step.fragment for step in steps):
            group = np.array([run for run, step in zip(index, steps, strict=True) if step.fragment == name])
            _advance(sampler, tasks[name], group, states, passed, alive, pushes)
        progress(min(1.0, float(np.min(passed[index])) / seconds))
    return np.minimum(passed, seconds)


def _advance(
    sampler: Sampler,
    task: Task,
    group: npt.NDArray[np.int64],
    states: Array,
    passed: Array,
    alive: npt.NDArray[np.bool_],
    pushes: GrowingPushes | None,
) -> None:
    """Carries the bodies `group` through a fragment; writes states, times and who stands."""
    times = passed[group, None] + np.arange(task.most_steps) * PD_TIME_STEP_S
    forces = None if pushes is None else pushes.forces(group, times)
    done = sampler.follow(states[group], task, forces)
    states[group], alive[group] = done.finals, done.stands
    passed[group[done.stands]] += done.steps[done.stands] * PD_TIME_STEP_S


@dataclass(frozen=True)
class Trials:
    """How an iteration of learning is tested: by runs under growing pushes and a tenth as many undisturbed ones.

    Attributes:
        runs: that are pushed.
        seconds: at most, each.
        push_s: how long pushes last.
    """

    runs: int = 20
    seconds: float = 120.0
    push_s: float = PUSH_S


def resisting(
    sampler: Sampler,
    graph: ControlGraph,
    tasks: Mapping[str, Task],
    starts: Mapping[str, Array],
    trials: Trials,
    seed: int,
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> tuple[Array, Array]:
    """(R,) seconds to a fall, undisturbed and pushed, of the policies as they are; the same runs each time."""
    few = max(1, trials.runs // 10)
    calm = survival(sampler, graph, tasks, starts, runs=few, seconds=trials.seconds, seed=seed)
    pushed = survival(
        sampler, graph, tasks, starts, runs=trials.runs, seconds=trials.seconds, seed=seed,
        pushes=GrowingPushes.draw(trials.runs, trials.seconds, seed, trials.push_s),
        progress=lambda share: progress("testing", share),
    )  # fmt: skip
    return calm, pushed


class Crowd:
    """Many bodies on one learned graph. A context manager: leaving it ends its threads."""

    def __init__(self, graph: ControlGraph, *, threads: int = 1) -> None:
        """Starts the simulations of a graph's character."""
        character = character_of(graph)
        self._graph = graph
        self._rollouts = PdRollouts(character, pd_gains(character, graph.gains), threads=threads)
        self._sampler = Sampler(self._rollouts, feedback_actions(character), Cost(character))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rollouts.__exit__(kind, error, trace)

    def survival(self, *, runs: int, seconds: float, seed: int, pushed: bool = False) -> Array:
        """(R,) seconds until each of R random walks falls, at most `seconds`; `pushed`: under growing pushes."""
        cost, actions = self._sampler.cost, self._sampler.actions
        tasks = {name: task_of(fragment, cost, actions, 0.0) for name, fragment in self._graph.fragments.items()}
        starts = starts_of(self._graph, self._rollouts, seed)
        pushes = GrowingPushes.draw(runs, seconds, seed) if pushed else None
        return survival(self._sampler, self._graph, tasks, starts, runs=runs, seconds=seconds, seed=seed, pushes=pushes)
