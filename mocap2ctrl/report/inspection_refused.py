"""The inspection of footage that cannot be fitted: what can still be shown of it, so that a user sees why."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.errors import CameraError, Mocap2CtrlError, VideoError
from mocap2ctrl.fit.inputs import Options
from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.inspection import Figure, Inspection
from mocap2ctrl.report.inspection_pictures import plain_frames_picture, spread
from mocap2ctrl.types import Masks
from mocap2ctrl.video.choice import person_at
from mocap2ctrl.video.decode import probe, read_footage
from mocap2ctrl.video.extract import ExtractedMasks, from_masks, from_video
from mocap2ctrl.video.mask_files import holds_masks, is_mask_spec, load_masks
from mocap2ctrl.video.samples import VIDEO, shipped_file

INSIDE, OUTSIDE = 230, 40
"""Grey levels of masks."""


def refused_inspection(
    source: str,
    name: str,
    error: Mocap2CtrlError,
    options: Options,
) -> Inspection:
    """What can be shown of a video, or of masks, that a fit refuses.

    Args:
        source: the input.
        name: of a capture.
        error: why it is refused; a camera's leaves the silhouettes, which are shown.
        options: how it was to be read.

    Raises:
        Mocap2CtrlError: `error` itself, if not even frames can be had of the input.
    """
    if isinstance(error, CameraError):
        try:
            found = _extracted(source, options)
        except VideoError as other:  # no camera would help
            error = other
        else:
            return _without_camera(source, name, error, found)
    try:
        images, times_s, rate, count = _frames(source, options)
    except Mocap2CtrlError:
        raise error from None
    caption = f"{len(images)} of {count} frames, as they are."
    figure = Figure("Frames", "Frames of the input", caption, plain_frames_picture(images, times_s))
    return _refused(source, name, error, rate, count, times_s[0], figure)


def _without_camera(source: str, name: str, error: CameraError, found: ExtractedMasks) -> Inspection:
    chosen = spread(len(found.masks))
    masks = found.masks[chosen]
    images = _grey(masks) if found.images is None else list(found.images[chosen])
    times_s = [found.start_s + t / found.fps for t in chosen]
    picture = plain_frames_picture(images, times_s, None if found.images is None else masks)
    caption = "The person was found (yellow outline), but the camera cannot be used."
    figure = Figure("Frames, and the person found in them", "Frames, the person outlined", caption, picture)
    return _refused(source, name, error, found.fps, len(found.masks), found.start_s, figure, found)


def _refused(
    source: str,
    name: str,
    error: Mocap2CtrlError,
    fps: float,
    frames: int,
    start_s: float,
    figure: Figure,
    found: ExtractedMasks | None = None,
) -> Inspection:
    return Inspection(
        source=source,
        name=name,
        kind="masks" if is_mask_spec(source) else "video",
        error=" ".join(str(error).split()),
        fps=fps,
        frames=frames,
        start_s=start_s,
        facts={"Input": _facts(source, fps, frames)},
        figures=(figure,),
        warnings=() if found is None else found.warnings,
        notes=() if found is None else found.notes,
        values=_values(found),
    )


def _values(found: ExtractedMasks | None) -> dict[str, object]:
    return {
        "method": None if found is None else found.method,
        "person_px": None if found is None else round(found.person_px, 1),
        "person_m": None,
        "camera": None,
        "first_poses": [],
    }


def _facts(source: str, fps: float, frames: int) -> dict[str, str]:
    facts = {"frames": f"{frames}, {fps:.4g} a second"}
    if not is_mask_spec(source):
        info = probe(shipped_file(source, VIDEO) or source)
        facts |= {
            "size": f"{info.size[0]} × {info.size[1]} pixels",
            "video": f"{info.duration_s:.2f} s, {info.fps:.4g} frames a second",
        }
    return facts


def _extracted(source: str, options: Options) -> ExtractedMasks:
    at, fps, time_range = person_at(options.person), options.fps, options.time_range
    file = shipped_file(source, VIDEO) or source
    if holds_masks(file, insist=options.masks):
        return from_masks(file, fps=fps, time_range=time_range, person_at=at)
    return from_video(
        file,
        fps=fps,
        time_range=time_range,
        plate=options.background,
        method=options.background_method,
        person_at=at,
        slowmo=options.slowmo,
    )


def _frames(source: str, options: Options) -> tuple[list[Image], list[float], float, int]:
    """Some frames, their times, and the rate and number of all."""
    if is_mask_spec(source):
        file = load_masks(source, options.fps)
        chosen = spread(len(file.masks))
        return _grey(file.masks[chosen]), [t / file.fps for t in chosen], file.fps, len(file.masks)
    place = shipped_file(source, VIDEO) or source
    footage = read_footage(place, fps=options.fps, time_range=options.time_range, slowmo=options.slowmo)
    chosen = spread(len(footage.images))
    times_s = [footage.start_s + t / footage.fps for t in chosen]
    return [footage.images[t] for t in chosen], times_s, footage.fps, len(footage.images)


def _grey(masks: Masks) -> list[Image]:
    return [np.repeat(np.where(mask, INSIDE, OUTSIDE).astype(np.uint8)[..., None], 3, axis=-1) for mask in masks]
