"""The tracker's energy: a negative logarithm of a posterior, with what Gauss and Newton need of it.

Frames are coupled with their two neighbours only, and all with the factors of the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry import rotations
from mocap2ctrl.track.balance import lean_of, place_between
from mocap2ctrl.track.evidence import MIDDLE, Evidence, softness_px
from mocap2ctrl.track.keypoints import point_forces
from mocap2ctrl.track.outline import outline_equations
from mocap2ctrl.track.path import Path
from mocap2ctrl.track.tree import BODY, ROOT, points_with_jacobian
from mocap2ctrl.types import Array

TRAVEL_S = 0.8
"""Time over which a walk's velocity is averaged: about two steps, so that its fluctuation within a step cancels."""


TURN = 5
"""Coordinate of the root's rotation about the vertical."""

LEAST_FORWARD = 0.3
"""A body whose forward axis has a shorter shadow than this faces up or down, and nowhere else."""


GRAVITY = 9.81
FLIGHT_S, FLIGHT_TOLERANCE = 0.1, 5.0
"""A root that accelerates downwards with gravity, to within this many m/s^2, from so long before to so long after, flies."""


class Belief(NamedTuple):
    """Weights that a step takes for granted.

    Attributes:
        standing: (T, N) how surely each sole point stands.
        alike: (T,) how much the legs do the same.
        grounded: (T,) how surely the body does not fly.
        travel: (T - 1, 2) the root's ground velocity without its fluctuations, m/s.
        between: (T,) where on the line between the feet the body's mass is, 0 to 1.
    """

    standing: Array
    alike: Array
    grounded: Array
    travel: Array
    between: Array


@dataclass(eq=False)
class Equations:
    """Energy, gradient and Gauss-Newton matrix at one point; terms add themselves.

    Attributes:
        parts: the energy's terms by name.
        derivatives: whether gradient and matrix are wanted; they have no frames otherwise.
        fit_body: whether the body's part of them is wanted; it is not complete otherwise.
        gradient, body: (T, D) of the coordinates and (G,) of the body's factors.
        within, next, second: (T, D, D) blocks on the diagonal, (T - 1, D, D) to the next frame, (D,) diagonal to the one after.
        border, corner: (T, D, G) and (G, G) blocks of the body's factors.
    """

    parts: dict[str, float]
    derivatives: bool
    fit_body: bool
    gradient: Array
    body: Array
    within: Array
    next: Array
    second: Array
    border: Array
    corner: Array

    @property
    def energy(self) -> float:
        """The sum of all terms."""
        return sum(self.parts.values())


def equations(
    evidence: Evidence,
    path: Path,
    body: Array,
    belief: Belief,
    tau_m: float,
    pixel_step: int,
    derivatives: bool = True,
    fit_body: bool = True,
) -> Equations:
    """All terms at `path`.

    Args:
        evidence: of the path's frames.
        path: where.
        body: (G,) factors of `BODY`.
        belief: what is taken for granted; fixed while energies are compared.
        tau_m: softness of outlines, one of `SOFTNESS_M`.
        pixel_step: only every so manieth pixel is looked at.
        derivatives: whether gradient and matrix are wanted.
        fit_body: whether those of the body's factors are wanted too.
    """
    result = _outline(evidence, path, body, tau_m, pixel_step, derivatives, fit_body)
    _prior(evidence, path, result)
    _limits(evidence, path, result)
    _proportions(evidence, body, result)
    _smoothness(evidence, path, result)
    _travel(evidence, path, belief, result)
    _facing(evidence, path, result)
    _symmetry(evidence, path, belief.alike, result)
    _feet(evidence, path, body, belief, result)
    _balance(evidence, path, body, belief, result)
    _keypoints(evidence, path, body, result)
    return result


def _outline(
    evidence: Evidence, path: Path, body: Array, tau_m: float, pixel_step: int, derivatives: bool, fit_body: bool
) -> Equations:
    """Squared differences of soft masks, as many as there are independent pieces of outline."""
    count, size = path.frames, ROOT + path.angles.shape[1]
    tau = softness_px(tau_m, evidence.pixels_per_m)
    factor = evidence.outline_factor(tau)
    energy, gradient, matrix = outline_equations(
        *(evidence.tree, evidence.view, body, *path, evidence.shifts, evidence.soft[tau_m], evidence.seen),
        *(tau, pixel_step, derivatives),
    )
    on_body, corner = factor * gradient[:, size:].sum(axis=0), factor * matrix[:, size:, size:].sum(axis=0)
    gradient *= factor
    matrix *= factor
    return Equations(
        parts={"outline": factor * float(energy.sum())},
        derivatives=derivatives,
        fit_body=fit_body,
        gradient=gradient[:, :size],
        body=on_body,
        within=matrix[:, :size, :size],
        next=np.zeros((max(count - 1, 0) if derivatives else 0, size, size)),
        second=np.zeros(size),
        border=matrix[:, :size, size:],
        corner=corner,
    )


def _prior(evidence: Evidence, path: Path, result: Equations) -> None:
    """Poses as the prior knows them."""
    factor = evidence.weights.prior
    if not result.derivatives:
        result.parts["prior"] = factor * float(evidence.prior.energy(path.root_orientation, path.angles).sum())
        return
    energy, gradient, matrix = evidence.prior.equations(path.root_orientation, path.angles)
    result.parts["prior"] = factor * float(energy.sum())
    result.gradient[:, 3:] += factor * gradient
    _add_scaled(result.within, factor, matrix)


@njit
def _add_scaled(within, factor, matrix):  # type: ignore[no-untyped-def]
    """Adds `factor` times (T, D - 3, D - 3), without those of the root's position, to (T, D, D)."""
    count, size, _ = matrix.shape
    for t in range(count):
        for i in range(size):
            for j in range(size):
                within[t, 3 + i, 3 + j] += factor * matrix[t, i, j]


def _limits(evidence: Evidence, path: Path, result: Equations) -> None:
    """Joint limits."""
    tree, sigma = evidence.tree, evidence.weights.limit
    beyond = np.minimum(path.angles - tree.lower, 0) + np.maximum(path.angles - tree.upper, 0)
    result.parts["limits"] = 0.5 * float(np.sum((beyond / sigma) ** 2))
    if result.derivatives:
        result.gradient[:, ROOT:] += beyond / sigma**2
        _diagonal(result.within)[:, ROOT:] += (beyond != 0) / sigma**2


def _proportions(evidence: Evidence, body: Array, result: Equations) -> None:
    """A body not far from the average one."""
    w = evidence.weights
    spread = {"girth": w.girth, "build": w.build}
    precision = np.array([spread.get(factor, w.length) for factor in BODY]) ** -2.0
    result.parts["body"] = 0.5 * float(np.sum(precision * (body - 1.0) ** 2))
    result.body += precision * (body - 1.0)
    result.corner += np.diag(precision)


def _smoothness(evidence: Evidence, path: Path, result: Equations) -> None:
    """Small accelerations of root and joints."""
    w, count, size = evidence.weights, path.frames, result.gradient.shape[1]
    result.parts["smooth"] = 0.0
    if count < 3:
        return
    sigma = np.full(size, w.joint_acceleration)
    sigma[:3], sigma[3:ROOT] = w.root_acceleration, w.root_turn_acceleration
    precision = evidence.fps**4 / sigma**2
    position, orientation, angles = path
    turns = rotations.to_rotation_vector(rotations.multiply(orientation[1:], rotations.conjugate(orientation[:-1])))
    second = [np.diff(position, 2, axis=0), np.diff(turns, axis=0), np.diff(angles, 2, axis=0)]
    residual = np.concatenate(second, axis=1)
    pulled = precision * residual
    result.parts["smooth"] = 0.5 * float(np.sum(pulled * residual))
    if not result.derivatives:
        return
    within, following = _diagonal(result.within), _diagonal(result.next)
    for shift, factor in enumerate((1.0, -2.0, 1.0)):
        rows = slice(shift, count - 2 + shift)
        result.gradient[rows] += factor * pulled
        within[rows] += factor**2 * precision
    following[: count - 2] -= 2.0 * precision
    following[1:] -= 2.0 * precision
    result.second += precision


def _diagonal(blocks: Array) -> Array:
    """(T, D) the diagonals of (T, D, D), to be changed in place."""
    return np.asarray(np.einsum("tii->ti", blocks))


def _feet(evidence: Evidence, path: Path, body: Array, belief: Belief, result: Equations) -> None:
    """Soles that do not sink, and that neither float nor slip while they stand; one at least that bears who does not fly."""
    w, standing = evidence.weights, belief.standing
    segment, local, radius = evidence.soles
    world, jacobian = points_with_jacobian(evidence.tree, body, *path, segment, local, result.derivatives)
    height = world[..., 2] - radius
    sunk = np.minimum(height, 0.0)
    slip = world[1:, :, :2] - world[:-1, :, :2]
    sticking = np.minimum(standing[1:], standing[:-1]) * (evidence.fps / w.contact_speed) ** 2
    result.parts["feet"] = 0.5 * float(
        np.sum(sunk**2) / w.sinking_m**2
        + np.sum(standing * height**2) / w.contact_height_m**2
        + np.sum(sticking[..., None] * slip**2)
    )
    rows, lowest = np.arange(len(height)), np.argmin(height, axis=1)
    floating = np.maximum(height[rows, lowest], 0.0)
    off = (floating / w.floating_m) ** 2
    result.parts["support"] = 0.5 * float(np.sum(belief.grounded * np.log1p(off)))
    if result.derivatives:
        lift = sunk / w.sinking_m**2 + standing * height / w.contact_height_m**2
        stiffness = (sunk < 0) / w.sinking_m**2 + standing / w.contact_height_m**2
        bearing = belief.grounded / (w.floating_m**2 * (1.0 + off))
        lift[rows, lowest] += bearing * floating
        stiffness[rows, lowest] += bearing * (floating > 0)
        _add_heights(result, lift, stiffness, jacobian[:, :, 2])
        _add_slips(result, sticking, slip, jacobian[:, :, :2])


def _balance(evidence: Evidence, path: Path, body: Array, belief: Belief, result: Equations) -> None:
    """A centre of mass above the feet of who stands on them, after Cauchy: not of who flies, lies, or goes on the hands."""
    w = evidence.weights
    found = lean_of(evidence.masses, evidence.tree, body, path, belief.between, result.derivatives)
    surely = belief.grounded * belief.standing.max(axis=1)
    beyond = np.sum(found.offset**2, axis=1) / (w.balance_reach * w.balance_m) ** 2
    result.parts["balance"] = 0.5 * w.balance_reach**2 * float(np.sum(surely * np.log1p(beyond)))
    if result.derivatives:
        stiffness = np.repeat((surely / (w.balance_m**2 * (1.0 + beyond)))[:, None], 2, axis=1)
        _add_heights(result, stiffness * found.offset, stiffness, found.jacobian)


def _add_heights(result: Equations, lift: Array, stiffness: Array, jacobian: Array) -> None:
    """Adds forces (T, N) and stiffnesses (T, N) on numbers with derivatives (T, N, D + G)."""
    size = result.gradient.shape[1]
    gradient = np.einsum("tn,tnd->td", lift, jacobian)
    matrix = jacobian.transpose(0, 2, 1) @ (stiffness[..., None] * jacobian)
    result.gradient += gradient[:, :size]
    result.body += gradient[:, size:].sum(axis=0)
    result.within += matrix[:, :size, :size]
    result.border += matrix[:, :size, size:]
    result.corner += matrix[:, size:, size:].sum(axis=0)


def _add_slips(result: Equations, sticking: Array, slip: Array, jacobian: Array) -> None:
    """Adds springs of stiffness (T - 1, N) between a point's places (T, N, 2) in neighbouring frames."""
    size = result.gradient.shape[1]
    before, after = jacobian[:-1, ..., :size], jacobian[1:, ..., :size]
    pulled = sticking[..., None] * slip
    stiff_before, stiff_after = (sticking[..., None, None] * part for part in (before, after))
    result.gradient[1:] += np.einsum("tni,tnid->td", pulled, after)
    result.gradient[:-1] -= np.einsum("tni,tnid->td", pulled, before)
    result.within[1:] += _products(stiff_after, after)
    result.within[:-1] += _products(stiff_before, before)
    result.next -= _products(stiff_before, after)
    if result.fit_body:
        grown = jacobian[1:, ..., size:] - jacobian[:-1, ..., size:]
        stiff_grown = sticking[..., None, None] * grown
        result.body += np.einsum("tni,tnig->g", pulled, grown)
        result.border[1:] += _products(stiff_after, grown)
        result.border[:-1] -= _products(stiff_before, grown)
        result.corner += _products(stiff_grown, grown).sum(axis=0)


def _products(a: Array, b: Array) -> Array:
    """(T, D, E) sums over points and axes of (T, N, 2, D) and (T, N, 2, E)."""
    left = a.reshape(len(a), -1, a.shape[-1])
    right = b.reshape(len(b), -1, b.shape[-1])
    return np.asarray(left.transpose(0, 2, 1) @ right)


def _keypoints(evidence: Evidence, path: Path, body: Array, result: Equations) -> None:
    """Points of the body that are where a detector, or somebody's clicks, saw them; no term without them."""
    if evidence.keypoints is None:
        return
    w = evidence.weights
    found = point_forces(
        evidence.keypoints,
        evidence.tree,
        evidence.view,
        body,
        path,
        evidence.shifts,
        w.keypoints_reach,
        result.derivatives,
    )
    result.parts["keypoints"] = w.keypoints * float(found.energy.sum())
    if result.derivatives:
        _add_heights(result, w.keypoints * found.force, w.keypoints * found.stiffness, found.jacobian)


def _travel(evidence: Evidence, path: Path, belief: Belief, result: Equations) -> None:
    """A root whose way over the ground is steady: in depth, silhouettes say little of it from frame to frame."""
    velocity = np.diff(path.root_position[:, :2], axis=0) * evidence.fps
    result.parts["travel"] = 0.0
    for axis in range(2):
        along = np.zeros((len(velocity), 2))
        along[:, axis] = 1.0
        residual = velocity[:, axis] - belief.travel[:, axis]
        _add_velocity(
            evidence, "travel", residual, along, np.zeros(len(velocity)), evidence.weights.travel_speed, result
        )


def _facing(evidence: Evidence, path: Path, result: Equations) -> None:
    """A body that faces where it goes: walking sideways or backwards is possible, but has to be seen."""
    velocity = np.diff(path.root_position[:, :2], axis=0) * evidence.fps
    w, x, y, z = path.root_orientation[:-1].T
    forward = np.column_stack([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z)])
    length = np.linalg.norm(forward, axis=1, keepdims=True)
    forward = np.where(length > LEAST_FORWARD, forward / np.maximum(length, LEAST_FORWARD), 0.0)
    left = np.column_stack([-forward[:, 1], forward[:, 0]])
    ahead, aside = np.sum(velocity * forward, axis=1), np.sum(velocity * left, axis=1)
    sigma = evidence.weights.facing_speed
    result.parts["facing"] = 0.0
    _add_velocity(evidence, "facing", aside, left, -ahead, sigma, result)
    back = ahead < 0.0
    _add_velocity(evidence, "facing", np.where(back, ahead, 0.0), back[:, None] * forward, back * aside, sigma, result)


def _add_velocity(
    evidence: Evidence, name: str, residual: Array, along: Array, by_turn: Array, sigma: float, result: Equations
) -> None:
    """Adds Cauchy's energy of residuals (T - 1,) in m/s.

    They grow with the root's velocity along `along` (T - 1, 2), and by `by_turn` (T - 1,) with its turn about the vertical.
    """
    squared = (residual / sigma) ** 2
    result.parts[name] += 0.5 * float(np.sum(np.log1p(squared)))
    if result.derivatives:
        precision = 1.0 / (sigma**2 * (1.0 + squared))
        pulled, moved = precision * residual, evidence.fps * along
        _add_springs(result.gradient, result.within, result.next, precision, pulled, moved, by_turn)


@njit
def _add_springs(gradient, within, following, stiffness, pulled, along, by_turn):  # type: ignore[no-untyped-def]
    """Adds springs between neighbouring frames, of (T - 1,) stiffnesses and pulls, to the arrays of `Equations`.

    A spring's length grows with the later root's way along `along` (T - 1, 2), with the earlier one's against it, and by
    `by_turn` (T - 1,) with the earlier one's turn about the vertical.
    """
    few = (0, 1, TURN)
    before, after = np.empty(3), np.zeros(3)
    for end in range(2):  # at the earlier frames first
        for t in range(len(stiffness)):
            before[0], before[1], before[2] = -along[t, 0], -along[t, 1], by_turn[t]
            after[0], after[1] = along[t, 0], along[t, 1]
            own = after if end else before
            for i in range(3):
                gradient[t + end, few[i]] += pulled[t] * own[i]
                for j in range(3):
                    within[t + end, few[i], few[j]] += stiffness[t] * own[i] * own[j]
                    if end:
                        following[t, few[i], few[j]] += stiffness[t] * before[i] * after[j]


def _symmetry(evidence: Evidence, path: Path, alike: Array, result: Equations) -> None:
    """Arms that do the same while the legs do: of two arms that cover each other, the outline shows one."""
    sides, precision = evidence.sides, alike / evidence.weights.symmetry**2
    arms, size = sides.arms, len(sides.arms)
    other, sign = sides.source[arms], sides.sign[arms]
    difference = path.angles[:, arms] - sign * path.angles[:, other]
    result.parts["symmetry"] = 0.25 * float(np.sum(precision[:, None] * difference**2))  # each pair is there twice
    if result.derivatives:
        pulled = 0.5 * precision[:, None] * difference
        result.gradient[:, ROOT + arms] += 2.0 * pulled
        result.within[:, ROOT + arms, ROOT + arms] += np.repeat(precision[:, None], size, axis=1)
        result.within[:, ROOT + arms, ROOT + other] -= precision[:, None] * sign


def energy_of(window: Evidence, part: Path, body: Array, tau_m: float = MIDDLE, pixel_step: int = 2) -> float:
    """The energy of a part of a path by itself, as the search sees it if nothing else is said."""
    return equations(window, part, body, belief_at(window, part, body), tau_m, pixel_step, derivatives=False).energy


def belief_at(evidence: Evidence, path: Path, body: Array) -> Belief:
    """What a path says of its own contacts and symmetry."""
    return Belief(
        _standing(evidence, path, body),
        _alike(evidence, path),
        _grounded(evidence, path),
        _average_travel(evidence, path),
        place_between(evidence.masses, evidence.tree, body, path),
    )


def _grounded(evidence: Evidence, path: Path) -> Array:
    """(T,) from 0 to 1, how little the root's vertical acceleration looks like free fall's."""
    height = path.root_position[:, 2]
    lag = max(1, round(FLIGHT_S * evidence.fps))
    if len(height) <= 2 * lag:
        return np.ones(len(height))
    inner = (height[2 * lag :] - 2.0 * height[lag:-lag] + height[: -2 * lag]) * (evidence.fps / lag) ** 2
    acceleration = np.pad(inner, lag, mode="edge")
    return np.asarray(1.0 - np.exp(-(((acceleration + GRAVITY) / FLIGHT_TOLERANCE) ** 2)))


def _average_travel(evidence: Evidence, path: Path) -> Array:
    """(T - 1, 2) the root's ground velocity averaged over `TRAVEL_S`, m/s."""
    velocity = np.diff(path.root_position[:, :2], axis=0) * evidence.fps
    half = round(0.5 * TRAVEL_S * evidence.fps)
    sums = np.concatenate([np.zeros((1, 2)), np.cumsum(velocity, axis=0)])
    index = np.arange(len(velocity))
    first, last = np.maximum(index - half, 0), np.minimum(index + half + 1, len(velocity))
    return np.asarray((sums[last] - sums[first]) / (last - first)[:, None])


def _alike(evidence: Evidence, path: Path) -> Array:
    """(T,) from 0 to 1, how much the legs do the same."""
    sides = evidence.sides
    legs = sides.legs
    difference = path.angles[:, legs] - sides.sign[legs] * path.angles[:, sides.source[legs]]
    return np.asarray(np.exp(-np.mean(difference**2, axis=1) / evidence.weights.alike**2))


def _standing(evidence: Evidence, path: Path, body: Array) -> Array:
    """(T, N) from 0 to 1, how surely each sole point stands: low and slow."""
    w = evidence.weights
    segment, local, radius = evidence.soles
    world, _ = points_with_jacobian(evidence.tree, body, *path, segment, local, False)
    height = np.maximum(world[..., 2] - radius, 0.0)
    speed = np.zeros(height.shape)
    if path.frames > 1:
        moved = np.linalg.norm(np.diff(world[..., :2], axis=0), axis=-1) * evidence.fps
        speed[:-1], speed[-1] = moved, moved[-1]
        speed[1:-1] = np.minimum(moved[:-1], moved[1:])
    return np.asarray(np.exp(-((height / w.contact_height_m) ** 2) - (speed / w.slip_speed) ** 2))
