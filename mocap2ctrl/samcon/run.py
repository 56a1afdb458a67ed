"""Runs a control graph: one character, or several on one ground, each on its own walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames, evaluation_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.footing import forces_at
from mocap2ctrl.evaluation.metrics import fall_time
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.evaluation.surroundings import lift_m
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph
from mocap2ctrl.graph.planning import Place, Planner
from mocap2ctrl.motion.clips import at_times
from mocap2ctrl.samcon.performer import RAGDOLL, Performed, Performer, place_of, placed
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.engine_stage import make_stage
from mocap2ctrl.simulation.environment import LEVEL, Environment
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.simulation.terrain import ground_height, surfaces, sway_at
from mocap2ctrl.types import Array, MotionClip, Pose

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
        environment: where it was, laid out.
    """

    clip: MotionClip
    reference: MotionClip
    performed: tuple[Performed, ...]
    met: tuple[int, ...]
    diverged: bool
    fell_at_s: float | None
    environment: Environment = LEVEL


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
    environment: Environment = LEVEL,
    engine: str = "mujoco",
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
        environment: where; laid out from where the first character begins.
        engine: in which; others than MuJoCo hold one character.

    Raises:
        EngineError: an engine that is not there, or has no such environment or room.
    """
    performers = [Performer(graph, character, planner, steering) for planner in planners]
    joints = len(character.hinges)
    starts = np.array([performer.start for performer in performers])
    if places is not None:
        starts = np.array([placed(start, place, joints) for start, place in zip(starts, places, strict=True)])
    first = place_of(starts[0])
    here = environment.placed((first.x, first.y), first.heading)
    gains = pd_gains(character, graph.gains)
    stage = make_stage(engine, character, len(starts), gains, torque_scale=torque_scale, environment=here)
    stage.place([_lifted(start, here, character) for start in starts])
    ground = () if here.level else surfaces(here)
    recorded, met, fine = [stage.snapshots()], set[tuple[int, int]](), True
    table = [np.array(push.row(PD_TIME_STEP_S)) for push in pushes]
    for step in range(round(seconds / PD_TIME_STEP_S)):
        forces = forces_at(table, step)
        for segment in {push.segment for push in pushes}:
            stage.push(0, segment, forces.get(segment, np.zeros(3)))
        seen = _above_ground(stage.snapshots(), here)
        fine = stage.step([p.targets(s, step * PD_TIME_STEP_S, ground) for p, s in zip(performers, seen, strict=True)])
        if not fine:
            break
        if (step + 1) % STRIDE == 0:
            recorded.append(stage.snapshots())
        met.update(stage.collisions())
    qpos = np.array(recorded)[:, :, 1 : 8 + joints]
    qpos[..., :3] += sway_at(here, np.arange(len(qpos)) * STRIDE * PD_TIME_STEP_S)[:, None]
    return tuple(
        _told(graph, character, performer, qpos[:, i], _met_by(i, met), here, diverged=not fine)
        for i, performer in enumerate(performers)
    )


def _lifted(snapshot: Array, environment: Environment, character: Character) -> Array:
    """A start as far from the ground of `environment` as it was from level ground."""
    lifted = snapshot.copy()
    lifted[3] += lift_m(
        environment, Pose(snapshot[1:4], snapshot[4:8], snapshot[8 : 8 + len(character.hinges)]), character
    )
    return lifted


def _above_ground(snapshots: Array, environment: Environment) -> Array:
    """Snapshots (N, K) whose roots are as high above z = 0 as they are above the ground below them: what features are told of."""
    if environment.level:
        return snapshots
    seen = snapshots.copy()
    seen[:, 3] -= ground_height(surfaces(environment), snapshots[:, 1:3])
    return seen


def _met_by(number: int, met: Set[tuple[int, int]]) -> tuple[int, ...]:
    """Who touched a character."""
    return tuple(sorted({other for pair in met if number in pair for other in pair} - {number}))


def _told(
    graph: ControlGraph,
    character: Character,
    performer: Performer,
    qpos: Array,
    met: tuple[int, ...],
    environment: Environment,
    *,
    diverged: bool,
) -> GraphRun:
    clip = MotionClip("simulated", 1.0 / (STRIDE * PD_TIME_STEP_S), qpos[:, :3], qpos[:, 3:7], qpos[:, 7:])
    start = Place(float(qpos[0, 0]), float(qpos[0, 1]), float(rotations.heading(qpos[0, 3:7])))
    reference = reference_motion(graph.fragments, performer.performed, start)
    fell_at_s = _fall(character, clip, reference, environment, diverged=diverged)
    return GraphRun(clip, reference, performer.performed, met, diverged, fell_at_s, environment)


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


def _fall(
    character: Character, clip: MotionClip, reference: MotionClip, environment: Environment, *, diverged: bool
) -> float | None:
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
        environment=environment,
    )
    return fall_time(character, run, reference, clip.duration_s + 1.0)
