"""Pale soles below darker shoes, given back to a person whose outline ends at the shoe.

A sole is thin, and of a colour that the rest of the person has not; in its own shade it passes for the ground's shadow. But from a
shadow below a foot light only rises: what falls again, from a pixel that is lighter than the empty scene down to the dark line
on which the foot stands, is a sole. How far away somebody stands is read from there, and a row of pixels is a finger's breadth.
"""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import Floats

LOW = 0.25
"""Of the lowest part of a person, in heights: feet, one of which swings."""
REACH = 0.03
"""How far below an outline a sole may end, in heights."""
LIGHTER = 1.05
"""A sole's light over the empty scene's, at least: neither ground nor shadow."""
FALL = 0.1
"""By so much of the empty scene's light it falls to the dark line."""
ACROSS = 3
"""Columns over which light is averaged."""
NARROWEST = 5
"""Columns that a sole has at least."""
AROUND = np.ones((3, NARROWEST + 2), np.uint8)
ROW = np.ones((1, NARROWEST), np.uint8)


def with_soles(person: Masks, light: Floats, empty: Floats, height: float) -> Masks:
    """The person (H, W) with the soles that end below the outline.

    Args:
        person: (H, W) as it was found.
        light: (H, W) intensity of the frame.
        empty: (H, W) that of the empty scene.
        height: of the person, pixels.
    """
    rows = np.flatnonzero(np.any(person, axis=1))
    if len(rows) == 0:
        return person
    edge = person.copy()
    edge[:-1] &= ~person[1:]
    edge[: max(0, int(rows[-1] - LOW * height))] = False
    last, columns = np.nonzero(edge)
    below = last[:, None] + np.arange(1, max(ACROSS, round(REACH * height)) + 1)
    below = np.minimum(below, len(person) - 1)
    share = cv2.blur(light / np.maximum(empty, 1.0), (ACROSS, 1))[below, columns[:, None]]
    lightest = np.maximum.accumulate(share, axis=1)
    fallen = np.where(lightest > LIGHTER, lightest - share, 0.0)
    dark = np.argmax(fallen, axis=1)
    reached = (np.arange(below.shape[1]) <= dark[:, None]) & (np.max(fallen, axis=1) > FALL)[:, None]
    soles = np.zeros(person.shape, np.uint8)
    soles[below[reached], np.broadcast_to(columns[:, None], below.shape)[reached]] = 1
    soles = cv2.morphologyEx(soles, cv2.MORPH_OPEN, ROW)
    closed = cv2.morphologyEx(person.astype(np.uint8) | soles, cv2.MORPH_CLOSE, ROW) & cv2.dilate(soles, AROUND)
    return np.asarray(person | (soles > 0) | (closed > 0))
