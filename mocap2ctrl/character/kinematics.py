"""Forward kinematics of a character over whole motions: segment frames, joint centres, markers, the lowest point."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, MotionClip


def segment_frames(
    character: Character, root_position: npt.ArrayLike, root_orientation: npt.ArrayLike, angles: npt.ArrayLike
) -> tuple[Array, Array]:
    """World positions (..., S, 3) and orientations (..., S, 4) of all segments.

    Args:
        character: the body.
        root_position: (..., 3) metres.
        root_orientation: (..., 4) unit quaternions.
        angles: (..., J) radians.
    """
    position, orientation = np.asarray(root_position, float), np.asarray(root_orientation, float)
    angles = np.asarray(angles, float)
    positions, orientations = [position], [orientation]
    column = 0
    for segment in character.segments[1:]:
        frame = orientations[segment.parent]
        positions.append(positions[segment.parent] + rotations.rotate(frame, segment.offset))
        for hinge in segment.hinges:
            frame = rotations.multiply(frame, rotations.about_axis(hinge.axis, angles[..., column]))
            column += 1
        orientations.append(frame)
    return np.stack(positions, axis=-2), np.stack(orientations, axis=-2)


def clip_frames(character: Character, clip: MotionClip) -> tuple[Array, Array]:
    """World positions (T, S, 3) and orientations (T, S, 4) of all segments over a clip."""
    return segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)


def clip_points(character: Character, clip: MotionClip) -> Array:
    """World positions (T, E, 3) of the character's evaluation points over a clip."""
    return evaluation_points(character, *clip_frames(character, clip))


def points_world(positions: Array, orientations: Array, segment: npt.ArrayLike, local: npt.ArrayLike) -> Array:
    """World positions (..., N, 3) of N points `local` (N, 3), fixed in segments `segment` (N,)."""
    index = np.asarray(segment)
    return np.asarray(positions[..., index, :] + rotations.rotate(orientations[..., index, :], local))


def evaluation_points(character: Character, positions: Array, orientations: Array) -> Array:
    """World positions (..., E, 3) of the character's evaluation points."""
    points = character.evaluation_points
    return points_world(positions, orientations, [p.segment for p in points], np.array([p.at for p in points]))


def marker_layout(character: Character) -> tuple[npt.NDArray[np.int64], Array]:
    """Segment index (3 S,) and local position (3 S, 3) of three markers a segment (Vondrak Eq. 10).

    At the segment's origin, at its tip, and half-way, moved aside by the segment's `marker`, so that twist shows.
    """
    segment, local = [], []
    for index, s in enumerate(character.segments):
        segment += [index] * 3
        local += [np.zeros(3), s.tip, 0.5 * s.tip + s.marker]
    return np.array(segment), np.array(local)


def lowest_points(character: Character, positions: Array, orientations: Array) -> Array:
    """(..., S) height of each segment's lowest surface point above z = 0, metres."""
    heights = []
    for index, segment in enumerate(character.segments):
        ends = np.array([end for c in segment.capsules for end in (c.start, c.end)])
        radii = np.array([c.radius for c in segment.capsules for _ in (0, 1)])
        world = points_world(positions, orientations, [index] * len(ends), ends)
        heights.append(np.min(world[..., 2] - radii, axis=-1))
    return np.stack(heights, axis=-1)


def centre_of_mass(character: Character, positions: Array, orientations: Array) -> Array:
    """(..., 3) world centre of mass, metres."""
    masses = np.array([s.mass for s in character.segments])
    coms = points_world(positions, orientations, np.arange(len(masses)), np.array([s.com for s in character.segments]))
    return np.asarray(np.einsum("...sk,s->...k", coms, masses) / masses.sum())
