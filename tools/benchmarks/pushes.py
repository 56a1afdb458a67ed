"""The largest pushes that fitted controllers survive, with all of the torque bounds and with three quarters of them."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.motions import CASES
from benchmarks.rows import Row, engine_names, engine_or_none
from benchmarks.settings import config_of
from mocap2ctrl import api
from mocap2ctrl.evaluation.push_test import push_test
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.fit.crew import default_workers
from mocap2ctrl.simulation.environment_file import environment_names

CASE = CASES["walk"]
TORQUE_LIMITS = (1.0, 0.75)
SIDES = ("front", "rear", "right", "left")
PAPER = {1.0: (210.0, 294.0, 273.0, 294.0), 0.75: (42.0, 67.0, 33.0, 42.0)}
"""Vondrak §6.1, by torque limit, in the order of `SIDES`, of his walk's cycle."""
WATCH_S = 600.0
"""So long a cycle is watched without pushes."""
NOTE = (
    "The walk, fitted in MuJoCo with each seed; --set refine=true cyclic=true makes it a cycle. A controller that ends, or that\n"
    "falls by itself within 40 s, gets one push within its clip, which is no match for the paper's 40 s, printed beside it.\n"
    "Dashes: it falls without a push before the clip ends."
)
PLACES_NOTE = "The same controllers in the environments that the package ships, to the end of what is judged."


def pushes(options: argparse.Namespace) -> Iterator[Row]:
    """Newtons by side and torque limit, for each seed and engine."""
    for capture, engine, seed in _fitted(options):
        for limit in TORQUE_LIMITS:
            yield from _measured(capture, engine, limit, seed, options)
    for limit, forces in PAPER.items():
        for side, force in zip(SIDES, forces, strict=True):
            yield Row(f"the paper's cycle, 40 s | {limit:.0%} | {side}", "", force, "N", None)


def _measured(capture: Capture, engine: str, limit: float, seed: int, options: argparse.Namespace) -> Iterator[Row]:
    step = 20.0 if options.quick else 10.0
    most = 200.0 if options.quick else 1000.0
    workers = options.workers or default_workers()
    found = push_test(
        capture, engine=engine, torque_limit=limit, step_n=step, max_force_n=most, watch_s=WATCH_S, workers=workers
    )
    kind = f"{'cycle' if found.cyclic else 'chain'}, {found.seconds:.1f} s, {engine}"
    yield Row(f"{kind} | {limit:.0%} | up without a push", engine, found.undisturbed_s, "s", seed)
    for side in SIDES:
        yield Row(f"{kind} | {limit:.0%} | {side}", engine, getattr(found, f"{side}_n"), "N", seed)


def places(options: argparse.Namespace) -> Iterator[Row]:
    """Joint error and fall in each environment that is shipped, for each seed and engine."""
    for capture, engine, seed in _fitted(options):
        for name in (None, *environment_names()):
            if name == "trampoline" and engine == "bullet":
                continue
            found, _ = api.evaluate(capture, engine=engine, environment=name)
            row = f"{name or 'level ground'} | {engine}"
            yield Row(f"{row} | joint error", engine, found.joint_error_cm, "cm", seed)
            yield Row(f"{row} | falls", engine, float(found.fell), "", seed)


def _fitted(options: argparse.Namespace) -> Iterator[tuple[Capture, str, int]]:
    """A walk's capture for each seed, with each engine that is here, and the seed."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in options.seeds:
            settings = {"config": config_of(options), "seed": seed, "cycles": CASE.cycles, "workers": options.workers}
            capture = api.fit(CASE.motion, Path(folder) / str(seed), **settings).capture
            for engine in engine_names(options):
                if engine_or_none(engine, capture.character) is not None:
                    yield capture, engine, seed
