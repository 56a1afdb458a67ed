"""The overlay video: reference and simulated body side by side, seen by one camera."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import av
import numpy as np

from mocap2ctrl.character import Character
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.files import replacing
from mocap2ctrl.report.camera import FOLLOW_SIGMA_S, PARTED, VirtualCamera, camera_path, parting, smoothed
from mocap2ctrl.report.clips import sampled_frames
from mocap2ctrl.report.ground import Image, background
from mocap2ctrl.report.render import draw_frames
from mocap2ctrl.report.surroundings import dent_m, draw_ground, draw_pushes, ground_below, is_plain
from mocap2ctrl.report.text import INK, PALE, draw_text
from mocap2ctrl.simulation.environment import LEVEL, Environment, Load
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array, MotionClip

CAPTION_SHARE = 1.0 / 9.0
STRIP = (250, 250, 251)
RULE = (222, 226, 231)
PROGRESS = (64, 132, 196)
ENDED_FADE = 0.85
CRF = "20"

BEYOND_SEGMENTS = 0.14
"""What reaches beyond the origin of the last segment (a hand, the head), as a share of body height."""


@dataclass(frozen=True, eq=False)
class Panels:
    """Two clips on one clock, with the cameras that see both.

    Attributes:
        character: the body.
        times_s: (N,) seconds.
        frames: for reference and simulated, segment positions (N, S, 3) and orientations (N, S, 4).
        cameras: N cameras.
        durations_s: of the reference and of the simulated clip.
        environment: of the simulated body; the reference is on level ground.
        pushes: on the simulated body.
        ground_m: (N,) height of the ground below the simulated body, which its cameras follow, metres.
        shifts_m: (2, N, 2) how far from the common camera each panel's own stands, so that bodies which have parted stay in sight.
    """

    character: Character
    times_s: Array
    frames: tuple[tuple[Array, Array], tuple[Array, Array]]
    cameras: Sequence[VirtualCamera]
    durations_s: tuple[float, float]
    environment: Environment
    pushes: Sequence[Push]
    ground_m: Array
    shifts_m: Array

    def images(self, index: int) -> tuple[Image, Image]:
        """Draw reference and simulated panel at frame `index`, RGB; an ended clip holds its last pose, in grey."""
        camera, follower = (self._shifted(side, index) for side in (0, 1))
        reference = background(camera)
        simulated = reference.copy() if follower is camera else background(follower)
        self._draw_body(0, reference, camera, index)
        ground, time_s = float(self.ground_m[index]), float(self.times_s[index])
        raised = replace(follower, position=follower.position + np.array([0.0, 0.0, ground])) if ground else follower
        positions, orientations = (a[index] for a in self.frames[1])
        dent = dent_m(self.environment, self.character, (positions, orientations))
        if not is_plain(self.environment):
            last_s = min(time_s, self.durations_s[1])
            draw_ground(simulated, raised, self.environment, positions[0], last_s, dent)
        self._draw_body(1, simulated, raised, index, loads=self.environment.loads, ground_m=ground - dent)
        draw_pushes(simulated, raised, self.character, (positions, orientations), self.pushes, time_s)
        return reference, simulated

    def _shifted(self, side: int, index: int) -> VirtualCamera:
        camera, shift = self.cameras[index], self.shifts_m[side, index]
        return replace(camera, position=camera.position + np.append(shift, 0.0)) if np.any(shift) else camera

    def _draw_body(
        self,
        side: int,
        picture: Image,
        camera: VirtualCamera,
        index: int,
        *,
        loads: tuple[Load, ...] = (),
        ground_m: float = 0.0,
    ) -> None:
        frames = (a[index] for a in self.frames[side])
        fade = ENDED_FADE if self.times_s[index] > self.durations_s[side] + 1e-6 else 0.0
        draw_frames(picture, camera, self.character, *frames, fade=fade, loads=loads, ground_m=ground_m)


def panels(
    character: Character,
    reference: MotionClip,
    simulated: MotionClip,
    times_s: Array,
    *,
    size: tuple[int, int],
    fps: float,
    environment: Environment = LEVEL,
    pushes: Sequence[Push] = (),
) -> Panels:
    """Sample both clips at `times_s` (N,), evenly `fps` a second or, at `fps` 0, far apart, for panels of `size`."""
    frames = [sampled_frames(character, clip, times_s) for clip in (reference, simulated)]
    roots = [positions[:, 0] for positions, _ in frames]
    held = times_s > reference.duration_s + 1e-6
    followed = np.where(held[:, None], roots[1], roots[0])
    durations = (reference.duration_s, simulated.duration_s)
    below = smoothed(ground_below(environment, roots[1], np.minimum(times_s, durations[1]))[:, None], 0.2 * fps)[:, 0]
    above = (frames[1][0] - np.array([0.0, 0.0, 1.0]) * below[:, None, None], frames[1][1])
    cameras = camera_path(
        followed,
        roots[1],
        height_m=character.height_m,
        extent_m=_extent(character, (frames[0], above)),
        fps=fps,
        size=size,
    )
    shifts = parting(followed, roots[1], PARTED * character.height_m, FOLLOW_SIGMA_S * fps)
    return Panels(character, times_s, (frames[0], frames[1]), cameras, durations, environment, pushes, below, shifts)


def _extent(character: Character, frames: Sequence[tuple[Array, Array]]) -> tuple[float, float]:
    """How far segments reach sideways from the root, and up from the ground, metres, with a margin for their size."""
    positions = [positions for positions, _ in frames]
    reach = max(float(np.linalg.norm((p - p[:, :1])[..., :2], axis=-1).max()) for p in positions)
    top = max(float(p[..., 2].max()) for p in positions)
    margin = BEYOND_SEGMENTS * character.height_m
    return reach + margin, top + margin


def write_overlay(
    path: str | os.PathLike[str],
    character: Character,
    reference: MotionClip,
    simulated: MotionClip,
    *,
    fps: int = 30,
    size: tuple[int, int] = (960, 540),
    labels: tuple[str, str] = ("reference", "simulated"),
    caption: Callable[[float], str] | None = None,
    environment: Environment = LEVEL,
    pushes: Sequence[Push] = (),
) -> None:
    """Write an H.264 video of both clips, side by side, as long as the longer one.

    Args:
        path: the `.mp4`; it appears only when it is complete.
        character: the body.
        reference: left panel; after its end it holds its last pose, in grey.
        simulated: right panel; likewise.
        fps: frames a second of the video; clips are sampled by time.
        size: width and height of the video in even pixels.
        labels: names of the panels.
        caption: text for the strip below at a time in seconds, such as the state's name and the error.
        environment: of the simulated body.
        pushes: on the simulated body, drawn as arrows.

    Raises:
        ConfigError: for a size or frame rate that H.264 in 4:2:0 cannot hold.
    """
    frames = overlay_frames(
        character, reference, simulated, fps=fps, size=size, labels=labels, caption=caption, environment=environment,
        pushes=pushes,
    )  # fmt: skip
    with replacing(path) as temporary:
        encode_h264(temporary, frames, fps, size)


def overlay_frames(
    character: Character,
    reference: MotionClip,
    simulated: MotionClip,
    *,
    fps: int,
    size: tuple[int, int],
    labels: tuple[str, str],
    caption: Callable[[float], str] | None = None,
    environment: Environment = LEVEL,
    pushes: Sequence[Push] = (),
) -> Iterator[Image]:
    """Yield the frames of `write_overlay`, RGB (H, W, 3), one after the other."""
    check_video_format(fps, size)
    duration = max(reference.duration_s, simulated.duration_s)
    times = np.arange(int(np.floor(duration * fps + 1e-6)) + 1) / fps
    strip = round(size[1] * CAPTION_SHARE)
    pair = panels(
        character, reference, simulated, times, size=(size[0] // 2, size[1] - strip), fps=fps, environment=environment,
        pushes=pushes,
    )  # fmt: skip
    return (_frame(pair, index, size, labels, caption) for index in range(len(times)))


def check_video_format(fps: int, size: tuple[int, int]) -> None:
    """Raise `ConfigError` unless width and height are even and large enough and fps is a positive whole number."""
    if fps <= 0 or fps != int(fps):
        raise ConfigError(f"the video's fps is {fps}; give a positive whole number, for example 30")
    if any(n % 2 or n < 64 for n in size):
        raise ConfigError(
            f"the video's size is {size[0]}x{size[1]}; both must be even and at least 64, for example 960x540"
        )


def encode_h264(
    path: os.PathLike[str],
    frames: Iterable[Image],
    fps: int | Fraction,
    size: tuple[int, int],
    *,
    crf: str = CRF,
    preset: str = "veryfast",
) -> None:
    """Encode RGB frames (H, W, 3) as H.264, yuv420p, with its index in front so that browsers start at once."""
    with av.open(os.fspath(path), "w", format="mp4", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream("libx264", rate=Fraction(fps), options={"crf": crf, "preset": preset})
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = 1
        for image in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))


def _frame(
    pair: Panels, index: int, size: tuple[int, int], labels: tuple[str, str], caption: Callable[[float], str] | None
) -> Image:
    time_s = float(pair.times_s[index])
    width, height = size
    image = np.empty((height, width, 3), np.uint8)
    image[height - round(height * CAPTION_SHARE) :] = STRIP
    for column, (picture, label) in enumerate(zip(pair.images(index), labels, strict=True)):
        ended = time_s > pair.durations_s[column] + 1e-6
        _label(picture, f"{label} (ended)" if ended else label, PALE if ended else INK)
        left = column * (width // 2)
        image[: picture.shape[0], left : left + picture.shape[1]] = picture
    image[: height - round(height * CAPTION_SHARE), width // 2 - 1 : width // 2 + 1] = 255
    draw_strip(image, time_s, float(pair.times_s[-1]), "" if caption is None else caption(time_s))
    return image


def _label(picture: Image, text: str, colour: tuple[int, int, int]) -> None:
    size = max(10, picture.shape[0] // 28)
    draw_text(picture, text, (size, size), height_px=size, colour=colour, anchor=(0.0, 0.0), bold=True)


def draw_strip(image: Image, time_s: float, end_s: float, caption: str) -> None:
    """Progress line, time and caption below the panels."""
    height, width = image.shape[:2]
    top = height - round(height * CAPTION_SHARE)
    line = max(2, height // 180)
    image[top : top + line] = RULE
    image[top : top + line, : round(width * (time_s / end_s if end_s > 0 else 1.0))] = PROGRESS
    size, middle = max(9, height // 30), (top + line + height) / 2.0
    draw_text(image, f"{time_s:.2f} s", (size, middle), height_px=size, colour=INK, bold=True)
    draw_text(image, caption, (width - size, middle), height_px=size, colour=INK, anchor=(1.0, 0.5))
