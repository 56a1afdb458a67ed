"""From distances to one person's clean mask in each frame: hysteresis, morphology, and the part that stays consistent in time."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import Background, Box, Floats, squared_distance, squared_length
from mocap2ctrl.video.decode import Image, Progress
from mocap2ctrl.video.shadows import cast_shadow

CEILING, SMOOTHING = 4.0, 1.0
"""Squared distances, over the threshold, are cut off there and smoothed with this standard deviation, pixels."""
WEAK, STRONG = 1.0, 2.5
"""Squared distances over the threshold: a weak pixel counts where it is joined to a strong one."""
SPECK_SHARE = 0.00006
"""Parts smaller than this share of the picture are noise."""
RIM = 2
"""Pixels at a mask's edge that may be half background: the lens, the smoothing, and the shutter."""
EDGE_SMOOTHING = 1.2
"""Of a mask's edge, standard deviation in pixels."""
LIMB = 0.2
"""Longest piece, in heights of all that is seen, that is given back to a limb."""
CLOTH, HIGH, UPRIGHT, ABOVE, BELOW = 0.55, 0.35, 1.2, 0.2, 0.35
"""A larger piece is given back with body within CLOTH heights above it in a share ABOVE of its columns, and below in BELOW of
them, if its middle is HIGH above the feet, in heights, or it is UPRIGHT times as tall as it is wide."""
REPAIR = 0.05
"""How far the person's outline may be from those of the frames before and after, in heights."""
LIFTED, LEAST_LIMB, MOST_LIMB = 0.12, 0.01, 0.25
"""A limb that one neighbouring frame shows is given back if it is so high above the feet, or so tall, in heights, since what lies
flat on the ground may be a shadow; and if it has such a share of the person's area."""
IN_A_ROW, STAINED = 3, 0.2
"""Frames in a row to which a limb is given back, and the share of all frames in which a pixel that differs is nobody's: what stays
apart for longer is a stain of the background."""
HOLE_SHARE = 0.0002
"""Holes smaller than this share of the picture are filled."""
COARSE, COARSE_LEVELS, COARSE_MARGIN = 4, 7.0, 4
"""Only that part of a frame is looked at closely in which blocks of so many pixels differ by so many grey levels; and a margin,
blocks."""
COARSE_SHARE = 0.0008
"""Blocks that hang together count from this share of the picture on: what is less is no person."""


def raw_masks(
    background: Background,
    images: Image,
    *,
    unseen: Masks | None = None,
    shadows_in_background: bool = False,
    progress: Progress | None = None,
) -> Masks:
    """(T, H, W) foreground of each frame without shadows, specks and small holes.

    Args:
        background: the model.
        images: (T, H, W, 3), in one light.
        unseen: (T, H, W) the person, where there is no background to compare with.
        shadows_in_background: the picture of the scene may hold somebody's shadow.
        progress: told how far it is.
    """
    masks = np.zeros(images.shape[:3], bool)
    still = _coarse(background.colour)
    for t, image in enumerate(images):
        where = _changed_part(image, still)
        if where[0].stop:
            given = None if unseen is None else unseen[t][where]
            masks[t][where] = _foreground(background, image, where, given, shadows_in_background)
        if unseen is not None:
            masks[t] |= unseen[t]
        if progress:
            progress("subtracting the background", (t + 1) / len(images))
    return bridged(masks)


def _coarse(image: Image | Floats) -> Floats:
    height, width = image.shape[:2]
    size = -(-width // COARSE), -(-height // COARSE)
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.float32)


def _changed_part(image: Image, still: Floats) -> Box:
    """Rows and columns that hold all that differs in blocks, with a margin; none where nothing does."""
    offset = cv2.absdiff(_coarse(image), still)
    differs = cv2.inRange(offset, (0.0,) * 3, (COARSE_LEVELS,) * 3) == 0
    count, _, stats, _ = cv2.connectedComponentsWithStats(differs.astype(np.uint8))
    large = [stats[i] for i in range(1, count) if stats[i, cv2.CC_STAT_AREA] >= COARSE_SHARE * differs.size]
    differs[:] = False
    for left, top, width, height, _ in large:
        differs[top : top + height, left : left + width] = True
    rows, columns = box_of(differs, COARSE_MARGIN)
    return slice(COARSE * rows.start, COARSE * rows.stop), slice(COARSE * columns.start, COARSE * columns.stop)


def _foreground(
    background: Background, image: Image, where: Box, unseen: Masks | None, shadows_in_background: bool
) -> Masks:
    distance, colour = squared_distance(background, image, where)
    distance = cv2.GaussianBlur(np.minimum(distance, CEILING), (0, 0), SMOOTHING)
    still = background.colour[where]
    if unseen is not None:
        distance = np.maximum(distance, np.where(unseen, np.float32(CEILING), np.float32(0.0)))
    shadow = cast_shadow(background, where, distance, colour)
    if shadows_in_background:
        shadow |= cast_shadow(background, where, distance, colour, gone=True)
    if unseen is not None:
        shadow &= ~unseen
    shadow = without_limbs(shadow, distance)
    found = clean(distance, shadow, image.shape[0] * image.shape[1])
    difference = cv2.subtract(colour, still)
    return half_covered(found, shadow, np.sqrt(squared_length(difference)))


def box_of(mask: Masks, margin: int) -> Box:
    """Rows and columns of a mask's pixels with a margin; none if it has none."""
    rows, columns = np.flatnonzero(np.any(mask, axis=1)), np.flatnonzero(np.any(mask, axis=0))
    if len(rows) == 0:
        return slice(0, 0), slice(0, 0)
    top, left = max(0, int(rows[0]) - margin), max(0, int(columns[0]) - margin)
    return slice(top, int(rows[-1]) + 1 + margin), slice(left, int(columns[-1]) + 1 + margin)


def clean(distance: Floats, shadow: Masks, area: int) -> Masks:
    """Foreground (H, W) from squared distances over the threshold.

    Args:
        distance: (H, W).
        shadow: (H, W).
        area: of the whole picture, pixels.
    """
    bare = np.where(shadow, np.float32(0.0), distance)
    count, labels, stats, _ = cv2.connectedComponentsWithStats((bare > WEAK).astype(np.uint8))
    sure = np.bincount(labels[bare > STRONG], minlength=count) > 0
    kept = sure & (stats[:, cv2.CC_STAT_AREA] > max(3, round(SPECK_SHARE * area)))
    kept[0] = False
    closed = cv2.morphologyEx(kept.astype(np.uint8)[labels], cv2.MORPH_CLOSE, disc(1))
    filled = without_small_holes(closed > 0, HOLE_SHARE * area)
    return np.asarray(cv2.morphologyEx(filled.astype(np.uint8), cv2.MORPH_OPEN, disc(1)) > 0)


def without_small_holes(mask: Masks, largest: float) -> Masks:
    """Fills the holes of a mask (H, W) of up to so many pixels."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats((~mask).astype(np.uint8), connectivity=4)
    small = stats[:, cv2.CC_STAT_AREA] <= largest
    small[0] = False
    return np.asarray(mask | small[labels])


def without_limbs(shadow: Masks, distance: Floats) -> Masks:
    """Gives back what was taken for shadow and is a part of the body: grey cloth before a grey wall or above a grey floor.

    That is what lies a little way between body above and body below; and pieces that are upright, or high above the feet, with
    body above and below: a shadow lies on the ground, or on a wall beside the body.
    """
    body = cv2.morphologyEx(((distance > 1.0) & ~shadow).astype(np.uint8), cv2.MORPH_OPEN, disc(2))
    rows = np.flatnonzero(np.any(body, axis=1))
    if len(rows) == 0 or not shadow.any():
        return shadow
    height = int(rows[-1] - rows[0]) + 1
    column = np.ones((2 * round(LIMB * height / 2) + 1, 1), np.uint8)
    kept = shadow & (cv2.morphologyEx(body, cv2.MORPH_CLOSE, column) == 0)
    reach, beside = round(CLOTH * height), None
    count, labels, stats, centres = cv2.connectedComponentsWithStats(kept.astype(np.uint8))
    for piece in range(1, count):
        left, top, width, tall, _ = (int(v) for v in stats[piece])
        box = slice(top, top + tall), slice(left, left + width)
        own = labels[box] == piece
        high = rows[-1] - centres[piece][1] > HIGH * height
        if not (high or tall > UPRIGHT * width):
            continue
        beside = beside or [cv2.dilate(body, np.ones((reach + 1, 1), np.uint8), anchor=(0, at)) for at in (reach, 0)]
        shares = [np.mean(np.any(own & (seen[box] > 0), axis=0)) for seen in beside]
        if shares[0] >= ABOVE and shares[1] >= BELOW:
            kept[box] &= ~own
    return np.asarray(kept)


def half_covered(mask: Masks, shadow: Masks, difference: Floats) -> Masks:
    """Takes off the rim where a pixel shows less than half of the body.

    A pixel's colour is a mixture of the body's and the background's there, so its difference from the background is that of
    the nearest whole pixel of the body, times its share.

    Args:
        mask: (H, W).
        shadow: (H, W) what was taken off as shadow; towards it the rim stays.
        difference: (H, W) of the frame's colour from the background's.
    """
    rim = mask & (cv2.erode((mask | shadow).astype(np.uint8), disc(RIM)) == 0)
    whole = cv2.dilate(np.where(mask, difference, 0.0).astype(np.float32), disc(RIM))
    trimmed = mask & ~(rim & (difference < 0.5 * whole))
    return np.asarray(cv2.GaussianBlur(trimmed.astype(np.float32), (0, 0), EDGE_SMOOTHING) > 0.5)


def disc(radius: int) -> npt.NDArray[np.uint8]:
    """A round structuring element."""
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), np.uint8)


def bridged(masks: Masks) -> Masks:
    """Pixels that are set both a frame before and a frame after are set; nothing is taken away."""
    result = masks.copy()
    result[1:-1] |= masks[:-2] & masks[2:]
    return result


def restored(person: Masks, found: Masks) -> Masks:
    """A person's masks (T, H, W) with the pieces of all that was found that the frames before and after show as the person's.

    Black shorts before a black hedge cut the legs off in one frame and not in its neighbours. The leg that a runner lifts behind
    them, blurred, may be cut off in several in a row: then one neighbour is enough, moved on as the person has.
    """
    result = person.copy()
    rows = np.count_nonzero(np.any(person, axis=2), axis=1)
    if not rows.any():
        return result
    height = float(np.median(rows[rows > 0]))
    reach = max(1, round(REPAIR * height))
    for t in range(1, len(person) - 1):
        left = found[t] & ~person[t]
        if not left.any() or not (rows[t] and rows[t - 1] and rows[t + 1]):
            continue
        box = box_of(left, 2 * reach)
        near = within(person[t - 1][box], reach) & within(person[t + 1][box], reach)
        _, labels = cv2.connectedComponents(left[box].astype(np.uint8))
        own = labels[left[box]]
        kept = np.bincount(own, weights=near[left[box]]) > 0.5 * np.bincount(own)
        result[t][left] |= kept[own]
    given, stain = np.zeros(len(result), int), np.mean(found & ~person, axis=0) > STAINED
    for order in (range(1, len(result)), range(len(result) - 2, -1, -1)):
        for t in order:
            before = t - order.step
            left = found[t] & ~(result[t] | stain)
            if given[before] < IN_A_ROW and rows[t] and rows[before] and left.any():
                limbs = _lifted_limbs(result[t], result[before], left, height)
                if limbs.any():
                    result[t] |= limbs
                    given[t] = given[before] + 1
    return result


def _lifted_limbs(person: Masks, before: Masks, left: Masks, height: float) -> Masks:
    """Of what is left in a frame (H, W), limbs above the ground that the frame before shows, moved on as the person has."""
    rows, area = box_of(person, 0)[0], np.count_nonzero(person)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(left.astype(np.uint8))
    tall, own = stats[:, cv2.CC_STAT_HEIGHT], stats[:, cv2.CC_STAT_AREA]
    limbs = (own >= LEAST_LIMB * area) & (own <= MOST_LIMB * area)
    limbs &= (stats[:, cv2.CC_STAT_TOP] + tall < rows.stop - LIFTED * height) | (tall > LIFTED * height)
    limbs[0] = False
    if not limbs.any():
        return np.zeros_like(left)
    (down, across), (down_before, across_before) = _middle(person), _middle(before)
    move = np.array([[1.0, 0.0, across - across_before], [0.0, 1.0, down - down_before]])
    moved = cv2.warpAffine(before.astype(np.uint8), move, person.shape[::-1], flags=cv2.INTER_NEAREST) > 0
    near = within(moved, max(1, round(REPAIR * height)))
    limbs &= np.bincount(labels.ravel(), weights=near.ravel(), minlength=count) > 0.5 * own
    return np.asarray(limbs[labels])


def _middle(person: Masks) -> tuple[float, float]:
    """Row and column of the middle of a mask's upper half: trunk and head."""
    rows, _ = box_of(person, 0)
    down, across = np.nonzero(person[rows.start : (rows.start + rows.stop + 1) // 2])
    return rows.start + float(down.mean()), float(across.mean())


def within(mask: Masks, radius: float) -> Masks:
    """Pixels that are no farther from a mask (H, W) than so many pixels."""
    if not mask.any():
        return np.zeros_like(mask)
    return np.asarray(cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5) <= radius)
