"""Two pictures of one scene: the similarity (shift, turn, zoom) that takes the one to the other, by corners that agree.

Points are complex numbers x + i y, pixels from the picture's centre, y down; a similarity is z ↦ a z + b.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.video.decode import Image

Complex = npt.NDArray[np.complex128]

CELLS = (10, 8)
CORNERS_PER_CELL = 3
QUALITY = 0.004
"""Of a corner, as a share of the best one's; many weak ones all over are worth more than a few strong ones."""
FEWEST = 12
WINDOW, NEAR, FAR = (15, 15), 1, 3
"""Levels of the pyramid: the coarse ones reach far, but blur what passes by into the scene."""
AGREE_PX = 0.8
"""Corners that are this close to where a similarity puts them agree with it."""
CLOSER = (1.0, 0.7, 0.5)
"""Shares of it, round after round: what nearly agrees may be leaves in the wind."""
FEWEST_CELLS, AGREEING = 6, 0.35
"""Cells of the picture in which corners must agree, and the share of all those in which corners are found again."""
JUMP_AGREEING = 0.6
"""The share of all cells that must agree on a jump: it is looked for where most of the picture went, be that scene or crowd."""
RICH_CELLS = 15
SPREAD = 0.4
"""Share of the picture's width, or height, over which they must be spread: more than a person is wide."""
STILL_SHARE = 0.5
"""If so many cells stand still, compared with those that move together, then what moves is not the camera."""
HYPOTHESES = 120
MOST_ZOOM = 1.3


@dataclass(frozen=True)
class Similarity:
    """z ↦ a z + b.

    Attributes:
        a: zoom and turn, |a| e^(i angle); the angle is clockwise as seen, as y is down.
        b: shift of the picture's centre, pixels.
    """

    a: complex = 1.0
    b: complex = 0.0

    def __call__(self, points: Complex) -> Complex:
        """Where it takes points."""
        return self.a * points + self.b

    def after(self, first: Similarity) -> Similarity:
        """`first`, then this."""
        return Similarity(self.a * first.a, self.a * first.b + self.b)

    def inverse(self) -> Similarity:
        """The way back."""
        return Similarity(1.0 / self.a, -self.b / self.a)

    def scaled(self, factor: float) -> Similarity:
        """The same in a picture that is larger by a factor."""
        return Similarity(self.a, factor * self.b)


class Register:
    """Finds a scene again in other pictures of it."""

    def __init__(self, grey: Image) -> None:
        """Takes (H, W) grey levels of the scene."""
        height, width = grey.shape
        self._grey = grey
        self._centre = complex(0.5 * (width - 1), 0.5 * (height - 1))
        self._size = np.array([width, height])
        self._corners, self._cells = _spread_corners(grey)

    @property
    def rich(self) -> bool:
        """Whether there are corners all over the picture, and not on one body only."""
        if len(np.unique(self._cells)) < RICH_CELLS:
            return False
        spread = [np.ptp(np.percentile(axis, (10, 90))) for axis in (self._corners.real, self._corners.imag)]
        return bool(np.all(spread > SPREAD * self._size))

    def find(self, grey: Image, guess: Similarity = Similarity()) -> Similarity | None:
        """The similarity from the scene's picture to `grey` (H, W); None if too few corners agree on one."""
        if len(self._corners) < FEWEST:
            return None
        jumped = JUMP_AGREEING * len(np.unique(self._cells))
        return (
            self._tracked(grey, guess, NEAR, FEWEST_CELLS)
            or self._tracked(grey, guess, FAR, FEWEST_CELLS)
            or self._tracked(grey, self._correlated(grey), NEAR, jumped)
        )

    def _correlated(self, grey: Image) -> Similarity:
        """The shift at which the two pictures are most alike (phase correlation, Kuglin and Hines 1975): how far corners jump."""
        window = cv2.createHanningWindow((self._grey.shape[1], self._grey.shape[0]), cv2.CV_32F)
        (x, y), _ = cv2.phaseCorrelate(self._grey.astype(np.float32), grey.astype(np.float32), window)
        return Similarity(1.0, complex(x, y))

    def _tracked(self, grey: Image, guess: Similarity, levels: int, least: float) -> Similarity | None:
        """By corners of at least so many cells, looked for near where the guess puts them (Lucas and Kanade, in pyramids)."""
        start = self._corners - self._centre
        old, expected = _points(self._corners), _points(guess(start) + self._centre)
        moved, found, _ = cv2.calcOpticalFlowPyrLK(
            self._grey, grey, old, expected, winSize=WINDOW, maxLevel=levels, flags=cv2.OPTFLOW_USE_INITIAL_FLOW
        )
        x, y = moved[:, 0].T.astype(float)
        good = (found[:, 0] > 0) & (x >= 0) & (y >= 0) & (x < self._size[0]) & (y < self._size[1])
        if np.count_nonzero(good) < FEWEST:
            return None
        return self._agreed(start[good], (x + 1j * y)[good] - self._centre, self._cells[good], guess, least)

    def _agreed(
        self, old: Complex, new: Complex, cells: npt.NDArray[np.intp], guess: Similarity, least: float
    ) -> Similarity | None:
        """What the corners of most cells agree on; a scene that stands still is preferred to what moves before it."""
        _, index, counts = np.unique(cells, return_inverse=True, return_counts=True)
        weights = 1.0 / counts[index]
        a, b = _hypotheses(old, new, guess)
        support = (np.abs(a[:, None] * old + b[:, None] - new) < AGREE_PX) @ weights
        best = int(np.argmax(support))
        if support[0] >= STILL_SHARE * support[best] and self._wide(old, Similarity(), new, cells, least):
            best = 0
        model = Similarity(complex(a[best]), complex(b[best]))
        for closer in CLOSER:
            agree = np.abs(model(old) - new) < closer * AGREE_PX
            if not self._wide(old, model, new, cells, least) or np.count_nonzero(agree) < FEWEST:
                return None
            model = _least_squares(old[agree], new[agree], weights[agree])
        return model if self._wide(old, model, new, cells, least) else None

    def _wide(self, old: Complex, model: Similarity, new: Complex, cells: npt.NDArray[np.intp], least: float) -> bool:
        """Whether enough cells, far enough apart, agree with a similarity."""
        agree = np.abs(model(old) - new) < AGREE_PX
        count, total = len(np.unique(cells[agree])), len(np.unique(cells))
        if count < max(least, AGREEING * total):
            return False
        return bool(
            np.ptp(old[agree].real) > SPREAD * self._size[0] and np.ptp(old[agree].imag) > SPREAD * self._size[1]
        )


def _points(places: Complex) -> npt.NDArray[np.float32]:
    """(N, 1, 2) as OpenCV has them."""
    return np.stack([places.real, places.imag], axis=-1).astype(np.float32).reshape(-1, 1, 2)


def _spread_corners(grey: Image) -> tuple[Complex, npt.NDArray[np.intp]]:
    """Corners, the best few of each cell of the picture, and their cells."""
    height, width = grey.shape
    found = cv2.goodFeaturesToTrack(grey, 0, QUALITY, max(3.0, width / 60))
    if found is None:
        return np.zeros(0, complex), np.zeros(0, np.intp)
    x, y = found[:, 0].T.astype(float)
    cells = (x * CELLS[0] / width).astype(np.intp) + CELLS[0] * (y * CELLS[1] / height).astype(np.intp)
    order = np.argsort(cells, kind="stable")  # within a cell the best stay first
    rank = np.arange(len(cells)) - np.searchsorted(cells[order], cells[order])
    kept = np.sort(order[rank < CORNERS_PER_CELL])
    return (x + 1j * y)[kept], cells[kept]


def _hypotheses(old: Complex, new: Complex, guess: Similarity) -> tuple[Complex, Complex]:
    """Similarities, their a and b: standing still, the guess, and those of pairs of corners drawn at random, the same each time."""
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, len(old), (2, HYPOTHESES))
    apart = np.abs(old[one] - old[two]) > 0.15 * np.ptp(old.real)
    one, two = one[apart], two[apart]
    a = (new[one] - new[two]) / (old[one] - old[two])
    b = new[one] - a * old[one]
    plausible = np.abs(np.log(np.maximum(np.abs(a), 1e-6))) < np.log(MOST_ZOOM)
    return np.array([1.0, guess.a, *a[plausible]]), np.array([0.0, guess.b, *b[plausible]])


def _least_squares(old: Complex, new: Complex, weights: npt.NDArray[np.float64]) -> Similarity:
    """The similarity of least squares (Umeyama 1991; in the plane it is a complex regression)."""
    total = weights.sum()
    mean_old, mean_new = (weights * old).sum() / total, (weights * new).sum() / total
    centred = old - mean_old
    a = (weights * np.conj(centred) * (new - mean_new)).sum() / (weights * np.abs(centred) ** 2).sum()
    return Similarity(complex(a), complex(mean_new - a * mean_old))
