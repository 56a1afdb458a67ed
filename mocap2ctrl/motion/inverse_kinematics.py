"""Least-squares inverse kinematics over whole motions, all frames at once, with a geometric Jacobian.

The method is Levenberg and Marquardt's. Its damping matters where a leg is stretched as far as it goes: there, plain
Gauss-Newton swings to and fro.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import points_world
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array

CHUNK = 256
FIRST_DAMPING, LESS_DAMPING, MORE_DAMPING, LEAST_RAISED = 1e-5, 0.2, 10.0, 1e-4
"""Marquardt's factor on the diagonal: at first, after a step that helped, and after one that did not."""
MAX_STEP_RAD = 0.5
CONVERGED = 1e-4
"""A step in metres and radians after which a frame is left as it is."""

ROOT_COLUMNS = 6
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PointTargets:
    """Where points of the body should be.

    Attributes:
        segment: (N,) segment of each point.
        local: (N, 3) place in the segment's frame, metres.
        world: (T, N, 3) wanted world positions, metres.
        weight: (N,) weight of each point's squared distance.
    """

    segment: Indices
    local: Array
    world: Array
    weight: Array

    def at(self, rows: Indices) -> PointTargets:
        """Those of some frames, by index."""
        return replace(self, world=self.world[rows])


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
    hinges: npt.NDArray[np.bool_] | None = None,
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
        iterations: steps, at most.
        hinges: (J,) those that may move; if given, the root stays.
    """
    stay = np.broadcast_to(np.asarray(stay_weight, dtype=float), preferred.shape)
    free = np.flatnonzero(np.ones(preferred.shape[1], dtype=bool) if hinges is None else hinges)
    whole = _Problem(character, targets, preferred, stay, free, hinges is None)
    found = [np.array(part, dtype=float) for part in first_guess]
    for start in range(0, len(preferred), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(preferred)))
        best = _minimised(whole.at(rows), (found[0][rows], found[1][rows], found[2][rows]), iterations)
        for part, values in zip(found, best, strict=True):
            part[rows] = values
    return found[0], found[1], found[2]


@dataclass(frozen=True, eq=False)
class _Problem:
    """What `reach` minimises: the hinges `free` (H,) may move, and the root if `root_moves`."""

    character: Character
    targets: PointTargets
    preferred: Array
    stay: Array
    free: Indices
    root_moves: bool

    def at(self, rows: Indices) -> _Problem:
        """The same for some of the frames."""
        return replace(self, targets=self.targets.at(rows), preferred=self.preferred[rows], stay=self.stay[rows])

    def linearised(self, state: State) -> tuple[Array, Array, Array]:
        """Costs (T,), Hessians (T, 6 + H, 6 + H) and descents (T, 6 + H), halved, of Gauss-Newton.

        A joint at its limit that would go beyond is left out, as is a root that stays.
        """
        jacobian, points = point_jacobian(self.character, state, self.targets, self.free)
        weight = np.repeat(self.targets.weight, 3)
        error = (self.targets.world - points).reshape(len(points), -1)
        away = self.preferred - state[2]
        cost = np.sum(weight * error**2, axis=1) + np.sum(self.stay * away**2, axis=1)
        weighted = jacobian * weight[:, None]
        descent = np.matmul(error[:, None], weighted)[:, 0]
        descent[:, ROOT_COLUMNS:] += (self.stay * away)[:, self.free]
        hessian = np.matmul(weighted.transpose(0, 2, 1), jacobian)
        diagonal = np.arange(ROOT_COLUMNS, hessian.shape[1])
        hessian[:, diagonal, diagonal] += self.stay[:, self.free]
        lower, upper = self.character.lower_limits[self.free], self.character.upper_limits[self.free]
        bent, pull = state[2][:, self.free], descent[:, ROOT_COLUMNS:]
        blocked = np.full(descent.shape, not self.root_moves)
        blocked[:, ROOT_COLUMNS:] = ((bent <= lower) & (pull < 0.0)) | ((bent >= upper) & (pull > 0.0))
        frame, column = np.nonzero(blocked)
        hessian[frame, column] = 0.0
        hessian[frame, :, column] = 0.0
        hessian[frame, column, column] = 1.0
        descent[frame, column] = 0.0
        return cost, hessian, descent

    def moved(self, state: State, step: Array) -> State:
        """The state after a step (T, 6 + H), within the limits."""
        position, orientation, angles = state
        bent = angles.copy()
        limits = self.character.lower_limits[self.free], self.character.upper_limits[self.free]
        bent[:, self.free] = np.clip(angles[:, self.free] + step[:, ROOT_COLUMNS:], *limits)
        turn = rotations.from_rotation_vector(step[:, 3:ROOT_COLUMNS])
        return position + step[:, :3], rotations.normalise(rotations.multiply(turn, orientation)), bent


def _minimised(problem: _Problem, state: State, iterations: int) -> State:
    """The descent of all frames at once, each with its own damping; those that have come to rest are left alone."""
    best = [part.copy() for part in state]
    rows = np.arange(len(state[0]))
    cost, hessian, descent = problem.linearised(state)
    damping = np.full(len(rows), FIRST_DAMPING)
    for _ in range(iterations):
        diagonal = np.arange(hessian.shape[1])
        damped = hessian.copy()
        damped[:, diagonal, diagonal] *= 1.0 + damping[:, None]
        step = np.linalg.solve(damped, descent[..., None])[..., 0]
        step *= np.minimum(1.0, MAX_STEP_RAD / np.maximum(np.max(np.abs(step[:, 3:]), axis=1), 1e-12))[:, None]
        moving = np.max(np.abs(step), axis=1) > CONVERGED
        if not np.any(moving):
            break
        rows, step, damping = rows[moving], step[moving], damping[moving]
        cost, hessian, descent = cost[moving], hessian[moving], descent[moving]
        trial = problem.at(rows).moved((best[0][rows], best[1][rows], best[2][rows]), step)
        tried = problem.at(rows).linearised(trial)
        better = tried[0] <= cost
        for part, values in zip(best, trial, strict=True):
            part[rows[better]] = values[better]
        cost[better], hessian[better], descent[better] = (values[better] for values in tried)
        damping = np.where(better, damping * LESS_DAMPING, np.maximum(damping, LEAST_RAISED) * MORE_DAMPING)
    return best[0], best[1], best[2]


def point_jacobian(
    character: Character, state: State, targets: PointTargets, free: Indices | None = None
) -> tuple[Array, Array]:
    """Jacobian (T, 3 N, 6 + H) and positions (T, N, 3) of the points.

    Columns: the root's world translation, its world rotation vector about the root's origin, then the hinges `free`
    (H,), or all.
    """
    root_position, root_orientation, angles = state
    hinges = np.arange(angles.shape[1]) if free is None else free
    positions, orientations, axes = _chain(character, root_position, root_orientation, angles)
    points = points_world(positions, orientations, targets.segment, targets.local)
    frames, count = points.shape[:2]
    jacobian = np.zeros((frames, count, 3, ROOT_COLUMNS + len(hinges)))
    jacobian[..., :3] = np.eye(3)
    arm = points - root_position[:, None]
    for this, other, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        jacobian[:, :, other, 3 + this] = -arm[..., third]
        jacobian[:, :, third, 3 + this] = arm[..., other]
    # Most hinges carry few of the points: only those pairs are computed.
    column, point = np.nonzero(_carried_by(character, targets.segment)[character.hinge_segment[hinges]])
    axis = np.moveaxis(axes[:, hinges[column]], -1, 0)
    arm = np.moveaxis(points[:, point] - positions[:, character.hinge_segment[hinges[column]]], -1, 0)
    for this, other, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        jacobian[:, point, this, ROOT_COLUMNS + column] = axis[other] * arm[third] - axis[third] * arm[other]
    return jacobian.reshape(frames, 3 * count, -1), points


def _carried_by(character: Character, segments: Indices) -> npt.NDArray[np.bool_]:
    """(S, N) whether segment s carries point n."""
    carried = np.zeros((len(character.segments), len(segments)), dtype=bool)
    for point, segment in enumerate(segments):
        index = int(segment)
        while index >= 0:
            carried[index, point] = True
            index = character.segments[index].parent
    return carried


def _chain(
    character: Character, root_position: Array, root_orientation: Array, angles: Array
) -> tuple[Array, Array, Array]:
    """World positions (T, S, 3) and orientations (T, S, 4) of the segments, and world axes (T, J, 3) of the hinges."""
    positions, orientations, axes = [root_position], [root_orientation], []
    column = 0
    for segment in character.segments[1:]:
        frame = orientations[segment.parent]
        local = [segment.offset, *(hinge.axis for hinge in segment.hinges)]
        places = [frame] * 2
        for hinge in segment.hinges:
            frame = rotations.multiply(frame, rotations.about_axis(hinge.axis, angles[:, column]))
            places.append(frame)
            column += 1
        turned = rotations.rotate(np.stack(places[: len(local)], axis=1), np.array(local))
        positions.append(positions[segment.parent] + turned[:, 0])
        orientations.append(frame)
        axes.append(turned[:, 1:])
    return np.stack(positions, axis=1), np.stack(orientations, axis=1), np.concatenate(axes, axis=1)
