"""A camera that should stand still: a little shake (a wooden floor, a stabiliser) is undone, and more is refused."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Array, Masks
from mocap2ctrl.video.camera_path import LOOK_PIXELS, CameraPath, camera_path, small_grey
from mocap2ctrl.video.cuts import keeps_its_place
from mocap2ctrl.video.decode import Footage, Image, working_size
from mocap2ctrl.video.registration import Register, Similarity

STEADY_PX = 0.5
"""Shake below this, in pixels of the decoded frames, is less than what undoing it would blur."""
MOST_PX = 2.0
"""Shake above this, in pixels of the decoded frames, means a camera that moves.

All that follows looks at decoded frames (640x360 or so), so the limit is theirs: 2 pixels of a video of that size, 4 of 1280x720,
6 of 1920x1080. Within it near and far things part by a fraction of a pixel at most (parallax), which a background model forgives.
"""
LEAST_PX = 0.1
"""A frame that is closer than this to where the scene usually is stays as it is."""
LEAST_FOUND = 0.3
"""Share of the frames in which the first one's scene must be found again, where that has enough to be found."""
STILL_S = 1.0
"""A still part as long as this is worth naming."""
LOOKS, LOOK_SMOOTHING, LOOK_CELLS, CLEARLY = 12, 1.0, (16, 12), 0.7
"""Frames in which a path is doubted, pixels by which they are smoothed, cells that each counts for one, and the share of one
difference from the scene up to which another is clearly less."""
SCENE_FRAMES = 9
"""So many frames tell where a clean plate lies on the clip."""


def held_still(footage: Footage, where: str) -> tuple[Footage, tuple[str, ...]]:
    """The footage with a little shake of the camera undone, and sentences for the user.

    Args:
        footage: as decoded.
        where: what to call it.

    Raises:
        VideoError: the camera moves; says how much, and when.
    """
    path = camera_path(footage.images)
    if not path.rich:  # before a plain backdrop only the body has corners
        return footage, ()
    found = float(np.mean(path.known))
    if found < LEAST_FOUND:
        if keeps_its_place(footage.images):  # a codec at its limit leaves too little that is sharp
            return footage, ()
        raise VideoError(
            f"{where}: nothing in the picture keeps its place (in {100 * (1 - found):.0f} % of the frames); the camera moves, or "
            f"the scene is cut; film from a tripod, or choose a still part with --time-range A B"
        )
    shake = path.shake_px
    if shake <= STEADY_PX or _looks_still(path, footage.images):
        return footage, ()
    if shake > MOST_PX:
        raise VideoError(_moves(path, footage, where))
    exact = camera_path(footage.images, samples=len(footage.images), pixels=footage.images[0, ..., 0].size)
    scale = _source_scale(footage)
    note = f"video: the picture shakes by up to {shake * scale:.1f} pixels of the video; that is undone"
    return replace(footage, images=_stabilised(footage.images, exact)), (note,)


def _looks_still(path: CameraPath, images: Image) -> bool:
    """Whether the frames that are farthest off are more like the scene as it stands than like the scene as it is said to move.

    Before a wall with little on it most corners are the body's, and the path may be its own. Then edges of the scene, on which
    there are no corners, are where they were in more places than they are where the path puts them.
    """
    away = path.away(path.middle)
    usual = int(np.nanargmin(away))
    off = np.flatnonzero(away > STEADY_PX)
    off = off[np.argsort(away[off], kind="stable")][-LOOKS:]
    size = working_size((images.shape[2], images.shape[1]), LOOK_PIXELS)
    scale = size[0] / images.shape[2]
    scene, there = _look(images[path.frames[usual]], size), np.full((size[1], size[0]), 255, np.uint8)
    stands = goes = 0
    for index in map(int, off):
        seen = _look(images[path.frames[index]], size)
        pose = path.pose(index).after(path.pose(usual).inverse()).scaled(scale)
        inside = warped(there, pose, cv2.BORDER_CONSTANT) == 255
        here, moved = (_by_cells(cv2.absdiff(seen, other), inside) for other in (scene, warped(scene, pose)))
        stands += int(np.count_nonzero(here < CLEARLY * moved))
        goes += int(np.count_nonzero(moved < CLEARLY * here))
    return stands > goes


def _look(image: Image, size: tuple[int, int]) -> Image:
    """Grey levels of a small picture, so smooth that one that is moved is no smoother."""
    return np.asarray(cv2.GaussianBlur(small_grey(image, size), (0, 0), LOOK_SMOOTHING), np.uint8)


def _by_cells(values: Image, inside: Masks) -> Array:
    """Means of the cells of a picture, of pixels inside; NaN where there is none."""
    weights = cv2.resize(inside.astype(np.float32), LOOK_CELLS, interpolation=cv2.INTER_AREA)
    total = cv2.resize(np.where(inside, values, 0).astype(np.float32), LOOK_CELLS, interpolation=cv2.INTER_AREA)
    return np.where(weights > 0.5, total / np.maximum(weights, 0.5), np.nan)


def _source_scale(footage: Footage) -> float:
    return footage.source_size[0] / int(footage.images.shape[2])


def _moves(path: CameraPath, footage: Footage, where: str) -> str:
    """What a user is told whose camera moves; times are the file's, as those of --time-range are."""
    rate = footage.fps / footage.slowmo
    begin, end, still, over = (
        footage.start_s * footage.slowmo + frame / rate
        for frame in (*path.moving(MOST_PX), *path.longest_still(MOST_PX))
    )
    parts = [f"shifts by up to {path.farthest_px * _source_scale(footage):.0f} pixels of the video"]
    if path.turn_range * path.reach_px > MOST_PX:
        parts.append(f"turns by {np.degrees(path.turn_range):.1f} degrees")
    if path.zoom_range * path.reach_px > MOST_PX:
        parts.append(f"grows by {100 * path.zoom_range:.0f} %")
    if path.farthest_px <= MOST_PX and len(parts) > 1:
        parts = parts[1:]
    advice = "choose a still part with --time-range A B"
    if over - still >= STILL_S * footage.slowmo:
        advice = f"choose the still part with --time-range {still:.2f} {over:.2f}"
    return (
        f"{where}: the camera moves between {begin:.2f} and {end:.2f} s (the picture {', '.join(parts)}); film from a tripod, or "
        f"{advice}"
    )


def _stabilised(images: Image, path: CameraPath) -> Image:
    """Frames (T, H, W, 3) with the scene where it usually is; where nothing can be told, as between their neighbours."""
    known, frames = path.known, np.arange(len(images))
    zoom, turn, right, down = (
        np.interp(frames, path.frames[known], values[known])
        for values in (path.zoom, path.turn, path.shift.real, path.shift.imag)
    )
    full = replace(path, frames=frames, zoom=zoom, turn=turn, shift=right + 1j * down)
    away = full.away(path.middle)
    result = images.copy()
    for t in np.flatnonzero(away > LEAST_PX):
        result[t] = warped(images[t], path.middle.after(full.pose(int(t)).inverse()))
    return result


def onto_clip(picture: Image, images: Image) -> tuple[Image, float]:
    """A picture of the scene (H, W, 3), moved to where the scene is in a clip (T, H, W, 3); and how far, pixels.

    It stays as it is where it shows too little that can be found in the clip.
    """
    chosen = np.unique(np.linspace(0, len(images) - 1, SCENE_FRAMES).astype(int))
    greys = [cv2.cvtColor(images[t], cv2.COLOR_RGB2GRAY) for t in chosen]
    own = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(float)
    contrast = np.std(greys) / max(1.0, own.std())  # another exposure would look like motion
    register = Register(np.clip((own - own.mean()) * contrast + np.mean(greys), 0, 255).astype(np.uint8))
    found = [register.find(grey) for grey in greys]
    poses = [pose for pose in found if pose is not None]
    if not poses:
        return picture, 0.0
    values = np.array([(pose.a, pose.b) for pose in poses])
    a, b = (complex(np.median(v.real), np.median(v.imag)) for v in values.T)
    pose, size = Similarity(a, b), (picture.shape[1], picture.shape[0])
    path = CameraPath(np.zeros(1, int), np.abs([a]), np.angle([a]), np.array([b]), size)
    away = float(path.away(Similarity())[0])
    return (warped(picture, pose), away) if away > LEAST_PX else (picture, 0.0)


def warped(image: Image, similarity: Similarity, border: int = cv2.BORDER_REPLICATE) -> Image:
    """A picture (H, W, 3) moved by a similarity about its centre; its border is repeated, or black."""
    height, width = image.shape[:2]
    centre = complex(0.5 * (width - 1), 0.5 * (height - 1))
    a, b = similarity.a, centre + similarity.b - similarity.a * centre
    matrix = np.array([[a.real, -a.imag, b.real], [a.imag, a.real, b.imag]])
    moved = cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=border)
    return np.asarray(moved, np.uint8)
