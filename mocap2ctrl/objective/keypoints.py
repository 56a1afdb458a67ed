"""How far points of simulated bodies are, in the picture, from keypoints, for whole populations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mocap2ctrl.character.landmarks import Landmarks, landmarks_of
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry.camera import to_camera, world_to_camera
from mocap2ctrl.objective.markers import points_of
from mocap2ctrl.types import Array, Camera, Keypoints

WORST_CM = 50.0
"""Larger distances count as this; so does a frame that a diverged simulation never reached, or a point behind the camera."""


NEAREST_M = 0.2
"""A point that is nearer to the camera than this is not seen by it."""


class Rays(NamedTuple):
    """Keypoints as directions from a camera.

    Attributes:
        marks: the K points on the body.
        turn: (3, 3) world to camera.
        shifts: (T, 3) the same, of frames on ground that may move.
        slopes: (T, K, 2) right and down for one forward.
        shares: (T, K) how much each point counts, 0 where it is not seen, 1 in sum; all 0 where none is.
        depth_m: (T,) of the person, at which distances in the picture are told in metres.
    """

    marks: Landmarks
    turn: Array
    shifts: Array
    slopes: Array
    shares: Array
    depth_m: Array


def rays_of(character: Character, camera: Camera, keypoints: Keypoints, places: Array, carried: Array) -> Rays:
    """The rays of `keypoints`, seen by `camera`, of who is at `places` (T, 3) on ground that has moved by `carried` (T, 3).

    Points that are known less exactly count less.
    """
    marks = landmarks_of(character, keypoints.names)
    focal, centre = np.diag(camera.matrix)[:2], camera.matrix[:2, 2]
    weights = keypoints.confidence * (marks.sigma_m.min(initial=np.inf) / marks.sigma_m) ** 2
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    slopes, depth = (keypoints.pixels - centre) / focal, to_camera(camera, places + carried)[:, 2]
    turn = world_to_camera(camera)
    return Rays(marks, turn, camera.translation + carried @ turn.T, slopes, shares, depth)


def ray_distances(rays: Rays, positions: Array, orientations: Array, frames: Array) -> Array:
    """(P, F) weighted mean distance in the picture of points from where they were seen, in cm; NaN where none is seen.

    In cm at the depth where the person is known to be: at the points' own, a body would look better the nearer it is.

    Args:
        rays: the evidence.
        positions, orientations: (P, F, S, 3) and (P, F, S, 4) of segments, NaN where a simulation has diverged.
        frames: (F,) which frame of the evidence each is compared with.
    """
    world = points_of(positions, orientations, rays.marks.segment, rays.marks.local)
    seen = world @ rays.turn.T + rays.shifts[frames][:, None]
    before = seen[..., 2] > NEAREST_M  # false for NaN
    slopes = seen[..., :2] / np.where(before, seen[..., 2], 1.0)[..., None]
    distance = 100.0 * rays.depth_m[frames][:, None] * np.linalg.norm(slopes - rays.slopes[frames], axis=-1)
    distance = np.where(before, np.minimum(distance, WORST_CM), WORST_CM)
    shares = rays.shares[frames]
    return np.where(shares.any(axis=1), np.sum(distance * shares, axis=-1), np.nan)
