"""One frame of a video with a ruler of pixels, to read positions from."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.decode import Image, probe
from mocap2ctrl.video.frames import frames

LINES = 12
"""About so many grid lines along the longer side."""
ROUND = (1, 2, 5)
PICTURE_SIDE = 1600
"""Longer side of the picture with the grid, unless the frame's own is longer."""
DARK, LIGHT = (0, 0, 0), (255, 255, 255)


def frame_at(video: str | Path, time_s: float) -> Image:
    """(H, W, 3) the whole frame nearest to a time, as shown.

    Raises:
        VideoError: not a video, or it has no such frame.
    """
    info = probe(video)
    if not 0.0 <= time_s < info.duration_s:
        raise VideoError(f"{video}: time is {time_s:g} s; the video runs from 0 to {info.duration_s:.2f} s")
    for _, image in frames(info, info.size, np.array([time_s])):
        return image
    raise VideoError(f"{video}: no frame at {time_s:g} s can be decoded; is it damaged?")


def with_pixel_grid(image: Image) -> Image:
    """The frame, enlarged if it is small, with lines every so many of its own pixels and their numbers."""
    height, width = image.shape[:2]
    scale = max(1.0, PICTURE_SIDE / max(width, height))
    picture = cv2.resize(image, (round(scale * width), round(scale * height)), interpolation=cv2.INTER_CUBIC)
    step = _step(max(width, height) / LINES)
    for value in range(step, max(width, height), step):
        at = round(scale * (value + 0.5) - 0.5)
        for colour, thickness in ((DARK, 2), (LIGHT, 1)):
            if value < width:
                cv2.line(picture, (at, 0), (at, picture.shape[0]), colour, thickness)
                _write(picture, str(value), (at + 3, 14), colour, 2 * thickness - 1)
            if value < height:
                cv2.line(picture, (0, at), (picture.shape[1], at), colour, thickness)
                _write(picture, str(value), (3, at - 3), colour, 2 * thickness - 1)
    return np.asarray(picture, np.uint8)


def _write(picture: Image, text: str, place: tuple[int, int], colour: tuple[int, int, int], thickness: int) -> None:
    cv2.putText(picture, text, place, cv2.FONT_HERSHEY_SIMPLEX, 0.42, colour, thickness, cv2.LINE_AA)


def _step(about: float) -> int:
    """The round number of pixels that is not less than `about`."""
    power = round(10.0 ** np.floor(np.log10(max(about, 1.0))))
    return int(next((k * power for k in ROUND if k * power >= about), 10 * power))
