"""Points over time, as C3D and TRC files hold them: surface markers or joint centres, with gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.interpolate import PchipInterpolator

from mocap2ctrl.motion.runs import runs
from mocap2ctrl.types import Array

BRIDGED_S = 0.5
"""Gaps up to this long are interpolated: half a step."""

Points = Mapping[str, Array]
"""Places (T, 3) by name; NaN where a point is not seen."""


@dataclass(frozen=True, eq=False)
class MarkerTrack:
    """What a file of points says, in its own unit and axes.

    Attributes:
        source: the file, for errors.
        name: short name.
        format: kind of file.
        points: (T, 3) by label, NaN in gaps.
        fps: frames a second.
        unit_m: metres a unit, None where the file does not say.
        up: the axis that the file says points up, None where it does not say.
        warnings: what the reader had to overlook.
        half_widths_m: from a joint's lateral marker to its centre, of `left knee` and so on, where the file says it.
    """

    source: str
    name: str
    format: str
    points: Points
    fps: float
    unit_m: float | None
    up: str | None
    warnings: tuple[str, ...] = ()
    half_widths_m: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.points.values()))) if self.points else 0


def seen(places: Array) -> np.ndarray:
    """(T,) whether a point (T, 3) is seen."""
    return np.asarray(np.isfinite(places).all(axis=-1))


def bridged(places: Array, longest: int) -> Array:
    """A point (T, 3) with its gaps of up to `longest` frames interpolated without overshoot; ends stay open."""
    there = seen(places)
    gaps = [(a, b) for a, b in runs(~there) if a > 0 and b < len(places) and b - a <= longest]
    if not gaps or np.count_nonzero(there) < 2:
        return places
    frames = np.flatnonzero(there)
    curve = PchipInterpolator(frames, places[there], axis=0)
    filled = places.copy()
    for start, stop in gaps:
        filled[start:stop] = curve(np.arange(start, stop))
    return filled


def longest_stretch(points: Points, names: tuple[str, ...]) -> tuple[int, int]:
    """The longest run of frames in which all of `names` are seen: begin and end, exclusive; (0, 0) if there is none."""
    together = np.all([seen(points[name]) for name in names], axis=0)
    return max(runs(together), key=lambda run: run[1] - run[0], default=(0, 0))
