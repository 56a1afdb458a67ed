"""The inspection of a video or of masks: silhouettes, background, camera, first pose, the part that is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry.camera import camera_centre
from mocap2ctrl.report.camera import VideoCamera
from mocap2ctrl.report.inspection import Figure, Inspection
from mocap2ctrl.report.inspection_person import SeenPerson, seen_person
from mocap2ctrl.report.inspection_pictures import (
    LARGE_PX,
    Shown,
    background_picture,
    camera_picture,
    frames_picture,
    poses_picture,
    shown,
)
from mocap2ctrl.report.inspection_plots import FromAbove, plot_from_above, plot_use
from mocap2ctrl.report.style import DARK, LIGHT, Theme
from mocap2ctrl.report.video_facts import field_of_view, pitch_degrees, pitch_in_words
from mocap2ctrl.track.first_look import FirstPose, facing
from mocap2ctrl.types import Array
from mocap2ctrl.video.decode import probe
from mocap2ctrl.video.mask_files import is_mask_spec, load_masks
from mocap2ctrl.video.samples import VIDEO, shipped_file
from mocap2ctrl.video.silhouettes import LoadedSilhouettes
from mocap2ctrl.video.travel import Travel, travel_of

POSES_SHOWN = 4
HEIGHTS_AGREE = (0.8, 1.2)
"""A person whose height by the camera is mostly outside of these shares of the body's is worth a warning."""


@dataclass(frozen=True)
class Asked:
    """How an input was asked for: its name for a user, and the command that would fit it."""

    source: str
    name: str
    command: str | None


def video_inspection(
    asked: Asked, loaded: LoadedSilhouettes, character: Character, poses: Sequence[FirstPose]
) -> Inspection:
    """What was understood of a video or of masks.

    Args:
        asked: the input.
        loaded: its silhouettes and camera.
        character: a body of the person's height.
        poses: hypotheses of the first pose, most likely first; may be empty.
    """
    seen, silhouettes = shown(loaded), loaded.silhouettes
    start_s = float(silhouettes.provenance.get("start_s", 0.0))
    method = str(silhouettes.provenance.get("method", "masks"))
    person, travel = seen_person(seen.scene, start_s, seen.pixels), travel_of(silhouettes)
    names = _pose_names(seen, poses)
    return Inspection(
        source=asked.source,
        name=asked.name,
        kind=str(silhouettes.provenance.get("kind", "video")),
        error=None,
        fps=silhouettes.fps,
        frames=len(silhouettes),
        start_s=start_s,
        travels=travel.travels,
        facts=_facts(loaded, seen, person, travel, character, names),
        figures=_figures(asked, loaded, seen, person, travel, character, poses, names),
        warnings=(*loaded.warnings, *_height_warnings(person, character)),
        notes=loaded.notes,
        values={
            "method": method,
            "person_px": _rounded(float(np.nanmedian(person.tall_px)), 1),
            "person_m": _rounded(float(np.nanmedian(person.tall_m)), 2),
            "travel": travel.kind,
            "belt_m_s": _rounded(float(np.linalg.norm(silhouettes.ground_velocity)), 2),
            "camera": _camera_values(loaded, seen, person),
            "first_poses": [
                {
                    "faces": name,
                    "heading_deg": round(float(np.degrees(pose.heading)), 1),
                    "energy": round(pose.energy, 1),
                }
                for pose, name in zip(poses, names, strict=True)
            ],
        },
        command=asked.command,
    )


def _pose_names(seen: Shown, poses: Sequence[FirstPose]) -> list[str]:
    right, _, away = VideoCamera(seen.scene.camera).axes
    return [facing(pose.heading, right, away) for pose in poses]


def _figures(
    asked: Asked,
    loaded: LoadedSilhouettes,
    seen: Shown,
    person: SeenPerson,
    travel: Travel,
    character: Character,
    poses: Sequence[FirstPose],
    names: Sequence[str],
) -> list[Figure]:
    halves = [
        _camera_figure(seen, person, character),
        _use_figure(asked, loaded, person),
        _map_figure(seen, person, travel, poses),
    ]
    if seen.background is not None:
        halves.insert(0, _background_figure(loaded, seen))
    first = [_poses_figure(seen, character, poses[:POSES_SHOWN], names)] if poses else []
    return [_frames_figure(seen, float(person.times_s[0])), *halves[:2], *first, *halves[2:]]


def _frames_figure(seen: Shown, start_s: float) -> Figure:
    picture = frames_picture(seen, start_s)
    if seen.scene.footage is None:
        return Figure("Masks", "Masks spread over what is used", "As a fit sees them: one person, reduced.", picture)
    return Figure(
        "Frames, and the person found in them",
        "Frames of the input, the person outlined in yellow",
        "Yellow: the outline that a fit compares with. Are limbs whole, and is nothing else outlined?",
        picture,
    )


def _background_figure(loaded: LoadedSilhouettes, seen: Shown) -> Figure:
    reason = next((note for note in loaded.notes if note.startswith("background")), "the empty scene")
    picture = background_picture(np.asarray(seen.background), seen.size(LARGE_PX))
    caption = f"{_sentence(reason)}. Nobody should be left in it."
    return Figure("Background", "The scene without the person", caption, picture, half=True)


def _camera_figure(seen: Shown, person: SeenPerson, character: Character) -> Figure:
    caption = (
        f"Blue: the ground in cells of a metre. White: a rod of {character.height_m:.2f} m where the person stands. "
        "The grid should lie on the floor, and the person be as tall as the rod."
    )
    picture = camera_picture(seen, person, character.height_m)
    return Figure(
        "Camera",
        "A frame with the ground's grid, the horizon and a rod",
        caption,
        picture,
        half=True,
    )


def _poses_figure(seen: Shown, character: Character, poses: Sequence[FirstPose], names: Sequence[str]) -> Figure:
    labels = [f"faces {name}" for name in names[: len(poses)]]
    behind = [
        f"{name} by {pose.energy - poses[0].energy:.0f}" for pose, name in zip(poses[1:], names[1:], strict=False)
    ]
    others = f" Behind the first in the tracker's energy: {', '.join(behind)}." if behind else ""
    caption = (
        "A quick look at the first frames: left limbs blue, right limbs orange; the arrow shows where the body faces. A silhouette "
        f"does not tell left from right, so a fit keeps several.{others}"
    )
    picture = poses_picture(seen, character, poses, labels)
    return Figure("First pose, as a guess", "Bodies over the first frame", caption, picture)


def _use_figure(asked: Asked, loaded: LoadedSilhouettes, person: SeenPerson) -> Figure:
    whole = (0.0, _whole_s(asked.source, loaded))

    def draw(theme: Theme) -> bytes:
        return plot_use(whole, person.times_s, person.tall_px, theme)

    used = f"used: {person.times_s[0]:.2f} to {person.times_s[-1]:.2f} of {whole[1]:.2f} s"
    caption = f"{_sentence(next((note for note in loaded.notes if note.startswith('used')), used))}."
    if np.isnan(person.tall_px).any():
        caption = f"{caption} Red: frames without a person."
    return _plot(
        "What is used, and how tall the person is", "The used part on a time line, and pixels over time", caption, draw
    )


def _map_figure(seen: Shown, person: SeenPerson, travel: Travel, poses: Sequence[FirstPose]) -> Figure:
    camera = VideoCamera(seen.scene.camera)
    edges = [_level(camera.axes.T @ [(u - camera.pinhole[2]) / camera.pinhole[0], 0.0, 1.0]) for u in _columns_of(seen)]
    ground = FromAbove(
        person.path_m,
        person.soles_m,
        poses[0].heading if poses else None,
        [pose.heading for pose in poses[1:POSES_SHOWN]],
        camera.eye[:2],
        (edges[0], edges[1]),
    )
    caption = (
        f"{_sentence(travel.evidence)}. Arrows: where the first pose may face. Who jumps seems to be further away."
    )
    return _plot(
        "From above",
        "A map of the path, the camera and its view",
        caption,
        lambda theme: plot_from_above(ground, theme),
    )


def _columns_of(seen: Shown) -> tuple[float, float]:
    return seen.whole.left - 0.5, seen.whole.left + seen.whole.width - 0.5


def _level(direction: Array) -> Array:
    return np.asarray(direction[:2] / max(float(np.linalg.norm(direction[:2])), 1e-9))


def _plot(title: str, alt: str, caption: str, draw: Callable[[Theme], bytes]) -> Figure:
    return Figure(title, alt, caption, draw(LIGHT), draw(DARK), half=True)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _whole_s(source: str, loaded: LoadedSilhouettes) -> float:
    """Duration of the whole input, seconds."""
    if is_mask_spec(source):
        file = load_masks(source, loaded.silhouettes.fps)
        return len(file.masks) / file.fps
    return probe(shipped_file(source, VIDEO) or source).duration_s


def _height_warnings(person: SeenPerson, character: Character) -> tuple[str, ...]:
    low, high = person.heights_m
    if low <= HEIGHTS_AGREE[1] * character.height_m and high >= HEIGHTS_AGREE[0] * character.height_m:
        return ()
    return (
        f"by this camera the person is {low:.2f} to {high:.2f} m tall most of the time, but the body {character.height_m:.2f} m: "
        f"the camera's height or focal length is off, the person never stands upright, or --height M is needed",
    )


def _camera_values(loaded: LoadedSilhouettes, seen: Shown, person: SeenPerson) -> dict[str, Any]:
    camera = loaded.frames_camera
    return {
        "name": camera.name,
        "source": _camera_note(loaded),
        "field_of_view_deg": round(field_of_view(camera), 2),
        "height_m": round(float(camera_centre(camera)[2]), 3),
        "tilt_deg": round(pitch_degrees(camera), 2) + 0.0,  # no minus zero
        "distance_m": round(float(np.median(person.depth_m)), 2),
    }


def _camera_note(loaded: LoadedSilhouettes) -> str:
    return next((note for note in loaded.notes if note.startswith("camera")), loaded.frames_camera.name)


def _rounded(value: float, digits: int) -> float | None:
    return round(value, digits) if np.isfinite(value) else None


def _facts(
    loaded: LoadedSilhouettes,
    seen: Shown,
    person: SeenPerson,
    travel: Travel,
    character: Character,
    names: Sequence[str],
) -> dict[str, dict[str, str]]:
    silhouettes, camera = loaded.silhouettes, loaded.frames_camera
    blind = int(np.isnan(person.tall_px).sum())
    return {
        "Person": {
            "frames": f"{len(silhouettes)}, {silhouettes.fps:.4g} a second",
            "frames without a person": str(blind),
            "height in the picture": f"{np.nanmedian(person.tall_px):.0f} pixels",
            "height by the camera": "{:.2f} to {:.2f} m, mostly".format(*person.heights_m),
            "height of the body": f"{character.height_m:.2f} m",
            "travel": travel.evidence.removeprefix("the person "),
            "faces at first": ", or ".join(names[:2]) or "unknown",
        },
        "Camera": {
            "from": _camera_note(loaded).removeprefix("camera:").strip(),
            "field of view": f"{field_of_view(camera):.0f}° wide",
            "height": f"{camera_centre(camera)[2]:.2f} m above the ground",
            "tilt": pitch_in_words(camera),
            "distance": f"{np.median(person.depth_m):.1f} m",
        },
    }
