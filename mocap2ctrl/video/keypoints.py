"""Keypoints of a video laid on its silhouettes: the right frames, the right person, in pixels of the silhouettes' camera."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import KeypointsError
from mocap2ctrl.geometry.masks import row_spans, signed_distances
from mocap2ctrl.types import Array, Camera, Keypoints, Silhouettes
from mocap2ctrl.video.decode import probe
from mocap2ctrl.video.keypoints_files import Sightings
from mocap2ctrl.video.mask_files import is_mask_spec, load_masks

REACH = 0.07
"""A point that is further outside the silhouette than this share of the person's height is not on the person."""
LEAST_ON_PERSON = 0.5
"""Share of the points, by confidence, that must be on the silhouette."""


@dataclass(frozen=True, eq=False)
class SourceClock:
    """When the frames of an input were taken.

    Attributes:
        fps: frames a second of the file.
        stamps: (N,) times of its frames in the file, seconds; frames beyond follow by the rate.
        slower: how often slower than life it plays.
    """

    fps: float
    stamps: Array = field(default_factory=lambda: np.zeros(0))
    slower: float = 1.0

    def real_s(self, moment: float, unit: str) -> float:
        """Real time of a frame's number, or of a time in the file, seconds."""
        number = round(moment)
        if unit == "frame":
            moment = float(self.stamps[number]) if 0 <= number < len(self.stamps) else moment / self.fps
        return moment / self.slower


def source_clock(spec: str | Path, fps: float | None, slowmo: float | None) -> SourceClock:
    """The clock of a video, or of masks at `fps` where their file does not say; see `load_silhouettes`."""
    if is_mask_spec(spec):
        return SourceClock(load_masks(spec, fps).fps)
    info = probe(spec)
    return SourceClock(info.fps, info.stamps, info.slowmo if slowmo is None else slowmo)


def with_keypoints(
    silhouettes: Silhouettes, found: Sightings, camera: Camera, clock: SourceClock
) -> tuple[Silhouettes, str]:
    """Silhouettes with keypoints, and a sentence that says what was taken.

    Each silhouette takes the moment that is nearest to it, at most half a frame away; of several people the one that overlaps
    the silhouette best.

    Args:
        silhouettes: `start_s` of their provenance is the first one's time in the video.
        found: in pixels of the video, or in shares of its picture.
        camera: that saw the video, at its full size, with its distortion.
        clock: of the video.

    Raises:
        KeypointsError: nothing in the file is of this part of the video, or of the person in it.
    """
    chosen = _nearest_moments(silhouettes, found, clock)
    height = float(np.median(np.diff(row_spans(silhouettes.masks), axis=1)))
    shape = len(silhouettes), len(found.names)
    pixels, confidence = np.zeros((*shape, 2)), np.zeros(shape)
    off = 0
    for frame, people in chosen.items():
        places = _seen_by(silhouettes.camera, camera, people[..., :2], found.normalised)
        best = _person_on(silhouettes.masks[frame], places, people[..., 2], REACH * height)
        if best is None:
            off += 1
        else:
            pixels[frame], confidence[frame] = places[best], people[best, :, 2]
    if off == len(chosen):
        raise KeypointsError(
            f"{found.file}: in none of {off} frames are the points on the person in the silhouettes; give keypoints of this very "
            f"video, in its pixels ({camera.size[0]}x{camera.size[1]})"
        )
    kept = np.flatnonzero(np.any(confidence, axis=0))
    points = Keypoints(
        names=tuple(found.names[i] for i in kept),
        pixels=pixels[:, kept],
        confidence=confidence[:, kept],
        scale=float(camera.matrix[0, 0] / silhouettes.camera.matrix[0, 0]),
        provenance={"file": found.file.name, "kind": found.what},
    )
    crowded = sum(len(people) > 1 for people in chosen.values())
    return replace(silhouettes, keypoints=points), _note(found, points, len(silhouettes), crowded, off)


def _note(found: Sightings, points: Keypoints, count: int, crowded: int, off: int) -> str:
    seen = np.count_nonzero(points.confidence, axis=1)
    text = f"keypoints: {found.what}, in {np.count_nonzero(seen)} of {count} frames, {seen[seen > 0].mean():.1f} points each"
    if crowded:
        text += f"; several people in {crowded} frames, of whom the one that overlaps the silhouette best is taken"
    return text + (f"; {off} frames are left out, their points are off the person" if off else "")


def _nearest_moments(silhouettes: Silhouettes, found: Sightings, clock: SourceClock) -> dict[int, Array]:
    """The people (P, K, 3) that were seen nearest in time to each silhouette, by its frame, where there are any."""
    start_s = float(silhouettes.provenance.get("start_s", 0.0))
    times = np.array([clock.real_s(m.moment, m.unit) for m in found.moments])
    position = (times - start_s) * silhouettes.fps
    frames = np.floor(position + 0.5)
    nearest: dict[int, Array] = {}
    for i in np.argsort(np.abs(position - frames), kind="stable")[::-1]:  # the nearest last
        if 0 <= frames[i] < len(silhouettes):
            nearest[int(frames[i])] = found.moments[i].people
    seen = {frame: people for frame, people in sorted(nearest.items()) if np.any(people[..., 2])}
    if not seen:
        end_s = start_s + (len(silhouettes) - 1) / silhouettes.fps
        raise KeypointsError(
            f"{found.file}: holds keypoints from {times.min():.2f} to {times.max():.2f} s; the silhouettes run from {start_s:.2f} "
            f"to {end_s:.2f} s, choose another part with --time-range A B"
        )
    return seen


def _seen_by(working: Camera, own: Camera, places: Array, normalised: bool) -> Array:
    """(..., 2) pixels of `working` of places in the video; both cameras look from the same place in the same direction."""
    if normalised:
        places = places * np.array(own.size) - 0.5
    flat = np.ascontiguousarray(places.reshape(-1, 1, 2), float)
    lens = np.array(own.distortions) if len(own.distortions) else np.zeros(4)
    undistort = cv2.fisheye.undistortPoints if own.fisheye else cv2.undistortPoints
    slopes = undistort(flat, np.array(own.matrix), lens).reshape(places.shape)
    return np.asarray(slopes * np.diag(working.matrix)[:2] + working.matrix[:2, 2])


def _person_on(mask: npt.NDArray[np.bool_], places: Array, confidence: Array, reach_px: float) -> int | None:
    """The one of P people (P, K, 2) who overlaps the mask best; None if none does, or nobody can tell."""
    if not mask.any():
        return 0 if len(places) == 1 else None
    distances = signed_distances(mask[None])[0]
    limit = np.array(mask.shape[::-1]) - 1
    inside = np.clip(places, 0, limit)
    column, row = np.moveaxis(np.rint(inside).astype(int), -1, 0)
    on = distances[row, column] + np.linalg.norm(places - inside, axis=-1) <= reach_px
    votes = np.sum(confidence * on, axis=1)
    best = int(np.argmax(2.0 * votes - confidence.sum(axis=1)))
    return best if votes[best] >= LEAST_ON_PERSON * max(confidence[best].sum(), 1e-9) else None
