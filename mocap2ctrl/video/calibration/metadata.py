"""The focal length that a phone has written into its video's container."""

from __future__ import annotations

import re
from pathlib import Path

import av

FOCAL_KEY = re.compile(r"focal.?length.*35.?mm|35.?mm.*focal.?length", re.IGNORECASE)
"""`com.apple.quicktime.camera.focal_length.35mm_equivalent`, `FocalLengthIn35mmFormat` and their like."""
FILM_MM = 33.0
"""Longer side of the picture for which such a number is meant: 34.6 mm of a 4:3 picture with the diagonal of 36 x 24 mm film,
less what video's stabilisation usually cuts off."""
SHORTEST_MM, LONGEST_MM = 8.0, 400.0


def focal_from_metadata(video: str | Path) -> float | None:
    """Focal length as a share of the picture's longer side, if the container says one in the 35 mm equivalent; else None."""
    try:
        with av.open(str(video)) as container:
            tags = [*container.metadata.items(), *(tag for s in container.streams for tag in s.metadata.items())]
    except (av.FFmpegError, OSError):
        return None
    for key, text in tags:
        number = re.search(r"\d+(\.\d+)?", str(text))
        if FOCAL_KEY.search(key) and number and SHORTEST_MM <= float(number[0]) <= LONGEST_MM:
            return float(number[0]) / FILM_MM
    return None
