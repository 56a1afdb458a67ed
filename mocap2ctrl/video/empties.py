"""Frames of a clip in which nobody is."""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import Floats, intensity_of, largest_of_three, slope, smoothed
from mocap2ctrl.video.border import stretches
from mocap2ctrl.video.decode import Image
from mocap2ctrl.video.medians import masked_median
from mocap2ctrl.video.motion import reduced_images, without_specks

SHORTEST_EMPTY_S = 0.1
FEWEST_EMPTY = 3
BLOB_SHARE = 0.002
"""A blob smaller than this share of the picture is no person."""
BLOB_LEVELS = 20.0
"""Grey levels that a pixel must change by to belong to a blob."""
LOOKS, PIECE_SHARE, STEEPER = 10, 0.0005, 1.5
"""Frames in which a body is looked for, least share of the picture that counts, and how much steeper an edge is at an outline."""
OUTLINE, SAY_SO, LEAST_OUTLINE = 0.35, 0.75, 20
"""Share of an outline from which on it is the scene's, at that quantile of the frames; and pixels of one that says anything."""
ARRIVAL_S = 0.4
"""How long before or after an empty stretch somebody at the picture's border is looked for."""
STANDS = 15
"""Who sets out from a place leaves it by some of this width, pixels, before anything is seen to move."""


def empty_frames(images: Image, bodies: Masks, fps: float, *, doubted: bool = True) -> tuple[int, int] | None:
    """First frame, and the one after the last, of a stretch without anybody; None if there is none.

    Args:
        images: (T, H, W, 3).
        bodies: (T, h, w) where something moves.
        fps: frames a second.
        doubted: whether somebody is looked for who stands still in it.
    """
    found = empty_stretches(images, bodies, fps)
    if not doubted:
        return next(iter(found), None)
    shares = {}
    for begin, end in found:
        others = np.delete(np.arange(len(images)), slice(begin, end))
        picture, _ = masked_median(images[begin:end], None)
        shares[begin, end] = outlines_in(picture, images[_looks(others)]) if len(others) else 0.0
    best = min(found, key=lambda stretch: round(shares[stretch], 1), default=None)  # of like ones the first
    return None if best is None or shares[best] > OUTLINE else best


def empty_stretches(images: Image, bodies: Masks, fps: float) -> list[tuple[int, int]]:
    """What may be without anybody: at the clip's ends, the longer first, and between two visits. Arguments as before."""
    middle = empty_middle(bodies, fps)
    return [*_empty_ends(images, fps), *(() if middle is None else (middle,))]


def empty_stretch(images: Image, fps: float) -> tuple[int, int] | None:
    """First frame, and the one after the last, of a stretch without anybody at the clip's beginning or end.

    Such a stretch is still; next to it somebody enters or leaves through the border, or is there all at once (a cut).
    """
    return next(iter(_empty_ends(images, fps)), None)


def _empty_ends(images: Image, fps: float) -> list[tuple[int, int]]:
    small, count = reduced_images(images), len(images)
    first, last = (_still_stretch(frames, fps) for frames in (small, small[::-1]))
    ends = ([] if first is None else [(0, first)]) + ([] if last is None else [(count - last, count)])
    return sorted(ends, key=lambda end: end[0] - end[1])


def empty_middle(bodies: Masks, fps: float) -> tuple[int, int] | None:
    """First frame, and the one after the last, of the longest stretch between a body that leaves and one that enters.

    Args:
        bodies: (T, h, w) where something moves; somebody who stands still does not, but has left through no border.
        fps: frames a second.
    """
    occupied = np.flatnonzero(np.any(bodies, axis=(1, 2)))
    near, trim = max(2, round(ARRIVAL_S * fps)), round(SHORTEST_EMPTY_S * fps)
    found: list[tuple[int, int]] = []
    for last, following in pairwise(occupied.tolist()):
        leaves = any(_touches_border(b) for b in bodies[max(0, last - near) : last + 1])
        enters = any(_touches_border(b) for b in bodies[following : following + near])
        stretch = last + 1 + trim, following - trim
        if leaves and enters and stretch[1] - stretch[0] >= max(FEWEST_EMPTY, SHORTEST_EMPTY_S * fps):
            found.append(stretch)
    return max(found, key=lambda s: s[1] - s[0], default=None)


def with_who_stands(bodies: Masks, fps: float) -> Masks:
    """Bodies also in frames in which nothing moves: who stands still is where a motion begins or ends.

    Args:
        bodies: (T, h, w) where something moves; a body that comes or goes at the picture's left or right stands nowhere.
        fps: frames a second.
    """
    still, near, result = ~np.any(bodies, axis=(1, 2)), max(1, round(ARRIVAL_S * fps)), bodies.copy()
    for first, end in stretches(still, 0.0):
        for moving in (bodies[max(0, first - near) : first], bodies[end : end + near]):
            if len(moving) and not moving[:, :, [0, -1]].any():
                place = np.any(moving, axis=0).astype(np.uint8)
                result[first:end] |= cv2.dilate(place, np.ones((STANDS, STANDS), np.uint8)) > 0
    return result


def shows_somebody(picture: Floats, images: Image) -> bool:
    """Whether a picture (H, W, 3) of the scene holds a body that most frames of a clip (T, H, W, 3) do not."""
    return outlines_in(picture, images[_looks(np.arange(len(images)))]) > OUTLINE


def _looks(frames: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """A few of some frames, all over them."""
    return np.asarray(frames[np.unique(np.linspace(0, len(frames) - 1, LOOKS).astype(int))], np.intp)


def outlines_in(picture: Floats, images: Image) -> float:
    """The share of the outlines of what differs from frames (T, H, W, 3) that are in a picture (H, W, 3), and not in the frames.

    So is told what was left behind from what was taken away: around a body before an empty scene the edge is in the frame. Most
    frames must say so, and not all: in some somebody else may be there, or a body that stands as it stands in the picture.
    """
    scene, shares = smoothed(picture), []
    steep = _steepness(scene)
    for image in images:
        frame = smoothed(image)
        differs = without_specks(largest_of_three(cv2.absdiff(frame, scene)) > BLOB_LEVELS, PIECE_SHARE)
        outline = cv2.morphologyEx(differs.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((5, 5), np.uint8)) > 0
        own = _steepness(frame)
        in_scene = np.count_nonzero(outline & (steep > STEEPER * own + 1.0))
        in_frame = np.count_nonzero(outline & (own > STEEPER * steep + 1.0))
        if in_scene + in_frame > LEAST_OUTLINE:
            shares.append(in_scene / (in_scene + in_frame))
    return float(np.quantile(shares, SAY_SO)) if shares else 1.0


def _steepness(colour: Floats) -> Floats:
    """(H, W) grey levels a pixel."""
    grey = intensity_of(colour)
    return np.asarray(cv2.magnitude(slope(grey, 1, 0), slope(grey, 0, 1)), np.float32)


def _still_stretch(small: Image, fps: float) -> int | None:
    """How many of the first frames are empty; None if they are not, or if nobody can tell."""
    anchor = np.median(small[:FEWEST_EMPTY], axis=0).astype(np.int16)
    blobs = [without_specks(largest_of_three(np.abs(frame - anchor)) > BLOB_LEVELS, BLOB_SHARE) for frame in small]
    areas = np.array([np.count_nonzero(b) for b in blobs])
    occupied = np.flatnonzero(areas)
    if len(occupied) == 0 or occupied[0] < max(FEWEST_EMPTY, SHORTEST_EMPTY_S * fps):
        return None
    first = occupied[0]
    arriving = blobs[first : first + max(2, round(ARRIVAL_S * fps))]
    enters = any(_touches_border(blob) for blob in arriving)
    appears = areas[first] > 0.5 * np.median(areas[occupied])
    # A frame before the first blob may hold the tip of a foot.
    return max(FEWEST_EMPTY, int(first) - 1) if enters or appears else None


def _touches_border(blob: Masks) -> bool:
    return bool(blob[0].any() or blob[-1].any() or blob[:, 0].any() or blob[:, -1].any())
