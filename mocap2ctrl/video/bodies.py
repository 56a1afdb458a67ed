"""Connected parts of a mask, and the bodies that they are pieces of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.masks import box_of, within

Numbers = npt.NDArray[np.uint8]
"""(H, W) the number of the part that a pixel belongs to, from 1 on by falling area; 0: none."""
Box = tuple[int, int, int, int]
"""Left, top, width, height, pixels."""

MOST_PARTS = 60
JOIN, JOIN_LARGE, LARGE = 0.06, 0.15, 0.2
"""Parts this near to a body (in heights) belong to it, and large ones, of at least so much of its area, that near."""
JOIN_SHARE = 0.01
"""But not those below this share of the body's area."""
TALL, BESIDE, TOGETHER = 0.6, 0.3, 1.4
"""A part of so many heights that shares less than this of its width with the body stands beside it, and is another body; so
is one with which the body would be taller than so many heights, if it does not go on where the body ends."""
SEAM, COMMON_SEAM = 0.15, 0.3
"""Where a torn body goes on: the rows at the two ends, of so much of the height, and how much of their width is common."""


@dataclass(frozen=True)
class Part:
    """A connected part of a mask.

    Attributes:
        number: its own.
        area: pixels.
        box: around it.
        ends: left and right of its top rows, left and right of its bottom rows.
    """

    number: int
    area: int
    box: Box
    ends: tuple[int, int, int, int]


@dataclass(frozen=True)
class Body:
    """Parts near to each other in one frame; the first is the largest."""

    parts: tuple[Part, ...]

    @property
    def area(self) -> int:
        """Pixels."""
        return sum(part.area for part in self.parts)

    @property
    def box(self) -> Box:
        """Around all parts."""
        left, top = (min(p.box[k] for p in self.parts) for k in (0, 1))
        right, bottom = (max(p.box[k] + p.box[k + 2] for p in self.parts) for k in (0, 1))
        return left, top, right - left, bottom - top


@dataclass(frozen=True, eq=False)
class Frame:
    """The parts of one mask, and the bodies that are made of them."""

    numbers: Numbers
    parts: tuple[Part, ...]
    bodies: tuple[Body, ...]

    def mask(self, body: int) -> Masks:
        """(H, W) the pixels of a body."""
        inside = np.zeros(256, bool)
        inside[[part.number for part in self.bodies[body].parts]] = True
        return inside[self.numbers]


def numbered_parts(mask: Masks) -> tuple[Numbers, tuple[Part, ...]]:
    """The largest parts of a mask (H, W), by falling area, and the number of each pixel's."""
    box = box_of(mask, 0)
    numbers = np.zeros(mask.shape, np.uint8)
    if box[0].stop == 0:
        return numbers, ()
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask[box].astype(np.uint8), ltype=cv2.CV_16U)
    stats[:, :2] += box[1].start, box[0].start
    order = np.argsort(-stats[1:, cv2.CC_STAT_AREA], kind="stable")[:MOST_PARTS] + 1
    number = np.zeros(len(stats), np.uint8)
    number[order] = np.arange(1, len(order) + 1)
    numbers[box] = number[labels]
    boxes = stats[order, :4].tolist()
    parts = [
        Part(i + 1, int(stats[label, 4]), tuple(boxes[i]), _ends(numbers, i + 1, boxes[i]))
        for i, label in enumerate(order)
    ]
    return numbers, tuple(parts)


def _ends(numbers: Numbers, number: int, box: Sequence[int]) -> tuple[int, int, int, int]:
    left, top, width, height = box
    own, rows = numbers[top : top + height, left : left + width] == number, max(1, round(SEAM * height))
    columns = [np.flatnonzero(own[strip].any(axis=0)) + left for strip in (np.s_[:rows], np.s_[-rows:])]
    return int(columns[0][0]), int(columns[0][-1]) + 1, int(columns[1][0]), int(columns[1][-1]) + 1


def gathered(parts: Sequence[Part], height: float, owners: Mapping[int, int]) -> tuple[Body, ...]:
    """The bodies that parts make: pieces of a torn mask are near to each other, and not side by side.

    Args:
        parts: by falling area.
        height: the usual height of a body, pixels.
        owners: of some parts' numbers, whose they were before; parts of two owners make no body.
    """
    bodies: list[Body] = []
    for part in parts:
        mine = owners.get(part.number)
        near = (i for i, body in enumerate(bodies) if _belongs(part, body, height))
        home = next(
            (i for i in near if mine in (None, *_owners(bodies[i], owners)) or not _owners(bodies[i], owners)), None
        )
        if home is None:
            bodies.append(Body((part,)))
        else:
            bodies[home] = Body((*bodies[home].parts, part))
    return tuple(bodies)


def _owners(body: Body, owners: Mapping[int, int]) -> set[int]:
    return {owners[part.number] for part in body.parts if part.number in owners}


def _belongs(part: Part, body: Body, height: float) -> bool:
    main = body.parts[0]
    reach = (JOIN_LARGE if part.area >= LARGE * main.area else JOIN) * height
    if part.area < JOIN_SHARE * main.area or min(gap(part.box, p.box) for p in body.parts) > max(1.0, reach):
        return False
    if part.box[3] < TALL * height:
        return True
    beside = _common(_across(part.box), _across(main.box)) < BESIDE * part.box[2]
    too_tall = _tallness(part.box, main.box) > TOGETHER * height and not _goes_on(part, main)
    return not (beside or too_tall)


def _goes_on(a: Part, b: Part) -> bool:
    """Whether the upper part's bottom is above the lower part's top."""
    upper, lower = (a, b) if a.box[1] < b.box[1] else (b, a)
    above, below = upper.ends[2:], lower.ends[:2]
    return _common(above, below) >= COMMON_SEAM * min(above[1] - above[0], below[1] - below[0])


def gap(a: Box, b: Box) -> float:
    """Distance between two boxes, pixels; 0 where they overlap."""
    across = max(0, a[0] - b[0] - b[2], b[0] - a[0] - a[2])
    down = max(0, a[1] - b[1] - b[3], b[1] - a[1] - a[3])
    return float(np.hypot(across, down))


def _across(box: Box) -> tuple[int, int]:
    return box[0], box[0] + box[2]


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """What two intervals have in common, pixels."""
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def _tallness(a: Box, b: Box) -> int:
    return max(a[1] + a[3], b[1] + b[3]) - min(a[1], b[1])


def joined(frame: Frame, body: int, height: float) -> Masks:
    """The mask of a body's parts, with bridges between them."""
    parts = frame.bodies[body].parts
    left, top, width, tall = frame.bodies[body].box
    margin = _reach(parts[0], parts[0], height) + 2
    window = np.s_[max(0, top - margin) : top + tall + margin, max(0, left - margin) : left + width + margin]
    numbers = frame.numbers[window]
    core = numbers == parts[0].number
    inside = core.copy()
    for part in parts[1:]:
        piece, reach = numbers == part.number, _reach(part, parts[0], height)
        near = _joined_to(core, piece, reach)
        inside |= near if near.any() else _joined_to(inside, piece, reach)
    result = np.zeros(frame.numbers.shape, bool)
    result[window] = inside
    return result


def _reach(part: Part, main: Part, height: float) -> int:
    return max(1, round((JOIN_LARGE if part.area >= LARGE * main.area else JOIN) * height))


def _joined_to(body: Masks, part: Masks, reach: int) -> Masks:
    """The part with a bridge to the body, if they are that near; what is between a shirt and shoes is a pair of trousers."""
    near_body, near_part = within(body, reach), within(part, reach)
    if not np.any(near_body & part):
        return np.zeros_like(part)
    radius = reach // 2 + 1
    closed = ~within(~within(body | part, radius), radius)
    return np.asarray(part | (closed & near_body & near_part))
