"""Smooth text on images, with the font that matplotlib ships, so that videos look the same on every machine."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font

from mocap2ctrl.report.ground import Float, Image

Colour = tuple[int, int, int]
FONT = "DejaVu Sans"
INK, PALE = (38, 44, 56), (128, 136, 150)
WHITE, FAINT = (255, 255, 255), (206, 211, 218)
PLATE = (24, 28, 34)
PLATE_OPACITY = 0.62


@lru_cache(maxsize=4)
def _font(bold: bool) -> FT2Font:
    return FT2Font(findfont(FontProperties(family=FONT, weight="bold" if bold else "normal")))


LINE_PROBE = "|Ågj"
"""Set after every text, so that all masks of one size share their height and baseline; then cut off again."""


@lru_cache(maxsize=1024)
def text_mask(text: str, height_px: int, bold: bool = False) -> Float:
    """(h, w) coverage 0 to 1 of a line of text; every line of one size has the same height and baseline."""
    probe = _probe_width(height_px, bold)
    font = _font(bold)
    font.set_size(height_px * 0.75, 96)
    font.set_text(text + LINE_PROBE, 0.0)
    font.draw_glyphs_to_bitmap(antialiased=True)
    full = np.asarray(font.get_image(), np.float32) / np.float32(255.0)
    return full[:, : max(full.shape[1] - probe, 1)]


@lru_cache(maxsize=32)
def _probe_width(height_px: int, bold: bool) -> int:
    font = _font(bold)
    font.set_size(height_px * 0.75, 96)
    font.set_text(LINE_PROBE, 0.0)
    return int(font.get_width_height()[0] // 64) + 1


def draw_text(
    image: Image,
    text: str,
    at: tuple[float, float],
    *,
    height_px: int,
    colour: Colour,
    anchor: tuple[float, float] = (0.0, 0.5),
    bold: bool = False,
) -> None:
    """Write `text` on an RGB image, in place; what falls outside is cut.

    Args:
        image: (H, W, 3).
        text: one line.
        at: pixel (x, y) of the anchor.
        height_px: font size, pixels.
        colour: RGB.
        anchor: share of the text's width and height that lies left of and above `at`.
        bold: heavier strokes.
    """
    mask = text_mask(text, height_px, bold)
    left, top = round(at[0] - anchor[0] * mask.shape[1]), round(at[1] - anchor[1] * mask.shape[0])
    x0, y0 = max(left, 0), max(top, 0)
    x1, y1 = min(left + mask.shape[1], image.shape[1]), min(top + mask.shape[0], image.shape[0])
    if x1 <= x0 or y1 <= y0:
        return
    cover = mask[y0 - top : y1 - top, x0 - left : x1 - left, None]
    window = image[y0:y1, x0:x1]
    np.copyto(window, np.rint(window + cover * (np.array(colour, np.float32) - window)).astype(np.uint8))


def draw_label(image: Image, text: str, *, height_px: int, plain: bool = False, faint: bool = False) -> None:
    """Write `text` into the upper left corner of an RGB image, in place.

    Args:
        image: (H, W, 3).
        text: one line.
        height_px: font size, pixels.
        plain: the image is pale there; otherwise it may be anything, and the text stands on a dark plate.
        faint: less contrast, for what is over.
    """
    mask = text_mask(text, height_px, True)
    inset, pad = round(0.6 * height_px), round(0.5 * height_px)
    bottom, right = inset + mask.shape[0] + pad // 2, inset + mask.shape[1] + 2 * pad
    if not plain:
        plate = image[inset:bottom, inset:right]
        np.copyto(plate, np.rint(plate + PLATE_OPACITY * (np.array(PLATE, np.float32) - plate)).astype(np.uint8))
    strong, weak = (INK, PALE) if plain else (WHITE, FAINT)
    at = (inset + pad, 0.5 * (inset + bottom))
    draw_text(image, text, at, height_px=height_px, colour=weak if faint else strong, bold=True)
