"""What is behind somebody who stays on the spot: decided by what the person looks like, and what the surroundings look like.

Where the person covers the scene for most of a clip, the median shows the person. Colours are sorted by a palette of the clip's
own; a colour's share in what moves is set against its share in the seen scene nearby. A pixel whose median has the person's
colours gets the other colour that it takes in the clip, if that looks like the scene; else it is unseen, and in each frame its
colour decides. This is GrabCut's loop (Rother 2004), seeded by what moves, with a scene that is local and, where it was seen,
exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import Box, Floats, build_background
from mocap2ctrl.video.decode import Footage, Image, working_size
from mocap2ctrl.video.masks import box_of, raw_masks, without_small_holes
from mocap2ctrl.video.medians import median_where

COLOURS = 32
PALETTE_FRAMES, PALETTE_STEP = 6, 7
BINS, LEVELS_A_BIN = 32, 8
SMALL_PIXELS = 160 * 90
NEARBY = 0.25
"""Reach of the surroundings of a pixel, in heights of the person."""
ELSEWHERE = 0.05
"""Weight of the whole scene beside the surroundings."""
RARE = 0.003
"""Share of a colour that is nowhere."""
PERSON_LIKE = 1.0
"""Log odds from which the median of a pixel is taken for the person."""
DOUBTED = 0.5
"""Log odds from which nobody knows what is there, where the body nearly always is."""
HOLES = 0.01
"""Largest hole in what nobody knows, in squared heights: the cheek between hair and collar."""
CHANGEABLE = 0.2
"""Trust in a pixel that takes another colour at times, as one of the scene."""
BETTER = 1.0
"""Log odds by which another colour of a pixel must be more like the scene."""
OTHER_LEVELS = 24.0
"""Grey levels that the other colour is away from the first."""
FEWEST_SEEN = 3
LOOKS, ROUNDS = 30, 2
STRIDE_S, MOVING_LEVELS = 0.25, 22
"""A moving pixel differs from frames so long before and after by more grey levels than that."""
SURROUND, NEARLY_ALWAYS = 0.08, 0.95
"""How far bodies are enlarged, in heights, and in what share of the frames they must cover a pixel for it to be doubted."""


@dataclass(frozen=True, eq=False)
class Unseen:
    """Log odds of a colour at a place, for the person.

    Attributes:
        labels: (32, 32, 32) the palette's number of each colour, by bins of 8 grey levels.
        person: (K,) log share of each of its colours in the person.
        scene: (K, h, w) log share in the seen scene nearby, at a reduced size.
        box: the part of the picture that `scene` covers.
    """

    labels: npt.NDArray[np.uint8]
    person: Floats
    scene: Floats
    box: Box = (slice(None), slice(None))

    def log_odds(self, image: Image | Floats) -> Floats:
        """(H, W) for the colours of the whole part (H, W, 3)."""
        labels = self.sorted_colours(image)
        down, across = (
            np.arange(size) * small // size for size, small in zip(labels.shape, self.scene.shape[1:], strict=True)
        )
        return np.asarray(self.person[labels] - self.scene[labels, down[:, None], across[None, :]], np.float32)

    def in_picture(self, image: Image) -> Floats:
        """(H, W) for a whole frame (H, W, 3); 0 outside of the box."""
        result = np.zeros(image.shape[:2], np.float32)
        result[self.box] = self.log_odds(image[self.box])
        return result

    def sorted_colours(self, image: Image | Floats) -> npt.NDArray[np.uint8]:
        """(H, W) numbers in the palette."""
        bins = np.clip(image, 0, 255).astype(np.uint8) >> 3
        return np.asarray(self.labels[bins[..., 0], bins[..., 1], bins[..., 2]], np.uint8)


def learn_unseen(picture: Floats, weight: Floats, images: Image, sure: Masks, height: float) -> Unseen:
    """Learns from what is sure.

    Args:
        picture: (H, W, 3) the scene.
        weight: (H, W) how far it is to be trusted, from 0 to 1.
        images: (T, H, W, 3) some frames.
        sure: (T, H, W) pixels of the person in them.
        height: the person's, pixels.
    """
    labels = _palette(images)
    counts = np.ones(COLOURS)
    for image, mask in zip(images, sure, strict=True):
        bins = image[mask] >> 3
        counts += np.bincount(labels[bins[:, 0], bins[:, 1], bins[:, 2]], minlength=COLOURS)
    person = np.log(counts / counts.sum() + RARE).astype(np.float32)
    blank = Unseen(labels, person, np.zeros((COLOURS, 1, 1), np.float32))
    return Unseen(labels, person, _scene_shares(blank.sorted_colours(picture), weight, height))


def _palette(images: Image) -> npt.NDArray[np.uint8]:
    chosen = np.unique(np.linspace(0, len(images) - 1, PALETTE_FRAMES).astype(int))
    sample = images[chosen, ::PALETTE_STEP, ::PALETTE_STEP].reshape(-1, 3).astype(np.float32)
    cv2.setRNGSeed(0)
    stop = (cv2.TERM_CRITERIA_MAX_ITER + cv2.TERM_CRITERIA_EPS, 12, 1.0)
    _, _, centres = cv2.kmeans(sample, COLOURS, None, stop, 1, cv2.KMEANS_PP_CENTERS)
    middle = (np.arange(BINS) * LEVELS_A_BIN + LEVELS_A_BIN / 2).astype(np.float32)
    grid = np.stack(np.meshgrid(middle, middle, middle, indexing="ij"), axis=-1).reshape(-1, 3)
    distance = np.sum(centres**2, axis=1) - 2.0 * grid @ centres.T
    return np.asarray(np.argmin(distance, axis=1).reshape((BINS,) * 3), np.uint8)


def _scene_shares(labels: npt.NDArray[np.uint8], known: Floats, height: float) -> Floats:
    size = working_size(labels.shape[::-1], SMALL_PIXELS)
    scale = size[0] / labels.shape[1]
    reach = 2 * max(2, round(NEARBY * height * scale)) + 1
    shares = []
    for colour in range(COLOURS):
        weight = cv2.resize(known * (labels == colour), size, interpolation=cv2.INTER_AREA)
        shares.append(cv2.blur(weight, (reach, reach)) + ELSEWHERE * float(weight.mean()))
    return np.asarray(np.log(np.stack(shares) / np.maximum(np.sum(shares, axis=0), 1e-6) + RARE), np.float32)


def completed(images: Image, masks: Masks, moving: Masks, covered: Masks) -> tuple[Floats, Masks, Unseen]:
    """A picture of the scene without the person that stays in it, and where nobody knows.

    Args:
        images: (T, H, W, 3) some frames.
        masks: (T, H, W) the person in them, as far as known; what moves, before anything is.
        moving: (T, H, W) pixels in them that move: the person, but not all of it.
        covered: (H, W) where moving bodies, with what is between their limbs, are in nearly all frames.
    """
    body = np.stack([cv2.dilate(m.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0 for m in masks])
    height = float(np.ptp(np.flatnonzero(np.any(moving, axis=(0, 2)))))
    first, never = _usual(images, ~body)
    offsets = np.stack([cv2.absdiff(image, first.astype(np.uint8)).max(axis=-1) for image in images])
    other, constant = _usual(images, offsets > OTHER_LEVELS)
    # A pixel that a limb passes both before and after seems to move, too.
    sure = moving & (offsets > OTHER_LEVELS)
    sure &= ~np.stack([_darker(image, first) for image in images])
    trust = np.where(constant, 1.0, CHANGEABLE)
    weight = np.where(covered, 0.0, trust).astype(np.float32)
    for _ in range(2):
        looks = learn_unseen(first, weight, images, sure, height)
        doubt = looks.log_odds(first)
        weight = np.where(covered & ((doubt > 0.0) | never), 0.0, trust).astype(np.float32)
    other_doubt = looks.log_odds(other)
    better = ~constant & (doubt > PERSON_LIKE) & (other_doubt < 0.0) & (doubt - other_doubt > BETTER)
    scene = np.where(better[..., None], other, first).astype(np.float32)
    unseen = ~better & covered & (_solid(doubt > DOUBTED) | (never & (doubt > 0.0)))
    return scene, without_small_holes(unseen, HOLES * height * height), looks


def _darker(image: Image, scene: Floats) -> Masks:
    """Pixels (H, W) that may be the scene in shadow."""
    ratio = (image + np.float32(4.0)) / (scene + np.float32(4.0))
    factor = cv2.transform(ratio, np.full((1, 3), 1 / 3, np.float32))
    tint = np.abs(ratio - factor[..., None]).max(axis=-1)
    return np.asarray((factor < 1.0) & (factor > 0.2) & (tint < 0.12 * factor + 0.03))


def _usual(images: Image, wanted: Masks) -> tuple[Floats, Masks]:
    """(H, W, 3) median over the frames in which a pixel is wanted, all frames' where that are too few; and where it is so."""
    few = np.count_nonzero(wanted, axis=0) < FEWEST_SEEN
    return median_where(images, wanted | few), few


def _solid(mask: Masks) -> Masks:
    return np.asarray(cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)) > 0)


def scene_behind(footage: Footage, bodies: Masks) -> tuple[Floats, Masks, Unseen]:
    """The scene behind somebody who stays on the spot: its picture, where nobody knows, and how colours look there.

    Args:
        footage: the clip, in one light.
        bodies: (T, h, w) where bodies move, coarsely.
    """
    images = footage.images
    chosen = np.unique(np.linspace(0, len(images) - 1, LOOKS).astype(int))
    moving = np.stack([_moving(images, t, max(1, round(STRIDE_S * footage.fps))) for t in chosen])
    covered = _nearly_always(bodies, moving)
    near = box_of(covered | np.any(moving, axis=0), round(0.1 * images.shape[1]))
    frames = np.ascontiguousarray(images[chosen][:, near[0], near[1]])
    seeds, part = moving[:, near[0], near[1]], covered[near]
    close = np.ones((5, 5), np.uint8)
    masks = np.stack([cv2.morphologyEx(m.astype(np.uint8), cv2.MORPH_CLOSE, close) > 0 for m in seeds])
    for _ in range(ROUNDS):
        scene, hidden, looks = completed(frames, masks, seeds, part)
        background = build_background(scene, frames)
        person = np.stack([hidden & (looks.log_odds(frame) > 0.0) for frame in frames])
        masks = raw_masks(background, frames, unseen=person, shadows_in_background=True)
    picture = median_where(images[chosen])
    picture[near] = scene
    everywhere = np.zeros(images.shape[1:3], bool)
    everywhere[near] = hidden
    return picture, everywhere, replace(looks, box=near)


def _moving(images: Image, t: int, stride: int) -> Masks:
    """(H, W) pixels that differ from a frame before and from one after."""
    last = len(images) - 1
    before = t - stride if t >= stride else min(t + 2 * stride, last)
    after = t + stride if t + stride <= last else max(t - 2 * stride, 0)
    changes = [cv2.absdiff(images[t], images[other]).max(axis=-1) for other in (before, after)]
    return np.asarray(np.minimum(*changes) > MOVING_LEVELS)


def _nearly_always(bodies: Masks, moving: Masks) -> Masks:
    """(H, W) where coarse bodies (T, h, w), a little enlarged, are in nearly all frames."""
    height = np.ptp(np.flatnonzero(np.any(moving, axis=(0, 2)))) * bodies.shape[1] / moving.shape[1]
    reach = 2 * max(1, round(SURROUND * float(height))) + 1
    share = np.mean([cv2.dilate(b.astype(np.uint8), np.ones((reach, reach), np.uint8)) for b in bodies], axis=0)
    return np.asarray(cv2.resize(share, moving.shape[:0:-1], interpolation=cv2.INTER_LINEAR) > NEARLY_ALWAYS)
