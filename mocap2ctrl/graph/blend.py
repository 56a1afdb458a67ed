"""One motion turning into another, in step with it.

Two cycles are blended in phase, each played faster or slower so that both take the same time for a cycle at any moment (a
registration curve of Kovar and Gleicher 2003 that is a straight line of phases), else legs would be averaged that are not in step.
Poses are mixed; travel and turning are mixed as velocities in the heading frames, so that a body that speeds up covers what it
should.
"""

from __future__ import annotations

import numpy as np

from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.skills import Frames, Skill
from mocap2ctrl.types import Array

ACCELERATION_M_S2 = 3.0
"""What a body can do from step to step: transitions are so long that they ask for no more on average."""


def blend_seconds(source: Skill, target: Skill, least_s: float) -> float:
    """How long a transition must be: `least_s`, or longer where speeds differ; at most a cycle of phase."""
    wanted = abs(_speed(source) - _speed(target)) / ACCELERATION_M_S2
    if not (source.cyclic and target.cyclic):
        return least_s
    return max(least_s, min(wanted, 1.0 / _mean_rate(source, target)))


def share_of(u: Array) -> Array:
    """The second motion's share at parts u (N,) of a transition: 3u² - 2u³ (Kovar et al. 2002, §3.3)."""
    return np.asarray((3.0 - 2.0 * u) * u * u)


def passed_s(source: Skill, target: Skill, blend_s: float, u: Array | float = 1.0) -> tuple[Array, Array]:
    """Seconds of the first and of the second motion that pass until part u (N,) of a transition of `blend_s`."""
    periods = _periods(source, target)
    # The integral of the phase's rate, (1 - share) / T1 + share / T2.
    grown = (1.0 - 0.5 * np.asarray(u)) * np.asarray(u) ** 3
    phase = blend_s * ((u - grown) / periods[0] + grown / periods[1])
    return phase * periods[0], phase * periods[1]


def blended(source: Skill, leave_s: float, target: Skill, arrive_s: float, blend_s: float, count: int) -> Frames:
    """Count + 1 frames from the first motion at `leave_s` to the second at `arrive_s`, evenly over `blend_s`.

    By `share_of`, poses and velocities at both ends are the motions' own.
    """
    u = np.linspace(0.0, 1.0, count + 1)
    share = share_of(u)
    ours_s, theirs_s = passed_s(source, target, blend_s, u)
    ours, theirs = source.at(leave_s + ours_s), target.at(arrive_s + (theirs_s - theirs_s[-1]))
    position, heading = _travelled(ours, theirs, share)
    tilts = [rotations.multiply(rotations.yaw(-rotations.heading(f[1])), f[1]) for f in (ours, theirs)]
    orientation = rotations.multiply(rotations.yaw(heading), rotations.slerp(tilts[0], tilts[1], share))
    mix = share[:, None]
    return (
        position,
        rotations.continuous(rotations.normalise(orientation)),
        (1.0 - mix) * ours[2] + mix * theirs[2],
    )


def _travelled(ours: Frames, theirs: Frames, share: Array) -> tuple[Array, Array]:
    """Root positions (N, 3) and headings (N,) from the first frame of the first motion on."""
    middle = 0.5 * (share[1:] + share[:-1])
    (step, turn), (other_step, other_turn) = _steps(ours), _steps(theirs)
    step = (1.0 - middle)[:, None] * step + middle[:, None] * other_step
    turn = (1.0 - middle) * turn + middle * other_turn
    start = float(rotations.heading(ours[1][0]))
    heading = start + np.concatenate([[0.0], np.cumsum(turn)])
    position = np.empty_like(ours[0])
    position[:, 2] = (1.0 - share) * ours[0][:, 2] + share * theirs[0][:, 2]
    along = heading[:-1] + 0.5 * turn
    cosine, sine = np.cos(along), np.sin(along)
    moved = np.stack([cosine * step[:, 0] - sine * step[:, 1], sine * step[:, 0] + cosine * step[:, 1]], axis=1)
    position[:, :2] = ours[0][0, :2] + np.concatenate([np.zeros((1, 2)), np.cumsum(moved, axis=0)])
    return position, heading


def _steps(frames: Frames) -> tuple[Array, Array]:
    """Travel (N - 1, 2) in the heading frame half-way, and turning (N - 1,), from frame to frame."""
    heading = np.unwrap(rotations.heading(frames[1]))
    turn, moved = np.diff(heading), np.diff(frames[0][:, :2], axis=0)
    along = heading[:-1] + 0.5 * turn
    cosine, sine = np.cos(along), np.sin(along)
    local = np.stack([cosine * moved[:, 0] + sine * moved[:, 1], cosine * moved[:, 1] - sine * moved[:, 0]], axis=1)
    return local, turn


def _periods(source: Skill, target: Skill) -> tuple[float, float]:
    """Of the two cycles; alike if one of them is none, so that time passes as it does."""
    return (source.duration_s, target.duration_s) if source.cyclic and target.cyclic else (1.0, 1.0)


def _mean_rate(source: Skill, target: Skill) -> float:
    """Phases a second, on average over a transition."""
    first, second = _periods(source, target)
    return 0.5 * (1.0 / first + 1.0 / second)


def _speed(skill: Skill) -> float:
    """Mean speed along the ground, m/s."""
    return float(np.linalg.norm((skill.clip.root_position[-1] - skill.clip.root_position[0])[:2])) / skill.duration_s
