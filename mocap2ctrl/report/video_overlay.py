"""The overlay of a video: the frame with the person outlined, beside it the simulated body seen by the same camera."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from mocap2ctrl.files import replacing
from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.keypoints import draw_keypoints
from mocap2ctrl.report.overlay import CAPTION_SHARE, STRIP, draw_strip, encode_h264
from mocap2ctrl.report.performer import Performer
from mocap2ctrl.report.scene import Scene, Size, dimmed, draw_outline, greyed
from mocap2ctrl.report.text import draw_label
from mocap2ctrl.types import Array

HEIGHT_PX = 540
WIDEST_PX = 1920
SMOOTH_FPS = 20.0
"""Video at a lower rate is shown several frames for each of its own, so that the body moves smoothly."""


def write_video_overlay(
    path: str | os.PathLike[str],
    scene: Scene,
    performer: Performer,
    *,
    caption: Callable[[float], str] | None = None,
) -> None:
    """Write an H.264 video at the silhouettes' rate, as long as the longer of scene and performance.

    Args:
        path: the `.mp4`; it appears only when it is complete.
        scene: what the camera saw; after its end its last frame is held, in grey.
        performer: the simulated body; after its end it holds its last pose.
        caption: text for the strip below at a time in seconds.
    """
    size = overlay_size(scene.camera.size)
    frames = video_overlay_frames(scene, performer, caption=caption)
    with replacing(path) as temporary:
        encode_h264(temporary, frames, overlay_fps(scene), size)


def video_overlay_frames(
    scene: Scene, performer: Performer, *, caption: Callable[[float], str] | None = None
) -> Iterator[Image]:
    """Yield the frames of `write_video_overlay`, RGB (H, W, 3), one after the other."""
    fps = float(overlay_fps(scene))
    duration = max(scene.duration_s, performer.clip.duration_s)
    times = np.arange(int(np.floor(duration * fps + 1e-6)) + 1) / fps
    positions, orientations = performer.frames(scene, times)
    size = overlay_size(scene.camera.size)
    for time_s, *frames in zip(times.tolist(), positions, orientations, strict=True):
        image = np.full((size[1], size[0], 3), STRIP, np.uint8)
        for column, panel in enumerate(_panels(scene, performer, time_s, (frames[0], frames[1]), size)):
            left = column * (size[0] // 2)
            image[: panel.shape[0], left : left + panel.shape[1]] = panel
        image[: panel_size(size)[1], size[0] // 2 - 1 : size[0] // 2 + 1] = 255
        draw_strip(image, time_s, float(times[-1]), "" if caption is None else caption(time_s))
        yield image


def overlay_fps(scene: Scene) -> Fraction:
    """Frames a second of the overlay: the silhouettes', or a multiple of them."""
    fps = scene.silhouettes.fps
    return Fraction(fps * max(1, int(np.ceil(SMOOTH_FPS / fps)))).limit_denominator(1001)


def overlay_size(picture: Size) -> Size:
    """Even width and height of the overlay for a picture of any size: two panels and the strip, on a screen of today."""
    height = HEIGHT_PX
    while True:
        panel = height - round(height * CAPTION_SHARE)
        width = 4 * max(16, round(0.5 * picture[0] / picture[1] * panel))
        if width <= WIDEST_PX or height <= 64:
            return min(width, WIDEST_PX), height
        height -= 2


def panel_size(overlay: Size) -> Size:
    """Width and height of one of an overlay's two panels."""
    return overlay[0] // 2, overlay[1] - round(overlay[1] * CAPTION_SHARE)


def _panels(
    scene: Scene, performer: Performer, time_s: float, frames: tuple[Array, Array], overlay: Size
) -> tuple[Image, Image]:
    """The frame with the outline, and the body over the frame."""
    part, size = scene.whole, panel_size(overlay)
    frame, over = scene.frame_at(time_s), time_s > scene.duration_s + 0.5 / scene.silhouettes.fps
    seen = scene.picture(frame, part, size)
    behind = seen.copy() if scene.footage is None else dimmed(seen)
    if over:
        seen, behind = greyed(seen), greyed(behind)
    elif scene.footage is not None:
        draw_outline(seen, scene.distances(frame, part, size))
    if not over:
        draw_keypoints(seen, scene, frame, part, size)
    performer.draw(behind, scene, part, frames)
    name, plain = ("silhouettes", True) if scene.footage is None else ("video", False)
    height = max(11, size[1] // 30)
    draw_label(seen, f"{name} (ended)" if over else name, height_px=height, plain=plain, faint=over)
    draw_label(behind, "simulated", height_px=height, plain=plain)
    return seen, behind
