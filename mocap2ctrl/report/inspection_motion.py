"""The inspection of a motion file: unit, axes, skeleton, contacts, travel, and how near the body comes to the file's joints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np

from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.motion.feet import Feet
from mocap2ctrl.motion.in_place import Belt
from mocap2ctrl.motion.joint_map import FILE_NAME
from mocap2ctrl.motion.kinds import TITLES
from mocap2ctrl.motion.load import LoadedMotion
from mocap2ctrl.report.ground import Image, background
from mocap2ctrl.report.inspection import Figure, Inspection
from mocap2ctrl.report.inspection_pictures import grid, jpeg, spread
from mocap2ctrl.report.inspection_plots import FromAbove, plot_contacts, plot_errors, plot_from_above
from mocap2ctrl.report.overlay import panels
from mocap2ctrl.report.render import draw_frames
from mocap2ctrl.report.style import DARK, LIGHT
from mocap2ctrl.report.text import draw_label
from mocap2ctrl.types import Array, Masks

PANEL_PX = 398
COLUMNS, POSES = 4, 8
CONTACTS_TOLD = 5
TIE_S = 1e-6
JOINT, JOINT_RIM = (255, 224, 50), (20, 22, 26)
FOUND_BY = {"map": "the joint map", "name": "name", "shape": "the skeleton's shape"}


def motion_inspection(
    source: str, loaded: LoadedMotion, character: Character, command: str | None = None
) -> Inspection:
    """What was understood of a motion file.

    Args:
        source: the input.
        loaded: the file as the character performs it.
        character: the body.
        command: that would fit it.
    """
    clip, errors = loaded.clip, loaded.joint_errors_cm
    reach = float(np.max(np.linalg.norm(clip.root_position[:, :2] - clip.root_position[0, :2], axis=1)))
    mean = float(np.mean([value for value, _ in errors.values()])) if errors else float("nan")
    return Inspection(
        source=source,
        name=Path(source).stem,
        kind=loaded.kind,
        error=None,
        fps=clip.fps,
        frames=len(clip),
        start_s=clip.start_s,
        unit=loaded.unit,
        up=loaded.up,
        travels=loaded.travels,
        facts=_facts(loaded, character, reach, mean),
        figures=_figures(loaded, character, errors, reach),
        warnings=loaded.warnings,
        values={
            "standing_height": round(loaded.height, 4),
            "metres_per_unit": round(loaded.scale, 6),
            "loop": clip.loop,
            "ends_standing": clip.ends_standing,
            "joints": dict(loaded.joints),
            "joints_by": dict(loaded.how),
            "unit_m": loaded.unit_m,
            "facing": loaded.facing,
            "carrier": loaded.carrier,
            "said": sorted(loaded.said),
            "retarget_error_cm": None if not errors else round(mean, 2),
            "retarget_errors_cm": {name: round(value, 2) for name, (value, _) in errors.items()},
            "limb_error_cm": None if np.isnan(loaded.limb_error_cm) else round(loaded.limb_error_cm, 2),
            "feet": feet_values(loaded.feet),
            "belt_m_s": round(loaded.belt.speed_m_s, 2),
        },
        command=command,
        files={FILE_NAME: loaded.joint_map},
    )


def _facts(loaded: LoadedMotion, character: Character, reach: float, mean: float) -> dict[str, dict[str, str]]:
    clip = loaded.clip
    metres = "" if loaded.unit == "m" else f" ({loaded.height * loaded.unit_m:.2f} m)"
    return {
        "File": {
            "format": TITLES[loaded.kind],
            "unit": f"{loaded.unit}, {_source_of('unit', loaded)}",
            "up axis": f"{loaded.up}, {_source_of('up', loaded)}",
            "faces at first": loaded.facing,
            "carried by": loaded.carrier,
            "frames": f"{len(clip)}, {clip.fps:.4g} a second",
            "duration": f"{clip.duration_s:.2f} s",
            "standing height": f"{loaded.height:.4g} {loaded.unit}{metres}",
            "joints": f"{len(loaded.joints)}, by {' and '.join(FOUND_BY[way] for way in sorted(set(loaded.how.values())))}",
        },
        "Motion": {
            "body": f"{character.height_m:.2f} m tall",
            "scale": f"{loaded.scale:.4g} m for one file unit",
            "travels": f"{reach:.2f} m" if loaded.travels else f"no ({reach:.2f} m)",
            **_belt_fact(loaded.belt),
            "loop": "yes" if clip.loop else "no",
            "ends standing": "yes" if clip.ends_standing else "no",
            "distance from the file's joints": f"{mean:.1f} cm on average",
            "limbs, bone by bone": f"{loaded.limb_error_cm:.1f} cm",
        },
        "Feet, planted": _feet_facts(loaded.feet),
        "Joints: body and file": {
            part: joint if loaded.how[part] == "name" else f"{joint} (by {FOUND_BY[loaded.how[part]]})"
            for part, joint in loaded.joints.items()
        },
    }


def _source_of(what: str, loaded: LoadedMotion) -> str:
    return "as stated" if what in loaded.said else "inferred"


def _belt_fact(belt: Belt) -> dict[str, str]:
    if not belt.speed_m_s:
        return {}
    done = "put back as travel" if belt.put_back else "left as it is"
    return {"moving ground": f"{belt.speed_m_s:.2f} m/s{', as stated' if belt.stated else ''}, {done}"}


def feet_values(feet: Feet) -> dict[str, object]:
    """Slide, height and contact times as plain JSON values; None where nothing stands."""

    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 2)

    return {
        "slide_before_cm_s": rounded(feet.before.slide_cm_s),
        "slide_cm_s": rounded(feet.after.slide_cm_s),
        "height_before_mm": rounded(feet.before.height_mm),
        "height_mm": rounded(feet.after.height_mm),
        "sinks_before_mm": rounded(feet.before.sinks_mm),
        "sinks_mm": rounded(feet.after.sinks_mm),
        "contacts_s": {
            side: [[round(start, 3), round(end, 3)] for start, end in spans]
            for side, spans in zip(SIDES, feet.contacts, strict=True)
        },
    }


def _feet_facts(feet: Feet) -> dict[str, str]:
    before, after = feet.before, feet.after
    if before.height_mm is None or after.height_mm is None:
        return {"contacts": "the feet stand nowhere; they are left as they are"}
    facts = {"off the ground": f"{before.height_mm:.1f} → {after.height_mm:.1f} mm while they stand"}
    if before.slide_cm_s is not None and after.slide_cm_s is not None:
        facts["slide"] = f"{before.slide_cm_s:.1f} → {after.slide_cm_s:.1f} cm/s while they stand"
    for side, spans in zip(SIDES, feet.contacts, strict=True):
        told = ", ".join(f"{start:.2f} to {end:.2f}" for start, end in spans[:CONTACTS_TOLD])
        more = f" and {len(spans) - CONTACTS_TOLD} more" if len(spans) > CONTACTS_TOLD else ""
        facts[f"{side} foot stands"] = f"{told}{more} s" if spans else "nowhere"
    return facts


def _stands(feet: Feet, times_s: Array) -> Masks:
    """(T, 2) whether the left and the right foot stand at `times_s` (T,)."""
    stands = np.zeros((len(times_s), len(SIDES)), dtype=bool)
    for side, spans in enumerate(feet.contacts):
        for start, end in spans:
            stands[:, side] |= (times_s >= start - TIE_S) & (times_s <= end + TIE_S)
    return stands


def _figures(
    loaded: LoadedMotion, character: Character, errors: Mapping[str, tuple[float, float]], reach: float
) -> list[Figure]:
    clip = loaded.clip
    times_s = clip.times_s
    stands = _stands(loaded.feet, times_s)
    ground = FromAbove(clip.root_position[:, :2], heading=0.0)
    travel = (
        f"The path leads up to {reach:.1f} m from its start"
        if loaded.travels
        else f"The body stays within {reach:.1f} m"
    )
    figures = [
        Figure(
            "The motion, as the body performs it",
            "The body at moments of the motion, with the file's joints as dots",
            "Left limbs blue, right limbs orange. Yellow dots: the file's own joints, which should lie inside the body.",
            _poses(loaded, character),
        ),
        Figure(
            "Contacts with the ground",
            "When each foot stands, and how high the pelvis is",
            f"The left foot stands {100 * stands[:, 0].mean():.0f} % of the time, the right one {100 * stands[:, 1].mean():.0f} %.",
            plot_contacts(times_s, stands, clip.root_position, LIGHT),
            plot_contacts(times_s, stands, clip.root_position, DARK),
            half=True,
        ),
        Figure(
            "From above",
            "The pelvis' path on the ground",
            f"{travel}. The first frame faces along x.",
            plot_from_above(ground, LIGHT),
            plot_from_above(ground, DARK),
            half=True,
        ),
    ]
    if errors:
        caption = (
            "The body's proportions are not the file's: limbs take their directions from it, ankles their places, and feet that "
            "stand are planted."
        )
        pictures = (plot_errors(errors, LIGHT), plot_errors(errors, DARK))
        figures.append(Figure("Distance from the file's joints", "Bars by joint", caption, *pictures))
    return figures


def _poses(loaded: LoadedMotion, character: Character) -> bytes:
    clip = loaded.clip
    frames = spread(len(clip), POSES)
    size = (PANEL_PX, PANEL_PX)
    staged = panels(character, clip, clip, np.array(frames) / clip.fps, size=size, fps=0.0)
    pictures = []
    for i, (frame, camera) in enumerate(zip(frames, staged.cameras, strict=True)):
        picture = background(camera).copy()
        positions, orientations = staged.frames[0]
        draw_frames(picture, camera, character, positions[i], orientations[i])
        _dots(picture, camera.project(loaded.source_points[frame]))
        draw_label(picture, f"{clip.times_s[frame]:.2f} s", height_px=13, plain=True)
        pictures.append(picture)
    return jpeg(grid(pictures, COLUMNS))


def _dots(picture: Image, pixels: Array) -> None:
    """Small dots with a rim at those of the `pixels` (N, 2) that are known, in place."""
    for x, y in np.rint(16.0 * pixels[np.isfinite(pixels).all(axis=1)]).astype(int).tolist():
        cv2.circle(picture, (x, y), 5 * 16, JOINT_RIM, -1, cv2.LINE_AA, 4)
        cv2.circle(picture, (x, y), 3 * 16 + 8, JOINT, -1, cv2.LINE_AA, 4)
