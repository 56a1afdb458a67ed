"""Fits to real masks of the Weizmann action set, seen by a camera that nobody has calibrated: it is estimated.

Gorelick, Blank, Shechtman, Irani and Basri, *Actions as Space-Time Shapes*, PAMI 2007; for research only, and not shipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.rows import SHARED, Row
from benchmarks.videos import measured
from mocap2ctrl.fit.config import budget

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
NOTE = (
    "Real masks without calibration or truth: the camera is estimated from heads and feet. Prior: auto. Fell: anything but the\n"
    "legs touches the ground, or the root sinks."
)


def weizmann(options: argparse.Namespace) -> Iterator[Row]:
    """Fits each sequence with each seed."""
    if not MASKS.is_file():
        print(f"weizmann: left out, {MASKS.name} is not beside the project", file=sys.stderr)
        return
    config = budget("quick" if options.quick else options.budget)
    for name in options.clips or SEQUENCES:
        spec = f"{MASKS}:{SEQUENCES[name]}"
        for seed in options.seeds:
            values, engine = measured(spec, replace(config, seed=seed), options, fps=FPS)
            for what, (value, unit) in values.items():
                yield Row(f"{name} | estimated | {what}", engine, value, unit, seed)
