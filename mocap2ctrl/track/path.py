"""Paths through poses, and what a search does to them: join, extrapolate, exchange left and right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.track.tree import LIMBS, ROOT
from mocap2ctrl.types import Array

TURN_DECAY = 0.9
"""Turning slows down by this factor a frame when a path is carried on; the body's travel does not."""
SPINNING = 0.1
"""Radians a frame, from which on the turn is a somersault's or a spin's, and does not slow down."""


class Path(NamedTuple):
    """Poses of T frames.

    Attributes:
        root_position: (T, 3) metres.
        root_orientation: (T, 4).
        angles: (T, J) radians.
    """

    root_position: Array
    root_orientation: Array
    angles: Array

    @property
    def frames(self) -> int:
        """T."""
        return len(self.angles)

    def part(self, begin: int, end: int) -> Path:
        """Frames `begin` up to, not including, `end`."""
        return Path(self.root_position[begin:end], self.root_orientation[begin:end], self.angles[begin:end])

    def with_part(self, begin: int, part: Path) -> Path:
        """The path with its frames from `begin` on replaced by all those of `part`."""
        return joined(self.part(0, begin), part, self.part(begin + part.frames, self.frames))

    def reversed(self) -> Path:
        """The path backwards in time."""
        return Path(*(np.ascontiguousarray(array[::-1]) for array in self))

    def moved(self, step: Array) -> Path:
        """The path after steps (T, D): position, world rotation, angles."""
        turn = rotations.from_rotation_vector(step[:, 3:ROOT])
        orientation = rotations.normalise(rotations.multiply(turn, self.root_orientation))
        return Path(self.root_position + step[:, :3], orientation, self.angles + step[:, ROOT:])

    def with_angles(self, angles: Array) -> Path:
        """The path with other hinge angles."""
        return self._replace(angles=angles)


def joined(*parts: Path) -> Path:
    """The parts, one after the other."""
    return Path(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class Rates(NamedTuple):
    """How a body moves, a frame.

    Attributes:
        travel: (3,) of the root, metres.
        turn: (3,) of the root, a rotation vector of the world.
        swing: (J,) of the hinges, radians.
    """

    travel: Array
    turn: Array
    swing: Array

    @classmethod
    def after(cls, path: Path) -> Rates:
        """As in the last three frames of `path`."""
        position, orientation, angles = path
        back = min(2, path.frames - 1)
        turn = rotations.multiply(orientation[-1], rotations.conjugate(orientation[-1 - back]))
        moved = position[-1] - position[-1 - back], rotations.to_rotation_vector(turn), angles[-1] - angles[-1 - back]
        return cls(*(way / max(back, 1) for way in moved))


def extrapolated(path: Path, frames: int) -> Path:
    """The `frames` frames after `path`, if it goes on as in its last three."""
    last, rates = path.part(path.frames - 1, path.frames), Rates.after(path)
    count = np.arange(1, frames + 1)[:, None]
    decay = 1.0 if np.linalg.norm(rates.turn) > SPINNING else TURN_DECAY
    slowed = np.cumsum(decay ** np.arange(1, frames + 1))[:, None]
    return Path(
        last.root_position + count * rates.travel,
        rotations.multiply(rotations.from_rotation_vector(slowed * rates.turn), last.root_orientation),
        last.angles + slowed * rates.swing,
    )


def bridged(first: Path, second: Path, begin: int, end: int) -> Path:
    """`first` before frame `begin`, `second` from frame `end` on, and between them a way from one to the other.

    The root's place follows a cubic with both velocities; it turns evenly, as often about itself as the turns before and after
    suggest; hinges go straight.
    """
    before, after = first.part(0, begin), second.part(end, second.frames)
    here, there = Rates.after(before), Rates.after(after.reversed())
    steps = end - begin + 1
    share = np.arange(1, steps)[:, None] / steps
    rest = 1.0 - share
    place = (
        rest**2 * (1.0 + 2.0 * share) * before.root_position[-1]
        + share**2 * (1.0 + 2.0 * rest) * after.root_position[0]
        + share * rest * steps * (rest * here.travel + share * there.travel)
    )
    between = rotations.multiply(after.root_orientation[0], rotations.conjugate(before.root_orientation[-1]))
    turn = _turn_near(rotations.to_rotation_vector(between), 0.5 * steps * (here.turn - there.turn))
    way = Path(
        place,
        rotations.multiply(rotations.from_rotation_vector(share * turn), before.root_orientation[-1]),
        rest * before.angles[-1] + share * after.angles[0],
    )
    return joined(before, way, after)


def _turn_near(turn: Array, expected: Array) -> Array:
    """A rotation vector (3,), or the one with a whole turn more or less about its axis that is nearer to what is expected."""
    whole = 2.0 * np.pi * turn / max(float(np.linalg.norm(turn)), 1e-9)
    return min((turn, turn + whole, turn - whole), key=lambda each: float(np.linalg.norm(each - expected)))


def held(path: Path, frames: int) -> Path:
    """The last frame of `path`, `frames` times."""
    return Path(*(np.repeat(array[-1:], frames, axis=0) for array in path))


class Followed(NamedTuple):
    """Hypotheses over the same frames, most likely first.

    Attributes:
        paths: one each.
        past: energy of what each has left behind, and will not reconsider.
    """

    paths: list[Path]
    past: list[float]


class Sides(NamedTuple):
    """How left and right are exchanged.

    Attributes:
        source, sign: (J,) as `Character.mirror_hinges` gives them.
        legs, arms: hinges of each.
    """

    source: npt.NDArray[np.int64]
    sign: Array
    legs: npt.NDArray[np.int64]
    arms: npt.NDArray[np.int64]

    def exchanged(self, angles: Array, hinges: npt.NDArray[np.int64]) -> Array:
        """Angles (..., J) with `hinges` taken from the other side, mirrored."""
        result = np.array(angles)
        result[..., hinges] = (self.sign * angles[..., self.source])[..., hinges]
        return result

    def exchanged_in(self, path: Path, frames: slice, hinges: npt.NDArray[np.int64]) -> Path:
        """`path` with `hinges` exchanged in some frames."""
        angles = np.array(path.angles)
        angles[frames] = self.exchanged(angles[frames], hinges)
        return path.with_angles(angles)

    @property
    def groups(self) -> tuple[npt.NDArray[np.int64], ...]:
        """What may be exchanged: legs, arms, both."""
        return self.legs, self.arms, np.concatenate([self.legs, self.arms])


def sides_of(character: Character) -> Sides:
    """The hinges of `character` by side."""
    index, sign = character.mirror_hinges
    names = [character.segments[i].name for i in character.hinge_segment]
    legs, arms = (np.array([j for j, name in enumerate(names) if name.endswith(ends)]) for ends in LIMBS[:2])
    return Sides(index, np.asarray(sign), legs, arms)
