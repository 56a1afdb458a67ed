"""The engines under test and their tolerances: a new engine joins with one row in `SUBJECTS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import points_world, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.choose import has_bullet
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.types import Array, Pose, SimState


@dataclass(frozen=True)
class Subject:
    """One engine and what it is held to.

    Attributes:
        name: as `make_engine` knows it.
        make: (character, time_step_s=, torque_scale=, servo=) to an engine; without `servo`, a plain model.
        fall_m: error of a fall of one second.
        servo_share: how far a step misses (1 - alpha) times the joint error before, as a share of alpha times the error;
            four times as much in the first step, which starts the limbs.
        momentum_rate: drift of the angular momentum, relative, in 0.5 s of flailing at 1/120 s.
        momentum_order: the drift at a quarter of the step, relative to that at the whole one.
        torque_excess: how far a torque may exceed its bound, relative.
        replay_share: share of steps that recorded torques repeat to the last digits.
        replay_m: position error of any segment of a motion that is replayed without a stop; None where steps are replayed
            one by one only.
        computed_root: whether the root can also be held by a computed torque.
        pd_law: how far a PD servo's torque may be from its law, relative, and N m.
        pd_share: share of the steps of a violent fall in which the law, bounds included, holds at all.
        pd_momentum_order: `momentum_order` under PD servos.
        pd_replay_m: `replay_m` of PD servos, whose torques are torques to the engine in any case.
    """

    name: str
    make: Callable[..., Engine]
    fall_m: float
    servo_share: float
    momentum_rate: float
    momentum_order: float
    torque_excess: float
    replay_share: float
    replay_m: float | None
    computed_root: bool
    pd_law: float
    pd_share: float
    pd_momentum_order: float
    pd_replay_m: float | None


SUBJECTS = [
    Subject(
        "mujoco",
        MujocoEngine,
        fall_m=1e-9,
        servo_share=0.02,
        momentum_rate=0.15,
        momentum_order=0.35,
        torque_excess=1e-12,
        replay_share=1.0,
        replay_m=1e-3,
        computed_root=True,
        pd_law=1e-9,
        pd_share=1.0,
        pd_momentum_order=0.35,
        pd_replay_m=1e-3,
    ),
]
if has_bullet():
    from mocap2ctrl.simulation.bullet import BulletEngine

    # The links between hinges have momentum of their own, which a quarter of the step does not take away. Dantzig's method
    # bounds the friction of feet that slide by loads of its first pass, which are other ones without servos in the system:
    # 28 to 92 % of the steps replay exactly here, and none does with a torque from outside. PD servos are torques found by trial;
    # 3 of 360 steps of bodies that are thrown to the ground have contacts for which no torque keeps the law.
    bullet = Subject(
        "bullet",
        BulletEngine,
        fall_m=1e-9,
        servo_share=0.02,
        momentum_rate=0.15,
        momentum_order=0.5,
        torque_excess=1e-12,
        replay_share=0.25,
        replay_m=None,
        computed_root=False,
        pd_law=1e-5,
        pd_share=0.98,
        pd_momentum_order=0.75,
        pd_replay_m=1e-3,
    )
    SUBJECTS.append(bullet)


def random_angles(character: Character, rng: np.random.Generator, share: float) -> Array:
    """(J,) angles, uniform over the middle `share` of each hinge's range."""
    middle = 0.5 * (character.lower_limits + character.upper_limits)
    half = 0.5 * (character.upper_limits - character.lower_limits)
    return middle + share * half * rng.uniform(-1.0, 1.0, len(middle))


def advanced(state: SimState, time_s: float) -> Pose:
    """The pose after moving with the state's velocities for `time_s`, first order."""
    turn = rotations.from_rotation_vector(time_s * state.root_angular_velocity)
    return Pose(
        state.pose.root_position + time_s * state.root_velocity,
        rotations.multiply(turn, state.pose.root_orientation),
        state.pose.angles + time_s * state.joint_velocities,
    )


def momenta(character: Character, state: SimState) -> tuple[Array, Array, Array]:
    """Linear momentum (3,), angular momentum about the centre of mass (3,), and the centre of mass (3,).

    From the character's description and central differences of its kinematics: no engine is asked.
    """
    h = 1e-5
    local = np.array([s.com for s in character.segments])
    mass = np.array([s.mass for s in character.segments])[:, None]
    inertia = np.array([s.inertia for s in character.segments])
    index = np.arange(len(local))
    points, frames = [], []
    for time in (-h, h):
        pose = advanced(state, time)
        position, orientation = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
        points.append(points_world(position, orientation, index, local))
        frames.append(orientation)
    velocity = (points[1] - points[0]) / (2 * h)
    spin = rotations.to_rotation_vector(rotations.multiply(frames[1], rotations.conjugate(frames[0]))) / (2 * h)
    own = rotations.rotate(frames[0], inertia * rotations.rotate(rotations.conjugate(frames[0]), spin))
    middle = 0.5 * (points[0] + points[1])
    com = np.sum(mass * middle, axis=0) / mass.sum()
    linear = np.sum(mass * velocity, axis=0)
    return linear, np.sum(own + mass * np.cross(middle - com, velocity), axis=0), com
