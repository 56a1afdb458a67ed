"""A graph of a walk, a run and the ways between them, from fitted controllers: fit, export-graph, learn, random walks."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.learning import clips_are_here, learned_once
from benchmarks.rows import CACHE, Row, measured_before
from mocap2ctrl import api
from mocap2ctrl.graph.body import character_of
from mocap2ctrl.graph.export import GraphOptions, export_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.planning import PathPlanner, RandomPlanner
from mocap2ctrl.graph.sources import Input
from mocap2ctrl.samcon.learn import LearnConfig
from mocap2ctrl.samcon.performance import Crowd
from mocap2ctrl.samcon.run import run_graph
from mocap2ctrl.samcon.walks import random_walk
from mocap2ctrl.simulation.choose import has_bullet

CLIPS = {"walk": "humanoid3d_walk", "run": "humanoid3d_run"}
CYCLES = 2
RUNS, CALM_S = 10, 300.0
ELSEWHERE_S = 60.0
PUSHED_RUNS, LONGEST_S = 100, 600.0
NOTE = (
    "DeepMimic's walk and run are fitted with their defaults over two cycles (`fit NAME --cycles 2`); `export-graph walk=…\n"
    "run=… --symmetric walk run` makes a graph of what the two controllers do, and `learn` gives it feedback, with its defaults.\n"
    "Then the policies alone walk at random, each skill and each way as often as the others: ten walks of 300 s without a push,\n"
    "and 100 under the growing pushes of the table of learning. Changes of gait: how often such a walk turns from one into the\n"
    "other. In another engine: Bullet, which the policies were not learned in; a walk, a run and a random walk of 60 s.\n"
    "Time is the processor's; what captures/benchmark/gaits has is not done again, and an interrupted learning goes on."
)


def gaits(options: argparse.Namespace) -> Iterator[Row]:
    """Fits, learns and walks with each seed, but for those that the file of results has."""
    if not clips_are_here("gaits"):
        return
    done = measured_before(options.results)
    for seed in options.seeds:
        if ("both", seed) not in done:
            yield from _rows(seed, options.workers or os.cpu_count() or 1)


def _rows(seed: int, workers: int) -> Iterator[Row]:
    folder = CACHE / "gaits" / str(seed)
    fitted_s = [_fitted(folder / name, clip, seed, workers) for name, clip in CLIPS.items()]
    graph, learned_s = learned_once(lambda: _graph(folder), folder / "learned.json", LearnConfig(seed=seed), workers)
    if all(fitted_s):
        yield Row("both | fits", "mujoco", sum(fitted_s) / 60.0, "core-min", seed)
    if learned_s:
        yield Row("both | learning", "mujoco", learned_s / 60.0, "core-min", seed)
    with Crowd(graph, threads=workers) as crowd:
        calm = crowd.survival(runs=RUNS, seconds=CALM_S, seed=1000 + seed)
        pushed = crowd.survival(runs=PUSHED_RUNS, seconds=LONGEST_S, seed=1000 + seed, pushed=True)
    for what, value, unit in (
        ("of ten, undisturbed for 300 s", float(np.count_nonzero(calm >= CALM_S)), ""),
        ("undisturbed, mean", float(calm.mean()), "s"),
        ("changes of gait a minute", _changes(graph, seed), ""),
        ("pushed", float(pushed.mean()), "s"),
    ):
        yield Row(f"both | {what}", "mujoco", value, unit, seed)
    if has_bullet():
        yield from _elsewhere(graph, seed)


def _elsewhere(graph: ControlGraph, seed: int) -> Iterator[Row]:
    """How long the same policies stand in Bullet, which they were not learned in."""
    planners = {name: PathPlanner(graph, [name]) for name in CLIPS} | {"both": RandomPlanner(graph, seed)}
    for name, planner in planners.items():
        (done,) = run_graph(graph, character_of(graph), [planner], ELSEWHERE_S, engine="bullet")
        up_s = ELSEWHERE_S if done.fell_at_s is None else done.fell_at_s
        yield Row(f"{name} | undisturbed in another engine", "bullet", up_s, "s", seed)


def _fitted(folder: Path, clip: str, seed: int, workers: int) -> float:
    """A capture, and the processor seconds that it took; 0 if it was there."""
    if (folder / "controller.json").is_file():
        return 0.0
    return api.fit(clip, folder, seed=seed, cycles=CYCLES, workers=workers, overwrite=True).outcome.core_s


def _graph(folder: Path) -> ControlGraph:
    """Of what both controllers do."""
    inputs = [Input(name, str(folder / name)) for name in CLIPS]
    return export_graph(inputs, GraphOptions(symmetric=tuple(CLIPS))).built.graph


def _changes(graph: ControlGraph, seed: int) -> float:
    """How often a minute a random walk begins a way from one gait to the other."""
    walk, passed, begun = random_walk(graph, np.random.default_rng(seed)), 0.0, 0
    while passed < 10.0 * CALM_S:
        fragment = graph.fragments[next(walk).fragment]
        begun += fragment.skill not in CLIPS and fragment.name.endswith("/0")
        passed += fragment.duration_s
    return 60.0 * begun / passed
