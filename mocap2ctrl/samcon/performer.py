"""One character's control at run time: which fragment it is in, and what its servos are told (Liu 2016, §4 and §6.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.core import beginnings
from mocap2ctrl.graph.fragments import ACTION_FEATURES, FEET, ControlFragment, ControlGraph, most_steps
from mocap2ctrl.graph.planning import Place, Planner
from mocap2ctrl.samcon.body import body_of
from mocap2ctrl.samcon.features import feedback_actions, snapshot_coordinates, snapshot_features
from mocap2ctrl.samcon.rising import RAGDOLL_S, apart, lies
from mocap2ctrl.samcon.sampling import LARGEST_RAD
from mocap2ctrl.samcon.tasks import reference_snapshot
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.foot_height import foot_heights, foot_of
from mocap2ctrl.simulation.terrain import Surface, ground_height, lowest_clearances
from mocap2ctrl.types import Array

FALLEN_RAD = 4.0
"""Length of an action by which a fall is told (§6.2: a fixed threshold). Hardened policies that bear a push ask for almost that."""
RAGDOLL = "ragdoll"
"""What a character does between a fall and rising, in place of a fragment's name."""
PATIENCE = 20
"""Tenths of a second for which a ragdoll tries the pose of one rising skill before that of the next."""


@dataclass(frozen=True, eq=False)
class Performed:
    """A fragment as it was performed.

    Attributes:
        fragment: its name, or `RAGDOLL`.
        pose: the fragment that gave the ragdoll its pose; the same as `fragment` otherwise.
        at_s: when it began, seconds.
        steps: of the servos that it lasted, as far as it came.
        features: (18,) s at its begin.
        action: (11,) a, radians; zeros without a policy.
    """

    fragment: str
    pose: str
    at_s: float
    steps: int
    features: Array
    action: Array


class Performer:
    """Decides once a fragment, from the state at its begin; in between it only follows the targets."""

    def __init__(
        self, graph: ControlGraph, character: Character, planner: Planner, steering: Mapping[str, Array] | None = None
    ) -> None:
        """A character that walks `graph` as `planner` says, and turns by the actions `steering`, by fragment, if there are any."""
        self._graph, self._planner, self._steering = graph, planner, steering or {}
        self._character = character
        self._body, self._hinges = body_of(character), feedback_actions(character).hinges
        self._rising = [graph.fragments[name] for name in beginnings(graph.successors)]
        self._current = planner.first()
        self._lain, self._pose = 0, 0
        self._begun = False
        self._held = np.zeros((0, len(character.hinges)))
        self._step, self._steps, self._steps_per_target = 0, 0, 1
        self._feet = {name: foot_of(character, name) for name in FEET}
        self._awaited: str | None = None
        self._performed: list[Performed] = []

    @property
    def start(self) -> Array:
        """(K,) the reference at the begin of the first fragment, as a snapshot of `PdRollouts`."""
        return reference_snapshot(self._graph.fragments[self._current], 0)

    @property
    def performed(self) -> tuple[Performed, ...]:
        """What was done so far; the last one may not have ended."""
        return tuple(self._performed)

    def targets(self, snapshot: Array, time_s: float, ground: Sequence[Surface] = ()) -> Array:
        """(J,) radians, of the servos in the next step, from the state (K,) before it.

        The root's height is that above the `ground` below it, which is z = 0 if not given.
        """
        if self._step == self._steps or (self._step > 0 and self._is_down(snapshot, ground)):
            self._decide(snapshot, time_s)
        row = self._held[min(self._step // self._steps_per_target, len(self._held) - 1)]
        self._step += 1
        last = self._performed[-1]
        self._performed[-1] = Performed(last.fragment, last.pose, last.at_s, self._step, last.features, last.action)
        return np.asarray(row)

    def _is_down(self, snapshot: Array, ground: Sequence[Surface]) -> bool:
        """Whether the foot that the fragment waits for is on the ground."""
        if self._awaited is None:
            return False
        qpos, _ = snapshot_coordinates(snapshot[None], len(self._character.hinges))
        if not ground:
            return bool(foot_heights(self._feet[self._awaited], qpos)[0] <= 0.0)
        root = qpos[:, :3] + ground_height(ground, qpos[:, :2])[:, None] * np.array([0.0, 0.0, 1.0])
        positions, orientations = segment_frames(self._character, root, qpos[:, 3:7], qpos[:, 7:])
        clear = lowest_clearances(self._character, positions, orientations, ground)[0]
        foot = self._character.segment_index(self._awaited)
        return any(clear[i] <= 0.0 for i, s in enumerate(self._character.segments) if foot in (i, s.parent))

    def _decide(self, snapshot: Array, time_s: float) -> None:
        """What is next: the first fragment, the ragdoll, the rising skill, or what the planner says."""
        if self._current == RAGDOLL:
            self._lie_or_rise(snapshot, time_s)
            return
        if self._begun:
            self._current = self._planner.next(self._current, place_of(snapshot))
        self._begun = True
        features = snapshot_features(self._body, snapshot[None])[0]
        fragment = self._graph.fragments[self._current]
        action = action_of(fragment, features)
        if np.linalg.norm(action) > FALLEN_RAD:
            self._lie_or_rise(snapshot, time_s)
            return
        if fragment.name in self._steering:
            action = action + self._planner.turn(place_of(snapshot)) * self._steering[fragment.name]
        self._begin(fragment, features, action, time_s)

    def _begin(self, fragment: ControlFragment, features: Array, action: Array, time_s: float) -> None:
        """Δp̂ ⊕ m̂ (§4): the offset stays the same throughout the fragment."""
        self._current = fragment.name
        self._held = fragment.targets + np.clip(action, -LARGEST_RAD, LARGEST_RAD) @ self._hinges
        self._step, self._steps_per_target = 0, round(fragment.frame_s / PD_TIME_STEP_S)
        self._steps = most_steps(len(self._held) * self._steps_per_target, fragment.touchdown)
        self._awaited = fragment.touchdown
        self._performed.append(Performed(fragment.name, fragment.name, time_s, 0, features, action))

    def _lie_or_rise(self, snapshot: Array, time_s: float) -> None:
        """Rises if the pose is near enough to where a rising skill begins; else takes the nearest one's first pose, as a ragdoll.

        Who does not come to lie so, on a side say, takes the next one's pose after a while, which turns the body. Without a rising
        skill it stays a ragdoll, in the pose that it was to take when it fell.
        """
        features = snapshot_features(self._body, snapshot[None])[0]
        if not self._rising:
            self._lie(self._performed[-1].pose if self._performed else self._current, features, time_s)
            return
        begins = [(fragment, reference_snapshot(fragment, 0)) for fragment in self._rising]
        able = [fragment for fragment, wanted in begins if lies(snapshot[None], wanted)[0]]
        tilts = [float(apart(snapshot[None], wanted)[1][0]) for _, wanted in begins]
        if able:
            self._lain = 0
            self._begin(able[0], features, action_of(able[0], features), time_s)
            return
        if self._lain < PATIENCE:
            self._pose = int(np.argmin(tilts))
        elif self._lain % PATIENCE == 0:
            self._pose = (self._pose + 1) % len(begins)
        self._lain += 1
        self._lie(begins[self._pose][0].name, features, time_s)

    def _lie(self, pose: str, features: Array, time_s: float) -> None:
        """A tenth of a second as a ragdoll, whose servos hold the first pose of the fragment `pose`."""
        self._current = RAGDOLL
        self._held = self._graph.fragments[pose].reference_angles[:1]
        self._step, self._steps_per_target = 0, round(RAGDOLL_S / PD_TIME_STEP_S)
        self._steps, self._awaited = self._steps_per_target, None
        self._performed.append(Performed(RAGDOLL, pose, time_s, 0, features, np.zeros(ACTION_FEATURES)))


def action_of(fragment: ControlFragment, features: Array) -> Array:
    """(11,) a = M s + â (Eq. 2), radians; zeros without a policy."""
    policy = fragment.policy
    return np.zeros(ACTION_FEATURES) if policy is None else np.asarray(policy.gain @ features + policy.offset)


def place_of(snapshot: Array) -> Place:
    """Where a snapshot (K,) is, from above."""
    return Place(float(snapshot[1]), float(snapshot[2]), float(rotations.heading(snapshot[4:8])))


def placed(snapshot: Array, place: Place, joints: int) -> Array:
    """A snapshot (K,) moved and turned to `place`, velocities and all."""
    moved = snapshot.copy()
    turn = rotations.yaw(place.heading - rotations.heading(snapshot[4:8]))
    moved[1:3] = place.x, place.y
    moved[4:8] = rotations.multiply(turn, snapshot[4:8])
    velocity = 8 + joints  # of the root in the world; its spin is in its own frame
    moved[velocity : velocity + 3] = rotations.rotate(turn, snapshot[velocity : velocity + 3])
    return moved
