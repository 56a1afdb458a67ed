"""Hardening: learned policies are changed by natural policy gradients, so that pushed bodies stay up. Not in Liu 2016.

Guided SAMCON rewards all that a walk goes on with alike (Eq. 13). Here an action is weighed by how much better than expected it
went on from there, its advantage Â. For policies N(M s + â, Σ) of fixed Σ the natural gradient (Kakade 2002) is a regression
again, as in Eq. 14: of the actions' deviations from M s + â, weighted by Â, on the states,

    Δ[M â] = Σ Â (a − M s − â) [s 1]ᵀ (Σ [s 1] [s 1]ᵀ)⁻¹

It is scaled to a fixed mean Kullback-Leibler divergence of the new policy from the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.samcon.cost import TERMS, Cost
from mocap2ctrl.samcon.critic import Critic
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.guided import Iteration
from mocap2ctrl.samcon.mirrors import mirror_pairs, mirrored_actions, mirrored_policy, mirrored_states
from mocap2ctrl.samcon.performance import Trials, resisting
from mocap2ctrl.samcon.pushed_bodies import PUSH_FEATURES, PushedBodies, Sides
from mocap2ctrl.samcon.sampling import Sampler, Task
from mocap2ctrl.samcon.tasks import task_of
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array

HARDENING = "hardening"
MIRRORED_PUSH = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
"""Signs of `PushedBodies.seen_pushes` in a mirror."""
FEWEST = 50
"""Actions of a fragment by which its policy is changed."""
RELAXED = 1e-3
"""Added to the variances of standardised states."""


@dataclass(frozen=True)
class HardeningConfig:
    """How policies are hardened.

    Attributes:
        iterations: after each the policies are tested.
        updates: of the policies in an iteration.
        bodies: that are simulated side by side.
        actions: of each fragment, a mirror's counting, for an update.
        deviation_deg: σ of the actions, degrees.
        divergence: mean Kullback-Leibler divergence of an update in the first iteration, of each fragment's policy.
        calming, least_divergence: factor on it from iteration to iteration, and below which it does not fall.
        momentum: share of the earlier updates' direction in the next. One batch's gradient is nearly all chance.
        discount: γ a fragment.
        trace: λ of the generalised advantage estimation (Schulman et al. 2016).
        cost: weight of Eq. 20 beside the 1 for standing in the reward of a fragment.
        push_s: how long a push lasts.
        push_n: largest magnitude of the pushes in the first update, newtons.
        push_sides: shares of it that pushes from front, rear and sides of the body have at most; None: any direction alike.
        fallen: share of the pushes that are to end in a fall; their magnitude is changed accordingly.
    """

    iterations: int = 5
    updates: int = 60
    bodies: int = 240
    actions: int = 1000
    deviation_deg: float = 3.0
    divergence: float = 0.1
    calming: float = 0.5
    least_divergence: float = 0.01
    momentum: float = 0.92
    discount: float = 0.96
    trace: float = 0.93
    cost: float = 0.03
    push_s: float = 0.2
    push_n: float = 250.0
    push_sides: Sides | None = None
    fallen: float = 0.2

    def again(self) -> HardeningConfig:
        """Of policies that were hardened before: smaller steps, which shrink more slowly."""
        return replace(self, divergence=0.5 * self.divergence, calming=self.calming**0.5, least_divergence=0.02)


@dataclass(frozen=True, eq=False)
class _Trace:
    """T fragments of N bodies, all as if of the fragments that are learned, mirrored where a mirror was done.

    Attributes:
        states: (T, N, 18) s.
        inputs: (T + 1, N, 25) of the critic.
        fragment: (T + 1, N) number of the fragment.
        noise: (T, N, 11) a − M s − â.
        rewards: (T, N)
        fell: (T, N)
        terms: (8,) mean terms of the cost of those who stand.
    """

    states: Array
    inputs: Array
    fragment: npt.NDArray[np.int64]
    noise: Array
    rewards: Array
    fell: npt.NDArray[np.bool_]
    terms: Array


class Hardening:
    """An iteration at a time; all that is carried on is the policies, the pushes' magnitude and the length of steps."""

    def __init__(
        self,
        graph: ControlGraph,
        character: Character,
        rollouts: PdRollouts,
        config: HardeningConfig,
        trials: Trials,
        starts: Mapping[str, Array],
        seed: int,
        frozen: Sequence[str] = (),
    ) -> None:
        """Of a graph with policies; arguments as for `GuidedLearning`, and how the policies are tested."""
        self.graph, self.config, self.seed, self.push_n = graph, config, seed, config.push_n
        self.divergence = config.divergence
        self._trials, self._starts = trials, starts
        self._sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
        self._pairs = mirror_pairs(graph, character)
        names = list(graph.fragments)
        firsts = [n for n in names if n not in self._pairs or names.index(n) < names.index(self._pairs[n])]
        self._own = firsts
        self._number = np.array([firsts.index(n if n in firsts else self._pairs[n]) for n in names])
        self._mirrored = np.array([n not in firsts for n in names])
        self._learned = np.array([n not in frozen for n in firsts])

    def restore(self, history: Sequence[Iteration]) -> None:
        """Goes on after earlier iterations."""
        mine = [iteration for iteration in history if iteration.stage == HARDENING]
        for iteration in mine:
            self._carry(iteration.next_push_n)

    def _carry(self, push_n: float) -> None:
        """The next iteration's pushes and steps."""
        self.push_n = push_n
        self.divergence = max(self.config.calming * self.divergence, self.config.least_divergence)

    def iterate(self, number: int, progress: Callable[[str, float], None] = lambda what, share: None) -> Iteration:
        """Changes the policies of `graph`, and tests them; `number` of all iterations."""
        config, rng = self.config, np.random.default_rng([self.seed, 2, number])
        bodies = PushedBodies(
            self._sampler, self.graph, self._tasks(), config.bodies, self.push_n, rng, config.push_s, config.push_sides
        )
        critic = Critic(len(self._own), config.discount)
        policies = self._policies()
        momentum = np.zeros_like(policies)
        length = -(-config.actions * len(self._own) // config.bodies)
        falls, push_n = 0, self.push_n
        terms: list[Array] = []
        for update in range(config.updates):
            before = bodies.pushes
            trace = self._traced(bodies, policies, length, rng)
            fallen = int(trace.fell.sum())
            change = 1.0 + config.fallen - fallen / max(1, bodies.pushes - before)
            bodies.largest_n *= min(max(change, 0.95), 1.05)
            advantages = self._advantages(trace, critic)
            if update > 0:  # the first only teaches the critic
                divergence = self.divergence * (1.0 - config.momentum**update) ** 2
                policies, momentum = self._updated(policies, momentum, trace, advantages, divergence)
            falls += fallen
            terms.append(trace.terms)
            progress("hardening", (update + 1) / config.updates)
        self._carry(bodies.largest_n)
        self.graph = replace(self.graph, fragments=self._fragments(policies))
        undisturbed, pushed = resisting(
            self._sampler, self.graph, self._tasks(), self._starts, self._trials, self.seed, progress
        )
        return Iteration(
            number=number,
            stage=HARDENING,
            failures=falls,
            push_n=push_n,
            next_push_n=self.push_n,
            visited=1.0,
            cost=dict(zip(TERMS, np.mean(terms, axis=0).tolist(), strict=True)),
            deviation_deg=config.deviation_deg,
            undisturbed_s=float(undisturbed.mean()),
            pushed_s=float(pushed.mean()),
        )

    def _tasks(self) -> dict[str, Task]:
        return {
            name: task_of(f, self._sampler.cost, self._sampler.actions, 0.0) for name, f in self.graph.fragments.items()
        }

    def _policies(self) -> Array:
        """(F, 11, 19) [M â] of the fragments that are learned."""
        tasks = self._tasks()
        return np.array([np.concatenate([tasks[n].gain, tasks[n].offset[:, None]], axis=1) for n in self._own])

    def _traced(self, bodies: PushedBodies, policies: Array, length: int, rng: np.random.Generator) -> _Trace:
        """What the bodies did in the next `length` fragments by the policies and Gaussian noise."""
        config, actions = self.config, self._sampler.actions
        rows: list[tuple[npt.NDArray[Any], ...]] = []
        for _ in range(length):
            s, seen, mirrored, number = self._seen(bodies)
            noise = np.radians(config.deviation_deg) * rng.standard_normal((len(s), len(actions.names)))
            noise[~self._learned[number]] = 0.0
            a = (policies[number] @ np.concatenate([s, np.ones((len(s), 1))], axis=1)[..., None])[..., 0] + noise
            done = bodies.advance(np.where(mirrored[:, None], mirrored_actions(a, actions), a))
            rewards = np.where(done.fell, 0.0, 1.0 - config.cost * done.cost)
            rows.append((s, seen, number, noise, rewards, done.fell, np.where(done.fell[:, None], 0.0, done.terms)))
        _, seen, _, number = self._seen(bodies)
        states, inputs, fragments, noises, rewards, fell, terms = (
            np.array(column) for column in zip(*rows, strict=True)
        )
        inputs, fragments = np.concatenate([inputs, seen[None]]), np.concatenate([fragments, number[None]])
        terms = terms.sum(axis=(0, 1)) / max(1, np.count_nonzero(~fell))
        return _Trace(states, inputs, fragments, noises, rewards, fell, terms)

    def _seen(self, bodies: PushedBodies) -> tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """S (N, 18) and the critic's inputs (N, 25), mirrored where the next fragment is a mirror; where; which it is."""
        mirrored, number = self._mirrored[bodies.fragment], self._number[bodies.fragment]
        s = np.where(mirrored[:, None], mirrored_states(bodies.features), bodies.features)
        push = np.where(mirrored[:, None], MIRRORED_PUSH, np.ones(PUSH_FEATURES)) * bodies.seen_pushes()
        return s, np.concatenate([s, push], axis=1), mirrored, number

    def _advantages(self, trace: _Trace, critic: Critic) -> Array:
        """(T, N) generalised advantage estimates, standardised; the critic then learns from what came of the states."""
        config = self.config
        inputs, fragment = trace.inputs.reshape(-1, trace.inputs.shape[2]), trace.fragment.ravel()
        values = critic.values(inputs, fragment).reshape(trace.fragment.shape)
        surprise = trace.rewards + config.discount * np.where(trace.fell, 0.0, values[1:]) - values[:-1]
        advantages, later = np.zeros_like(surprise), np.zeros(surprise.shape[1])
        for t in range(len(surprise) - 1, -1, -1):
            later = surprise[t] + config.discount * config.trace * np.where(trace.fell[t], 0.0, later)
            advantages[t] = later
        known = len(inputs) - surprise.shape[1]
        critic.fit(inputs[:known], fragment[:known], (advantages + values[:-1]).ravel())
        return np.asarray((advantages - advantages.mean()) / advantages.std())

    def _updated(
        self, policies: Array, momentum: Array, trace: _Trace, advantages: Array, divergence: float
    ) -> tuple[Array, Array]:
        """[M â] (F, 11, 19) after a step of the natural gradient by a mean divergence, and its direction."""
        config, policies, momentum = self.config, policies.copy(), momentum.copy()
        for k in np.flatnonzero(self._learned):
            at = trace.fragment[:-1] == k
            if np.count_nonzero(at) < FEWEST:
                continue
            gradient = natural_gradient(trace.states[at], trace.noise[at], advantages[at])
            momentum[k] = config.momentum * momentum[k] + (1.0 - config.momentum) * gradient
            step = trace.states[at] @ momentum[k, :, :-1].T + momentum[k, :, -1]
            moved = 0.5 * np.mean(np.sum((step / np.radians(config.deviation_deg)) ** 2, axis=1))
            policies[k] += momentum[k] * np.sqrt(divergence / moved)
        return policies, momentum

    def _fragments(self, policies: Array) -> dict[str, ControlFragment]:
        """The graph's fragments with the policies (F, 11, 19), mirrored where they are mirrors; variances stay."""
        fragments = dict(self.graph.fragments)
        for k in np.flatnonzero(self._learned):
            name, deviation = self._own[k], np.radians(self.config.deviation_deg)
            before = fragments[name].policy
            variance = np.full(len(policies[k]), deviation**2) if before is None else before.variance
            policy = FeedbackPolicy(policies[k, :, :-1], policies[k, :, -1], variance)
            fragments[name] = replace(fragments[name], policy=policy)
            other = self._pairs.get(name)
            if other is not None:
                fragments[other] = replace(fragments[other], policy=mirrored_policy(policy, self._sampler.actions))
        return fragments


def natural_gradient(states: Array, noise: Array, advantages: Array) -> Array:
    """(11, 19) of [M â]: the regression of advantage-weighted noise (N, 11) on states (N, 18), which are standardised for it."""
    mean, spread = states.mean(axis=0), states.std(axis=0) + 1e-6
    z = np.concatenate([(states - mean) / spread, np.ones((len(states), 1))], axis=1)
    fisher = z.T @ z / len(z) + RELAXED * np.eye(z.shape[1])
    slope = np.linalg.solve(fisher, z.T @ (advantages[:, None] * noise) / len(z)).T
    gain = slope[:, :-1] / spread
    return np.concatenate([gain, (slope[:, -1] - gain @ mean)[:, None]], axis=1)
