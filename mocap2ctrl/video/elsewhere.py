"""The empty scene outside of the part of a video that is used: people walk up to their place, and away from it."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.alignment import held_still
from mocap2ctrl.video.background import Floats
from mocap2ctrl.video.decode import Footage, read_footage
from mocap2ctrl.video.empties import empty_frames
from mocap2ctrl.video.light import steady_light
from mocap2ctrl.video.medians import masked_median
from mocap2ctrl.video.motion import moving_bodies
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
    first, last = footage.start_s - before, footage.start_s + len(footage.images) / footage.fps + after
    part = max(0.0, first * footage.slowmo), last * footage.slowmo
    try:
        around = read_footage(video, fps=min(footage.fps, AROUND_FPS), time_range=part, slowmo=footage.slowmo)
        images, _ = steady_light(held_still(around, str(video))[0].images)
    except VideoError:
        return None
    stretch = empty_frames(images, moving_bodies(images, around.fps), around.fps)
    if stretch is None:
        return None
    picture = np.clip(masked_median(images[slice(*stretch)], None)[0], 0, 255).astype(np.uint8)
    size = footage.images.shape[2], footage.images.shape[1]
    if picture.shape[1::-1] != size:
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    shown, agreement = as_the_clip_shows_it(picture, footage, bodies)
    if agreement < LEAST_AGREEMENT:
        return None
    begin, end = (around.start_s + frame / around.fps for frame in (stretch[0], stretch[1] - 1))
    return shown, begin, end
