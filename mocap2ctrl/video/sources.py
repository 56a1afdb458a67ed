"""Where the picture of the empty scene comes from: a clean plate, empty frames of the clip, or the clip's median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.alignment import onto_clip
from mocap2ctrl.video.background import Floats, exposure_gain, smoothed
from mocap2ctrl.video.decode import Footage, Image
from mocap2ctrl.video.motion import moving_bodies, reduced_images, without_specks

METHODS = ("plate", "empty", "median")
PLATE_SUFFIXES = (".png", ".jpg", ".jpeg")
PLATE_ASPECT = 0.02

SHORTEST_EMPTY_S = 0.1
FEWEST_EMPTY = 3
BLOB_SHARE = 0.002
"""A blob smaller than this share of the picture is no person."""
BLOB_LEVELS = 20.0
"""Grey levels that a pixel must change by to belong to a blob."""
ARRIVAL_S = 0.4
"""How long before or after an empty stretch somebody at the picture's border is looked for."""

SAME_LEVELS = 10.0
"""A plate and the clip's median that differ by fewer grey levels show the same."""
LEAST_AGREEMENT = 0.5
MEDIAN_FRAMES = 60
FEWEST_SEEN = 3
"""Frames in which a pixel must be free of the moving body to count as seen."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A picture of the empty scene.

    Attributes:
        picture: (H, W, 3) grey levels.
        hidden: (H, W) pixels that the body covers in nearly all frames, so that nobody has seen what is behind.
        method: plate, empty or median.
        reason: what was used and why, a sentence for the user.
        hidden_share: area of `hidden`, as a share of the body's usual area.
    """

    picture: Floats
    hidden: Masks
    method: str
    reason: str
    hidden_share: float = 0.0


def plate_beside(video: Path) -> Path | None:
    """The file `<video's name>.background.png` (or .jpg) in the video's folder, if there is one."""
    candidates = [video.with_name(f"{video.stem}.background{suffix}") for suffix in PLATE_SUFFIXES]
    return next((path for path in candidates if path.is_file()), None)


def empty_scene(footage: Footage, video: Path, plate: Path | None, method: str | None) -> Scene:
    """The best picture of the empty scene that there is.

    Args:
        footage: the clip.
        video: its file, beside which a clean plate may lie.
        plate: a clean plate that the user gave.
        method: one of METHODS to insist on it.

    Raises:
        VideoError: the plate cannot be used, or the method has nothing to work on.
    """
    if method is not None and method not in METHODS:
        raise VideoError(f"method is {method!r}; allowed are {', '.join(METHODS)}")
    found = plate or plate_beside(video)
    if method == "plate" and found is None:
        raise VideoError(
            f"{video}: no clean plate; give a picture of the empty scene with --background FILE, or put "
            f"{video.stem}.background.png beside the video"
        )
    if found is not None and method in (None, "plate"):
        return _from_plate(found, footage, named=plate is not None)
    stretch = None if method == "median" else empty_stretch(footage.images, footage.fps)
    if stretch is not None:
        return _from_empty_frames(footage, stretch)
    if method == "empty":
        raise VideoError(
            f"{video}: no empty frames at its beginning or end; leave --method out, or give --background FILE"
        )
    return _from_median(footage)


def _from_plate(path: Path, footage: Footage, *, named: bool) -> Scene:
    try:
        data = np.frombuffer(path.read_bytes(), np.uint8)
    except OSError as error:
        raise VideoError(
            f"{path}: cannot be read ({error.strerror or error}); give a picture of the empty scene"
        ) from error
    image = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
    if image is None:
        raise VideoError(f"{path}: is not a picture that can be read; give a PNG or JPEG of the empty scene")
    height, width = footage.images.shape[1:3]
    own = image.shape[1] / image.shape[0]
    if abs(np.log(own * height / width)) > PLATE_ASPECT:
        raise VideoError(
            f"{path}: is {image.shape[1]}x{image.shape[0]} pixels, the video {footage.source_size[0]}x{footage.source_size[1]}, "
            f"another shape; give a picture by the same camera"
        )
    reduced = cv2.resize(image[..., ::-1], (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)
    picture, agreement = with_own_pixels(onto_clip(reduced, footage.images)[0].astype(np.float32), footage)
    if agreement < LEAST_AGREEMENT:
        raise VideoError(
            f"{path}: is no clean background (only {100 * agreement:.0f} % of the still part of the video looks like it); give a "
            f"picture of the same scene by the same camera, or leave the picture out"
        )
    why = "given with --background" if named else "found beside the video"
    return Scene(picture, np.zeros((height, width), bool), "plate", f"background: the clean plate {path}, {why}")


def with_own_pixels(picture: Floats, footage: Footage) -> tuple[Floats, float]:
    """The picture in the clip's exposure, with the clip's own median where that shows the same; and the share of that.

    A plate has noise, compression and sharpness of its own, which the clip's median has not.
    """
    median, hidden = masked_median(footage.images, moving_bodies(footage.images, footage.fps))
    own = picture / exposure_gain(median, picture)
    same = np.abs(smoothed(median) - smoothed(own)).max(axis=-1) < SAME_LEVELS
    use = cv2.erode((same & ~hidden).astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    agreement = float(np.mean(same[~hidden])) if not hidden.all() else 1.0
    return np.asarray(np.where(use[..., None], median, own), np.float32), agreement


def empty_stretch(images: Image, fps: float) -> tuple[int, int] | None:
    """First frame, and the one after the last, of a stretch without anybody at the clip's beginning or end.

    Such a stretch is still; next to it somebody enters or leaves through the border, or is there all at once (a cut).
    """
    small = reduced_images(images)
    ends = (_still_stretch(small, fps), _still_stretch(small[::-1], fps))
    lengths = [0 if end is None else end for end in ends]
    if max(lengths) == 0:
        return None
    return (0, lengths[0]) if lengths[0] >= lengths[1] else (len(images) - lengths[1], len(images))


def _still_stretch(small: Image, fps: float) -> int | None:
    """How many of the first frames are empty; None if they are not, or if nobody can tell."""
    anchor = np.median(small[:FEWEST_EMPTY], axis=0).astype(np.int16)
    blobs = [without_specks(np.abs(frame - anchor).max(axis=-1) > BLOB_LEVELS, BLOB_SHARE) for frame in small]
    areas = np.array([np.count_nonzero(b) for b in blobs])
    occupied = np.flatnonzero(areas)
    if len(occupied) == 0 or occupied[0] < max(FEWEST_EMPTY, SHORTEST_EMPTY_S * fps):
        return None
    first = occupied[0]
    arriving = blobs[first : first + max(2, round(ARRIVAL_S * fps))]
    enters = any(_touches_border(blob) for blob in arriving)
    appears = areas[first] > 0.5 * np.median(areas[occupied])
    # A frame before the first blob may hold the tip of a foot.
    return max(FEWEST_EMPTY, int(first) - 1) if enters or appears else None


def _touches_border(blob: Masks) -> bool:
    return bool(blob[0].any() or blob[-1].any() or blob[:, 0].any() or blob[:, -1].any())


def _from_empty_frames(footage: Footage, stretch: tuple[int, int]) -> Scene:
    first, last = stretch
    picture, _ = masked_median(footage.images[first:last], None)
    picture, _ = with_own_pixels(picture, footage)
    start, end = (footage.start_s + n / footage.fps for n in (first, last - 1))
    reason = f"background: the empty frames from {start:.2f} to {end:.2f} s of the clip ({last - first} frames)"
    return Scene(picture, np.zeros(picture.shape[:2], bool), "empty", reason)


def _from_median(footage: Footage) -> Scene:
    """Each pixel's median over the frames in which it is outside of all moving bodies."""
    bodies = moving_bodies(footage.images, footage.fps)
    picture, hidden = masked_median(footage.images, bodies)
    if hidden.any():
        picture = cv2.inpaint(picture.astype(np.uint8), hidden.astype(np.uint8), 3.0, cv2.INPAINT_TELEA).astype(
            np.float32
        )
    reason = (
        "background: each pixel's median over the frames in which nothing moves there; there is neither a clean plate nor "
        "an empty stretch at the clip's beginning or end"
    )
    usual = float(np.median(np.mean(bodies, axis=(1, 2))))
    return Scene(picture, hidden, "median", reason, float(np.mean(hidden)) / usual if usual else 0.0)


def masked_median(images: Image, bodies: Sequence[Masks] | Masks | None) -> tuple[Floats, Masks]:
    """Each pixel's median over at most 60 frames in which no body covers it, and the pixels without enough of them.

    Args:
        images: (T, H, W, 3).
        bodies: (T, h, w), of any size; None: nothing is covered.
    """
    chosen = np.unique(np.linspace(0, len(images) - 1, MEDIAN_FRAMES).astype(int))
    height, width = images.shape[1:3]
    picture, hidden = np.empty((height, width, 3), np.float32), np.zeros((height, width), bool)
    if bodies is None:
        for rows in _bands(height):
            picture[rows] = np.median(images[chosen, rows], axis=0)
        return picture, hidden
    covered = np.stack([_enlarged(bodies[i], (width, height)) for i in chosen])
    for rows in _bands(height):
        cover = covered[:, rows]
        hidden[rows] = np.count_nonzero(~cover, axis=0) < FEWEST_SEEN
        picture[rows] = _median_of_uncovered(images[chosen, rows], cover)
    return picture, hidden


def _median_of_uncovered(values: Image, covered: Masks) -> Floats:
    """Median over the first axis of (N, H, W, 3) values where (N, H, W) `covered` is not set; 255 where it always is."""
    last = np.where(covered[..., None], np.uint8(255), values)  # covered ones come last
    # Sorting short integers along the last axis is sixteen times as fast as sorting bytes along the first.
    ordered = np.sort(np.moveaxis(last, 0, -1).astype(np.int16), axis=-1)
    count = np.maximum(np.count_nonzero(~covered, axis=0), 1)[..., None, None]
    low, high = (np.take_along_axis(ordered, index, axis=-1)[..., 0] for index in ((count - 1) // 2, count // 2))
    return np.asarray(0.5 * (low.astype(np.float32) + high), np.float32)


def _bands(height: int, rows: int = 32) -> list[slice]:
    return [slice(top, min(top + rows, height)) for top in range(0, height, rows)]


def _enlarged(mask: Masks, size: tuple[int, int]) -> Masks:
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0)
