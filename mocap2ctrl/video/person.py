"""One person in masks of everything that is foreground: which part, when, and whether all of the body is in the picture."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.masks import disc

SMALLEST_SHARE = 0.0008
"""Of the picture: a smaller part is no person."""
PARTIAL = 0.2
"""A part below this share of the person's usual area is no person either."""
REACH = 0.5
"""How far a person may get from frame to frame, in heights."""
JOIN, JOIN_LARGE, LARGE = 0.06, 0.15, 0.2
"""Parts this near to the body (in heights) belong to it, and large ones, of at least so much of its area, that near."""
JOIN_SHARE = 0.01
"""But not those below this share of the body's area."""

SHORTEST_S = 0.5
LONGEST_GAP_S = 0.5
VISIT_GAP_S = 1.0
BRIEF_S = 0.1
"""A contact with the border that is shorter does not count."""
CONTACT = 2
"""So many pixels along the border make a contact."""
SECOND_AREA, SECOND_HEIGHT, OFTEN = 0.4, 0.5, 0.3
"""Another part of at least so much of the body's area and height is another person; in more than such a share of the frames."""
SIDES = ("left", "right", "top", "bottom")


@dataclass(frozen=True, eq=False)
class Person:
    """The person that was followed.

    Attributes:
        masks: (T, H, W).
        second: (T,) whether another part is as large as a person.
    """

    masks: Masks
    second: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """A connected part of a mask: its label, area, and box (left, top, width, height), pixels."""

    label: int
    area: int
    box: tuple[int, int, int, int]


def follow_person(masks: Masks, where: str) -> Person:
    """Keeps the largest moving part, followed through time from where it is largest, with what is near to it.

    Raises:
        VideoError: nothing of a person's size is there.
    """
    labelled = [_parts(mask) for mask in masks]
    largest = np.array([max((p.area for p in parts), default=0) for _, parts in labelled])
    present = largest[largest >= SMALLEST_SHARE * masks[0].size]
    if len(present) == 0:
        raise VideoError(
            f"{where}: no moving person found; somebody must move before a still camera, and fill at least a tenth of its height"
        )
    usual = float(np.median(present))
    least = max(PARTIAL * usual, SMALLEST_SHARE * masks[0].size)
    start = int(np.argmax(largest))
    chosen: dict[int, Part] = {}
    for order in (range(start, len(masks)), range(start, -1, -1)):
        last: Part | None = None
        for t in order:
            part = _next(labelled[t][1], last, least)
            if part is not None:
                chosen[t] = last = part
    height = float(np.median([p.box[3] for p in chosen.values()]))
    result, second = np.zeros_like(masks), np.zeros(len(masks), bool)
    for t, part in chosen.items():
        result[t], second[t] = _body(*labelled[t], part, height)
    return Person(result, second)


def _parts(mask: Masks) -> tuple[npt.NDArray[np.int32], list[Part]]:
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    return labels, [Part(i, int(stats[i, 4]), tuple(int(v) for v in stats[i, :4])) for i in range(1, count)]  # type: ignore[arg-type]


def _next(parts: list[Part], last: Part | None, least: float) -> Part | None:
    """The largest part within reach of the last one; failing that, the largest."""
    large = [p for p in parts if p.area >= least]
    if last is not None:
        near = [p for p in large if _gap(p.box, last.box) <= REACH * last.box[3]]
        large = near or large
    return max(large, key=lambda p: p.area, default=None)


def _gap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> float:
    across = max(0, a[0] - b[0] - b[2], b[0] - a[0] - a[2])
    down = max(0, a[1] - b[1] - b[3], b[1] - a[1] - a[3])
    return float(np.hypot(across, down))


def _body(labels: npt.NDArray[np.int32], parts: list[Part], main: Part, height: float) -> tuple[Masks, bool]:
    """The mask of a body's parts, and whether what is left holds another person."""
    core = labels == main.label
    body = core.copy()
    for part in sorted(parts, key=lambda p: -p.area):
        reach = max(1, round((JOIN_LARGE if part.area >= LARGE * main.area else JOIN) * height))
        if part.label != main.label and part.area >= JOIN_SHARE * main.area and _gap(part.box, main.box) <= reach:
            piece = labels == part.label
            joined = _joined_to(core, piece, reach)
            body |= joined if joined.any() else _joined_to(body, piece, reach)
    second = any(
        p.area >= SECOND_AREA * main.area
        and p.box[3] >= SECOND_HEIGHT * main.box[3]
        and not body[labels == p.label].any()
        for p in parts
    )
    return body, second


def _joined_to(body: Masks, part: Masks, reach: int) -> Masks:
    """The part with a bridge to the body, if they are that near; what is between a shirt and shoes is a pair of trousers."""
    near_body, near_part = (cv2.dilate(mask.astype(np.uint8), disc(reach)) > 0 for mask in (body, part))
    if not np.any(near_body & part):
        return np.zeros_like(part)
    radius = reach // 2 + 1
    both = np.pad((body | part).astype(np.uint8), radius)
    closed = cv2.morphologyEx(both, cv2.MORPH_CLOSE, disc(radius))[radius:-radius, radius:-radius] > 0
    return np.asarray(part | (closed & near_body & near_part))


def border_contacts(masks: Masks) -> npt.NDArray[np.bool_]:
    """(T, 4) whether a mask touches the left, right, top and bottom border of the picture."""
    edges = (masks[:, :, 0], masks[:, :, -1], masks[:, 0], masks[:, -1])
    return np.stack([edge.sum(axis=1) >= CONTACT for edge in edges], axis=1)


@dataclass(frozen=True)
class UsableRange:
    """Frames in which the whole body is in the picture.

    Attributes:
        first, last: the frames, `last` not included.
        notes: why frames were left out.
    """

    first: int
    last: int
    notes: tuple[str, ...]


def usable_range(masks: Masks, fps: float, start_s: float, where: str) -> UsableRange:
    """The longest stretch in which the person is there and touches no border.

    Short gaps without a mask may be inside.

    Raises:
        VideoError: people come and go, or less than half a second is usable; says at which side and when.
    """
    visible = np.asarray(np.any(masks, axis=(1, 2)))
    contacts = _lasting(border_contacts(masks), BRIEF_S * fps)
    visits = [v for v in _stretches(visible, VISIT_GAP_S * fps) if v[1] - v[0] >= SHORTEST_S * fps]
    if len(visits) > 1:
        times = ", ".join(_times(v, fps, start_s) for v in visits[:4]) + (" and on" if len(visits) > 4 else "")
        raise VideoError(f"{where}: people come and go ({times}); choose one visit with --time-range A B")
    blocked = np.asarray(np.any(contacts, axis=1))
    whole = visible & ~blocked
    stretches = _stretches(whole, LONGEST_GAP_S * fps, blocked)
    first, last = max(stretches, key=lambda s: s[1] - s[0], default=(0, 0))
    sides = _sides(contacts)
    if last - first < min(SHORTEST_S * fps, len(masks)):
        raise VideoError(_cut_off(contacts, sides, visible, fps, start_s, where))
    if (first, last) == (0, len(masks)):
        return UsableRange(first, last, ())
    outside = _sides(np.delete(contacts, np.s_[first:last], axis=0))
    why = (
        f"elsewhere the body touches the {_joined(outside)} border or is not there"
        if outside
        else "elsewhere nobody is there"
    )
    return UsableRange(first, last, (f"used: {_times((first, last), fps, start_s)} of the video; {why}",))


def _lasting(contacts: npt.NDArray[np.bool_], least: float) -> npt.NDArray[np.bool_]:
    """Contacts without those inside the clip that end at once: the tip of a hand, or a wrong pixel."""
    result = contacts.copy()
    for side in range(contacts.shape[1]):
        for first, last in _stretches(contacts[:, side], 1.0):
            if last - first < least and first > 0 and last < len(contacts):
                result[first:last, side] = False
    return result


def _stretches(
    flags: npt.NDArray[np.bool_], gap: float, blocked: npt.NDArray[np.bool_] | None = None
) -> list[tuple[int, int]]:
    """Runs of set flags; runs with at most `gap` unset, unblocked frames between them are one."""
    result: list[tuple[int, int]] = []
    for t in np.flatnonzero(flags).tolist():
        joined = result and t - result[-1][1] <= gap and not (blocked is not None and blocked[result[-1][1] : t].any())
        if joined:
            result[-1] = (result[-1][0], t + 1)
        else:
            result.append((t, t + 1))
    return result


def _sides(contacts: npt.NDArray[np.bool_]) -> list[str]:
    return [side for side, touched in zip(SIDES, np.any(contacts, axis=0).tolist(), strict=True) if touched]


def _cut_off(
    contacts: npt.NDArray[np.bool_],
    sides: list[str],
    visible: npt.NDArray[np.bool_],
    fps: float,
    start_s: float,
    where: str,
) -> str:
    if not sides:
        seen = np.count_nonzero(visible) / fps
        return f"{where}: a moving person is seen for {seen:.2f} s only; at least {SHORTEST_S:g} s are needed"
    worst = int(np.argmax(contacts.sum(axis=0)))
    frames = np.flatnonzero(contacts[:, worst])
    always = " (all the time)" if len(frames) >= 0.9 * np.count_nonzero(visible) else ""
    return (
        f"{where}: the body is cut off by the {SIDES[worst]} border from {_times((frames[0], frames[-1] + 1), fps, start_s)}"
        f"{always}; less than {SHORTEST_S:g} s show all of it; film with room around the person, or choose a part with "
        f"--time-range A B"
    )


def _times(stretch: tuple[int, int], fps: float, start_s: float) -> str:
    return f"{start_s + stretch[0] / fps:.2f} to {start_s + stretch[1] / fps:.2f} s"


def _joined(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
