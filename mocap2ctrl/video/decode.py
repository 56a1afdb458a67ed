"""Decoding: a video, or a part of it, at the rate and size that are wanted, reduced as it comes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError, past_the_end, reversed_range
from mocap2ctrl.types import Array
from mocap2ctrl.video.container import FASTEST_FPS, SLOWEST_FPS, VideoInfo, probe, require_utf8
from mocap2ctrl.video.frames import frames, nearest

__all__ = [
    "Footage",
    "Image",
    "Progress",
    "VideoInfo",
    "default_fps",
    "probe",
    "read_footage",
    "require_utf8",
    "working_size",
]

Image = npt.NDArray[np.uint8]
"""(H, W, 3) RGB, or (T, H, W, 3)."""

WORKING_PIXELS = 640 * 360
"""Area of a decoded frame: sixteen times that of the objective's silhouettes."""
MEMORY_PIXELS = 150_000_000
"""All frames together; more of them are smaller."""
LEAST_PIXELS = 4 * 160 * 90
OBJECTIVE_FPS = 30.0
FARTHEST_S = 0.1
"""A frame stands for moments so far from its own, if there is no nearer one."""
LONGEST_HOLE_S = 0.1
"""Moments without a frame are given their neighbours' for so long; a longer hole parts the video."""
ROUNDED_FRAMES = 2
"""So many frames may be missing at a video's end because its duration is not exact."""
UNEVEN_SHARE = 0.02
"""Share of the gaps between frames that must be longer than the others before it is worth a word."""

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""


@dataclass(frozen=True, eq=False)
class Footage:
    """Decoded frames, evenly spaced in time.

    Attributes:
        images: (T, H, W, 3) RGB.
        fps: frames a second of real time.
        start_s: the first frame's time in the video, real seconds.
        source_size: width and height of the video, pixels.
        source_fps: of the video, in real time.
        slowmo: how often slower than life the file plays: a second of it is 1 / slowmo of real time.
        notes: what was understood of the file, sentences for the user.
        warnings: what is missing in it.
        beyond_s: of the video before and after the part that was asked for, real seconds.
    """

    images: Image
    fps: float
    start_s: float
    source_size: tuple[int, int]
    source_fps: float
    slowmo: float = 1.0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    beyond_s: tuple[float, float] = (0.0, 0.0)

    @property
    def end_s(self) -> float:
        """When the last frame ends, real seconds of the video."""
        return self.start_s + len(self.images) / self.fps


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
    slowmo: float | None = None,
    progress: Progress | None = None,
) -> Footage:
    """Decodes a video, or a part of it, at a working size and rate.

    Args:
        path: a video file.
        fps: frames a second of real time; by default the video's own, or a whole fraction of it near 30.
        time_range: seconds from the video's start, in the file's time.
        slowmo: how often slower than life it plays; by default what the file says, or 1.
        progress: told how far it is.

    Raises:
        VideoError: the video, the rate or the range cannot be used; says why.
    """
    info = probe(path)
    slower = _checked_slowmo(slowmo, info)
    rate = _checked_rate(fps, info, slower)
    start_s, end_s = _checked_range(time_range, info)
    count = max(1, math.ceil((end_s - start_s) / slower * rate - 1e-6))
    if MEMORY_PIXELS / count < LEAST_PIXELS:
        raise VideoError(
            f"{info.path}: {count} frames are too many; choose up to {MEMORY_PIXELS / LEAST_PIXELS / rate * slower:.0f} s "
            f"with --time-range A B"
        )
    times: Array = start_s + np.arange(count, dtype=float) * (slower / rate)
    size = working_size(info.size, min(WORKING_PIXELS, MEMORY_PIXELS / count))
    images, stamps = _images(info, size, times, progress)
    if len(images) == 0:
        raise VideoError(f"{info.path}: no frame from {start_s:g} to {end_s:g} s can be decoded; is it damaged?")
    lost = np.ones(count, bool)
    lost[: len(stamps)] = _unseen(stamps, times[: len(stamps)], info)
    part = _longest_part(lost, round(LONGEST_HOLE_S * rate))
    to_end = end_s >= info.duration_s - 1.0 / info.fps
    return Footage(
        images=images[part],
        fps=rate,
        start_s=float(times[part.start]) / slower,
        source_size=info.size,
        source_fps=info.fps * slower,
        slowmo=slower,
        notes=(*_slowmo_note(slowmo, slower, info), *_file_notes(info)),
        warnings=(
            *past_the_end(time_range, info.duration_s, 1.0 / info.fps),
            *_cut_off(info, to_end=to_end),
            *_damage(lost, times, part),
        ),
        beyond_s=(start_s / slower, (info.duration_s - end_s) / slower),
    )


def _images(info: VideoInfo, size: tuple[int, int], times: Array, progress: Progress | None) -> tuple[Image, Array]:
    """The frames (T, H, W, 3) at the first T of `times`, until the video ends, and their time stamps (T,)."""
    images, stamps = np.empty((len(times), size[1], size[0], 3), np.uint8), np.empty(len(times))
    filled = 0
    for stamp, image in frames(info, size, times):
        images[filled], stamps[filled] = image, stamp
        filled += 1
        if progress:
            progress("decoding", filled / len(times))
    return images[:filled], stamps[:filled]


def _unseen(stamps: Array, times: Array, info: VideoInfo) -> npt.NDArray[np.bool_]:
    """Which of the wanted times have no frame of their own: it is damaged, or the file holds none anywhere near."""
    away = np.abs(stamps - times)
    damaged = away > np.abs(info.stamps[nearest(info.stamps, times)] - times) + 0.5 / info.fps
    return np.asarray(damaged | (away > max(FARTHEST_S, 1.0 / info.fps) + 1e-6))


def _longest_part(lost: npt.NDArray[np.bool_], longest_hole: int) -> slice:
    """The longest stretch of frames without more than `longest_hole` lost ones in a row; it begins and ends with a sound one."""
    sound = np.flatnonzero(~lost)
    if len(sound) == 0:
        return slice(0, len(lost))
    breaks = np.flatnonzero(np.diff(sound) > longest_hole + 1) + 1
    parts = [(sound[a], sound[b - 1] + 1) for a, b in pairwise([0, *breaks, len(sound)])]
    first, end = max(parts, key=lambda part: part[1] - part[0])
    return slice(int(first), int(end))


def _cut_off(info: VideoInfo, *, to_end: bool) -> tuple[str, ...]:
    missing = info.announced - info.frames
    if missing <= ROUNDED_FRAMES or not to_end:
        return ()
    return (
        f"{missing} of {info.announced} frames that the file announces cannot be decoded, is it cut off or damaged? The first "
        f"{info.frames} are used",
    )


def _damage(lost: npt.NDArray[np.bool_], times: Array, part: slice) -> tuple[str, ...]:
    where = np.flatnonzero(lost)
    if len(where) == 0 or (len(where) <= ROUNDED_FRAMES and where[0] == len(lost) - len(where)):
        return ()
    whole = part.stop - part.start == len(lost)
    used = "neighbours stand in" if whole else ""
    used = used or f"used is the longest sound part, {times[part.start]:.2f} to {times[part.stop - 1]:.2f} s"
    if len(where) == 1:
        return (f"1 of {len(lost)} frames, at {times[where[0]]:.2f} s, is missing or damaged in the file; {used}",)
    return (
        f"{len(where)} of {len(lost)} frames, between {times[where[0]]:.2f} and {times[where[-1]]:.2f} s, are missing or damaged "
        f"in the file; {used}",
    )


def _slowmo_note(given: float | None, slower: float, info: VideoInfo) -> tuple[str, ...]:
    if slower == 1.0:
        return ()
    why = (
        "as --slowmo says"
        if given is not None
        else "as the file says (it was taken at more frames a second than it plays)"
    )
    return (
        f"slow motion: {slower:.4g} times slower than life, {why}; {info.duration_s:.4g} s of the file are "
        f"{info.duration_s / slower:.4g} s, and times are real ones from here on",
    )


def _file_notes(info: VideoInfo) -> tuple[str, ...]:
    notes = []
    if info.interlaced:
        notes.append("video: interlaced, each frame holds two moments; deinterlaced by bwdif")
    if info.uneven and np.mean(np.diff(info.stamps) > 1.5 / info.fps) > UNEVEN_SHARE:
        notes.append("video: frames are unevenly spaced (variable frame rate), and taken by their time stamps")
    if info.numbered:
        notes.append(f"video: without time stamps; its frames are taken as evenly spaced, {info.fps:.4g} a second")
    return tuple(notes)


def _checked_slowmo(given: float | None, info: VideoInfo) -> float:
    slower = info.slowmo if given is None else given
    most = FASTEST_FPS / info.fps
    if not (math.isfinite(slower) and 1.0 <= slower <= most):
        raise VideoError(
            f"{info.path}: slow motion is {slower:g} times slower than life; allowed is 1 (as fast as life) to {most:.4g}; "
            f"footage shot at 240 frames a second and played at 30 is 8"
        )
    return slower


def _checked_rate(fps: float | None, info: VideoInfo, slower: float) -> float:
    own = info.fps * slower
    if fps is None:
        return default_fps(own)
    if not (math.isfinite(fps) and SLOWEST_FPS <= fps <= 1.01 * own):
        raise VideoError(f"{info.path}: fps is {fps:g}; allowed is {SLOWEST_FPS:g} to {own:g}, the video's own rate")
    return fps


def _checked_range(time_range: tuple[float, float] | None, info: VideoInfo) -> tuple[float, float]:
    if time_range is None:
        return 0.0, info.duration_s
    start_s, end_s = time_range
    if end_s <= start_s:
        raise VideoError(reversed_range(str(info.path), start_s, end_s))
    if start_s < 0.0 or start_s >= info.duration_s:
        missing = "".join(f"; {told}" for told in _cut_off(info, to_end=True))
        raise VideoError(
            f"{info.path}: time range {start_s:g} to {end_s:g} s; the video runs from 0 to {info.duration_s:.2f} s{missing}"
        )
    return start_s, min(end_s, info.duration_s)
