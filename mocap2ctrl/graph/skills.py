"""Skills: the reference motions that a control graph is made of, sampled at any time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError, MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlFragment
from mocap2ctrl.graph.touchdowns import Touchdown, touchdowns
from mocap2ctrl.motion.clips import carried_on, close_loop, cycle_turn
from mocap2ctrl.motion.cycles import cut_cycle, doubt, find_cycle
from mocap2ctrl.types import Array, MotionClip

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline
    from scipy.spatial.transform import RotationSpline

Frames = tuple[Array, Array, Array]
"""Root positions (N, 3) in metres, root orientations (N, 4) wxyz, and angles (N, J) in radians."""

SHORTEST_S = 0.1


@dataclass(frozen=True, eq=False)
class Skill:
    """A motion with a name.

    Attributes:
        name: unique in its graph.
        clip: the motion; a loop, closed, if the skill is cyclic.
        symmetric: its second half is the mirror image of the first.
        doubt: why its best cycle was not believed, if it was not.
        pieces: of a cycle that is cut into fragments already: these, in order; the motion is theirs.
        contacts: on which its fragments are to end, of a cycle that is not cut yet.
    """

    name: str
    clip: MotionClip
    symmetric: bool = False
    pieces: tuple[ControlFragment, ...] = ()
    contacts: tuple[Touchdown, ...] = ()
    doubt: str = ""

    @property
    def cyclic(self) -> bool:
        """Whether it goes on from its end into its beginning."""
        return self.clip.loop

    @property
    def duration_s(self) -> float:
        """Of the motion, or of its cycle."""
        return self.clip.duration_s

    @property
    def begins_s(self) -> Array:
        """(P,) seconds at which its pieces begin."""
        return np.cumsum([0.0, *(piece.duration_s for piece in self.pieces[:-1])])

    def at(self, times_s: Array) -> Frames:
        """The motion at times (N,), by cubic splines; a cycle goes on for one period before its begin and one after its end."""
        positions, orientations = self._splines
        values = np.asarray(positions(times_s))
        xyzw = orientations(times_s).as_quat()
        return values[:, :3], rotations.continuous(xyzw[:, [3, 0, 1, 2]]), values[:, 3:]

    @cached_property
    def _splines(self) -> tuple[CubicSpline, RotationSpline]:
        from scipy.interpolate import CubicSpline
        from scipy.spatial.transform import Rotation, RotationSpline

        clip = self.clip
        parts = [(clip.root_position, clip.root_orientation, clip.angles)]
        if clip.loop:
            parts = [carried_on(clip, -1), *parts, carried_on(clip, 1)]
        position, orientation, angles = (np.concatenate(values) for values in zip(*parts, strict=True))
        first = len(clip) - 1 if clip.loop else 0
        times_s = (np.arange(len(position)) - first) / clip.fps
        turned = RotationSpline(times_s, Rotation.from_quat(orientation[:, [1, 2, 3, 0]]))
        return CubicSpline(times_s, np.concatenate([position, angles], axis=1)), turned


def make_skill(name: str, clip: MotionClip, character: Character, *, cyclic: bool | None = None) -> Skill:
    """A skill from a motion: its cycle if it has one, else all of it.

    Args:
        name: of the skill.
        clip: the motion; a loop, or one in which a cycle may be found.
        character: whose motion it is.
        cyclic: whether it must be, or must not be, a cycle; found out if not given.

    Raises:
        GraphError: the motion is too short, or has no cycle though it must.
    """
    if clip.duration_s < SHORTEST_S or len(clip) < 4:
        raise GraphError(f"skill {name!r}: its motion lasts {clip.duration_s:.2f} s; a skill needs {SHORTEST_S:g} s")
    if cyclic is False:
        return Skill(name, replace(clip, loop=False))
    if clip.loop:
        return Skill(name, close_loop(clip))
    try:
        cycle = find_cycle(clip, character)
        if cyclic is None and (why := doubt(cycle, clip)):
            return Skill(name, clip, doubt=why)
        return Skill(name, cut_cycle(clip, character, cycle))
    except MotionFileError as error:
        if cyclic:
            raise GraphError(f"skill {name!r}: it has no cycle: {error}") from error
        return Skill(name, clip)


def on_contacts(skill: Skill, character: Character) -> Skill:
    """The cycle whose fragments are to end on its touchdowns.

    Raises:
        GraphError: it is no cycle, or no foot comes down in it.
    """
    contacts = touchdowns(skill.clip, character) if skill.cyclic else ()
    if not contacts:
        what = "no foot comes down in its cycle" if skill.cyclic else "it is no cycle"
        raise GraphError(
            f"skill {skill.name!r}: {what}, so that no contact can reset its phase; leave --phase-reset out"
        )
    return replace(skill, contacts=contacts)


def turns(skill: Skill) -> bool:
    """Whether a cycle changes its heading from period to period."""
    return bool(abs(rotations.heading(cycle_turn(skill.clip))) > 0.0)
