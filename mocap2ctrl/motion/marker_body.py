"""From points over time to a source motion: which landmarks they are, what unit and axes they have, and a skeleton in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.joint_centres import JointCentres, joint_centres
from mocap2ctrl.motion.marker_axes import in_metres
from mocap2ctrl.motion.marker_names import labels_by_joint, landmarks, of_one_subject
from mocap2ctrl.motion.marker_track import BRIDGED_S, MarkerTrack, Points, bridged, longest_stretch, seen
from mocap2ctrl.motion.points_skeleton import PointSkeleton, skeleton_of
from mocap2ctrl.motion.runs import runs
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.units import to_z_up
from mocap2ctrl.types import Array

REQUIRED = tuple(f"{side} {part}" for side in SIDES for part in ("hip", "knee", "ankle"))
USUALLY_SEEN = 0.7
FLAT = 1e-4
"""Of points in one plane, the extent across it against that along it."""
TOLD_GAP_S = 0.1
TOLD_LABELS = 20
JITTER_M = 0.004
JITTER_FPS = 25.0
"""Below, what a limb does between frames looks like noise."""
MIN_FRAMES = 2


def body_of(track: MarkerTrack) -> SourceMotion:
    """The motion of the body that a file's points are on.

    Raises:
        MotionFileError: the legs are not marked, or never seen together; says what is missing and what the labels are.
    """
    labels, others = of_one_subject(track.points)
    names = landmarks(labels)
    marks = {landmark: track.points[label] for landmark, label in names.items()}
    _require_legs(track, marks)
    _require_depth(track, marks)
    metric = in_metres(track, marks)
    longest = round(BRIDGED_S * track.fps)
    points = {name: bridged(places, longest) for name, places in metric.points.items()}
    centres, start, gaps = _stretch(track, joint_centres(points, track.half_widths_m), _gaps(track, marks, longest))
    leg = np.median(_leg(centres.points, "left") + _leg(centres.points, "right")) / 2.0
    skeleton = skeleton_of(centres, float(leg))
    strangers = [label for label in labels if label not in names.values()]
    read = (*track.warnings, *_subjects(labels, others), *metric.notes)
    estimated = (f"joint centres are estimated: {'; '.join(centres.notes)}",) if centres.notes else ()
    found = (*estimated, *gaps, *_jitter(track, points), *_guesses(skeleton, strangers))
    return replace(
        _source(track, skeleton, metric.unit_m, metric.up),
        start_s=start / track.fps,
        warnings=(*read, *found),
        labels={**labels_by_joint(names), **dict.fromkeys(skeleton.guessed, "not marked")},
    )


def _require_legs(track: MarkerTrack, marks: Points) -> None:
    missing = [f"{side} {part}" for side in SIDES for part in ("knee", "ankle") if not _any(marks, side, part)]
    front_and_back = all(f"{side} asis" in marks for side in SIDES) and (
        "sacrum" in marks or all(f"{side} psis" in marks for side in SIDES)
    )
    if not front_and_back and not all(f"{side} hip" in marks for side in SIDES):
        missing.insert(0, "the hips (both hips' centres, or LASI and RASI with LPSI and RPSI, or with SACR)")
    if missing:
        given = ", ".join(list(track.points)[:80]) or "none"
        raise MotionFileError(
            f"{track.source}: no marker for {', '.join(missing)}; the file's labels are: {given}. Rename them as Plug-in Gait, "
            "OpenSim or OpenPose do (for example LASI, LKNE, LANK, or LHip, LKnee, LAnkle)"
        )


def _require_depth(track: MarkerTrack, marks: Points) -> None:
    """Points that a single camera saw lie in a plane; no body does."""
    places = np.concatenate(list(marks.values()))
    spread = np.ptp(places[seen(places)], axis=0) if seen(places).any() else np.ones(3)
    if np.min(spread) < FLAT * np.max(spread):
        raise MotionFileError(
            f"{track.source}: all points lie in one plane, as those of one camera do; give a capture in three dimensions, "
            "or the video, with the points in pixels as --keypoints"
        )


def _any(marks: Points, side: str, part: str) -> bool:
    return any(f"{side} {prefix}{part}" in marks for prefix in ("", "lateral "))


def _leg(points: Points, side: str) -> Array:
    hip, knee, ankle = (points[f"{side} {part}"] for part in ("hip", "knee", "ankle"))
    return np.asarray(np.linalg.norm(knee - hip, axis=-1) + np.linalg.norm(ankle - knee, axis=-1))


def _gaps(track: MarkerTrack, marks: Points, longest: int) -> list[tuple[str, float]]:
    """Landmarks with inner gaps that were bridged and are long enough to be told: name and length in seconds."""
    found = []
    for name, places in marks.items():
        inner = [b - a for a, b in runs(~seen(places)) if a > 0 and b < len(places) and b - a <= longest]
        if inner and max(inner) > TOLD_GAP_S * track.fps:
            found.append((name, max(inner) / track.fps))
    return found


def _stretch(
    track: MarkerTrack, centres: JointCentres, gaps: list[tuple[str, float]]
) -> tuple[JointCentres, int, tuple[str, ...]]:
    """The longest stretch in which the legs are seen, its first frame, and what was left out or filled."""
    start, stop = longest_stretch(centres.points, REQUIRED)
    if stop - start < MIN_FRAMES:
        raise MotionFileError(f"{track.source}: the markers of pelvis and legs are never seen together for two frames")
    notes = []
    if gaps:
        name, longest = max(gaps, key=lambda gap: gap[1])
        notes.append(f"gaps were bridged in {len(gaps)} landmarks; the longest is {longest:.2f} s, of the {name}")
    if stop - start < len(track):
        notes.append(
            f"pelvis and legs are all seen from {start / track.fps:.2f} to {(stop - 1) / track.fps:.2f} s; the rest of the "
            f"file's {(len(track) - 1) / track.fps:.2f} s was left out"
        )
    points, dropped = _whole(centres.points, start, stop)
    left, up = (_whole(directions, start, stop)[0] for directions in (centres.left, centres.up))
    if dropped:
        notes.append(f"too seldom seen, so left out: {', '.join(dropped)}")
    return JointCentres(points, left, up, centres.notes), start, tuple(notes)


def _whole(points: Points, start: int, stop: int) -> tuple[dict[str, Array], list[str]]:
    """Points in a stretch without gaps: filled where they are usually seen, else left out; and the names of the latter."""
    whole, dropped = {}, []
    for name, places in points.items():
        part = places[start:stop]
        there = seen(part)
        if np.mean(there) < USUALLY_SEEN:
            dropped.append(name)
            continue
        frames = np.flatnonzero(there)
        columns = [np.interp(np.arange(len(part)), frames, part[there, axis]) for axis in range(3)]
        whole[name] = np.stack(columns, axis=-1)
    return whole, dropped


def _subjects(labels: list[str], others: list[str]) -> tuple[str, ...]:
    if not others:
        return ()
    return (
        f"of several bodies, that of {labels[0].rpartition(':')[0] or 'no name'!r} was taken; others: {', '.join(others)}",
    )


def _jitter(track: MarkerTrack, metric: Points) -> tuple[str, ...]:
    """Noise from frame to frame, told when there is much: by the median fourth difference, in which hardly any motion is left."""
    if track.fps < JITTER_FPS:
        return ()
    fourth = np.abs(np.diff(np.stack(list(metric.values()), axis=1), n=4, axis=0))
    noise = float(np.nanmedian(fourth)) / (0.6745 * np.sqrt(70.0)) if np.isfinite(fourth).any() else 0.0
    if noise < JITTER_M:
        return ()
    return (
        f"the points jitter by about {1000 * noise:.0f} mm from frame to frame, and so will the body; filter them first",
    )


def _guesses(skeleton: PointSkeleton, strangers: list[str]) -> tuple[str, ...]:
    """What is not marked, with the labels that were not understood, among which it may be."""
    if not skeleton.guessed:
        return ()
    arms = [name for name in skeleton.guessed if name.endswith("elbow")]
    what = [*(["the trunk stays upright"] if "neck" in skeleton.guessed else []), *(["arms hang"] if arms else [])]
    what = what or ["shoulders follow the chest"]
    listed = f"; labels that mean nothing here: {', '.join(strangers[:TOLD_LABELS])}" if strangers else ""
    return (f"not marked, so at rest ({', '.join(what)}): {', '.join(skeleton.guessed)}{listed}",)


def _source(track: MarkerTrack, skeleton: PointSkeleton, unit_m: float, up: str) -> SourceMotion:
    """The skeleton in the file's unit; its axes are the file's, those of a body that is upside down turned over."""
    positions = np.stack(skeleton.positions, axis=1)
    own = rotations.conjugate(np.stack(skeleton.orientations, axis=1))
    parents = np.maximum(skeleton.parents, 0)
    local = rotations.rotate(own[:, parents], positions - positions[:, parents])
    axes = to_z_up(up).T
    quaternion = rotations.from_matrix(axes)
    turned = rotations.multiply(
        rotations.multiply(quaternion, rotations.conjugate(own)), rotations.conjugate(quaternion)
    )
    return SourceMotion(
        name=track.name,
        joint_names=tuple(skeleton.names),
        parents=tuple(skeleton.parents),
        offsets=np.median(local, axis=0) @ axes.T / unit_m,
        is_tip=tuple(name.endswith(":tip") for name in skeleton.names),
        positions=positions @ axes.T / unit_m,
        orientations=turned,
        fps=track.fps,
        format=track.format,
        up=up if up == track.up else None,  # else it is the rest pose that tells it
        unit_m=unit_m,
        guessed=frozenset(skeleton.guessed),
    )
