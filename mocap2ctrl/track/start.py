"""Where a track may begin: how far away the person is, and which poses of the prior, and headings, look like the first frame."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.camera import camera_centre, on_plane, rays, to_camera
from mocap2ctrl.geometry.masks import row_spans
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.track.evidence import FAR, Evidence, softness_px
from mocap2ctrl.track.keypoints import point_forces
from mocap2ctrl.track.outline import outline_equations
from mocap2ctrl.track.path import Path
from mocap2ctrl.track.tree import FACTORS
from mocap2ctrl.types import Array, Masks, Silhouettes

GROUNDED = 0.3
"""Quantile of the lowest pixels' depths that is taken for the ground: who jumps looks further away, never nearer."""

REGRESSION_STEPS, REGRESSION_FLOOR_M = 50, 0.02
ALIGNMENTS = 2


def rough_travel(silhouettes: Silhouettes) -> Array:
    """(T, 3) about where the middle of the person is seen, metres: on the ray of the mask's centroid, at a depth linear in time.

    The depth is where the rays of the lowest pixels meet the ground.
    """
    camera = silhouettes.camera
    times = silhouettes.times_s
    seen = np.flatnonzero(silhouettes.masks.any(axis=(1, 2)))
    middle = np.array([centroid(mask) for mask in silhouettes.masks[seen]])
    bottom = row_spans(silhouettes.masks)[:, 1] - 0.5
    depth = to_camera(camera, on_plane(camera, np.column_stack([middle[:, 0], bottom])))[:, 2]
    known = np.isfinite(depth)
    if not known.any():  # the feet are above the horizon: no ground in sight
        depth, known = np.full(len(seen), camera_centre(camera)[2] * 3.0), np.ones(len(seen), bool)
    line = _low_line(times[seen][known], depth[known])
    pixels = np.column_stack([np.interp(times, times[seen], middle[:, i]) for i in range(2)])
    depths = np.maximum(np.polyval(line, times), 0.5)
    return np.asarray(camera_centre(camera) + rays(camera, pixels) * depths[:, None])


def centroid(mask: npt.NDArray[np.bool_]) -> Array:
    """(2,) the mean pixel of a mask."""
    rows, columns = np.nonzero(mask)
    return np.array([columns.mean(), rows.mean()])


def _low_line(times: Array, values: Array) -> Array:
    """Slope and value at time 0 of the line with the share `GROUNDED` of values below it, by reweighted least squares."""
    columns = np.column_stack([times, np.ones(len(times))])
    weights = np.ones(len(times))
    line = np.zeros(2)
    for _ in range(REGRESSION_STEPS):
        root = np.sqrt(weights)
        line = np.linalg.lstsq(columns * root[:, None], values * root, rcond=None)[0]
        error = values - columns @ line
        weights = np.where(error > 0, GROUNDED, 1.0 - GROUNDED) / np.maximum(np.abs(error), REGRESSION_FLOOR_M)
    return np.asarray(line)


def first_paths(
    evidence: Evidence,
    silhouettes: Silhouettes,
    character: Character,
    poses: Array,
    headings: Array,
    frames: int,
    count: int,
) -> list[Path]:
    """The `count` poses of all `poses` (E, 3 + J) and `headings` (H,) that fit the first silhouette best, held for `frames` frames.

    Each is moved so that its picture's middle lies on the silhouette's.
    """
    travel = rough_travel(silhouettes)
    first = int(np.argmax(evidence.seen))
    middle = centroid(silhouettes.masks[first])
    turn = rotations.yaw(np.repeat(headings, len(poses)))
    tilt = np.tile(rotations.from_rotation_vector(poses[:, :3]), (len(headings), 1))
    orientation = rotations.multiply(turn, tilt)
    angles = np.tile(poses[:, 3:], (len(headings), 1))
    position = np.repeat(travel[first : first + 1], len(angles), axis=0)
    shape = body_shape(character)
    for _ in range(ALIGNMENTS):
        ends = capsule_ends(shape, *segment_frames(character, position, orientation, angles))
        position = position + _shifts(rasterise(ends, shape.radii, silhouettes.camera), middle, position, silhouettes)
    energy = _first_energies(evidence, first, Path(position, orientation, angles))
    best = np.argsort(energy, kind="stable")[:count]
    moved = travel[:frames] - travel[first] - evidence.carried[:frames]  # from what is seen to the ground's own frame
    return [
        Path(position[i] + moved, np.tile(orientation[i], (frames, 1)), np.tile(angles[i], (frames, 1))) for i in best
    ]


def _shifts(masks: Masks, middle: Array, position: Array, silhouettes: Silhouettes) -> Array:
    """(N, 3) how far to move bodies across the view, so that the middles of their masks (N, H, W) come to `middle` (2,)."""
    camera = silhouettes.camera
    depth = to_camera(camera, position)[:, 2:]
    off = np.array([middle - centroid(mask) if mask.any() else np.zeros(2) for mask in masks])
    return np.asarray((rays(camera, middle) - rays(camera, middle - off)) * depth)


def _first_energies(evidence: Evidence, first: int, poses: Path) -> Array:
    """(N,) energies of N poses, where they are seen, against frame `first`: of the outline and of keypoints, if there are any."""
    soft = evidence.soft[FAR][first : first + 1]
    tau = softness_px(FAR, evidence.pixels_per_m)
    seen, shifts = np.ones(poses.frames, bool), np.tile(evidence.view.shift, (poses.frames, 1))
    body = np.ones(FACTORS)
    energy, _, _ = outline_equations(evidence.tree, evidence.view, body, *poses, shifts, soft, seen, tau, 2, False)
    if evidence.keypoints is None:
        return np.asarray(energy)
    points, reach = evidence.keypoints.window(first, first + 1), evidence.weights.keypoints_reach
    found = point_forces(points, evidence.tree, evidence.view, body, poses, shifts, reach, False)
    return np.asarray(evidence.outline_factor(tau) * energy + evidence.weights.keypoints * found.energy)
