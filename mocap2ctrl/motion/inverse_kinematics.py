"""Least-squares inverse kinematics over whole motions: Gauss-Newton with a geometric Jacobian, all frames at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import points_world, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array

CHUNK = 256
DAMPING = 1e-6
MAX_STEP_RAD = 0.5


@dataclass(frozen=True, eq=False)
class PointTargets:
    """Where points of the body should be.

    Attributes:
        segment: (N,) segment of each point.
        local: (N, 3) place in the segment's frame, metres.
        world: (T, N, 3) wanted world positions, metres.
        weight: (N,) weight of each point's squared distance.
    """

    segment: npt.NDArray[np.int64]
    local: Array
    world: Array
    weight: Array


State = tuple[Array, Array, Array]
"""Root positions (T, 3), root orientations (T, 4), angles (T, J)."""


def reach(
    character: Character,
    first_guess: State,
    targets: PointTargets,
    preferred: Array,
    *,
    stay_weight: float | Array,
    iterations: int = 8,
) -> State:
    """Move a motion so that its points come near their targets, within the joint limits.

    Minimises the weighted squared distances plus `stay_weight` times the squared distance of the angles from those
    preferred, frame by frame.

    Args:
        character: the body.
        first_guess: where to start.
        targets: what to reach.
        preferred: (T, J) radians.
        stay_weight: m^2 / rad^2, one for all or (T, J).
        iterations: Gauss-Newton steps.
    """
    stay = np.broadcast_to(np.asarray(stay_weight, dtype=float), preferred.shape)
    parts = []
    for start in range(0, len(preferred), CHUNK):
        part = slice(start, start + CHUNK)
        piece = PointTargets(targets.segment, targets.local, targets.world[part], targets.weight)
        state = (first_guess[0][part], first_guess[1][part], first_guess[2][part])
        for _ in range(iterations):
            state = _step(character, state, preferred[part], piece, stay[part])
        parts.append(state)
    position, orientation, bent = zip(*parts, strict=True)
    return np.concatenate(position), np.concatenate(orientation), np.concatenate(bent)


def _step(character: Character, state: State, preferred: Array, targets: PointTargets, stay: Array) -> State:
    """One Gauss-Newton step; a joint at its limit that would go beyond is left out of the solve."""
    root_position, root_orientation, angles = state
    jacobian, points = point_jacobian(character, state, targets)
    weight = np.repeat(targets.weight, 3)
    error = (targets.world - points).reshape(len(points), -1)
    gradient = np.einsum("tri,r,tr->ti", jacobian, weight, error)
    gradient[:, 6:] += stay * (preferred - angles)
    hessian = np.matmul(jacobian.transpose(0, 2, 1) * weight, jacobian)
    diagonal = np.arange(hessian.shape[1])
    hessian[:, diagonal, diagonal] += DAMPING
    hessian[:, diagonal[6:], diagonal[6:]] += stay
    lower, upper = character.lower_limits, character.upper_limits
    blocked = ((angles <= lower) & (gradient[:, 6:] < 0.0)) | ((angles >= upper) & (gradient[:, 6:] > 0.0))
    blocked = np.concatenate([np.zeros((len(angles), 6), dtype=bool), blocked], axis=1)
    hessian = np.where(blocked[:, :, None] | blocked[:, None, :], 0.0, hessian) + blocked[:, :, None] * np.eye(
        blocked.shape[1]
    )
    step = np.linalg.solve(hessian, np.where(blocked, 0.0, gradient)[..., None])[..., 0]
    step *= np.minimum(1.0, MAX_STEP_RAD / np.maximum(np.max(np.abs(step[:, 3:]), axis=1), 1e-12))[:, None]
    turn = rotations.from_rotation_vector(step[:, 3:6])
    return (
        root_position + step[:, :3],
        rotations.normalise(rotations.multiply(turn, root_orientation)),
        np.clip(angles + step[:, 6:], lower, upper),
    )


def point_jacobian(character: Character, state: State, targets: PointTargets) -> tuple[Array, Array]:
    """Jacobian (T, 3 N, 6 + J) and positions (T, N, 3) of the points.

    Columns: the root's world translation, its world rotation vector about the root's origin, then the hinges.
    """
    root_position, root_orientation, angles = state
    positions, orientations = segment_frames(character, root_position, root_orientation, angles)
    points = points_world(positions, orientations, targets.segment, targets.local)
    frames, count = points.shape[:2]
    jacobian = np.zeros((frames, count, 3, 6 + angles.shape[1]))
    jacobian[..., :3] = np.eye(3)
    for axis in range(3):
        jacobian[..., 3 + axis] = np.cross(np.eye(3)[axis], points - root_position[:, None])
    carried = _carried_by(character, targets.segment)
    axes = _hinge_axes(character, orientations, angles)
    for hinge, segment in enumerate(character.hinge_segment):
        arm = (points - positions[:, [segment]]) * carried[segment][:, None]
        jacobian[..., 6 + hinge] = np.cross(axes[:, [hinge]], arm)
    return jacobian.reshape(frames, 3 * count, -1), points


def _carried_by(character: Character, segments: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(S, N) whether segment s carries point n."""
    carried = np.zeros((len(character.segments), len(segments)), dtype=bool)
    for point, segment in enumerate(segments):
        index = int(segment)
        while index >= 0:
            carried[index, point] = True
            index = character.segments[index].parent
    return carried


def _hinge_axes(character: Character, orientations: Array, angles: Array) -> Array:
    """(T, J, 3) world axes of all hinges."""
    axes, column = [], 0
    for segment in character.segments[1:]:
        frame = orientations[:, segment.parent]
        for hinge in segment.hinges:
            axes.append(rotations.rotate(frame, hinge.axis))
            frame = rotations.multiply(frame, rotations.about_axis(hinge.axis, angles[:, column]))
            column += 1
    return np.stack(axes, axis=1)
