"""A picture of what was found: some frames with the person outlined."""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.decode import Image

PANELS, COLUMNS = 8, 4
PANEL_PIXELS = 320 * 240
OUTLINE = (255, 70, 0)
INSIDE, OUTSIDE = 230, 40
GAP = 4


def outlined_frames(masks: Masks, images: Image | None, times_s: list[float] | None = None) -> Image:
    """(H, W, 3) RGB: frames spread over the clip, the person's outline on each, in rows of four.

    Args:
        masks: (T, H, W).
        images: (T, H, W, 3) the frames; without them the masks themselves are shown.
        times_s: (T,) written into the corners.
    """
    chosen = np.unique(np.linspace(0, len(masks) - 1, min(PANELS, len(masks))).round().astype(int)).tolist()
    panels = []
    for t in chosen:
        plain = np.repeat(np.where(masks[t], INSIDE, OUTSIDE).astype(np.uint8)[..., None], 3, axis=-1)
        panels.append(_panel(plain if images is None else images[t], masks[t], None if times_s is None else times_s[t]))
    blank = np.full_like(panels[0], 255)
    columns = min(COLUMNS, len(panels))
    panels += [blank] * (-len(panels) % columns)
    rows = [np.concatenate(panels[i : i + columns], axis=1) for i in range(0, len(panels), columns)]
    return np.concatenate(rows)


def png_bytes(image: Image) -> bytes:
    """Encodes an RGB image (H, W, 3) as PNG.

    Raises:
        VideoError: it has no pixel, or too many.
    """
    done, encoded = cv2.imencode(".png", np.ascontiguousarray(image[..., ::-1]))
    if not done:
        raise VideoError(f"an image of shape {image.shape} cannot be written as PNG")
    return encoded.tobytes()


def _panel(image: Image, mask: Masks, time_s: float | None) -> Image:
    height, width = mask.shape
    scale = np.sqrt(PANEL_PIXELS / (width * height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    panel = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST)
    large = cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
    outlines, _ = cv2.findContours(large, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(panel, outlines, -1, OUTLINE, 1)
    if time_s is not None:
        for colour, thickness in (((0, 0, 0), 3), ((255, 255, 255), 1)):
            cv2.putText(
                panel, f"{time_s:.2f} s", (6, 16), cv2.FONT_HERSHEY_SIMPLEX, 0.42, colour, thickness, cv2.LINE_AA
            )
    edges = ((0, GAP), (0, GAP), (0, 0))
    return np.asarray(np.pad(panel, edges, constant_values=255), np.uint8)
