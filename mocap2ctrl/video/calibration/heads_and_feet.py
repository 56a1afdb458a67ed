"""Where in the picture an upright person begins and ends: what a mask says of the camera that saw it."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.geometry.masks import row_spans
from mocap2ctrl.types import Array, Masks

THIN = 0.07
"""Parts that are narrower than this share of the person's height are arms and not the head, which is 0.09 wide."""
LEGS = 0.15
"""Share of the height, from below, in whose columns both feet are."""
LONG = 1.6
"""An upright body's second moments: so many times as long as wide, spread arms and legs included; a crawling one has less."""
UPRIGHT_DEG = 25.0
"""How far its long axis may lean in the picture."""
SHARE_OF_TALLEST = 0.8
"""Who is shorter than this share of the tallest within `NEIGHBOURS_S` crouches or bends; who walks by or away shrinks less."""
NEIGHBOURS_S = 0.5
SAME_SIZE = 0.06
"""With the feet in one place people are of one size, to within this share: else they bend, or raise an arm. A step changes the
height by half as much."""
SAME_PLACE = 0.03
"""As a share of the height."""
WINDOW_S = 0.4
"""About a step: what swings with the legs averages out, and two windows err by themselves."""
HELD = 0.3
"""Share of a window's masks that have to be upright."""

AREA = 0.15
"""A silhouette's area as a share of the squared height of the body, in any posture."""
GROUND_PERCENTILE = 90


class Stances(NamedTuple):
    """Short windows of time in which somebody is upright, N of them.

    Attributes:
        head: (N, 2) the top of the head, pixels.
        feet: (N, 2) the middle between the feet, at the height of the lowest point, pixels.
        tall_px: (N,) from the lowest row to the top.
        aside: (N,) speed to the right, heights of the body a second.
        growth: (N,) of the height's logarithm, 1/s: who comes nearer grows.
        times_s: (N,) of the windows, from the first mask.
        upright: whether somebody really was; else one window stands for all.
    """

    head: Array
    feet: Array
    tall_px: Array
    aside: Array
    growth: Array
    times_s: Array
    upright: bool = True


def stances(masks: Masks, fps: float) -> Stances | None:
    """Windows of the upright moments of masks (T, H, W); None if there are none.

    Masks that touch the upper or lower border are left out.
    """
    seen = np.flatnonzero(masks.any(axis=(1, 2)))
    marks = np.array([_head_and_feet(mask) for mask in masks[seen]]).reshape(-1, 4)
    tall = marks[:, 3] - marks[:, 1]
    good = np.array([_is_upright(mask) for mask in masks[seen]], bool) & ~_cut(masks[seen])
    near = np.abs(seen[:, None] - seen) <= NEIGHBOURS_S * fps
    good &= tall >= SHARE_OF_TALLEST * np.max(np.where(near & good, tall, 0.0), axis=1, initial=0.0)
    here = np.linalg.norm(marks[:, None, 2:] - marks[:, 2:], axis=2) <= SAME_PLACE * tall
    usual = np.array(
        [np.median(tall[others & good]) if moment else 1.0 for others, moment in zip(here, good, strict=True)]
    )
    good &= np.abs(tall / usual - 1.0) <= SAME_SIZE
    times, marks = seen[good] / fps, marks[good]
    window = np.floor(times / WINDOW_S + 1e-6).astype(int)
    numbers, counts = np.unique(window, return_counts=True)
    numbers = numbers[counts >= HELD * WINDOW_S * fps]
    if not len(numbers):
        return None
    rows = np.array([np.median(marks[window == w], axis=0) for w in numbers])
    when = np.array([times[window == w].mean() for w in numbers])
    tall = rows[:, 3] - rows[:, 1]
    aside, growth = np.zeros(len(rows)), np.zeros(len(rows))
    if len(rows) > 1:
        aside, growth = np.gradient(rows[:, 2], when) / tall, np.gradient(np.log(tall), when)
    return Stances(rows[:, :2], rows[:, 2:], tall, aside, growth, when)


def of_any_posture(masks: Masks) -> Stances:
    """One window that stands for somebody who is never upright: as tall as the masks' area says, where the lowest ones end."""
    held = masks[masks.any(axis=(1, 2))]
    tall = float(np.sqrt(np.median(np.count_nonzero(held, axis=(1, 2))) / AREA))
    low = float(np.percentile(row_spans(held)[:, 1], GROUND_PERCENTILE)) - 0.5
    middle = float(np.median([np.nonzero(mask)[1].mean() for mask in held]))
    still = np.zeros(1)
    return Stances(
        np.array([[middle, low - tall]]),
        np.array([[middle, low]]),
        np.array([tall]),
        still,
        still,
        still,
        upright=False,
    )


def _head_and_feet(mask: npt.NDArray[np.bool_]) -> tuple[float, float, float, float]:
    """Column and row of the head's top and of the feet, at the pixels' outer edges."""
    ((first, end),) = row_spans(mask[None])
    size = max(1, round(THIN * float(end - first)))
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    body = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, disc) > 0
    if body.any():
        first = row_spans(body[None])[0, 0]
    else:
        body = mask
    top = np.flatnonzero(body[first : first + max(1, round(0.06 * (end - first)))].any(axis=0))
    low = np.flatnonzero(mask[end - max(1, round(LEGS * (end - first))) : end].any(axis=0))
    return 0.5 * float(top[0] + top[-1]), first - 0.5, 0.5 * float(low[0] + low[-1]), end - 0.5


def _is_upright(mask: npt.NDArray[np.bool_]) -> bool:
    rows, columns = np.nonzero(mask)
    spread = np.cov(np.stack([columns, rows]).astype(float)) if len(rows) > 1 else np.eye(2)
    values, axes = np.linalg.eigh(spread)
    lean = np.degrees(np.arctan2(abs(axes[0, 1]), abs(axes[1, 1])))
    return bool(values[1] >= LONG**2 * values[0] and lean <= UPRIGHT_DEG)


def _cut(masks: Masks) -> npt.NDArray[np.bool_]:
    """(T,) whether the upper or the lower border may cut the person off."""
    return np.asarray(masks[:, 0].any(axis=1) | masks[:, -1].any(axis=1))
