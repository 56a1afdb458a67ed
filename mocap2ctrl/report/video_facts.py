"""What a video's capture knows of its input, as text: the person's body, the tracker's energy, silhouettes and camera."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.character.shape import body_shape, thickness
from mocap2ctrl.errors import CaptureError
from mocap2ctrl.evaluation.silhouettes import model_masks, overlaps
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.geometry.camera import camera_centre, world_to_camera
from mocap2ctrl.report.data import VideoEvidence
from mocap2ctrl.report.scene import Footage, Scene
from mocap2ctrl.types import Camera, MotionClip

LIMBS = {"legs": ("left_shank", "left_foot"), "arms": ("left_forearm", "left_hand"), "trunk": ("chest", "head")}
"""Segments whose offsets are the lengths of those before them."""
LISTED_ENERGIES = 6


def video_evidence(
    capture: Capture, simulated: MotionClip, footage: Footage | None, notes: Sequence[str]
) -> VideoEvidence:
    """Everything that a report on a video shows beside a report on motion capture.

    Args:
        capture: of a video.
        simulated: what its controller did, from the silhouettes' first time on.
        footage: the video's frames.
        notes: what was understood of the input.
    """
    seen = capture.silhouettes
    if seen is None:
        raise CaptureError(f"{capture.folder}: holds no silhouettes; it was not fitted to a video")
    scene = Scene(seen, footage)
    simulated_iou, track_iou = (
        overlaps(model_masks(capture.character, clip, capture.girth, seen), seen.masks)
        for clip in (simulated, capture.reference)
    )
    facts = {"Body and track": body_facts(capture), "Silhouettes and camera": camera_facts(scene, capture.reference)}
    return VideoEvidence(scene, capture.girth, simulated_iou, track_iou, facts, tuple(notes))


def body_facts(capture: Capture) -> dict[str, str]:
    """Factors of the body beside the standard body of its height, and what the tracker says of its result."""
    thicker = 100.0 * thickness(capture.character, capture.girth)
    rows = {"girth": f"{capture.girth:.2f}: {thicker:+.1f} cm all round, but on hands and feet"}
    rows |= {f"length of {name}": _factor(value) for name, value in limb_factors(capture.character).items()}
    rows["thickness of trunk"] = _factor(trunk_build(capture.character))
    rows["pose prior of the track"] = capture.prior.name
    return rows | _tracker_rows(capture.reference.provenance.get("track"))


def limb_factors(character: Character) -> dict[str, float]:
    """Lengths of legs, arms and trunk over those of the standard body of the same height."""
    standard = load_character(height_m=character.height_m)
    return {name: _length(character, ends) / _length(standard, ends) for name, ends in LIMBS.items()}


def trunk_build(character: Character) -> float:
    """Radius of the trunk over the standard body's of the same height."""
    own, standard = (body_shape(who).trunk.max() for who in (character, load_character(height_m=character.height_m)))
    return float(own / standard)


def camera_facts(scene: Scene, track: MotionClip) -> dict[str, str]:
    """Sizes of silhouettes and person in pixels, and where the camera stands."""
    seen, camera = scene.silhouettes, scene.camera
    (width, height), evidence = seen.camera.size, seen.masks.any(axis=(1, 2))
    blind = int(np.count_nonzero(~evidence))
    rows = {
        "silhouettes": f"{len(seen)} of {width} × {height} pixels, {seen.fps:.4g} a second",
        "frames without a person": f"{blind} of {len(seen)}",
        "person's height": _person_px(scene),
        "camera": camera.name,
        "camera's height": f"{camera_centre(camera)[2]:.2f} m",
        "camera's pitch": pitch_in_words(camera),
        "distance to the person": _distance(scene, track),
    }
    if seen.ground_velocity.any():
        speed = float(np.linalg.norm(seen.ground_velocity))
        rows["moving belt"] = f"{speed:.2f} m/s; motions are over the belt, as if it rested"
    if seen.keypoints is not None:
        points, source = seen.keypoints.confidence > 0, seen.keypoints.provenance
        rows["keypoints"] = (
            f"{source.get('kind', 'of unknown kind')}, {np.count_nonzero(points.any(axis=1))} of {len(seen)} frames, "
            f"{np.count_nonzero(points)} points"
        )
    if scene.footage is not None:
        rows["frames"] = f"{camera.size[0]} × {camera.size[1]} pixels, {field_of_view(camera):.0f}° wide"
    return rows


def _tracker_rows(found: Any) -> dict[str, str]:
    """Energy, terms and hypotheses, as far as a provenance tells them."""
    if not isinstance(found, Mapping):
        return {}
    rows = {}
    if "energy" in found:
        rows["track's energy"] = f"{found['energy']:,.0f}"
    if found.get("parts"):
        rows["of which"] = ", ".join(f"{name} {value:,.0f}" for name, value in found["parts"].items())
    energies = list(found.get("hypotheses", ()))
    if energies:
        listed = ", ".join(f"{value:,.0f}" for value in energies[:LISTED_ENERGIES])
        rows["hypotheses followed"] = (
            f"{len(energies)}, of energy {listed}{' …' if len(energies) > LISTED_ENERGIES else ''}"
        )
    return rows


def _factor(value: float) -> str:
    return f"{value:.2f} × the standard body's"


def _length(character: Character, ends: Sequence[str]) -> float:
    return sum(float(np.linalg.norm(character.segments[character.segment_index(name)].offset)) for name in ends)


def _person_px(scene: Scene) -> str:
    boxes = scene.boxes
    if not np.isfinite(boxes).any():
        return "nobody seen"
    tall = float(np.nanmedian(boxes[:, 3] - boxes[:, 1]))
    ratio = scene.silhouettes.camera.matrix[1, 1] / scene.camera.matrix[1, 1]
    own = f"{tall * ratio:.0f} pixels in the silhouettes"
    return own if scene.footage is None else f"{own}, {tall:.0f} in the frames"


def pitch_degrees(camera: Camera) -> float:
    """How far the direction of view is below the horizon, degrees."""
    return float(np.degrees(np.arcsin(np.clip(-world_to_camera(camera)[2, 2], -1.0, 1.0))))


def pitch_in_words(camera: Camera) -> str:
    """The direction of view over or under the horizon."""
    degrees = pitch_degrees(camera)
    if abs(degrees) < 0.05:
        return "level"
    return f"{abs(degrees):.1f}° {'down' if degrees > 0 else 'up'}"


def _distance(scene: Scene, track: MotionClip) -> str:
    carried = scene.silhouettes.carried(np.arange(len(track)) / track.fps)
    apart = np.linalg.norm(track.root_position + carried - camera_centre(scene.camera), axis=1)
    low, high = float(apart.min()), float(apart.max())
    return f"{low:.1f} m" if high - low < 0.1 else f"{low:.1f} to {high:.1f} m"


def field_of_view(camera: Camera) -> float:
    """Horizontal, degrees."""
    width, focal, centre = camera.size[0], float(camera.matrix[0, 0]), float(camera.matrix[0, 2])
    left, right = np.arctan((centre + 0.5) / focal), np.arctan((width - 0.5 - centre) / focal)
    return float(np.degrees(left + right))
