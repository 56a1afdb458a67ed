"""`load_silhouettes`: from a video or masks, and a camera, to the silhouettes that a fit compares with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mocap2ctrl.errors import CameraError, VideoError
from mocap2ctrl.geometry.camera import camera_centre, on_plane, to_camera
from mocap2ctrl.geometry.masks import row_spans
from mocap2ctrl.types import Array, Camera, Masks, Silhouettes
from mocap2ctrl.video.calibration import statement
from mocap2ctrl.video.calibration.estimate import estimated_camera
from mocap2ctrl.video.calibration.metadata import focal_from_metadata
from mocap2ctrl.video.camera_file import camera_beside, camera_for_size, load_camera
from mocap2ctrl.video.choice import person_at
from mocap2ctrl.video.decode import Image, Progress, probe
from mocap2ctrl.video.extract import ExtractedMasks, from_masks, from_video
from mocap2ctrl.video.keypoints import source_clock, with_keypoints
from mocap2ctrl.video.keypoints_files import read_keypoints
from mocap2ctrl.video.mask_files import holds_masks
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

CHECK = "check its translation (metres, world to camera, world z up), rotation and matrix"


@dataclass(frozen=True, eq=False)
class LoadedSilhouettes:
    """A video, or masks, as a fit sees it.

    Attributes:
        silhouettes: masks around the person at a working size, with their ideal pinhole.
        frames: (T, H, W, 3) undistorted RGB frames of the same moments, for overlays; None for a user's masks.
        frames_camera: the ideal pinhole that sees `frames`, or would see them.
        notes: what was understood, sentences for the user.
        warnings: what the user should know.
        background: (H, W, 3) the empty scene as it was found, undistorted; None for a user's masks.
    """

    silhouettes: Silhouettes
    frames: Image | None
    frames_camera: Camera
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    background: Image | None = None


def load_silhouettes(
    spec: str | Path,
    camera: str | Path | Camera | None = None,
    *,
    fps: float | None = None,
    time_range: tuple[float, float] | None = None,
    background: str | Path | None = None,
    method: str | None = None,
    person: str | Sequence[float] | None = None,
    as_masks: bool = False,
    slowmo: float | None = None,
    height_m: float | None = None,
    keypoints: str | Path | None = None,
    progress: Progress | None = None,
) -> LoadedSilhouettes:
    """Reads a video or masks, and the camera that saw them; where there is none, it is estimated from the person's heads and feet.

    Args:
        spec: a video, or the name of one that is shipped; `FILE.npz:KEY`, or a folder of PNGs.
        camera: `FILE.toml`, `FILE.toml:NAME`, or a camera; by default the file `<video's name>.toml` beside the input;
            if there is none, the camera is estimated.
        fps: frames a second; by default the input's own, or a whole fraction of it near 30. For masks whose file does not
            say, their rate.
        time_range: seconds of the input to use.
        background: a picture of the empty scene.
        method: one of `sources.METHODS`, to insist on it.
        person: which one, where there are several; see `person_at`.
        as_masks: a video is one of masks, white = person, even if it is not quite black and white.
        slowmo: how often slower than life a video plays; by default what the file says, or 1.
        height_m: of the person, if it is known, for a camera that has to be estimated.
        keypoints: a file or folder of points of the body in the same frames; see `read_keypoints`.
        progress: told how far it is.

    Raises:
        VideoError: the input cannot be used; says why and what to do.
        CameraError: the camera cannot be used, or is not of this input.
        KeypointsError: the keypoints cannot be read, or are not of this input.
    """
    points = None if keypoints is None else read_keypoints(keypoints)  # a bad file is told before the long work
    shipped = shipped_file(spec, VIDEO)
    spec, at = spec if shipped is None else shipped, person_at(person)
    if holds_masks(spec, insist=as_masks):
        if background is not None or method is not None:
            raise VideoError(f"{spec}: holds masks; a background or a method is for videos only, leave it out")
        if slowmo is not None:
            raise VideoError(f"{spec}: slow motion is for videos; give the masks' rate in real time as fps")
        found = from_masks(spec, fps=fps, time_range=time_range, person_at=at)
        given = _camera_of(spec, camera, found.source_size, "the masks")
    else:
        size = probe(
            spec
        ).size  # a file that is no video is told before a camera that is missing, both before the long work
        given = _camera_of(spec, camera, size, "the video")
        found = from_video(
            spec,
            fps=fps,
            time_range=time_range,
            plate=background,
            method=method,
            person_at=at,
            slowmo=slowmo,
            progress=progress,
        )
    if given is not None:
        seen = seen_by(found, given[0], input_file(spec), given[1])
    else:
        seen = seen_without_camera(found, input_file(spec), height_m)
    if points is not None:
        own = camera_for_size(seen.frames_camera if given is None else given[0], found.source_size)
        silhouettes, told = with_keypoints(seen.silhouettes, points, own, source_clock(spec, fps, slowmo))
        seen = replace(seen, silhouettes=silhouettes, notes=(*seen.notes, told))
    return seen if shipped is None else replace(seen, notes=(sample_note(shipped), *seen.notes))


def sample_note(file: Path) -> str:
    """What a user is told whose input was found among the sample footage."""
    return f"video: {file}, sample footage; there is no {file.name} here"


def find_camera(spec: str | Path, camera: str | Path | Camera | None) -> tuple[Camera, str] | None:
    """The camera of an input, and a sentence that says where it came from; None if nobody gave one.

    Raises:
        CameraError: it cannot be used.
    """
    if isinstance(camera, Camera):
        return camera, f"camera: {camera.name}"
    if camera is not None:
        return load_camera(camera), f"camera: {camera}"
    beside = camera_beside(input_file(spec))
    return None if beside is None else (load_camera(beside), f"camera: {beside}, found beside the input")


def _camera_of(
    spec: str | Path, camera: str | Path | Camera | None, size: tuple[int, int], what: str
) -> tuple[Camera, str] | None:
    """`find_camera`, at the input's size."""
    found = find_camera(spec, camera)
    return None if found is None else (camera_for_size(found[0], size, what), found[1])


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


def seen_by(
    found: ExtractedMasks, camera: Camera, file: Path, camera_note: str, advice: str | None = CHECK
) -> LoadedSilhouettes:
    """Undistorts masks and frames, and takes the working region around the person.

    Args:
        found: masks in pixels of the picture.
        camera: that saw the picture, at any size of the same shape.
        file: the input, for its hash.
        camera_note: where the camera came from.
        advice: what to do if it cannot be; None: whatever it makes of the person is taken.

    Raises:
        CameraError: by this camera, the masks are of no person who walks on the ground.
    """
    height, width = found.masks.shape[1:]
    lens = undistortion(camera_for_size(camera, (width, height)))
    undistorted_masks = lens.masks(found.masks)
    if advice is not None:
        _require_plausible(undistorted_masks, lens.camera, advice)
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
        background=None if found.background is None else lens.images(found.background[None])[0],
    )


def seen_without_camera(found: ExtractedMasks, file: Path, height_m: float | None) -> LoadedSilhouettes:
    """`seen_by`, by the camera that the masks themselves make the most likely.

    Args:
        found: masks in pixels of the picture.
        file: the input, which may say its focal length.
        height_m: of the person, if it is known.

    Raises:
        CameraError: by no likely camera are the masks of a person who walks on the ground.
    """
    focal = None if found.images is None else focal_from_metadata(file)
    estimate = estimated_camera(found.masks, found.fps, height_m=height_m, focal=focal)
    note = statement.sentence(estimate, height_m, found.source_size)
    # Of an assumed camera nobody stands upright, so that no height of the masks speaks against it.
    seen = seen_by(found, estimate.camera, file, note, advice=None if estimate.assumed else statement.ADVICE)
    provenance = {**seen.silhouettes.provenance, "camera_estimate": statement.provenance(estimate)}
    return replace(
        seen,
        silhouettes=replace(seen.silhouettes, provenance=provenance),
        warnings=(*seen.warnings, *statement.warnings(estimate)),
    )


def _require_plausible(masks: Masks, camera: Camera, advice: str) -> None:
    """Refuses a camera by which nobody stands on the ground, or a giant or a dwarf does.

    Args:
        masks: (T, H, W) in pixels of `camera`.
        camera: an ideal pinhole.
        advice: what to do about it.
    """
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
