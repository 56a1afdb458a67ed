"""What a camera implies, drawn into its picture: the ground in cells of a metre, the horizon, a rod of known height, arrows."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.geometry.camera import on_plane, project, world_to_camera
from mocap2ctrl.report.ground import Float, Image
from mocap2ctrl.report.text import Colour, draw_text
from mocap2ctrl.types import Array, Camera

CELL_M = 1.0
GRID, HORIZON, ROD, ARROW = (120, 224, 255), (255, 170, 60), (255, 255, 255), (255, 110, 180)
HALO: Colour = (20, 22, 26)
LINE_HALF_PX = 1.1
GRID_STRENGTH = 0.9
FADE_M = 7.0
"""Distance from the person at which the grid has faded to a third."""
FINEST_PX = 5.0
"""Cells smaller than this are no longer drawn."""
TICK_M, TICK_PX = 0.5, 7
SUBPIXEL = 4
"""OpenCV's fractional bits of a pixel."""
DASHES = 60
HEAD_SHARE = 0.28
"""Of an arrow's length."""


def draw_grid(image: Image, camera: Camera, around_m: Array) -> None:
    """Draw lines on the ground at whole metres of the world, in place, fading away from `around_m` (2,)."""
    height, width = image.shape[:2]
    columns, rows = np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float))
    ground = on_plane(camera, np.stack([columns, rows], axis=-1))[..., :2]
    with np.errstate(invalid="ignore"):
        cover = np.nan_to_num(np.maximum(_lines(ground[..., 0]), _lines(ground[..., 1])))
        far = np.nan_to_num(np.linalg.norm(ground - around_m, axis=-1), nan=np.inf)
    _lay(image, GRID, cover * GRID_STRENGTH * np.exp(-((far / FADE_M) ** 2)))


def _lines(coordinate_m: Array) -> Array:
    """(H, W) how much of each pixel lines at whole cells cover; they fade out where cells are a few pixels."""
    footprint = np.maximum(np.hypot(*np.gradient(coordinate_m)), 1e-9)
    off = np.abs(coordinate_m / CELL_M - np.rint(coordinate_m / CELL_M)) * CELL_M
    cover = np.clip(LINE_HALF_PX + 0.5 - off / footprint, 0.0, 1.0)
    return np.asarray(cover * np.clip(CELL_M / footprint / FINEST_PX - 1.0, 0.0, 1.0))


def horizon(camera: Camera) -> tuple[Array, Array] | None:
    """The horizon's pixels (2,) at the first and the last column; None if it is upright or nowhere."""
    # A pixel p is on it when the ray K^-1 p, in the world, has no vertical part.
    line = np.linalg.inv(camera.matrix).T @ world_to_camera(camera)[:, 2]
    if abs(line[1]) < 1e-9 * np.linalg.norm(line):
        return None
    ends = np.array([0.0, camera.size[0] - 1.0])
    rows = -(line[0] * ends + line[2]) / line[1]
    return np.array([ends[0], rows[0]]), np.array([ends[1], rows[1]])


def draw_horizon(image: Image, camera: Camera, *, height_px: int) -> None:
    """Draw it dashed, in place, with its name; a horizon outside of the picture is named at the border that it lies beyond."""
    ends, bottom = horizon(camera), image.shape[0] - 1.0
    if ends is None:
        return
    middle = 0.5 * (ends[0][1] + ends[1][1])
    inside = max(ends[0][1], ends[1][1]) >= 0.0 and min(ends[0][1], ends[1][1]) <= bottom
    if inside:
        along = np.linspace(0.0, 1.0, 2 * DASHES + 1)[:, None]
        points = ends[0] + along * (ends[1] - ends[0])
        _draw_lines(image, list(zip(points[:-1:2], points[1::2], strict=False)), HORIZON, 2)
    name = (
        "horizon"
        if inside
        else "the horizon is above the picture"
        if middle < 0
        else "the horizon is below the picture"
    )
    row = float(np.clip(ends[1][1] - height_px, height_px, bottom - height_px))
    _name(image, name, (image.shape[1] - 10.0, row), HORIZON, height_px, (1.0, 0.5))


def draw_rod(image: Image, camera: Camera, foot_m: Array, tall_m: float, *, height_px: int) -> None:
    """Draw a rod that stands at `foot_m` (2,), in place, with a tick each half metre and its height above it."""
    levels = np.append(np.arange(0.0, tall_m, TICK_M), tall_m)
    points = project(camera, np.column_stack([np.tile(foot_m, (len(levels), 1)), levels]))
    if not np.isfinite(points).all():
        return
    across = np.array([TICK_PX, 0.0])
    ticks = [(point - across, point + across) for point in points]
    _draw_lines(image, [(points[0], points[-1]), *ticks], ROD, 2)
    above = max(float(points[-1][1]) - 0.9 * height_px, 0.8 * height_px)  # within the picture
    _name(image, f"{tall_m:.2f} m", (float(points[-1][0]) + 2 * TICK_PX, above), ROD, height_px, (0.0, 0.5))


def draw_arrow(image: Image, camera: Camera, start_m: Array, heading: float, length_m: float) -> None:
    """Draw an arrow that lies on the ground, in place, from `start_m` (2,) in the direction `heading`, radians about z from x."""
    forward = np.array([np.cos(heading), np.sin(heading)])
    tip, back = start_m + length_m * forward, start_m + (1.0 - HEAD_SHARE) * length_m * forward
    side = 0.5 * HEAD_SHARE * length_m * np.array([-forward[1], forward[0]])
    ground = np.stack([start_m, tip, back + side, back - side])
    points = project(camera, np.column_stack([ground, np.zeros(4)]))
    if np.isfinite(points).all():
        _draw_lines(image, [(points[0], points[1]), (points[1], points[2]), (points[1], points[3])], ARROW, 3)


def _draw_lines(image: Image, lines: list[tuple[Array, Array]], colour: Colour, width_px: int) -> None:
    """Smooth lines between pixels, on a dark halo."""
    for ink, thick in ((HALO, width_px + 2), (colour, width_px)):
        cover = np.zeros(image.shape[:2], np.uint8)
        for start, end in lines:
            cv2.line(cover, _fixed(start), _fixed(end), 255, thick, cv2.LINE_AA, SUBPIXEL)
        _lay(image, ink, cover * ((0.6 if ink == HALO else 1.0) / 255.0))


def _fixed(point: Array) -> tuple[int, int]:
    x, y = np.clip(np.rint(point * 2.0**SUBPIXEL), -(2**24), 2**24)
    return int(x), int(y)


def _name(
    image: Image, text: str, at: tuple[float, float], colour: Colour, height_px: int, anchor: tuple[float, float]
) -> None:
    for shift in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        place = (at[0] + shift[0], at[1] + shift[1])
        draw_text(image, text, place, height_px=height_px, colour=HALO, anchor=anchor, bold=True)
    draw_text(image, text, at, height_px=height_px, colour=colour, anchor=anchor, bold=True)


def _lay(image: Image, colour: Colour, cover: npt.NDArray[np.float64] | Float) -> None:
    """Blend a colour into an image where `cover` (H, W), 0 to 1, says."""
    share = np.asarray(cover, np.float32)[..., None]
    np.copyto(image, np.rint(image + share * (np.array(colour, np.float32) - image)).astype(np.uint8))
