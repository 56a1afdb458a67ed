"""What a control graph consists of (Liu 2016, §3): fragments C = {δt, m̂, π} with linear feedback, and their edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mocap2ctrl.errors import GraphError
from mocap2ctrl.types import Array, frozen_array

STATE_FEATURES, ACTION_FEATURES = 18, 11
"""Sizes of s and a (Liu 2016, §4); `samcon.features` defines them."""
FEET = ("left_foot", "right_foot")
LATEST = 1.5
"""Of its time, after which a fragment that waits for a foot ends without it."""


@dataclass(frozen=True, eq=False)
class FeedbackPolicy:
    """π of a fragment: a ~ N(M s + â, Σ) with a diagonal Σ (Eq. 12, 16).

    Attributes:
        gain: (11, 18) M.
        offset: (11,) â, radians.
        variance: (11,) the diagonal of Σ, radians squared.
    """

    gain: Array
    offset: Array
    variance: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", frozen_array(self.gain, (ACTION_FEATURES, STATE_FEATURES), "gain"))
        object.__setattr__(self, "offset", frozen_array(self.offset, (ACTION_FEATURES,), "offset"))
        object.__setattr__(self, "variance", frozen_array(self.variance, (ACTION_FEATURES,), "variance"))


@dataclass(frozen=True, eq=False)
class ControlFragment:
    """A piece of a skill, about 0.1 s.

    Attributes:
        name: unique in its graph, such as `walk/3`.
        skill: which it is a piece of.
        frame_s: seconds between frames of the reference and of the targets, a multiple of the servos' 5 ms step; the fragment's
            duration δt is `(frames) * frame_s`.
        targets: (G, J) joint angles of the PD servos, held for `frame_s` each, before feedback, radians.
        reference_root_position: (G + 1, 3) where the body should be at the fragment's begin and after each frame, metres, in the
            world of its skill: only height, and travel relative to the first frame, are used.
        reference_root_orientation: (G + 1, 4) quaternions wxyz, likewise up to a common heading.
        reference_angles: (G + 1, J) radians.
        policy: its feedback; None before it is learned.
        touchdown: one of `FEET`, which in the reference comes to the ground at the fragment's end: it then ends when that foot is
            on the ground, after one step of the servos at the earliest, at the latest after `LATEST` of its time, the last targets
            being held (§6.1, contact-aligned phase resetting). None: it lasts its time.
    """

    name: str
    skill: str
    frame_s: float
    targets: Array
    reference_root_position: Array
    reference_root_orientation: Array
    reference_angles: Array
    policy: FeedbackPolicy | None = None
    touchdown: str | None = None

    @property
    def duration_s(self) -> float:
        """δt, seconds; of a fragment that ends on a touchdown, the reference's."""
        return len(self.targets) * self.frame_s


def most_steps(steps: int, touchdown: object) -> int:
    """How long a fragment of so many steps can last, in steps: longer if there is a foot, `touchdown`, that it waits for."""
    return steps if touchdown is None else int(np.ceil(LATEST * steps))


@dataclass(frozen=True, eq=False)
class ControlGraph:
    """Fragments and edges.

    Attributes:
        character: content hash of the character for whom it is, `graph.body.digest`.
        gains: name of the PD gain set (`simulation.pd_gains.GAIN_SETS`).
        fragments: by name, in order.
        successors: name of each fragment to the names of those that may follow it.
        provenance: where it came from; plain JSON values.
        description: of that character, as in its TOML file; empty: the built-in one. See `graph.body.character_of`.
    """

    character: str
    gains: str
    fragments: Mapping[str, ControlFragment]
    successors: Mapping[str, tuple[str, ...]]
    provenance: Mapping[str, object] = field(default_factory=dict)
    description: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, after in self.successors.items():
            for other in (name, *after):
                if other not in self.fragments:
                    raise GraphError(f"an edge names the fragment {other!r}, which the graph does not have")
