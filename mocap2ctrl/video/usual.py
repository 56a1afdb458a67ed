"""The colour that a pixel takes most often in a clip, and whether that is a still scene's or that of a body which moves.

What is behind a person shows itself for moments, and is then the same to within the camera's noise. Cloth and skin that move
take colours that are near to each other, but not the same. So the frames that agree with a pixel's usual colour are counted
twice, within a narrow tolerance and within a wide one: of a scene nearly all of the wide count are in the narrow one. So are those
of black trousers that move: where a picture is flat, nothing is to be seen of a motion, and nothing told by there being none.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array, Masks
from mocap2ctrl.video.background import Floats, largest_of_three
from mocap2ctrl.video.decode import Image
from mocap2ctrl.video.medians import median_where

SMOOTHING = 1.0
"""Standard deviation, pixels, of the filter against noise."""
SAME_LEVELS, WIDE = 3, 3
"""Grey levels within which a smoothed colour is the same; how many times wider the wide tolerance is."""
OF_SCENE, OF_BODY = 0.95, 0.5
"""Share of the wide count that is in the narrow one."""
MOST = 6.0
"""Most evidence that one pixel gives, nats: frames that follow each other are not independent."""
COVERED_AT_TIMES = 0.15
"""Share of the frames that must show something else before a steady colour is known to be the scene: a body can stand still."""
TOGETHER = 0.9
"""Two neighbours whose usual colours are there in the same frames, to this share, are of one thing: no outline is between them."""
FLAT, SHOWS = 0.75, 1.5
"""Grey levels from a pixel to the next in a flat picture: noise; and so many more where motion would show."""
ALWAYS, STEADY = 0.9, 2.0
"""A colour is steady that is there in so large a share of the frames, or speaks for the scene by so many nats."""


@dataclass(frozen=True, eq=False)
class UsualColours:
    """What each pixel is most often.

    Attributes:
        picture: (H, W, 3) median of the frames that agree.
        moves: (H, W) log likelihood that the usual colour is that of a body that moves, over that of a still scene, nats.
        steady: (H, W) pixels whose usual colour is the same to within noise whenever it is there.
        together: (H, W - 1) and (H - 1, W): a pixel and the next, across and down, are of one thing.
    """

    picture: Floats
    moves: Floats
    steady: Masks
    together: tuple[Masks, Masks]


def usual_colours(images: Image) -> UsualColours:
    """The largest group of frames (T, H, W, 3) that agree with one of them, for each pixel."""
    smooth = np.stack([cv2.GaussianBlur(image, (0, 0), SMOOTHING) for image in images])
    narrow, wide, index = _most_agreed(smooth)
    usual = np.take_along_axis(smooth, index[None, ..., None], axis=0)[0]
    agree = np.stack([_difference(image, usual) <= SAME_LEVELS for image in smooth])
    picture, together = median_where(images, agree), (_together(agree, 1), _together(agree, 0))
    scene = _of_scene(narrow, wide)
    known = np.clip((len(images) - wide) / (COVERED_AT_TIMES * len(images)), 0.0, 1.0) * _contrast(picture, together)
    moves = np.where(scene > 0.0, -known * np.minimum(scene, MOST), np.minimum(-scene, MOST)).astype(np.float32)
    steady = (narrow > ALWAYS * len(images)) | (scene > STEADY)
    return UsualColours(picture, moves, steady, together)


def _most_agreed(smooth: Image) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """(H, W) frames within the narrow and within the wide tolerance of the frame with which most agree, and that frame."""
    narrow, wide, index = (np.zeros(smooth.shape[1:3], np.int32) for _ in range(3))
    for t, image in enumerate(smooth):
        near, around = (np.zeros_like(narrow) for _ in range(2))
        for other in smooth:
            difference = _difference(image, other)
            near += difference <= SAME_LEVELS
            around += difference <= WIDE * SAME_LEVELS
        better = near > narrow
        narrow[better], wide[better], index[better] = near[better], around[better], t
    return narrow, wide, index


def _of_scene(narrow: npt.NDArray[np.int32], wide: npt.NDArray[np.int32]) -> Array:
    """(H, W) log likelihood of the counts for a still scene over a moving body, nats."""
    spread = np.asarray(wide - narrow, float)
    return np.asarray(narrow * np.log(OF_SCENE / OF_BODY) + spread * np.log((1.0 - OF_SCENE) / (1.0 - OF_BODY)), float)


def _together(agree: Masks, axis: int) -> Masks:
    """Whether a pixel and the next along an axis have their usual colours in the same frames."""
    one, other = (np.take(agree, range(begin, agree.shape[axis + 1] - 1 + begin), axis=axis + 1) for begin in (0, 1))
    most = np.maximum(np.count_nonzero(one, axis=0), np.count_nonzero(other, axis=0))
    return np.asarray(np.count_nonzero(one & other, axis=0) > TOGETHER * most)


def _contrast(picture: Floats, together: tuple[Masks, Masks]) -> Array:
    """(H, W) from 0 where a thing is flat to 1 where its motion would show; an outline is not of one thing."""
    smooth, steps = cv2.GaussianBlur(picture, (0, 0), SMOOTHING), np.zeros((4, *picture.shape[:2]))
    across, down = (
        largest_of_three(np.abs(np.diff(smooth, axis=axis))) * same for axis, same in zip((1, 0), together, strict=True)
    )
    steps[0, :, 1:], steps[1, :, :-1], steps[2, 1:], steps[3, :-1] = across, across, down, down
    return np.asarray(np.clip((np.max(steps, axis=0) - FLAT) / SHOWS, 0.0, 1.0), float)


def _difference(one: Image, other: Image) -> npt.NDArray[np.uint8]:
    return largest_of_three(cv2.absdiff(one, other))
