"""Pictures that are masks: black and white, soft greys, an alpha channel, or labels as segmentation programs number them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.choice import PersonAt

Picture = npt.NDArray[Any]
"""(H, W), (H, W, 3) or (H, W, 4), blue first, as OpenCV decodes it."""

HALF = 127
"""Grey levels, or opacities, above are a person: a soft edge is cut at its half."""
SAMPLES = 12
"""Pictures of a folder from which its kind is told."""
COLOURED, COLOURED_SHARE = 24, 0.005
"""A picture is coloured when its channels differ by more levels in more than this share of its pixels."""
MOST_LABELS, NUMBERS, INSIDE = 32, 64, 0.02
"""Labels are so few values, and either small numbers, or more than one has an inside, of such a share of all; a soft edge's
levels have none."""
LARGEST_LABEL = 4.0
"""The largest label is the person without a question when it has so many times the area of the next."""
NEAR_LABEL = 0.1
"""A user's point may be so many heights of the picture beside a label."""


def read_picture(file: Path) -> Picture:
    """Decodes a PNG with all its channels.

    Raises:
        VideoError: it cannot be.
    """
    try:
        data = np.frombuffer(file.read_bytes(), np.uint8)
    except OSError as error:
        raise VideoError(f"{file}: cannot be read ({error.strerror or error})") from error
    image = cv2.imdecode(data, cv2.IMREAD_UNCHANGED) if len(data) else None
    if image is None:
        raise VideoError(f"{file}: is not a PNG that can be read; is it damaged?")
    return np.asarray(image)


def has_alpha(picture: Picture) -> bool:
    """Whether parts of it are transparent."""
    return picture.ndim == 3 and picture.shape[2] == 4 and bool((picture[..., 3] < picture[..., 3].max()).any())


def codes(picture: Picture) -> npt.NDArray[np.int64]:
    """(H, W) one number a pixel: its grey level, or its colour; 0 is black."""
    channels = picture.astype(np.int64)
    if picture.ndim == 2:
        return channels
    blue, green, red = (channels[..., k] for k in range(3))
    grey = (blue == green) & (green == red)
    return np.where(grey, blue, (red << 16) | (green << 8) | blue) if not grey.all() else blue


def kind_of(pictures: Sequence[Picture], where: str) -> str:
    """How pictures say what is a person: `alpha`, `grey` or `labels`.

    Raises:
        VideoError: they are photographs.
    """
    if any(has_alpha(p) for p in pictures):
        return "alpha"
    shown = [codes(p) for p in pictures]
    values = np.unique(np.concatenate([s.ravel() for s in shown]))
    values = values[values > 0]
    few = len(values) <= MOST_LABELS
    if any(_coloured(p) for p in pictures):
        if not few:
            raise VideoError(
                f"{where}: holds photographs and no masks; white = person, an alpha channel, or one colour a label is expected"
            )
        return "labels"
    return "labels" if few and (len(values) < 2 or values.max() < NUMBERS or _insides(shown, values) > 1) else "grey"


def _insides(shown: Sequence[npt.NDArray[np.int64]], values: npt.NDArray[np.int64]) -> int:
    """How many of the values have an inside."""
    least = INSIDE * sum(np.count_nonzero(s) for s in shown)
    square = np.ones((3, 3), np.uint8)
    areas = [sum(np.count_nonzero(cv2.erode((s == v).astype(np.uint8), square)) for s in shown) for v in values]
    return len([area for area in areas if area > least])


def _coloured(picture: Picture) -> bool:
    if picture.ndim == 2:
        return False
    colour = picture[..., :3].astype(np.int64)
    return bool(np.mean(np.ptp(colour, axis=-1) > COLOURED) > COLOURED_SHARE)


def person_pixels(picture: Picture, kind: str) -> Masks:
    """(H, W) the person in a picture of kind `alpha` or `grey`."""
    if kind == "alpha":
        opaque = np.iinfo(picture.dtype).max
        if picture.ndim == 2 or picture.shape[2] < 4:
            return np.zeros(picture.shape[:2], bool)
        return np.asarray(picture[..., 3] > opaque // 2)
    level = picture if picture.ndim == 2 else cv2.cvtColor(picture[..., :3], cv2.COLOR_BGR2GRAY)
    return np.asarray(level > (HALF if picture.dtype == np.uint8 else np.iinfo(picture.dtype).max // 2))


@dataclass(frozen=True)
class Labels:
    """The labels of some pictures.

    Attributes:
        areas: pixels of each label over all pictures.
        fullest: the first picture with the most labels.
    """

    areas: dict[int, int]
    fullest: int


def count_labels(pictures: Iterable[Picture]) -> Labels:
    """Counts labels, black left out."""
    areas: dict[int, int] = {}
    most, fullest = 0, 0
    for t, picture in enumerate(pictures):
        values, counts = np.unique(codes(picture), return_counts=True)
        here = {int(v): int(n) for v, n in zip(values, counts, strict=True) if v}
        for value, count in here.items():
            areas[value] = areas.get(value, 0) + count
        if len(here) > most:
            most, fullest = len(here), t
    return Labels(areas, fullest)


def chosen_label(labels: Labels, picture: Picture, time_s: float, at: PersonAt | None, where: str) -> int:
    """The label of the person.

    Args:
        labels: of all pictures.
        picture: at the time of `at`, or the one with the most labels.
        time_s: its time.
        at: where the user says that the person is.
        where: the input, for messages.

    Raises:
        VideoError: several could be meant, or there is none at that place.
    """
    order = sorted(labels.areas, key=lambda label: -labels.areas[label])
    shown = codes(picture)
    if at is not None:
        rows, columns = np.nonzero(shown)
        away = np.hypot(columns - at.x, rows - at.y)
        if len(away) and away.min() <= NEAR_LABEL * len(shown):
            nearest = int(np.argmin(away))
            return int(shown[rows[nearest], columns[nearest]])
        raise VideoError(f"{where}: no label at {at.x:g},{at.y:g} (pixels) at {time_s:.2f} s; {_places(shown, time_s)}")
    if len(order) > 1 and labels.areas[order[0]] < LARGEST_LABEL * labels.areas[order[1]]:
        raise VideoError(f"{where}: holds {len(order)} labels, which of them is the person? {_places(shown, time_s)}")
    if not order:
        raise VideoError(f"{where}: no label in any of the pictures; black is the background")
    return order[0]


def _places(shown: npt.NDArray[np.int64], time_s: float) -> str:
    """How to choose each label, a sentence."""
    values, counts = np.unique(shown[shown > 0], return_counts=True)
    places = []
    for value in values[np.argsort(-counts)][:6]:
        rows, columns = np.nonzero(shown == value)
        middle = np.argmin(np.hypot(columns - np.median(columns), rows - np.median(rows)))
        places.append(f"--person {columns[middle]},{rows[middle]}@{time_s:.2f}")
    return f"choose with {' or '.join(places)}" if places else "that picture is empty, choose another time with X,Y@T"
