"""Many bodies on random walks of a graph, each pushed now and then, who never end: who falls goes on as one who stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.samcon.cost import WEIGHTS
from mocap2ctrl.samcon.performance import PUSH_EVERY_S
from mocap2ctrl.samcon.sampling import FALLEN, Sampler, Task, standing
from mocap2ctrl.samcon.tasks import reference_snapshot
from mocap2ctrl.samcon.walks import Step, random_walk
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.types import Array

Sides = tuple[float, float, float]
"""A number for the front of a body, one for its rear, and one for its left and right."""
PUSH_FEATURES = 7
"""What is told of a body's push: twice x, y and length, and the time until it begins."""
CALM_S = 0.6
"""Who has stood since a push and will be pushed within this time gives its state to one who has fallen."""
LEAST = 0.25
"""Share of the largest push that the least one has; gentler ones tell little."""
UNIT_N = 100.0


@dataclass(frozen=True, eq=False)
class Advanced:
    """What a fragment came to, of N bodies.

    Attributes:
        fell: (N,)
        terms: (N, 8) of the cost of its end, unweighted; NaN of who diverged.
        cost: (N,) Eq. 20, at most that of the fallen.
    """

    fell: npt.NDArray[np.bool_]
    terms: Array
    cost: Array


class PushedBodies:
    """N bodies, at the begins of fragments.

    Attributes:
        snapshots: (N, K) where they are.
        features: (N, 18) s.
        fragment: (N,) number of the fragment that each is to do next, in the graph's order.
        push_s: how long pushes last.
        largest_n: pushes begin every 2 s, and have any direction, and magnitudes of up to this, all alike likely.
        sides: of pushes from front, rear and sides of the body the share of `largest_n` that they have at most; None: all alike.
        pushes: how many have ended so far.
    """

    def __init__(
        self,
        sampler: Sampler,
        graph: ControlGraph,
        tasks: Mapping[str, Task],
        count: int,
        largest_n: float,
        rng: np.random.Generator,
        push_s: float,
        sides: Sides | None = None,
    ) -> None:
        """Bodies at references of `graph`, with `tasks` of all its fragments; all is drawn from `rng`."""
        self._sampler, self._graph, self._rng = sampler, graph, rng
        self._names = list(graph.fragments)
        self._number = {name: i for i, name in enumerate(self._names)}
        self._tasks = [tasks[name] for name in self._names]
        self._starts = np.array([reference_snapshot(graph.fragments[name], 0) for name in self._names])
        self.fragment = rng.integers(0, len(self._names), count)
        self._walks = [self._walk(number) for number in self.fragment]
        self.snapshots = self._starts[self.fragment]
        self.features = sampler.cost.ends(self.snapshots).features
        self.push_s, self.largest_n, self.sides, self.pushes = push_s, largest_n, sides, 0
        self._force = self._drawn(self.snapshots)
        self._until_s = rng.uniform(0.0, PUSH_EVERY_S, count)

    def _walk(self, begin: int) -> Iterator[Step]:
        """What follows the fragment `begin`."""
        walk = random_walk(self._graph, self._rng, self._names[begin])
        next(walk)
        return walk

    def _drawn(self, snapshots: Array) -> Array:
        """(N, 3) forces on bodies (N, K), newtons."""
        count = len(snapshots)
        force, way = self._rng.uniform(LEAST, 1.0, count) * self.largest_n, self._rng.uniform(0.0, 2.0 * np.pi, count)
        if self.sides is not None:
            front, rear, side = self.sides
            along = np.cos(way)
            force *= 1.0 - (1.0 - np.where(along > 0.0, rear, front)) * along**2 - (1.0 - side) * (1.0 - along**2)
            way = way + rotations.heading(snapshots[:, 4:8])
        return np.stack([force * np.cos(way), force * np.sin(way), np.zeros(count)], axis=1)

    def seen_pushes(self) -> Array:
        """(N, 7) each one's push, in its heading frame, in hundreds of newtons.

        x, y and length of what is left of it while it lasts, and of what is to come, the less the later; seconds until it begins.
        """
        force = rotations.rotate(rotations.yaw(-rotations.heading(self.snapshots[:, 4:8])), self._force)[:, :2] / UNIT_N
        lasts = (self._until_s <= 1e-9)[:, None]
        left, soon = (self._until_s / self.push_s + 1.0)[:, None], (1.0 - self._until_s / PUSH_EVERY_S)[:, None]
        parts = [np.where(lasts, force * left, 0.0), np.where(lasts, 0.0, force * soon)]
        lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in parts]
        until = np.maximum(self._until_s, 0.0)[:, None]
        return np.concatenate([parts[0], lengths[0], parts[1], lengths[1], until], axis=1)

    def advance(self, actions: Array) -> Advanced:
        """Performs each one's fragment with actions (N, A)."""
        count = len(actions)
        fell, terms, cost = np.zeros(count, dtype=bool), np.full((count, len(WEIGHTS)), np.nan), np.full(count, FALLEN)
        for number in np.unique(self.fragment):
            group, task = np.flatnonzero(self.fragment == number), self._tasks[number]
            forces = self._forces(group, task.most_steps)
            finals, fine, steps = self._sampler.execute(self.snapshots[group], task, actions[group], forces)
            self._until_s[group] -= steps * PD_TIME_STEP_S
            ends = self._sampler.cost.ends(finals)
            fell[group] = ~(fine & standing(ends, task.reference))
            terms[group] = self._sampler.cost.terms(ends, task.reference, actions[group])
            cost[group] = np.where(fine, np.minimum(terms[group] @ WEIGHTS, FALLEN), FALLEN)
            self.snapshots[group], self.features[group] = finals, ends.features
        self._go_on()
        self._rise(fell)
        return Advanced(fell, terms, cost)

    def _forces(self, group: npt.NDArray[np.int64], steps: int) -> Array:
        """(P, N, 3) on the bodies `group` in the next steps."""
        until = self._until_s[group, None] - np.arange(steps) * PD_TIME_STEP_S
        on = (until <= 1e-9) & (until > 1e-9 - self.push_s)
        return np.asarray(np.where(on[..., None], self._force[group, None], 0.0))

    def _go_on(self) -> None:
        """Everyone's next fragment, and the next push of those whose push has ended."""
        over = self._until_s <= 1e-9 - self.push_s
        self.pushes += int(over.sum())
        self._force[over] = self._drawn(self.snapshots[over])
        self._until_s[over] += PUSH_EVERY_S
        steps = [next(walk) for walk in self._walks]
        self.fragment = np.array([self._number[step.fragment] for step in steps])
        anew = np.array([step.restart for step in steps], dtype=bool)
        if anew.any():
            self.snapshots[anew] = self._starts[self.fragment[anew]]
            self.features[anew] = self._sampler.cost.ends(self.snapshots[anew]).features

    def _rise(self, fell: npt.NDArray[np.bool_]) -> None:
        """The fallen take the states of some who have withstood a push, or of the references if there are none; and soon a push."""
        down, calm = np.flatnonzero(fell), np.flatnonzero(~fell & (self._until_s > 0.0) & (self._until_s < CALM_S))
        if len(down) == 0:
            return
        if len(calm) > 0:
            models = self._rng.choice(calm, len(down))
            self.fragment[down], self.snapshots[down] = self.fragment[models], self.snapshots[models]
        else:
            self.fragment[down] = self._rng.integers(0, len(self._names), len(down))
            self.snapshots[down] = self._starts[self.fragment[down]]
        self.features[down] = self._sampler.cost.ends(self.snapshots[down]).features
        for body in down:
            self._walks[body] = self._walk(self.fragment[body])
        self._force[down] = self._drawn(self.snapshots[down])
        self._until_s[down] = self._rng.uniform(0.0, CALM_S, len(down))
