"""`load_silhouettes`: from a video or masks, and a camera, to the silhouettes that a fit compares with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mocap2ctrl.errors import CameraError
from mocap2ctrl.geometry.camera import camera_centre, on_plane, to_camera
from mocap2ctrl.geometry.masks import row_spans
from mocap2ctrl.types import Array, Camera, Masks, Silhouettes
from mocap2ctrl.video.camera_file import camera_beside, camera_for_size, load_camera
from mocap2ctrl.video.decode import Image, Progress, probe
from mocap2ctrl.video.extract import ExtractedMasks, from_masks, from_video
from mocap2ctrl.video.mask_files import is_mask_spec
from mocap2ctrl.video.region import undistortion, working_region
from mocap2ctrl.video.samples import VIDEO, shipped_file

LEAST_ON_GROUND = 1 / 3
"""Share of the masks whose lowest point must be a place on the ground."""
SMALLEST_M, TALLEST_M = 0.5, 3.0
"""Heights of a person that a camera may imply; the masks' feet and the ground are not exact."""
NEAREST_M, FARTHEST_M = 0.5, 200.0
"""Distances of a person that a camera may imply; they follow the focal length, the heights do not."""
QUARTILES = (25.0, 75.0)
"""A person crouches in some frames, which makes them small, and jumps in others, which makes them far and tall."""


@dataclass(frozen=True, eq=False)
class LoadedSilhouettes:
    """A video, or masks, as a fit sees it.

    Attributes:
        silhouettes: masks around the person at a working size, with their ideal pinhole.
        frames: (T, H, W, 3) undistorted RGB frames of the same moments, for overlays; None for a user's masks.
        frames_camera: the ideal pinhole that sees `frames`, or would see them.
        notes: what was understood, sentences for the user.
        warnings: what the user should know.
    """

    silhouettes: Silhouettes
    frames: Image | None
    frames_camera: Camera
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def load_silhouettes(
    spec: str | Path,
    camera: str | Path | Camera | None = None,
    *,
    fps: float | None = None,
    time_range: tuple[float, float] | None = None,
    background: str | Path | None = None,
    method: str | None = None,
    progress: Progress | None = None,
) -> LoadedSilhouettes:
    """Reads a video or masks, and the camera that saw them.

    Args:
        spec: a video, or the name of one that is shipped; `FILE.npz:KEY`, or a folder of PNGs.
        camera: `FILE.toml`, `FILE.toml:NAME`, or a camera; by default the file `<video's name>.toml` beside the input.
        fps: frames a second; by default the input's own, or a whole fraction of it near 30. For masks whose file does not
            say, their rate.
        time_range: seconds of the input to use.
        background: a picture of the empty scene.
        method: one of `sources.METHODS`, to insist on it.
        progress: told how far it is.

    Raises:
        VideoError: the input cannot be used; says why and what to do.
        CameraError: there is no camera, or it is not of this input.
    """
    shipped = shipped_file(spec, VIDEO)
    spec = spec if shipped is None else shipped
    if is_mask_spec(spec):
        found = from_masks(spec, fps=fps, time_range=time_range)
        own, note = find_camera(spec, camera)
        own = camera_for_size(own, found.source_size, "the masks")
    else:
        size = probe(
            spec
        ).size  # a file that is no video is told before a camera that is missing, both before the long work
        own, note = find_camera(spec, camera)
        own = camera_for_size(own, size)
        found = from_video(spec, fps=fps, time_range=time_range, plate=background, method=method, progress=progress)
    seen = seen_by(found, own, input_file(spec), note)
    return seen if shipped is None else replace(seen, notes=(sample_note(shipped), *seen.notes))


def sample_note(file: Path) -> str:
    """What a user is told whose input was found among the sample footage."""
    return f"video: {file}, sample footage; there is no {file.name} here"


def find_camera(spec: str | Path, camera: str | Path | Camera | None) -> tuple[Camera, str]:
    """The camera of an input, and a sentence that says where it came from.

    Raises:
        CameraError: there is none, or it cannot be used.
    """
    if isinstance(camera, Camera):
        return camera, f"camera: {camera.name}"
    if camera is not None:
        return load_camera(camera), f"camera: {camera}"
    beside = camera_beside(input_file(spec))
    if beside is None:
        name = input_file(spec).with_suffix(".toml").name
        raise CameraError(f"{spec}: no camera; give one with --camera FILE.toml[:NAME], or put {name} beside it")
    return load_camera(beside), f"camera: {beside}, found beside the input"


def input_file(spec: str | Path) -> Path:
    """The file or folder of a spec, without a key."""
    path = Path(spec)
    before, colon, _ = str(spec).rpartition(":")
    return Path(before) if colon and before and not path.exists() else path


def input_name(spec: str | Path) -> str:
    """What to call an input: a mask's key if it is given, else the name of the file or folder."""
    file = input_file(spec)
    _, colon, key = str(spec).rpartition(":")
    if colon and key and file != Path(spec):
        return key
    return file.resolve().name if file.is_dir() else file.stem


def seen_by(found: ExtractedMasks, camera: Camera, file: Path, camera_note: str) -> LoadedSilhouettes:
    """Undistorts masks and frames, and takes the working region around the person.

    Args:
        found: masks in pixels of the picture.
        camera: that saw the picture, at any size of the same shape.
        file: the input, for its hash.
        camera_note: where the camera came from.

    Raises:
        CameraError: by this camera, the masks are of no person who walks on the ground.
    """
    height, width = found.masks.shape[1:]
    lens = undistortion(camera_for_size(camera, (width, height)))
    undistorted_masks = lens.masks(found.masks)
    _require_plausible(undistorted_masks, lens.camera)
    masks, working = working_region(undistorted_masks, lens.camera)
    note = f"silhouettes: {len(masks)} of {working.size[0]}x{working.size[1]} pixels around the person, {found.fps:.4g} a second"
    provenance = {
        **found.provenance,
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None,
        "fps": found.fps,
        "start_s": found.start_s,
        "camera": camera.name,
    }
    return LoadedSilhouettes(
        silhouettes=Silhouettes(found.name, found.fps, masks, working, provenance),
        frames=None if found.images is None else lens.images(found.images),
        frames_camera=lens.camera,
        notes=(*found.notes, camera_note, note),
        warnings=found.warnings,
    )


def _require_plausible(masks: Masks, camera: Camera) -> None:
    """Refuses a camera by which nobody stands on the ground, or a giant or a dwarf does.

    Args:
        masks: (T, H, W) in pixels of `camera`.
        camera: an ideal pinhole.
    """
    advice = "check its translation (metres, world to camera, world z up), rotation and matrix"
    height_m = float(camera_centre(camera)[2])
    if height_m <= 0:
        raise CameraError(f"camera {camera.name}: is {-height_m:.3g} m below the ground; {advice}")
    soles, heights_px = _soles_and_heights(masks)
    if not len(soles):
        raise CameraError(f"camera {camera.name}: no mask is left in its picture; check its distortions and matrix")
    depth = to_camera(camera, on_plane(camera, soles))[:, 2]
    sees = np.isfinite(depth) & (depth > 0)
    if np.mean(sees) < LEAST_ON_GROUND:
        raise CameraError(
            f"camera {camera.name}: sees no ground under the person in {100 * np.mean(~sees):.0f} % of the frames; {advice}"
        )
    far_m = float(np.median(depth[sees]))
    if not NEAREST_M <= far_m <= FARTHEST_M:
        raise CameraError(
            f"camera {camera.name}: puts the person {far_m:.3g} m away; allowed is {NEAREST_M:g} to {FARTHEST_M:g} m; {advice}"
        )
    low_m, high_m = np.percentile(heights_px[sees] * depth[sees] / camera.matrix[1, 1], QUARTILES)
    if high_m < SMALLEST_M or low_m > TALLEST_M:
        tall_m = high_m if high_m < SMALLEST_M else low_m
        raise CameraError(
            f"camera {camera.name}: makes the person {tall_m:.3g} m tall; allowed is {SMALLEST_M:g} to {TALLEST_M:g} m; {advice}"
        )


def _soles_and_heights(masks: Masks) -> tuple[Array, Array]:
    """Of the masks with a person: (N, 2) the middle of the lowest row, pixels; (N,) the heights, pixels."""
    first, end = row_spans(masks).T
    held = masks[np.any(masks, axis=(1, 2))]
    middle = [np.median(np.flatnonzero(mask[row - 1])) for mask, row in zip(held, end, strict=True)]
    return np.column_stack([middle, end - 0.5]), (end - first).astype(float)
