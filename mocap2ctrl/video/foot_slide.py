"""How the ground moves by the camera: feet that stand keep their place on it, so a belt takes all of them along at one velocity.

Soles are looked for in the lower edge of the masks. A velocity is believed in as far as pixels of that edge, moved along by it,
stay on the edge of the following frames: feet that stand do so for the true velocity of the ground, and for no other. Soles are
long, so they tell the direction better than the speed; that is told by what ends them, toes and heels, in the same manner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.geometry.camera import on_plane, project, world_to_camera
from mocap2ctrl.geometry.masks import row_spans
from mocap2ctrl.types import Array, Camera, Masks, Silhouettes

SOLES, SHOES = 0.1, 0.08
"""Shares of the person's height, above the lowest masks, in which lower edges, and sides, are looked at."""
LOWEST_PERCENTILE = 90.0
"""Of the masks' lowest rows: who stands is not lower, who jumps is higher."""

LONG_S, SHORT_S, SHORT_M = 0.2, 0.13, 0.4
"""Feet are followed for `LONG_S` seconds, for the exact speed as long as it takes for `SHORT_M` metres: a fast runner's stand
hardly longer than `SHORT_S`."""
POWER = 4.0
"""A pixel that leaves the edge half-way counts as little as this power of one half."""

FASTEST_ASIDE, FASTEST_AWAY = 7.0, 4.5
"""Velocities that are looked for, across the view and along it, m/s."""
COARSE, FINE = 0.5, 0.12
"""Steps between them, m/s."""
AROUND = 4
"""Steps on each side of the best so far that are looked at next."""
SPEEDS = np.arange(0.8, 1.36, 0.02)
"""Of the first guess, that are looked at in the end; soles that roll from heel to toe make it too small."""
TURNS = np.radians(np.arange(-24.0, 25.0, 2.0))
ROUNDS = 2
"""How often directions around the best, and then speeds, are looked at."""
NEAR_BEST = 0.9
"""The mean of all speeds that are believed in more than this share of the best is the result."""
DIRECTIONS = 48
COARSE_PIXELS, FINE_PIXELS = 1500, 6000
"""About so many pixels of edges are looked at."""
PADDING = 8
NEARBY_M = 0.05


@dataclass(frozen=True, eq=False)
class Slide:
    """The velocity that standing feet have before a camera.

    Attributes:
        velocity: (2,) world, m/s.
        kept: share of the soles that go with it, 0 to 1.
        kept_still: share of them that rest, 0 to 1.
        across: share of the velocity that lies across the view, 0 to 1; along the view it is hardly seen.
    """

    velocity: Array
    kept: float
    kept_still: float
    across: float

    @property
    def speed(self) -> float:
        """m/s."""
        return float(np.linalg.norm(self.velocity))


class _Edge(NamedTuple):
    """Pixels of outlines.

    Attributes:
        frame, row, column: (N,) of each pixel.
        near: (T, H + 2 PADDING, W + 2 PADDING) what is within a pixel of an outline.
    """

    frame: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    column: npt.NDArray[np.int64]
    near: Masks

    def kept(self, flows: Array, frames: int) -> Array:
        """(K,) how many of the pixels stay on the outline for `frames` frames, moved by flows (K, 2) in pixels a frame."""
        used = self.frame + frames < len(self.near)
        if not used.any():
            return np.zeros(len(flows))
        frame, row, column = (values[used, None] for values in self[:3])
        ahead = np.arange(1, frames + 1)
        height, width = self.near.shape[1:]
        result = np.empty(len(flows))
        for i, (right, down) in enumerate(flows):
            rows = np.clip(np.rint(row + down * ahead).astype(int) + PADDING, 0, height - 1)
            columns = np.clip(np.rint(column + right * ahead).astype(int) + PADDING, 0, width - 1)
            result[i] = np.mean(self.near[frame + ahead, rows, columns].mean(axis=1) ** POWER)
        return result

    def thinned(self, count: int) -> _Edge:
        """About `count` of the pixels."""
        every = max(1, len(self.frame) // count)
        return _Edge(self.frame[::every], self.row[::every], self.column[::every], self.near)


def foot_slide(silhouettes: Silhouettes) -> Slide | None:
    """How standing feet move before the camera of `silhouettes`; None where no foot stands on visible ground for long enough."""
    axes = _ground_axes(silhouettes.camera)
    flow = _pixels_per_metre(silhouettes, axes)
    long = max(3, round(LONG_S * silhouettes.fps))
    if flow is None or len(silhouettes) <= long:
        return None
    flow = flow / silhouettes.fps
    soles = _edge(silhouettes.masks, SOLES, sides=False).thinned(FINE_PIXELS)
    if not len(soles.frame):
        return None
    best = _best(lambda v: soles.thinned(COARSE_PIXELS).kept(v @ flow.T, long), _coarse_velocities())
    best = _best(lambda v: soles.kept(v @ flow.T, long), best + _around(FINE))
    kept, still = soles.kept(np.array([best, np.zeros(2)]) @ flow.T, long)
    follow_s = np.clip(SHORT_M / max(float(np.linalg.norm(best)), 1e-9), SHORT_S, LONG_S)
    short = max(3, round(follow_s * silhouettes.fps))
    shoes = _edge(silhouettes.masks, SHOES, sides=True).thinned(FINE_PIXELS)
    for _ in range(ROUNDS):
        turned = _turned(best)
        best = _mean_near_best(turned, soles.kept(turned @ flow.T, short))
        faster = SPEEDS[:, None] * best
        best = _mean_near_best(faster, shoes.kept(faster @ flow.T, short))
    across = abs(best[0]) / max(float(np.linalg.norm(best)), 1e-9)
    return Slide(best @ axes, float(kept), float(still), float(across))


def slide_at(silhouettes: Silhouettes, speed: float) -> Array:
    """(2,) world velocity of a belt whose speed is known, m/s: in the direction that most of the soles go with."""
    axes = _ground_axes(silhouettes.camera)
    flow = _pixels_per_metre(silhouettes, axes)
    angles = 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    velocities = speed * np.column_stack([np.cos(angles), np.sin(angles)])
    if flow is None:
        return np.asarray(velocities[0] @ axes)
    frames = max(3, round(LONG_S * silhouettes.fps))
    soles = _edge(silhouettes.masks, SOLES, sides=False).thinned(FINE_PIXELS)
    return np.asarray(velocities[int(np.argmax(soles.kept(velocities @ flow.T / silhouettes.fps, frames)))] @ axes)


def _ground_axes(camera: Camera) -> Array:
    """(2, 2) rows are the ground's directions to the right of the view and away from the camera, in world x and y."""
    right = world_to_camera(camera)[0, :2]
    right = right / np.linalg.norm(right)
    return np.array([right, [-right[1], right[0]]])


def _pixels_per_metre(silhouettes: Silhouettes, axes: Array) -> Array | None:
    """(2, 2) how pixels change, right and down, with a step on the ground along each of `axes`, where the person stands."""
    camera, masks = silhouettes.camera, silhouettes.masks
    columns = np.flatnonzero(masks.any(axis=(0, 1)))
    if not len(columns):
        return None
    across = masks.sum(axis=(0, 1))
    middle = float(np.average(np.arange(len(across)), weights=across))
    place = on_plane(camera, np.array([middle, np.median(row_spans(masks)[:, 1]) - 0.5]))
    if not np.isfinite(place).all():
        return None
    steps = NEARBY_M * np.column_stack([axes, np.zeros(2)])
    return np.asarray(((project(camera, place + steps) - project(camera, place - steps)) / (2.0 * NEARBY_M)).T)


def _edge(masks: Masks, share: float, *, sides: bool) -> _Edge:
    """The lower edges of masks, or their sides, in a band above the ground of `share` of the person's height."""
    spans = row_spans(masks)
    top = np.percentile(spans[:, 1], LOWEST_PERCENTILE) - max(3.0, share * float(np.median(np.diff(spans, axis=1))))
    padded = np.pad(masks, ((0, 0), (PADDING, PADDING), (PADDING, PADDING)))
    inner = np.roll(padded, 1, axis=2) & np.roll(padded, -1, axis=2) if sides else np.roll(padded, -1, axis=1)
    edge = padded & ~inner
    edge[:, : max(0, int(top)) + PADDING] = False
    near = edge | np.roll(edge, 1, axis=1) | np.roll(edge, -1, axis=1)
    if sides:
        near |= np.roll(near, 1, axis=2) | np.roll(near, -1, axis=2)
    frame, row, column = np.nonzero(edge)
    return _Edge(frame, row - PADDING, column - PADDING, near)


def _turned(velocity: Array) -> Array:
    """(K, 2) the velocity in all directions of `TURNS`."""
    cos, sin = np.cos(TURNS), np.sin(TURNS)
    return np.column_stack([cos * velocity[0] - sin * velocity[1], sin * velocity[0] + cos * velocity[1]])


def _coarse_velocities() -> Array:
    """(K, 2) all velocities that are looked for."""
    aside, away = (np.arange(-fastest, fastest + 1e-9, COARSE) for fastest in (FASTEST_ASIDE, FASTEST_AWAY))
    return np.stack(np.meshgrid(aside, away), axis=-1).reshape(-1, 2)


def _around(step: float) -> Array:
    """(K, 2) up to `AROUND` steps in both directions."""
    steps = step * np.arange(-AROUND, AROUND + 1)
    return np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)


def _best(belief: Callable[[Array], Array], velocities: Array) -> Array:
    return np.asarray(velocities[int(np.argmax(belief(velocities)))])


def _mean_near_best(velocities: Array, belief: Array) -> Array:
    weights = np.maximum(belief - NEAR_BEST * belief.max(), 0.0)
    return np.asarray(np.average(velocities, axis=0, weights=weights)) if weights.any() else velocities.mean(axis=0)
