"""Whether people travel or stay, and how fast their belts run: on rendered footage, on real masks, and on a real treadmill."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.rows import SHARED, Row
from benchmarks.videos import Case, footage
from benchmarks.weizmann import FPS, MASKS, SEQUENCES
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.types import Array
from mocap2ctrl.video.foot_slide import slide_at
from mocap2ctrl.video.silhouettes import load_silhouettes
from mocap2ctrl.video.travel import IN_PLACE, STEPS, TRAVELS, Travel, travel_of

WALK, RUN = (
    (f"humanoid3d_{name}", "--seconds", seconds, "--in-place") for name, seconds in (("walk", "3"), ("run", "2.5"))
)
OBLIQUELY = ("--view", "oblique")
FILMED = {
    case.name: (case, kind)
    for case, kind in (
        (Case("walk on a belt", "belt_walk.mp4", "", rendered=(*WALK, "--seed", "4")), STEPS),
        (Case("run on a belt", "belt_run.mp4", "", rendered=(*RUN, "--seed", "3")), STEPS),
        (
            Case("walk on a belt, obliquely", "belt_walk_oblique.mp4", "", rendered=(*WALK, "--seed", "5", *OBLIQUELY)),
            STEPS,
        ),
        (
            Case("run on a belt, obliquely", "belt_run_oblique.mp4", "", rendered=(*RUN, "--seed", "6", *OBLIQUELY)),
            STEPS,
        ),
        (Case("walk over ground", "walk.mp4", ""), TRAVELS),
        (Case("jump over ground", "jump.mp4", ""), TRAVELS),
    )
}
STAYING = ("bend", "jack", "pjump", "wave1", "wave2")
"""Actions of the Weizmann set; in the others people travel."""
TREADMILL = SHARED / "video" / "treadmill_run_side.mp4"
REAL, MACHINE = "Weizmann", "treadmill"
CLIPS = (*FILMED, REAL, MACHINE)
NOTE = (
    "Right: who stays and who travels is told apart, and a belt is taken where there is one, and only there. Footage is rendered,\n"
    "with a clean plate. Real masks and the real treadmill are seen by a camera that is estimated; the belt's true speed is not\n"
    "known."
)


def travel(options: argparse.Namespace) -> Iterator[Row]:
    """Looks at each clip; nothing is fitted."""
    for name in options.clips or CLIPS:
        if name == REAL:
            yield from _real_masks()
        elif name == MACHINE:
            yield from _treadmill()
        else:
            yield from _filmed(name)


def _filmed(name: str) -> Iterator[Row]:
    case, kind = FILMED[name]
    file = footage(case)
    if file is None:
        print(f"{name}: left out, its footage is rendered from a clip that pybullet brings", file=sys.stderr)
        return
    with np.load(file.with_name(f"{file.stem}.truth.npz")) as truth:
        belt = truth.get("ground_velocity_m_s", np.zeros(2))
    seen = load_silhouettes(file).silhouettes
    found = travel_of(seen)
    yield from _rows(name, found, found.kind == kind and found.ground_velocity.any() == belt.any())
    if belt.any():
        speed, apart = float(np.linalg.norm(belt)), float(np.linalg.norm(found.ground_velocity - belt))
        yield Row(f"{name} | belt, truth", "", speed, "m/s", None)
        yield Row(f"{name} | speed error", "", 100.0 * abs(found.speed_m_s / speed - 1.0), "%", None)
        yield Row(f"{name} | velocity error", "", 100.0 * apart / speed, "%", None)
        yield Row(f"{name} | direction error, speed told", "", _degrees(slide_at(seen, speed), belt), "°", None)


def _degrees(a: Array, b: Array) -> float:
    """The angle between two directions on the ground."""
    return abs(float(np.degrees(np.arctan2(a[0] * b[1] - a[1] * b[0], a @ b))))


def _rows(name: str, found: Travel, right: bool) -> Iterator[Row]:
    yield Row(f"{name} | right", "", 100.0 * right, "%", None)
    yield Row(f"{name} | belt", "", float(np.linalg.norm(found.ground_velocity)), "m/s", None)


def _real_masks() -> Iterator[Row]:
    """Actions that stay and actions that travel."""
    if not MASKS.is_file():
        print(f"{REAL}: left out, {MASKS.name} is not beside the project", file=sys.stderr)
        return
    right: dict[str, list[bool]] = {IN_PLACE: [], TRAVELS: []}
    for key in SEQUENCES:
        kind = IN_PLACE if key.endswith(STAYING) else TRAVELS
        found = travel_of(load_silhouettes(f"{MASKS}:{key}", fps=FPS).silhouettes)
        right[kind].append(found.kind == kind and not found.ground_velocity.any())
    for kind, told in right.items():
        yield Row(f"{len(told)} Weizmann sequences, {kind} | right", "", 100.0 * float(np.mean(told)), "%", None)


def _treadmill() -> Iterator[Row]:
    """Two parts of one video: the belt's speed is the same in both."""
    if not TREADMILL.is_file():
        print(f"{MACHINE}: left out, {TREADMILL.name} is not beside the project", file=sys.stderr)
        return
    for part in ((0.0, 4.0), (8.0, 12.0)):
        name = f"real treadmill, {part[0]:g} to {part[1]:g} s"
        try:
            found = travel_of(load_silhouettes(TREADMILL, time_range=part).silhouettes)
        except Mocap2CtrlError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        yield from _rows(name, found, found.kind == STEPS and bool(found.ground_velocity.any()))
