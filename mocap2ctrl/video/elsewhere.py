"""The empty scene outside of the part of a video that is used: people walk up to their place, and away from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.alignment import MOST_PX, held_still
from mocap2ctrl.video.background import Floats, largest_of_three, smoothed
from mocap2ctrl.video.camera_path import camera_path
from mocap2ctrl.video.cuts import one_scene
from mocap2ctrl.video.decode import Footage, Image, read_footage
from mocap2ctrl.video.empties import BLOB_LEVELS, PIECE_SHARE, empty_stretches, shows_somebody
from mocap2ctrl.video.light import steady_light
from mocap2ctrl.video.medians import enlarged, masked_median
from mocap2ctrl.video.motion import moving_bodies, without_specks
from mocap2ctrl.video.plates import LEAST_AGREEMENT, as_the_clip_shows_it

AROUND_S, AROUND_FPS = 10.0, 10.0
"""How far before and after the part is looked, and at how many frames a second, both of real time."""
SHORTEST_S = 0.5
"""Less than that before and after is not worth a look."""


def empty_elsewhere(footage: Footage, bodies: Masks, video: Path) -> tuple[Floats, float, float] | None:
    """The empty scene (H, W, 3) as the clip shows it, and from when to when it is seen, real seconds of the file.

    Args:
        footage: the part, in one light.
        bodies: (T, h, w) where bodies move in it, coarsely.
        video: its file.

    Returns:
        None where nothing is left out, nobody is known to have left, or the camera has not stood as it does in the part.
    """
    before, after = (min(seconds, AROUND_S) for seconds in footage.beyond_s)
    if max(before, after) < SHORTEST_S:
        return None
    first, last = footage.start_s - before, footage.end_s + after
    times = max(0.0, first * footage.slowmo), last * footage.slowmo
    try:
        around = read_footage(video, fps=min(footage.fps, AROUND_FPS), time_range=times, slowmo=footage.slowmo)
        around, _ = one_scene(around, 0.5 * (footage.start_s + footage.end_s) * footage.slowmo)
        around, _ = held_still(_by_a_camera_that_stands(around, footage), str(video))
    except VideoError:
        return None
    images, _ = steady_light(around.images)
    for begin, end in empty_stretches(images, moving_bodies(images, around.fps), around.fps):
        picture = np.clip(masked_median(images[begin:end], None)[0], 0, 255).astype(np.uint8)
        reduced = cv2.resize(picture, footage.images.shape[2:0:-1], interpolation=cv2.INTER_AREA).astype(np.uint8)
        shown, agreement = as_the_clip_shows_it(reduced, footage, bodies)
        if agreement >= LEAST_AGREEMENT and not shows_somebody(shown, footage.images):
            first, last = (around.start_s + frame / around.fps for frame in (begin, end - 1))
            return _as_it_is_left(shown, footage.images, bodies), first, last
    return None


def _by_a_camera_that_stands(around: Footage, part: Footage) -> Footage:
    """What joins on to a part before the camera is taken away, and after it has been put down."""
    path = camera_path(around.images)
    if not path.rich:
        return around
    begin, end = (round((seconds - around.start_s) * around.fps) for seconds in (part.start_s, part.end_s))
    begin = min(max(begin, 0), len(around.images) - 1)
    first, last = path.still_around((begin, max(end, begin + 1)), MOST_PX)
    return replace(around, images=around.images[first:last], start_s=around.start_s + first / around.fps)


def _as_it_is_left(picture: Floats, images: Image, bodies: Masks) -> Floats:
    """The picture with what was put down or taken away before the part, away from the bodies, as the part shows it."""
    own, hidden = masked_median(images, bodies)
    differs = without_specks(
        ~hidden & (largest_of_three(np.abs(smoothed(own) - smoothed(picture))) > BLOB_LEVELS), PIECE_SHARE
    )
    _, pieces = cv2.connectedComponents(cv2.dilate(differs.astype(np.uint8), np.ones((5, 5), np.uint8)))
    near = np.unique(pieces[enlarged(np.any(bodies, axis=0), pieces.shape[::-1])])
    return np.where(((pieces > 0) & ~np.isin(pieces, near))[..., None], own, picture)
