"""A plain backdrop, such as a studio has: what is behind the person is made up from what is beside it.

Rows of a picture by a level camera run along wall and floor, so a hidden pixel lies between the backdrop's pixels to its left
and right; a line between them follows uneven light, and each row has its own, so a floor may have another colour. How plain the
backdrop is, is the share of those pixels that lie on their row's line.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import Floats

SMOOTH_PX = 3
BESIDE = 0.3
"""Width of what a line is fitted to on each side of the person, as a share of the picture's width."""
PLAIN_LEVELS = 7.0
"""Grey levels by which a pixel beside the person may be off the line."""
ROW_PLAIN = 0.65
"""Share of a row, on one side at least, that must be on its line."""
ROUNDS = 3
FEWEST = 12


@dataclass(frozen=True, eq=False)
class Backdrop:
    """A plain backdrop.

    Attributes:
        picture: (H, W, 3) the scene, made up where the person may be.
        plain: share of what is beside the person that the backdrop explains.
        broken: share of the rows in which it explains too little on either side: tiles under the feet, say.
    """

    picture: Floats
    plain: float
    broken: float = 0.0


def plain_backdrop(picture: Floats, person: Masks) -> Backdrop:
    """The backdrop behind a person that stays before it.

    Args:
        picture: (H, W, 3) the clip's median.
        person: (H, W) where the person may be in it, generously.
    """
    smooth = cv2.medianBlur(np.clip(picture, 0, 255).astype(np.uint8), SMOOTH_PX)
    columns = np.flatnonzero(np.any(person, axis=0))
    rows = np.flatnonzero(np.any(person, axis=1))
    if len(columns) == 0:
        return Backdrop(picture, 0.0)
    width = picture.shape[1]
    reach = round(BESIDE * width)
    left, right = int(columns[0]), int(columns[-1]) + 1
    beside = np.r_[max(0, left - reach) : left, right : min(width, right + reach)]
    if len(beside) < FEWEST:
        return Backdrop(picture, 0.0)
    lines, agree = _lines(smooth[:, beside].astype(np.float32), beside / width)
    made = lines[:, :1] + lines[:, 1:] * (np.arange(left, right) / width)[None, :, None]
    result = picture.copy()
    part = (slice(rows[0], rows[-1] + 1), slice(left, right))
    result[part] = np.where(person[part][..., None], made[part[0]], picture[part])
    agree = agree[part[0]]
    sides = [agree[:, side].mean(axis=1) for side in (beside < left, beside >= right) if side.any()]
    broken = float(np.mean(np.max(sides, axis=0) < ROW_PLAIN))
    return Backdrop(np.asarray(result, np.float32), float(agree.mean()), broken)


def _lines(values: Floats, across: Floats) -> tuple[Floats, Masks]:
    """(H, 2, 3) level and slope of each row's line through most of its values (H, N, 3); and (H, N) which agree."""
    weight = np.ones(values.shape[:2], np.float32)
    level = np.median(values, axis=1)
    weight = (np.abs(values - level[:, None]).max(axis=-1) < 3 * PLAIN_LEVELS).astype(np.float32)
    for _ in range(ROUNDS):
        total = np.maximum(weight.sum(axis=1), 1e-3)
        mean_x = (weight @ across) / total
        mean = np.einsum("hn,hnc->hc", weight, values) / total[:, None]
        offset = across[None] - mean_x[:, None]
        spread = np.maximum(np.sum(weight * offset**2, axis=1), 1e-4)
        slope = np.einsum("hn,hnc->hc", weight * offset, values) / spread[:, None]
        lines = np.stack([mean - slope * mean_x[:, None], slope], axis=1)
        expected = lines[:, :1] + lines[:, 1:] * across[None, :, None]
        agree = np.abs(values - expected).max(axis=-1) < PLAIN_LEVELS
        weight = agree.astype(np.float32)
    return np.asarray(lines, np.float32), np.asarray(agree)
