"""From a looping motion to a control graph of one skill: its fragments in a ring (Liu 2016, §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.body import digest
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph
from mocap2ctrl.graph.pieces import Cut, fragments_of, led
from mocap2ctrl.graph.touchdowns import Touchdown, touchdowns
from mocap2ctrl.motion.clips import at_times, carried_on, close_loop, cycle_turn, mirror
from mocap2ctrl.motion.cycles import cut_cycle, doubt, find_cycle
from mocap2ctrl.samcon.mirrors import mirrored_foot, mirrored_fragment
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.types import Array, MotionClip

FRAGMENT_S = 0.1
SYMMETRIC_DEG = 6.0
"""A loop whose hinges differ by less from their mirrors' half a period later, root mean square, is a symmetric gait."""
TRAVEL_M = 0.3
"""What a loop must travel for its direction to be told by that."""
STEPS = (18, 19, 20, 21, 22)
"""Of the engine that a fragment may take."""


def cut(duration_s: float, even: bool) -> tuple[int, int]:
    """Number of fragments of a cycle, even if wanted, and the engine's steps of each, so that time is scaled least."""
    options = []
    for steps in STEPS:
        for count in range(2 if even else 1, 2 + round(duration_s / (STEPS[0] * PD_TIME_STEP_S))):
            if not (even and count % 2):
                scale = abs(np.log(count * steps * PD_TIME_STEP_S / duration_s))
                options.append((scale, abs(steps * PD_TIME_STEP_S - FRAGMENT_S), count, steps))
    best = min(options)
    return best[2], best[3]


def symmetric(loop: MotionClip, character: Character) -> MotionClip:
    """A straight loop made symmetric: the mean of itself and of its mirror half a period later; it goes along x.

    The paper takes one stride and its mirror; the mean needs no blend where the two meet.
    """
    half = 4 * len(loop)
    dense = at_times(loop, np.linspace(0.0, loop.duration_s, 2 * half + 1))
    dense = replace(dense, fps=2 * half / loop.duration_s)
    dense, advance = _along_x(dense)
    other = mirror(dense, character)
    position = 0.5 * (dense.root_position + _later(other.root_position, half))
    orientation = rotations.slerp(
        dense.root_orientation, _later(other.root_orientation, half), np.full(len(dense), 0.5)
    )
    angles = 0.5 * (dense.angles + _later(other.angles, half))
    position = position + np.linspace(0.0, 1.0, len(dense))[:, None] * np.array([advance, 0.0, 0.0])
    return replace(dense, root_position=position, root_orientation=rotations.continuous(orientation), angles=angles)


def asymmetry_rad(loop: MotionClip, character: Character) -> float:
    """Root mean square difference of a loop's hinge angles from those of its mirror half a period later."""
    half = 4 * len(loop)
    dense = at_times(loop, np.linspace(0.0, loop.duration_s, 2 * half + 1))
    return float(np.sqrt(np.mean((dense.angles - _later(mirror(dense, character).angles, half)) ** 2)))


def _later(values: Array, half: int) -> Array:
    """Periodic values (2 half + 1, ...), half a period later."""
    return np.concatenate([values[half:], values[1 : half + 1]])


def _along_x(clip: MotionClip) -> tuple[MotionClip, float]:
    """A loop turned so that it travels along x, or faces it if it does not travel, its travel taken off; and that travel."""
    travel = (clip.root_position[-1] - clip.root_position[0])[:2]
    advance = float(np.linalg.norm(travel))
    way = np.arctan2(travel[1], travel[0]) if advance > TRAVEL_M else float(rotations.heading(clip.root_orientation[0]))
    if advance <= TRAVEL_M:
        advance = 0.0
    turn = rotations.yaw(-way)
    position = rotations.rotate(turn, clip.root_position)
    position = position - np.linspace(0.0, 1.0, len(clip))[:, None] * (position[-1] - position[0])
    position = position - np.mean(position[:-1], axis=0) * np.array([1.0, 1.0, 0.0])
    orientation = rotations.multiply(turn, clip.root_orientation)
    return replace(clip, root_position=position, root_orientation=orientation), advance


def motion_graph(
    clip: MotionClip,
    character: Character,
    *,
    skill: str,
    gains: str,
    mirrored: bool | None = None,
    phase_reset: bool = False,
) -> tuple[ControlGraph, tuple[str, ...]]:
    """The ring of fragments of a cyclic motion, and what was made of the motion, in words.

    Args:
        clip: a loop, or a motion that repeats itself: its best cycle is taken.
        character: whose motion it is.
        skill: name of the skill.
        gains: name of the set of PD gains.
        mirrored: make the gait symmetric; by default if it nearly is.
        phase_reset: where a foot comes down, a fragment ends when it does.

    Raises:
        MotionFileError: it does not repeat itself.
        GraphError: no foot comes down though one must.
    """
    told: tuple[str, ...] = ()
    if clip.loop:
        loop = close_loop(clip)
    else:
        cycle = find_cycle(clip, character)
        loop = cut_cycle(clip, character, cycle)
        seconds = [clip.start_s + frame / clip.fps for frame in (cycle.start, cycle.stop)]
        told = (f"its best cycle runs from {seconds[0]:.2f} to {seconds[1]:.2f} s, ends {cycle.seam_cm:.1f} cm apart",)
        if why := doubt(cycle, clip):
            told += (f"that may be none: {why}; give a part that repeats itself with --time-range",)
    apart = np.degrees(asymmetry_rad(loop, character))
    if mirrored is None:
        mirrored = bool(apart < SYMMETRIC_DEG and not np.any(cycle_turn(loop)[1:]))
    if mirrored:
        loop = symmetric(loop, character)
        told += (f"its halves are mirrors to {apart:.1f} degrees: made exactly so, one side is learned",)
    contacts = touchdowns(loop, character) if phase_reset else ()
    if phase_reset and not contacts:
        raise GraphError(
            f"{clip.name}: no foot comes down in its cycle, so that no contact can reset its phase; leave --phase-reset out"
        )
    if contacts:
        feet = " and ".join(f"the {down.foot.replace('_', ' ')} at {down.time_s:.2f} s" for down in contacts)
        told += (f"its phase is reset where a foot comes down: {feet} of its cycle",)
    return cycle_graph(loop, character, skill=skill, gains=gains, mirrored=mirrored, contacts=contacts), told


def cycle_graph(
    loop: MotionClip,
    character: Character,
    *,
    skill: str,
    gains: str,
    mirrored: bool = False,
    contacts: Sequence[Touchdown] = (),
) -> ControlGraph:
    """A ring of fragments of about 0.1 s whose reference is `loop`, without feedback.

    The targets are the loop's angles, led by k_d/k_p of their rates, so that the servos' damping acts on the difference of rates.

    Args:
        loop: one period.
        character: whose motion it is.
        skill: name of the skill.
        gains: name of the set of PD gains.
        mirrored: the loop is symmetric, and the second half's fragments are to be the first half's mirror.
        contacts: on which fragments are to end; the ring then begins with the first.

    Raises:
        GraphError: the clip is no loop.
    """
    if not loop.loop:
        raise GraphError(f"clip {loop.name!r} is not a loop; a ring of fragments needs one")
    stretches = _stretches(loop, contacts, mirrored=mirrored)
    pieces = _pieces(_sampled(loop, stretches, contacts), stretches, character, skill, gains)
    steps = sum(len(piece.targets) for piece in pieces)
    if mirrored:
        own = pieces[: len(pieces) // 2]
        pieces = [*own, *(mirrored_fragment(own[k], pieces[len(own) + k].name, character) for k in range(len(own)))]
    fragments = {piece.name: piece for piece in pieces}
    names = list(fragments)
    after = {name: (names[(i + 1) % len(names)],) for i, name in enumerate(names)}
    provenance = {
        "clip": loop.name,
        "time_scale": steps * PD_TIME_STEP_S / loop.duration_s,
        **({"motion": dict(loop.provenance)} if loop.provenance else {}),
    }
    return ControlGraph(digest(character), gains, fragments, after, provenance, character.description)


class _Stretch(NamedTuple):
    """Of a loop: how long it lasts, into what it is cut, and the foot that comes down at its end, if one does."""

    seconds: float
    division: Cut
    foot: str | None


def _stretches(loop: MotionClip, contacts: Sequence[Touchdown], *, mirrored: bool) -> list[_Stretch]:
    """The loop from contact to contact, from the first on; all of it if there are none.

    Of a symmetric loop the first contact counts, and its mirror half a period later. Contacts that are nearer than two pieces, of
    feet that land together, are one: the first.
    """
    if not contacts:
        return [_Stretch(loop.duration_s, Cut(*cut(loop.duration_s, even=mirrored)), None)]
    first, period_s = contacts[0], loop.duration_s
    ends: list[tuple[float, str | None]] = [(down.time_s - first.time_s, down.foot) for down in contacts[1:]]
    if mirrored:
        ends = [(0.5 * period_s, mirrored_foot(first.foot))]
    apart_s = 2 * FRAGMENT_S
    ends = [end for end in ends if apart_s <= end[0] <= period_s - apart_s]
    found = []
    for (before, _), (after, foot) in pairwise([(0.0, None), *ends, (period_s, first.foot)]):
        found.append(_Stretch(after - before, Cut(*cut(after - before, even=False)), foot))
    return found


def _sampled(loop: MotionClip, stretches: Sequence[_Stretch], contacts: Sequence[Touchdown]) -> MotionClip:
    """The stretches one after the other, in steps of the servos."""
    times_s = [np.zeros(1)]
    for seconds, division, _ in stretches:
        times_s.append(times_s[-1][-1] + np.linspace(0.0, seconds, division.count * division.steps + 1)[1:])
    begin_s, around = (contacts[0].time_s, _twice(loop)) if contacts else (0.0, loop)
    return replace(at_times(around, begin_s + np.concatenate(times_s)), fps=1.0 / PD_TIME_STEP_S)


def _pieces(
    dense: MotionClip, stretches: Sequence[_Stretch], character: Character, skill: str, gains: str
) -> list[ControlFragment]:
    """The fragments of what is `_sampled`."""
    servo = pd_gains(character, gains)
    around = np.concatenate([dense.angles[-2:-1], dense.angles, dense.angles[1:2]])
    motion = dense.root_position, dense.root_orientation, dense.angles
    held = led(around, servo.damping / servo.stiffness)[1:-1]
    pieces: list[ControlFragment] = []
    begin = 0
    for _, division, foot in stretches:
        end = begin + division.count * division.steps
        position, orientation, angles = (values[begin : end + 1] for values in motion)
        pieces += fragments_of(skill, (position, orientation, angles), division, len(pieces), held[begin : end + 1])
        pieces[-1] = replace(pieces[-1], touchdown=foot)
        begin = end
    return pieces


def _twice(loop: MotionClip) -> MotionClip:
    """Two periods of a closed loop."""
    position, orientation, angles = carried_on(loop, 1)
    return replace(
        loop,
        root_position=np.concatenate([loop.root_position, position]),
        root_orientation=rotations.continuous(np.concatenate([loop.root_orientation, orientation])),
        angles=np.concatenate([loop.angles, angles]),
        loop=False,
    )
