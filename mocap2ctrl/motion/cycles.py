"""Finds the cycle of a periodic motion, and cuts it out as a loop.

The period is the lag at which poses, velocities and contacts resemble themselves most (an autocorrelation); the seam is
where, near that lag, pose and velocity differ least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import close_loop, facing_x, repeat
from mocap2ctrl.motion.footfalls import body_footfalls
from mocap2ctrl.motion.planting_check import planted_or_left
from mocap2ctrl.motion.toes import bent_toes
from mocap2ctrl.types import Array, MotionClip

OVERLAP_S = 0.1
"""How much of a clip must be left after a period, to be compared with its beginning."""
VELOCITY_S = 0.1
"""A difference of 1 m/s at a joint counts as much as one of 0.1 m in its place."""
CONTACT_M = 0.05
"""A foot that stands in one and not in the other counts as much as a joint that is this far off, in all joints."""
ALIKE = 0.6
"""Least likeness: 1 less the mean squared difference at the period, against that of poses at random."""
AS_GOOD = 0.2
"""Of the dips that are worse than the best by less than this, the first is the period: others are multiples of it."""
RISE = 0.15
"""By how much a motion must have become unlike itself before it is alike again; slow ones are so at once."""
WORST_SEAM_CM = 8.0
LONG_S, AGAIN = 6.0, 0.25
"""A cycle longer than this, and than any of Liu 2016 (a waltz of 5 s), is believed if this share of it is seen again."""
SEARCH = 0.15
"""Share of the period by which a seam's lag may differ from it."""


@dataclass(frozen=True)
class Cycle:
    """One period of a motion.

    Attributes:
        start, stop: frames; the pose at `stop` is the one at `start`, carried on.
        seam_cm: mean distance of the joints between the two, up to travel and heading.
        seam_cm_s: mean difference of the joints' velocities.
        likeness: of the motion to itself a period later: 1 is exact, 0 is chance.
    """

    start: int
    stop: int
    seam_cm: float
    seam_cm_s: float
    likeness: float


def find_cycle(clip: MotionClip, character: Character) -> Cycle:
    """The best cycle of a motion that repeats itself.

    Raises:
        MotionFileError: it does not, or the clip is shorter than a period and a bit.
    """
    points, speeds = _heading_frame(clip, character)
    stands = np.any(body_footfalls(clip, character), axis=2)
    joints = points.shape[1]
    features = np.concatenate([_flat(points), VELOCITY_S * _flat(speeds), CONTACT_M * np.sqrt(joints) * stands], axis=1)
    lags = range(1, len(clip) - round(OVERLAP_S * clip.fps))
    if not lags:
        raise MotionFileError(
            f"clip {clip.name!r} lasts {clip.duration_s:.2f} s; a cycle needs more than {OVERLAP_S:g} s"
        )
    chance = 2.0 * float(np.sum(np.var(features, axis=0)))
    unlike = np.array([np.mean(_apart(features, lag)) for lag in lags]) / max(chance, 1e-12)
    best = _period(unlike)
    likeness = 0.0 if best is None else 1.0 - float(unlike[best])
    if best is None or likeness < ALIKE:
        raise MotionFileError(
            f"clip {clip.name!r} does not repeat itself within its {clip.duration_s:.2f} s: at best it is "
            f"{100 * likeness:.0f} % alike a period later"
        )
    near = [lag for lag in lags if abs(lag - lags[best]) <= SEARCH * lags[best]]
    seams = [(float(np.min(apart)), int(np.argmin(apart)), lag) for lag in near for apart in [_apart(features, lag)]]
    _, start, lag = min(seams)
    gap, drift = (100 * np.linalg.norm(values[start + lag] - values[start], axis=-1) for values in (points, speeds))
    if np.mean(gap) > WORST_SEAM_CM:
        raise MotionFileError(
            f"clip {clip.name!r} does not repeat itself: after its best period of {lag / clip.fps:.2f} s the joints are "
            f"{np.mean(gap):.0f} cm off; allowed are {WORST_SEAM_CM:g} cm"
        )
    return Cycle(start, start + lag, float(np.mean(gap)), float(np.mean(drift)), likeness)


def doubt(cycle: Cycle, clip: MotionClip) -> str | None:
    """Why a motion's best cycle may be none, in words: a motion of any kind that ends as it began has one, and repeats nothing."""
    period_s = (cycle.stop - cycle.start) / clip.fps
    again_s = clip.duration_s - period_s
    if period_s <= LONG_S or again_s >= AGAIN * period_s:
        return None
    return f"its best cycle is {period_s:.1f} s of its {clip.duration_s:.1f} s, of which {again_s:.1f} s are seen to repeat"


def _period(unlike: Array) -> int | None:
    """Index of the first lag at which a motion is about as alike itself as it becomes, after it was not; None if never."""
    risen = np.maximum.accumulate(unlike) > unlike + RISE
    dips = [i for i in np.flatnonzero(risen) if unlike[i] <= np.min(unlike[max(0, i - 2) : i + 3])]
    least = min((unlike[i] for i in dips), default=np.inf)
    return next((int(i) for i in dips if unlike[i] <= least + AS_GOOD), None)


def cut_cycle(clip: MotionClip, character: Character, cycle: Cycle) -> MotionClip:
    """A cycle as a loop: its end is bent into its beginning, pose and velocity, its travel is kept, its feet stand still."""
    return _closed(clip, character, cycle)[0]


def _closed(clip: MotionClip, character: Character, cycle: Cycle) -> tuple[MotionClip, tuple[str, ...]]:
    """`cut_cycle`, and which feet could not be made to stand still."""
    whole = replace(clip.cut(cycle.start, cycle.stop + 1), loop=True)
    loop = close_loop(whole)
    (position, orientation, angles), left = planted_or_left(loop, character, body_footfalls(loop, character))
    angles = bent_toes(character, (position, orientation, angles))
    loop = replace(loop, root_position=position, root_orientation=rotations.continuous(orientation), angles=angles)
    return close_loop(loop), tuple(f"in the cycle, {how}" for how in left)


def repeatable(
    clip: MotionClip, points: Array, character: Character, path: str
) -> tuple[MotionClip, Array, tuple[str, ...]]:
    """The best cycle of a motion as a loop, and its part of the source's `points` (T, E, 3), from the origin along x.

    And warnings: which seconds of the file it is, for one; the loop starts at the first of them.

    Raises:
        MotionFileError: there is none; names the file at `path`.
    """
    try:
        cycle = find_cycle(clip, character)
    except MotionFileError as error:
        raise MotionFileError(f"{path}: only a loop can be repeated, and no cycle was found: {error}") from error
    loop, left = _closed(clip, character, cycle)
    seconds = [clip.start_s + frame / clip.fps for frame in (cycle.start, cycle.stop)]
    loop = replace(loop, provenance={**loop.provenance, "cycle_s": seconds})
    told = (
        f"the file is no loop: what is repeated is its best cycle, from {seconds[0]:.2f} to {seconds[1]:.2f} s of the file, "
        f"whose ends were {cycle.seam_cm:.1f} cm apart"
    )
    return *facing_x(loop, points[cycle.start : cycle.stop + 1]), (told, *left)


def carried_past(clip: MotionClip, character: Character, seconds: float) -> MotionClip:
    """A periodic motion and, behind its end, `seconds` or more of its last period again and again, travel and turn carried on.

    Raises:
        MotionFileError: it does not repeat itself.
    """
    cycle = find_cycle(clip, character)
    period = cycle.stop - cycle.start
    last = close_loop(replace(clip.cut(len(clip) - 1 - period, len(clip)), loop=True))
    more = repeat(last, 1 + max(1, math.ceil(seconds * clip.fps / period)))
    return replace(
        clip,
        root_position=np.concatenate([clip.root_position, more.root_position[period + 1 :]]),
        root_orientation=rotations.continuous(
            np.concatenate([clip.root_orientation, more.root_orientation[period + 1 :]])
        ),
        angles=np.concatenate([clip.angles, more.angles[period + 1 :]]),
    )


def _heading_frame(clip: MotionClip, character: Character) -> tuple[Array, Array]:
    """Places and velocities (T, E, 3) of the joints, seen from above the root and the way it faces."""
    away = rotations.yaw(-rotations.heading(clip.root_orientation))[:, None]
    points = clip_points(character, clip)
    speeds = np.gradient(points, axis=0) * clip.fps
    below = clip.root_position * np.array([1.0, 1.0, 0.0])
    return rotations.rotate(away, points - below[:, None]), rotations.rotate(away, speeds)


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1)


def _apart(features: Array, lag: int) -> Array:
    """(T - lag,) squared distances of the features of frames that are `lag` apart."""
    return np.asarray(np.sum((features[lag:] - features[:-lag]) ** 2, axis=1))
