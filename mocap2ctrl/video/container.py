"""What a video file holds, read without decoding it all: shape, orientation, scan, and the time stamps of its frames."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.sidedata.sidedata import Type

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Array

SLOWEST_FPS, FASTEST_FPS = 1.0, 1000.0
MOST_PIXELS = 8192 * 8192
"""Of a frame; one of this size takes 200 MB."""
WIDEST_PIXEL = 5.0
"""Pixel aspect ratios beyond this, or its inverse, are slips of a muxer."""
SAME_RATE = 0.005
"""Time stamps are rounded, so a rate measured from them is the head's if it differs by less than this share."""
LONGER_SOUND_S = 0.5
CAPTURE_RATE_TAGS = ("com.android.capture.fps",)
"""Frames a second that the camera took, where the file may play slower."""
LEAST_SLOWMO = 1.5
"""A ratio of capture rate to playback rate below this is a rounded rate, and no slow motion."""


@dataclass(frozen=True, eq=False)
class VideoInfo:
    """What a video file says of itself.

    Attributes:
        path: the file.
        size: width and height as shown, pixels; rotation and the pixels' aspect ratio are applied.
        fps: frames a second in the file's time; of unevenly spaced ones, where they are close.
        stamps: (N,) the frames' times, seconds from the first shown, ascending.
        origin_s: the first one's time by the file's own clock, seconds.
        rotation: quarter turns, counter-clockwise, that show the frames upright: 0 to 3.
        mirrored: whether they are to be mirrored left to right after that.
        interlaced: whether a frame's odd and even rows are of two moments.
        numbered: whether the file has no time stamps for its frames, so that they are taken as evenly spaced.
        announced: how many frames the head promises.
        slowmo: how often slower than life the file says it plays; 1 if it does not say.
    """

    path: Path
    size: tuple[int, int]
    fps: float
    stamps: Array
    origin_s: float = 0.0
    rotation: int = 0
    mirrored: bool = False
    interlaced: bool = False
    numbered: bool = False
    announced: int = 0
    slowmo: float = 1.0

    @property
    def frames(self) -> int:
        """How many there are."""
        return len(self.stamps)

    @property
    def duration_s(self) -> float:
        """To the end of the last frame, in the file's time."""
        return float(self.stamps[-1]) + 1.0 / self.fps

    @property
    def uneven(self) -> bool:
        """Whether frames are further apart in some places than in others (variable frame rate)."""
        return bool(np.any(np.diff(self.stamps) > 1.5 / self.fps))


def probe(path: str | Path) -> VideoInfo:
    """Reads the head, the time stamps of all packets, and decodes the first frame.

    Raises:
        VideoError: not a video, damaged or empty.
    """
    file = Path(path)
    with opened(file) as (container, stream):
        _require_moderate(file, stream.codec_context.width, stream.codec_context.height)
        first: av.VideoFrame | None = None
        times: list[float | None] = []
        cut = 0
        for packet in packets(container, stream):
            if packet.is_discard:  # by the edit list
                cut += 1
            else:
                times.append(None if packet.pts is None else float(packet.pts * stream.time_base))
            first = first or next(iter(decoded(stream, packet)), None)
        first = first or next(iter(decoded(stream, None)), None)
        if first is None or not first.width or not first.height or not times:
            raise VideoError(f"{file}: holds no frame that can be decoded; is it damaged or empty?")
        declared = float(stream.average_rate or stream.guessed_rate or 0.0)
        # AVI has no place for the order in which frames are shown: what FFmpeg gives there is the order of decoding.
        known = np.unique([time for time in times if time is not None])
        numbered = container.format.name == "avi" or len(known) < max(2, 0.9 * len(times))
        stamps, fps = _numbered(len(times), declared) if numbered else _measured(known, declared)
        if not SLOWEST_FPS <= fps <= FASTEST_FPS:
            raise VideoError(f"{file}: claims {fps:g} frames a second; allowed are {SLOWEST_FPS:g} to {FASTEST_FPS:g}")
        turns, mirrored = orientation(first)
        size = _shown_size(first, float(stream.sample_aspect_ratio or 1.0))
        return VideoInfo(
            path=file,
            size=size if turns % 2 == 0 else size[::-1],
            fps=fps,
            stamps=stamps,
            origin_s=float(known[0]) if len(known) else 0.0,
            rotation=turns,
            mirrored=mirrored,
            interlaced=bool(first.interlaced_frame),
            numbered=numbered,
            announced=stream.frames - cut if stream.frames else len(times) + _tail(container, times[-1], fps),
            slowmo=_declared_slowmo({**container.metadata, **stream.metadata}, fps),
        )


def _require_moderate(file: Path, width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise VideoError(
            f"{file}: a frame is {width}x{height} pixels; allowed are up to {MOST_PIXELS / 1e6:.0f} million, make a smaller copy"
        )


def _numbered(count: int, declared: float) -> tuple[Array, float]:
    return np.arange(count) / max(declared, 1e-9), declared


def _measured(known: Array, declared: float) -> tuple[Array, float]:
    """Stamps from the first on, and the rate where they are close; the head's rate where they agree with it."""
    steps = np.diff(known)
    fps = 1.0 / float(np.mean(steps[steps <= 1.5 * np.median(steps)]))
    return known - known[0], declared if declared and abs(fps / declared - 1.0) < SAME_RATE else fps


def _shown_size(frame: av.VideoFrame, aspect: float) -> tuple[int, int]:
    """Width and height before any rotation; narrow pixels are widened, and wide ones heightened, so that no pixel is lost."""
    if not 1.0 / WIDEST_PIXEL <= aspect <= WIDEST_PIXEL:
        aspect = 1.0
    return round(frame.width * max(1.0, aspect)), round(frame.height * max(1.0, 1.0 / aspect))


def _tail(container: av.container.InputContainer, last: float | None, fps: float) -> int:
    """Frames between the last one and the end that the head announces; sound may be a little longer than the picture."""
    if container.duration is None or last is None:
        return 0
    missing_s = container.duration / av.time_base - last - 1.0 / fps
    return round(missing_s * fps) if missing_s > LONGER_SOUND_S else 0


def _declared_slowmo(tags: dict[str, str], fps: float) -> float:
    for name in CAPTURE_RATE_TAGS:
        try:
            ratio = float(tags.get(name, "nan")) / fps
        except ValueError:
            continue
        if ratio >= LEAST_SLOWMO and ratio * fps <= FASTEST_FPS:
            return float(ratio)
    return 1.0


def orientation(frame: av.VideoFrame) -> tuple[int, bool]:
    """Quarter turns counter-clockwise, and whether to mirror left to right after them, that show a frame upright.

    From the display matrix [[a, b], [c, d]], by which the pixel (x, y), y downwards, is shown at (a x + c y, b x + d y).
    """
    matrix = frame.side_data.get(Type.DISPLAYMATRIX)
    if matrix is None:
        return 0, False
    a, b, _, c, d = np.frombuffer(bytes(matrix), np.int32)[:5].astype(float)
    mirrored = a * d - b * c < 0.0
    if mirrored:  # undone first: x is shown at -x
        a, c = -a, -c
    return round(math.degrees(math.atan2(-b, a)) / 90.0) % 4, bool(mirrored)


def packets(container: av.container.InputContainer, stream: av.VideoStream) -> Iterator[av.Packet]:
    """Until the file ends, or cannot be taken apart any further."""
    source = container.demux(stream)
    while True:
        try:
            packet = next(source, None)
        except av.FFmpegError:
            return
        if packet is None:
            return
        if packet.size:
            yield packet


def decoded(stream: av.VideoStream, packet: av.Packet | None) -> list[av.VideoFrame]:
    """The frames that a packet, or None: the end, brings out of the decoder; none if it is damaged."""
    try:
        found: list[av.VideoFrame] = stream.decode(packet)
    except av.FFmpegError:
        return []
    for frame in found:  # the last ones come without
        frame.time_base = stream.time_base
    return found


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
def opened(file: Path) -> Iterator[tuple[av.container.InputContainer, av.VideoStream]]:
    """The file's first video stream, cover pictures aside; whatever FFmpeg says on the way is one line."""
    require_utf8(file)
    if file.is_dir():
        raise VideoError(f"{file}: is a folder; give a video file, or a folder that holds PNGs of masks")
    if not file.is_file():
        raise VideoError(f"{file}: no such file; give a video")
    try:
        with av.open(str(file), metadata_errors="ignore") as container:
            cover = av.stream.Disposition.attached_pic
            streams = [stream for stream in container.streams.video if not stream.disposition & cover]
            if not streams:
                raise VideoError(f"{file}: holds no video stream; give a video file such as .mp4 or .mov")
            if streams[0].codec_context is None:
                raise VideoError(
                    f"{file}: is in a code that FFmpeg cannot decode, or damaged; convert it to H.264 in .mp4"
                )
            yield container, streams[0]
    except av.FFmpegError as error:
        raise VideoError(f"{file}: cannot be decoded as a video ({error.strerror or error}); is it damaged?") from error
    except OSError as error:
        raise VideoError(f"{file}: cannot be read ({error.strerror or error})") from error
