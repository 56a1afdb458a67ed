"""A moving belt as ground: taken by its evidence, by its speed, or not at all."""

from __future__ import annotations

from dataclasses import replace

from mocap2ctrl.errors import ConfigError
from mocap2ctrl.geometry.camera import world_to_camera
from mocap2ctrl.motion.in_place import AUTO, FASTEST, NONE
from mocap2ctrl.types import Array
from mocap2ctrl.video.foot_slide import slide_at
from mocap2ctrl.video.silhouettes import LoadedSilhouettes
from mocap2ctrl.video.travel import STEPS, travel_of

SLOWEST = 0.1
"""m/s."""

CONSEQUENCE = "motions are over the belt, as if it rested, and travel; the overlay is as filmed"


def belt_choice(belt: str | float | None) -> str | float:
    """What a user says of a belt, checked: `auto`, which is meant if nothing is said, `none`, or its speed in m/s.

    Raises:
        ConfigError: none of these.
    """
    if belt is None:
        return AUTO
    if belt in (AUTO, NONE):
        return belt
    try:
        speed = float(belt)
    except ValueError:
        speed = float("nan")
    if not SLOWEST <= speed <= FASTEST:
        raise ConfigError(
            f"belt is {belt!r}; allowed are {AUTO}, {NONE}, or a speed from {SLOWEST:g} to {FASTEST:g} m/s"
        )
    return speed


def on_belt(loaded: LoadedSilhouettes, belt: str | float) -> LoadedSilhouettes:
    """The silhouettes with the velocity of the ground that `belt` asks for, and a note that says so.

    Args:
        loaded: a video or masks.
        belt: as `belt_choice` gives it.
    """
    if isinstance(belt, float):
        velocity = slide_at(loaded.silhouettes, belt)
        return _moving(loaded, velocity, f"belt: {belt:g} m/s as told, {_direction(loaded, velocity)}; {CONSEQUENCE}")
    found = travel_of(loaded.silhouettes)
    if belt == AUTO and found.ground_velocity.any():
        told = f"{found.evidence}: a moving belt is taken as ground; --belt none if that is wrong. {CONSEQUENCE}"
        return _moving(loaded, found.ground_velocity, f"belt: {told}")
    if found.kind != STEPS:
        return loaded
    offer = f"{found.speed_m_s:.1f}" if found.speed_m_s else "SPEED"
    told = f"belt: {found.evidence}; the ground is taken as still, --belt {offer} if it is a treadmill"
    return replace(loaded, notes=(*loaded.notes, told))


def _moving(loaded: LoadedSilhouettes, velocity: Array, note: str) -> LoadedSilhouettes:
    silhouettes = replace(loaded.silhouettes, ground_velocity=velocity)
    return replace(loaded, silhouettes=silhouettes, notes=(*loaded.notes, note))


def _direction(loaded: LoadedSilhouettes, velocity: Array) -> str:
    """To which side of the picture the belt runs."""
    right = float(world_to_camera(loaded.silhouettes.camera)[0, :2] @ velocity)
    return f"to the {'right' if right > 0 else 'left'}"
