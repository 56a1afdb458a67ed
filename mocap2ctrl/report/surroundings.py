"""What surrounds a simulated body, drawn: ground that is not level or not at rest, and pushes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np

from mocap2ctrl.character.kinematics import points_world
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.report.camera import Viewpoint
from mocap2ctrl.report.ground import FADE_M, GRID_LINE, GRID_M, GROUND_NEAR, SKY_HORIZON, Image
from mocap2ctrl.report.text import draw_text
from mocap2ctrl.simulation.environment import Environment
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.simulation.terrain import Surface, ground_height, lowest_clearances, surfaces, sway_at
from mocap2ctrl.types import Array

REACH_M = 5.0
"""How far around the body ground is drawn."""
NEAREST_M = 0.3
BELT_COLOUR = (178, 190, 204)
SOFT_COLOUR = (190, 206, 226)
RISER_COLOUR = (168, 172, 178)
HIGHEST_RISER_M = 2.0
"""Higher ends are those of the whole ground."""
ARROW_COLOUR = (206, 52, 48)
ARROW_M_PER_N = 0.006
ARROW_LENGTHS_M = (0.35, 1.2)
SUBPIXEL_BITS = 4
DENT_RADIUS_M = 0.7


@dataclass(frozen=True, eq=False)
class Face:
    """A piece of ground: its corners (4, 3), world, and its colour."""

    corners: Array
    colour: tuple[float, float, float]


def is_plain(environment: Environment) -> bool:
    """Whether the usual picture of the ground shows `environment`."""
    return environment.level and not (environment.belt or environment.sway or environment.softness)


def ground_below(environment: Environment, place: Array, times_s: Array) -> Array:
    """(N,) height of the ground below places (N, 3) at times (N,), world, metres."""
    moved = sway_at(environment, times_s)
    return np.asarray(ground_height(surfaces(environment), (place - moved)[:, :2]) + moved[:, 2])


def dent_m(environment: Environment, character: Character, frames: tuple[Array, Array]) -> float:
    """How deep a body with segments at `frames`, (S, 3) and (S, 4), sinks into soft ground, metres."""
    if environment.softness is None:
        return 0.0
    return max(0.0, -float(lowest_clearances(character, *frames, surfaces(environment)).min()))


def draw_ground(
    image: Image, camera: Viewpoint, environment: Environment, around: Array, time_s: float, dent: float = 0.0
) -> None:
    """Draws the ground near a body over `image`; a belt's grid runs with it.

    Args:
        image: RGB (H, W, 3), changed in place.
        camera: the image's camera.
        environment: whose ground.
        around: (3,) where the body is, world.
        time_s: seconds from the simulation's start.
        dent: how deep the ground is pressed in below the body, metres.
    """
    faces = [
        (face, camera.to_camera(_dented(face.corners, around, dent)))
        for face in ground_faces(environment, around, time_s)
    ]
    seen = [(face, corners) for face, corners in faces if corners[:, 2].min() > NEAREST_M]
    for face, corners in sorted(seen, key=lambda pair: -float(pair[1][:, 2].mean())):
        distance = float(np.linalg.norm(corners.mean(axis=0)))
        fog = np.exp(-((distance / FADE_M) ** 2))
        pixels = np.rint(camera.to_pixels(corners) * 2**SUBPIXEL_BITS).astype(int)
        colour, line = (_mixed(c, SKY_HORIZON, fog) for c in (face.colour, GRID_LINE))
        cv2.fillConvexPoly(image, pixels, colour, cv2.LINE_AA, SUBPIXEL_BITS)
        cv2.polylines(image, [pixels], True, line, 1, cv2.LINE_AA, SUBPIXEL_BITS)


def draw_pushes(
    image: Image,
    camera: Viewpoint,
    character: Character,
    frames: tuple[Array, Array],
    pushes: Sequence[Push],
    time_s: float,
) -> None:
    """Draws the pushes that act at a time as arrows that end in the segment which they act on.

    Args:
        image: RGB (H, W, 3), changed in place.
        camera: the image's camera.
        character: the body.
        frames: positions (S, 3) and orientations (S, 4) of its segments.
        pushes: all of them.
        time_s: seconds from the simulation's start.
    """
    for push in pushes:
        starts = push.starts_before(time_s + 1e-9)
        newtons = float(np.linalg.norm(push.force))
        if not len(starts) or time_s >= starts[-1] + push.duration_s or newtons == 0.0:
            continue
        tip = points_world(*frames, [push.segment], character.segments[push.segment].com[None])[0]
        length = np.clip(ARROW_M_PER_N * newtons, *ARROW_LENGTHS_M)
        ends = np.array([tip - length / newtons * np.asarray(push.force), tip])
        if camera.to_camera(ends)[:, 2].min() < NEAREST_M:
            continue
        tail, head = (tuple(np.rint(p).astype(int).tolist()) for p in camera.project(ends))
        width = max(2, image.shape[0] // 120)
        cv2.arrowedLine(image, tail, head, ARROW_COLOUR, width, cv2.LINE_AA, tipLength=0.25)
        size, rightward = max(9, image.shape[0] // 32), head[0] >= tail[0]
        place = (tail[0] + (-size if rightward else size) / 2, tail[1])
        anchor = (1.0 if rightward else 0.0, 0.5)
        draw_text(image, f"{newtons:.0f} N", place, height_px=size, colour=ARROW_COLOUR, anchor=anchor, bold=True)


def _dented(corners: Array, around: Array, dent: float) -> Array:
    away = np.linalg.norm((corners - around)[:, :2], axis=1) / DENT_RADIUS_M
    return np.asarray(corners - dent * np.exp(-(away**2))[:, None] * np.array([0.0, 0.0, 1.0]))


def ground_faces(environment: Environment, around: Array, time_s: float) -> Iterator[Face]:
    """The ground within `REACH_M` of a point (3,) at a time, in squares of a grid that moves as the ground does."""
    ground, moved = surfaces(environment), sway_at(environment, time_s)
    for surface in ground:
        yield from _tops(environment, surface, around - moved, moved, time_s)
        if surface.half_size is not None:
            yield from _risers(ground, surface, float(surface.half_size[0]), around - moved, moved)


def _tops(environment: Environment, surface: Surface, around: Array, moved: Array, time_s: float) -> Iterator[Face]:
    """The upper face in squares of the grid, cut at its ends."""
    colour = BELT_COLOUR if surface.velocity.any() else SOFT_COLOUR if environment.softness else GROUND_NEAR
    back = rotations.conjugate(surface.orientation)
    centre, run = (rotations.rotate(back, v)[:2] for v in (around - surface.top, time_s * surface.velocity))
    half = np.full(2, np.inf) if surface.half_size is None else surface.half_size[:2]
    xs, ys = (_lines(centre[k], run[k], half[k]) for k in (0, 1))
    for x0, x1 in pairwise(xs):
        for y0, y1 in pairwise(ys):
            corners = np.array([[x0, y0, 0.0], [x1, y0, 0.0], [x1, y1, 0.0], [x0, y1, 0.0]])
            yield Face(surface.top + rotations.rotate(surface.orientation, corners) + moved, colour)


def _lines(centre: float, run: float, half: float) -> Array:
    """Where lines of a grid that has moved by `run` cross an axis, near `centre`, from -`half` to `half`, both included."""
    low, high = max(centre - REACH_M, -half), min(centre + REACH_M, half)
    if low >= high:
        return np.zeros(0)
    lines = np.arange(np.ceil((low - run) / GRID_M), np.floor((high - run) / GRID_M) + 1) * GRID_M + run
    return np.unique(np.concatenate([[low], lines, [high]]))


def _risers(ground: Sequence[Surface], surface: Surface, half_m: float, around: Array, moved: Array) -> Iterator[Face]:
    """What of the two ends of a box, `half_m` from its middle, is above the ground before them."""
    left = rotations.rotate(rotations.conjugate(surface.orientation), around - surface.top)[1]
    for end in (-half_m, half_m):
        edge = np.array([[end, left - REACH_M, 0.0], [end, left + REACH_M, 0.0]])
        upper = surface.top + rotations.rotate(surface.orientation, edge)
        beyond = rotations.rotate(surface.orientation, (np.copysign(0.01, end), 0.0, 0.0))
        drop = float(upper[0, 2] - ground_height(ground, (upper.mean(axis=0) + beyond)[:2]))
        if 0.0 < drop < HIGHEST_RISER_M:
            lower = upper - np.array([0.0, 0.0, drop])
            yield Face(np.array([upper[0], upper[1], lower[1], lower[0]]) + moved, RISER_COLOUR)


def _mixed(near: Sequence[float], far: Sequence[float], share: float) -> tuple[float, float, float]:
    r, g, b = (share * n + (1.0 - share) * f for n, f in zip(near, far, strict=True))
    return r, g, b
