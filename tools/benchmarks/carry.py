"""How long fitted controllers stay up in worlds other than their own: other steps, frictions, contacts, and the other engine."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.motions import CASES
from benchmarks.rows import Row
from benchmarks.settings import config_of, named
from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.evaluation.metrics import evaluate_replay, judged_seconds
from mocap2ctrl.evaluation.replay import replay
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.simulation.choose import has_bullet
from mocap2ctrl.simulation.engine import Contacts, Engine
from mocap2ctrl.simulation.mujoco import MujocoEngine

CASE = CASES["walk"]
ENGINES = {"mujoco": "MuJoCo", "bullet": "Bullet"}
NOTE = (
    "The walk, fitted with each seed, in MuJoCo or in the engines that --engine names, and simulated in other worlds to the\n"
    "end of the clip (2.54 s)."
)


def carry(options: argparse.Namespace) -> Iterator[Row]:
    """Joint error and time up of each seed's controller in each world, and the mean time up over the seeds."""
    for engine in options.engine or ("mujoco",):
        fitted = named(ENGINES[engine], options)
        captures = dict(_fits(options, engine))
        for world, make in worlds().items():
            times = []
            for seed, capture in captures.items():
                error, up_s = performance(capture, make(capture.character))
                times.append(up_s)
                yield Row(f"{fitted} | {world} | joint error", engine, error, "cm", seed)
                yield Row(f"{fitted} | {world} | stays up", engine, up_s, "s", seed)
            yield Row(f"{fitted} | {world} | stays up, mean", engine, float(np.mean(times)), "s", None)


def _fits(options: argparse.Namespace, engine: str) -> Iterator[tuple[int, Capture]]:
    """Each seed's capture."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in options.seeds:
            settings = {"config": config_of(options), "seed": seed, "cycles": CASE.cycles, "workers": options.workers}
            yield seed, api.fit(CASE.motion, Path(folder) / str(seed), engine=engine, **settings).capture


def performance(capture: Capture, engine: Engine) -> tuple[float, float]:
    """Joint error in cm, and seconds until a fall, or until the end of what is judged."""
    clip = replace(capture.reference, loop=False)
    run = replay(engine, capture.finished_controller(), judged_seconds(clip) + 0.1)
    found = evaluate_replay(capture.character, run, clip)
    end = judged_seconds(clip)
    return float(found.joint_error_cm or 0.0), end if found.fell_at_s is None else min(found.fell_at_s, end)


def worlds() -> Mapping[str, Callable[[Character], Engine]]:
    """Engines by a label; those of Bullet where it is installed."""
    made: dict[str, Callable[[Character], Engine]] = {
        "MuJoCo": MujocoEngine,
        "MuJoCo, step 1/240 s": lambda character: MujocoEngine(character, time_step_s=1 / 240),
        "MuJoCo, friction 0.8": lambda character: MujocoEngine(replace(character, friction=0.8)),
        "MuJoCo, friction 1.2": lambda character: MujocoEngine(replace(character, friction=1.2)),
        "MuJoCo, softer contacts (0.03 s)": lambda character: other_contacts(character, "soft"),
        "MuJoCo, harder contacts (0.99)": lambda character: other_contacts(character, "hard"),
    }
    if has_bullet():
        for softness, erp in ((1e-6, 0.2), (1e-4, 0.2), (2e-4, 0.3), (8e-4, 0.5)):
            made[f"Bullet, CFM {softness:g}, ERP {erp:g}"] = soft_bullet(softness, erp)
    return made


def other_contacts(character: Character, kind: Contacts) -> MujocoEngine:
    """MuJoCo with softer or harder contacts."""
    engine = MujocoEngine(character)
    engine.set_contacts(kind)
    return engine


def soft_bullet(softness: float, erp: float) -> Callable[[Character], Engine]:
    """Bullet with another compliance, and another share of depth that a step pushes out."""

    def make(character: Character) -> Engine:
        import pybullet

        from mocap2ctrl.simulation.bullet import BulletEngine

        engine = BulletEngine(character)
        pybullet.setPhysicsEngineParameter(globalCFM=softness, contactERP=erp, physicsClientId=engine._world)
        return engine

    return make
