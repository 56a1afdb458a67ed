"""A first glance at small frames: what is told of a long clip before the long work."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import exposure_gain, largest_of_three
from mocap2ctrl.video.border import border_contacts, require_one_visit, visits
from mocap2ctrl.video.decode import Image
from mocap2ctrl.video.empties import empty_stretch
from mocap2ctrl.video.motion import reduced_images
from mocap2ctrl.video.tracks import follow

GLANCE_FPS = 5.0
LEVELS = 20.0
"""Grey levels that a pixel must differ by from the empty scene."""
DOOR_S = 0.8
"""Who comes or goes is at the picture's border within this time."""


def refuse_visitors(images: Image, fps: float, start_s: float, where: str) -> None:
    """Refuses a clip in which people come through the picture's border and go again, one after another.

    Sure only where the clip begins or ends with the empty scene; else nothing is refused here.

    Args:
        images: (T, H, W, 3).
        fps: frames a second.
        start_s: the first frame's time in the video.
        where: the video, for messages.

    Raises:
        VideoError: they do; says when.
    """
    stride = max(1, int(fps / GLANCE_FPS))
    small, rate = reduced_images(images[::stride]), fps / stride
    stretch = empty_stretch(small, rate)
    if stretch is None:
        return
    masks = _coarse_masks(small, np.median(small[slice(*stretch)], axis=0).astype(np.float32))
    scene = follow(masks, rate)
    visible = np.zeros(len(small), bool)
    for track in scene.tracks:
        visible[list(track.bodies)] = True
    at_door = np.asarray(border_contacts(masks).any(axis=1))
    came = [v for v in visits(visible, rate) if _through_door(v, at_door, rate)]
    require_one_visit(came, rate, start_s, where)


def _coarse_masks(small: Image, picture: npt.NDArray[np.float32]) -> Masks:
    """(T, h, w) what differs from the empty scene, exposure undone."""
    result = np.empty(small.shape[:3], bool)
    for mask, image in zip(result, small.astype(np.float32), strict=True):
        differs = largest_of_three(np.abs(image * exposure_gain(image, picture) - picture)) > LEVELS
        mask[:] = cv2.morphologyEx(differs.astype(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8)) > 0
    return result


def _through_door(visit: tuple[int, int], at_door: npt.NDArray[np.bool_], fps: float) -> bool:
    """Whether a visit begins and ends at the border, or with the clip."""
    first, last = visit
    frames = max(1, round(DOOR_S * fps))
    begins = first == 0 or at_door[max(0, first - frames) : first + frames].any()
    ends = last == len(at_door) or at_door[max(0, last - frames) : last + frames].any()
    return bool(begins and ends)
