"""Guided SAMCON: the policies guide the sampling, and are fitted to what it finds, again and again (Liu 2016, Alg. 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.samcon.cost import TERMS, Cost
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.mirrors import mirror_pairs, mirrored_actions, mirrored_policy, mirrored_states
from mocap2ctrl.samcon.performance import Trials, resisting
from mocap2ctrl.samcon.regression import regress
from mocap2ctrl.samcon.rising import course_of
from mocap2ctrl.samcon.sampling import Episode, Sampler, SamplingConfig, Task, joined
from mocap2ctrl.samcon.tasks import task_of
from mocap2ctrl.samcon.walks import Step, learning_walk, parts
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array

SAMPLING = "sampling"


@dataclass(frozen=True)
class GuidedConfig:
    """How feedback is learned. What is not the paper's is called ours; docs/learning.md says why.

    Attributes:
        iterations: of sampling and regression.
        visits: least number of times that a fragment is sampled in an iteration; those of its mirror count.
        first_samples, samples: N_s in the first iteration and in the others. Ours: fewer than the paper's 1000 and 200.
        lookahead: ours: a sample is judged by its own end (Eq. 20) and by those of this many fragments that the policies would
            go on with.
        deviation_deg: σ_0, degrees.
        least_deviation_deg: ours: below which no σ of the sampling falls, degrees.
        noise_deg: σ_ε, degrees. Ours: less than the paper's 3.
        push_n: ours: now and then all samples of a walk are pushed alike, for 0.2 s by |N(0, σ)| newtons; σ in the first iteration.
        push_change: factor on σ after an iteration with few roll-backs, and its inverse after one with many.
        bearable: share of pushes that may end in a roll-back for them to be few.
        push_share: of the fragments with which a push begins.
        roll_back: fragments to go back on a failure.
    """

    iterations: int = 10
    visits: int = 60
    first_samples: int = 40
    samples: int = 24
    lookahead: int = 5
    deviation_deg: float = 5.0
    least_deviation_deg: float = 2.5
    noise_deg: float = 1.0
    push_n: float = 80.0
    push_change: float = 1.25
    bearable: float = 0.1
    push_share: float = 0.1
    roll_back: int = 30


@dataclass(frozen=True)
class Iteration:
    """What an iteration came to.

    Attributes:
        number: from 1.
        stage: what was done, `SAMPLING` or another.
        failures: roll-backs; in other stages falls.
        push_n, next_push_n: σ of the pushes in it, and in the next, newtons.
        visited: share of the walk that was got through.
        cost: mean of Eq. 20 over the path, by term.
        deviation_deg: mean of the policies' σ.
        undisturbed_s: mean time to a fall of random walks without disturbance, at most `Trials.seconds`.
        pushed_s: the same under growing pushes: the resisting time.
    """

    number: int
    stage: str
    failures: int
    push_n: float
    next_push_n: float
    visited: float
    cost: Mapping[str, float]
    deviation_deg: float
    undisturbed_s: float
    pushed_s: float


class GuidedLearning:
    """Algorithm 2, lines 5 to 12, an iteration at a time."""

    def __init__(
        self,
        graph: ControlGraph,
        character: Character,
        rollouts: PdRollouts,
        config: GuidedConfig,
        trials: Trials,
        starts: Mapping[str, Array],
        seed: int,
        frozen: Sequence[str] = (),
    ) -> None:
        """Of a graph whose targets are feasible.

        Args:
            graph: fragments that have a policy start from it.
            character: for whom.
            rollouts: of that character, with the graph's gains.
            config: how.
            trials: how good the policies are, how that is told.
            starts: (N, K) where walks may begin, of each fragment with which one does.
            seed: of all that is drawn.
            frozen: names of fragments whose policy stays.
        """
        self.graph, self.config, self.seed = graph, config, seed
        self._trials, self._starts = trials, starts
        self._sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
        self._learned = tuple(name for name in graph.fragments if name not in frozen)
        self._pairs = mirror_pairs(graph, character)
        self.push_n = config.push_n

    def restore(self, history: Sequence[Iteration]) -> None:
        """Goes on after earlier iterations."""
        mine = [iteration for iteration in history if iteration.stage == SAMPLING]
        if mine:
            self.push_n = mine[-1].next_push_n

    def iterate(self, number: int, progress: Callable[[str, float], None] = lambda what, share: None) -> Iteration:
        """Samples a walk with the policies of `graph`, replaces them by new ones, and tests these.

        Raises:
            GraphError: so little of the walk was got through that a fragment was never visited; says which.
        """
        rng = np.random.default_rng([self.seed, 1, number])
        visits = self._visits()
        walk = learning_walk(self.graph, self._learned, visits, 4 * visits * len(self.graph.fragments), rng)
        visited, episode = self._sampled(walk, number, rng, progress)
        push_n = self.push_n
        few = episode.failures <= self.config.bearable * episode.pushes
        self.push_n *= self.config.push_change if few else 1.0 / self.config.push_change
        self.graph = replace(self.graph, fragments=self._updated(visited, episode))
        undisturbed, pushed = resisting(
            self._sampler, self.graph, self._tasks(), self._starts, self._trials, self.seed, progress
        )
        policies = [p for name in self._learned if (p := self.graph.fragments[name].policy) is not None]
        deviation = float(np.mean([np.sqrt(p.variance) for p in policies]))
        means = episode.terms.mean(axis=0)
        return Iteration(
            number=number,
            stage=SAMPLING,
            failures=episode.failures,
            push_n=push_n,
            next_push_n=self.push_n,
            visited=len(episode.actions) / len(walk),
            cost=dict(zip(TERMS, means.tolist(), strict=True)),
            deviation_deg=float(np.degrees(deviation)),
            undisturbed_s=float(undisturbed.mean()),
            pushed_s=float(pushed.mean()),
        )

    def _visits(self) -> int:
        """Occurrences of a fragment in the walk; where all have mirrors, half do."""
        mirrored = all(name in self._pairs for name in self._learned)
        return -(-self.config.visits // 2) if mirrored else self.config.visits

    def _tasks(self) -> dict[str, Task]:
        deviation = np.radians(self.config.deviation_deg)
        tasks = {
            name: task_of(fragment, self._sampler.cost, self._sampler.actions, deviation)
            for name, fragment in self.graph.fragments.items()
        }
        least = np.radians(self.config.least_deviation_deg)
        return {
            name: replace(task, explored=name in self._learned, deviation=np.maximum(task.deviation, least))
            for name, task in tasks.items()
        }

    def _sampled(
        self, walk: Sequence[Step], number: int, rng: np.random.Generator, progress: Callable[[str, float], None]
    ) -> tuple[list[Step], Episode]:
        """Line 7: what of the walk was got through, and how.

        Where it begins anew it does not depend on what was before, so that a fall that cannot be helped ends one part only.
        """
        config, tasks = self.config, self._tasks()

        def tell(before: int, done: int, failures: int) -> None:
            progress("sampling", (before + done) / len(walk))

        visited: list[Step] = []
        episodes: list[Episode] = []
        for part in parts(walk):
            sampling = SamplingConfig(
                samples=config.first_samples if number == 1 else config.samples,
                noise_rad=float(np.radians(config.noise_deg)),
                roll_back=config.roll_back,
                retries=5 + len(part) // 20,
                push_share=config.push_share,
                lookahead=config.lookahead,
                push_n=self.push_n,
            )
            episodes.append(
                self._sampler.walk(
                    course_of(part, tasks, self._starts, rng),
                    sampling,
                    rng,
                    partial(tell, len(visited)),
                )
            )
            visited += part[: len(episodes[-1].actions)]
        return visited, joined(episodes)

    def _updated(self, walk: Sequence[Step], episode: Episode) -> dict[str, ControlFragment]:
        """Lines 8 to 11."""
        names = np.array([step.fragment for step in walk[: len(episode.actions)]])
        fragments = dict(self.graph.fragments)
        done: dict[str, FeedbackPolicy] = {}
        for name in self._learned:
            other = self._pairs.get(name)
            if other in done:
                done[name] = mirrored_policy(done[other], self._sampler.actions)
            else:
                done[name] = self._regressed(name, other, names, episode)
            fragments[name] = replace(fragments[name], policy=done[name])
        return fragments

    def _regressed(self, name: str, mirror: str | None, names: Array, episode: Episode) -> FeedbackPolicy:
        """The policy from a fragment's tuples and its mirror's."""
        own = [episode.elites[i] for i in np.flatnonzero(names == name)]
        states, actions = [s for s, _ in own], [a for _, a in own]
        if mirror is not None:
            other = [episode.elites[i] for i in np.flatnonzero(names == mirror)]
            states += [mirrored_states(s) for s, _ in other]
            actions += [mirrored_actions(a, self._sampler.actions) for _, a in other]
        if not states:
            raise GraphError(f"learning did not get as far as the fragment {name!r}; try more --samples")
        return regress(np.concatenate(states), np.concatenate(actions))
