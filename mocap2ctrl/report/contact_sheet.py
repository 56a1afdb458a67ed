"""A strip of pictures: the reference on top, the simulated body below, at the same moments."""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.character import Character
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.report.clips import sampled_frames
from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.overlay import STRIP, panels
from mocap2ctrl.report.text import INK, PALE, draw_text
from mocap2ctrl.types import Array, MotionClip

PANEL = (220, 320)
WIDE_PANEL = (300, 300)
WIDE_REACH = 0.45
"""Limbs that reach farther sideways from the root than this share of body height get the wide panel."""

SUPERSAMPLING = 2


def contact_sheet(
    character: Character,
    reference: MotionClip,
    simulated: MotionClip,
    n: int = 6,
    *,
    labels: tuple[str, str] = ("reference", "simulated"),
) -> bytes:
    """Return a PNG with `n` columns at moments spread over the time that both clips cover.

    Raises:
        ConfigError: if `n` is below 1.
    """
    if n < 1:
        raise ConfigError(f"a contact sheet of {n} pictures was asked for; give 1 or more")
    shared = min(reference.duration_s, simulated.duration_s)
    times = np.linspace(0.0, shared, n) if n > 1 else np.array([0.5 * shared])
    width, height = _panel_size(character, reference, times)
    large = (width * SUPERSAMPLING, height * SUPERSAMPLING)
    pair = panels(character, reference, simulated, times, size=large, fps=0.0)
    columns = [np.concatenate([_small(picture) for picture in pair.images(i)]) for i in range(n)]
    sheet = np.concatenate(columns, axis=1)
    for row, label in enumerate(labels):
        draw_text(sheet, label, (10, row * height + 8), height_px=15, colour=INK, anchor=(0.0, 0.0), bold=True)
    for column in range(1, n):
        sheet[:, column * width - 1 : column * width + 1] = 255
    sheet[height - 1 : height + 1] = 255
    return png_bytes(np.concatenate([sheet, footer(times, width * len(times))]))


def png_bytes(image: Image) -> bytes:
    """Encode an RGB image (H, W, 3) as PNG."""
    done, encoded = cv2.imencode(".png", np.ascontiguousarray(image[..., ::-1]))
    if not done:
        raise ConfigError(f"an image of shape {image.shape} cannot be written as PNG")
    return encoded.tobytes()


def _small(picture: Image) -> Image:
    height, width = (n // SUPERSAMPLING for n in picture.shape[:2])
    return np.asarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def _panel_size(character: Character, clip: MotionClip, times: Array) -> tuple[int, int]:
    positions, _ = sampled_frames(character, clip, times)
    reach = np.linalg.norm((positions - positions[:, :1])[..., :2], axis=-1).max()
    return WIDE_PANEL if reach > WIDE_REACH * character.height_m else PANEL


def footer(times_s: Array, width_px: int) -> Image:
    """A strip of `width_px` with a time below each of as many columns."""
    strip = np.full((26, width_px, 3), STRIP, np.uint8)
    for column, time_s in enumerate(times_s):
        middle = (column + 0.5) * width_px / len(times_s)
        draw_text(strip, f"{time_s:.2f} s", (middle, 13), height_px=12, colour=PALE, anchor=(0.5, 0.5))
    return strip
