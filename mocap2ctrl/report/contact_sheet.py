"""A strip of pictures: the reference on top, the simulated body below, at the same moments."""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.character import Character
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.overlay import INK, PALE, STRIP, panels
from mocap2ctrl.report.text import draw_text
from mocap2ctrl.types import MotionClip

PANEL = (220, 320)
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
    large = (PANEL[0] * SUPERSAMPLING, PANEL[1] * SUPERSAMPLING)
    pair = panels(character, reference, simulated, times, size=large, fps=max(n - 1, 1) / max(shared, 1e-3))
    columns = [np.concatenate([_small(picture) for picture in pair.images(i)]) for i in range(n)]
    sheet = np.concatenate(columns, axis=1)
    for row, label in enumerate(labels):
        draw_text(sheet, label, (10, row * PANEL[1] + 8), height_px=15, colour=INK, anchor=(0.0, 0.0), bold=True)
    for column in range(1, n):
        sheet[:, column * PANEL[0] - 1 : column * PANEL[0] + 1] = 255
    sheet[PANEL[1] - 1 : PANEL[1] + 1] = 255
    return png_bytes(np.concatenate([sheet, _footer(times)]))


def png_bytes(image: Image) -> bytes:
    """Encode an RGB image (H, W, 3) as PNG."""
    done, encoded = cv2.imencode(".png", np.ascontiguousarray(image[..., ::-1]))
    if not done:
        raise ConfigError(f"an image of shape {image.shape} cannot be written as PNG")
    return encoded.tobytes()


def _small(picture: Image) -> Image:
    return np.asarray(cv2.resize(picture, PANEL, interpolation=cv2.INTER_AREA), np.uint8)


def _footer(times: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Image:
    strip = np.full((26, PANEL[0] * len(times), 3), STRIP, np.uint8)
    for column, time_s in enumerate(times):
        middle = (column + 0.5) * PANEL[0]
        draw_text(strip, f"{time_s:.2f} s", (middle, 13), height_px=12, colour=PALE, anchor=(0.5, 0.5))
    return strip
