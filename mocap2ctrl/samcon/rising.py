"""Where rising begins: how a body lies after it was pushed over and has taken a rising skill's first pose (Liu 2016, §6.2).

The paper: rising skills "have only one-way connections with the graph and we learn them in a separate procedure. We create learning
cycles by pushing the character on the trunk in suitable directions and then invoke a ragdoll controller that tracks the starting
pose of the target rising skill. When the difference between the simulated pose and this starting pose is small enough, the rising
skill is activated".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.core import beginnings, comes_back
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph
from mocap2ctrl.samcon.features import snapshot_coordinates
from mocap2ctrl.samcon.sampling import Task
from mocap2ctrl.samcon.tasks import reference_snapshot
from mocap2ctrl.samcon.walks import Step, first_fragments
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array

LIES_RAD, TILT_RAD = 0.3, 0.35
"""Root mean square difference of hinge angles, and difference of the root's tilt, from where a rising skill can begin."""
STILL_M_S = 0.3
"""Speed of the root with which one lies still. Ours: a pose that is passed in mid-air is none to rise from."""
RAGDOLL_S = 0.1
"""How long a ragdoll holds a pose before it is looked at again."""
LOW = 0.5
"""Share of the height of the root when walking, below which one lies."""
FALLS = 60
"""Falls from which rising is learned, for each rising skill; about half of them end near enough to where it begins."""
AT_ONCE = 8
"""Starts that the samples of a walk share when it is begun anew."""
PUSH_N, PUSH_S = (150.0, 350.0), 0.3
"""Pushes on the chest that throw over, from and to, newtons, and how long they last."""
ASIDE_RAD = np.radians(45.0)
"""How far to a side of where the rising skill faces its pushes go at most."""
LONGEST_S = 6.0
"""From the push: who does not lie by then is left out."""


def starts_of(graph: ControlGraph, rollouts: PdRollouts, seed: int) -> dict[str, Array]:
    """Snapshots (N, K) of each fragment at which walks may begin: the reference's, or of a rising skill those after falls."""
    lying = rising(graph)
    return {
        name: _fallen(graph, graph.fragments[name], rollouts, np.random.default_rng([seed, 2, number]))
        if name in lying
        else reference_snapshot(graph.fragments[name], 0)[None]
        for number, name in enumerate(first_fragments(graph))
    }


def rising(graph: ControlGraph) -> tuple[str, ...]:
    """Names of the fragments with which rising skills begin: nothing leads to them, and the body lies there.

    Lying is a root that is lower than `LOW` of the mean height of those walks; a way in that begins upright is no rising.
    """
    walked = [fragment for name, fragment in graph.fragments.items() if comes_back(name, graph.successors)]
    if not walked:
        return ()
    height = float(np.mean([fragment.reference_root_position[0, 2] for fragment in walked]))
    begins = (graph.fragments[name] for name in beginnings(graph.successors))
    return tuple(first.name for first in begins if first.reference_root_position[0, 2] < LOW * height)


def course_of(
    walk: Sequence[Step], tasks: Mapping[str, Task], starts: Mapping[str, Array], rng: np.random.Generator
) -> list[Task]:
    """The tasks of a walk; where it begins anew, with some of the fragment's starts.

    With one alone a walk would fail for good where nobody can rise from that.
    """
    course = []
    for step in walk:
        task = tasks[step.fragment]
        if step.restart:
            several = starts[step.fragment]
            some = rng.choice(len(several), min(AT_ONCE, len(several)), replace=False) if len(several) > 1 else [0]
            task = replace(task, start=several[some])
        course.append(task)
    return course


def apart(snapshots: Array, wanted: Array) -> tuple[Array, Array]:
    """Differences of snapshots (N, K) from one (K,): (N,) of hinge angles, root mean square, and of the root's tilt, radians."""
    joints = (len(wanted) - 14) // 2
    qpos, _ = snapshot_coordinates(np.concatenate([wanted[None], snapshots]), joints)
    angles = np.sqrt(np.mean((qpos[1:, 7:] - qpos[0, 7:]) ** 2, axis=1))
    upright = rotations.rotate(rotations.conjugate(qpos[:, 3:7]), np.array([0.0, 0.0, 1.0]))
    return angles, np.arccos(np.clip(upright[1:] @ upright[0], -1.0, 1.0))


def lies(snapshots: Array, wanted: Array) -> npt.NDArray[np.bool_]:
    """(N,) whether snapshots (N, K) are near enough to `wanted` (K,), the begin of a rising skill, for it to be performed."""
    angles, tilt = apart(snapshots, wanted)
    _, qvel = snapshot_coordinates(snapshots, (len(wanted) - 14) // 2)
    speed = np.linalg.norm(qvel[:, :3], axis=1)
    return np.asarray((angles < LIES_RAD) & (tilt < TILT_RAD) & (speed < STILL_M_S))


def _fallen(graph: ControlGraph, first: ControlFragment, rollouts: PdRollouts, rng: np.random.Generator) -> Array:
    """(N, K) where those lie who, of `FALLS` bodies, come to lie where the fragment `first` begins.

    A body is as at the begin of a random fragment to which walks come back, and is pushed over: forwards for a skill that begins
    on the face.

    Raises:
        GraphError: no fall ends there.
    """
    count, wanted = FALLS, reference_snapshot(first, 0)
    standing = [reference_snapshot(f, 0) for name, f in graph.fragments.items() if comes_back(name, graph.successors)]
    states = np.array([standing[int(i)] for i in rng.integers(len(standing), size=count)])
    forces = _pushes(states, wanted, rng)
    steps, pushed = round(RAGDOLL_S / PD_TIME_STEP_S), round(PUSH_S / RAGDOLL_S)
    held = np.broadcast_to(first.reference_angles[0], (count, 1, len(first.reference_angles[0])))
    lain = np.zeros(count, dtype=bool)
    ends = states.copy()
    for number in range(round(LONGEST_S / RAGDOLL_S)):
        push = np.broadcast_to(forces[:, None], (count, steps, 3)) if number < pushed else None
        states = rollouts.run(states, held, steps, stride=steps, pushes=push).final
        new = ~lain & lies(states, wanted)
        ends[new] = states[new]
        lain |= new
    if not lain.any():
        raise GraphError(
            f"nobody who falls comes to lie where the rising skill {first.skill!r} begins; cut the motion so that it begins lying"
        )
    return ends[lain]


def _pushes(states: Array, wanted: Array, rng: np.random.Generator) -> Array:
    """(N, 3) newtons: to where the upright of the pose `wanted` (K,) leans, seen by each body, within `ASIDE_RAD`."""
    over = rotations.rotate(
        rotations.multiply(rotations.yaw(-rotations.heading(wanted[4:8])), wanted[4:8]), [0.0, 0.0, 1.0]
    )
    way = np.arctan2(over[1], over[0]) + rotations.heading(states[:, 4:8])
    way = way + rng.uniform(-ASIDE_RAD, ASIDE_RAD, len(states))
    force = rng.uniform(*PUSH_N, len(states))
    return np.stack([force * np.cos(way), force * np.sin(way), np.zeros(len(states))], axis=1)
