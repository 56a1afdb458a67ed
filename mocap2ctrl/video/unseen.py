"""What is behind somebody who stays on the spot: told by what moves, by what the person looks like, and what the surroundings do.

Where the person covers the scene for most of a clip, a pixel's usual colour is the person's. Colours are sorted by a palette of the
clip's own; a colour's share in what moves is set against its share in the seen scene nearby. That, and whether the usual colour is
steady (`usual.py`), is evidence for each pixel; a random walk (Grady 2006, with priors as in Grady 2005) carries it to pixels
that look alike, and what is then taken for the person teaches the colours again, as in GrabCut (Rother 2004). Where the usual
colour is the person's, what else the pixel shows is judged in the same way, for the scene may be seen there at times. Of what
is left nobody knows what is behind it, and in each frame its colour decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Array, Masks
from mocap2ctrl.video.background import Box, Floats, largest_of_three
from mocap2ctrl.video.decode import Footage, Image, working_size
from mocap2ctrl.video.masks import box_of
from mocap2ctrl.video.medians import median_where
from mocap2ctrl.video.motion import change_at
from mocap2ctrl.video.usual import UsualColours, next_colours, usual_colours

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
SHADES, SHADED = (0.5, 0.6, 0.7, 0.8, 0.9), 0.3
"""The scene in so deep a shadow counts as scene, too, with this weight: it may stand in the picture all the time."""
OTHER_LEVELS = 24.0
"""Grey levels that a moving pixel is away from the usual colour if it is sure to be the person's."""
GHOST, SURELY = 0.5, 0.6
"""Share of walks that end at the person, from which a pixel is unseen; and from which its colour is the person's."""
SETTLED, SHOWN = 0.05, 0.25
"""How strongly a walk over what else pixels show ends where only one colour is known; and the share of walks that end at the person
up to which that is the scene."""
UNSEEN_ODDS = 1.0
"""Log odds for the person in an unseen pixel, before its colour is looked at."""
GHOST_FRAMES = 0.5
"""What such a pixel counts for, in frames in which it moves, as a share of the frames."""
MOST_ODDS, ODDS, MOVES = 3.0, 0.03, 0.003
"""Most that colours say, nats; what a nat of theirs weighs against a way to a pixel of the same colour; and one of `usual.py`'s."""
MOVES_AT_FIRST = 0.01
"""What the latter weighs before the person's colours are known."""
UNLIKE_LEVELS = 18.0
"""Difference of colours over which a walk hardly goes, grey levels."""
DOWN, BORDER, LEAST_WAY = 0.0015, 5.0, 1e-4
"""How strongly all pixels are drawn to the scene, how strongly those of the border; the least way there is."""
TOLD, DOUBTED = 1.0, 0.3
"""While the person's colours are not known: evidence of `usual.py` from which a usual colour is trusted to be the scene's, nats;
and trust in another, as a share of the frames in which no body is there."""
STEADY_COUNTS = 0.15
"""What colours of steady pixels count for; there it is the outline that tells."""
LOOKS, ROUNDS = 40, 2
MOVING_LEVELS = 22
"""A moving pixel differs from frames before and after by more grey levels than that."""
SURROUND = 0.08
"""How far bodies are enlarged, in heights."""
MARGIN = 0.12
"""Of the part that is looked at around all that moves, in widths of the picture."""


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
        labels = sorted_colours(self.labels, image)
        down, across = (
            np.arange(size) * small // size for size, small in zip(labels.shape, self.scene.shape[1:], strict=True)
        )
        return np.asarray(self.person[labels] - self.scene[labels, down[:, None], across[None, :]], np.float32)

    def where_unseen(self, image: Image) -> Floats:
        """(H, W) for a whole frame (H, W, 3), where its usual colour is the person's; 0 outside of the box."""
        result = np.zeros(image.shape[:2], np.float32)
        result[self.box] = self.log_odds(image[self.box]) + UNSEEN_ODDS
        return result


def sorted_colours(palette: npt.NDArray[np.uint8], image: Image | Floats) -> npt.NDArray[np.uint8]:
    """(H, W) numbers in a palette (32, 32, 32)."""
    bins = np.clip(image, 0, 255).astype(np.uint8) >> 3
    return np.asarray(palette[bins[..., 0], bins[..., 1], bins[..., 2]], np.uint8)


def scene_behind(footage: Footage, bodies: Masks, video: Path) -> tuple[Floats, Masks, Unseen]:
    """The scene behind somebody who stays on the spot: its picture, where nobody knows, and how colours look there.

    Args:
        footage: the clip, in one light.
        bodies: (T, h, w) where bodies move, coarsely.
        video: its file.

    Raises:
        VideoError: nothing moves.
    """
    images = footage.images
    chosen = np.unique(np.linspace(0, len(images) - 1, LOOKS).astype(int))
    moving = np.stack([change_at(images, t, footage.fps) > MOVING_LEVELS for t in chosen])
    if not moving.any():
        raise VideoError(
            f"{video}: nothing moves in the clip; a person is told by motion where there is no empty scene"
        )
    near = box_of(np.any(moving, axis=0), round(MARGIN * images.shape[2]))
    frames = np.ascontiguousarray(images[chosen][:, near[0], near[1]])
    scene, hidden, looks = told_apart(frames, moving[:, near[0], near[1]], _covered(bodies, moving)[near])
    picture = median_where(images[chosen])
    picture[near] = scene
    everywhere = np.zeros(images.shape[1:3], bool)
    everywhere[near] = hidden
    return picture, everywhere, replace(looks, box=near)


def told_apart(images: Image, moving: Masks, covered: Floats) -> tuple[Floats, Masks, Unseen]:
    """A picture of the scene, where it shows the person instead, and the looks of both.

    Args:
        images: (T, H, W, 3) some frames.
        moving: (T, H, W) pixels in them that move: the person, but not all of it.
        covered: (H, W) share of the frames in which bodies move around a pixel.
    """
    usual = usual_colours(images)
    height = float(np.ptp(np.flatnonzero(np.any(moving, axis=(0, 2)))))
    palette = _palette(images)
    seen = _colours_that_move(palette, images, moving, usual)
    labels, ways = sorted_colours(palette, usual.picture), _ways(usual)
    trust = np.where(usual.moves < -TOLD, 1.0, DOUBTED * (1.0 - covered)).astype(np.float32)
    person, weight = seen, MOVES_AT_FIRST
    for _ in range(ROUNDS):
        looks = _learn(palette, person, usual.picture, trust, height)
        ghost = _random_walk(_by_colours(looks, usual) + weight * usual.moves, ways)
        trust, weight = (1.0 - ghost) ** 2, MOVES
        person = seen + GHOST_FRAMES * len(images) * np.bincount(labels[ghost > SURELY], minlength=COLOURS)
    picture, shown = _shown_at_times(images, usual, ghost > GHOST, looks)
    return picture, _opened((ghost > GHOST) & ~shown), looks


def _shown_at_times(images: Image, usual: UsualColours, hidden: Masks, looks: Unseen) -> tuple[Floats, Masks]:
    """A picture of the scene, and the pixels (H, W) of those with the person's usual colour where other frames show the scene."""
    if not hidden.any():
        return usual.picture, hidden
    other, there = next_colours(images, usual, hidden)
    evidence = np.where(there, _by_colours(looks, other) + MOVES * other.moves, np.where(hidden, SETTLED, -SETTLED))
    shown = _opened(there & (_random_walk(np.asarray(evidence, np.float32), _ways(other)) < SHOWN))
    return np.where(shown[..., None], other.picture, usual.picture), shown


def _by_colours(looks: Unseen, usual: UsualColours) -> Floats:
    """(H, W) how strongly colours draw a walk to the person."""
    odds = cv2.GaussianBlur(np.clip(looks.log_odds(usual.picture), -MOST_ODDS, MOST_ODDS), (0, 0), 1.0)
    return np.asarray(np.where(usual.steady, STEADY_COUNTS * ODDS, ODDS) * odds, np.float32)


def _opened(mask: Masks) -> Masks:
    return np.asarray(cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)) > 0)


def _covered(bodies: Masks, moving: Masks) -> Floats:
    """(H, W) share of the frames in which coarse bodies (T, h, w), a little enlarged, cover a pixel."""
    height = np.ptp(np.flatnonzero(np.any(moving, axis=(0, 2)))) * bodies.shape[1] / moving.shape[1]
    square = np.ones((2 * max(1, round(SURROUND * float(height))) + 1,) * 2, np.uint8)
    share = np.mean([cv2.dilate(b.astype(np.uint8), square) for b in bodies], axis=0, dtype=np.float32)
    return np.asarray(cv2.resize(share, moving.shape[:0:-1], interpolation=cv2.INTER_LINEAR), np.float32)


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


def _colours_that_move(palette: npt.NDArray[np.uint8], images: Image, moving: Masks, usual: UsualColours) -> Array:
    """(K,) how often each colour is in what moves, and is neither the usual one nor that in shadow."""
    counts = np.ones(COLOURS)
    for image, mask in zip(images, moving, strict=True):
        sure = mask & (largest_of_three(np.abs(image - usual.picture)) > OTHER_LEVELS) & ~_darker(image, usual.picture)
        counts += np.bincount(sorted_colours(palette, image)[sure], minlength=COLOURS)
    return counts


def _darker(image: Image, scene: Floats) -> Masks:
    """Pixels (H, W) that may be the scene in shadow."""
    ratio = (image + np.float32(4.0)) / (scene + np.float32(4.0))
    factor = cv2.transform(ratio, np.full((1, 3), 1 / 3, np.float32))
    tint = largest_of_three(np.abs(ratio - factor[..., None]))
    return np.asarray((factor < 1.0) & (factor > 0.2) & (tint < 0.12 * factor + 0.03))


def _learn(palette: npt.NDArray[np.uint8], person: Array, scene: Floats, trust: Floats, height: float) -> Unseen:
    """Looks, from how often the person has each colour (K,), and a picture of the scene that is trusted here and there."""
    shares = _scene_shares(sorted_colours(palette, scene), trust, height)
    for shade in SHADES:
        in_shadow = _scene_shares(sorted_colours(palette, shade * scene), trust, height)
        shares = np.maximum(shares, SHADED * in_shadow)
    return Unseen(palette, np.log(person / person.sum() + RARE).astype(np.float32), np.log(shares + RARE))


def _scene_shares(labels: npt.NDArray[np.uint8], trust: Floats, height: float) -> Floats:
    """(K, h, w) share of each colour in the surroundings of a pixel."""
    size = working_size(labels.shape[::-1], SMALL_PIXELS)
    scale = size[0] / labels.shape[1]
    reach = 2 * max(2, round(NEARBY * height * scale)) + 1
    shares = []
    for colour in range(COLOURS):
        weight = cv2.resize(trust * (labels == colour), size, interpolation=cv2.INTER_AREA)
        shares.append(cv2.blur(weight, (reach, reach)) + ELSEWHERE * float(weight.mean()))
    return np.asarray(np.stack(shares) / np.maximum(np.sum(shares, axis=0), 1e-6), np.float32)


def _ways(usual: UsualColours) -> sparse.csr_matrix:
    """(H W, H W) how easily a walk goes from a pixel to a neighbour: where colours, or the moments they are there, are alike."""
    smooth = cv2.GaussianBlur(usual.picture, (0, 0), 0.7)
    number = np.arange(usual.steady.size).reshape(usual.steady.shape)
    steps = np.diff(smooth, axis=1), np.diff(smooth, axis=0)
    alike = (np.exp(-np.sum((step / UNLIKE_LEVELS) ** 2, axis=-1)) + LEAST_WAY for step in steps)
    ways = [np.where(same, np.float32(1.0), way) for same, way in zip(usual.together, alike, strict=True)]
    one = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    other = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    way = np.concatenate([step.ravel() for step in ways]).astype(float)
    joined = sparse.coo_matrix((way, (one, other)), shape=(number.size, number.size)).tocsr()
    return joined + joined.T


def _random_walk(evidence: Floats, ways: sparse.csr_matrix) -> Floats:
    """(H, W) probability that a walk that starts at a pixel ends at the person.

    Each pixel ends a walk at the person as likely as its evidence says, at the scene as its negative says; at
    the border it ends at the scene.
    """
    scene = np.maximum(-evidence, 0.0).astype(float) + DOWN
    scene[[0, -1]], scene[:, [0, -1]] = BORDER, BORDER
    person = np.maximum(evidence, 0.0).astype(float).ravel()
    leaving = np.asarray(ways.sum(axis=1)).ravel() + scene.ravel() + person
    found = linalg.spsolve((sparse.diags(leaving) - ways).tocsc(), person, permc_spec="MMD_AT_PLUS_A")
    return np.asarray(found.reshape(evidence.shape), np.float32)
