"""Cast shadows: the background, darker, with its texture.

A shadow multiplies what is behind it. So a pixel with feature f (colour and gradient) is shadow when some factor s below 1
brings the background's mean feature m near it: s = f·m / m·m in the whitened space minimises |(f - s m) W|², and the
remaining distance is that of any other background pixel. The gradient is scaled too: a shadow keeps the texture, a dark
coat does not.
"""

from __future__ import annotations

import numpy as np

from mocap2ctrl.types import Masks
from mocap2ctrl.video.background import THRESHOLD, Background, Floats, features

DARKEST, BRIGHTEST = 0.45, 0.98
"""Factors of a cast shadow; below it is too dark to tell from black cloth."""
NEAR = 0.7
"""Remaining squared distance, over the threshold."""


def cast_shadow(background: Background, distance: Floats, colour: Floats) -> Masks:
    """(H, W) foreground pixels that look like shadow.

    Args:
        background: the model.
        distance: (H, W) squared distance over the threshold.
        colour: (H, W, 3) smoothed frame, its exposure undone.
    """
    rows, columns = np.nonzero(distance > 1.0)
    found = features(colour)[rows, columns] @ background.whitening
    mean = background.mean[rows, columns] @ background.whitening
    factor = np.sum(found * mean, axis=1) / np.maximum(np.sum(mean * mean, axis=1), 1e-9)
    rest = np.sum((found - factor[:, None] * mean) ** 2, axis=1) / THRESHOLD
    result = np.zeros(distance.shape, bool)
    result[rows, columns] = (factor > DARKEST) & (factor < BRIGHTEST) & (rest < NEAR)
    return result
