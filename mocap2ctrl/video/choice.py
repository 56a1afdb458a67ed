"""Which person a user means: a point of the picture, at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.tracks import Scene, Track

NEAR = 0.3
"""A user's point may be so many heights beside a body."""
MOMENT_S = 0.25
"""And so much before or after it is seen."""


@dataclass(frozen=True)
class PersonAt:
    """Where a user says that the person is.

    Attributes:
        x, y: pixels of the input's picture, right and down.
        time_s: seconds of the input; None: the first frame in which the most people are seen.
    """

    x: float
    y: float
    time_s: float | None = None

    def __str__(self) -> str:
        """As `person_at` reads it."""
        return f"{self.x:g},{self.y:g}" + ("" if self.time_s is None else f"@{self.time_s:g}")


def person_at(value: str | Sequence[float] | None) -> PersonAt | None:
    """Reads `X,Y` or `X,Y@T`, or two or three numbers.

    Raises:
        VideoError: it is neither.
    """
    if value is None:
        return None
    try:
        place, _, time = value.partition("@") if isinstance(value, str) else (",".join(map(str, value)), "", "")
        numbers = [float(part) for part in place.split(",")] + ([float(time)] if time else [])
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(math.isfinite(v) and v >= 0 for v in numbers):
        raise VideoError(
            f"person is {value!r}; expected X,Y or X,Y@T: pixels of the input's picture, right and down, and seconds"
        )
    return PersonAt(*numbers)


@dataclass(frozen=True)
class Clip:
    """What the masks are of.

    Attributes:
        where: the input, for messages.
        fps: frames a second.
        start_s: the first mask's time in the input.
        scale: pixels of the input's picture to a pixel of the masks, right and down.
    """

    where: str
    fps: float
    start_s: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)

    def time_s(self, t: int) -> float:
        """When a frame is, in the input."""
        return self.start_s + t / self.fps


def chosen_track(scene: Scene, people: Sequence[Track], clip: Clip, at: PersonAt) -> tuple[Track, int]:
    """The track at a user's point, and the frame in which it is there.

    Raises:
        VideoError: nobody is there; tells who is seen where.
    """
    if at.time_s is None:
        crowd = [sum(t in track.bodies and t not in track.shared for track in people) for t in range(len(scene.frames))]
        moment = int(np.argmax(crowd))
    else:
        moment = round((at.time_s - clip.start_s) * clip.fps)
        if not 0 <= moment < len(scene.frames):
            raise VideoError(
                f"{clip.where}: person is asked for at {at.time_s:g} s; the part that is used runs from {clip.start_s:.2f} to "
                f"{clip.time_s(len(scene.frames) - 1):.2f} s"
            )
    around = sorted(range(len(scene.frames)), key=lambda t: abs(t - moment))
    point = at.x / clip.scale[0], at.y / clip.scale[1]
    for t in around:
        if abs(t - moment) > MOMENT_S * clip.fps:
            break
        here = [track for track in scene.tracks if t in track.alone()]
        away = [_distance(scene.mask(track, t), point) for track in here]
        if away and min(away) <= NEAR * scene.height:
            return here[int(np.argmin(away))], t
    raise VideoError(_nobody_there(scene, people, clip, at, min(max(moment, 0), len(scene.frames) - 1)))


def _distance(mask: Masks, point: tuple[float, float]) -> float:
    rows, columns = np.nonzero(mask)
    return float(np.hypot(columns - point[0], rows - point[1]).min())


def _nobody_there(scene: Scene, people: Sequence[Track], clip: Clip, at: PersonAt, t: int) -> str:
    places = [place(scene, track, t, clip) for track in people if t in track.alone()]
    if places:
        seen = f"seen at that time: {' and '.join(places)}"
    elif any(t in track.bodies for track in people):
        seen = "people touch each other at that time, choose another one with --person X,Y@T"
    else:
        first = min(people, key=lambda track: abs(track.first - t)).first
        track = next(track for track in people if track.first == first)
        seen = f"somebody is seen at {clip.time_s(first):.2f} s: {place(scene, track, first, clip)}"
    return f"{clip.where}: nobody moves at {at.x:g},{at.y:g} (pixels) at {clip.time_s(t):.2f} s; {seen}"


def place(scene: Scene, track: Track, t: int, clip: Clip) -> str:
    """The middle of a body in pixels of the input's picture, X,Y."""
    rows, columns = np.nonzero(scene.mask(track, t))
    return f"{np.median(columns) * clip.scale[0]:.0f},{np.median(rows) * clip.scale[1]:.0f}"
