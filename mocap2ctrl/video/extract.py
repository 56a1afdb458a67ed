"""From a video, or from a user's masks, to one person's masks in pixels of that picture. No camera is needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError, past_the_end, reversed_range
from mocap2ctrl.geometry.masks import row_spans
from mocap2ctrl.types import Masks
from mocap2ctrl.video.alignment import held_still
from mocap2ctrl.video.background import Background, build_background
from mocap2ctrl.video.border import SHORTEST_S, border_contacts, usable_range
from mocap2ctrl.video.choice import Clip, PersonAt
from mocap2ctrl.video.cuts import one_scene
from mocap2ctrl.video.decode import Footage, Image, Progress, default_fps, read_footage
from mocap2ctrl.video.glance import refuse_visitors
from mocap2ctrl.video.light import CHANGING, steady_light
from mocap2ctrl.video.mask_files import load_masks
from mocap2ctrl.video.masks import raw_masks, restored
from mocap2ctrl.video.mixture import mixture_masks
from mocap2ctrl.video.motion import moving_bodies
from mocap2ctrl.video.person import find_person, refuse_several, same_person, users_person
from mocap2ctrl.video.refine import refined_masks
from mocap2ctrl.video.sources import Scene, check_method, empty_scene

FULL_PICTURE = 0.5
"""Share of the picture that differs from the background, above which it is no background."""
WITH_SHADOWS = ("median", "motion", "mog2")
"""Methods whose picture of the scene may hold the person's shadow."""
LEAST_BODY_PX = 30
MOST_BODY = 0.6
"""Area of a user's mask that may be a person, pixels at least and share of the picture at most."""
LEAST_PART = 0.3
"""Share of a user's mask that is in one piece, below which it is noise."""
ENTRANCE = 0.03
"""Within so much of the picture's width from its border somebody may enter or leave."""
MANY_EMPTY = 0.2
"""Share of a user's masks that may be empty without a word."""


@dataclass(frozen=True, eq=False)
class ExtractedMasks:
    """One person's masks.

    Attributes:
        name: of the video, the key or the folder.
        masks: (T, H, W), true = person.
        images: (T, H, W, 3) the frames that go with them; None for a user's masks.
        fps: frames a second.
        start_s: the first mask's time in the input.
        source_size: width and height of the input, pixels.
        method: one of `sources.METHODS`, or masks.
        notes: what was understood, sentences for the user.
        warnings: what the user should know.
        provenance: where they came from; plain JSON values.
        background: (H, W, 3) the empty scene as it was found; None for a user's masks.
    """

    name: str
    masks: Masks
    images: Image | None
    fps: float
    start_s: float
    source_size: tuple[int, int]
    method: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    provenance: dict[str, Any]
    background: Image | None = None

    @property
    def person_px(self) -> float:
        """Median height of the person, pixels of the masks."""
        return float(np.median(np.diff(row_spans(self.masks), axis=1)))


def from_video(
    path: str | Path,
    *,
    fps: float | None = None,
    time_range: tuple[float, float] | None = None,
    plate: str | Path | None = None,
    method: str | None = None,
    person_at: PersonAt | None = None,
    slowmo: float | None = None,
    progress: Progress | None = None,
) -> ExtractedMasks:
    """Subtracts the background and follows the person.

    Args:
        path: a video by a still camera.
        fps: frames a second; by default the video's own, or a whole fraction of it near 30.
        time_range: seconds of the video to use.
        plate: a picture of the empty scene; by default the one beside the video, if there is one.
        method: one of `sources.METHODS`, to insist on it.
        person_at: where the person is, if there are several.
        slowmo: how often slower than life the video plays; by default what the file says, or 1. Times are real ones then.
        progress: told how far it is.

    Raises:
        VideoError: the video cannot be used; says why and what to do.
    """
    check_method(method)
    given = None if plate is None else Path(plate)
    whole = read_footage(path, fps=fps, time_range=time_range, slowmo=slowmo, progress=progress)
    footage, cut = one_scene(whole, None if person_at is None else person_at.time_s)
    cuts = () if cut is None else (cut,)
    try:
        found = _from_footage(footage, Path(path), given, method, person_at, progress)
    except VideoError as error:  # what is missing in the file may be why
        raise VideoError("; ".join((str(error), *cuts, *footage.warnings))) from error
    return replace(found, warnings=(*cuts, *found.warnings))


def _from_footage(
    footage: Footage,
    video: Path,
    plate: Path | None,
    method: str | None,
    person_at: PersonAt | None,
    progress: Progress | None,
) -> ExtractedMasks:
    """`from_video` of what is decoded and of one scene."""
    where = str(video)
    if len(footage.images) < 3:
        count = "1 frame" if len(footage.images) == 1 else f"{len(footage.images)} frames"
        raise VideoError(f"{where}: only {count}; a motion needs at least 3")
    if person_at is None:
        refuse_visitors(footage.images, footage.fps, footage.start_s, where)
    footage, shake_note = held_still(footage, where)
    images, change = steady_light(footage.images)
    footage = replace(footage, images=images)
    bodies = moving_bodies(images, footage.fps)
    several = person_at is not None
    scene = empty_scene(footage, bodies, video, plate, method, several=several)
    background = build_background(scene.picture, images, bodies)
    unseen, clip = _person_before_unseen(scene, images), _clip(footage, where)
    if unseen is not None and not several:
        _refuse_people_before_median(footage, bodies, unseen, clip)
    raw = _first_look(background, scene, unseen, images, progress)
    _require_background(raw, where)
    with_shadows = scene.method in WITH_SHADOWS
    person = find_person(raw, clip, person_at)
    exact = refined_masks(
        background, scene, images, restored(person.masks, raw), shadows_in_background=with_shadows, progress=progress
    )
    masks = restored(same_person(exact, person, footage.fps), exact)
    found = usable_range(masks, footage.fps, footage.start_s, where, person.apart)
    part = slice(found.first, found.last)
    return ExtractedMasks(
        name=video.stem,
        masks=masks[part],
        images=images[part],
        fps=footage.fps,
        start_s=footage.start_s + found.first / footage.fps,
        source_size=footage.source_size,
        method=scene.method,
        notes=(
            _rate_note(footage),
            *footage.notes,
            scene.reason,
            *_light_note(change),
            *shake_note,
            *person.notes,
            *found.notes,
        ),
        warnings=(*footage.warnings, *_warnings(scene), *_from_nowhere(masks, clip, scene)),
        provenance={"kind": "video", "method": scene.method},
        background=scene.picture.astype(np.uint8),
    )


def _person_before_unseen(scene: Scene, images: Image) -> Masks | None:
    """(T, H, W) pixels with the person's colours where nobody knows what is behind; None if the whole scene is known."""
    if scene.looks is None:
        return None
    return np.stack([scene.hidden & (scene.looks.where_unseen(image) > 0.0) for image in images])


def _first_look(
    background: Background, scene: Scene, unseen: Masks | None, images: Image, progress: Progress | None
) -> Masks:
    """(T, H, W) all that is foreground."""
    if scene.method == "mog2":
        return mixture_masks(images, progress)
    return raw_masks(
        background, images, unseen=unseen, shadows_in_background=scene.method in WITH_SHADOWS, progress=progress
    )


def _refuse_people_before_median(footage: Footage, bodies: Masks, unseen: Masks, clip: Clip) -> None:
    """Refuses several people before the plain median, in which those who stand close to each other are not yet taken for one.

    Raises:
        VideoError: two could be meant; tells where and when.
    """
    picture = empty_scene(footage, bodies, Path(clip.where), None, "median").picture
    raw = raw_masks(build_background(picture, footage.images, bodies), footage.images, shadows_in_background=True)
    refuse_several(raw | unseen, clip)


def _require_background(raw: Masks, where: str) -> None:
    share = float(np.median(np.mean(raw, axis=(1, 2))))
    if share > FULL_PICTURE:
        raise VideoError(
            f"{where}: no clean background ({100 * share:.0f} % of the picture differs from it); the camera or the light "
            f"changes, or the background picture is of another scene"
        )


def _clip(footage: Footage, where: str) -> Clip:
    height, width = footage.images.shape[1:3]
    scale = (footage.source_size[0] / width, footage.source_size[1] / height)
    return Clip(where, footage.fps, footage.start_s, scale)


def _rate_note(footage: Footage) -> str:
    height, width = footage.images.shape[1:3]
    size = f"{footage.source_size[0]}x{footage.source_size[1]} pixels, looked at in {width}x{height}"
    if abs(footage.fps - footage.source_fps) < 1e-6:
        return f"video: {size}, {footage.fps:.4g} frames a second"
    return f"video: {size}, {footage.source_fps:.4g} frames a second, reduced to {footage.fps:.4g}"


def _light_note(change: float) -> tuple[str, ...]:
    return (f"the light changes by up to {100 * change:.0f} %; that is undone",) if change > CHANGING else ()


def _warnings(scene: Scene) -> tuple[str, ...]:
    if scene.hidden.any():
        return (
            "part of the background is never seen, because the person does not leave it; the mask is unsure there: "
            "a picture of the empty scene (--background FILE) makes it sure",
        )
    if scene.looks is not None:
        return (
            "the person stays on the spot, and the scene is told by what moves; masks are unsure so, and legs that stand still "
            "may be lost: a picture of the empty scene (--background FILE) makes them sure",
        )
    return ()


def _from_nowhere(masks: Masks, clip: Clip, scene: Scene) -> tuple[str, ...]:
    """Warns of somebody who appears or vanishes in the middle of the picture: who stands still is taken for the background."""
    if scene.method != "median":
        return ()
    there, margin = np.flatnonzero(masks.any(axis=(1, 2))), ENTRANCE * masks.shape[2]
    first, last = int(there[0]), int(there[-1])
    for t, frames, what in ((first, first, "appears"), (last, len(masks) - 1 - last, "vanishes")):
        columns = np.flatnonzero(masks[t].any(axis=0))
        inside = columns[0] > margin and columns[-1] < masks.shape[2] - margin
        if inside and frames > SHORTEST_S * clip.fps:
            return (
                f"the person {what} in the middle of the picture at {clip.start_s + t / clip.fps:.2f} s: who stands still for "
                "long may be taken for the background; --background-method motion keeps such frames, a picture of the empty "
                "scene (--background FILE) is surer",
            )
    return ()


def from_masks(
    spec: str | Path,
    *,
    fps: float | None = None,
    time_range: tuple[float, float] | None = None,
    person_at: PersonAt | None = None,
) -> ExtractedMasks:
    """Reads a user's masks; they are taken as they are, but for specks, other people, and frames in which a border cuts the body.

    Args:
        spec: `FILE.npz:KEY`, a folder of PNGs, or a video of masks.
        fps: the masks' rate, where the file does not say; else the rate to reduce them to.
        time_range: seconds of the masks to use.
        person_at: where the person is, if there are several.

    Raises:
        VideoError: the masks cannot be used; says why and what to do.
    """
    file = load_masks(spec, fps, person_at)
    rate = default_fps(file.fps) if fps is None else fps
    masks, start_s = _resampled(file.masks, file.fps, rate, time_range, str(spec))
    if not masks.any():
        raise VideoError(f"{spec}: no person in the chosen part")
    _require_body(masks, str(spec))
    empty = _empty_masks(masks, rate, str(spec))
    height, width = masks.shape[1:]
    clip = Clip(str(spec), rate, start_s, (file.source_size[0] / width, file.source_size[1] / height))
    person = users_person(masks, clip, None if file.chosen else person_at)
    result = ExtractedMasks(
        name=file.name,
        masks=person.masks,
        images=None,
        fps=rate,
        start_s=start_s,
        source_size=file.source_size,
        method="masks",
        notes=(
            *file.notes,
            f"masks: {width}x{height} pixels, {file.fps:.4g} frames a second, taken as they are",
            *person.notes,
        ),
        warnings=(*past_the_end(time_range, len(file.masks) / file.fps, 1.0 / file.fps), *empty),
        provenance={"kind": "masks", "method": "masks"},
    )
    return _within_borders(result, person.apart, str(spec))


def _empty_masks(masks: Masks, fps: float, where: str) -> tuple[str, ...]:
    """A warning where many masks (T, H, W) are empty.

    Raises:
        VideoError: so many are that too little is left.
    """
    count, seen = len(masks), int(np.count_nonzero(masks.any(axis=(1, 2))))
    if seen < min(SHORTEST_S * fps, 0.5 * count):
        raise VideoError(
            f"{where}: the person is in {seen} of {count} masks, for {seen / fps:.2f} s; at least {SHORTEST_S:g} s are needed; "
            "give masks of more frames"
        )
    if count - seen <= MANY_EMPTY * count:
        return ()
    return (f"{count - seen} of {count} masks are empty; what the person does there is guessed",)


def _require_body(masks: Masks, where: str) -> None:
    areas = np.count_nonzero(masks, axis=(1, 2))
    area = float(np.median(areas[areas > 0]))
    share = area / (masks.shape[1] * masks.shape[2])
    if area < LEAST_BODY_PX:
        raise VideoError(
            f"{where}: a mask's area is {area:.0f} px (the median), too few for a person; allowed is {LEAST_BODY_PX} or more; "
            f"give masks at a higher resolution, true or white is the person"
        )
    if share > MOST_BODY:
        raise VideoError(
            f"{where}: a mask is {100 * share:.0f} % of the picture (the median), too much for a person; allowed is up to "
            f"{100 * MOST_BODY:.0f} %; true or white is the person, and not the background"
        )
    parts = [_largest_part(mask) for mask in masks[areas > 0]]
    if np.median(parts) < LEAST_PART:
        raise VideoError(
            f"{where}: a mask's largest part is {100 * np.median(parts):.0f} % of it (the median), which is noise and no person; "
            f"allowed is {100 * LEAST_PART:.0f} % or more; give masks of one person"
        )


def _largest_part(mask: npt.NDArray[np.bool_]) -> float:
    """The share of a mask's pixels that its largest connected part has."""
    _, _, parts, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    return float(parts[1:, cv2.CC_STAT_AREA].max() / np.count_nonzero(mask))


def _resampled(
    masks: Masks, own: float, fps: float, time_range: tuple[float, float] | None, where: str
) -> tuple[Masks, float]:
    """The masks nearest in time, and the first one's time."""
    if fps > 1.01 * own:
        raise VideoError(f"{where}: fps is {fps:g}; the masks have {own:g}, and can only be reduced")
    end = len(masks) / own
    start_s, end_s = (0.0, end) if time_range is None else time_range
    if end_s <= start_s:
        raise VideoError(reversed_range(where, start_s, end_s))
    if start_s < 0.0 or start_s >= end:
        raise VideoError(f"{where}: time range {start_s:g} to {end_s:g} s; the masks run from 0 to {end:.2f} s")
    times = start_s + np.arange(max(1, int(np.ceil((min(end_s, end) - start_s) * fps - 1e-6)))) / fps
    return masks[np.minimum(np.round(times * own).astype(int), len(masks) - 1)], start_s


def _within_borders(found: ExtractedMasks, apart: npt.NDArray[np.bool_], where: str) -> ExtractedMasks:
    if apart.all() and not border_contacts(found.masks).any():
        return found
    try:
        used = usable_range(found.masks, found.fps, found.start_s, where, apart)
    except VideoError as error:
        if not apart.all():
            raise
        return replace(found, warnings=(*found.warnings, f"{error}; all masks are used"))
    return replace(
        found,
        masks=found.masks[used.first : used.last],
        start_s=found.start_s + used.first / found.fps,
        notes=(*found.notes, *used.notes),
    )
