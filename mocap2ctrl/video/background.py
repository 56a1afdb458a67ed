"""The background model of Vondrak 2012, section 5, after Elgammal 2000, and how far each pixel of a frame is from it.

A pixel's feature is its colour (3) and the gradient of its intensity (2). The model is the mean feature of each pixel, and
one 5x5 covariance for the entire image; a pixel is foreground where its squared Mahalanobis distance exceeds a threshold.
Added to the paper: a floor of the noise, changes of light (`light.py`) and small shifts of the picture (`alignment.py`) undone,
and the removal of cast shadows (`shadows.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array, Masks
from mocap2ctrl.video.decode import Image

Floats = npt.NDArray[np.float32]
Box = tuple[slice, slice]
"""Rows and columns of a part of a picture."""

THRESHOLD = 25.0
"""Of the squared distance. Five normal variables exceed it once in 7,000 pixels, which alone make no connected part."""
COLOUR_FLOOR, GRADIENT_FLOOR = 3.0, 3.0
"""Standard deviations that are added to the measured noise, grey levels: compression, and what the model leaves out."""
BLUR = 0.7
"""Standard deviation of the smoothing before any feature, pixels."""
LUMA = np.array([0.299, 0.587, 0.114], np.float32)

SAMPLED_FRAMES = 16
NEAR, FEWEST_NEAR = 0.05, 2000
"""How far from a body noise is measured, in widths; and from how many pixels."""
SAMPLED_PIXELS = 4000
TRIM = 16.0
"""Residuals farther away than this (squared distance) do not count as background noise: 0.7 % of five normal variables."""
GAINS = (0.6, 1.6)


@dataclass(frozen=True, eq=False)
class Background:
    """Mean feature of each pixel and one covariance.

    Attributes:
        colour: (H, W, 3) mean colour, smoothed, grey levels from 0 to 255.
        mean: (H, W, 5) mean feature.
        whitening: (5, 5) W: the squared distance of a feature f is |(f - mean) W|².
        covariance: (5, 5) of the features' noise.
    """

    colour: Floats
    mean: Floats
    whitening: Floats
    covariance: Array


def smoothed(image: Image | Floats) -> Floats:
    """The image (H, W, 3) that features are taken from."""
    return np.asarray(cv2.GaussianBlur(np.asarray(image, np.float32), (0, 0), BLUR), np.float32)


def squared_length(vectors: Floats) -> Floats:
    """(H, W) of each pixel's three values (H, W, 3); many times as fast as a sum along the last axis."""
    return np.asarray(cv2.transform(cv2.multiply(vectors, vectors), np.ones((1, 3), np.float32)), np.float32)


def largest_of_three(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(H, W) the largest of each pixel's three values (H, W, 3); many times as fast as a maximum along the last axis."""
    return np.asarray(np.maximum(np.maximum(values[..., 0], values[..., 1]), values[..., 2]))


def intensity_of(colour: Floats) -> Floats:
    """(H, W) intensity of colours (H, W, 3)."""
    return np.asarray(cv2.transform(colour, LUMA[None]), np.float32)


def features(colour: Floats) -> Floats:
    """(H, W, 5): a smoothed image's colour and its intensity's gradient, grey levels a pixel."""
    intensity = intensity_of(colour)
    return np.dstack([colour, slope(intensity, 1, 0), slope(intensity, 0, 1)])


def exposure_gain(colour: Floats, background: Floats) -> Floats:
    """(3,) what to multiply a frame by to have the background's exposure; the median over well exposed pixels."""
    frame, still = colour[::3, ::3].reshape(-1, 3), background[::3, ::3].reshape(-1, 3)
    usable = np.all((frame > 16) & (frame < 245) & (still > 16) & (still < 245), axis=1)
    if np.count_nonzero(usable) < 50:
        return np.ones(3, np.float32)
    gain = np.median(still[usable] / frame[usable], axis=0)
    return np.asarray(np.clip(gain, *GAINS), np.float32)


def build_background(picture: Floats, images: Image, bodies: Masks | None = None) -> Background:
    """The model around a picture of the empty scene, with the noise of the clip's own background pixels.

    Args:
        picture: (H, W, 3) the empty scene.
        images: (T, H, W, 3) the clip; people in it are outliers and do not count.
        bodies: (T, h, w) where bodies move, coarsely: noise is measured around them, where a codec spends its bits anew in each
            frame, and not where it repeats itself.
    """
    colour = smoothed(picture)
    mean = features(colour)
    covariance = _covariance(mean, colour, images, bodies)
    return Background(colour, mean, whitening(covariance), covariance)


def whitening(covariance: Array) -> Floats:
    """(5, 5) W with W Wᵀ the covariance's inverse."""
    return np.asarray(np.linalg.cholesky(np.linalg.inv(covariance)), np.float32)


def squared_distance(background: Background, image: Image, box: Box | None = None) -> tuple[Floats, Floats]:
    """(H, W) squared Mahalanobis distance of each pixel, over the threshold; and the frame's smoothed colours.

    Args:
        background: the model.
        image: (H, W, 3) the frame.
        box: rows and columns to look at; all without it.
    """
    box = box or (slice(None), slice(None))
    colour = smoothed(image[box])
    offset = cv2.subtract(colour, background.colour[box])
    # Features are linear in the colours, so their difference is that of the smoothed colours.
    intensity = intensity_of(offset)
    planes = [*cv2.split(offset), slope(intensity, 1, 0), slope(intensity, 0, 1)]
    scale = np.float32(1.0 / np.sqrt(THRESHOLD))
    distance = np.zeros(intensity.shape, np.float32)
    for column in scale * background.whitening.T:
        part = cv2.multiply(planes[-1], float(column[-1]))
        for plane, weight in zip(planes[:-1], column[:-1], strict=True):
            if weight:  # the matrix is triangular
                part = cv2.scaleAdd(plane, float(weight), part)
        cv2.accumulateSquare(part, distance)
    return distance, colour


def slope(intensity: Floats, across: int, down: int) -> Floats:
    """(H, W) slope of an intensity along one axis, grey levels a pixel."""
    return np.asarray(cv2.Sobel(intensity, cv2.CV_32F, across, down, scale=0.125), np.float32)


def _covariance(mean: Floats, colour: Floats, images: Image, bodies: Masks | None) -> Array:
    """Of the residuals of pixels that look like background, floored."""
    residuals = _residuals(mean, images, bodies)
    floor = np.diag([COLOUR_FLOOR**2] * 3 + [GRADIENT_FLOOR**2] * 2)
    spread = 1.4826 * np.median(np.abs(residuals), axis=0)
    covariance = np.diag(spread.astype(float) ** 2) + floor
    for _ in range(4):
        inverse = np.linalg.inv(covariance)
        inliers = residuals[np.einsum("ni,ij,nj->n", residuals, inverse, residuals) < TRIM]
        if len(inliers) < 100:
            break
        covariance = inliers.T.astype(float) @ inliers / len(inliers) + floor
    return covariance


def _residuals(mean: Floats, images: Image, bodies: Masks | None) -> Floats:
    """(N, 5) feature minus mean, on a grid of pixels of some frames."""
    height, width = mean.shape[:2]
    step = max(1, int(np.sqrt(height * width / SAMPLED_PIXELS)))
    parts, around = [], []
    for index in np.unique(np.linspace(0, len(images) - 1, SAMPLED_FRAMES).astype(int)):
        offset = (features(smoothed(images[index])) - mean)[::step, ::step]
        parts.append(offset.reshape(-1, 5))
        if bodies is not None:
            around.append(parts[-1][_around(bodies[index], offset.shape[1::-1]).ravel()])
    near = np.concatenate(around) if around else np.zeros((0, 5), np.float32)
    return near if len(near) >= FEWEST_NEAR else np.concatenate(parts)


def _around(body: Masks, size: tuple[int, int]) -> Masks:
    """Pixels near to a coarse body, but outside of it, at another width and height."""
    coarse = cv2.resize(body.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
    reach = 2 * round(NEAR * size[0]) + 1
    return np.asarray((cv2.dilate(coarse, np.ones((reach, reach), np.uint8)) > 0) & (coarse == 0))
