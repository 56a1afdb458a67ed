"""From a moving body before a scene to the pictures of a phone: shutter, lens, sensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.geometry.camera import camera_centre, project, rays
from mocap2ctrl.motion import clips
from mocap2ctrl.types import Array, Camera, Masks, MotionClip
from rendering import solids
from rendering.conditions import Conditions
from rendering.performer import Performer
from rendering.scenery import Scene

Image = npt.NDArray[np.uint8]
Body = tuple[Array, Array]
"""`shape` and `rest` of `solids.py`."""
Sun = tuple[Array, Array, float]
"""See `solids._sunlight`."""

SHUTTER_S = 1.0 / 60.0
SHADOW_CELL_M = 0.012
SHADOW_REACH_M = 0.25
LENS_SIGMA_PX = 0.55
FLICKER = 0.006
PHOTON_NOISE = 2.6e-4
READ_NOISE = 1.3e-3
NOISE_GRAIN_PX = 0.45
TYPICAL, BRIGHTEST = 0.19, 0.95
"""Linear values of the empty scene: its geometric mean, unless its brightest hundredth would then exceed the second one."""


@dataclass(frozen=True, eq=False)
class Shot:
    """All that footage is made of.

    Attributes:
        performer: who.
        motion: the performer's, at any rate.
        camera, scene: where.
        seed: of flicker and noise.
        subframes: moments within the time that the shutter is open that each pixel sees.
        samples: samples a pixel at each of them.
        conditions: what changes while the camera runs, and how noisy its sensor is.
    """

    performer: Performer
    motion: MotionClip
    camera: Camera
    scene: Scene
    seed: int
    subframes: int = 4
    samples: int = 2
    conditions: Conditions = field(default_factory=Conditions)

    def clean_plate(self) -> Image:
        """The empty scene with its own noise."""
        light, noise = self.scene.sun + self.scene.sky, self.conditions.noise
        return _developed(light, self._exposure(), np.random.default_rng([self.seed, 10]), noise)

    def frames(self, times_s: Array) -> Iterator[tuple[Image, Masks]]:
        """The picture (H, W, 3) and the silhouette (H, W) at each time: at least half of a pixel is the person."""
        exposure = self._exposure()
        for index, time_s in enumerate(times_s):
            rng = np.random.default_rng([self.seed, 11, index])
            moment = replace(self, scene=self.conditions.scene_at(self.scene, float(time_s)))
            light, share = moment._seen(float(time_s), rng)
            flicker = 1.0 + FLICKER * float(rng.uniform(-1.0, 1.0))
            gain = exposure * flicker * self.conditions.exposure(float(time_s))
            yield _developed(light, gain, rng, self.conditions.noise), share >= 0.5

    def _exposure(self) -> float:
        empty = self.scene.sun + self.scene.sky
        level = float(np.exp(np.mean(np.log(empty + 1e-3))))
        return min(TYPICAL / level, BRIGHTEST / float(np.percentile(empty, 99.0)))

    def _seen(self, time_s: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Linear light (H, W, 3) and the person's share (H, W) of each pixel."""
        count = self.subframes * solids.PHASES
        moments = time_s + SHUTTER_S * ((np.arange(count) + 0.5) / count - 0.5)
        bodies = self._posed(np.array([time_s, *moments]))
        sun = self._sun(bodies[0])
        light = self._background(bodies[0], sun)
        person = np.zeros((*light.shape[:2], 4))
        jitter = _spread_samples(count * self.samples, rng).reshape(count, self.samples, 2)
        shuffle = int(rng.integers(0, 1_000_000))
        for index, body in enumerate(bodies[1:]):
            self._draw(body, sun, jitter[index], (index % solids.PHASES, shuffle), person)
        person /= self.subframes * self.samples
        share = person[..., 3]
        return light * (1.0 - share[..., None]) + person[..., :3], share

    def _draw(self, body: Body, sun: Sun, jitter: Array, phase: tuple[int, int], person: Array) -> None:
        """Adds samples of one moment to `person` (H, W, 4)."""
        left, top, right, bottom = self._box(body[0])
        if right <= left or bottom <= top:
            return
        view, box = self._rays(left, top), person[top:bottom, left:right]
        tiles, turn = _tiles(view, right - left, bottom - top, body[0]), np.array([*phase, left, top])
        who = self.performer
        looks = (self.scene.lamps.colours, who.colours, who.pattern, who.head)
        for offset in jitter:
            solids.draw_body(view, offset, turn, *body, who.kind, tiles, sun, *looks, box)

    def _posed(self, times_s: Array) -> list[Body]:
        motion = clips.at_times(self.motion, times_s)
        frames = clip_frames(self.performer.character, motion)
        return [self.performer.posed(*frame) for frame in zip(*frames, strict=True)]

    def _box(self, shape: Array) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of the part of the picture that may show the body, pixels."""
        ends, reach = shape[:, :6].reshape(-1, 3), np.repeat(np.max(shape[:, 6:8], axis=1) + 0.02, 2)
        corners = ends[:, None] + reach[:, None, None] * np.array(
            [[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
        )
        pixels = project(self.camera, corners).reshape(-1, 2)
        low = np.clip(np.floor(pixels.min(axis=0)), 0, self.camera.size).astype(int)
        high = np.clip(np.ceil(pixels.max(axis=0)) + 1, 0, self.camera.size).astype(int)
        return int(low[0]), int(low[1]), int(high[0]), int(high[1])

    def _rays(self, left: int, top: int) -> Array:
        """(6, 3) the rays of the pixels from (left, top) on: see `solids.tile_solids`."""
        first, right, below = rays(self.camera, [[left, top], [left + 1, top], [left, top + 1]])
        view = np.zeros((6, 3))
        view[0], view[3], view[4], view[5] = camera_centre(self.camera), first, right - first, below - first
        return view

    def _sun(self, body: Body) -> Sun:
        """The body as the sun sees it: see `solids._sunlight`."""
        shape, rest = body
        to_sun = self.scene.lamps.to_sun
        u = np.cross(to_sun, [0.0, 0.0, 1.0])
        u /= np.linalg.norm(u)
        v = np.cross(u, to_sun)
        seen = shape[:, :6].reshape(-1, 3) @ np.stack([u, v, to_sun]).T
        reach = float(np.max(shape[:, 6:8])) + 0.05
        low_u, low_v = np.min(seen[:, :2], axis=0) - reach
        high_u, high_v, high_s = np.max(seen, axis=0) + reach
        width, height = int((high_u - low_u) / SHADOW_CELL_M) + 1, int((high_v - low_v) / SHADOW_CELL_M) + 1
        view = np.zeros((6, 3))
        view[0] = low_u * u + low_v * v + high_s * to_sun
        view[1], view[2], view[3] = SHADOW_CELL_M * u, SHADOW_CELL_M * v, -to_sun
        lists, counts, near, far = _tiles(view, width, height, shape)
        depth = np.empty((height, width))
        solids.depth_map(view, width, height, shape, rest, self.performer.kind, lists, counts, near, far, depth)
        depth = np.where(depth < solids.FAR, high_s - depth, -solids.FAR)
        frame = np.stack([u, v, to_sun, [low_u, low_v, SHADOW_CELL_M]])
        return depth, frame, self.scene.lamps.softness

    def _background(self, body: Body, sun: Sun) -> Array:
        """Linear light (H, W, 3) of the scene with the body's shadow."""
        image = self.scene.sun + self.scene.sky
        left, top, right, bottom = self._shadow_box(body[0])
        if right <= left or bottom <= top:
            return image
        part = (slice(top, bottom), slice(left, right))
        light, sky = np.ones((bottom - top, right - left)), np.ones((bottom - top, right - left))
        ends = body[0][:, :6].reshape(-1, 2, 3)
        balls = np.concatenate([ends.mean(axis=1), body[0][:, 6:8].mean(axis=1)[:, None]], axis=1)
        solids.ground_light(np.ascontiguousarray(self.scene.places[part]), balls, sun, light, sky)
        image[part] = self.scene.sun[part] * light[..., None] + self.scene.sky[part] * sky[..., None]
        return image

    def _shadow_box(self, shape: Array) -> tuple[int, int, int, int]:
        """The part of the picture where the ground may lie in the body's shadow."""
        to_sun = self.scene.lamps.to_sun
        ends = shape[:, :6].reshape(-1, 3)
        fallen = ends - ends[:, 2:] / to_sun[2] * to_sun
        places = np.concatenate([fallen, ends * np.array([1.0, 1.0, 0.0])])
        near = np.zeros((len(places), 1))
        return self._box(np.concatenate([places, places, near + SHADOW_REACH_M, near + SHADOW_REACH_M], axis=1))


def exact_masks(performer: Performer, motion: MotionClip, camera: Camera, times_s: Array) -> Masks:
    """(T, H, W) silhouettes at moments, without any light: a pixel is set when the ray through its middle meets the body."""
    width, height = camera.size
    first, right, below = rays(camera, [[0, 0], [1, 0], [0, 1]])
    view = np.zeros((6, 3))
    view[0], view[3], view[4], view[5] = camera_centre(camera), first, right - first, below - first
    masks = np.zeros((len(times_s), height, width), bool)
    frames = clip_frames(performer.character, clips.at_times(motion, times_s))
    for mask, *frame in zip(masks, *frames, strict=True):
        shape, rest = performer.posed(*frame)
        depth = np.empty((height, width))
        solids.depth_map(view, width, height, shape, rest, performer.kind, *_tiles(view, width, height, shape), depth)
        mask[:] = depth < solids.FAR
    return masks


def _tiles(view: Array, width: int, height: int, shape: Array) -> tuple[Array, Array, Array, Array]:
    tiles = -(-width // solids.TILE) * -(-height // solids.TILE)
    lists, counts = np.zeros((tiles, len(shape)), np.int64), np.zeros(tiles, np.int64)
    near, far = np.zeros(tiles), np.zeros(tiles)
    solids.tile_solids(view, width, height, shape, lists, counts, near, far)
    return lists, counts, near, far


def _spread_samples(count: int, rng: np.random.Generator) -> Array:
    """(count, 2) places within a pixel, -0.5 to 0.5: one in each of `count` columns and rows, in random order."""
    steps = (np.arange(count) + 0.5) / count - 0.5
    return np.stack([rng.permutation(steps), rng.permutation(steps)], axis=1)


def _developed(light: Array, exposure: float, rng: np.random.Generator, noise: float = 1.0) -> Image:
    """The picture that a phone makes of linear light: lens, sensor (`noise` times as noisy as usual), sRGB."""
    seen = cv2.GaussianBlur(light, (0, 0), LENS_SIGMA_PX) * (
        exposure * _vignette(light.shape[0], light.shape[1])[..., None]
    )
    deviation = np.sqrt(PHOTON_NOISE * np.maximum(seen, 0.0) + READ_NOISE**2)
    grain = rng.standard_normal(seen.shape, dtype=np.float32)
    grain = cv2.GaussianBlur(grain, (0, 0), NOISE_GRAIN_PX)
    grain /= float(np.std(grain))
    seen = np.clip(seen + noise * deviation * grain, 0.0, 1.0)
    encoded = np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1.0 / 2.4) - 0.055)
    return np.asarray(np.rint(255.0 * encoded), np.uint8)


def _vignette(height: int, width: int) -> Array:
    y, x = np.mgrid[:height, :width]
    r2 = ((x - 0.5 * (width - 1)) ** 2 + (y - 0.5 * (height - 1)) ** 2) / (0.5 * width) ** 2
    return np.asarray(1.0 - 0.14 * r2)
