"""SAMCON, guided or not: a random walk's fragments are sampled one after the other, and the best ends go on (Liu 2016, Alg. 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.graph.fragments import STATE_FEATURES, most_steps
from mocap2ctrl.samcon.cost import WEIGHTS, Cost, Ends
from mocap2ctrl.samcon.features import Actions
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.foot_height import Foot
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array

SUNK = 0.7
"""Share of the reference's height below which a root has fallen."""
TILTED_RAD = 1.0
"""Difference of the root's tilt from the reference's that is a fall."""
SUNK_M = 0.15
"""How far below the reference a root may be however low that is."""
CLEAR_M = 0.03
"""Height from which the reference's trunk, arms and head are clear of the ground."""
LEANS_M = 0.1
"""Height below which one of them is where the reference leans on it: motions of getting up are seldom exact to centimetres."""
PUSH_S = 0.2
"""How long a push lasts, in whole fragments."""
FALLEN = 10.0
"""Cost of a fragment for who has fallen."""
LARGEST_RAD = 1.5
"""Offsets are cut to this, lest a state far from all that was seen asks for the impossible."""


@dataclass(frozen=True, eq=False)
class Task:
    """A fragment as it is sampled.

    Attributes:
        targets: (G, J) of the PD servos, before the action, radians.
        steps_per_target: of the engine.
        reference: the end that is wanted, arrays of length 1.
        gain, offset, deviation: (A, 18), (A,), (A,) of a ~ N(M s + â, diag(deviation²)).
        start: (K,) snapshot at which the body is placed before it, or (M, K), of which each sample takes one at random; None: it
            goes on from where it is.
        explored: whether actions are sampled; else the policy's own is taken, once for each elite (§6.2, learned skills).
        foot: that ends it when it is on the ground, see `ControlFragment.touchdown`; None: it lasts its time.
    """

    targets: Array
    steps_per_target: int
    reference: Ends
    gain: Array
    offset: Array
    deviation: Array
    start: Array | None = None
    explored: bool = True
    foot: Foot | None = None

    @property
    def steps(self) -> int:
        """Of the engine, in all; of the reference where a foot ends it."""
        return len(self.targets) * self.steps_per_target

    @property
    def most_steps(self) -> int:
        """That it may last, and for which pushes are wanted."""
        return most_steps(self.steps, self.foot)


@dataclass(frozen=True)
class SamplingConfig:
    """How a walk is sampled. Pushes and lookahead are not the paper's.

    Attributes:
        samples: N_s a fragment.
        elite_share: of the samples, that are kept: n_s = elite_share N_s.
        noise_rad: σ_ε of the noise that the regression does not know.
        roll_back: fragments to go back when all samples of one fail.
        retries: failures that are borne before a walk is given up.
        push_share: of the fragments, with which a push on all samples begins.
        push_n: σ of the pushes' magnitude |N(0, σ)|, newtons, horizontal, in a random direction, for about 0.2 s.
        lookahead: fragments further on, under the policies alone, whose costs are added to a sample's own.
    """

    samples: int
    elite_share: float = 0.2
    noise_rad: float = 0.0
    roll_back: int = 36
    retries: int = 30
    push_share: float = 0.0
    lookahead: int = 0
    push_n: float = 0.0


@dataclass(frozen=True, eq=False)
class Episode:
    """The best path through a walk, as far as it got.

    Attributes:
        starts, finals: (N, K) snapshots before and after each fragment.
        actions: (N, A) without the noise, radians.
        terms: (N, 8) of the cost, unweighted.
        features: (N, 18) s at the starts.
        failures: how often the walk was rolled back.
        pushes: how many there were.
        complete: whether the walk's end was reached.
        elites: of each fragment s (n, 18) and actions (n, A) of all elites, not only of the path's.
    """

    starts: Array
    finals: Array
    actions: Array
    terms: Array
    features: Array
    failures: int
    pushes: int
    complete: bool
    elites: list[tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Followed:
    """Where a policy has led N bodies through a fragment.

    Attributes:
        actions: (N, A) that it took.
        finals: (N, K) snapshots at the end.
        ends: what is seen of them.
        stands: (N,) who has neither fallen nor diverged.
        steps: (N,) of the engine that it lasted.
    """

    actions: Array
    finals: Array
    ends: Ends
    stands: npt.NDArray[np.bool_]
    steps: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Stage:
    """The elites after one fragment: of each its start, s there, its predecessor's index, its action, its end, its cost."""

    starts: Array
    features: Array
    parents: npt.NDArray[np.int64]
    actions: Array
    finals: Array
    terms: Array
    costs: Array


class Sampler:
    """Samples walks of one character with one kind of actions."""

    def __init__(self, rollouts: PdRollouts, actions: Actions, cost: Cost) -> None:
        self.rollouts, self.actions, self.cost = rollouts, actions, cost

    def walk(
        self,
        tasks: Sequence[Task],
        config: SamplingConfig,
        rng: np.random.Generator,
        progress: Callable[[int, int], None] = lambda done, failures: None,
    ) -> Episode:
        """Algorithm 1 through `tasks`, the first of which has a start, with the paper's roll-back (§5.4)."""
        count = max(1, round(config.elite_share * config.samples))
        start, none = np.atleast_2d(np.asarray(tasks[0].start, float))[:1], np.zeros((1, 0))
        origin = _Stage(start, none, np.zeros(1, np.int64), none, start, none, np.zeros(1))
        stages: list[_Stage] = [origin]
        failures, farthest, pushes = 0, 0, _Pushes(config, rng)
        best: list[_Stage] = stages
        while len(stages) <= len(tasks):
            task = tasks[len(stages) - 1]
            ahead = tasks[len(stages) : len(stages) + config.lookahead]
            stage = self._stage(stages[-1], task, config, count, rng, pushes.during(task), ahead)
            if stage is not None:
                stages.append(stage)
                if len(stages) > farthest:
                    farthest, best = len(stages), list(stages)
                progress(len(stages) - 1, failures)
                continue
            failures += 1
            pushes.forget()
            if failures > config.retries:
                break
            del stages[_kept(len(stages), tasks, config.roll_back) :]
        return self._path(best, len(tasks), failures, pushes.count)

    def _stage(
        self,
        before: _Stage,
        task: Task,
        config: SamplingConfig,
        count: int,
        rng: np.random.Generator,
        push: Array | None,
        ahead: Sequence[Task] = (),
    ) -> _Stage | None:
        """Lines 3 to 10: samples, elites; None if nobody stands."""
        parents = resample(before.costs, config.samples, rng) if task.explored else np.arange(len(before.costs))
        starts = before.finals[parents] if task.start is None else _begins(task.start, len(parents), rng)
        features = self.cost.ends(starts).features
        actions = self.sample(task, features, rng)
        noise = config.noise_rad * rng.standard_normal(actions.shape) if task.explored else 0.0
        forces = None if push is None else np.broadcast_to(push, (len(starts), *push.shape))
        finals, fine, _ = self.execute(starts, task, actions + noise, forces)
        ends = self.cost.ends(finals)
        terms = self.cost.terms(ends, task.reference, actions)
        costs = np.where(fine & standing(ends, task.reference), terms @ WEIGHTS, np.inf)
        if task.explored:
            costs = costs + self._cost_to_come(finals, np.isfinite(costs), ahead)
        order = np.argsort(costs, kind="stable")[:count]
        order = order[np.isfinite(costs[order])]
        if len(order) == 0:
            return None
        return _Stage(
            starts[order], features[order], parents[order], actions[order], finals[order], terms[order], costs[order]
        )

    def _cost_to_come(self, states: Array, stands: npt.NDArray[np.bool_], ahead: Sequence[Task]) -> Array:
        """(N,) the costs of the next fragments, if from states (N, K) on the policies alone act; of who falls, a high one."""
        total, states, stands = np.zeros(len(states)), states.copy(), stands.copy()
        for task in ahead:
            if task.start is not None:
                break
            index = np.flatnonzero(stands)
            if len(index) == 0:
                break
            done = self.follow(states[index], task)
            total[index] += self.cost.terms(done.ends, task.reference, done.actions) @ WEIGHTS
            stands[index] = done.stands
            total[~stands] += FALLEN
            states[index] = done.finals
        return total

    def follow(self, starts: Array, task: Task, pushes: Array | None = None) -> Followed:
        """The fragment from starts (N, K) by its policy alone, without noise, under pushes (N, most_steps, 3)."""
        actions = self.cost.ends(starts).features @ task.gain.T + task.offset
        finals, fine, steps = self.execute(starts, task, actions, pushes)
        ends = self.cost.ends(finals)
        return Followed(actions, finals, ends, fine & standing(ends, task.reference), steps)

    def sample(self, task: Task, features: Array, rng: np.random.Generator) -> Array:
        """(N, A) actions a ~ N(M s + â, Σ) at features (N, 18)."""
        mean = features @ task.gain.T + task.offset
        return np.asarray(mean + task.deviation * rng.standard_normal(mean.shape) if task.explored else mean)

    def execute(
        self, starts: Array, task: Task, actions: Array, pushes: Array | None = None
    ) -> tuple[Array, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Ends (N, K) of the fragment with targets offset by actions (N, A), which did not diverge, and after how many steps."""
        held = task.targets + (np.clip(actions, -LARGEST_RAD, LARGEST_RAD) @ self.actions.hinges)[:, None]
        if task.foot is None:
            done = self.rollouts.run(starts, held, task.steps_per_target, stride=task.steps, pushes=pushes)
        else:
            done = self.rollouts.run_to_touchdown(
                starts, held, task.steps_per_target, task.foot, most_steps=task.most_steps, pushes=pushes
            )
        return done.final, ~done.diverged, done.steps

    def _path(self, stages: list[_Stage], fragments: int, failures: int, pushes: int) -> Episode:
        """Line 12: the predecessors of the best of the last elites."""
        index = int(np.argmin(stages[-1].costs))
        starts, finals, actions, terms = [], [], [], []
        for number in range(len(stages) - 1, 0, -1):
            stage = stages[number]
            finals.append(stage.finals[index])
            actions.append(stage.actions[index])
            terms.append(stage.terms[index])
            starts.append(stage.starts[index])
            index = int(stage.parents[index])
        features = self.cost.ends(np.array(starts[::-1])).features if starts else np.zeros((0, STATE_FEATURES))
        return Episode(
            starts=np.array(starts[::-1]),
            finals=np.array(finals[::-1]),
            actions=np.array(actions[::-1]),
            terms=np.array(terms[::-1]),
            features=features,
            failures=failures,
            pushes=pushes,
            complete=len(stages) > fragments,
            elites=[(stage.features, stage.actions) for stage in stages[1:]],
        )


def _begins(start: Array, count: int, rng: np.random.Generator) -> Array:
    """(count, K) of one start (K,), or of several (M, K) at random."""
    several = np.atleast_2d(start)
    return several[rng.integers(len(several), size=count) if len(several) > 1 else np.zeros(count, np.int64)]


def _kept(stages: int, tasks: Sequence[Task], roll_back: int) -> int:
    """How many of the stages stay, the origin at least, when the last `roll_back` of those that are explored are undone."""
    explored = 0
    while stages > 1 and explored < roll_back:
        stages -= 1
        explored += tasks[stages - 1].explored
    return stages


class _Pushes:
    """Pushes that all samples of some fragments share, so that selection cannot evade them, as it evades noise."""

    def __init__(self, config: SamplingConfig, rng: np.random.Generator) -> None:
        self._config, self._rng = config, rng
        self._left_s, self._force = 0.0, np.zeros(3)
        self.count = 0

    def forget(self) -> None:
        """Ends a push."""
        self._left_s = 0.0

    def during(self, task: Task) -> Array | None:
        """(N, 3) newtons in the steps that a fragment may last; None without a push. A push begins and ends with fragments."""
        if self._left_s <= 0.0 and self._config.push_n > 0.0 and self._rng.random() < self._config.push_share:
            way, force = self._rng.uniform(0.0, 2.0 * np.pi), abs(self._rng.normal(0.0, self._config.push_n))
            self._force = force * np.array([np.cos(way), np.sin(way), 0.0])
            self._left_s = PUSH_S
            self.count += 1
        if self._left_s <= 0.0:
            return None
        self._left_s -= task.steps * PD_TIME_STEP_S
        if self._left_s < 0.25 * task.steps * PD_TIME_STEP_S:
            self._left_s = 0.0
        return np.broadcast_to(self._force, (task.most_steps, 3))


def joined(episodes: Sequence[Episode]) -> Episode:
    """Walks one after the other as one."""
    some = [episode for episode in episodes if len(episode.actions)] or episodes[:1]
    arrays = ("starts", "finals", "actions", "terms", "features")
    return Episode(
        **{name: np.concatenate([getattr(episode, name) for episode in some]) for name in arrays},
        failures=sum(episode.failures for episode in episodes),
        pushes=sum(episode.pushes for episode in episodes),
        complete=all(episode.complete for episode in episodes),
        elites=[elites for episode in episodes for elites in episode.elites],
    )


def standing(ends: Ends, reference: Ends) -> npt.NDArray[np.bool_]:
    """(N,) who has not fallen.

    The root has neither sunk nor tilted far from the reference, and nothing but the legs touches the ground where the reference's
    own is clear of it. Where the reference lies, kneels or leans on its hands, other parts may touch the ground too.
    """
    tilt = np.linalg.norm(ends.features[:, :2] - reference.features[:, :2], axis=1)
    height = reference.features[:, 2]
    up = (ends.features[:, 2] > np.minimum(SUNK * height, height - SUNK_M)) & (tilt < TILTED_RAD)
    clear = CLEAR_M if np.all(reference.lowest > LEANS_M) else np.inf
    return np.asarray(up & np.all((ends.lowest > 0.0) | (reference.lowest < clear), axis=1))


def resample(costs: Array, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """(count,) indices by systematic resampling: each is drawn as often as its weight says, to within one.

    Weights fall exponentially with cost, on the scale of the costs' mean excess over the least.
    """
    excess = costs - costs.min()
    scale = excess.mean()
    weights = np.exp(-excess / scale) if scale > 0.0 else np.ones_like(costs)
    edges = np.cumsum(weights / weights.sum())
    places = (rng.random() + np.arange(count)) / count
    return np.minimum(np.searchsorted(edges, places, side="right"), len(costs) - 1)
