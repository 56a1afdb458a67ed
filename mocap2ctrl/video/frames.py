"""A video's frames at wanted times: decoded no more than needed, deinterlaced, reduced and turned upright."""

from __future__ import annotations

from collections.abc import Iterator

import av
import av.filter
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array
from mocap2ctrl.video.container import VideoInfo, decoded, opened, packets

SAME_S = 1e-6
"""Time stamps that differ by less are the same."""
SEEK_S = 3.0
"""A part that begins later than this is sought, not decoded up to; it begins so long after the place that is sought."""


def frames(info: VideoInfo, size: tuple[int, int], times: Array) -> Iterator[tuple[float, npt.NDArray[np.uint8]]]:
    """The sound frame whose time stamp is nearest to each of `times`, with that stamp.

    Args:
        info: of the video.
        size: width and height to reduce to, by the mean of the area.
        times: seconds from the video's start, ascending. Those after the last frame, by more than half a frame, yield nothing.
    """
    index = 0
    before: tuple[float, av.VideoFrame] | None = None
    for stamp, frame in _from(info, times):
        while before is not None and index < len(times) and times[index] <= 0.5 * (before[0] + stamp):
            yield before[0], _shown(before[1], size, info)
            index += 1
        if index >= len(times):
            return
        before = (stamp, frame)
    while before is not None and index < len(times) and times[index] <= before[0] + 0.5 / info.fps:
        yield before[0], _shown(before[1], size, info)
        index += 1


def nearest(stamps: Array, times: Array) -> npt.NDArray[np.intp]:
    """(M,) the indices of the stamps (N,), ascending, that are nearest to `times` (M,); of two, the earlier."""
    after = np.clip(np.searchsorted(stamps, times), 1, max(1, len(stamps) - 1))
    earlier = np.abs(times - stamps[after - 1]) <= np.abs(times - stamps[np.minimum(after, len(stamps) - 1)])
    return np.where(earlier, after - 1, np.minimum(after, len(stamps) - 1))


def _from(info: VideoInfo, times: Array) -> Iterator[tuple[float, av.VideoFrame]]:
    """Frames from the first of `times` on, by a short way if the file allows it, else from the video's beginning."""
    if not info.numbered and times[0] > SEEK_S:
        source = _sound_frames(info, times, times[0] - SEEK_S / 2)
        first = next(source, None)
        if first is not None and first[0] <= times[0]:
            yield first
            yield from source
            return
    yield from _sound_frames(info, times, None)


def _sound_frames(info: VideoInfo, times: Array, seek_s: float | None) -> Iterator[tuple[float, av.VideoFrame]]:
    """Frames that are not damaged, with seconds from the video's first.

    Frames that are nearest to none of `times`, and to which no other frame refers, are not even decoded: of a video of
    60 frames a second, of which 30 are wanted, that saves up to half of the work.
    """
    wanted = info.stamps[nearest(info.stamps, times)]
    with opened(info.path) as (container, stream):
        stream.thread_type = "AUTO"
        if seek_s is not None:
            container.seek(int((seek_s + info.origin_s) / stream.time_base), stream=stream, backward=True)
        source = _decoded(info, container, stream, wanted)
        for number, frame in enumerate(_deinterlaced(source, stream) if info.interlaced else source):
            if frame.is_corrupt:
                continue
            if info.numbered or frame.time is None:
                yield number / info.fps, frame
            else:
                yield float(frame.time) - info.origin_s, frame


def _decoded(
    info: VideoInfo, container: av.container.InputContainer, stream: av.VideoStream, wanted: Array
) -> Iterator[av.VideoFrame]:
    skips = (
        not info.numbered and not info.interlaced
    )  # without stamps, frames are counted; deinterlacing needs neighbours
    for packet in packets(container, stream):
        if skips and packet.pts is not None:
            time = float(packet.pts * stream.time_base) - info.origin_s
            near = abs(wanted[nearest(wanted, np.array([time]))[0]] - time) < SAME_S
            stream.codec_context.skip_frame = "DEFAULT" if near else "NONREF"
        yield from decoded(stream, packet)
    yield from decoded(stream, None)


def _deinterlaced(source: Iterator[av.VideoFrame], stream: av.VideoStream) -> Iterator[av.VideoFrame]:
    """One progressive frame for each interlaced one, by FFmpeg's `bwdif`; frames that are not flagged stay as they are."""
    graph = av.filter.Graph()
    graph.link_nodes(
        graph.add_buffer(template=stream),
        graph.add("bwdif", mode="send_frame", deint="interlaced"),
        graph.add("buffersink"),
    ).configure()
    for frame in source:
        graph.push(frame)
        yield from _pulled(graph)
    graph.push(None)
    yield from _pulled(graph)


def _pulled(graph: av.filter.Graph) -> Iterator[av.VideoFrame]:
    while True:
        try:
            yield graph.pull()
        except (av.BlockingIOError, av.EOFError):
            return


def _shown(frame: av.VideoFrame, size: tuple[int, int], info: VideoInfo) -> npt.NDArray[np.uint8]:
    """(H, W, 3) RGB, reduced, then turned upright."""
    width, height = size if info.rotation % 2 == 0 else size[::-1]
    # Colours are converted last, of the few pixels that are left.
    reduced = frame.reformat(width=width, height=height, interpolation="AREA").to_ndarray(format="rgb24")
    upright = np.rot90(reduced, info.rotation)
    return np.ascontiguousarray(upright[:, ::-1] if info.mirrored else upright)
