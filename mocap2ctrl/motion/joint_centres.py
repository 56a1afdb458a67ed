"""Joint centres from what is seen of a body: markers on the skin by published regressions, or keypoints as they are.

Hips: Harrington et al., J. Biomech. 40 (2007), 595: from the pelvis' width and depth. Shoulders: Rab et al., J. Orthop. Res. 20
(2002), 366: 17 % of the distance between the acromia below them. Knees, ankles and elbows: between their medial and lateral
markers; with the lateral one alone, half the joint's width towards the middle (Davis et al., Hum. Mov. Sci. 10 (1991), 575), for
which adults' usual widths are taken. All in metres, z up; NaN where something that is needed is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.geometry.rotations import unit
from mocap2ctrl.motion.anatomy import BEND_FADE
from mocap2ctrl.motion.marker_track import Points
from mocap2ctrl.types import Array

HALF_WIDTH_M = {"knee": 0.055, "ankle": 0.040, "elbow": 0.042}
"""Half an adult's joint, and the radius of a marker."""
ELBOW_ROUNDS = 12

ACROMION_SHARE = 0.17
MARKER_BAND, EARS = 0.75, 0.65
"""Where a band of head markers, or the ears, are on the way from the neck to the top of the head."""


@dataclass(frozen=True, eq=False)
class JointCentres:
    """Where the joints are, and which way the segments face.

    Attributes:
        points: (T, 3) by name: `left hip`, knee, ankle, toe, heel, shoulder, elbow, wrist, hand; `neck`, `head top`.
        left: (T, 3) directions to the body's left, not unit, of `pelvis`, `chest`, `head`, `left knee`, `left toe` and so on.
        up: (T, 3) the own upward directions of `pelvis` and `head`, where markers tell them.
        notes: how what is not marked itself was found, in few words.
    """

    points: dict[str, Array] = field(default_factory=dict)
    left: dict[str, Array] = field(default_factory=dict)
    up: dict[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def joint_centres(marks: Points, half_widths_m: Mapping[str, float]) -> JointCentres:
    """Joint centres from landmarks.

    Args:
        marks: places (T, 3) in metres, z up, by landmark (`marker_names.landmarks`).
        half_widths_m: of `left knee` and so on, where they were measured.
    """
    points: dict[str, Array] = {}
    left: dict[str, Array] = {}
    up: dict[str, Array] = {}
    notes: list[str] = []
    _pelvis(marks, points, left, up, notes)
    for side in SIDES:
        _leg(marks, side, points, left, notes, half_widths_m)
    for side in SIDES:
        _arm(marks, side, points, notes)
    _trunk(marks, points, left)
    for side in SIDES:
        _elbow(marks, side, points, left, notes, half_widths_m)
    _head(marks, points, left, up)
    return JointCentres(points, left, up, tuple(dict.fromkeys(notes)))


def _both(marks: Points, part: str) -> tuple[Array, Array] | None:
    """A landmark's left and right."""
    found = [marks.get(f"{side} {part}") for side in SIDES]
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _mean(marks: Points, *names: str) -> Array | None:
    """The middle of those landmarks that there are."""
    there = [marks[name] for name in names if name in marks]
    return np.asarray(np.mean(there, axis=0)) if there else None


def _across(a: Array, along: Array) -> Array:
    """Vectors without their part along others."""
    direction = unit(along)
    return np.asarray(a - direction * np.sum(a * direction, axis=-1, keepdims=True))


def _pelvis(
    marks: Points, points: dict[str, Array], left: dict[str, Array], up: dict[str, Array], notes: list[str]
) -> None:
    """The hips, the pelvis' left, and its up."""
    hips, front, back = _both(marks, "hip"), _both(marks, "asis"), _both(marks, "psis")
    rear = np.mean(back, axis=0) if back is not None else marks.get("sacrum")
    if hips is not None:
        points.update({"left hip": hips[0], "right hip": hips[1]})
        left["pelvis"] = hips[0] - hips[1]
    if front is None or rear is None:
        return
    middle, lateral = np.mean(front, axis=0), front[0] - front[1]
    forward = _across(middle - rear, lateral)
    left["pelvis"] = lateral
    up["pelvis"] = np.cross(unit(forward), unit(lateral))
    if hips is None:
        width = float(np.nanmedian(np.linalg.norm(lateral, axis=-1)))
        depth = float(np.nanmedian(np.linalg.norm(middle - rear, axis=-1)))
        notes.append("hips by Harrington's regression")
        for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
            ahead, aside, above = -0.24 * depth - 0.0099, 0.33 * width + 0.0073, -0.30 * width - 0.0109
            points[f"{side} hip"] = middle + ahead * unit(forward) + sign * aside * unit(lateral) + above * up["pelvis"]


def _leg(
    marks: Points,
    side: str,
    points: dict[str, Array],
    left: dict[str, Array],
    notes: list[str],
    half_widths_m: Mapping[str, float],
) -> None:
    above = points.get(f"{side} hip")
    for part in ("knee", "ankle"):
        if above is None:
            return
        centre = _hinge(marks, side, part)
        lateral = marks.get(f"{side} lateral {part}")
        if centre is None and lateral is not None and "pelvis" in left:
            inwards = unit(_across(left["pelvis"], lateral - above)) * (-1.0 if side == "left" else 1.0)
            width, usual = _half_width(half_widths_m, f"{side} {part}")
            centre = lateral + width * inwards
            notes.append(f"{part}s inside their lateral markers by {usual}")
        if centre is not None:
            points[f"{side} {part}"] = centre
        above = centre
    medial, outer = _sides(marks, side, "knee")
    if medial is not None and outer is not None:
        left[f"{side} knee"] = outer - medial if side == "left" else medial - outer
    _foot(marks, side, points, left)


def _half_width(half_widths_m: Mapping[str, float], joint: str) -> tuple[float, str]:
    """From the lateral marker to the centre, and what that is in words."""
    if joint in half_widths_m:
        return half_widths_m[joint], "the file's widths"
    return HALF_WIDTH_M[joint.rpartition(" ")[2]], "an adult's usual widths"


def _sides(marks: Points, side: str, part: str) -> tuple[Array | None, Array | None]:
    """A joint's medial and lateral marker; a `knee` beside a `medial knee` alone is the lateral one."""
    medial = marks.get(f"{side} medial {part}")
    return medial, marks.get(f"{side} lateral {part}", None if medial is None else marks.get(f"{side} {part}"))


def _hinge(marks: Points, side: str, part: str) -> Array | None:
    """The centre of a knee, ankle or elbow, from both its sides, else as the file has it."""
    medial, lateral = _sides(marks, side, part)
    if medial is not None and lateral is not None:
        return np.asarray(0.5 * (medial + lateral))
    return marks.get(f"{side} {part}")


def _foot(marks: Points, side: str, points: dict[str, Array], left: dict[str, Array]) -> None:
    medial, lateral = marks.get(f"{side} medial toe"), marks.get(f"{side} lateral toe")
    toe = marks.get(f"{side} toe")
    if medial is not None and lateral is not None:
        left[f"{side} toe"] = lateral - medial if side == "left" else medial - lateral
        toe = 0.5 * (medial + lateral)
    if toe is None:
        toe = medial if medial is not None else lateral
    if toe is not None:
        points[f"{side} toe"] = toe
    if (heel := marks.get(f"{side} heel")) is not None:
        points[f"{side} heel"] = heel


def _arm(marks: Points, side: str, points: dict[str, Array], notes: list[str]) -> None:
    shoulder, acromia = marks.get(f"{side} shoulder"), _both(marks, "acromion")
    if shoulder is None and acromia is not None and "left hip" in points and "right hip" in points:
        hips = 0.5 * (points["left hip"] + points["right hip"])
        down = unit(hips - np.mean(acromia, axis=0))
        gap = np.linalg.norm(acromia[0] - acromia[1], axis=-1, keepdims=True)
        shoulder = acromia[SIDES.index(side)] + ACROMION_SHARE * gap * down
        notes.append("shoulders below the acromia by Rab's rule")
    parts = {
        "shoulder": shoulder,
        "elbow": _hinge(marks, side, "elbow"),
        "wrist": marks.get(f"{side} wrist", _mean(marks, f"{side} outer wrist", f"{side} inner wrist")),
        "hand": marks.get(f"{side} hand"),
    }
    points.update({f"{side} {part}": place for part, place in parts.items() if place is not None})


def _elbow(
    marks: Points,
    side: str,
    points: dict[str, Array],
    left: dict[str, Array],
    notes: list[str],
    half_widths_m: Mapping[str, float],
) -> None:
    """The elbow from its lateral marker alone: inside it along the hinge, which stands on the plane of the bent arm."""
    marker, shoulder, wrist = (
        marks.get(f"{side} lateral elbow"),
        points.get(f"{side} shoulder"),
        points.get(f"{side} wrist"),
    )
    if f"{side} elbow" in points or marker is None:
        return
    centre, sign = marker, 1.0 if side == "left" else -1.0
    if shoulder is not None and wrist is not None and "chest" in left:
        width, usual = _half_width(half_widths_m, f"{side} elbow")
        for _ in range(ELBOW_ROUNDS):  # the plane is that of the centre, which is sought
            hinge = _hinge_of_arm(centre - shoulder, wrist - centre, left["chest"])
            centre = marker - sign * width * hinge
        notes.append(f"elbows inside their lateral markers by {usual}")
    points[f"{side} elbow"] = centre


def _hinge_of_arm(upper: Array, lower: Array, chest_left: Array) -> Array:
    """The elbow's axis (T, 3), to the body's left: by the arm's plane where it is bent, else by the chest."""
    normal = -np.cross(unit(upper), unit(lower))
    low, high = BEND_FADE
    ease = np.clip((np.linalg.norm(normal, axis=-1, keepdims=True) - low) / (high - low), 0.0, 1.0)
    return unit(ease * unit(normal) + (1.0 - ease) * unit(_across(chest_left, upper)))


def _trunk(marks: Points, points: dict[str, Array], left: dict[str, Array]) -> None:
    """The neck and the chest's left."""
    shoulders = _both(points, "shoulder")
    neck = marks.get("neck", _mean(marks, "c7", "clavicles"))
    if neck is None and shoulders is not None:
        neck = 0.5 * (shoulders[0] + shoulders[1])
    if neck is not None:
        points["neck"] = neck
    front, back = _mean(marks, "clavicles", "sternum"), _mean(marks, "c7", "t10")
    low, high = _mean(marks, "sternum", "t10"), _mean(marks, "c7", "clavicles")
    if shoulders is not None:
        left["chest"] = shoulders[0] - shoulders[1]
    elif front is not None and back is not None and low is not None and high is not None:
        left["chest"] = np.cross(high - low, front - back)


def _head(marks: Points, points: dict[str, Array], left: dict[str, Array], up: dict[str, Array]) -> None:
    """The top of the head, its left, and its up where a band of four markers lies level around it."""
    if "neck" not in points:
        return
    neck, top, nose = points["neck"], marks.get("head top"), marks.get("nose")
    bands = [band for part in ("front head", "back head") if (band := _both(marks, part)) is not None]
    ears, eyes = _both(marks, "ear"), _both(marks, "eye")
    pairs = bands or [pair for pair in (ears, eyes) if pair is not None][:1]
    if top is None and bands:
        top = neck + (np.mean(bands, axis=(0, 1)) - neck) / MARKER_BAND
    elif top is None and ears is not None:
        top = neck + (np.mean(ears, axis=0) - neck) / EARS
    if top is None:
        return
    points["head top"] = top
    if pairs:
        left["head"] = np.asarray(np.sum([a - b for a, b in pairs], axis=0))
    elif nose is not None:
        left["head"] = np.cross(top - neck, nose - neck)
    if len(bands) == 2:
        up["head"] = np.cross(np.mean(bands[0], axis=0) - np.mean(bands[1], axis=0), left["head"])
