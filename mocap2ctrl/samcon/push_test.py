"""The largest push that a learned cycle of a graph survives, from each side: Vondrak's protocol (§6.1), as for captures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import GraphError
from mocap2ctrl.evaluation.push_test import (
    MAX_FORCE_N,
    PERIOD_S,
    PHASES,
    PUSH_S,
    SECONDS,
    STEP_N,
    Case,
    PushTest,
    Schedule,
    check_steps,
    largest_survived,
)
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.body import character_of
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph
from mocap2ctrl.graph.learned import rings
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.sampling import Sampler
from mocap2ctrl.samcon.tasks import reference_snapshot, task_of
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.environment import LEVEL
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.simulation.pushes import force_from
from mocap2ctrl.types import Array


@dataclass(frozen=True)
class _Push:
    """A push again and again: from a side of the body as it faces when each begins."""

    side: str
    newtons: float
    start_s: float

    def at(self, moments_s: Array) -> tuple[npt.NDArray[np.bool_], bool]:
        """(N,) at which of some moments it is on, and whether one of them is the first of a push."""
        since_s = (moments_s - self.start_s + 1e-9) % PERIOD_S
        on = (moments_s > self.start_s - 1e-9) & (since_s < PUSH_S)
        return on, bool(np.any(on & (since_s < PD_TIME_STEP_S)))


def learned_cycle(graph: ControlGraph, skill: str | None = None) -> tuple[ControlFragment, ...]:
    """The fragments of a learned cycle, in order: of `skill`, or of the first that the graph has.

    Raises:
        GraphError: there is none.
    """
    cycles = {name: tuple(graph.fragments[piece] for piece in ring) for name, ring in rings(graph).items()}
    learned = {name: pieces for name, pieces in cycles.items() if all(piece.policy is not None for piece in pieces)}
    if not learned:
        raise GraphError("no skill of the graph is a learned cycle, which push-test pushes; mocap2ctrl learn learns it")
    if skill is not None and skill not in learned:
        raise GraphError(f"the graph has no learned cycle {skill!r}; there are {', '.join(learned)}")
    return learned[skill] if skill is not None else next(iter(learned.values()))


def push_test_graph(
    graph: ControlGraph,
    *,
    skill: str | None = None,
    torque_limit: float | None = None,
    step_n: float = STEP_N,
    max_force_n: float = MAX_FORCE_N,
    workers: int = 1,
    on_progress: Callable[[float, str], None] = lambda share, what: None,
) -> PushTest:
    """Pushes a learned cycle from front, rear, left and right, harder and harder, until it falls.

    Unlike a capture's, a graph's body does not keep its heading: each push comes from a side of the body as it faces when the push
    begins. Fallen is who `samcon.sampling.standing` says.

    Args:
        graph: what was learned.
        skill: which of its cycles; the first if not given.
        torque_limit: factor on the torque bounds.
        step_n: from one force to the next, N.
        max_force_n: where the search ends, N.
        workers: threads; they do not change the result.
        on_progress: told the share that is done, and of what.

    Raises:
        ConfigError: a setting is outside its range.
        GraphError: there is no such learned cycle.
    """
    check_steps(step_n, max_force_n)
    ring, character = learned_cycle(graph, skill), character_of(graph)
    gains = pd_gains(character, graph.gains)
    with PdRollouts(character, gains, threads=workers, torque_scale=torque_limit or 1.0) as rollouts:
        walker = _Walker(ring, Sampler(rollouts, feedback_actions(character), Cost(character)))
        on_progress(0.0, "without a push")
        alone = float(walker.survival([None])[0])
        cycle_s = sum(fragment.duration_s for fragment in ring)
        starts = tuple(cycle_s * (1.0 + phase / PHASES) for phase in range(PHASES))
        schedule = Schedule(starts, PERIOD_S, SECONDS, cycle_s)
        by_phase: dict[str, tuple[float, ...]] = {}
        simulations = 0
        if alone >= SECONDS:

            def stand(tried: Sequence[tuple[Case, int]]) -> list[bool]:
                pushes = [_Push(side, n * step_n, starts[phase]) for (side, phase), n in tried]
                return [bool(t >= SECONDS) for t in walker.survival(pushes)]

            by_phase, simulations = largest_survived(stand, PHASES, step_n, max_force_n, on_progress)
    least = {side: min(phases) for side, phases in by_phase.items()}
    return PushTest(
        least.get("front"), least.get("rear"), least.get("left"), least.get("right"),
        protocol=f"{schedule.words}, steps of {step_n:g} N" if by_phase else f"none: it falls at {alone:.2f} s without a push",
        cyclic=True, undisturbed_s=alone, seconds=SECONDS, cycle_s=cycle_s, by_phase_n=by_phase, environment=LEVEL.name,
        step_n=step_n, max_force_n=max_force_n, simulations=1 + simulations,
    )  # fmt: skip


class _Walker:
    """Many bodies on one cycle, each in the same fragment of it as the others."""

    def __init__(self, ring: Sequence[ControlFragment], sampler: Sampler) -> None:
        self._sampler = sampler
        self._tasks = [task_of(fragment, sampler.cost, sampler.actions, 0.0) for fragment in ring]
        self._start = reference_snapshot(ring[0], 0)

    def survival(self, pushes: Sequence[_Push | None]) -> Array:
        """(P,) seconds until the fall of bodies that are pushed so, at most `SECONDS`."""
        states, steps = np.tile(self._start, (len(pushes), 1)), np.zeros(len(pushes), np.int64)
        times, going, forces = np.full(len(pushes), SECONDS), np.arange(len(pushes)), np.zeros((len(pushes), 3))
        for task in cycle(self._tasks):
            going = going[steps[going] * PD_TIME_STEP_S < SECONDS]
            if not len(going):
                return times
            moments = steps[going, None] * PD_TIME_STEP_S + np.arange(task.most_steps) * PD_TIME_STEP_S
            pushed = np.zeros((len(going), task.most_steps, 3))
            for row, number in enumerate(going):
                push = pushes[int(number)]
                if push is not None:
                    on, begins = push.at(moments[row])
                    if begins:
                        forces[number] = force_from(
                            push.side, push.newtons, float(rotations.heading(states[number, 4:8]))
                        )
                    pushed[row, on] = forces[number]
            done = self._sampler.follow(states[going], task, pushed)
            steps[going] += done.steps
            states[going] = done.finals
            times[going[~done.stands]] = np.minimum(steps[going] * PD_TIME_STEP_S, SECONDS)[~done.stands]
            going = going[done.stands]
        return times
