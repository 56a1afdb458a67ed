"""What a fit costs: time, memory of all its processes, and what a second worker is worth."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from benchmarks.motions import CASES, Case
from benchmarks.rows import Row, engine_names, engine_or_none
from mocap2ctrl.character.model import load_character

CASE = CASES["walk"]
SAMPLE_S = 0.05

FIT_NOTE = (
    "Each fit is a command of its own. Memory is the largest sum over its process tree of what is resident, looked at 20 times "
    "a second; what processes share counts for each. Core time counts workers; evaluation and "
    "report are in the command's."
)
SCALING_NOTE = (
    "The same fit with one worker and with two, and the same bits in both controllers. The command starts an interpreter and "
    "writes a report, on one core; the search does not. On a machine with other work the ratios "
    "say little."
)


@dataclass(frozen=True)
class Fitted:
    """One fit by the command line.

    Attributes:
        said: its JSON object.
        core_s, wall_s: of the whole command, from the interpreter's start to the report; core_s counts workers.
        peak_bytes: of memory.
        search_s: wall time until the last stage, without start, evaluation and report.
        controller: what controller.json holds, without provenance.
    """

    said: dict[str, Any]
    core_s: float
    wall_s: float
    peak_bytes: int
    search_s: float
    controller: dict[str, Any]


def fit(options: argparse.Namespace) -> Iterator[Row]:
    """The walk with each engine and seed."""
    character = load_character()
    for engine in engine_names(options):
        here = engine_or_none(engine, character) is not None
        if here:
            warm_up(engine)
        for seed in options.seeds:
            fitted = run_fit(CASE, engine, seed, options.workers, budget_of(options)) if here else None
            for what, (value, unit) in measures(fitted).items():
                yield Row(f"{CASE.name}: {what}", engine, value, unit, seed)


def measures(fitted: Fitted | None) -> dict[str, tuple[float | None, str]]:
    """Values and units by name; no values without a fit."""
    said: dict[str, Any] = {} if fitted is None else fitted.said

    def value(name: str, factor: float = 1.0) -> float | None:
        return None if said.get(name) is None else factor * float(said[name])

    others = list(said.get("elsewhere", {}).values())

    def elsewhere(name: str) -> float | None:
        return float(others[0][name]) if others and others[0][name] is not None else None

    return {
        "joint error": (value("joint_error_cm"), "cm"),
        "falls": (value("fell"), ""),
        "in the other engine: joint error": (elsewhere("joint_error_cm"), "cm"),
        "in the other engine: falls": (elsewhere("fell"), ""),
        "in the other engine: falls at": (elsewhere("fell_at_s"), "s"),
        "core time": (value("core_s", 1 / 60), "min"),
        "wall time": (value("wall_s", 1 / 60), "min"),
        "core time of the command": (None if fitted is None else fitted.core_s / 60, "min"),
        "wall time of the command": (None if fitted is None else fitted.wall_s / 60, "min"),
        "evaluations": (value("evaluations"), ""),
        "peak memory": (None if fitted is None else fitted.peak_bytes / 1e9, "GB"),
    }


def scaling(options: argparse.Namespace) -> Iterator[Row]:
    """The same fit with one and with two workers."""
    character = load_character()
    for engine in engine_names(options):
        if engine_or_none(engine, character) is None:
            for what in ("command", "search"):
                yield Row(f"{CASE.name}, {what}: speed-up from 1 to 2 workers", engine, None, "x", None)
            continue
        warm_up(engine)
        for seed in options.seeds:
            one, two = (run_fit(CASE, engine, seed, workers, budget_of(options)) for workers in (1, 2))
            if one.controller != two.controller:
                raise SystemExit(f"{engine}, seed {seed}: the controllers of one and two workers differ")
            for what, times in (
                ("command", [f.wall_s for f in (one, two)]),
                ("search", [f.search_s for f in (one, two)]),
            ):
                for workers, seconds in enumerate(times, start=1):
                    yield Row(f"{CASE.name}, {what}: wall time, workers: {workers}", engine, seconds, "s", seed)
                ratio = times[0] / times[1]
                yield Row(f"{CASE.name}, {what}: speed-up from 1 to 2 workers", engine, ratio, "x", seed)


def warm_up(engine: str) -> None:
    """Compiles what fits need, so that no fit is charged for it."""
    run_fit(replace(CASE, cycles=1, time_range=(0.0, 0.3)), engine, 1, 1, "quick")


def budget_of(options: argparse.Namespace) -> str:
    """The budget of a table's fits."""
    return "quick" if options.quick else str(options.budget)


def run_fit(case: Case, engine: str, seed: int, workers: int | None, budget: str) -> Fitted:
    """Fits by the command line and watches its memory.

    Raises:
        SystemExit: the command failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / case.name
        command = [sys.executable, "-m", "mocap2ctrl", "fit", case.motion, "-o", str(capture), "--json"]
        command += ["--engine", engine, "--seed", str(seed), "--budget", budget, "--cycles", str(case.cycles)]
        if workers is not None:
            command += ["--workers", str(workers)]
        if case.time_range is not None:
            command += ["--time-range", *map(str, case.time_range)]
        before, begun = os.times(), time.perf_counter()
        out, peak = watched(command)
        after, wall = os.times(), time.perf_counter() - begun
        log = [json.loads(line) for line in (capture / "log.jsonl").read_text("utf-8").splitlines()]
        controller = json.loads((capture / "controller.json").read_text("utf-8"))
    controller.pop("provenance")
    core = after.children_user + after.children_system - before.children_user - before.children_system
    return Fitted(json.loads(out), core, wall, peak, float(log[-1]["elapsed_s"]), controller)


def watched(command: list[str]) -> tuple[str, int]:
    """What a command prints, and the most memory that it and its processes hold at once, bytes.

    Raises:
        SystemExit: it failed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        peak = 0
        while process.poll() is None:
            peak = max(peak, tree_bytes(process.pid))
            try:
                process.wait(SAMPLE_S)
            except subprocess.TimeoutExpired:
                continue
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise SystemExit(err.read().decode("utf-8", "replace"))
        return out.read().decode("utf-8"), peak


def tree_bytes(pid: int) -> int:
    """Resident memory of a process and all below it; 0 where it has ended."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    total = 0
    for process in family:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
