"""Pictures of an inspection: frames with the person outlined, the empty scene, the ground that a camera implies, first poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import VideoError
from mocap2ctrl.geometry.camera import on_plane
from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.inspection_ground import draw_arrow, draw_grid, draw_horizon, draw_rod
from mocap2ctrl.report.inspection_person import SeenPerson
from mocap2ctrl.report.render import draw_frames
from mocap2ctrl.report.scene import Part, Scene, Size, dimmed, draw_outline, footage_of
from mocap2ctrl.report.text import draw_label
from mocap2ctrl.track.first_look import FirstPose
from mocap2ctrl.types import Camera, Masks
from mocap2ctrl.video.silhouettes import LoadedSilhouettes

FRAMES, COLUMNS, TALL_COLUMNS = 8, 4, 8
SHEET_PX, LARGE_PX, POSE_PX = 1600, 1200, 520
TALLEST = 1.35
"""Height over width of the largest picture on a page; taller ones are narrower."""
GAP_PX = 4
QUALITY = 90
CUT_MARGIN, CUT_ASPECT = 0.18, 0.8
ARROW_SHARE = 0.45
"""Of body height: the arrow that shows where a body faces."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A loaded input as pictures of its whole field of view.

    Attributes:
        scene: silhouettes, and frames if there are any.
        whole: the input's picture, in pixels of the scene.
        pixels: of the input's picture for one of the scene's.
        background: the empty scene.
    """

    scene: Scene
    whole: Part
    pixels: float
    background: Image | None

    def size(self, width_px: int) -> Size:
        """Width and height of a large picture of it."""
        width = min(width_px, round(width_px * TALLEST * self.whole.width / self.whole.height))
        return width, max(1, round(width * self.whole.height / self.whole.width))

    def camera(self, part: Part, size: Size) -> Camera:
        """That sees a part of it at a size."""
        return self.scene.view(part, size).camera


def shown(loaded: LoadedSilhouettes) -> Shown:
    """Masks have no frames: their pictures reach as far as the camera does."""
    scene = Scene(loaded.silhouettes, footage_of(loaded))
    if scene.footage is not None:
        return Shown(scene, scene.whole, 1.0, loaded.background)
    inner, outer = loaded.silhouettes.camera, loaded.frames_camera
    scale = np.diag(inner.matrix)[:2] / np.diag(outer.matrix)[:2]
    corner = np.array(inner.matrix[:2, 2]) + 0.5 - (np.array(outer.matrix[:2, 2]) + 0.5) * scale
    part = Part(*np.rint(corner).astype(int).tolist(), *np.rint(np.array(outer.size) * scale).astype(int).tolist())
    return Shown(scene, part, float(1.0 / scale[1]), None)


def jpeg(image: Image) -> bytes:
    """Encodes an RGB photograph (H, W, 3).

    Raises:
        VideoError: it has no pixel, or too many.
    """
    done, encoded = cv2.imencode(".jpg", np.ascontiguousarray(image[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not done:
        raise VideoError(f"an image of shape {image.shape} cannot be written as JPEG")
    return encoded.tobytes()


def spread(count: int, n: int = FRAMES) -> list[int]:
    """At most `n` indices, evenly spread over `count`."""
    chosen = np.unique(np.linspace(0, count - 1, min(n, count)).round().astype(int))
    return [int(i) for i in chosen]


def frames_picture(seen: Shown, start_s: float) -> bytes:
    """Frames spread over what is used, the person outlined."""
    columns = _columns(seen.whole.width, seen.whole.height)
    size = _small(seen.whole.width, seen.whole.height, columns)
    panels = []
    for t in spread(len(seen.scene.silhouettes)):
        panel = seen.scene.picture(t, seen.whole, size)
        if seen.scene.footage is not None:
            draw_outline(panel, seen.scene.distances(t, seen.whole, size), width_px=1.6)
        time_s = start_s + t / seen.scene.silhouettes.fps
        draw_label(panel, f"{time_s:.2f} s", height_px=13, plain=seen.scene.footage is None)
        panels.append(panel)
    return jpeg(grid(panels, columns))


def plain_frames_picture(images: Sequence[Image], times_s: Sequence[float], masks: Masks | None = None) -> bytes:
    """Frames (H, W, 3) as they are, or with masks (T, H, W) of something outlined."""
    height, width = images[0].shape[:2]
    columns = _columns(width, height)
    size = _small(width, height, columns)
    panels = []
    for i, image in enumerate(images):
        panel = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        if masks is not None:
            large = cv2.resize(masks[i].astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
            outlines, _ = cv2.findContours(large, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
            cv2.drawContours(panel, outlines, -1, (255, 224, 50), 2, cv2.LINE_AA)
        draw_label(panel, f"{times_s[i]:.2f} s", height_px=13)
        panels.append(panel)
    return jpeg(grid(panels, columns))


def _columns(width: int, height: int) -> int:
    return COLUMNS if width >= height else TALL_COLUMNS


def _small(width: int, height: int, columns: int) -> Size:
    wide = (SHEET_PX - (columns - 1) * GAP_PX) // columns
    return wide, max(1, round(wide * height / width))


def grid(panels: Sequence[Image], columns: int) -> Image:
    """Pictures of one size in rows, with white gaps."""
    height, width = panels[0].shape[:2]
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    result = np.full((rows * (height + GAP_PX) - GAP_PX, columns * (width + GAP_PX) - GAP_PX, 3), 255, np.uint8)
    for i, panel in enumerate(panels):
        top, left = (i // columns) * (height + GAP_PX), (i % columns) * (width + GAP_PX)
        result[top : top + height, left : left + width] = panel
    return result


def background_picture(background: Image, size: Size) -> bytes:
    """The empty scene."""
    smaller = size[0] < background.shape[1]
    method = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return jpeg(np.asarray(cv2.resize(background, size, interpolation=method), np.uint8))


def camera_picture(seen: Shown, person: SeenPerson, tall_m: float) -> bytes:
    """The frame in which somebody stands most upright, the ground in cells of a metre, the horizon, and a rod at the feet.

    Args:
        seen: the input.
        person: where the person is.
        tall_m: height of the rod.
    """
    off_m = np.abs(person.tall_m - tall_m) + np.linalg.norm(person.soles_m - person.path_m, axis=1)
    known = bool(np.isfinite(off_m).any())
    t = int(np.nanargmin(off_m)) if known else 0
    size = seen.size(LARGE_PX)
    camera = seen.camera(seen.whole, size)
    picture = seen.scene.picture(t, seen.whole, size).copy()
    if seen.scene.footage is None:
        picture = dimmed(picture)
    foot = person.soles_m[t] if known else on_plane(camera, np.array(size) * [0.5, 0.95])[:2]
    text = max(13, min(size) // 36)
    if np.isfinite(foot).all():
        draw_grid(picture, camera, foot)
    draw_horizon(picture, camera, height_px=text)
    if known:
        draw_rod(picture, camera, foot, tall_m, height_px=text)
    draw_label(picture, f"{person.times_s[t]:.2f} s", height_px=text)
    return jpeg(picture)


def poses_picture(seen: Shown, character: Character, poses: Sequence[FirstPose], names: Sequence[str]) -> bytes:
    """The person outlined, and each pose over the frame, with an arrow on the ground to where it faces."""
    frame = poses[0].frame
    part = _around_person(seen.scene, frame)
    size = (round(POSE_PX * CUT_ASPECT), POSE_PX)
    camera = seen.camera(part, size)
    plain = seen.scene.footage is None
    first = seen.scene.picture(frame, part, size).copy()
    outline = seen.scene.distances(frame, part, size)
    draw_outline(first, outline, width_px=1.8)
    draw_label(first, "first frame", height_px=15, plain=plain)
    panels = [first]
    for pose, name in zip(poses, names, strict=True):
        panel = seen.scene.picture(frame, part, size)
        panel = panel.copy() if plain else dimmed(panel)
        ground = np.array(pose.pose.root_position[:2])
        draw_arrow(panel, camera, ground, pose.heading, ARROW_SHARE * character.height_m)
        at = segment_frames(character, pose.pose.root_position, pose.pose.root_orientation, pose.pose.angles)
        draw_frames(panel, seen.scene.view(part, size), character, *at, shadow=0.0)
        draw_outline(panel, outline, width_px=1.8)
        draw_label(panel, name, height_px=15, plain=plain)
        panels.append(panel)
    return jpeg(grid(panels, len(panels)))


def _around_person(scene: Scene, frame: int) -> Part:
    """A part around the person, of one shape; it may reach beyond the picture only where there are no frames."""
    left, top, right, bottom = scene.boxes[frame]
    tall = (1.0 + 2.0 * CUT_MARGIN) * max(bottom - top, (right - left) / CUT_ASPECT)
    if scene.footage is not None:
        tall = min(tall, float(scene.camera.size[1]), scene.camera.size[0] / CUT_ASPECT)
    size = np.array([max(4, int(CUT_ASPECT * tall)), max(5, int(tall))])
    corner = np.rint(0.5 * np.array([left + right, top + bottom]) - 0.5 * size)
    if scene.footage is not None:
        corner = np.clip(corner, 0, np.array(scene.camera.size) - size)
    return Part(int(corner[0]), int(corner[1]), int(size[0]), int(size[1]))
