"""Open-loop refinement: targets and wanted states become what sampling found feasible, on average (Liu 2016, Alg. 2 line 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, most_steps
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.features import open_loop_actions, snapshot_coordinates
from mocap2ctrl.samcon.mirrors import mirror_pairs, mirrored_actions, mirrored_fragment
from mocap2ctrl.samcon.rising import course_of, starts_of
from mocap2ctrl.samcon.sampling import Episode, Sampler, SamplingConfig, Task
from mocap2ctrl.samcon.tasks import task_of
from mocap2ctrl.samcon.walks import Step, learning_walk
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.foot_height import foot_of
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array

ROLL_BACK, FALL = 8, 3
"""Fragments to go back on a failure, and those before it that led to it."""
PATIENCE, FEWEST = 20, 3
"""Failures of the walk that is averaged before it is taken as far as it got; visits that each fragment must then have."""


@dataclass(frozen=True)
class OpenLoopConfig:
    """How targets are refined.

    The means of the offsets evolve over short walks (as in Liu 2015), which need not be got through at first; a longer one is
    averaged.

    Attributes:
        rounds: of short walks; more, up to four times as many, while they are not got through.
        round_visits: of each fragment in a short walk.
        visits: of each fragment in the walk that is averaged.
        samples: N_s a fragment.
        deviation_deg: σ of the offsets, degrees.
    """

    rounds: int = 8
    round_visits: int = 2
    visits: int = 12
    samples: int = 300
    deviation_deg: float = 5.0


def refine(
    graph: ControlGraph,
    character: Character,
    rollouts: PdRollouts,
    config: OpenLoopConfig,
    seed: int,
    *,
    frozen: Sequence[str] = (),
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> ControlGraph:
    """The graph with targets and references that its own body can follow.

    Args:
        graph: references to follow, and targets to begin with.
        character: for whom.
        rollouts: of that character, with the graph's gains.
        config: how.
        seed: of all that is drawn.
        frozen: names of fragments that stay as they are: those that are learned already.
        progress: is told what is done and its share.

    Raises:
        GraphError: no sample gets through some fragment; says which.
    """
    sampler = Sampler(rollouts, open_loop_actions(character), Cost(character))
    open_names = [name for name in graph.fragments if name not in frozen]
    tasks = {name: _task(fragment, sampler, config, name in frozen) for name, fragment in graph.fragments.items()}
    pairs = {name: other for name, other in mirror_pairs(graph, character).items() if name not in frozen}
    walker = _Walker(sampler, graph, config, seed, [name for name in graph.fragments if name not in frozen], progress)
    for number in range(4 * config.rounds):
        walk, episode = walker.sampled(tasks, number, config.round_visits, patience=2)
        tasks = _moved(sampler, tasks, walk, episode, pairs)
        if episode.complete and number + 1 >= config.rounds:
            break
    walk, episode = walker.sampled(tasks, 4 * config.rounds, config.visits, patience=PATIENCE)
    reached = _until_the_fall(episode)
    visits = Counter(step.fragment for step in walk[: len(reached.actions)])
    missing = [name for name in walker.names if visits[name] < min(FEWEST, config.visits)]
    if missing:
        stuck = missing[0] if episode.complete else walk[len(episode.actions)].fragment
        raise GraphError(
            f"open-loop sampling does not get through the fragment {stuck!r}: all of {config.samples} samples fall, again and "
            "again; try other gains (--gains stunts), or a motion that the body can do"
        )
    walk, episode = walk[: len(reached.actions)], reached
    offsets = mean_offsets(sampler, walk, episode, pairs)
    names = np.array([step.fragment for step in walk])
    averaged = {
        name: averaged_fragment(
            sampler, graph.fragments[name], episode.starts[names == name], episode.actions[names == name], offsets[name]
        )
        for name in open_names
        if name in offsets
    }
    fragments = {name: averaged.get(name, fragment) for name, fragment in graph.fragments.items()}
    return replace(graph, fragments=_symmetric(fragments, pairs, character))


def _task(fragment: ControlFragment, sampler: Sampler, config: OpenLoopConfig, frozen: bool) -> Task:
    """A fragment to be sampled about its targets, or one whose policy is to be followed."""
    deviation = np.radians(config.deviation_deg)
    if frozen:
        return replace(task_of(fragment, sampler.cost, sampler.actions, deviation), explored=False)
    return task_of(replace(fragment, policy=None), sampler.cost, sampler.actions, deviation)


class _Walker:
    """Samples walks of a graph by the tasks as they are."""

    def __init__(
        self,
        sampler: Sampler,
        graph: ControlGraph,
        config: OpenLoopConfig,
        seed: int,
        names: Sequence[str],
        progress: Callable[[str, float], None],
    ) -> None:
        self._sampler, self._graph, self._config, self._seed = sampler, graph, config, seed
        self.names, self._progress = names, progress
        self._starts = starts_of(graph, sampler.rollouts, seed)

    def sampled(self, tasks: Mapping[str, Task], number: int, visits: int, patience: int) -> tuple[list[Step], Episode]:
        """A walk, the `number`-th, and how far it was got through."""
        rng = np.random.default_rng([self._seed, 0, number])
        walk = learning_walk(self._graph, self.names, visits, 4 * visits * len(self._graph.fragments), rng)
        course = course_of(walk, tasks, self._starts, rng)
        config = SamplingConfig(self._config.samples, roll_back=ROLL_BACK, retries=patience)
        done = 4 * self._config.rounds
        return walk, self._sampler.walk(
            course,
            config,
            rng,
            lambda stage, failures: self._progress("open-loop control", (number + stage / len(course)) / (done + 1)),
        )


def _moved(
    sampler: Sampler, tasks: Mapping[str, Task], walk: Sequence[Step], episode: Episode, pairs: Mapping[str, str]
) -> dict[str, Task]:
    """The tasks about the means of what was found; of a walk that ended in a fall, the fall is left out."""
    reached = _until_the_fall(episode)
    offsets = mean_offsets(sampler, walk[: len(reached.actions)], reached, pairs)
    return {
        name: replace(task, offset=offsets[name]) if task.explored and name in offsets else task
        for name, task in tasks.items()
    }


def _until_the_fall(episode: Episode) -> Episode:
    """The episode without the fragments that led to a fall, if it ended in one."""
    kept = len(episode.actions) if episode.complete else max(0, len(episode.actions) - FALL)
    return replace(
        episode,
        starts=episode.starts[:kept],
        finals=episode.finals[:kept],
        actions=episode.actions[:kept],
        terms=episode.terms[:kept],
        features=episode.features[:kept],
    )


def mean_offsets(
    sampler: Sampler, walk: Sequence[Step], episode: Episode, pairs: Mapping[str, str]
) -> dict[str, Array]:
    """(A,) the mean action of each fragment over its occurrences and its mirror's."""
    means = {}
    names = np.array([step.fragment for step in walk[: len(episode.actions)]])
    for name in dict.fromkeys(names.tolist()):
        values = [episode.actions[names == name]]
        if name in pairs:
            values.append(mirrored_actions(episode.actions[names == pairs[name]], sampler.actions))
        means[name] = np.concatenate(values).mean(axis=0)
    return means


def averaged_fragment(
    sampler: Sampler, fragment: ControlFragment, starts: Array, actions: Array, offset: Array
) -> ControlFragment:
    """The fragment with targets moved by an offset (A,), and with the mean of its simulated states.

    Where a foot ends it, each simulation counts back from its own end: before its begin it is as at its begin.

    Args:
        sampler: simulates.
        fragment: what is performed.
        starts: (N, K) states at its begins.
        actions: (N, A) with which it is performed from there.
        offset: (A,) that becomes part of the targets.
    """
    steps = round(fragment.frame_s / PD_TIME_STEP_S)
    held = fragment.targets + (actions @ sampler.actions.hinges)[:, None]
    first, _ = snapshot_coordinates(starts, fragment.targets.shape[1])
    if fragment.touchdown is None:
        done = sampler.rollouts.run(starts, held, steps, stride=steps)
        qpos = np.concatenate([first[:, None], done.qpos], axis=1)
    else:
        count = len(fragment.targets) * steps
        foot = foot_of(sampler.rollouts.character, fragment.touchdown)
        most = most_steps(count, fragment.touchdown)
        done = sampler.rollouts.run_to_touchdown(starts, held, steps, foot, most_steps=most)
        at = np.maximum(done.steps[:, None] - count + np.arange(0, count + 1, steps), 0)
        qpos = np.concatenate([first[:, None], done.qpos], axis=1)[np.arange(len(at))[:, None], at]
    turn = rotations.yaw(-rotations.heading(qpos[:, 0, 3:7]))[:, None]
    below = qpos[:, :1, :3] * np.array([1.0, 1.0, 0.0])
    orientation = rotations.multiply(turn, qpos[..., 3:7])
    orientation = orientation * np.where(np.sum(orientation * orientation[:1], axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
    return replace(
        fragment,
        targets=fragment.targets + offset @ sampler.actions.hinges,
        reference_root_position=rotations.rotate(turn, qpos[..., :3] - below).mean(axis=0),
        reference_root_orientation=rotations.normalise(orientation.mean(axis=0)),
        reference_angles=qpos[..., 7:].mean(axis=0),
    )


def _symmetric(
    fragments: Mapping[str, ControlFragment], pairs: Mapping[str, str], character: Character
) -> dict[str, ControlFragment]:
    """Fragments with mirrors become the mean of themselves and of the mirrors' mirrors, and so exactly symmetric."""
    done = dict(fragments)
    for name, other in pairs.items():
        if list(fragments).index(name) > list(fragments).index(other):
            continue
        one, two = fragments[name], mirrored_fragment(fragments[other], name, character)
        sign = np.sign(np.sum(one.reference_root_orientation * two.reference_root_orientation, axis=1, keepdims=True))
        mean = replace(
            one,
            targets=0.5 * (one.targets + two.targets),
            reference_root_position=0.5 * (one.reference_root_position + two.reference_root_position),
            reference_root_orientation=rotations.normalise(
                one.reference_root_orientation + sign * two.reference_root_orientation
            ),
            reference_angles=0.5 * (one.reference_angles + two.reference_angles),
        )
        done[name], done[other] = mean, mirrored_fragment(mean, other, character)
    return done
