"""Still pictures of a video's capture, each cut out around the person: the report's sheet, and a strip for a page."""

from __future__ import annotations

import math

import numpy as np

from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.report.contact_sheet import footer, png_bytes
from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.overlay import STRIP
from mocap2ctrl.report.performer import Performer
from mocap2ctrl.report.render import NEAREST_M
from mocap2ctrl.report.scene import Part, Scene, Size, dimmed, draw_outline
from mocap2ctrl.report.text import INK, draw_label, draw_text
from mocap2ctrl.types import Array

SHEET_COLUMNS = 4
SHEET_WIDTH_PX = 1200
STRIP_HEIGHT_PX = 320
GAP_PX = 2
GUTTER_PX = 112
MARGIN = 0.07
"""Around the bodies, as a share of the height of what is cut out."""
NARROWEST, WIDEST = 0.6, 1.6
"""Width over height of what is cut out."""


def moments(scene: Scene, n: int) -> Array:
    """(n,) times, spread evenly over the scene.

    Raises:
        ConfigError: if `n` is below 1.
    """
    if n < 1:
        raise ConfigError(f"a sheet of {n} pictures was asked for; give 1 or more")
    return np.linspace(0.0, scene.duration_s, n) if n > 1 else np.array([0.5 * scene.duration_s])


def video_sheet(scene: Scene, performer: Performer, n: int = 8) -> bytes:
    """Return a PNG of `n` moments, four in a row: the frame, the simulated body over it, and the person's outline."""
    times = moments(scene, n)
    columns = min(n, SHEET_COLUMNS)
    parts = parts_around(scene, performer, times)
    width = (SHEET_WIDTH_PX - (columns - 1) * GAP_PX) // columns
    size = (width, round(width * parts[0].height / parts[0].width))
    frames = performer.frames(scene, times)
    panels = []
    for i, time_s in enumerate(times.tolist()):
        frame = scene.frame_at(time_s)
        panel = _with_body(scene, performer, time_s, parts[i], size, (frames[0][i], frames[1][i]))
        draw_outline(panel, scene.distances(frame, parts[i], size), width_px=1.8)
        draw_label(panel, f"{time_s:.2f} s", height_px=13, plain=scene.footage is None)
        panels.append(panel)
    panels += [np.full_like(panels[0], 255)] * (-n % columns)
    return png_bytes(_grid([panels[i : i + columns] for i in range(0, len(panels), columns)]))


def video_strip(scene: Scene, performer: Performer, n: int = 6) -> bytes:
    """Return a PNG with `n` columns at moments spread over the video: frames, silhouettes, and the simulated body, in rows.

    Without footage the first row is left out.
    """
    times = moments(scene, n)
    parts = parts_around(scene, performer, times)
    size = (round(STRIP_HEIGHT_PX * parts[0].width / parts[0].height), STRIP_HEIGHT_PX)
    frames = performer.frames(scene, times)
    seen, masks, bodies = [], [], []
    for i, (time_s, part) in enumerate(zip(times.tolist(), parts, strict=True)):
        frame = scene.frame_at(time_s)
        seen.append(scene.picture(frame, part, size))
        masks.append(scene.silhouette(frame, part, size))
        bodies.append(_with_body(scene, performer, time_s, part, size, (frames[0][i], frames[1][i])))
    rows = {"silhouette": masks, "simulated": bodies}
    if scene.footage is not None:
        rows = {"video": seen, **rows}
    grid = _grid(list(rows.values()))
    strip = np.concatenate([grid, footer(times, grid.shape[1])])
    return png_bytes(np.concatenate([_gutter(list(rows), size[1], strip.shape[0]), strip], axis=1))


def parts_around(scene: Scene, performer: Performer, times_s: Array) -> list[Part]:
    """A part of the picture for each moment, all of one size and at one height, with the person and the body in it."""
    width, height = scene.camera.size
    boxes = _boxes(scene, performer, times_s)
    top, bottom = float(boxes[:, 1].min()), float(boxes[:, 3].max())
    margin = MARGIN * (bottom - top) + 1.0
    top, bottom = max(0.0, math.floor(top - margin)), min(float(height), math.ceil(bottom + margin) + 1.0)
    tall = int(bottom - top)
    wide = float((boxes[:, 2] - boxes[:, 0]).max()) + 2.0 * margin
    broad = min(width, round(np.clip(wide, NARROWEST * tall, WIDEST * tall)))
    middles = 0.5 * (boxes[:, 0] + boxes[:, 2]) + 0.5
    lefts = np.clip(np.rint(middles - 0.5 * broad), 0, width - broad).astype(int)
    return [Part(left, int(top), broad, tall) for left in lefts.tolist()]


def _boxes(scene: Scene, performer: Performer, times_s: Array) -> Array:
    """(N, 4) left, top, right, bottom of person and body together, in pixels of the picture; all of it if neither is seen."""
    persons = scene.boxes[[scene.frame_at(t) for t in times_s]]
    bodies = _body_boxes(scene, performer, times_s)
    both = np.concatenate([np.fmin(persons, bodies)[:, :2], np.fmax(persons, bodies)[:, 2:]], axis=1)
    whole = np.array([0.0, 0.0, scene.camera.size[0] - 1.0, scene.camera.size[1] - 1.0])
    return np.asarray(np.where(np.isfinite(both), both, whole))


def _body_boxes(scene: Scene, performer: Performer, times_s: Array) -> Array:
    """(N, 4) of the body alone, cut to the picture; NaN where it is outside or too near."""
    shape, view = body_shape(performer.character), scene.view(scene.whole, scene.camera.size)
    ends = view.to_camera(capsule_ends(shape, *performer.frames(scene, times_s)))
    nearest = ends[..., 2].min(axis=(1, 2))
    near = nearest < NEAREST_M
    pixels = view.to_pixels(np.where(near[:, None, None, None], 1.0, ends)).reshape(len(times_s), -1, 2)
    reach = float(shape.radii_at(performer.girth).max()) * view.pinhole[0] / np.maximum(nearest, NEAREST_M)[:, None]
    limit = np.array(scene.camera.size) - 1.0
    low, high = np.clip(pixels.min(axis=1) - reach, 0, limit), np.clip(pixels.max(axis=1) + reach, 0, limit)
    boxes = np.concatenate([low, high], axis=1)
    boxes[near | np.any(high - low < 1.0, axis=1)] = np.nan
    return boxes


def _with_body(
    scene: Scene, performer: Performer, time_s: float, part: Part, size: Size, frames: tuple[Array, Array]
) -> Image:
    picture = scene.picture(scene.frame_at(time_s), part, size)
    picture = picture if scene.footage is None else dimmed(picture)
    if time_s <= performer.clip.duration_s + 0.5 / scene.silhouettes.fps:
        performer.draw(picture, scene, part, frames)
    return picture


def _grid(rows: list[list[Image]]) -> Image:
    """Pictures of one size in rows, with white gaps."""
    height, width = rows[0][0].shape[:2]
    across, down = len(rows[0]), len(rows)
    shape = (down * (height + GAP_PX) - GAP_PX, across * (width + GAP_PX) - GAP_PX, 3)
    grid = np.full(shape, 255, np.uint8)
    for y, row in enumerate(rows):
        for x, picture in enumerate(row):
            top, left = y * (height + GAP_PX), x * (width + GAP_PX)
            grid[top : top + height, left : left + width] = picture
    return grid


def _gutter(names: list[str], row_px: int, height_px: int) -> Image:
    """The rows' names, to stand left of them."""
    gutter = np.full((height_px, GUTTER_PX, 3), STRIP, np.uint8)
    for i, name in enumerate(names):
        at = (GUTTER_PX - 14, i * (row_px + GAP_PX) + 0.5 * row_px)
        draw_text(gutter, name, at, height_px=15, colour=INK, anchor=(1.0, 0.5), bold=True)
    return gutter
