"""Decoding: what a video is, and its frames at the rate and size that are wanted, reduced as they come."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError

Image = npt.NDArray[np.uint8]
"""(H, W, 3) RGB, or (T, H, W, 3)."""

WORKING_PIXELS = 640 * 360
"""Area of a decoded frame: sixteen times that of the objective's silhouettes."""
MEMORY_PIXELS = 150_000_000
"""All frames together; more of them are smaller."""
LEAST_PIXELS = 4 * 160 * 90
OBJECTIVE_FPS = 30.0
SLOWEST_FPS, FASTEST_FPS = 1.0, 1000.0

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""


@dataclass(frozen=True)
class VideoInfo:
    """What a video's head says.

    Attributes:
        path: the file.
        size: width and height as shown, pixels; rotation is applied.
        fps: frames a second, on average.
        frames: how many; an estimate where the file does not say.
        duration_s: seconds.
        rotation: quarter turns, counter-clockwise, that show the frames upright: 0 to 3.
    """

    path: Path
    size: tuple[int, int]
    fps: float
    frames: int
    duration_s: float
    rotation: int


@dataclass(frozen=True, eq=False)
class Footage:
    """Decoded frames, evenly spaced in time.

    Attributes:
        images: (T, H, W, 3) RGB.
        fps: frames a second.
        start_s: the first frame's time in the video.
        source_size: width and height of the video, pixels.
        source_fps: of the video.
        missing: how many more frames the file announces than could be decoded.
    """

    images: Image
    fps: float
    start_s: float
    source_size: tuple[int, int]
    source_fps: float
    missing: int = 0


def probe(path: str | Path) -> VideoInfo:
    """Reads a video's head and decodes its first frame.

    Raises:
        VideoError: not a video, damaged or empty.
    """
    file = Path(path)
    with _opened(file) as (container, stream):
        first = next(iter(container.decode(stream)), None)
        if first is None or not first.width or not first.height:
            raise VideoError(f"{file}: holds no frame that can be decoded; is it damaged or empty?")
        fps = float(stream.average_rate or stream.guessed_rate or 0.0)
        if not SLOWEST_FPS <= fps <= FASTEST_FPS:
            raise VideoError(f"{file}: claims {fps:g} frames a second; allowed are {SLOWEST_FPS:g} to {FASTEST_FPS:g}")
        duration = _duration(container, stream, fps)
        turns = round(first.rotation / 90) % 4
        size = (first.width, first.height) if turns % 2 == 0 else (first.height, first.width)
        return VideoInfo(file, size, fps, stream.frames or max(1, round(duration * fps)), duration, turns)


def working_size(size: tuple[int, int], area: float) -> tuple[int, int]:
    """Width and height of about `area` pixels in the shape of `size`, never larger than it."""
    scale = min(1.0, math.sqrt(area / (size[0] * size[1])))
    return max(2, round(size[0] * scale)), max(2, round(size[1] * scale))


def default_fps(fps: float) -> float:
    """The video's own rate up to a third above 30; a whole fraction of it near 30 beyond."""
    return fps / max(1, round(fps / OBJECTIVE_FPS))


def read_footage(
    path: str | Path,
    *,
    fps: float | None = None,
    time_range: tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> Footage:
    """Decodes a video, or a part of it, at a working size and rate.

    Args:
        path: a video file.
        fps: frames a second; by default the video's own, or a whole fraction of it near 30.
        time_range: seconds from the video's start.
        progress: told how far it is.

    Raises:
        VideoError: the video, the rate or the range cannot be used; says why.
    """
    info = probe(path)
    rate = _checked_rate(fps, info)
    start_s, end_s = _checked_range(time_range, info)
    count = max(1, math.ceil((end_s - start_s) * rate - 1e-6))
    if MEMORY_PIXELS / count < LEAST_PIXELS:
        raise VideoError(
            f"{info.path}: {count} frames are too many; choose up to {MEMORY_PIXELS / LEAST_PIXELS / rate:.0f} s "
            f"with --time-range A B"
        )
    size = working_size(info.size, min(WORKING_PIXELS, MEMORY_PIXELS / count))
    images = np.empty((count, size[1], size[0], 3), np.uint8)
    filled = 0
    for _, image in frames(info, size, start_s + np.arange(count) / rate):
        images[filled] = image
        filled += 1
        if progress:
            progress("decoding", filled / count)
    if filled == 0:
        raise VideoError(f"{info.path}: no frame from {start_s:g} to {end_s:g} s can be decoded; is it damaged?")
    return Footage(images[:filled], rate, start_s, info.size, info.fps, count - filled)


def frames(info: VideoInfo, size: tuple[int, int], times: npt.NDArray[np.float64]) -> Iterator[tuple[float, Image]]:
    """The frame whose time stamp is nearest to each of `times`, with that stamp.

    Args:
        info: of the video.
        size: width and height to reduce to, by the mean of the area.
        times: seconds from the video's start, ascending. Those after the last frame, by more than half a frame, yield nothing.
    """
    index = 0
    before: tuple[float, av.VideoFrame] | None = None
    for stamp, frame in _stamped(info):
        while before is not None and index < len(times) and times[index] <= 0.5 * (before[0] + stamp):
            yield before[0], _image(before[1], size, info.rotation)
            index += 1
        if index >= len(times):
            return
        before = (stamp, frame)
    while before is not None and index < len(times) and times[index] <= before[0] + 0.5 / info.fps:
        yield before[0], _image(before[1], size, info.rotation)
        index += 1


def _stamped(info: VideoInfo) -> Iterator[tuple[float, av.VideoFrame]]:
    """All frames with seconds from the first. A damaged tail ends the video."""
    with _opened(info.path) as (container, stream):
        start: float | None = None
        stream.thread_type = "AUTO"
        decoder = container.decode(stream)
        for number in range(1_000_000_000):
            try:
                frame = next(decoder, None)
            except av.FFmpegError:
                return
            if frame is None:
                return
            time = number / info.fps if frame.time is None else float(frame.time)
            start = time if start is None else start
            yield time - start, frame


def _image(frame: av.VideoFrame, size: tuple[int, int], turns: int) -> Image:
    width, height = size if turns % 2 == 0 else size[::-1]
    reduced = frame.reformat(width=width, height=height, format="rgb24", interpolation="AREA")
    return np.ascontiguousarray(np.rot90(reduced.to_ndarray(), turns))


def require_utf8(path: str | Path) -> None:
    """Refuses a name that FFmpeg, zip archives and reports could not take.

    Raises:
        VideoError: the name has bytes that are not UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise VideoError(f"{path}: the name has bytes that are not UTF-8; rename the file or folder") from error


@contextmanager
def _opened(file: Path) -> Iterator[tuple[av.container.InputContainer, av.VideoStream]]:
    """The file's first video stream; whatever FFmpeg says on the way is one line."""
    require_utf8(file)
    if file.is_dir():
        raise VideoError(f"{file}: is a folder; give a video file, or a folder that holds PNGs of masks")
    if not file.is_file():
        raise VideoError(f"{file}: no such file; give a video")
    try:
        with av.open(str(file)) as container:
            if not container.streams.video:
                raise VideoError(f"{file}: holds no video stream; give a video file such as .mp4 or .mov")
            yield container, container.streams.video[0]
    except av.FFmpegError as error:
        raise VideoError(f"{file}: cannot be decoded as a video ({error.strerror or error}); is it damaged?") from error
    except OSError as error:
        raise VideoError(f"{file}: cannot be read ({error.strerror or error})") from error


def _duration(container: av.container.InputContainer, stream: av.VideoStream, fps: float) -> float:
    if stream.frames:
        return float(stream.frames / fps)
    if stream.duration:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration else 1.0 / fps


def _checked_rate(fps: float | None, info: VideoInfo) -> float:
    if fps is None:
        return default_fps(info.fps)
    if not (math.isfinite(fps) and SLOWEST_FPS <= fps <= 1.01 * info.fps):
        raise VideoError(
            f"{info.path}: fps is {fps:g}; allowed is {SLOWEST_FPS:g} to {info.fps:g}, the video's own rate"
        )
    return fps


def _checked_range(time_range: tuple[float, float] | None, info: VideoInfo) -> tuple[float, float]:
    if time_range is None:
        return 0.0, info.duration_s
    start_s, end_s = time_range
    if end_s <= start_s:
        raise VideoError(reversed_range(str(info.path), start_s, end_s))
    if start_s < 0.0 or start_s >= info.duration_s:
        raise VideoError(
            f"{info.path}: time range {start_s:g} to {end_s:g} s; the video runs from 0 to {info.duration_s:.2f} s"
        )
    return start_s, min(end_s, info.duration_s)


def reversed_range(where: str, start_s: float, end_s: float) -> str:
    """What a user is told whose part ends before it begins."""
    return f"{where}: time range {start_s:g} to {end_s:g} s; the first number must be less than the second"
