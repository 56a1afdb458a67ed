"""Fits to real masks of the Weizmann action set, seen by a camera that nobody has calibrated.

Gorelick, Blank, Shechtman, Irani and Basri, *Actions as Space-Time Shapes*, PAMI 2007; for research only, and not shipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.rows import CACHE, SHARED, Row
from benchmarks.videos import measured
from mocap2ctrl.fit.config import budget
from mocap2ctrl.geometry.masks import row_spans
from mocap2ctrl.types import Array, Camera, Masks
from mocap2ctrl.video.camera_file import save_camera
from mocap2ctrl.video.mask_files import load_masks

MASKS = SHARED / "silhouettes" / "weizmann_dev_4actors.npz"
FPS = 25.0
SEQUENCES = {
    "walk": "denis_walk",
    "run": "lyova_run",
    "jump": "ido_jump",
    "side": "lyova_side",
    "skip": "ira_skip",
    "jack": "denis_jack",
}
PERSON_M = 1.75
DISTANCE_M = 8.0
GROUND_PERCENTILE = 90
NOTE = (
    f"Real masks without calibration or truth. The camera is assumed: level, its principal point at the centre, the person\n"
    f"{PERSON_M} m tall at {DISTANCE_M:g} m. Prior: auto. Fell: anything but the legs touches the ground, or the root sinks."
)


def weizmann(options: argparse.Namespace) -> Iterator[Row]:
    """Fits each sequence with each seed."""
    if not MASKS.is_file():
        print(f"weizmann: left out, {MASKS.name} is not beside the project", file=sys.stderr)
        return
    config = budget("quick" if options.quick else options.budget)
    for name in options.clips or SEQUENCES:
        spec = f"{MASKS}:{SEQUENCES[name]}"
        camera = camera_file(spec)
        for seed in options.seeds:
            values, engine = measured(spec, replace(config, seed=seed), options, fps=FPS, camera=camera)
            for what, (value, unit) in values.items():
                yield Row(f"{name} | assumed | {what}", engine, value, unit, seed)


def camera_file(spec: str) -> Path:
    """The file of a sequence's assumed camera, in the cache."""
    found = load_masks(spec, FPS)
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"{found.name}.toml"
    save_camera(path, assumed_camera(found.masks))
    return path


def assumed_camera(masks: Masks) -> Camera:
    """A plausible camera of somebody's masks, where nobody knows the real one.

    It is level, looks along y, and has its principal point at the picture's centre. Somebody of PERSON_M who stands DISTANCE_M
    in front of it is as tall as masks most often are, which neither bending down nor raised arms change; that gives the focal
    length f = height_px * DISTANCE_M / PERSON_M. Their soles are seen where the lowest masks end, which gives the camera's height
    h = (feet_row - cy) * PERSON_M / height_px. A wrong distance or height changes the scale of the world, and how strongly things
    shrink with depth, which for a lateral view is little.

    Args:
        masks: (T, H, W), with at least one that is not empty, of somebody who stands upright in a third of them.
    """
    height, width = masks.shape[1:]
    spans = row_spans(masks)
    height_px = _commonest(np.diff(spans, axis=1).ravel().astype(float))
    feet_row = float(np.percentile(spans[:, 1], GROUND_PERCENTILE)) - 0.5  # the pixel's lower edge
    cx, cy = 0.5 * (width - 1), 0.5 * (height - 1)
    focal = height_px * DISTANCE_M / PERSON_M
    camera_m = (feet_row - cy) * PERSON_M / height_px
    return Camera(
        name="assumed",
        size=(width, height),
        matrix=np.array([[focal, 0.0, cx], [0.0, focal, cy], [0.0, 0.0, 1.0]]),
        rotation=np.array([np.pi / 2.0, 0.0, 0.0]),
        translation=np.array([0.0, camera_m, DISTANCE_M]),
    )


def _commonest(values: Array) -> float:
    """The middle of the shortest interval that holds a third of the values."""
    values = np.sort(values)
    count = max(1, len(values) // 3)
    start = int(np.argmin(values[count - 1 :] - values[: len(values) - count + 1]))
    return float(np.median(values[start : start + count]))
