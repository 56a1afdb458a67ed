"""Whether a person in a video travels over the ground, stays in place, or steps in place, as on a treadmill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import uniform_filter1d
from scipy.stats import theilslopes

from mocap2ctrl.geometry.camera import camera_centre, on_plane, rays, to_camera
from mocap2ctrl.geometry.masks import row_spans
from mocap2ctrl.types import Array, Camera, Masks, Silhouettes, frozen_array
from mocap2ctrl.video.foot_slide import Slide, foot_slide

TRAVELS, IN_PLACE, STEPS, UNKNOWN = "travels", "in place", "steps in place", "unknown"

SHORTEST_S = 0.4
"""Less than a step tells nothing."""
SMOOTHED_S = 0.5
TRAVEL_M, TRAVEL_PX = 0.6, 4.0
"""A body that goes further travels; one that bends or lunges does not. In depth, pixels are coarse."""
DRIFT_M = 1.5
"""Who is on a belt stays within so much."""
NEAREST_M = 0.5

SLOWEST_BELT = 0.5
"""m/s; a person's sway is slower."""
CLEAR = 1.5
"""A belt is taken for one if so many times more of the soles go with it than rest."""
CLEAR_ACROSS = 0.6
"""Share of its velocity that must be seen across the view; along it, feet on a belt look much like feet that are lifted."""

LEGS = 0.4
"""Share of the body below which there are legs only."""
MOVING_LEGS = 0.1
"""Share of the legs' pixels that change when they step."""
UNEVEN = 0.35
"""Share of that change which is another one on the left than on the right."""
STRIDE_S, REGULAR = 1.5, 0.7
"""Within so many seconds legs that step are as they were: their least correlation with themselves, then."""


@dataclass(frozen=True, eq=False)
class Travel:
    """What a person does to the ground.

    Attributes:
        kind: `travels`, `in place` (jumps, waves, balances), `steps in place` (a treadmill, or marching), or `unknown`.
        speed_m_s: over the ground: the body's, or the belt's by the camera; 0 in place.
        ground_velocity: (2,) of the belt, world, m/s; zero where none is evident.
        evidence: a sentence for the user.
    """

    kind: str
    speed_m_s: float
    ground_velocity: Array
    evidence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "ground_velocity", frozen_array(self.ground_velocity, (2,), "ground_velocity"))

    @property
    def travels(self) -> bool | None:
        """Whether the body goes from place to place in the picture; None where that cannot be told."""
        return None if self.kind == UNKNOWN else self.kind == TRAVELS


def travel_of(silhouettes: Silhouettes) -> Travel:
    """Looks at the way of the body over the ground, and, if there is none, at what the feet do."""
    rest = np.zeros(2)
    way = _way(silhouettes)
    if way is None:
        return Travel(UNKNOWN, 0.0, rest, "too little of the person on the ground is seen to tell whether it travels")
    reach, speed = way
    slide = foot_slide(silhouettes) if reach < DRIFT_M else None
    if slide is not None and _is_belt(slide):
        told = (
            f"the person steps on the spot and the feet slide back at {slide.speed:.1f} m/s: {100 * slide.kept:.0f} % of "
            f"the soles go with that, {100 * slide.kept_still:.0f} % rest"
        )
        return Travel(STEPS, slide.speed, slide.velocity, told)
    if reach > TRAVEL_M:
        told = f"the person travels {reach:.1f} m over the ground, {speed:.1f} m/s on average"
        return Travel(TRAVELS, speed, rest, told)
    if _steps(silhouettes.masks, silhouettes.fps):
        why = "no belt is evident" if slide is None or not _slides(slide) else "the feet may slide, along the view"
        return Travel(STEPS, 0.0, rest, f"the person steps on the spot, and {why}")
    return Travel(IN_PLACE, 0.0, rest, f"the person stays in place, within {reach:.1f} m")


def _is_belt(slide: Slide) -> bool:
    return _slides(slide) and slide.across >= CLEAR_ACROSS


def _slides(slide: Slide) -> bool:
    """Whether feet go with a belt rather than rest."""
    return slide.speed >= SLOWEST_BELT and slide.kept >= CLEAR * slide.kept_still


def _way(silhouettes: Silhouettes) -> tuple[float, float] | None:
    """How far apart the body's places over the ground are, metres, and its mean speed, m/s; None if that cannot be told.

    Across the view the body is where the middle of its mask is; in depth it goes as straight as the lowest rows tell.
    """
    camera, seen = silhouettes.camera, np.flatnonzero(silhouettes.masks.any(axis=(1, 2)))
    times, masks = silhouettes.times_s[seen], silhouettes.masks[seen]
    if len(seen) < 3 or times[-1] - times[0] < SHORTEST_S:
        return None
    columns = masks.sum(axis=1) @ np.arange(masks.shape[2]) / masks.sum(axis=(1, 2))
    lowest = np.column_stack([columns, row_spans(masks)[:, 1] - 0.5])
    depth = to_camera(camera, on_plane(camera, lowest))[:, 2]
    known = np.isfinite(depth)
    if np.count_nonzero(known) < 3:
        return None
    depths = _straight(times, depth, known, camera)
    places = (camera_centre(camera) + rays(camera, lowest) * depths[:, None])[:, :2]
    path = uniform_filter1d(places, max(1, round(SMOOTHED_S * silhouettes.fps)), axis=0, mode="nearest")
    length = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    return float(np.linalg.norm(np.ptp(path, axis=0))), length / float(times[-1] - times[0])


def _straight(times: Array, depth: Array, known: npt.NDArray[np.bool_], camera: Camera) -> Array:
    """(T,) depths on a line through the ones that are known; the same all the time if pixels do not show a change."""
    middle = float(np.median(depth[known]))
    pixel_m = middle**2 / (camera.matrix[1, 1] * max(float(camera_centre(camera)[2]), 0.1))
    slope, start, *_ = theilslopes(depth[known], times[known])
    if abs(slope) * (times[-1] - times[0]) < max(TRAVEL_M, TRAVEL_PX * pixel_m):
        return np.full(len(times), middle)
    return np.asarray(np.maximum(start + slope * times, NEAREST_M))


def _steps(masks: Masks, fps: float) -> bool:
    """Whether the legs change regularly, and otherwise than their mirror image: both do the same in jumps."""
    legs = _legs(masks[masks.any(axis=(1, 2))])
    usual = legs.mean(axis=0)
    if np.abs(legs - (usual > 0.5)).sum(axis=(1, 2)).mean() < MOVING_LEGS * legs.sum(axis=(1, 2)).mean():
        return False
    change = legs - usual
    uneven = 0.5 * (change - change[:, :, ::-1])
    if np.mean(uneven**2) < UNEVEN * np.mean(change**2):
        return False
    lags = np.arange(1, min(round(STRIDE_S * fps), len(legs) - 2) + 1)
    alike = np.array([np.mean(uneven[lag:] * uneven[:-lag]) for lag in lags]) / np.mean(uneven**2)
    other = int(np.argmax(alike < 0.0))  # the first moment at which the legs are otherwise
    return bool(alike[other] < 0.0 and alike[other:].max() > REGULAR)


def _legs(masks: Masks) -> Array:
    """(T, h, 2 w) the lower part of masks (T, H, W), as far on the left of the body's middle as on its right."""
    spans = row_spans(masks)
    height, bottom = float(np.median(np.diff(spans, axis=1))), float(np.median(spans[:, 1]))
    legs = masks[:, max(0, round(bottom - LEGS * height)) :].astype(float)
    across = masks.sum(axis=(0, 1))
    middle = round(float(np.average(np.arange(len(across)), weights=across)))
    wide = max(middle + 1, masks.shape[2] - middle)
    return np.pad(legs, ((0, 0), (0, 0), (wide - middle - 1, wide - (masks.shape[2] - middle))))
