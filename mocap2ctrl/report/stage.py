"""A video of several characters on one ground, seen by one camera."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from mocap2ctrl.character import Character
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.files import replacing
from mocap2ctrl.report.camera import VirtualCamera, camera_path
from mocap2ctrl.report.clips import sampled_frames
from mocap2ctrl.report.ground import Image, add_shadow, background
from mocap2ctrl.report.overlay import CAPTION_SHARE, STRIP, check_video_format, draw_strip, encode_h264
from mocap2ctrl.report.render import draw_frames
from mocap2ctrl.types import Array, MotionClip

REACH_M = 0.9
"""How far a body's limbs reach from its root, by its height."""
WIDEST_M = 5.0
"""Bodies that are further than this from the middle of all may leave the picture."""

Frames = Sequence[tuple[Array, Array]]
"""Of each body, positions (N, S, 3) and orientations (N, S, 4) of its segments."""


def write_stage_video(
    path: str | os.PathLike[str],
    character: Character,
    clips: Sequence[MotionClip],
    *,
    fps: int = 30,
    size: tuple[int, int] = (960, 540),
) -> None:
    """Write an H.264 video of all clips together, as long as the longest one; one that ended holds its last pose.

    Raises:
        ConfigError: for a size or frame rate that H.264 in 4:2:0 cannot hold.
    """
    check_video_format(fps, size)
    with replacing(path) as temporary:
        encode_h264(temporary, stage_frames(character, clips, fps=fps, size=size), fps, size)


def stage_frames(
    character: Character, clips: Sequence[MotionClip], *, fps: int, size: tuple[int, int]
) -> Iterator[Image]:
    """Yield the frames of `write_stage_video`, RGB (H, W, 3)."""
    duration = max(clip.duration_s for clip in clips)
    times = np.arange(int(np.floor(duration * fps + 1e-6)) + 1) / fps
    strip = round(size[1] * CAPTION_SHARE)
    bodies = [sampled_frames(character, clip, times) for clip in clips]
    cameras = _cameras(character, bodies, fps, (size[0], size[1] - strip))
    for number, camera in enumerate(cameras):
        image = np.empty((size[1], size[0], 3), np.uint8)
        image[size[1] - strip :] = STRIP
        image[: size[1] - strip] = _picture(camera, character, bodies, number)
        draw_strip(image, float(times[number]), float(times[-1]), f"{len(clips)} characters")
        yield image


def _cameras(character: Character, bodies: Frames, fps: float, size: tuple[int, int]) -> list[VirtualCamera]:
    """Cameras that follow the middle of all bodies, far enough away to see them."""
    roots = np.stack([positions[:, 0] for positions, _ in bodies])
    middle = roots.mean(axis=0)
    apart = float(np.linalg.norm((roots - middle)[..., :2], axis=-1).max())
    top = max(float(positions[..., 2].max()) for positions, _ in bodies)
    extent = (min(apart, WIDEST_M) + REACH_M * character.height_m, top + 0.14 * character.height_m)
    return camera_path(middle, middle, height_m=character.height_m, extent_m=extent, fps=fps, size=size)


def _picture(camera: VirtualCamera, character: Character, bodies: Frames, number: int) -> Image:
    """All shadows, and then the bodies from far to near."""
    picture, shape = background(camera).copy(), body_shape(character)
    frames = [(positions[number], orientations[number]) for positions, orientations in bodies]
    for body in frames:
        add_shadow(picture, camera, capsule_ends(shape, *body), shape.radii)
    depths = [float(camera.to_camera(positions[:1])[0, 2]) for positions, _ in frames]
    for index in np.argsort(depths)[::-1]:
        draw_frames(picture, camera, character, *frames[index], shadow=0.0)
    return picture
