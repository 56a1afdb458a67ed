"""Cuts motions into control fragments: equal pieces of about 0.1 s, multiples of the servos' step (Liu 2016, §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.graph.fragments import ControlFragment
from mocap2ctrl.graph.skills import Frames, Skill
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.types import Array

PIECE_S = 0.1
SPREAD = 0.25
"""By what share a piece may be shorter or longer than wished, so that the whole keeps its duration."""
KEPT = 0.01
"""Share of a duration that may be lost to pieces that are multiples of the servos' step."""
CLOSEST_S = 0.06
"""Transition states of one skill that are nearer in time than this become one."""


@dataclass(frozen=True)
class Cut:
    """How a stretch of motion becomes fragments.

    Attributes:
        count: K, how many.
        steps: of `PD_TIME_STEP_S` in each.
    """

    count: int
    steps: int

    @property
    def seconds(self) -> float:
        """Of all of them."""
        return self.count * self.steps * PD_TIME_STEP_S


def cut(seconds: float, piece_s: float = PIECE_S) -> Cut:
    """Pieces whose sum keeps `seconds` to 1 %, if there are any; of these, those whose length is nearest `piece_s`."""
    fewest = max(1, int(np.floor(seconds / (piece_s * (1.0 + SPREAD)))))
    most = max(fewest, int(np.ceil(seconds / (piece_s * (1.0 - SPREAD)))))
    candidates = [Cut(k, max(1, round(seconds / (k * PD_TIME_STEP_S)))) for k in range(fewest, most + 1)]
    within = [c for c in candidates if abs(c.steps * PD_TIME_STEP_S - piece_s) <= SPREAD * piece_s + 1e-9] or candidates
    off = [int(abs(c.seconds / seconds - 1.0) / KEPT) for c in within]
    return min(
        zip(off, within, strict=True), key=lambda both: (both[0], abs(both[1].steps * PD_TIME_STEP_S - piece_s))
    )[1]


def transition_states(skill: Skill, wanted_s: Sequence[float]) -> tuple[Array, Array]:
    """Times at which a skill is cut for transitions, and which of them each wished one becomes.

    Ends of a motion that is no cycle are such times, too; a cycle without any has one at its begin. Of a symmetric cycle, the
    times half a cycle later belong to them, so that its fragments mirror each other.

    Returns:
        (B,) ascending seconds in the skill; (W,) indices into them.
    """
    times: list[float] = [] if skill.cyclic else [0.0, skill.duration_s]
    for wish in wanted_s:
        if not times or np.min(_apart(np.array(times), wish, skill)) >= CLOSEST_S:
            times += _with_partner(wish, skill)
    ordered = np.array(sorted(times or _with_partner(0.0, skill)))
    return ordered, np.array([nearest_state(ordered, wish, skill) for wish in wanted_s], dtype=int)


def nearest_state(states_s: Array, wish_s: float, skill: Skill) -> int:
    """Which of the times `states_s` (B,) of a skill is nearest a wished one."""
    return int(np.argmin(_apart(states_s, wish_s, skill)))


def _with_partner(time_s: float, skill: Skill) -> list[float]:
    """A transition state, and its mirror image."""
    return [time_s, (time_s + 0.5 * skill.duration_s) % skill.duration_s] if skill.symmetric else [time_s]


def _apart(times_s: Array, wish_s: float, skill: Skill) -> Array:
    """(B,) seconds between times and one of them, the short way round in a cycle."""
    gap = times_s - wish_s
    if skill.cyclic:
        gap = gap - np.round(gap / skill.duration_s) * skill.duration_s
    return np.abs(gap)


def stretches(skill: Skill, states_s: Array) -> list[tuple[float, float]]:
    """Begin and end of the motion between neighbouring transition states; of a cycle, the last goes on into the next period."""
    ends = [*states_s[1:], *([states_s[0] + skill.duration_s] if skill.cyclic else [])]
    return [(float(a), float(b)) for a, b in zip(states_s, ends, strict=False)]


def led(angles: Array, lead_s: Array) -> Array:
    """Angles (N, J) a servo step apart, ahead by what the servo's damping holds back: `lead_s` (J,), k_d / k_p, of their rates."""
    return np.asarray(angles + lead_s * np.gradient(angles, axis=0) / PD_TIME_STEP_S)


def fragments_of(skill: str, frames: Frames, division: Cut, first: int, led_angles: Array) -> list[ControlFragment]:
    """A stretch as fragments `skill/first`, …; each goes on from the last frame of the one before.

    The targets are for the end of each servo step, where the body should be when it is over. From them open-loop SAMCON starts.

    Args:
        skill: name.
        frames: of the stretch, `count * steps + 1` of them, evenly.
        division: into what.
        first: number of the first fragment.
        led_angles: (N, J) `led` of the frames' angles.
    """
    position, orientation, angles = frames
    pieces = []
    for k in range(division.count):
        at = slice(k * division.steps, (k + 1) * division.steps + 1)
        pieces.append(
            ControlFragment(
                name=f"{skill}/{first + k}",
                skill=skill,
                frame_s=PD_TIME_STEP_S,
                targets=led_angles[at][1:],
                reference_root_position=position[at],
                reference_root_orientation=orientation[at],
                reference_angles=angles[at],
            )
        )
    return pieces
