"""Keypoints as evidence of a track: how far points of the body are, in the picture, from where they were seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.landmarks import landmarks_of
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import SeenBody
from mocap2ctrl.track.outline import NEAREST_M
from mocap2ctrl.track.tree import Points, Tree, points_with_jacobian
from mocap2ctrl.types import Array, Keypoints

STANDS_FOR_S = 0.2
"""A frame of keypoints counts for the frames around it that have none, up to so many seconds before and after."""


class SeenPoints(NamedTuple):
    """Keypoints as the energy takes them.

    Attributes:
        points: segments (K,) and places (K, 3) of the points on the body.
        slopes: (T, K, 2) of the rays on which they are seen: right and down for one forward, in the camera's frame.
        confidence: (T, K) 0 where a point is not seen; times the frames that it stands for.
        sigma_m: (K,) standard deviations, metres.
        depth_m: of the person, about: how far apart two points are in the picture is told in metres there.
    """

    points: Points
    slopes: Array
    confidence: Array
    sigma_m: Array
    depth_m: float

    def reversed(self) -> SeenPoints:
        """The same backwards in time."""
        return self._replace(slopes=self.slopes[::-1], confidence=self.confidence[::-1])

    def window(self, begin: int, end: int) -> SeenPoints:
        """The same for frames `begin` up to `end`."""
        return self._replace(slopes=self.slopes[begin:end], confidence=self.confidence[begin:end])


def seen_points(
    keypoints: Keypoints | None, character: Character, view: SeenBody, pixels_per_m: float, fps: float
) -> SeenPoints | None:
    """The arrays of `keypoints` on `character`, in pixels of `view`; None without keypoints, or where none is seen."""
    if keypoints is None or not keypoints.confidence.any():
        return None
    marks = landmarks_of(character, keypoints.names)
    slopes = (keypoints.pixels - view.pinhole[2:]) / view.pinhole[:2]
    depth = float(view.pinhole[0] / pixels_per_m)
    counts = frames_stood_for(np.any(keypoints.confidence, axis=1), STANDS_FOR_S * fps)
    return SeenPoints(
        (marks.segment, marks.local), slopes, counts[:, None] * keypoints.confidence, marks.sigma_m, depth
    )


def frames_stood_for(seen: npt.NDArray[np.bool_], most: float) -> Array:
    """(T,) how many frames each one with keypoints stands for: itself, and halfway to the next, at most `most` on each side."""
    frames = np.flatnonzero(seen)
    gaps = 0.5 * (np.diff(frames) - 1.0)
    before = np.concatenate([[frames[0]], gaps])
    after = np.concatenate([gaps, [len(seen) - 1.0 - frames[-1]]])
    counts = np.zeros(len(seen))
    counts[frames] = 1.0 + np.minimum(before, most) + np.minimum(after, most)
    return counts


class PointForces(NamedTuple):
    """The energy of seen points, and its pull at them.

    Attributes:
        energy: (T,) in each frame.
        force, stiffness: (T, 2 K) along the directions right and down of each point.
        jacobian: (T, 2 K, D + G) how the points move in these directions; of no frames without derivatives.
    """

    energy: Array
    force: Array
    stiffness: Array
    jacobian: Array


def point_forces(
    seen: SeenPoints,
    tree: Tree,
    view: SeenBody,
    body: Array,
    poses: tuple[Array, Array, Array],
    shifts: Array,
    reach: float,
    derivatives: bool,
) -> PointForces:
    """Robust energy of the distances in the picture between points and where they were seen, in metres at the person's depth.

    One depth for all: at the points' own, a body would look better the nearer it is. A distance of `reach` standard deviations
    or less counts as a Gaussian's, more as its logarithm (Cauchy): detectors take left for right in some frames, and such a point
    must be left alone by a body that others hold.

    Args:
        seen: the keypoints of the poses' frames.
        tree, view, body: as for the outline.
        poses: root positions (T, 3), orientations (T, 4) and angles (T, J).
        shifts: (T, 3) from the world to the camera in each frame.
        reach: in standard deviations.
        derivatives: whether the jacobian is wanted.
    """
    world, jacobian = points_with_jacobian(tree, body, *poses, *seen.points, derivatives)
    camera = world @ view.turn.T + shifts[:, None]
    depth = np.maximum(camera[..., 2:], NEAREST_M)
    slopes = camera[..., :2] / depth
    off = seen.depth_m * (slopes - seen.slopes)
    variance = (reach * seen.sigma_m) ** 2
    squared = np.sum(off**2, axis=-1) / variance
    energy = 0.5 * reach**2 * np.sum(seen.confidence * np.log1p(squared), axis=1)
    stiffness = seen.confidence / (seen.sigma_m**2 * (1.0 + squared))
    across = seen.depth_m / depth[..., None] * (view.turn[:2] - slopes[..., None] * view.turn[2])  # (T, K, 2, 3)
    count = len(world)
    moved = across @ jacobian if derivatives else jacobian[:, :, :2]
    return PointForces(
        energy,
        (stiffness[..., None] * off).reshape(count, -1),
        np.repeat(stiffness, 2, axis=1),
        moved.reshape(len(moved), 2 * len(seen.sigma_m), jacobian.shape[-1]),
    )
