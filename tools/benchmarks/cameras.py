"""Cameras that are estimated from heads and feet, against those that have filmed, by rendered walks whose truth is known."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import render_video
from rendering.footage import exact_masks

from benchmarks.rows import SHARED, Row
from mocap2ctrl.character import load_character
from mocap2ctrl.geometry.camera import camera_centre, on_plane, world_to_camera
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.types import Array, Camera, Masks
from mocap2ctrl.video.calibration.estimate import estimated_camera
from mocap2ctrl.video.calibration.heads_and_feet import stances
from mocap2ctrl.video.camera_file import camera_for_size, load_camera
from mocap2ctrl.video.extract import from_video

BVH = SHARED / "bvh"
SIZES = ((640, 360), (360, 640))
FPS = 15
DEEPMIMIC_WALK = ("humanoid3d_walk", {"seconds": 2.4})
CMU_WALK = (str(BVH / "walk_cmu12_01.bvh"), {"time_range": (0.5, 4.0)})
GAMES_WALK = (str(BVH / "walk_games105_m_yup.bvh"), {})
TURN = (str(BVH / "walk_turn_left_games105_100fps.bvh"), {})
EIGHT = (str(BVH / "walk_8_pattern_root_offset.bvh"), {"time_range": (0.0, 5.0)})
NOTE = (
    "Rendered walks; each seed is another person and another camera (`--camera random` of tools/render_video.py), landscape and\n"
    "portrait in turn; exact masks, except for the sample footage. The masks alone are given: the person's height is supposed.\n"
    "Scale: path of the feet over the ground by the estimated camera against the true one. Median (worst) over seeds; all: over\n"
    "all walks."
)


@dataclass(frozen=True)
class Case:
    """A walk of the table: a motion, its options for `render_video`, and the camera's azimuth; or sample footage."""

    motion: str
    view: str = ""
    options: dict[str, object] = field(default_factory=dict)

    @property
    def there(self) -> bool:
        """Whether the motion is on this machine."""
        return Path(self.motion).exists() or (
            self.motion.startswith("humanoid3d") and deepmimic_directory() is not None
        )


CASES = {
    **{
        f"walk, {view}": Case(DEEPMIMIC_WALK[0], view, DEEPMIMIC_WALK[1])
        for view in ("side", "oblique", "frontal", "160")
    },
    **{f"CMU walk, {view}": Case(CMU_WALK[0], view, CMU_WALK[1]) for view in ("side", "oblique", "frontal")},
    **{f"GAMES-105 walk, {view}": Case(GAMES_WALK[0], view, GAMES_WALK[1]) for view in ("side", "oblique", "frontal")},
    **{f"turn to the left, {view}": Case(TURN[0], view, TURN[1]) for view in ("side", "frontal")},
    "figure of eight, there and back, side": Case(EIGHT[0], "side", EIGHT[1]),
    "walk.mp4, extracted": Case(str(render_video.VIDEO / "walk.mp4")),
    "jump.mp4, extracted": Case(str(render_video.VIDEO / "jump.mp4")),
}


def cameras(options: argparse.Namespace) -> Iterator[Row]:
    """Errors of each walk with each seed; below them those of all."""
    measured: list[tuple[dict[str, tuple[float, str]], int]] = []
    for number, (name, case) in enumerate(CASES.items()):
        if options.clips and name not in options.clips:
            continue
        if not case.there:
            print(f"{name}: left out, {Path(case.motion).name} is not on this machine", file=sys.stderr)
            continue
        for seed in options.seeds if case.view else options.seeds[:1]:
            masks, fps, camera = filmed(case, seed, SIZES[(number + seed) % 2]) if case.view else extracted(case)
            values = errors(masks, fps, camera)
            measured.append((values, seed))
            for what, (value, unit) in values.items():
                yield Row(f"{name} | {what}", "", value, unit, seed)
    for values, seed in measured:
        for what, (value, unit) in values.items():
            yield Row(f"all | {what}", "", value, unit, seed)


def filmed(case: Case, seed: int, size: tuple[int, int]) -> tuple[Masks, float, Camera]:
    """Exact masks of a rendered walk, their rate, and the camera that sees them."""
    settings = render_video.Settings(
        case.motion,
        Path(),
        case.view,
        "random",
        seed,
        size=size,
        fps=FPS,
        **case.options,  # type: ignore[arg-type]
    )
    staged = render_video.stage(settings, load_character())
    times = np.arange(len(staged.truth)) / FPS
    return exact_masks(staged.performer, staged.motion, staged.camera, times), FPS, staged.camera


def extracted(case: Case) -> tuple[Masks, float, Camera]:
    """Masks found in sample footage, their rate, and the true camera at their size."""
    found = from_video(case.motion)
    height, width = found.masks.shape[1:]
    return found.masks, found.fps, camera_for_size(load_camera(Path(case.motion).with_suffix(".toml")), (width, height))


def errors(masks: Masks, fps: float, camera: Camera) -> dict[str, tuple[float, str]]:
    """Quantities with their units: errors, and how many of the stated standard deviations they are."""
    found, seen = estimated_camera(masks, fps), stances(masks, fps)
    if seen is None:
        return {}
    focal, tilt = camera.matrix[0, 0] / max(camera.size), np.arcsin(-world_to_camera(camera)[2, 2])
    height = camera_centre(camera)[2]
    off = {
        "focal length": abs(np.log(found.view.focal / focal)),
        "tilt": abs(found.view.tilt - tilt),
        "height": abs(found.view.height_m - height),
    }
    spread = {
        "focal length": found.spread.focal,
        "tilt": found.spread.tilt,
        "height": found.spread.height_m,
    }
    scale = abs(path_m(found.camera, seen.feet) / path_m(camera, seen.feet) - 1.0)
    return {
        "focal length": (100.0 * off["focal length"], "%"),
        "tilt": (float(np.degrees(off["tilt"])), "°"),
        "height": (100.0 * off["height"], "cm"),
        "scale": (100.0 * scale, "%"),
        **{f"{name}: error by its sd": (float(off[name] / spread[name]), "") for name in off},
    }


def path_m(camera: Camera, feet: Array) -> float:
    """Length of the path over the ground through pixels (N, 2)."""
    return float(np.linalg.norm(np.diff(on_plane(camera, feet), axis=0), axis=1).sum())
