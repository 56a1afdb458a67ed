"""Ways from skill to skill: proposed where the two are near each other, or given by the user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.graph.blend import blend_seconds, passed_s
from mocap2ctrl.graph.near import cloud_distances, clouds
from mocap2ctrl.graph.skills import Skill
from mocap2ctrl.types import Array

BLEND_S = 0.3
"""Length of a transition, if speeds do not ask for more: the third of a second over which Kovar et al. 2002 compare and blend."""
STEP_S = 0.02
NEAR_M = 0.5
"""Skills that are nowhere nearer than this get no transition of themselves."""
ENDS = 1.0 / 3.0
"""The part of a motion that is no cycle in which it may be entered, and that in which it may be left."""


@dataclass(frozen=True)
class Transition:
    """A way from one skill to another: for `blend_s` seconds the first turns into the second.

    Attributes:
        source, target: names of skills.
        leave_s: time in the first at which it begins.
        enter_s: time in the second that is blended in there.
        arrive_s: time in the second at which it alone goes on, after the transition.
        blend_s: its length.
        distance_m: of the two motions where it begins.
    """

    source: str
    leave_s: float
    target: str
    enter_s: float
    arrive_s: float
    blend_s: float
    distance_m: float


def transition(
    source: Skill, leave_s: float, target: Skill, enter_s: float, blend_s: float, distance_m: float
) -> Transition:
    """A transition; where it arrives follows from how fast the second motion is played in it, see `graph.blend`."""
    arrive_s = enter_s + float(passed_s(source, target, blend_s)[1])
    arrive_s = arrive_s % target.duration_s if target.cyclic else arrive_s
    return Transition(source.name, leave_s, target.name, enter_s, arrive_s, blend_s, distance_m)


@dataclass(frozen=True, eq=False)
class Nearness:
    """How near all moments of all skills are to each other.

    Attributes:
        skills: names, in order.
        times_s: of each skill (F_i,).
        distances_m: (ΣF, ΣF).
    """

    skills: tuple[str, ...]
    times_s: tuple[Array, ...]
    distances_m: Array

    def block(self, a: int, b: int) -> Array:
        """(F_a, F_b) of two skills by index."""
        ends = np.cumsum([0, *(len(t) for t in self.times_s)])
        return self.distances_m[ends[a] : ends[a + 1], ends[b] : ends[b + 1]]


def window_length(skills: Sequence[Skill], blend_s: float) -> float:
    """`blend_s`, or less where a skill is too short: a motion that is no cycle must have been entered before it is left."""
    return min([blend_s, *((0.5 if skill.cyclic else 0.25) * skill.duration_s for skill in skills)])


def nearness(skills: Sequence[Skill], character: Character, window_s: float) -> Nearness:
    """Distances, over `window_s`, between all moments at which a transition can begin."""
    times, points = [], []
    for skill in skills:
        last = skill.duration_s - (STEP_S if skill.cyclic else window_s)
        times.append(np.linspace(0.0, last, max(2, round(last / STEP_S) + 1)))
        points.append(clouds(skill, character, times[-1], window_s))
    everything = np.concatenate(points)
    return Nearness(tuple(skill.name for skill in skills), tuple(times), cloud_distances(everything, everything))


def proposed(
    skills: Sequence[Skill], near: Nearness, window_s: float, within_m: float = NEAR_M
) -> tuple[Transition, ...]:
    """For each two skills the nearest way there, and back, if it is within `within_m`; `window_s` long, or as speeds ask."""
    found = []
    for a, b in combinations(range(len(skills)), 2):
        for first, second in ((a, b), (b, a)):
            source, target = skills[first], skills[second]
            distances = near.block(first, second).copy()
            leave, enter = near.times_s[first], near.times_s[second]
            if not source.cyclic:
                distances[leave < (1.0 - ENDS) * leave[-1]] = np.inf
            if not target.cyclic:
                distances[:, enter > ENDS * enter[-1]] = np.inf
            i, j = np.unravel_index(int(np.argmin(distances)), distances.shape)
            if distances[i, j] <= within_m:
                blend_s = blend_seconds(source, target, window_s)
                moments = float(leave[i]), target, float(enter[j])
                found.append(transition(source, *moments, blend_s, float(distances[i, j])))
    return tuple(found)


def given(skills: Mapping[str, Skill], character: Character, ends: Sequence[str], window_s: float) -> Transition:
    """The transition of an option `walk:0.5 run:0.2`: leave walk at 0.5 s, blend it into run from 0.2 s on.

    Raises:
        ConfigError: it does not read so, or names no skill, or a time that the skill does not have.
    """
    (source, leave), (target, enter) = (_moment(skills, text, window_s) for text in ends)
    if source is target:
        raise ConfigError(f"--transition {' '.join(ends)}: leads from a skill to itself; give two skills")
    if not source.cyclic and leave < STEP_S:
        raise ConfigError(
            f"--transition {' '.join(ends)}: leaves {source.name!r} before it has begun; give a later time"
        )
    at = [clouds(skill, character, np.array([time]), window_s) for skill, time in ((source, leave), (target, enter))]
    blend_s = blend_seconds(source, target, window_s)
    return transition(source, leave, target, enter, blend_s, float(cloud_distances(*at)[0, 0]))


def _moment(skills: Mapping[str, Skill], text: str, blend_s: float) -> tuple[Skill, float]:
    match = re.fullmatch(r"(.+):(\d+(?:\.\d*)?|\.\d+)", text)
    if match is None or match[1] not in skills:
        raise ConfigError(
            f"--transition: {text!r} is no moment of a skill; allowed is NAME:SECONDS with a name of {', '.join(skills)}"
        )
    skill, time = skills[match[1]], float(match[2])
    last = skill.duration_s - (0.0 if skill.cyclic else blend_s)
    if time > last:
        raise ConfigError(f"--transition: {text!r} is too late; {skill.name!r} allows 0 to {last:.2f} s")
    return skill, time % skill.duration_s if skill.cyclic else time


def check_names(names: Sequence[str]) -> None:
    """Whether skills can be called so.

    Raises:
        GraphError: a name stands twice, or holds what has a meaning in paths and options.
    """
    for name in names:
        if not name or not name.isprintable() or any(mark in name for mark in "/,:"):
            raise GraphError(f"a skill cannot be called {name!r}; allowed is a text without /, comma and colon")
        if names.count(name) > 1:
            raise GraphError(f"two skills are called {name!r}; name one of them otherwise: NAME=INPUT")
