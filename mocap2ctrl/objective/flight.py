"""What momentum a reference's flights ask for: in the air nothing but gravity changes it.

Captured flights break this: markers are smoothed, frames are few, bodies are not weighed. A controller that leaves the ground
with the momentum that the reference has in that moment does not come down where the reference does. What the body must have, all
the time from take-off to landing, is that of the ballistic flight nearest to the reference's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import lowest_points, points_world, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.motion.runs import runs
from mocap2ctrl.simulation.environment import GRAVITY_M_S2
from mocap2ctrl.types import Array

HIGH_M = 0.025
"""Nothing of a body that flies is lower than this."""

SHORTEST_S = 0.2
"""Shorter ones, as in running, are over before an error of momentum shows."""

FALLING = 0.5
"""A body that flies falls with at least this share of gravity; one that was captured too high does not."""


@dataclass(frozen=True, eq=False)
class PointMasses:
    """A character as points that have its masses and moments of inertia.

    Attributes:
        segment: (N,) which each is fixed to.
        local: (N, 3) where, in the segment's frame, metres.
        mass: (N,) kg.
        gyration_m: radius of gyration of the whole body as it stands.
    """

    segment: npt.NDArray[np.int64]
    local: Array
    mass: Array
    gyration_m: float


@dataclass(frozen=True, eq=False)
class Momentum:
    """What physics makes of a reference's momentum, between neighbouring frames.

    Attributes:
        flying: (T - 1,) whether the reference flies.
        velocity: (T - 1, 3) what is to be added to the velocity of its centre of mass there, m/s; zero where it does not fly.
        spin: (T - 1, 3) angular momentum as `spin` tells it, m/s; zero where the reference does not fly.
    """

    flying: npt.NDArray[np.bool_]
    velocity: Array
    spin: Array

    def between(self, first_frame: int, last_frame: int) -> Momentum:
        """The same between two frames."""
        rows = slice(first_frame, last_frame)
        return Momentum(self.flying[rows], self.velocity[rows], self.spin[rows])


@lru_cache(maxsize=4)
def point_masses(character: Character) -> PointMasses:
    """Six points a segment, a pair on each principal axis of its inertia."""
    segment, local, mass = [], [], []
    for index, s in enumerate(character.segments):
        moments, axes = np.linalg.eigh(s.inertia_tensor)
        reach = np.sqrt(np.maximum(3.0 * (0.5 * moments.sum() - moments) / s.mass, 0.0))
        for axis, length in zip(axes.T, reach, strict=True):
            local += [s.com + length * axis, s.com - length * axis]
        segment += [index] * 6
        mass += [s.mass / 6.0] * 6
    points = PointMasses(np.array(segment), np.array(local), np.array(mass), 1.0)
    pose = character.zero_pose()
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    world = points_world(*frames, points.segment, points.local)
    centred = world - points.mass @ world / points.mass.sum()
    moments = np.linalg.eigvalsh(np.einsum("n,ni,nj->ij", points.mass, centred, centred))
    return PointMasses(points.segment, points.local, points.mass, float(np.sqrt(moments[1:].sum() / points.mass.sum())))


def spin(points: Array, body: PointMasses, fps: float) -> Array:
    """(..., T - 1, 3) angular momentum about the centre of mass between frames of the body's points (..., T, N, 3), in m/s.

    As the speed that it gives the whole mass at the radius of gyration of the standing body.
    """
    share = body.mass / body.mass.sum()
    points = points - (share @ points)[..., None, :]
    between, step = 0.5 * (points[..., 1:, :, :] + points[..., :-1, :, :]), np.diff(points, axis=-3)
    # Of the products r v' of all points only the antisymmetric part counts: r x v. One product of matrices is far faster.
    product = np.swapaxes(share[:, None] * between, -1, -2) @ step
    cross = [product[..., i, j] - product[..., j, i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.asarray(np.stack(cross, axis=-1) * (fps / body.gyration_m))


def flight_momentum(
    character: Character, positions: Array, orientations: Array, com: Array, fps: float
) -> Momentum | None:
    """What the flights of a motion ask for; None for a motion that does not fly.

    Args:
        character: the body.
        positions, orientations: (T, S, 3) and (T, S, 4) of its segments.
        com: (T, 3) centre of mass, metres.
        fps: frames a second.
    """
    high = np.min(lowest_points(character, positions, orientations), axis=-1) > HIGH_M
    body = point_masses(character)
    velocity = np.diff(com, axis=0) * fps
    turning = spin(points_world(positions, orientations, body.segment, body.local), body, fps)
    found = Momentum(np.zeros(len(velocity), dtype=bool), np.zeros_like(velocity), np.zeros_like(velocity))
    for first, stop in runs(high):
        rows, steps = slice(first, stop - 1), stop - 1 - first
        time = (np.arange(steps) - 0.5 * (steps - 1)) / fps
        if steps / fps < SHORTEST_S or -np.polyfit(time, velocity[rows, 2], 1)[0] < FALLING * GRAVITY_M_S2:
            continue
        # The slope of the line that fits a path best, in the least squares, is such a mean of its velocities.
        share = (1.0 + np.arange(steps)) * (steps - np.arange(steps))
        share /= share.sum()
        ballistic = share @ velocity[rows] - np.outer(time, (0.0, 0.0, GRAVITY_M_S2))
        found.flying[rows] = True
        found.velocity[rows] = ballistic - velocity[rows]
        found.spin[rows] = share @ turning[rows]
    return found if found.flying.any() else None
