"""Whether all of a body is in the picture: contacts with the border, and the longest stretch without any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks

SHORTEST_S = 0.5
LONGEST_GAP_S = 0.5
VISIT_GAP_S = 1.0
BRIEF_S = 0.1
"""A contact with the border that is shorter does not count."""
CONTACT = 2
"""So many pixels along the border make a contact."""
SIDES = ("left", "right", "top", "bottom")


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


def usable_range(
    masks: Masks, fps: float, start_s: float, where: str, apart: npt.NDArray[np.bool_] | None = None
) -> UsableRange:
    """The longest stretch in which the person is there, touches no border and nobody else.

    Short gaps without a mask may be inside.

    Args:
        masks: (T, H, W).
        fps: frames a second.
        start_s: the first mask's time in the input.
        where: the input, for messages.
        apart: (T,) whether nobody else touches the person; by default nobody ever does.

    Raises:
        VideoError: people come and go, or less than half a second is usable; says at which side and when.
    """
    visible = np.asarray(np.any(masks, axis=(1, 2)))
    contacts = _lasting(border_contacts(masks), BRIEF_S * fps)
    require_one_visit(visits(visible, fps), fps, start_s, where)
    touched = np.zeros(len(masks), bool) if apart is None else ~apart
    blocked = np.asarray(np.any(contacts, axis=1) | touched)
    whole = visible & ~blocked
    usable = stretches(whole, LONGEST_GAP_S * fps, blocked)
    first, last = max(usable, key=lambda s: s[1] - s[0], default=(0, 0))
    sides = _sides(contacts)
    if last - first < min(SHORTEST_S * fps, len(masks)):
        if np.count_nonzero(touched) > np.count_nonzero(np.any(contacts, axis=1)):
            raise VideoError(_hidden(touched, fps, start_s, where))
        raise VideoError(_cut_off(contacts, sides, visible, fps, start_s, where))
    if (first, last) == (0, len(masks)):
        return UsableRange(first, last, ())
    note = f"used: {_times((first, last), fps, start_s)} of the video; elsewhere "
    return UsableRange(first, last, (note + _elsewhere(contacts, touched, slice(first, last)),))


def _elsewhere(contacts: npt.NDArray[np.bool_], touched: npt.NDArray[np.bool_], used: slice) -> str:
    """Why the frames outside of the used ones are not."""
    outside = _sides(np.delete(contacts, np.r_[used], axis=0))
    other = np.delete(touched, np.r_[used]).any()
    if not outside:
        return "another person touches this one, or nobody is there" if other else "nobody is there"
    border = f"the body touches the {_joined(outside)} border"
    return f"{border}, or another person, or is not there" if other else f"{border} or is not there"


def visits(visible: npt.NDArray[np.bool_], fps: float) -> list[tuple[int, int]]:
    """First frame, and the one after the last, of each time (T,) that somebody is there, with short gaps."""
    return [v for v in stretches(visible, VISIT_GAP_S * fps) if v[1] - v[0] >= SHORTEST_S * fps]


def require_one_visit(found: list[tuple[int, int]], fps: float, start_s: float, where: str) -> None:
    """Refuses a clip in which people come and go; says when."""
    if len(found) > 1:
        times = ", ".join(_times(v, fps, start_s) for v in found[:4]) + (" and on" if len(found) > 4 else "")
        raise VideoError(f"{where}: people come and go ({times}); choose one visit with --time-range A B")


def _lasting(contacts: npt.NDArray[np.bool_], least: float) -> npt.NDArray[np.bool_]:
    """Contacts without those inside the clip that end at once: the tip of a hand, or a wrong pixel."""
    result = contacts.copy()
    for side in range(contacts.shape[1]):
        for first, last in stretches(contacts[:, side], 1.0):
            if last - first < least and first > 0 and last < len(contacts):
                result[first:last, side] = False
    return result


def stretches(
    flags: npt.NDArray[np.bool_], gap: float, blocked: npt.NDArray[np.bool_] | None = None
) -> list[tuple[int, int]]:
    """Runs of set flags, (T,): first, and one after last; with at most `gap` unset, unblocked frames between them, they are one."""
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


def _hidden(touched: npt.NDArray[np.bool_], fps: float, start_s: float, where: str) -> str:
    frames = np.flatnonzero(touched)
    return (
        f"{where}: another person touches or hides this one from {_times((frames[0], frames[-1] + 1), fps, start_s)}, and less "
        f"than {SHORTEST_S:g} s are left; film one person alone"
    )


def _times(stretch: tuple[int, int], fps: float, start_s: float) -> str:
    return f"{start_s + stretch[0] / fps:.2f} to {start_s + stretch[1] / fps:.2f} s"


def _joined(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
