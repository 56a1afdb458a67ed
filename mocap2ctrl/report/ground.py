"""Everything behind the body: sky, horizon, the ground with a half-metre grid, and the body's soft shadow on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.report.camera import Viewpoint, VirtualCamera
from mocap2ctrl.types import Array

Image = npt.NDArray[np.uint8]
Float = npt.NDArray[np.float32]

SKY_TOP = (203, 215, 228)
SKY_HORIZON = (244, 246, 248)
GROUND_NEAR = (206, 210, 215)
GRID_LINE = (146, 154, 166)
GRID_M = 0.5
LINE_HALF_WIDTH_M = 0.008
FADE_M = 9.0

SHADOW_SIZE_M = 4.5
SHADOW_PIXELS = 180
SHADOW_DARKNESS = 0.55
SHADOW_TINT = (1.0, 0.95, 0.88)
LIGHT_SLOPE = (0.28, 0.16)
"""Horizontal shift of the shadow for a metre of height, along the camera's right and forward directions."""


@dataclass(frozen=True, eq=False)
class _Backdrop:
    """What does not change while a camera moves in the ground plane.

    Attributes:
        image: sky and ground without lines, RGB (H, W, 3).
        ground: the rows below the horizon as float planes (3, H - first_row, W).
        first_row: first row that is below the horizon.
        offset_x, offset_y: (H - first_row, W) ground point of each pixel from the camera's foot, metres, world axes.
        footprint_x, footprint_y: (H - first_row, 1 or W) size of a pixel on the ground along world axes, metres.
        strength: (H - first_row, W) how clearly lines show: none far away, 1 near.
    """

    image: Image
    ground: Float
    first_row: int
    offset_x: Float
    offset_y: Float
    footprint_x: Float
    footprint_y: Float
    strength: Float


@lru_cache(maxsize=8)
def _backdrop(size: tuple[int, int], focal: float, azimuth: float, pitch: float, height: float) -> _Backdrop:
    camera = VirtualCamera(np.array([0.0, 0.0, height]), azimuth, pitch, focal, size)
    width, rows = size
    u, v = np.meshgrid(np.arange(width) - (width - 1) / 2.0, np.arange(rows) - (rows - 1) / 2.0)
    rays = np.stack([u / focal, v / focal, np.ones_like(u)], axis=-1) @ camera.axes
    horizon = float(np.clip((rows - 1) / 2.0 - focal * np.tan(pitch), 0.0, rows - 2.0))
    first = int(np.ceil(horizon)) + 1
    sky_share = np.clip((horizon - np.arange(rows)) / max(horizon, 1.0), 0.0, 1.0)[:, None, None] ** 0.8
    image = (1.0 - sky_share) * np.array(SKY_HORIZON) + sky_share * np.array(SKY_TOP)
    image = np.broadcast_to(image, (rows, width, 3)).copy()
    below = rays[first:]
    scale = height / np.maximum(-below[..., 2], 1e-6)
    x, y = below[..., 0] * scale, below[..., 1] * scale
    fog = np.exp(-((np.hypot(x, y) / FADE_M) ** 2))
    image[first:] = fog[..., None] * np.array(GROUND_NEAR) + (1.0 - fog[..., None]) * np.array(SKY_HORIZON)
    footprints = [np.maximum(np.hypot(*np.gradient(c)), 1e-4) for c in (x, y)]
    arrays = [np.ascontiguousarray(a, np.float32) for a in (x, y, *footprints, fog)]
    ground = np.ascontiguousarray(np.moveaxis(image[first:], -1, 0), np.float32)
    return _Backdrop(np.rint(image).astype(np.uint8), ground, first, *arrays)


def background(camera: VirtualCamera) -> Image:
    """Sky and gridded ground as seen by `camera`, RGB (H, W, 3)."""
    drop = _backdrop(camera.size, camera.focal_px, camera.azimuth, camera.pitch, float(camera.position[2]))
    coverage = np.maximum(
        _line_coverage(drop.offset_x, drop.footprint_x, float(camera.position[0])),
        _line_coverage(drop.offset_y, drop.footprint_y, float(camera.position[1])),
    )
    coverage *= drop.strength
    image = drop.image.copy()
    planes = [plane + coverage * (np.float32(line) - plane) for plane, line in zip(drop.ground, GRID_LINE, strict=True)]
    image[drop.first_row :] = cv2.merge([plane.astype(np.uint8) for plane in planes])
    return image


def _line_coverage(offset: Float, footprint: Float, camera_coordinate: float) -> Float:
    """Share of each pixel that lines every `GRID_M` metres cover: box-filtered, so they fade instead of flickering."""
    distance = offset + np.float32(camera_coordinate % GRID_M)
    distance *= np.float32(1.0 / GRID_M)
    distance -= np.rint(distance)
    coverage = np.abs(distance, out=distance)
    coverage *= np.float32(-GRID_M)
    coverage += np.float32(LINE_HALF_WIDTH_M)
    coverage /= footprint
    coverage += np.float32(0.5)
    np.maximum(coverage, np.float32(0.0), out=coverage)
    widest = np.float32(2 * LINE_HALF_WIDTH_M)
    return np.asarray(np.minimum(coverage, widest / np.maximum(footprint, widest)))


def add_shadow(
    image: Image, camera: Viewpoint, ends_world: Array, radii: Array, strength: float = 1.0, ground_m: float = 0.0
) -> None:
    """Darken the ground of `image` under capsules: sharp and dark at contact, wide and faint under a body in the air.

    Args:
        image: RGB (H, W, 3), changed in place.
        camera: the image's camera.
        ends_world: (C, 2, 3) capsule ends, metres.
        radii: (C,) metres.
        strength: 1 for a full shadow, 0 for none.
        ground_m: height of the ground that it falls on, metres.
    """
    ends_world = ends_world - np.array([0.0, 0.0, ground_m])
    centre = ends_world[..., :2].mean(axis=(0, 1))
    shift = np.outer(ends_world[..., 2].ravel(), _light_shift(camera)).reshape(*ends_world.shape[:2], 2)
    scale = SHADOW_PIXELS / SHADOW_SIZE_M
    pixels = (ends_world[..., :2] + shift - centre) * scale + SHADOW_PIXELS / 2.0
    near = np.exp(-np.maximum(ends_world[..., 2].min(axis=1) - radii, 0.0) / 0.12)
    soft, sharp = (np.zeros((SHADOW_PIXELS, SHADOW_PIXELS), np.float32) for _ in range(2))
    for (start, end), radius, contact in zip(np.rint(pixels * 16).astype(int), radii * scale, near, strict=True):
        width = max(1, round(2.0 * radius))
        cv2.line(soft, start, end, 0.62, width, cv2.LINE_AA, 4)
        if contact > 0.05:
            cv2.line(sharp, start, end, float(contact), max(1, round(2.4 * radius)), cv2.LINE_AA, 4)
    shade = np.maximum(cv2.GaussianBlur(soft, (0, 0), 4.5), 1.15 * cv2.GaussianBlur(sharp, (0, 0), 1.5))
    _multiply_ground(image, camera, shade * (SHADOW_DARKNESS * strength), np.append(centre, ground_m))


def _light_shift(camera: Viewpoint) -> Array:
    right = camera.axes[0, :2] / max(float(np.linalg.norm(camera.axes[0, :2])), 1e-9)
    forward = np.array([-right[1], right[0]])
    return np.asarray(LIGHT_SLOPE[0] * right + LIGHT_SLOPE[1] * forward)


def _multiply_ground(image: Image, camera: Viewpoint, shade: Float, centre: Array) -> None:
    """Lay the square map `shade` (0 none, 1 black) on level ground around `centre` (3,) and darken `image` by it."""
    half = SHADOW_SIZE_M / 2.0
    corners = np.array([[-half, -half], [half, -half], [half, half], [-half, half]])
    world = centre + np.concatenate([corners, np.zeros((4, 1))], axis=1)
    if np.any(camera.to_camera(world)[:, 2] < 0.1):
        return
    source = ((corners + half) * (SHADOW_PIXELS / SHADOW_SIZE_M)).astype(np.float32)
    target = camera.project(world)
    low = np.clip(np.floor(target.min(axis=0)), 0, camera.size).astype(int)
    high = np.clip(np.ceil(target.max(axis=0)) + 1, 0, camera.size).astype(int)
    if np.any(high <= low):
        return
    mapping = cv2.getPerspectiveTransform(source, (target - low).astype(np.float32))
    light = cv2.merge([np.asarray(255.0 * (1.0 - shade * tint), np.uint8) for tint in SHADOW_TINT])
    window = image[low[1] : high[1], low[0] : high[0]]
    laid = cv2.warpPerspective(light, mapping, window.shape[1::-1], borderValue=(255, 255, 255))
    cv2.multiply(window, laid, dst=window, scale=1.0 / 255.0)
