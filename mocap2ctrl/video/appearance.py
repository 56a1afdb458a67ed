"""What the person and the cast shadows of one clip look like, learned from the pixels that a first look is sure of.

Three densities of a pixel's colour are compared: the person's (a histogram of the clip's own sure pixels), the background's
(normal, around the empty scene) and the shadowed background's. A shadow's factor of intensity has the histogram that the
clip's sure shadows have; its factors of red and blue, relative to that, are normal around powers of it: the deeper the
shadow, the more of its light is the sky's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter

from mocap2ctrl.types import Array, Masks
from mocap2ctrl.video.background import LUMA, Background, Floats, intensity_of, squared_distance, squared_length
from mocap2ctrl.video.decode import Image
from mocap2ctrl.video.masks import box_of
from mocap2ctrl.video.shadows import cast_shadow

LEARNING_FRAMES = 12
SHADOW_REACH = 0.5
"""How far around the person shadows are looked for, in heights."""
BINS, LEVELS_A_BIN = 32, 8
KERNELS = ((0.7, 0.7), (0.25, 2.0))
"""Weight and standard deviation, in bins, of the kernels that smooth the person's histogram."""
NEW_COLOUR = 0.05
"""Share of the person's pixels whose colour is not in the histogram."""
SURE_PX = 2
"""Pixels at an outline that nothing is learned from."""
FACTORS = np.linspace(-1.5, 0.1, 33)
"""Edges of the histogram of log factors of intensity."""
DEEPEST, LIGHTEST = -1.4, 0.03
"""Log factors of shadows in general, of which UNSEEN is the weight beside the clip's own."""
UNSEEN = 0.3
FEWEST_SAMPLES = 200
TINT, TINT_SPREAD = (0.0, -0.05), (0.05, 0.06)
"""Powers of the factor that red and blue follow, and the spread of their logs, where a clip has no sure shadow."""
LEAST_SPREAD = 0.02
NOISE = (2.0, 2.5)
"""Standard deviations of red and blue, grey levels."""
GREEN = float(LUMA[1])
IMPOSSIBLE = -60.0


@dataclass(frozen=True, eq=False)
class Appearance:
    """Densities of colours, as logs.

    Attributes:
        person: (32, 32, 32) of the person's colour, by bins of 8 grey levels.
        factors: (32,) of a shadow's log factor of intensity, by the bins of FACTORS.
        tint: (2,) powers of the factor of intensity that red and blue follow, relative to it.
        tint_spread: (2,) standard deviations of their logs.
        noise: (3, 3) covariance of the background's colour.
        both_ways: the picture of the scene may hold shadows that the frame does not.
    """

    person: Floats
    factors: Floats
    tint: Array
    tint_spread: Array
    noise: Array
    both_ways: bool

    def evidence(self, colour: Floats, behind: Floats) -> Floats:
        """(H, W) log odds of the person against background and shadow, for colours (H, W, 3) before a background (H, W, 3)."""
        bins = np.clip(colour / LEVELS_A_BIN, 0, BINS - 1).astype(np.intp)
        person = self.person[bins[..., 0], bins[..., 1], bins[..., 2]]
        scene = np.logaddexp(self._log_background(colour - behind), self._log_shadow(colour, behind))
        return np.asarray(person - scene, np.float32)

    def _log_background(self, offset: Floats) -> Floats:
        whitening = np.linalg.cholesky(np.linalg.inv(self.noise)).astype(np.float32)
        scale = 0.5 * np.linalg.slogdet(2.0 * np.pi * self.noise)[1]
        return np.asarray(-0.5 * squared_length(cv2.transform(offset, whitening.T)) - np.float32(scale))

    def _log_shadow(self, colour: Floats, behind: Floats) -> Floats:
        factor, *tints = log_factors(colour, behind)
        sign = np.where(factor > 0.0, np.float32(-1.0), np.float32(1.0)) if self.both_ways else np.float32(1.0)
        depth = sign * factor
        places = ((depth - FACTORS[0]) / (FACTORS[1] - FACTORS[0])).astype(np.intp)
        # The density of (log factor, log tints) becomes one of colour by the determinant of the change of variables.
        result = self.factors[np.clip(places, 0, len(self.factors) - 1)] + np.log(
            GREEN / np.maximum(intensity_of(colour), 1)
        )
        for tint, channel, power, spread, noise in zip(tints, (0, 2), self.tint, self.tint_spread, NOISE, strict=True):
            level = np.maximum(colour[..., channel], 1.0)
            deviation = np.sqrt(np.float32(spread**2) + (np.float32(noise) / level) ** 2)
            result -= 0.5 * ((tint - np.float32(power) * factor) / deviation) ** 2
            result -= np.log(np.float32(np.sqrt(2.0 * np.pi)) * deviation * level)
        return np.asarray(np.where(depth > LIGHTEST, np.float32(IMPOSSIBLE), result), np.float32)


def log_factors(colour: Floats, behind: Floats) -> tuple[Floats, Floats, Floats]:
    """Logs of a colour's intensity over the background's, and of red's and blue's ratios, relative to that."""
    ratios = np.log(np.maximum(colour, 1.0)) - np.log(np.maximum(behind, 1.0))
    factor = np.log(np.maximum(colour @ LUMA, 1.0)) - np.log(np.maximum(behind @ LUMA, 1.0))
    return factor, ratios[..., 0] - factor, ratios[..., 2] - factor


def learn_appearance(background: Background, images: Image, masks: Masks, *, both_ways: bool) -> Appearance:
    """Learns from the inside of a person's masks (T, H, W), and from the shadows outside of them.

    Args:
        background: the model.
        images: (T, H, W, 3).
        masks: (T, H, W) of a first look.
        both_ways: the picture of the scene may hold somebody's shadow.
    """
    histogram, shadows = np.zeros(BINS**3), [np.zeros((0, 3), np.float32)]
    for colour, still, sure, shadow in _sure_pixels(background, images, masks):
        bins = np.clip(colour[sure] / LEVELS_A_BIN, 0, BINS - 1).astype(np.intp)
        histogram += np.bincount(bins @ (BINS**2, BINS, 1), minlength=BINS**3)
        shadows.append(np.stack(log_factors(colour[shadow], still[shadow]), axis=-1)[::7])
    samples = np.asarray(np.concatenate(shadows), np.float64)
    samples = samples[samples[:, 0] < -LEAST_SPREAD]
    tint, spread = _tint(samples)
    noise = background.covariance[:3, :3]
    return Appearance(
        _log_person(histogram.reshape((BINS,) * 3)), _log_factors_density(samples[:, 0]), tint, spread, noise, both_ways
    )


def _sure_pixels(background: Background, images: Image, masks: Masks) -> Iterator[tuple[Floats, Floats, Masks, Masks]]:
    """Of some frames, around the person: colours, those of the empty scene, the person's pixels, and those of shadow."""
    around, near = np.ones((2 * SURE_PX + 1,) * 2, np.uint8), np.ones((3, 3), np.uint8)
    rows = np.count_nonzero(np.any(masks, axis=2), axis=1)
    present = np.flatnonzero(rows)
    for t in present[np.unique(np.linspace(0, len(present) - 1, LEARNING_FRAMES).astype(int))]:
        where = box_of(masks[t], round(SHADOW_REACH * rows[t]))
        distance, colour = squared_distance(background, images[t], where)
        mask, still = masks[t][where].astype(np.uint8), background.colour[where]
        shadow = cast_shadow(background, where, distance, colour) & (cv2.dilate(mask, around) == 0)
        yield colour, still, cv2.erode(mask, around) > 0, cv2.erode(shadow.astype(np.uint8), near) > 0


def _log_person(histogram: npt.NDArray[np.float64]) -> Floats:
    shares = histogram / max(1.0, histogram.sum())
    smooth = sum(weight * gaussian_filter(shares, width) for weight, width in KERNELS)
    return np.asarray(np.log(smooth / LEVELS_A_BIN**3 + NEW_COLOUR / 256.0**3), np.float32)


def _log_factors_density(factors: Array) -> Floats:
    general = ((FACTORS[:-1] > DEEPEST) & (FACTORS[:-1] < 0.0)).astype(np.float64)
    shares = general / general.sum()
    if len(factors) >= FEWEST_SAMPLES:
        own = gaussian_filter(np.histogram(factors, FACTORS)[0].astype(np.float64), 1.0)
        shares = UNSEEN * shares + (1.0 - UNSEEN) * own / max(1.0, own.sum())
    return np.asarray(np.log(shares / (FACTORS[1] - FACTORS[0]) + 1e-6), np.float32)


def _tint(samples: Array) -> tuple[Array, Array]:
    """Powers of the factor, by least squares through none, and the spread around them."""
    if len(samples) < FEWEST_SAMPLES:
        return np.array(TINT), np.array(TINT_SPREAD)
    factor, tints = samples[:, 0], samples[:, 1:]
    powers = factor @ tints / (factor @ factor)
    spread = 1.4826 * np.median(np.abs(tints - factor[:, None] * powers), axis=0)
    return powers, np.maximum(spread, LEAST_SPREAD)
