"""Fits to real masks of the Weizmann action set, with no help: nobody has calibrated their camera, so it is estimated.

Gorelick, Blank, Shechtman, Irani and Basri, *Actions as Space-Time Shapes*, PAMI 2007; for research only, and not shipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.rows import SHARED, Row, measured_before
from benchmarks.settings import config_of
from benchmarks.videos import measured

MASKS = SHARED / "silhouettes" / "weizmann_dev_4actors.npz"
FPS = 25.0
ACTORS = ("denis", "ido", "ira", "lyova")
ACTIONS = ("bend", "jack", "jump", "pjump", "run", "side", "skip", "walk", "wave1", "wave2")
SEQUENCES = tuple(f"{actor}_{action}" for action in ACTIONS for actor in ACTORS)
ALL = "all"
"""A line of a table with the median and the worst of all sequences."""
NOTE = (
    "Real masks without calibration or truth: the camera is estimated from heads and feet, nothing is set but the masks' rate.\n"
    "Prior: auto. Fell: anything but the legs touches the ground, or the root sinks. With --results FILE the sequences that the\n"
    "file has are not fitted again."
)


def weizmann(options: argparse.Namespace) -> Iterator[Row]:
    """Fits each sequence with each seed, but for those that the file of results has."""
    if not MASKS.is_file():
        print(f"weizmann: left out, {MASKS.name} is not beside the project", file=sys.stderr)
        return
    config = config_of(options)
    done = measured_before(options.results)
    for name in options.clips or SEQUENCES:
        for seed in options.seeds:
            if (name, seed) in done:
                continue
            values, engine = measured(f"{MASKS}:{name}", replace(config, seed=seed), options, fps=FPS)
            for line in (name, ALL):
                for what, (value, unit) in values.items():
                    yield Row(f"{line} | {what}", engine, value, unit, seed)
