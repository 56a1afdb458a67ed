"""The background model of Vondrak 2012, section 5, after Elgammal 2000, and how far each pixel of a frame is from it.

A pixel's feature is its colour (3) and the gradient of its intensity (2). The model is the mean feature of each pixel, and
one 5x5 covariance for the entire image; a pixel is foreground where its squared Mahalanobis distance exceeds a threshold.
Added to the paper: a floor of the noise, a gain of each frame (exposure), small shifts of the picture undone
(`alignment.py`), and the removal of cast shadows (`shadows.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array
from mocap2ctrl.video.decode import Image

Floats = npt.NDArray[np.float32]

THRESHOLD = 25.0
"""Of the squared distance. Five normal variables exceed it once in 7,000 pixels, which alone make no connected part."""
COLOUR_FLOOR, GRADIENT_FLOOR = 3.0, 3.0
"""Standard deviations that are added to the measured noise, grey levels: compression, and what the model leaves out."""
BLUR = 0.7
"""Standard deviation of the smoothing before any feature, pixels."""
LUMA = np.array([0.299, 0.587, 0.114], np.float32)

SAMPLED_FRAMES = 24
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


def features(colour: Floats) -> Floats:
    """(H, W, 5): a smoothed image's colour and its intensity's gradient, grey levels a pixel."""
    intensity = colour @ LUMA
    across = cv2.Sobel(intensity, cv2.CV_32F, 1, 0, scale=0.125)
    down = cv2.Sobel(intensity, cv2.CV_32F, 0, 1, scale=0.125)
    return np.concatenate([colour, across[..., None], down[..., None]], axis=-1)


def exposure_gain(colour: Floats, background: Floats) -> Floats:
    """(3,) what to multiply a frame by to have the background's exposure; the median over well exposed pixels."""
    frame, still = colour[::3, ::3].reshape(-1, 3), background[::3, ::3].reshape(-1, 3)
    usable = np.all((frame > 16) & (frame < 245) & (still > 16) & (still < 245), axis=1)
    if np.count_nonzero(usable) < 50:
        return np.ones(3, np.float32)
    gain = np.median(still[usable] / frame[usable], axis=0)
    return np.asarray(np.clip(gain, *GAINS), np.float32)


def build_background(picture: Floats, images: Image) -> Background:
    """The model around a picture of the empty scene, with the noise of the clip's own background pixels.

    Args:
        picture: (H, W, 3) the empty scene.
        images: (T, H, W, 3) the clip; people in it are outliers and do not count.
    """
    colour = smoothed(picture)
    mean = features(colour)
    covariance = _covariance(mean, colour, images)
    return Background(colour, mean, whitening(covariance), covariance)


def whitening(covariance: Array) -> Floats:
    """(5, 5) W with W Wᵀ the covariance's inverse."""
    return np.asarray(np.linalg.cholesky(np.linalg.inv(covariance)), np.float32)


def squared_distance(background: Background, image: Image) -> tuple[Floats, Floats]:
    """(H, W) squared Mahalanobis distance of each pixel, over the threshold; and the frame's colours, exposure undone."""
    colour = smoothed(image)
    colour *= exposure_gain(colour, background.colour)
    found = features(colour)
    offset = (found - background.mean) @ background.whitening
    distance = np.einsum("ijk,ijk->ij", offset, offset)
    return distance / THRESHOLD, colour


def _covariance(mean: Floats, colour: Floats, images: Image) -> Array:
    """Of the residuals of pixels that look like background, floored."""
    residuals = _residuals(mean, colour, images)
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


def _residuals(mean: Floats, colour: Floats, images: Image) -> Floats:
    """(N, 5) feature minus mean, on a grid of pixels of some frames."""
    height, width = mean.shape[:2]
    step = max(1, int(np.sqrt(height * width / SAMPLED_PIXELS)))
    parts = []
    for index in np.unique(np.linspace(0, len(images) - 1, SAMPLED_FRAMES).astype(int)):
        frame = smoothed(images[index])
        frame *= exposure_gain(frame, colour)
        parts.append((features(frame) - mean)[::step, ::step].reshape(-1, 5))
    return np.concatenate(parts)
