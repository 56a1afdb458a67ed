"""What stands still: ground, wall, sky and the sun, as the camera sees them without the person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from mocap2ctrl.geometry.camera import camera_centre, rays
from mocap2ctrl.types import Array, Camera
from rendering.solids import cell_values, fractal_noise

SCENES = ("street", "garden", "hall")
BACKDROPS = ("green", "paper")
"""Of a studio: one colour, or white paper, lit unevenly; chosen by name only."""
SAMPLES = 3
"""Samples of the background along each side of a pixel."""
SUN_ELEVATION_DEG = (42.0, 58.0)
SUN_ASIDE_DEG = (25.0, 60.0)
WALL_BEHIND_M = (1.2, 2.2)
HEDGE_M = 2.1

Texture = Callable[[Array, Array, "Seeds"], Array]


@dataclass(frozen=True, eq=False)
class Lamps:
    """Light: the direction to the sun (3,), how soft its shadows are (radians), and (3, 3) colours of sun, sky and ground."""

    to_sun: Array
    softness: float
    colours: Array


@dataclass(frozen=True, eq=False)
class Scene:
    """The empty scene, linear light: (H, W, 3) what sun and sky give to each pixel, and (H, W, 3) where its ground is.

    Places off the ground have a height of 1 m, whatever they are: nobody's shadow reaches them.
    """

    sun: Array
    sky: Array
    places: Array
    lamps: Lamps


class Seeds:
    """Numbers for the noises of one scene, one after the other."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def noise(self, x: Array, y: Array, size_m: float, octaves: int = 4) -> Array:
        """Noise, about 0 to 1, with features of `size_m` and smaller."""
        out = np.empty(x.size)
        seed = float(self._rng.integers(0, 10_000)) * 3.0
        fractal_noise(np.ravel(x) / size_m, np.ravel(y) / size_m, octaves, seed, out)
        return out.reshape(x.shape)

    def cells(self, i: Array, j: Array) -> Array:
        """One random number for each pair of whole numbers."""
        out = np.empty(i.size)
        cell_values(np.ravel(i).astype(np.int64), np.ravel(j).astype(np.int64), int(self._rng.integers(0, 10_000)), out)
        return out.reshape(i.shape)

    def uniform(self, low: float, high: float) -> float:
        """A number between two."""
        return float(self._rng.uniform(low, high))


def build_scene(kind: str, camera: Camera, behind_m: float, rng: np.random.Generator) -> Scene:
    """The scene of a kind in `SCENES` before a camera.

    Args:
        kind: of scene.
        camera: level at its sides.
        behind_m: horizontal distance from the camera beyond which the person never is.
        rng: draws all that differs from scene to scene.
    """
    seeds = Seeds(rng)
    ground, wall = SURFACES[kind]
    lamps = _lamps(kind, camera, rng)
    wall_m = behind_m + rng.uniform(*WALL_BEHIND_M)
    width, height = camera.size
    steps = (np.arange(SAMPLES) + 0.5) / SAMPLES - 0.5
    across = (np.arange(width)[:, None] + steps).ravel()
    down = (np.arange(height)[:, None] + steps).ravel()
    pixels = np.stack(np.meshgrid(across, down), axis=-1)
    direction, centre = rays(camera, pixels), camera_centre(camera)
    facing = _facing(camera)
    right = np.array([facing[1], -facing[0], 0.0])
    with np.errstate(divide="ignore"):
        to_ground = np.where(direction[..., 2] < 0.0, -centre[2] / direction[..., 2], np.inf)
        to_wall = wall_m / np.maximum(direction @ facing, 1e-6)
    on_ground = to_ground < to_wall
    hit = centre + np.minimum(to_ground, to_wall)[..., None] * direction
    albedo, sun, sky = np.zeros(hit.shape), np.zeros(hit.shape), np.zeros(hit.shape)
    albedo[on_ground] = ground(hit[on_ground][:, 0], hit[on_ground][:, 1], seeds)
    wall_right, wall_up = (hit[~on_ground] - centre) @ right, hit[~on_ground][:, 2]
    albedo[~on_ground] = wall(wall_right, wall_up, seeds)
    sun_colour, sky_colour, bounce = lamps.colours
    wall_sun = max(float(-facing @ lamps.to_sun), 0.0)
    sun[:] = albedo * sun_colour * np.where(on_ground, lamps.to_sun[2], wall_sun)[..., None]
    corner = 0.35 * np.exp(-np.where(on_ground, wall_m - (hit - centre) @ facing, hit[..., 2]) / 0.35)[..., None]
    sky[:] = albedo * (1.0 - corner) * np.where(on_ground[..., None], sky_colour, 0.5 * sky_colour + 0.5 * bounce)
    if kind == "garden":
        _add_sky(sun, sky, hit, on_ground, wall_right, seeds)
    places = hit.reshape(height, SAMPLES, width, SAMPLES, 3)[:, SAMPLES // 2, :, SAMPLES // 2].copy()
    places[~on_ground.reshape(height, SAMPLES, width, SAMPLES)[:, SAMPLES // 2, :, SAMPLES // 2], 2] = 1.0
    return Scene(_averaged(sun, camera), _averaged(sky, camera), places, lamps)


def _averaged(image: Array, camera: Camera) -> Array:
    return np.asarray(cv2.resize(image, camera.size, interpolation=cv2.INTER_AREA))


def _facing(camera: Camera) -> Array:
    """(3,) the horizontal direction in which the camera looks."""
    middle = rays(camera, camera.matrix[:2, 2])
    flat = middle * np.array([1.0, 1.0, 0.0])
    return np.asarray(flat / np.linalg.norm(flat))


def _lamps(kind: str, camera: Camera, rng: np.random.Generator) -> Lamps:
    """A sun behind the camera, to one side."""
    back = -_facing(camera)
    aside = np.radians(rng.uniform(*SUN_ASIDE_DEG)) * rng.choice([-1.0, 1.0])
    elevation = np.radians(rng.uniform(*SUN_ELEVATION_DEG))
    turned = np.array(
        [back[0] * np.cos(aside) - back[1] * np.sin(aside), back[0] * np.sin(aside) + back[1] * np.cos(aside)]
    )
    to_sun = np.array([*(turned * np.cos(elevation)), np.sin(elevation)])
    ground = {"street": (0.24, 0.23, 0.21), "garden": (0.10, 0.15, 0.05)}.get(kind, (0.22, 0.15, 0.11))
    if kind == "hall" or kind in BACKDROPS:
        sun, sky, softness = np.array([0.95, 0.87, 0.75]), np.array([0.50, 0.48, 0.45]), 0.08
    else:
        sun, sky, softness = np.array([1.0, 0.94, 0.84]), np.array([0.34, 0.39, 0.46]), 0.02
    bounce = np.array(ground) * (sun * to_sun[2] + sky)
    return Lamps(to_sun, softness, np.stack([sun, sky, bounce]))


def _tinted(colour: tuple[float, float, float], tone: Array) -> Array:
    return np.array(colour) * np.asarray(tone)[..., None]


def _mixed(first: Array, second: Array, share: Array) -> Array:
    return np.asarray(first + np.asarray(share)[..., None] * (second - first))


def _paving(x: Array, y: Array, seeds: Seeds) -> Array:
    turn, size = np.radians(seeds.uniform(5.0, 40.0)), seeds.uniform(0.35, 0.6)
    u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    row = np.floor(v / size)
    u = u + 0.5 * size * (row % 2)
    joint = np.minimum(np.abs(u / size - np.round(u / size)), np.abs(v / size - np.round(v / size))) * size
    slab = seeds.cells(np.floor(u / size), row)
    grain = seeds.noise(x, y, 0.012, 3)
    stains = seeds.noise(x, y, 0.9, 4)
    tone = (0.78 + 0.3 * slab) * (0.7 + 0.6 * grain) * (0.72 + 0.55 * stains)
    stone = _tinted((0.33, 0.31, 0.28), tone)
    return _mixed(stone, _tinted((0.10, 0.095, 0.08), 0.6 + grain), np.clip(1.4 - joint / 0.006, 0.0, 1.0))


def _grass(x: Array, y: Array, seeds: Seeds) -> Array:
    blades, tufts, patches = seeds.noise(x, y, 0.02, 3), seeds.noise(x, y, 0.12, 3), seeds.noise(x, y, 1.3, 4)
    tone = (0.2 + 2.2 * blades**2) * (0.55 + 0.9 * tufts)
    dry = np.clip(2.5 * (patches - 0.5), 0.0, 1.0)
    return _mixed(_tinted((0.10, 0.17, 0.045), tone), _tinted((0.23, 0.20, 0.09), tone), dry)


def _carpet(x: Array, y: Array, seeds: Seeds) -> Array:
    fibres, wear = seeds.noise(x, y, 0.008, 3), seeds.noise(x, y, 0.7, 4)
    tone = (0.65 + 0.7 * fibres) * (0.75 + 0.5 * wear)
    size = seeds.uniform(0.5, 0.8)
    tile = (np.floor(x / size) + np.floor(y / size)) % 2
    return _mixed(_tinted((0.21, 0.15, 0.12), tone), _tinted((0.15, 0.12, 0.115), tone), tile)


def _bricks(x: Array, z: Array, seeds: Seeds) -> Array:
    row = np.floor(z / 0.075)
    u = x / 0.25 + 0.5 * (row % 2)
    joint = np.minimum(np.abs(u - np.round(u)) * 0.25, np.abs(z / 0.075 - np.round(z / 0.075)) * 0.075)
    brick = seeds.cells(np.floor(u), row)
    grain, weather = seeds.noise(x, z, 0.03, 4), seeds.noise(x, z, 0.8, 4)
    tone = (0.6 + 0.75 * brick) * (0.65 + 0.7 * grain) * (0.75 + 0.5 * weather)
    clay = _mixed(
        _tinted((0.30, 0.15, 0.10), tone), _tinted((0.25, 0.18, 0.13), tone), seeds.cells(np.floor(u), row + 999)
    )
    return _mixed(clay, _tinted((0.33, 0.31, 0.28), 0.6 + 0.8 * grain), np.clip(1.5 - joint / 0.006, 0.0, 1.0))


def _hedge(x: Array, z: Array, seeds: Seeds) -> Array:
    leaves, twigs, bushes = seeds.noise(x, z, 0.05, 3), seeds.noise(x, z, 0.22, 4), seeds.noise(x, z, 0.9, 3)
    tone = np.clip(3.0 * leaves - 0.75, 0.08, 2.2) * (0.35 + 1.2 * twigs**1.5) * (0.6 + 0.8 * bushes)
    return _mixed(
        _tinted((0.055, 0.10, 0.03), tone), _tinted((0.13, 0.15, 0.045), tone), np.clip(2.0 * leaves - 0.6, 0.0, 1.0)
    )


def _plaster(x: Array, z: Array, seeds: Seeds) -> Array:
    grain, stains = seeds.noise(x, z, 0.02, 3), seeds.noise(x, z, 1.1, 5)
    tone = (0.93 + 0.14 * grain) * (0.85 + 0.3 * stains)
    wall = _tinted((0.42, 0.40, 0.34), tone)
    panel = np.abs(x / 1.2 - np.round(x / 1.2)) * 1.2 < 0.006
    wall = _mixed(wall, _tinted((0.30, 0.24, 0.17), tone * (0.8 + 0.5 * seeds.noise(x, z * 0.1, 0.05, 4))), z < 1.05)
    wall = _mixed(wall, _tinted((0.16, 0.12, 0.08), tone), panel & (z < 1.05))
    return _mixed(wall, _tinted((0.18, 0.14, 0.10), tone), (z < 0.10) | (np.abs(z - 1.05) < 0.025))


def _green(x: Array, y: Array, seeds: Seeds) -> Array:
    return _tinted((0.07, 0.30, 0.09), 0.9 + 0.2 * seeds.noise(x, y, 1.6, 2))


def _paper(x: Array, y: Array, seeds: Seeds) -> Array:
    return _tinted((0.52, 0.52, 0.53), 0.9 + 0.2 * seeds.noise(x, y, 1.6, 2))


def _studio_floor(x: Array, y: Array, seeds: Seeds) -> Array:
    return _tinted((0.23, 0.22, 0.21), 0.9 + 0.2 * seeds.noise(x, y, 1.6, 2))


def _add_sky(sun: Array, sky: Array, hit: Array, on_ground: Array, wall_right: Array, seeds: Seeds) -> None:
    """Open sky above a hedge with an uneven top; changes `sun` and `sky`."""
    above = np.zeros(on_ground.shape, bool)
    height = hit[~on_ground][:, 2]
    top = (
        HEDGE_M
        + 0.22 * (seeds.noise(wall_right, height, 0.08, 3) - 0.5)
        + 0.3 * (seeds.noise(wall_right, 0 * height, 1.0) - 0.5)
    )
    above[~on_ground] = height > top
    cloud = 0.25 * seeds.noise(wall_right, 2.5 * height, 2.5, 5)[height > top]
    sun[above] = 0.0
    sky[above] = np.array([0.36, 0.45, 0.56]) + cloud[:, None]


SURFACES = {
    "street": (_paving, _bricks),
    "garden": (_grass, _hedge),
    "hall": (_carpet, _plaster),
    "green": (_green, _green),
    "paper": (_studio_floor, _paper),
}
"""Ground and wall of each kind of scene."""
