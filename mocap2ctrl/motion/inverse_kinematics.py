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


def reach(
    character: Character,
    root_position: Array,
    root_orientation: Array,
    angles: Array,
    targets: PointTargets,
    stay_weight: float,
    iterations: int = 8,
) -> tuple[Array, Array, Array]:
    """Moves a motion so that its points come near their targets, within the joint limits.

    Minimises the weighted squared distances plus `stay_weight` (m^2 / rad^2) times the squared departure of the angles from
    those given, frame by frame.

    Args:
        character: the body.
        root_position: (T, 3) first guess, metres.
        root_orientation: (T, 4) first guess.
        angles: (T, J) first guess, radians; clipped to the limits.
        targets: what to reach.
        stay_weight: how firmly the angles stay.
        iterations: Gauss-Newton steps.

    Returns:
        root_position, root_orientation, angles of the same shapes.
    """
    parts = []
    for start in range(0, len(angles), CHUNK):
        part = slice(start, start + CHUNK)
        piece = PointTargets(targets.segment, targets.local, targets.world[part], targets.weight)
        state = (root_position[part], root_orientation[part], angles[part])
        for _ in range(iterations):
            state = _step(character, state, angles[part], piece, stay_weight)
        parts.append(state)
    position, orientation, bent = zip(*parts, strict=True)
    return np.concatenate(position), np.concatenate(orientation), np.concatenate(bent)


def _step(
    character: Character,
    state: tuple[Array, Array, Array],
    preferred: Array,
    targets: PointTargets,
    stay_weight: float,
) -> tuple[Array, Array, Array]:
    """One Gauss-Newton step; a joint at its limit that would go beyond is left out of the solve."""
    root_position, root_orientation, angles = state
    jacobian, points = point_jacobian(character, root_position, root_orientation, angles, targets)
    weight = np.repeat(targets.weight, 3)
    error = (targets.world - points).reshape(len(points), -1)
    stay = np.concatenate([np.zeros(6), np.full(angles.shape[1], stay_weight)])
    gradient = np.einsum("tri,r,tr->ti", jacobian, weight, error)
    gradient[:, 6:] += stay_weight * (preferred - angles)
    hessian = np.matmul(jacobian.transpose(0, 2, 1) * weight, jacobian) + np.diag(stay + DAMPING)
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


def point_jacobian(
    character: Character, root_position: Array, root_orientation: Array, angles: Array, targets: PointTargets
) -> tuple[Array, Array]:
    """Jacobian (T, 3 N, 6 + J) and positions (T, N, 3) of the points.

    Columns: the root's world translation, its world rotation vector about the root's origin, then the hinges.
    """
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
