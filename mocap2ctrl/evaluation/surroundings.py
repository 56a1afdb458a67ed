"""Puts a controller that was fitted on level ground into an environment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from mocap2ctrl.character.kinematics import lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import Controller
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.simulation.choose import make_engine
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.environment import LEVEL, Environment, laden
from mocap2ctrl.simulation.environment_file import load_environment
from mocap2ctrl.simulation.terrain import ground_height, lowest_clearances, surfaces, sway_at
from mocap2ctrl.types import Array, Pose

NEAR_ENOUGH_M = 1e-5
UP = np.array([0.0, 0.0, 1.0])


Place = Environment | Path | str
"""An environment, a TOML file of one, or the name of one that the package ships."""


def placed(
    capture: Capture, place: Place | None, engine: str | None = None, torque_limit: float | None = None
) -> tuple[Engine, Controller]:
    """The engine that a capture's controller runs in, and the controller, both as is asked for.

    Args:
        capture: whose controller.
        place: where; laid out from the controller's start. Level ground if not given.
        engine: another one than that of the fit.
        torque_limit: factor on the torque bounds of the fit.

    Raises:
        ConfigError: there is no such environment, or it is not for this character.
        EngineError: no such engine, or none that has such an environment.
    """
    controller, character = capture.finished_controller(), capture.character
    scale = capture.torque_scale * (1.0 if torque_limit is None else torque_limit)
    here = LEVEL
    if place is not None:
        here = around(place if isinstance(place, Environment) else load_environment(place), controller)
    chosen = make_engine(engine or capture.engine_name, character, torque_scale=scale, environment=here)
    return chosen, standing_in(here, controller, character)


def around(environment: Environment, controller: Controller) -> Environment:
    """`environment`, laid out from where `controller` starts, straight ahead being its heading."""
    x, y = controller.start.pose.root_position[:2].tolist()
    return environment.placed((x, y), controller.heading)


def standing_in(environment: Environment, controller: Controller, character: Character) -> Controller:
    """`controller`, started higher or lower, so that the body is as far from the ground as it was from level ground."""
    pose = controller.start.pose
    raised = Pose(pose.root_position + lift_m(environment, pose, character) * UP, pose.root_orientation, pose.angles)
    return replace(controller, start=replace(controller.start, pose=raised))


def lift_m(environment: Environment, pose: Pose, character: Character) -> float:
    """How much higher a body must be in `environment` to be as far from the ground as in `pose` on level ground, metres.

    What it carries counts to the body.
    """
    if environment.level and not environment.loads:
        return 0.0
    ground, body = surfaces(environment), laden(character, environment.loads)
    positions, orientations = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    wanted, lift = lowest_points(character, positions, orientations).min(), 0.0
    for _ in range(50):  # on one plane two are enough
        missing = wanted - lowest_clearances(body, positions + lift * UP, orientations, ground).min()
        lift += float(missing)
        if abs(missing) < NEAR_ENOUGH_M:
            break
    return lift


def clearances_in(
    environment: Environment, character: Character, positions: Array, orientations: Array, times_s: Array
) -> Array:
    """(..., T, S) least distance of each segment from the ground, metres.

    Args:
        environment: where.
        character: the body.
        positions: (..., T, S, 3) of its segments, world.
        orientations: (..., T, S, 4).
        times_s: (T,) seconds from the start.
    """
    if environment.level and environment.sway is None:
        return lowest_points(character, positions, orientations)
    from_ground = positions - sway_at(environment, times_s)[:, None]
    return lowest_clearances(character, from_ground, orientations, surfaces(environment))


def root_heights_in(environment: Environment, root_position: Array, times_s: Array) -> Array:
    """(..., T) height of roots (..., T, 3) above the ground below them, metres, at `times_s` (T,)."""
    if environment.level and environment.sway is None:
        return np.asarray(root_position[..., 2])
    root = root_position - sway_at(environment, times_s)
    return np.asarray(root[..., 2] - ground_height(surfaces(environment), root[..., :2]))
