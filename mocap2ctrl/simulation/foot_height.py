"""When a foot comes to the ground, of many simulated states at once: forward kinematics of one leg alone. Compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.compiled import njit
from mocap2ctrl.geometry.compiled_rotations import axis_quaternion, multiply, rotate
from mocap2ctrl.types import Array


class Foot(NamedTuple):
    """A foot and all that moves it: the segments from the root down to it, and those below it, the toes.

    Attributes:
        parent: (M,) number among these segments of the one above, -1 for the root; each comes after its own.
        offset: (M, 3) origin in the parent's frame, metres.
        first_hinge: (M + 1,) of the hinges below, `first_hinge[m]` to `first_hinge[m + 1]` move segment m.
        hinge: (H,) their numbers among the character's.
        axis: (H, 3) in the frame that the segment's earlier hinges leave.
        end_segment: (C,) number among these segments of the ends of the capsules of foot and toes.
        end: (C, 3) where they are, in its frame, metres.
        radius: (C,) metres.
    """

    parent: npt.NDArray[np.int64]
    offset: Array
    first_hinge: npt.NDArray[np.int64]
    hinge: npt.NDArray[np.int64]
    axis: Array
    end_segment: npt.NDArray[np.int64]
    end: Array
    radius: Array


def foot_of(character: Character, name: str) -> Foot:
    """The foot whose segment is called `name`."""
    foot = character.segment_index(name)
    up = [foot]
    while up[-1] != 0:
        up.append(character.segments[up[-1]].parent)
    down = [i for i, segment in enumerate(character.segments) if segment.parent == foot]
    kept = [*up[::-1], *down]
    segments = [character.segments[i] for i in kept]
    firsts = np.cumsum([0, *(len(segment.hinges) for segment in character.segments)])
    hinges = [firsts[i] + k for i, segment in zip(kept, segments, strict=True) for k in range(len(segment.hinges))]
    below = [m for m, i in enumerate(kept) if i == foot or i in down]
    ends = [(m, c, end) for m in below for c in segments[m].capsules for end in (c.start, c.end)]
    return Foot(
        parent=np.array([-1, *(kept.index(segment.parent) for segment in segments[1:])]),
        offset=np.array([segment.offset for segment in segments]),
        first_hinge=np.cumsum([0, *(len(segment.hinges) for segment in segments)]),
        hinge=np.array(hinges, dtype=np.int64),
        axis=np.array([hinge.axis for segment in segments for hinge in segment.hinges]),
        end_segment=np.array([m for m, _, _ in ends]),
        end=np.array([end for _, _, end in ends]),
        radius=np.array([c.radius for _, c, _ in ends]),
    )


def foot_heights(foot: Foot, qpos: npt.ArrayLike) -> Array:
    """(N,) height of the foot's lowest point in states of coordinates (N, 7 + J), metres; NaN where a state is."""
    position = np.ascontiguousarray(qpos, dtype=float)
    heights = np.empty(len(position))
    _foot_heights(foot, position, heights)
    return heights


def steps_to_touchdown(foot: Foot, qpos: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """(P,) number of the first of the states (P, N, 7 + J) in which the foot is at or below z = 0, from 1; N if it never is.

    There MuJoCo has a contact: the shapes have no margin.
    """
    position = np.ascontiguousarray(qpos, dtype=float)
    steps = np.empty(len(position), dtype=np.int64)
    _steps_to_touchdown(foot, position, steps)
    return steps


@njit
def _foot_heights(foot, qpos, heights):  # type: ignore[no-untyped-def]
    """Writes `foot_heights`."""
    place, frame = np.empty((len(foot.parent), 3)), np.empty((len(foot.parent), 4))
    for n in range(len(qpos)):
        heights[n] = _lowest(foot, qpos[n], place, frame)


@njit
def _steps_to_touchdown(foot, qpos, steps):  # type: ignore[no-untyped-def]
    """Writes `steps_to_touchdown`."""
    place, frame = np.empty((len(foot.parent), 3)), np.empty((len(foot.parent), 4))
    for p in range(len(qpos)):
        steps[p] = qpos.shape[1]
        for n in range(qpos.shape[1]):
            if _lowest(foot, qpos[p, n], place, frame) <= 0.0:
                steps[p] = n + 1
                break


@njit
def _lowest(foot, qpos, place, frame):  # type: ignore[no-untyped-def]
    """The height of the lowest point; `place` (M, 3) and `frame` (M, 4) are for what is between."""
    arm, turn, turned = np.empty(3), np.empty(4), np.empty(4)
    place[0], frame[0] = qpos[:3], qpos[3:7]
    for m in range(1, len(foot.parent)):
        above = foot.parent[m]
        rotate(frame[above], foot.offset[m], arm)
        for k in range(3):
            place[m, k] = place[above, k] + arm[k]
        frame[m] = frame[above]
        for h in range(foot.first_hinge[m], foot.first_hinge[m + 1]):
            axis_quaternion(foot.axis[h], qpos[7 + foot.hinge[h]], turn)
            multiply(frame[m], turn, turned)
            frame[m] = turned
    lowest = np.inf
    for c in range(len(foot.end)):
        m = foot.end_segment[c]
        rotate(frame[m], foot.end[c], arm)
        height = place[m, 2] + arm[2] - foot.radius[c]
        if not height >= lowest:  # NaN stays
            lowest = height
    return lowest
