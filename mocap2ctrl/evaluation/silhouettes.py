"""How well a motion covers silhouettes: intersection over union, frame by frame."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.motion.clips import at_times
from mocap2ctrl.types import Array, Masks, MotionClip, Silhouettes


def model_masks(character: Character, clip: MotionClip, girth: float, silhouettes: Silhouettes) -> Masks:
    """(T, H, W) masks of a body that performs `clip`, at the silhouettes' own frame times.

    Args:
        character: the body.
        clip: of any rate, from the time of the first silhouette; where it has ended the masks are empty.
        girth: of the body's shape (`BodyShape.radii_at`).
        silhouettes: whose times and camera.
    """
    times = silhouettes.times_s
    seen = at_times(clip, times)
    shape = body_shape(character)
    ends = capsule_ends(shape, *clip_frames(character, seen)) + silhouettes.carried(times)[:, None, None]
    masks = rasterise(ends, shape.radii_at(girth), silhouettes.camera)
    masks[times > clip.duration_s + 1.0 / clip.fps] = False
    return masks


def overlaps(model: Masks, seen: Masks) -> Array:
    """(T,) intersection over union of two masks a frame; NaN where nothing was seen."""
    both = np.count_nonzero(model & seen, axis=(1, 2))
    either = np.count_nonzero(model | seen, axis=(1, 2))
    evidence = seen.any(axis=(1, 2))
    return np.where(evidence, both / np.maximum(either, 1), np.nan)


def silhouette_iou(character: Character, clip: MotionClip, girth: float, silhouettes: Silhouettes) -> float:
    """Mean intersection over union over the frames with evidence; NaN if there are none."""
    values = overlaps(model_masks(character, clip, girth, silhouettes), silhouettes.masks)
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
