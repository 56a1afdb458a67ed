"""Bodies followed through time: connected parts of masks, gathered into bodies, associated from frame to frame.

Where two bodies touch they are one part, and both tracks go on with it; who is who after that cannot be told from masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.ndimage import median_filter

from mocap2ctrl.types import Masks
from mocap2ctrl.video.bodies import Body, Frame, Numbers, Part, gap, gathered, numbered_parts

SMALLEST_SHARE = 0.0008
"""Of the picture: a smaller body is not followed."""
PARTIAL = 0.2
"""A body below this share of the usual area is not followed either."""
USUAL = 70.0
"""Percentile of the largest parts' heights that is a body's; a torn one's are less, those of two who touch are more."""
FLASH, FLASH_S = 4.0, 1.0
"""In a frame with so many times the usual foreground, of the clip and of the time around, the light has changed."""
REACH, SPEED = 0.5, 3.0
"""How far a body may get from frame to frame, in heights, and how many heights a second while it is not seen."""
LOST_S = 0.5
"""A track ends when its body is not seen for longer."""
TAKEN = 0.3
"""Share of a body that lies on another's part when they have become one."""
OWNED = 0.1
"""A part of which so much lies on a track's last body is that one's."""
YOUNG_S = 0.2
"""A track that ends in another one sooner was a piece of it."""
STEP_S, CHANGE = 0.5, 0.12
"""A body moves when its mask is another one in so much of its area after this time."""


@dataclass(eq=False)
class Track:
    """A body through time: which of its frame's bodies it is. It may share that one with another track.

    Attributes:
        bodies: frame to index in that frame's bodies, in the order of time.
        shared: the frames in which another track has the same body.
    """

    bodies: dict[int, int] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)

    @property
    def first(self) -> int:
        """Its first frame."""
        return next(iter(self.bodies))

    @property
    def last(self) -> int:
        """Its last frame so far."""
        return next(reversed(self.bodies))

    @property
    def age(self) -> int:
        """How many frames it has been alone in."""
        return len(self.bodies) - len(self.shared)

    def alone(self) -> list[int]:
        """The frames in which its body is its own."""
        return [t for t in self.bodies if t not in self.shared]


@dataclass(frozen=True, eq=False)
class Scene:
    """All that was followed in a clip.

    Attributes:
        frames: (T) parts and bodies.
        tracks: by falling area over time.
        height: the usual height of a body, pixels.
        fps: frames a second.
    """

    frames: tuple[Frame, ...]
    tracks: tuple[Track, ...]
    height: float
    fps: float

    def body(self, track: Track, t: int) -> Body:
        """A track's body in a frame."""
        return self.frames[t].bodies[track.bodies[t]]

    def mask(self, track: Track, t: int) -> Masks:
        """(H, W) its pixels."""
        return self.frames[t].mask(track.bodies[t])

    def mass(self, track: Track) -> int:
        """Its area, summed over the frames in which it is alone."""
        return sum(self.body(track, t).area for t in track.alone())

    def whole(self, track: Track) -> list[int]:
        """The frames in which it is alone and touches no border of the picture."""
        height, width = self.frames[0].numbers.shape
        boxes = {t: self.body(track, t).box for t in track.alone()}
        return [t for t, (x, y, w, h) in boxes.items() if x > 0 and y > 0 and x + w < width and y + h < height]

    def usual_area(self, track: Track) -> float:
        """The median of its area while it is alone, pixels."""
        return float(np.median([self.body(track, t).area for t in track.alone()])) if track.age else 0.0

    def moves(self, track: Track) -> bool:
        """Whether it ever becomes another mask within half a second; what never does is no living body."""
        step, frames = max(1, round(STEP_S * self.fps)), track.alone()
        pairs = [(t, t + step) for t in frames[:: max(1, step // 2)] if t + step in track.bodies]
        if not pairs:
            pairs = [(frames[0], frames[-1])] if len(frames) > 1 else []
        return any(_changed(self.mask(track, a), self.mask(track, b)) > CHANGE for a, b in pairs)


def _changed(a: Masks, b: Masks) -> float:
    return 1.0 - float(np.count_nonzero(a & b) / max(1, int(np.count_nonzero(a | b))))


def follow(masks: Masks, fps: float, smallest: float = SMALLEST_SHARE) -> Scene:
    """Follows every body of a person's size.

    Args:
        masks: (T, H, W) of all that is foreground.
        fps: frames a second.
        smallest: least share of the picture that a body has.
    """
    numbered = [numbered_parts(mask) for mask in masks]
    smallest *= masks[0].size
    largest = [parts[0] for _, parts in numbered if parts and parts[0].area >= smallest]
    if not largest:
        return Scene(tuple(Frame(n, p, ()) for n, p in numbered), (), 0.0, fps)
    height = float(np.percentile([part.box[3] for part in largest], USUAL))
    least = max(smallest, PARTIAL * float(np.median([part.area for part in largest])))
    numbered = [(n, () if light else p) for (n, p), light in zip(numbered, _flashes(numbered, fps), strict=True)]
    frames, tracks = _tracks(numbered, height, least, fps)
    scene = Scene(frames, (), height, fps)
    return Scene(frames, tuple(sorted(tracks, key=scene.mass, reverse=True)), height, fps)


def _flashes(numbered: Sequence[tuple[Numbers, tuple[Part, ...]]], fps: float) -> npt.NDArray[np.bool_]:
    """(T,) whether a frame shows another light, and no bodies."""
    totals = np.array([sum(part.area for part in parts) for _, parts in numbered])
    around = median_filter(totals, size=2 * round(0.5 * FLASH_S * fps) + 1, mode="nearest")
    return np.asarray(totals > FLASH * np.maximum(around, np.median(totals[totals > 0])))


def _tracks(
    numbered: Sequence[tuple[Numbers, tuple[Part, ...]]], height: float, least: float, fps: float
) -> tuple[tuple[Frame, ...], list[Track]]:
    """Gathers the bodies of each frame, and associates them with the tracks that are alive, largest overlap first."""
    frames: list[Frame] = []
    done: list[Track] = []
    alive: list[Track] = []
    for t, (numbers, parts) in enumerate(numbered):
        done += [track for track in alive if t - track.last > LOST_S * fps]
        alive = [track for track in alive if t - track.last <= LOST_S * fps]
        frames.append(Frame(numbers, parts, gathered(parts, height, _owners(alive, frames, numbers, parts, fps))))
        large = [i for i, body in enumerate(frames[t].bodies) if body.area >= least]
        taken = _associate(alive, frames, t, large, height, fps)
        alive = _share(alive, frames, t, taken, fps)
        alive += [Track({t: i}) for i in large if i not in taken]
    return tuple(frames), done + alive


def _owners(
    alive: Sequence[Track], frames: Sequence[Frame], numbers: Numbers, parts: Sequence[Part], fps: float
) -> dict[int, int]:
    """Of a new frame's parts, the track on whose last body each lies the most, if that is old enough, and alone."""
    most: dict[int, tuple[int, int]] = {}
    for number, track in enumerate(alive):
        if track.age < YOUNG_S * fps or track.last in track.shared:
            continue
        counts = _covered(frames, track, numbers)
        for part in parts:
            if counts[part.number] > max(OWNED * part.area, most.get(part.number, (0, 0))[0]):
                most[part.number] = int(counts[part.number]), number
    return {part: number for part, (_, number) in most.items()}


def _associate(
    alive: Sequence[Track], frames: Sequence[Frame], t: int, large: Sequence[int], height: float, fps: float
) -> set[int]:
    """Gives each track a body of its own where there is one; returns those that are taken."""
    likeness = []
    for number, track in enumerate(alive):
        before = frames[track.last].bodies[track.bodies[track.last]]
        common = _overlaps(frames, track, t)
        for i in large:
            body = frames[t].bodies[i]
            if common[i]:
                likeness.append((1.0 + common[i] / min(before.area, body.area), common[i], number, i))
            else:
                reach = height * max(REACH, SPEED * (t - track.last) / fps)
                away = gap(before.box, body.box)
                if away <= reach and 0.25 < body.area / before.area < 4.0:
                    likeness.append((1.0 - away / reach, 0, number, i))
    taken: set[int] = set()
    given: set[int] = set()
    for _, _, number, i in sorted(likeness, key=lambda c: (c[1] > 0, c[1], c[0]), reverse=True):
        if number not in given and i not in taken:
            alive[number].bodies[t] = i
            given.add(number)
            taken.add(i)
    return taken


def _overlaps(frames: Sequence[Frame], track: Track, t: int) -> list[int]:
    """Pixels that the track's last body has in common with each body of a frame."""
    counts = _covered(frames, track, frames[t].numbers)
    return [int(sum(counts[part.number] for part in body.parts)) for body in frames[t].bodies]


def _covered(frames: Sequence[Frame], track: Track, numbers: Numbers) -> npt.NDArray[np.int64]:
    """(256,) pixels that the track's last body has in common with the part of each number."""
    last = frames[track.last]
    body = last.bodies[track.bodies[track.last]]
    left, top, width, height = body.box
    window = np.s_[top : top + height, left : left + width]
    inside = np.zeros(256, bool)
    inside[[part.number for part in body.parts]] = True
    return np.bincount(numbers[window][inside[last.numbers[window]]], minlength=256)


def _share(alive: Sequence[Track], frames: Sequence[Frame], t: int, taken: set[int], fps: float) -> list[Track]:
    """Tracks without a body of their own that lie on another's share it; young ones end: they were a piece of it."""
    kept = []
    for track in alive:
        if t not in track.bodies:
            common = _overlaps(frames, track, t)
            i = int(np.argmax(common)) if common else 0
            area = frames[track.last].bodies[track.bodies[track.last]].area
            if common and i in taken and common[i] >= TAKEN * area:
                if track.age < YOUNG_S * fps:
                    continue
                track.bodies[t] = i
                track.shared.add(t)
                for other in alive:
                    if other is not track and other.bodies.get(t) == i:
                        other.shared.add(t)
        kept.append(track)
    return kept
