"""Eq. (9): how far a simulated body's masks are from silhouettes, for whole populations, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import SeenBody, seen_body
from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry.rasteriser import fill_capsules
from mocap2ctrl.objective.target import SilhouetteTarget
from mocap2ctrl.types import Array

WORST = 2.0
"""Eq. (9) of masks without a common pixel; also of a body that is not in the picture, or whose simulation has diverged."""


class View(NamedTuple):
    """Evidence and body as compiled code takes them; `view_of` makes it.

    Attributes:
        masks: (T, H, W) uint8, 1 where the person is.
        areas: (T,) pixels of each mask.
        shifts: (T, 3) the camera's translation at each mask, from a world whose ground rests.
        body: with the person's girth.
    """

    masks: npt.NDArray[np.uint8]
    areas: npt.NDArray[np.int64]
    shifts: Array
    body: SeenBody


def view_of(character: Character, target: SilhouetteTarget) -> View:
    """The arrays of a target, seen as `character`'s silhouettes."""
    masks = target.masks.astype(np.uint8)
    areas = np.array(masks.sum(axis=(1, 2), dtype=np.int64))
    body = seen_body(character, target.camera, target.girth)
    return View(masks, areas, body.shift + target.carried @ body.turn.T, body)


def silhouette_distances(view: View, positions: Array, orientations: Array, frames: npt.ArrayLike) -> Array:
    """(P, F) the symmetric distance of Eq. (9), 0 to 2; NaN for frames without evidence.

    Args:
        view: the evidence.
        positions, orientations: (P, F, S, 3) and (P, F, S, 4) of segments, NaN where a simulation has diverged.
        frames: (F,) which silhouette each frame is compared with.
    """
    index = np.ascontiguousarray(frames, np.int64)
    place, turn = (
        np.require(a, float, ["C", "W"]) for a in (positions, orientations)
    )  # read-only is another type to numba
    return np.asarray(_distances(view, place, turn, index))


def compile_silhouettes(view: View) -> None:
    """Compiles the comparison, or loads it from the cache, by looking at no frames."""
    segments = int(view.body.owner.max()) + 1
    silhouette_distances(view, np.zeros((1, 0, segments, 3)), np.zeros((1, 0, segments, 4)), np.zeros(0))


@njit
def _distances(view, positions, orientations, frames):  # type: ignore[no-untyped-def]
    population, count = positions.shape[:2]
    drawn = np.zeros(view.masks.shape[1:], np.uint8)
    body = view.body
    ends = np.empty((len(body.radii), 2, 3))
    result = np.empty((population, count))
    for p in range(population):
        for f in range(count):
            t = frames[f]
            if view.areas[t] == 0:
                result[p, f] = np.nan
            elif not np.isfinite(positions[p, f, 0, 0]):
                result[p, f] = WORST
            else:
                _place_capsules(ends, positions[p, f], orientations[p, f], body)
                box = fill_capsules(drawn, ends, body.radii, body.turn, view.shifts[t], body.pinhole)
                model, both = _count_and_clear(drawn, view.masks[t], box)
                result[p, f] = _equation_9(both, view.areas[t] - both, model - both)
    return result


@njit
def _equation_9(both, only_seen, only_model):  # type: ignore[no-untyped-def]
    """Y, R and B of Eq. (9); the silhouette has a pixel."""
    if both == 0:
        return WORST
    return only_model / (only_model + both) + only_seen / (only_seen + both)


@njit
def _place_capsules(ends, positions, orientations, body):  # type: ignore[no-untyped-def]
    """Writes the capsules' world ends (C, 2, 3), from segments (S, 3) and (S, 4)."""
    for c in range(len(body.owner)):
        owner = body.owner[c]
        w, x, y, z = orientations[owner]
        for e in range(2):
            a, b, d = body.local[c, e]
            u = 2.0 * (y * d - z * b)
            v = 2.0 * (z * a - x * d)
            s = 2.0 * (x * b - y * a)
            ends[c, e, 0] = positions[owner, 0] + a + w * u + y * s - z * v
            ends[c, e, 1] = positions[owner, 1] + b + w * v + z * u - x * s
            ends[c, e, 2] = positions[owner, 2] + d + w * s + x * v - y * u


@njit
def _count_and_clear(drawn, seen, box):  # type: ignore[no-untyped-def]
    """Pixels of the model, and of both masks, inside the box, which is emptied for the next body."""
    model, both = 0, 0
    top, bottom, left, right = box
    for row in range(top, bottom):
        for column in range(left, right):
            model += drawn[row, column]
            both += drawn[row, column] & seen[row, column]
            drawn[row, column] = 0
    return model, both
