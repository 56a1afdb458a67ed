"""Titled pictures in one PNG, under what is to be said about them in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from mocap2ctrl.errors import ConfigError
from mocap2ctrl.report.contact_sheet import png_bytes
from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.text import INK, PALE, Colour, draw_text, text_mask

WIDTH_PX = 1600
MARGIN_PX, GAP_PX = 48, 28
TITLE_PX, HEAD_PX, TEXT_PX = 40, 21, 16
LINE = 1.55
TALLEST = 1.15
"""Height over width of a panel's picture; taller ones are narrower."""
LONGEST_TABLE = 10
NAMES_SHARE, NAMES_PX = 0.42, 240
"""Of a table's width, at most, and pixels, at most."""
ALARM = (179, 38, 30)
ALARM_PAPER = (253, 240, 238)
PAPER = (255, 255, 255)


@dataclass(frozen=True)
class Panel:
    """One picture: title, caption, PNG or JPEG, and whether it takes half of the width."""

    title: str
    caption: str
    picture: bytes
    half: bool


def sheet(
    title: str,
    subtitle: str,
    error: str | None,
    warnings: Sequence[str],
    facts: Mapping[str, Mapping[str, str]],
    panels: Sequence[Panel],
) -> bytes:
    """Returns a PNG.

    Args:
        title, subtitle: headline.
        error: why nothing can be done with the input.
        warnings: sentences.
        facts: tables of name and text, by title; side by side.
        panels: in order; halves that follow each other share a row.
    """
    inner = WIDTH_PX - 2 * MARGIN_PX
    blocks = [
        np.concatenate([_text([title], inner, TITLE_PX, INK, bold=True), _text([subtitle], inner, TEXT_PX, PALE)])
    ]
    alarms = ([f"Cannot be used: {error}"] if error else []) + [f"Note: {text}" for text in warnings]
    if alarms:
        blocks.append(_framed(alarms, inner))
    if facts:
        blocks.append(_tables(facts, inner))
    blocks += [_row(row, inner) for row in _rows(panels)]
    spaced = [part for block in blocks for part in (block, _blank(GAP_PX, inner))][:-1]
    return png_bytes(_padded(np.concatenate(spaced), MARGIN_PX, MARGIN_PX, PAPER))


def wrapped(text: str, width_px: int, height_px: int, bold: bool = False) -> list[str]:
    """Lines of `text` that are at most `width_px` wide, where words allow."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_mask(longer, height_px, bold).shape[1] <= width_px:
            lines[-1] = longer
        else:
            lines.extend(_broken(word, width_px, height_px, bold))
    return lines


def _broken(word: str, width_px: int, height_px: int, bold: bool) -> list[str]:
    """A word in as many pieces as it needs; paths can be longer than a line."""
    width = text_mask(word, height_px, bold).shape[1]
    if width <= width_px:
        return [word]
    length = max(1, len(word) * width_px // width - 1)
    return [word[i : i + length] for i in range(0, len(word), length)]


def _text(
    paragraphs: Iterable[str],
    width_px: int,
    height_px: int,
    colour: Colour,
    *,
    bold: bool = False,
    paper: Colour = PAPER,
) -> Image:
    lines = [line for text in paragraphs for line in wrapped(text, width_px, height_px, bold)]
    step = round(LINE * height_px)
    image = np.full((max(1, step * len(lines)), width_px, 3), paper, np.uint8)
    for i, line in enumerate(lines):
        draw_text(image, line, (0, (i + 0.5) * step), height_px=height_px, colour=colour, bold=bold)
    return image


def _framed(paragraphs: Sequence[str], width_px: int) -> Image:
    inner = _text(paragraphs, width_px - 40, TEXT_PX + 1, ALARM, paper=ALARM_PAPER)
    image = _padded(inner, 12, 20, ALARM_PAPER)
    image[:, :6] = ALARM
    return image


def _tables(facts: Mapping[str, Mapping[str, str]], width_px: int) -> Image:
    """Tables side by side; one of many rows takes two columns."""
    halves = {title: _halved(rows) for title, rows in facts.items()}
    count = sum(len(parts) for parts in halves.values())
    each = (width_px - (count - 1) * GAP_PX) // count
    titles = [text for title, parts in halves.items() for text in (title, *[""] * (len(parts) - 1))]
    parts = [part for parts in halves.values() for part in parts]
    images = [_table(title, part, each) for title, part in zip(titles, parts, strict=True)]
    return _beside(images, width_px, GAP_PX, each)


def _halved(rows: Mapping[str, str]) -> list[dict[str, str]]:
    items = list(rows.items())
    count = len(items) if len(items) <= LONGEST_TABLE else -(-len(items) // 2)
    return [dict(items[i : i + count]) for i in range(0, len(items), count)]


def _table(title: str, rows: Mapping[str, str], width_px: int) -> Image:
    names_px = min(round(NAMES_SHARE * width_px), NAMES_PX)
    head = _text([title], width_px, HEAD_PX, INK, bold=True)
    lines = [head if title else _blank(round(LINE * HEAD_PX), width_px)]
    for name, text in rows.items():
        left, right = _text([name], names_px - 12, TEXT_PX, PALE), _text([text], width_px - names_px, TEXT_PX, INK)
        line = _blank(max(len(left), len(right)), width_px)
        line[: len(left), : left.shape[1]] = left
        line[: len(right), names_px:] = right
        lines.append(line)
    return np.concatenate(lines)


def _rows(panels: Sequence[Panel]) -> list[list[Panel]]:
    rows: list[list[Panel]] = []
    for panel in panels:
        if panel.half and rows and rows[-1][-1].half and len(rows[-1]) == 1:
            rows[-1].append(panel)
        else:
            rows.append([panel])
    return rows


def _row(panels: Sequence[Panel], width_px: int) -> Image:
    each = (width_px - GAP_PX) // 2 if panels[0].half else width_px
    return _beside([_panel(panel, each) for panel in panels], width_px, GAP_PX, each)


def _panel(panel: Panel, width_px: int) -> Image:
    data = decoded(panel.picture)
    scale = min(width_px / data.shape[1], TALLEST * width_px / data.shape[0])
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    size = (min(width_px, round(data.shape[1] * scale)), max(1, round(data.shape[0] * scale)))
    image = _blank(size[1], width_px)
    image[:, : size[0]] = cv2.resize(data, size, interpolation=method)
    title = _text([panel.title], width_px, HEAD_PX, INK, bold=True)
    caption = _text([panel.caption], width_px, TEXT_PX - 1, PALE)
    return np.concatenate([title, _blank(6, width_px), image, _blank(8, width_px), caption])


def decoded(picture: bytes) -> Image:
    """A PNG or JPEG as RGB.

    Raises:
        ConfigError: it is none.
    """
    data = cv2.imdecode(np.frombuffer(picture, np.uint8), cv2.IMREAD_COLOR)
    if data is None:
        raise ConfigError("a panel's picture can not be decoded")
    return np.asarray(data[..., ::-1], np.uint8)


def _beside(images: Sequence[Image], width_px: int, gap_px: int, each_px: int) -> Image:
    """Images of one width, side by side, their tops in line."""
    result = _blank(max(len(image) for image in images), width_px)
    for i, image in enumerate(images):
        left = i * (each_px + gap_px)
        result[: len(image), left : left + each_px] = image
    return result


def _blank(height_px: int, width_px: int) -> Image:
    return np.full((height_px, width_px, 3), PAPER, np.uint8)


def _padded(image: Image, down_px: int, across_px: int, colour: Colour) -> Image:
    shape = (image.shape[0] + 2 * down_px, image.shape[1] + 2 * across_px, 3)
    result = np.full(shape, colour, np.uint8)
    result[down_px : shape[0] - down_px, across_px : shape[1] - across_px] = image
    return result
