"""A second look at a person's masks: by what the clip's person and shadows look like, and by each outline's own two colours."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.appearance import learn_appearance
from mocap2ctrl.video.background import Background, Floats, intensity_of, smoothed, squared_length
from mocap2ctrl.video.decode import Image, Progress
from mocap2ctrl.video.masks import HOLE_SHARE, box_of, disc, within, without_small_holes
from mocap2ctrl.video.sources import Scene

PERSON = 2.2
"""Log odds in favour of the person: its colours are those of few limbs in one place, and the histogram is of all of them."""
FIRST_LOOK = 0.7
"""Log odds of what the first look found."""
CEILING = 4.0
"""Of the log odds of one pixel."""
SMOOTHING = 1.5
"""Of the log odds, standard deviation in pixels."""
ALIKE, ROUNDS = 0.4, 3
"""Log odds that a neighbour of the same colour gives, and how often it does."""
REACH = 0.06
"""How far from the first mask a second one may get, in heights."""
UNSEEN_HOLE = 0.012
"""Largest hole that is filled where the scene behind the person was not seen, in squared heights."""
THIN = 0.02
"""Radius of what is thin, in heights: a limb is 0.04 wide and more."""
THIN_EVIDENCE = 1.8
"""Mean log odds that a thin or separate piece needs."""
JOINED_SHARE = 0.03
"""Least share of the person that a piece must have for what joins it to another to be a limb."""
SOLE = 0.025
"""Thickest sole, in heights."""
DARKER = 0.05
"""By how much the line under a sole is darker than the sole, in factors of the scene's light."""
NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (1, -1))
RIM = 2
"""Pixels on each side of an outline that are a mixture of two colours."""
COLOUR_REACH = 2.0
"""Standard deviation of the window in which those are gathered, pixels."""
MIXING_GAMMA = 1.6
"""Of the values in which mixtures are measured: light mixes linearly, by 2.2; noise and coding are even in grey levels."""
SHARE = 0.4
"""Of the person in a pixel from which on it is the person's, as it is measured. Not a half: a body turns away at its outline, to
other light, to hair and to soles, and so is less like its inside than like what is behind it."""
SHARE_SMOOTHING = 0.5
"""Of the measured shares, standard deviation in pixels."""
LEAST_CONTRAST = 0.0015
"""Squared difference of the two colours, linear light from 0 to 1, that shows a mixture."""
BEYOND, ASIDE = 0.6, 0.5
"""How far a mixture may be from the line between its two colours, as shares of that: a pale sole below a dark shoe is none."""
DARKEST_NEARBY, BRIGHTEST_NEARBY = 0.1, 1.5


def refined_masks(
    background: Background,
    scene: Scene,
    images: Image,
    masks: Masks,
    *,
    shadows_in_background: bool = False,
    progress: Progress | None = None,
) -> Masks:
    """(T, H, W) a person's masks, cleared of shadows and exact at the outline.

    Args:
        background: the model.
        scene: the empty scene.
        images: (T, H, W, 3).
        masks: (T, H, W) of the first look; frames without anybody stay so.
        shadows_in_background: the picture of the scene may hold somebody's shadow.
        progress: told how far it is.
    """
    looks = learn_appearance(background, images, masks, both_ways=shadows_in_background)
    rows = np.count_nonzero(np.any(masks, axis=2), axis=1)
    height = float(np.median(rows[rows > 0])) if rows.any() else 0.0
    # Where the scene was not seen, the person's own colours are in its picture here and there.
    hole = HOLE_SHARE * masks[0].size if scene.looks is None else UNSEEN_HOLE * height * height
    result, empty = np.zeros_like(masks), linear_light(scene.picture)
    for t, mask in enumerate(masks):
        if not rows[t]:
            continue
        box = box_of(mask, round(REACH * height) + 4 * RIM)
        colour = smoothed(images[t][box])
        own = looks.evidence(colour, background.colour[box]) + PERSON
        if scene.looks is not None:
            own = np.where(scene.hidden[box], scene.looks.where_unseen(images[t])[box], own)
        odds = _log_odds(own, colour, mask[box])
        light = np.asarray(intensity_of(colour) / np.maximum(intensity_of(background.colour[box]), 1.0), np.float32)
        person = with_soles(_decided(odds, mask[box], height, hole), mask[box], light, max(1, round(SOLE * height)))
        result[t][box] = at_measured_share(person, linear_light(images[t][box]), empty[box])
        if progress:
            progress("refining the outline", (t + 1) / len(masks))
    return result


def _log_odds(evidence: Floats, colour: Floats, first: Masks) -> Floats:
    """(H, W) in favour of the person, smooth within areas of one colour."""
    own = evidence + np.where(first, np.float32(FIRST_LOOK), np.float32(-FIRST_LOOK))
    own = cv2.GaussianBlur(np.clip(own, -CEILING, CEILING), (0, 0), SMOOTHING)
    return with_neighbours(own, colour)


def with_neighbours(own: Floats, colour: Floats) -> Floats:
    """Log odds (H, W) after neighbours of like colour have agreed: the mean field of a Potts model with contrast."""
    pairs = [_pair(own.shape, *step) for step in NEIGHBOURS]
    contrasts = [squared_length(colour[one] - colour[other]) for one, other in pairs]
    usual = 2.0 * max(4.0, float(np.mean([np.mean(c) for c in contrasts])))
    weights = [
        np.float32(ALIKE / np.hypot(*step)) * np.exp(-contrast / usual)
        for step, contrast in zip(NEIGHBOURS, contrasts, strict=True)
    ]
    result = own
    for _ in range(ROUNDS):
        belief, result = np.tanh(0.5 * result), own.copy()
        for (one, other), weight in zip(pairs, weights, strict=True):
            result[one] += weight * belief[other]
            result[other] += weight * belief[one]
    return result


def _pair(shape: tuple[int, ...], down: int, across: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Where a pixel and its neighbour are, of all pixels that have one."""
    height, width = shape
    one = slice(0, height - down), slice(max(0, -across), width - max(0, across))
    return one, (slice(down, height), slice(max(0, across), width - max(0, -across)))


def _decided(odds: Floats, first: Masks, height: float, hole: float) -> Masks:
    """The person, near to the first mask, without small holes and without doubtful thin pieces."""
    reach = within(first, max(1, round(REACH * height)))
    filled = without_small_holes((odds > 0.0) & reach, hole)
    opened = cv2.morphologyEx(filled.astype(np.uint8), cv2.MORPH_OPEN, disc(1)) > 0
    sure = without_doubtful_pieces(opened, odds, max(1, round(THIN * height)))
    return with_joints(sure, first)


def without_doubtful_pieces(mask: Masks, odds: Floats, radius: int) -> Masks:
    """Drops what is thinner than a radius, and what hangs on it, where the mean log odds (H, W) do not speak for a limb."""
    thick = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, disc(radius)) > 0
    kept = mask & ~_doubtful(mask & ~thick, odds)
    return np.asarray(kept & ~_doubtful(kept, odds))


def _doubtful(pieces: Masks, odds: Floats) -> Masks:
    """The connected pieces of low mean log odds."""
    _, labels = cv2.connectedComponents(pieces.astype(np.uint8))
    own = labels[pieces]
    mean = np.bincount(own, weights=odds[pieces]) / np.maximum(np.bincount(own), 1)
    result = np.zeros_like(pieces)
    result[pieces] = (mean < THIN_EVIDENCE)[own]
    return result


def with_joints(mask: Masks, first: Masks) -> Masks:
    """Gives back what joins two large pieces in the first look: black shorts before black trees."""
    count, pieces, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    large = [p for p in range(1, count) if stats[p, cv2.CC_STAT_AREA] >= JOINED_SHARE * np.count_nonzero(mask)]
    if len(large) < 2:
        return mask
    missing = cv2.morphologyEx((first & ~mask).astype(np.uint8), cv2.MORPH_OPEN, disc(1))
    gaps, labels = cv2.connectedComponents(missing)
    touched = np.zeros(gaps, int)
    for piece in large:
        near = cv2.dilate((pieces == piece).astype(np.uint8), disc(RIM)) > 0
        touched[np.unique(labels[near])] += 1
    touched[0] = 0
    return np.asarray(mask | (touched >= 2)[labels])


def with_soles(mask: Masks, first: Masks, light: Floats, reach: int) -> Masks:
    """Gives back pale soles, which in the sun have the colour of pavement in the shade.

    A shadow under a body is darkest where they touch, and lighter from there on; a pale sole ends in a dark line below it.

    Args:
        mask: (H, W) the person.
        first: (H, W) of the first look.
        light: (H, W) the frame's intensity over the empty scene's.
        reach: rows below the mask that a sole may take.
    """
    below = mask
    for _ in range(reach):
        below = mask | (first & _rows_down(below, 1))
    strip = below & ~mask
    strip_light = np.where(strip, light, np.float32(np.inf))
    darkest = _rows_down(strip_light, -1)
    for _ in range(reach):
        darkest = np.minimum(darkest, np.where(strip, _rows_down(darkest, -1), np.float32(np.inf)))
    sole = strip & (strip_light > darkest + DARKER)
    darkens = strip & (strip_light <= _rows_down(strip_light, 1))
    for _ in range(reach):
        sole |= darkens & _rows_down(sole, 1)
    return np.asarray(mask | (cv2.morphologyEx(sole.astype(np.uint8), cv2.MORPH_OPEN, np.ones((1, 3), np.uint8)) > 0))


def _rows_down(image: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """The image so many rows lower; what comes in is nothing: false, or infinite."""
    result = np.full_like(image, False if image.dtype == bool else np.inf)
    if rows > 0:
        result[rows:] = image[:-rows]
    else:
        result[:rows] = image[-rows:]
    return result


def at_measured_share(mask: Masks, light: Floats, empty: Floats) -> Masks:
    """Moves an outline to where the person begins to be most of a pixel.

    A pixel's light is a mixture of the nearest colour of the person and the nearest background, lit or in shadow. Light mixes
    in linear light rather than in grey levels.

    Args:
        mask: (H, W), right to RIM pixels.
        light: (H, W, 3) of the frame; see `linear_light`.
        empty: (H, W, 3) of the empty scene.
    """
    inner = cv2.erode(mask.astype(np.uint8), disc(RIM)).astype(np.float32)
    outer = np.asarray(cv2.dilate(mask.astype(np.uint8), disc(RIM)) == 0, np.float32)
    person, seen_person = _nearby(light, inner)
    factor, seen_scene = _nearby(np.asarray(light / np.maximum(empty, 1e-3), np.float32), outer)
    scene = empty * np.clip(factor, DARKEST_NEARBY, BRIGHTEST_NEARBY)
    span, offset = person - scene, light - scene
    contrast = squared_length(span)
    share = cv2.transform(offset * span, np.ones((1, 3), np.float32)) / np.maximum(contrast, 1e-6)
    aside = squared_length(offset - share[..., None] * span)
    share = cv2.GaussianBlur(share, (0, 0), SHARE_SMOOTHING)
    explained = (np.abs(share - 0.5) < 0.5 + BEYOND) & (aside < ASIDE**2 * contrast)
    mixed = (inner + outer == 0) & seen_person & seen_scene & (contrast > LEAST_CONTRAST) & explained
    return np.asarray(np.where(mixed, share >= SHARE, mask))


def linear_light(colour: Image | Floats) -> Floats:
    """Values from 0 to 1 that mix evenly, of grey levels."""
    if colour.dtype == np.uint8:
        return np.asarray(
            cv2.LUT(np.ascontiguousarray(colour), linear_light(np.arange(256, dtype=np.float32))), np.float32
        )
    return np.asarray(np.clip(np.asarray(colour, np.float32) / 255.0, 0.0, 1.0) ** MIXING_GAMMA, np.float32)


def _nearby(values: Floats, weight: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Weighted mean of the values (H, W, 3) around each pixel, and where there is any."""
    total = cv2.GaussianBlur(weight, (0, 0), COLOUR_REACH)
    mean = cv2.GaussianBlur(values * weight[..., None], (0, 0), COLOUR_REACH) / np.maximum(total, 1e-6)[..., None]
    return np.asarray(mean, np.float32), np.asarray(total > 1e-3)
