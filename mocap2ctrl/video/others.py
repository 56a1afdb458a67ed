"""Who else is in view: whether two could be meant, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.choice import Clip, place
from mocap2ctrl.video.tracks import Scene, Track

SECOND_AREA, SECOND_HEIGHT = 0.4, 0.5
"""A body of at least so much of the person's area and height may be the one that is meant."""
IN_THE_WAY = 0.2
"""One of at least so much of its area spoils the person's mask where they touch."""
ELSEWHERE, SLOPE, TOUCHING = 0.5, 3.0, 0.1
"""It stands elsewhere (on a roof, say) when its feet are higher in the picture than the person's by so many heights and by so
many times the difference of the heights: on one ground, that factor is the camera's height over a person's. It is nobody to be
taken for the person, unless they touch for more than a tenth of the time."""
SEEN_S = 0.3
"""A body that is seen beside the person for less was a piece of somebody."""
OFTEN = 0.3
"""Two people are in view when both are there in more than this share of the frames."""


@dataclass(frozen=True, eq=False)
class Other:
    """Another body.

    Attributes:
        track: its.
        beside: the frames in which it and the person are seen apart.
        touching: the frames in which both are one.
        area, height: its own over the person's.
        elsewhere: whether it stands where a person of its size would not stand on the person's ground.
    """

    track: Track
    beside: tuple[int, ...]
    touching: tuple[int, ...]
    area: float
    height: float
    elsewhere: bool

    @property
    def spoils(self) -> bool:
        """Whether it is large enough to spoil the person's mask where they touch."""
        return self.area >= IN_THE_WAY and self.height >= SECOND_HEIGHT

    @property
    def is_person(self) -> bool:
        """Whether it has a person's size, compared with the one to fit."""
        return self.area >= SECOND_AREA and self.height >= SECOND_HEIGHT

    @property
    def counts(self) -> bool:
        """Whether it is a person who could be the one that is meant."""
        apart = self.elsewhere and len(self.touching) <= TOUCHING * len(self.beside)
        return self.is_person and not apart


def others_beside(scene: Scene, people: Sequence[Track], main: Track) -> list[Other]:
    """The other bodies that are seen beside a person, and whole at least once."""
    found = []
    for track in people:
        if track is main:
            continue
        beside = [t for t in track.alone() if t in main.bodies and t not in main.shared]
        if len(beside) < SEEN_S * scene.fps or not scene.whole(track):
            continue
        own, its = ([scene.body(one, t) for t in beside] for one in (main, track))
        area = float(np.median([b.area / a.area for a, b in zip(own, its, strict=True)]))
        tall, small = (float(np.median([body.box[3] for body in bodies])) for bodies in (own, its))
        raised = float(np.median([_feet(a.box) - _feet(b.box) for a, b in zip(own, its, strict=True)]))
        elsewhere = raised > ELSEWHERE * tall + SLOPE * abs(tall - small)
        touching = [t for t in track.shared if main.bodies.get(t) == track.bodies[t]]
        found.append(Other(track, tuple(beside), tuple(touching), area, small / tall, elsewhere))
    return found


def _feet(box: tuple[int, int, int, int]) -> int:
    return box[1] + box[3]


def require_one(scene: Scene, main: Track, others: Sequence[Other], clip: Clip) -> None:
    """Refuses a clip in which another person could be meant as well.

    Raises:
        VideoError: there is one; tells where both are, when, and how to choose.
    """
    rivals = [o for o in others if o.counts and len(o.beside) + len(o.touching) > OFTEN * len(main.bodies)]
    if not rivals:
        return
    t = rivals[0].beside[0]
    tracks = [main, *(o.track for o in rivals if t in o.track.bodies)]
    places = [place(scene, track, t, clip) for track in tracks]
    frames = [f for o in rivals for f in (*o.beside, *o.touching)]
    raise VideoError(
        f"{clip.where}: {_count(1 + len(rivals))} people are in view from {clip.time_s(min(frames)):.2f} to "
        f"{clip.time_s(max(frames) + 1):.2f} s, at {clip.time_s(t):.2f} s around {' and '.join(places)} (pixels); choose one with "
        f"--person {' or --person '.join(f'{p}@{clip.time_s(t):.2f}' for p in places)}, film one person alone, or choose a "
        f"part with --time-range A B"
    )


def _count(number: int) -> str:
    return "two" if number == 2 else str(number)


def seen_too(scene: Scene, others: Sequence[Other], clip: Clip) -> tuple[str, ...]:
    """A sentence on each other body, which is left out."""
    notes = []
    for other in others:
        first, last = other.beside[0], other.beside[-1]
        spot = f"{place(scene, other.track, first, clip)}@{clip.time_s(first):.2f}"
        who = "another person" if other.is_person else "a smaller body"
        notes.append(
            f"{who} moves from {clip.time_s(first):.2f} to {clip.time_s(last + 1):.2f} s ({100 * other.area:.0f} % of "
            f"the person's area) and is left out; --person {spot} chooses it"
        )
    return tuple(notes)
