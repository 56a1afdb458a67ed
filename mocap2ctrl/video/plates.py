"""A clean plate: a picture of the empty scene that the user took, in the clip's size, exposure and sharpness."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.alignment import onto_clip
from mocap2ctrl.video.background import Floats, exposure_gain, largest_of_three, smoothed
from mocap2ctrl.video.decode import Footage, Image
from mocap2ctrl.video.medians import masked_median

PLATE_SUFFIXES = (".png", ".jpg", ".jpeg")
PLATE_ASPECT = 0.02
SAME_LEVELS = 10.0
"""A plate and the clip's median that differ by fewer grey levels show the same."""
LEAST_AGREEMENT = 0.5
OWN_FRAMES = 24
"""Frames of the clip that its own median is taken of: the plate stands where that has few."""


def plate_beside(video: Path) -> Path | None:
    """The file `<video's name>.background.png` (or .jpg) in the video's folder, if there is one."""
    candidates = [video.with_name(f"{video.stem}.background{suffix}") for suffix in PLATE_SUFFIXES]
    return next((path for path in candidates if path.is_file()), None)


def read_plate(path: Path, footage: Footage, bodies: Masks) -> Floats:
    """The picture (H, W, 3) of a file, as the clip's camera would show it.

    Raises:
        VideoError: it cannot be read, has another shape or shows another scene.
    """
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
    picture, agreement = as_the_clip_shows_it(reduced, footage, bodies)
    if agreement < LEAST_AGREEMENT:
        raise VideoError(
            f"{path}: is no clean background (only {100 * agreement:.0f} % of the still part of the video looks like it); give a "
            f"picture of the same scene by the same camera, or leave the picture out"
        )
    return picture


def as_the_clip_shows_it(picture: Image, footage: Footage, bodies: Masks) -> tuple[Floats, float]:
    """A picture (H, W, 3) of the scene by the clip's camera, in its place and light; and the share of the clip that agrees."""
    placed = onto_clip(picture, footage.images)[0].astype(np.float32)
    return with_own_pixels(placed, footage.images, bodies)


def with_own_pixels(picture: Floats, images: Image, bodies: Masks) -> tuple[Floats, float]:
    """The picture in the clip's exposure, with the clip's own median where that shows the same; and the share of that.

    A plate has noise, compression and sharpness of its own, which the clip's median has not.
    """
    median, hidden = masked_median(images, bodies, OWN_FRAMES)
    own = picture / exposure_gain(median, picture)
    same = largest_of_three(np.abs(smoothed(median) - smoothed(own))) < SAME_LEVELS
    use = cv2.erode((same & ~hidden).astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    agreement = float(np.mean(same[~hidden])) if not hidden.all() else 1.0
    return np.asarray(np.where(use[..., None], median, own), np.float32), agreement
