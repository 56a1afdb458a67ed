"""A motion as its file tells it: any skeleton, any unit, any axes. `retarget` turns it into a character's motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mocap2ctrl.types import Array, frozen_array


@dataclass(frozen=True, eq=False)
class SourceMotion:
    """World positions and orientations of N joints over T frames, in the file's own unit and axes.

    Attributes:
        name: short name, from the file's.
        joint_names: N names, parents before children; a tip (End Site) is called `<parent>:tip`.
        parents: N indices of parents, -1 for the root.
        offsets: (N, 3) rest offsets from the parent.
        is_tip: N flags: the joint is an end without rotation of its own.
        positions: (T, N, 3) world positions.
        orientations: (T, N, 4) world orientations, quaternions wxyz; a tip has its parent's.
        fps: frames a second; NaN where the file's own rate cannot be true.
        format: kind of file, as in `kinds.KINDS`.
        loop: one period of a cyclic motion; the last frame repeats the first, carried on.
        up: the file's up axis where its format states it, else None.
        unit_m: metres a unit where the format states it, else None.
        start_s: time of the first frame, seconds; not 0 where the file begins before the body is seen, or was cut.
        guessed: names of joints that the file does not tell, put where they are at rest.
        labels: what the file calls a joint, or the markers that tell it, where that is not the joint's name.
        warnings: what the reader had to overlook.
        rate_doubt: why the file's rate cannot be true, and in which line, if it has lines; empty where it can.
    """

    name: str
    joint_names: tuple[str, ...]
    parents: tuple[int, ...]
    offsets: Array
    is_tip: tuple[bool, ...]
    positions: Array
    orientations: Array
    fps: float
    format: str
    loop: bool = False
    up: str | None = None
    unit_m: float | None = None
    start_s: float = 0.0
    guessed: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    rate_doubt: str = ""

    def __post_init__(self) -> None:
        joints = len(self.joint_names)
        object.__setattr__(self, "offsets", frozen_array(self.offsets, (joints, 3), "offsets"))
        object.__setattr__(self, "positions", frozen_array(self.positions, (None, joints, 3), "positions"))
        frames = len(self.positions)
        orientations = frozen_array(self.orientations, (frames, joints, 4), "orientations")
        object.__setattr__(self, "orientations", orientations)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def end_s(self) -> float:
        """Time of the last frame, seconds."""
        return self.start_s + (len(self) - 1) / self.fps

    def cut(self, start: int, stop: int | None = None) -> SourceMotion:
        """Frames `start` up to, not including, `stop`."""
        part = slice(start, stop)
        whole = len(range(*part.indices(len(self)))) == len(self)
        return replace(
            self,
            positions=self.positions[part],
            orientations=self.orientations[part],
            loop=self.loop and whole,
            start_s=self.start_s + part.indices(len(self))[0] / self.fps,
        )

    def ancestors(self, joint: int) -> list[int]:
        """`joint`, its parent, and so on up to the root."""
        chain = []
        while joint >= 0:
            chain.append(joint)
            joint = self.parents[joint]
        return chain

    def children(self, joint: int) -> list[int]:
        """Indices of the joints whose parent is `joint`, tips included."""
        return [i for i, parent in enumerate(self.parents) if parent == joint]


def frame_rate(frame_time_s: float) -> float:
    """Frames a second of a frame time; files round it, so a rate within 0.02 % of a whole number is that number."""
    rate = 1.0 / frame_time_s
    return float(round(rate)) if abs(rate - round(rate)) < 2e-4 * rate else rate


def rest_positions(source: SourceMotion) -> Array:
    """(N, 3) joint positions with all rotations zero and the root at the origin: sums of offsets."""
    rest = np.zeros_like(source.offsets)
    for joint, parent in enumerate(source.parents):
        if parent >= 0:
            rest[joint] = rest[parent] + source.offsets[joint]
    return rest
