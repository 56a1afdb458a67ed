"""Falls and getting up: a learned walker is pushed over, lies as a ragdoll, rises, and walks on (Liu 2016, §6.2)."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.learning import CASES, _learned, clips_are_here, learned_once
from benchmarks.rows import CACHE, Row, measured_before
from mocap2ctrl.character.model import Character
from mocap2ctrl.graph.body import character_of
from mocap2ctrl.graph.export import GraphOptions, export_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.planning import PathPlanner, Place
from mocap2ctrl.graph.sources import Input
from mocap2ctrl.samcon.learn import LearnConfig
from mocap2ctrl.samcon.performer import RAGDOLL, Performed
from mocap2ctrl.samcon.run import run_graph
from mocap2ctrl.simulation.pushes import Push

RISING = {"face down": "humanoid3d_getup_facedown", "face up": "humanoid3d_getup_faceup"}
FALLS, MOST_TRIES = 20, 200
PUSH_N, PUSH_S, FIRST_PUSH_S = (300.0, 500.0), 0.3, 2.0
"""Of the push on the chest that throws over: newtons, seconds, and when at the earliest; up to a cycle later."""
PATIENCE_S, WALKS_ON_S = 20.0, 5.0
"""How long a fall and all attempts to rise may take, and how long who has risen must walk on."""
NOTE = (
    "A walk that is learned as in the table of learning gets DeepMimic's two get-up clips as rising skills: export-graph, then\n"
    "learn, with their defaults. Then it is pushed over while it walks: for 0.3 s on the chest by 300 to 500 N in a random\n"
    "direction and at a random time; the first 20 falls each after which it rises from, or stays, face down and face up are\n"
    "counted. Up: it has risen, and walked on for 5 s without falling, within 25 s of the push; at once: by the first attempt.\n"
    "Learning: processor time for the rising skills alone; what captures/benchmark/learning has is not learned again."
)


@dataclass(frozen=True)
class Fall:
    """How a fall went on.

    Attributes:
        lay: the rising skill that was performed first, or whose pose the ragdoll took last.
        attempts: how often rising was begun until it walked on.
        up: whether it walked on in the end.
    """

    lay: str
    attempts: int
    up: bool


def rising(options: argparse.Namespace) -> Iterator[Row]:
    """Learns to rise with each seed, but for those that the file of results has, and falls."""
    if not clips_are_here("rising"):
        return
    done = measured_before(options.results)
    for seed in options.seeds:
        if ("face down", seed) not in done:
            yield from _rows(seed, options)


def _rows(seed: int, options: argparse.Namespace) -> Iterator[Row]:
    graph, core_s = _risen(seed, options.workers or os.cpu_count() or 1)
    if core_s:
        yield Row("both | learning", "mujoco", core_s / 60.0, "core-min", seed)
    falls = list(_falls(graph, seed))
    for where in RISING:
        of = [fall for fall in falls if fall.lay == _skill(where)][:FALLS]
        yield Row(f"{where} | times", "mujoco", float(len(of)), "", seed)
        yield Row(f"{where} | up", "mujoco", float(sum(fall.up for fall in of)), "", seed)
        yield Row(f"{where} | at once", "mujoco", float(sum(fall.up and fall.attempts == 1 for fall in of)), "", seed)


def _skill(where: str) -> str:
    return where.replace(" ", "")


def _risen(seed: int, threads: int) -> tuple[ControlGraph, float]:
    """The walk of the table of learning with rising skills, and how long learning these took; see `learned_once`."""
    folder = CACHE / "learning"
    return learned_once(
        lambda: _rising_graph(folder, seed, threads), folder / f"rising-{seed}.json", LearnConfig(seed=seed), threads
    )


def _rising_graph(folder: Path, seed: int, threads: int) -> ControlGraph:
    """The learned walk, and rising skills that are to be learned."""
    walk = folder / f"walk-{seed}.json"
    if not walk.is_file():
        _learned("walk", CASES["walk"], seed, threads, quick=False)
    inputs = [Input(walk.stem, str(walk)), *(Input(_skill(where), clip) for where, clip in RISING.items())]
    return export_graph(inputs, GraphOptions(rising=[_skill(where) for where in RISING])).built.graph


def _falls(graph: ControlGraph, seed: int) -> Iterator[Fall]:
    """Falls until there are enough of each kind."""
    character, counts = character_of(graph), dict.fromkeys(map(_skill, RISING), 0)
    period_s = sum(fragment.duration_s for fragment in graph.fragments.values() if fragment.skill == "walk")
    for number in range(MOST_TRIES):
        fall = _thrown(graph, character, np.random.default_rng([seed, number]), period_s)
        if fall is not None:
            counts[fall.lay] += 1
            yield fall
        if min(counts.values()) >= FALLS:
            return


def _thrown(graph: ControlGraph, character: Character, rng: np.random.Generator, period_s: float) -> Fall | None:
    """A walk with one push; None if it is stood."""
    at_s, way, force_n = FIRST_PUSH_S + rng.uniform(0.0, period_s), rng.uniform(0.0, 2.0 * np.pi), rng.uniform(*PUSH_N)
    push = Push(character.segment_index("chest"), force_n * np.array([np.cos(way), np.sin(way), 0.0]), at_s, PUSH_S)
    seconds = at_s + PATIENCE_S + WALKS_ON_S
    (done,) = run_graph(graph, character, [PathPlanner(graph, ["walk"])], seconds, pushes=[push])
    return _told(graph, done.performed, seconds)


def _told(graph: ControlGraph, performed: Sequence[Performed], seconds: float) -> Fall | None:
    skills = [RAGDOLL if entry.fragment == RAGDOLL else graph.fragments[entry.fragment].skill for entry in performed]
    if RAGDOLL not in skills:
        return None
    rose = [i for i, skill in enumerate(skills) if f"{skill}/0" == performed[i].fragment and skill != "walk"]
    lay = skills[rose[0]] if rose else graph.fragments[performed[-1].pose].skill
    for number, begin in enumerate(rose, start=1):
        fell = next(
            (entry.at_s for entry, skill in zip(performed[begin:], skills[begin:], strict=True) if skill == RAGDOLL),
            seconds,
        )
        walked = next((e.at_s for e, s in zip(performed[begin:], skills[begin:], strict=True) if s == "walk"), np.inf)
        if fell - walked >= WALKS_ON_S:
            return Fall(lay, number, up=True)
    return Fall(lay, len(rose), up=False)


COMPANY, COMPANY_S, CIRCLE_M = 4, 20.0, 2.5
COMPANY_NOTE = (
    "Four who have learned to walk and to rise, as in the table of rising, in one model, walk from a circle of 2.5 m straight\n"
    "to its middle, where they collide. Real time: seconds simulated by processor second of all that runs, feedback included, on\n"
    "one core; met: how many touched another; fell: how often one became a ragdoll; rose: how often rising was begun."
)


def company(options: argparse.Namespace) -> Iterator[Row]:
    """Characters who run into each other; learns as `rising` does if that has not been done."""
    if not clips_are_here("company"):
        return
    for seed in options.seeds:
        yield from _company_rows(_risen(seed, options.workers or os.cpu_count() or 1)[0], seed)


def _company_rows(graph: ControlGraph, seed: int) -> Iterator[Row]:
    character = character_of(graph)
    angles = 2.0 * np.pi * (np.arange(COMPANY) / COMPANY + np.random.default_rng(seed).uniform())
    places = [Place(CIRCLE_M * float(np.cos(a)), CIRCLE_M * float(np.sin(a)), float(a + np.pi)) for a in angles]
    run_graph(graph, character, [PathPlanner(graph, ["walk"])], 0.1)  # compiles
    planners = [PathPlanner(graph, ["walk"]) for _ in range(COMPANY)]
    begun = time.process_time()
    runs = run_graph(graph, character, planners, COMPANY_S, places=places)
    factor = COMPANY_S / (time.process_time() - begun)
    falls = rises = 0
    for done in runs:
        names = [entry.fragment for entry in done.performed]
        falls += sum(after == RAGDOLL != before for before, after in pairwise(names))
        rises += sum(before == RAGDOLL != after for before, after in pairwise(names))
    for what, value, unit in (
        ("real time", factor, "x"),
        ("met", float(sum(bool(done.met) for done in runs)), ""),
        ("fell", float(falls), ""),
        ("rose", float(rises), ""),
    ):
        yield Row(f"four | {what}", "mujoco", value, unit, seed)
