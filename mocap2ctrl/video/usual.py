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
LEAST_FRAMES, LEAST_SHARE = 3, 0.1
"""Frames, and share of all, that the next group needs."""
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
        agree, like: (T, H, W) frames that show the usual colour, within the narrow and within the wide tolerance.
    """

    picture: Floats
    moves: Floats
    steady: Masks
    together: tuple[Masks, Masks]
    agree: Masks
    like: Masks


def usual_colours(images: Image) -> UsualColours:
    """The largest group of frames (T, H, W, 3) that agree with one of them, for each pixel."""
    smooth = _smooth(images)
    return _colours_of(images, *_largest_group(smooth, np.ones(smooth.shape[:-1], bool)))


def next_colours(images: Image, usual: UsualColours, where: Masks) -> tuple[UsualColours, Masks]:
    """The largest group of the frames that show something else, for some pixels (H, W); and which of them have one.

    Pixels without one, and all others, keep their usual colour.
    """
    agree, like = _largest_group(_smooth(images)[:, where], ~usual.like[:, where])
    has, there = np.count_nonzero(agree, axis=0) >= max(LEAST_FRAMES, LEAST_SHARE * len(images)), where.copy()
    there[where] = has
    agreed, alike = usual.agree.copy(), usual.like.copy()
    agreed[:, there], alike[:, there] = agree[:, has], like[:, has]
    return _colours_of(images, agreed, alike), there


def _smooth(images: Image) -> Image:
    return np.stack([cv2.GaussianBlur(image, (0, 0), SMOOTHING) for image in images])


def _largest_group(smooth: Image, free: Masks) -> tuple[Masks, Masks]:
    """(T, …) which of the free frames are within the narrow, and within the wide tolerance of the one with which most agree.

    Args:
        smooth: (T, …, 3) colours of any pixels.
        free: (T, …) frames that may be in the group.
    """
    count, near = len(smooth), np.zeros(free.shape, np.uint16)
    for t, image in enumerate(smooth):
        near[t] += free[t]
        for other in range(t + 1, count):
            same = _difference(image, smooth[other]) <= SAME_LEVELS
            near[t] += same & free[other]
            near[other] += same & free[t]
    best = np.argmax(near * free, axis=0)
    colour = np.take_along_axis(smooth, best[None, ..., None], axis=0)[0]
    off = np.stack([_difference(image, colour) for image in smooth])
    return (off <= SAME_LEVELS) & free, (off <= WIDE * SAME_LEVELS) & free


def _colours_of(images: Image, agree: Masks, like: Masks) -> UsualColours:
    """What groups of frames show."""
    narrow, wide = (np.count_nonzero(frames, axis=0) for frames in (agree, like))
    picture, together = median_where(images, agree), (_together(agree, 1), _together(agree, 0))
    scene = _of_scene(narrow, wide)
    known = np.clip((len(images) - wide) / (COVERED_AT_TIMES * len(images)), 0.0, 1.0) * _contrast(picture, together)
    moves = np.where(scene > 0.0, -known * np.minimum(scene, MOST), np.minimum(-scene, MOST)).astype(np.float32)
    steady = (narrow > ALWAYS * len(images)) | (scene > STEADY)
    return UsualColours(picture, moves, steady, together, agree, like)


def _of_scene(narrow: npt.NDArray[np.intp], wide: npt.NDArray[np.intp]) -> Array:
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
