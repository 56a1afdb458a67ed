"""Videos of masks: white on black, or with an alpha channel; recognised by their pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.decode import WORKING_PIXELS, probe, working_size
from mocap2ctrl.video.mask_pictures import HALF

DARK, BRIGHT, BIMODAL = 48, 207, 0.97
"""A mask's grey levels are below or above these, but for such a share at its edges; compression blurs them."""
GREY = 30
"""Levels by which the channels of a mask may differ."""
MOST_PERSON, LEAST_PERSON = 0.6, 0.0005
"""Share of the picture that may be white."""
FLAT = 0.85
"""Share of the pixels that the two commonest of sixteen grey levels have in a video of masks, however soft or compressed."""
GLANCED_PIXELS = 320 * 180
ENOUGH, MOST_GLANCED = 5, 300
"""Frames with a person that must look like masks; and how many are looked at, of a video that begins with none."""
ALPHA_DECODERS = {"vp8": "libvpx", "vp9": "libvpx-vp9"}
"""FFmpeg's own decoders of these do not see the alpha channel."""


def is_mask_video(path: str | Path) -> bool:
    """Whether a file is a video of masks. What cannot be decoded is not."""
    return _told_by(Path(path)) is not None


def _told_by(path: Path) -> str | None:
    """What tells a person in a video: `alpha`, or `grey` in black and white; None: nothing does, or it cannot be decoded."""
    try:
        with _frames(path) as (frames, alpha):
            if alpha and _all_transparent(frames):
                return "alpha"
        with _frames(path) as (frames, _):
            return "grey" if _all_bimodal(frames) else None
    except (VideoError, av.FFmpegError, OSError, ValueError, IndexError):
        return None


def _all_bimodal(frames: Iterator[av.VideoFrame]) -> bool:
    found = 0
    for number, frame in enumerate(frames):
        size = working_size((frame.width, frame.height), GLANCED_PIXELS)
        image = frame.reformat(width=size[0], height=size[1], format="rgb24", interpolation="POINT").to_ndarray()
        level = image.mean(axis=-1)
        white = float(np.mean(level > HALF))
        looks = (
            np.mean((level < DARK) | (level > BRIGHT)) >= BIMODAL and np.mean(np.ptp(image, axis=-1) < GREY) >= BIMODAL
        )
        if not looks or white > MOST_PERSON:
            return False
        found += white >= LEAST_PERSON
        if found == ENOUGH or number == MOST_GLANCED:
            break
    return found > 0


def _all_transparent(frames: Iterator[av.VideoFrame]) -> bool:
    """Whether the first frames are transparent somewhere and opaque somewhere."""
    shares = [float(np.mean(_level(frame, alpha=True) > HALF)) for frame, _ in zip(frames, range(ENOUGH), strict=False)]
    return bool(shares) and min(shares) < 1.0 and max(shares) > LEAST_PERSON


def read_mask_video(path: Path) -> tuple[Masks, float, tuple[int, int], tuple[str, ...]]:
    """Masks (T, H, W) at a working size, frames a second, the video's width and height, and what was understood.

    Raises:
        VideoError: it cannot be decoded, or is footage.
    """
    info, alpha = probe(path), _told_by(path) == "alpha"
    try:
        with _frames(path) as (frames, _):
            levels = np.stack([np.rot90(_level(frame, alpha=alpha), info.rotation) for frame in frames])
    except (av.FFmpegError, ValueError) as error:
        raise VideoError(f"{path}: cannot be decoded as a video of masks ({error})") from error
    flat = float(np.median([_flatness(level) for level in levels]))
    if flat < FLAT:
        raise VideoError(
            f"{path}: is footage and no video of masks: the two commonest of 16 grey levels have {100 * flat:.0f} % of a picture "
            f"(the median), in masks {100 * FLAT:.0f} % or more; leave out --masks"
        )
    masks = levels > HALF
    how = "by its alpha channel, opaque = person" if alpha else "white = person"
    return masks, info.fps, info.size, (f"masks: the video holds masks and no footage, {how}",)


def _flatness(level: npt.NDArray[np.uint8]) -> float:
    """Share of the pixels (H, W) that the two commonest of sixteen levels have."""
    return float(np.sort(np.bincount(level.ravel() // 16, minlength=16))[-2:].sum() / level.size)


def _level(frame: av.VideoFrame, *, alpha: bool) -> npt.NDArray[np.uint8]:
    """(H, W) opacity or grey level, from 0 to 255, at a working size."""
    width, height = working_size((frame.width, frame.height), WORKING_PIXELS)
    form = "rgba" if alpha else "rgb24"
    image = frame.reformat(width=width, height=height, format=form, interpolation="AREA").to_ndarray()
    return np.asarray(image[..., 3] if alpha else image[..., 1], np.uint8)


@contextmanager
def _frames(path: Path) -> Iterator[tuple[Iterator[av.VideoFrame], bool]]:
    """A video's frames, as far as they can be decoded, and whether they have an alpha channel."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        name = ALPHA_DECODERS.get(stream.codec_context.name, "")
        if stream.metadata.get("alpha_mode") == "1" and name in av.codecs_available:
            own = av.CodecContext.create(name, "r")
            own.extradata = stream.codec_context.extradata
            yield (frame for packet in container.demux(stream) for frame in own.decode(packet)), True
            return
        stream.thread_type = "AUTO"
        form = stream.codec_context.format
        alpha = form is not None and any(component.is_alpha for component in form.components)
        yield container.decode(stream), alpha
