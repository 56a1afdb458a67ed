"""Symmetric gaits: one stride and its mirror image (Liu 2016, §6.1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.skills import Frames, Skill, turns
from mocap2ctrl.motion.clips import mirror
from mocap2ctrl.types import Array, MotionClip

JOIN_S = 0.1
"""How long the stride and its mirror image are blended at each of the two joins."""
RATE_HZ = 200.0
TRAVELS_M = 0.1
FURTHEST_M = 0.2
"""Mean distance of the joints at the join beyond which a cycle has no symmetric stride."""


def symmetrised(skill: Skill, character: Character) -> Skill:
    """The cycle made of one of its strides and that stride's mirror image.

    With P the cycle of period T along x and Q(t) the mirror image of P(t + T/2), half a travel back, it is (1 - w) P + w Q, where
    w is 0 in the stride, 1 in the other half, and w(t) + w(t + T/2) = 1: so it mirrors exactly, and the joins are blended. The
    stride begins where P and Q are nearest each other.

    Raises:
        GraphError: the skill is no cycle, turns, or is far from symmetric.
    """
    if not skill.cyclic or turns(skill):
        what = "turns" if skill.cyclic else "is no cycle"
        raise GraphError(f"skill {skill.name!r}: it {what}, so that it cannot be made symmetric; leave --symmetric out")
    along = replace(skill, clip=_along_x(skill.clip))
    half = max(2, round(0.5 * along.duration_s * RATE_HZ))
    own, other = _own_and_mirrored(along, character, half)
    apart = np.linalg.norm(clip_points(character, own) - clip_points(character, other), axis=-1).mean(axis=1)
    start = int(np.argmin(apart[:half]))
    if apart[start] > FURTHEST_M:
        raise GraphError(
            f"skill {skill.name!r}: half a cycle later it is {100 * apart[start]:.0f} cm from its own mirror image at best; "
            f"allowed are {100 * FURTHEST_M:g} cm, so leave --symmetric out"
        )
    weight = _weight(2 * half, JOIN_S * RATE_HZ)
    stride, image = (part.cut(start, start + 2 * half + 1) for part in (own, other))
    return Skill(skill.name, _blended(stride, image, weight), symmetric=True)


def mirrored(skill: Skill, frames: Frames, character: Character) -> Frames:
    """The mirror image of some of a symmetric skill's motion, half a cycle later."""
    position, orientation, angles = frames
    clip = replace(skill.clip, root_position=position, root_orientation=orientation, angles=angles)
    image, travel = mirror(clip, character), skill.clip.root_position[-1] - skill.clip.root_position[0]
    return image.root_position + 0.5 * travel, image.root_orientation, image.angles


def _along_x(clip: MotionClip) -> MotionClip:
    """The cycle turned so that it travels along x, or faces x on average, with its mean path on the x axis."""
    travel = clip.root_position[-1] - clip.root_position[0]
    angle = np.arctan2(travel[1], travel[0])
    if np.linalg.norm(travel[:2]) < TRAVELS_M:
        headings = rotations.heading(clip.root_orientation)
        angle = np.arctan2(np.sin(headings).mean(), np.cos(headings).mean())
    turn = rotations.yaw(-angle)
    position = rotations.rotate(turn, clip.root_position)
    position = position - np.array([position[0, 0], position[:-1, 1].mean(), 0.0])
    return replace(clip, root_position=position, root_orientation=rotations.multiply(turn, clip.root_orientation))


def _own_and_mirrored(skill: Skill, character: Character, half: int) -> tuple[MotionClip, MotionClip]:
    """P and Q over one and a half periods, 2 `half` steps a period."""
    step_s = skill.duration_s / (2 * half)
    times_s: Array = np.arange(3.0 * half + 1.0) * step_s
    shift = 0.5 * (skill.clip.root_position[-1] - skill.clip.root_position[0])
    own = _clip(skill, times_s, 1.0 / step_s)
    later = _clip(skill, times_s + 0.5 * skill.duration_s, 1.0 / step_s)
    return own, mirror(replace(later, root_position=later.root_position - shift), character)


def _clip(skill: Skill, times_s: Array, fps: float) -> MotionClip:
    position, orientation, angles = skill.at(times_s)
    return replace(skill.clip, fps=fps, root_position=position, root_orientation=orientation, angles=angles)


def _weight(period: int, join: float) -> Array:
    """(period + 1,) w, from a join on: 0 in the first half, 1 in the second, smooth over `join` frames about both joins."""
    phase = np.arange(period + 1.0)
    to_join = np.minimum(phase % (period / 2), -phase % (period / 2))
    inside = np.where(phase % period < period / 2, to_join, -to_join)  # frames inside of the stride
    s = np.clip(0.5 - inside / join, 0.0, 1.0)
    return np.asarray(s * s * (3.0 - 2.0 * s))


def _blended(own: MotionClip, other: MotionClip, weight: Array) -> MotionClip:
    mix = weight[:, None]
    orientation = rotations.slerp(own.root_orientation, other.root_orientation, weight)
    return replace(
        own,
        root_position=(1.0 - mix) * own.root_position + mix * other.root_position,
        root_orientation=rotations.continuous(rotations.normalise(orientation)),
        angles=(1.0 - mix) * own.angles + mix * other.angles,
        loop=True,
    )
