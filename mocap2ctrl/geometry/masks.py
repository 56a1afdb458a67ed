"""Masks as signed distances from their outlines, which can be blended: silhouettes at times between two frames."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array, Masks

SAME_FRAME = 1e-3
"""A time that is nearer to a frame than this share of a frame takes that frame as it is."""


def signed_distances(masks: Masks) -> Array:
    """(T, H, W) distance in pixels of each pixel's centre from the outline of its mask, negative inside."""
    import cv2  # here, so that workers do without where there is no video

    result = np.empty(masks.shape)
    for mask, out in zip(masks.astype(np.uint8), result, strict=True):
        padded = np.pad(mask, 1)  # a mask that touches the border ends there
        inside = cv2.distanceTransform(padded, cv2.DIST_L2, 5)[1:-1, 1:-1]
        outside = cv2.distanceTransform(1 - padded, cv2.DIST_L2, 5)[1:-1, 1:-1]
        out[:] = np.where(mask > 0, 0.5 - inside, outside - 0.5)
    return result


def row_spans(masks: Masks) -> npt.NDArray[np.int64]:
    """(N, 2) the first row, and the one after the last, of each of the masks (T, H, W) that hold a pixel."""
    rows = np.any(masks, axis=2)
    rows = rows[np.any(rows, axis=1)]
    return np.stack([np.argmax(rows, axis=1), masks.shape[1] - np.argmax(rows[:, ::-1], axis=1)], axis=1)


def masks_at_rate(masks: Masks, fps: float, wanted_fps: float) -> Masks:
    """Masks (T, H, W) at another rate; the first frame stays, the duration is kept to within a frame.

    Between two frames the signed distances are blended and cut at 0. A frame that needs an empty one is empty: it is one
    without evidence, and what lies beside it says nothing of its own time.
    """
    if wanted_fps == fps:
        return masks
    count = int(np.floor((len(masks) - 1) / fps * wanted_fps + 1e-6)) + 1
    position = np.minimum(np.arange(count) / wanted_fps * fps, len(masks) - 1.0)
    before = np.floor(position + SAME_FRAME).astype(int)
    share = np.where(position - before > SAME_FRAME, position - before, 0.0)
    result: Masks = np.array(masks[before])
    for mask, i, s in zip(result, before, share, strict=True):
        if s == 0.0:
            continue
        pair = masks[i : i + 2]
        if pair.any(axis=(1, 2)).all():
            distances = signed_distances(pair)
            mask[:] = (1.0 - s) * distances[0] + s * distances[1] < 0.0
        else:
            mask[:] = False
    return result
