"""Runs a control graph: one character, or several on one ground, each on its own walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames, evaluation_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.evaluation.metrics import fall_time
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph
from mocap2ctrl.graph.planning import Place, Planner
from mocap2ctrl.motion.clips import at_times
from mocap2ctrl.samcon.performer import RAGDOLL, Performed, Performer, place_of, placed
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.mujoco_stage import Stage
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array, MotionClip

STRIDE = 2
"""Steps between recorded frames: 100 a second."""


@dataclass(frozen=True, eq=False)
class GraphRun:
    """What one character did.

    Attributes:
        clip: its motion; cut where a simulation diverged.
        reference: of the fragments that it performed, one after the other, from the same place.
        performed: the fragments.
        met: numbers of the characters that it touched.
        diverged: whether the simulation had to be stopped.
        fell_at_s: when it fell; None if it did not.
    """

    clip: MotionClip
    reference: MotionClip
    performed: tuple[Performed, ...]
    met: tuple[int, ...]
    diverged: bool
    fell_at_s: float | None


def run_graph(
    graph: ControlGraph,
    character: Character,
    planners: Sequence[Planner],
    seconds: float,
    *,
    pushes: Sequence[Push] = (),
    torque_scale: float = 1.0,
    places: Sequence[Place] | None = None,
    steering: Mapping[str, Array] | None = None,
) -> tuple[GraphRun, ...]:
    """Simulates as many characters as there are planners.

    Args:
        graph: what they can do.
        character: who they are, see `graph.body.character_of`.
        planners: which way each goes.
        seconds: how long.
        pushes: on the first character.
        torque_scale: factor on the torque bounds.
        places: where each begins; where the references do if not given.
        steering: actions by fragment that turn a character to the left, see `samcon.steering`.
    """
    performers = [Performer(graph, character, planner, steering) for planner in planners]
    stage = Stage(character, len(performers), pd_gains(character, graph.gains), torque_scale=torque_scale)
    joints = len(character.hinges)
    starts = [performer.start for performer in performers]
    if places is not None:
        starts = [placed(start, place, joints) for start, place in zip(starts, places, strict=True)]
    stage.place(starts)
    recorded, met = [stage.snapshots()], set[tuple[int, int]]()
    fine = True
    for step in range(round(seconds / PD_TIME_STEP_S)):
        time_s, now = step * PD_TIME_STEP_S, stage.snapshots()
        for push in pushes:
            on = push.start_s - 1e-9 <= time_s < push.start_s + push.duration_s - 1e-9
            stage.push(0, push.segment, push.force if on else np.zeros(3))
        fine = stage.step([p.targets(state, time_s) for p, state in zip(performers, now, strict=True)])
        if not fine:
            break
        if (step + 1) % STRIDE == 0:
            recorded.append(stage.snapshots())
        met.update(stage.collisions())
    qpos = np.array(recorded)[:, :, 1 : 8 + joints]
    return tuple(
        _told(
            graph,
            character,
            performer,
            qpos[:, i],
            sorted({other for pair in met if i in pair for other in pair} - {i}),
            fine,
        )
        for i, performer in enumerate(performers)
    )


def _told(
    graph: ControlGraph, character: Character, performer: Performer, qpos: Array, met: Sequence[int], fine: bool
) -> GraphRun:
    clip = MotionClip("simulated", 1.0 / (STRIDE * PD_TIME_STEP_S), qpos[:, :3], qpos[:, 3:7], qpos[:, 7:])
    start = Place(float(qpos[0, 0]), float(qpos[0, 1]), float(rotations.heading(qpos[0, 3:7])))
    reference = reference_motion(graph.fragments, performer.performed, start)
    fell_at_s = _fall(character, clip, reference, diverged=not fine)
    return GraphRun(clip, reference, performer.performed, tuple(met), not fine, fell_at_s)


def reference_motion(
    fragments: Mapping[str, ControlFragment], performed: Sequence[Performed], start: Place
) -> MotionClip:
    """The references of performed fragments as one motion from `start`, each laid at the end of the one before.

    A ragdoll's is the pose that it was to take, where it fell.
    """
    parts: list[tuple[Array, Array, Array]] = []
    place = start
    for entry in performed:
        position, orientation, angles = _steps_of(fragments[entry.pose], entry)
        turn = rotations.yaw(place.heading - rotations.heading(orientation[0]))
        position = rotations.rotate(turn, position - position[0] * np.array([1.0, 1.0, 0.0]))
        position = position + np.array([place.x, place.y, 0.0])
        orientation = rotations.multiply(turn, orientation)
        kept = slice(0 if not parts else 1, None)
        parts.append((position[kept], orientation[kept], angles[kept]))
        place = place_of(np.concatenate([[0.0], position[-1], orientation[-1]]))
    position, orientation, angles = (np.concatenate(values)[::STRIDE] for values in zip(*parts, strict=True))
    fps = 1.0 / (STRIDE * PD_TIME_STEP_S)
    return MotionClip("reference", fps, position, rotations.continuous(rotations.normalise(orientation)), angles)


def _steps_of(fragment: ControlFragment, entry: Performed) -> tuple[Array, Array, Array]:
    """The reference at the begin of what was performed, and after each step of it."""
    clip = MotionClip(
        fragment.name,
        1.0 / fragment.frame_s,
        fragment.reference_root_position,
        fragment.reference_root_orientation,
        fragment.reference_angles,
    )
    steps = np.zeros(entry.steps + 1) if entry.fragment == RAGDOLL else np.arange(entry.steps + 1.0)
    sampled = at_times(clip, steps * PD_TIME_STEP_S)
    return sampled.root_position, sampled.root_orientation, sampled.angles


def _fall(character: Character, clip: MotionClip, reference: MotionClip, *, diverged: bool) -> float | None:
    """When it fell, as for captures: what the reference keeps off the ground touched it, or the root sank."""
    positions, orientations = clip_frames(character, clip)
    run = Replay(
        clip=clip,
        points=evaluation_points(character, positions, orientations),
        positions=positions,
        orientations=orientations,
        contacts=np.zeros((len(clip), 2), bool),
        state=np.zeros(len(clip), np.int64),
        torques=np.zeros((0, len(character.hinges))),
        steps_per_frame=STRIDE,
        diverged=diverged,
    )
    return fall_time(character, run, reference, clip.duration_s + 1.0)
