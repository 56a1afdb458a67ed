"""Ways between learned cycles are opened: their drafts are sampled until the policies alone get through. Not in Liu 2016.

There all is sampled in an open loop first. A body that goes from a run to a walk has to brake by 3 m/s on one leg after the other,
and no open loop gets through that. The policies of both cycles know how to stay up: their blend (`graph.ways`) guides the
sampling, the cycle that is arrived in is looked ahead into, and only what is added to the blend's actions evolves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.graph.fragments import ACTION_FEATURES, ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.graph.learned import rings
from mocap2ctrl.graph.ways import Way, drafted, moved, ways
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.open_loop import OpenLoopConfig, averaged_fragment
from mocap2ctrl.samcon.sampling import Sampler, SamplingConfig, Task
from mocap2ctrl.samcon.tasks import reference_snapshot, task_of
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array

PERIODS, SETTLED = 23, 3
"""Of the first cycle, whose states at the way's begin are its starts; those before it has settled are left out."""
WELL = 0.95
"""Share of the starts from which the policies alone must get through a way, and stay up after it."""
SHIFTS = 2
"""Fragments by which a way that nobody gets through is begun and ended earlier or later, at most."""


@dataclass(frozen=True)
class JoiningConfig:
    """How ways are opened.

    Attributes:
        rounds: of sampling and averaging, at most.
        walks: that are sampled in one.
        samples: N_s a fragment.
        deviation_deg: σ of the actions, degrees.
        change: share of what was found that the actions take over.
        lookahead: fragments further on whose costs count.
        beyond: fragments of the second cycle that a walk goes on for.
        stands: of them, after which a way has been got through.
    """

    rounds: int = 12
    walks: int = 2
    samples: int = 80
    deviation_deg: float = 6.0
    change: float = 0.5
    lookahead: int = 8
    beyond: int = 24
    stands: int = 40


def joined(
    graph: ControlGraph,
    character: Character,
    rollouts: PdRollouts,
    config: OpenLoopConfig,
    seed: int,
    *,
    frozen: Sequence[str] = (),
    joining: JoiningConfig = JoiningConfig(),
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> ControlGraph:
    """The graph with policies for the ways between learned cycles that lack them; an `Opening`.

    A way that cannot be opened where it is, is begun or ended a fragment or two earlier or later.

    Args:
        graph: whose cycles are learned.
        character: for whom.
        rollouts: of that character, with the graph's gains.
        config: of open-loop control, of which there is none here.
        seed: of all that is drawn.
        frozen: names of fragments that stay as they are.
        joining: how.
        progress: is told what is done and its share.

    Raises:
        GraphError: nobody gets through a way; says which.
    """
    sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
    open_ways = [way for way in ways(graph) if not set(way.chain) & set(frozen)]
    for number, way in enumerate(open_ways):
        rng = np.random.default_rng([seed, 3, number])
        opener = _Opener(sampler, graph, joining, rng)

        def tell(share: float, number: int = number) -> None:
            progress("transitions", (number + share) / len(open_ways))

        tell(0.0)
        found = opener.opened(way, tell)
        if found is None:
            raise GraphError(
                f"nobody gets from {way.source!r} to {way.target!r} by the transition {way.name!r}, wherever it begins; give "
                "another with export-graph --transition"
            )
        graph = found
    return graph


class _Opener:
    """Tries the places of one way, the given one first."""

    def __init__(self, sampler: Sampler, graph: ControlGraph, config: JoiningConfig, rng: np.random.Generator) -> None:
        self._sampler, self._graph, self._config, self._rng = sampler, graph, config, rng
        self._rings = rings(graph)

    def opened(self, way: Way, progress: Callable[[float], None]) -> ControlGraph | None:
        """The graph with the way's policies; None if nobody gets through, wherever it begins and ends."""
        starts = self._settled(way.source)
        first, second = len(self._rings[way.source]), len(self._rings[way.target])
        shifts = sorted(product(range(-SHIFTS, SHIFTS + 1), repeat=2), key=lambda s: (abs(s[0]) + abs(s[1]), s))
        for number, (sooner, later) in enumerate(shifts):
            graph, place = moved(self._graph, way, (way.leave + sooner) % first, (way.arrive + later) % second)
            chain = drafted(graph, place)
            tasks = self._evolved(chain, self._onward(place), starts[place.leave], patient=number == 0)
            progress((number + 1) / len(shifts))
            if tasks is not None:
                return replace(
                    graph, fragments={**graph.fragments, **self._averaged(chain, tasks, starts[place.leave])}
                )
        return None

    def _task(self, fragment: ControlFragment) -> Task:
        return replace(task_of(fragment, self._sampler.cost, self._sampler.actions, 0.0), explored=False)

    def _settled(self, cycle: str) -> list[Array]:
        """(N, K) states at the begin of each fragment of a learned cycle, undisturbed."""
        tasks = [self._task(self._graph.fragments[name]) for name in self._rings[cycle]]
        state = reference_snapshot(self._graph.fragments[self._rings[cycle][0]], 0)[None]
        states: list[list[Array]] = [[] for _ in tasks]
        for period in range(PERIODS):
            for at, task in zip(states, tasks, strict=True):
                if period >= SETTLED:
                    at.append(state[0])
                state = self._sampler.follow(state, task).finals
        return [np.array(at) for at in states]

    def _evolved(
        self, chain: Mapping[str, ControlFragment], onward: Sequence[Task], starts: Array, *, patient: bool
    ) -> list[Task] | None:
        """The tasks of a way with actions by which the policies alone get through, and `onward`; None if none are found.

        Where nobody gets through in the first round it is given up, unless `patient`.
        """
        config, deviation = self._config, np.radians(self._config.deviation_deg)
        tasks = [
            replace(self._task(f), explored=True, deviation=np.full(ACTION_FEATURES, deviation)) for f in chain.values()
        ]
        for number in range(config.rounds):
            if self._share(tasks, onward, starts) >= WELL:
                return tasks
            found = [self._found(tasks, onward, starts) for _ in range(config.walks)]
            offsets = [each for each in found if each is not None]
            if not offsets and number == 0 and not patient:
                return None
            if offsets:
                mean = np.mean(offsets, axis=0)
                tasks = [
                    replace(task, offset=task.offset + config.change * (wanted - task.offset))
                    for task, wanted in zip(tasks, mean, strict=True)
                ]
        return tasks if self._share(tasks, onward, starts) >= WELL else None

    def _found(self, tasks: Sequence[Task], onward: Sequence[Task], starts: Array) -> Array | None:
        """(F, 11) â of the best sampled walk through the way and on; None if nobody got through the way."""
        config = self._config
        course = [*tasks, *onward[: config.beyond]]
        course[0] = replace(course[0], start=starts[self._rng.integers(len(starts))])
        sampling = SamplingConfig(config.samples, roll_back=5, retries=2, lookahead=config.lookahead)
        done = self._sampler.walk(course, sampling, self._rng)
        if len(done.actions) < len(tasks):
            return None
        return np.array([done.actions[k] - task.gain @ done.features[k] for k, task in enumerate(tasks)])

    def _onward(self, way: Way) -> Sequence[Task]:
        """The second cycle from where the way arrives, for as long as anyone asks."""
        ring = self._rings[way.target]
        around = [self._task(self._graph.fragments[name]) for name in (*ring[way.arrive :], *ring[: way.arrive])]
        return around * (1 + max(self._config.stands, self._config.beyond) // len(ring))

    def _share(self, tasks: Sequence[Task], onward: Sequence[Task], starts: Array) -> float:
        """Of the starts, from which the policies alone get through the way and stay up after it."""
        states = starts
        for task in [*tasks, *onward[: self._config.stands]]:
            done = self._sampler.follow(states, task)
            states = done.finals[done.stands]
            if len(states) == 0:
                break
        return len(states) / len(starts)

    def _averaged(
        self, chain: Mapping[str, ControlFragment], tasks: Sequence[Task], states: Array
    ) -> dict[str, ControlFragment]:
        """The fragments with the policies of `tasks`, whose mean actions become part of the targets, and with mean states."""
        averaged = {}
        for (name, fragment), task in zip(chain.items(), tasks, strict=True):
            done = self._sampler.follow(states, task)
            mean = done.actions.mean(axis=0)
            policy = FeedbackPolicy(task.gain, task.offset - mean, task.deviation**2)
            performed = averaged_fragment(self._sampler, fragment, states, done.actions, mean)
            averaged[name] = replace(performed, policy=policy)
            states = done.finals[done.stands]
        return averaged
