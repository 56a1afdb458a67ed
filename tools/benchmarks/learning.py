"""Guided SAMCON on cyclic motions: what learning costs, how long the result goes on, what it bears (Liu 2016, Table II)."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.rows import CACHE, Row, measured_before
from benchmarks.settings import named
from mocap2ctrl.character.model import load_character
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.graph.file import read_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.retarget import retargeted
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.samcon.cycle import motion_graph
from mocap2ctrl.samcon.hardening import HardeningConfig
from mocap2ctrl.samcon.learn import LearnConfig, Learned, Progress, learn
from mocap2ctrl.samcon.performance import Crowd
from mocap2ctrl.samcon.progressive import learn_in_parts, resumable
from mocap2ctrl.samcon.push_test import push_test_graph


@dataclass(frozen=True)
class Case:
    """A skill: its clip, the gains of its servos, minutes that it must go on for, and the body's height.

    Another body's begins with what the first case of that clip has learned.
    """

    clip: str
    gains: str
    minutes: float
    height_m: float | None = None


CASES = {
    "walk": Case("humanoid3d_walk", "locomotion", 10.0),
    "run": Case("humanoid3d_run", "locomotion", 10.0),
    "spinkick": Case("humanoid3d_spinkick", "stunts", 5.0),
    "walk-tall": Case("humanoid3d_walk", "locomotion", 10.0, height_m=1.95),
    "walk-small": Case("humanoid3d_walk", "locomotion", 10.0, height_m=1.5),
}
PUSHED_RUNS, LONGEST_S = 100, 600.0
QUICK_ITERATIONS, QUICK_RUNS = 2, 20
REAL_TIME_S = 20.0
NOTE = (
    "Each skill is learned from its DeepMimic clip alone by `mocap2ctrl learn` with its defaults, and the best iteration's\n"
    "policies then drive the body without noise. Undisturbed: seconds until it falls, of 600 (spin kick: 300). Pushed: mean over\n"
    "100 seeded runs of the time to a fall under pushes on the chest of 0.2 s every 2 s, in random horizontal directions, the\n"
    "n-th of |N(0, 10 n)| N. Real time: of one body under feedback. The paper's own protocol is not given in full; its times\n"
    "are context: catwalk 107 s, striding run 370 s, kick 280 s, learned in 806, 422 and 1,876 core-minutes. With --results FILE\n"
    "what the file has is not measured again; a learning that was interrupted is gone on with. With `--set phase_reset=yes`\n"
    "contacts reset the phase; `--set hardening=0` leaves the hardening out."
)


def clips_are_here(table: str) -> bool:
    """Whether DeepMimic's clips are installed; says that the table is left out where they are not."""
    if deepmimic_directory() is not None:
        return True
    print(f"{table}: left out, pybullet_data is not installed", file=sys.stderr)
    return False


def learning(options: argparse.Namespace) -> Iterator[Row]:
    """Learns each skill with each seed, but for those that the file of results has."""
    if not clips_are_here("learning"):
        return
    done = measured_before(options.results)
    for name in options.clips or CASES:
        for seed in options.seeds:
            if (named(name, options), seed) not in done:
                yield from _rows(name, seed, options)


def _rows(name: str, seed: int, options: argparse.Namespace) -> Iterator[Row]:
    case, threads = CASES[name], options.workers or os.cpu_count() or 1
    learned = _learned(name, case, seed, threads, options.quick, options.set or ())
    with Crowd(learned.graph, threads=threads) as crowd:
        calm = crowd.survival(runs=1, seconds=60.0 * case.minutes, seed=seed)
        pushed = crowd.survival(
            runs=QUICK_RUNS if options.quick else PUSHED_RUNS, seconds=LONGEST_S, seed=1000 + seed, pushed=True
        )
    with Crowd(learned.graph, threads=1) as crowd:
        begun = time.process_time()
        simulated = float(crowd.survival(runs=1, seconds=REAL_TIME_S, seed=seed)[0])
        factor = simulated / (time.process_time() - begun)
    for what, value, unit in (
        ("learning", sum(learned.core_s) / 60.0, "core-min"),
        ("iterations", float(len(learned.history)), ""),
        ("undisturbed", float(calm[0]), "s"),
        ("pushed", float(pushed.mean()), "s"),
        ("real time a core", factor, "x"),
    ):
        yield Row(f"{named(name, options)} | {what}", "mujoco", value, unit, seed)


PUSHES_NOTE = (
    "`mocap2ctrl push-test` of what the table of learning has learned, which is learned first where it is not there: the largest\n"
    "push on the chest of 0.4 s every 4 s for 40 s, at three phases of the cycle, from a side of the body as it faces. Vondrak's\n"
    "walk (2012, section 6.1): front 210, rear 294, right 273, left 294 N; with 75 % of the torques 42, 67, 33, 42 N. Hardened:\n"
    "gone on with by `learn --relearn --iterations 0 --hardening 8 --push-for 0.4 --push-sides 714 1000 966`, which are as the\n"
    "walk's of the paper to one another."
)
HARD = HardeningConfig(iterations=8, push_s=0.4, push_sides=(0.714, 1.0, 0.966))


def pushes(options: argparse.Namespace) -> Iterator[Row]:
    """Newtons from each side, with all and with three quarters of the torque bounds, for each skill and seed."""
    if not clips_are_here("learned-push"):
        return
    threads = options.workers or os.cpu_count() or 1
    for name in options.clips or CASES:
        for seed in options.seeds:
            output = _learned_before(name, seed, threads, options.quick)
            graph = read_graph(output)
            yield from _pushed(name, graph, seed, threads)
            hard = replace(HARD, iterations=1, updates=5) if options.quick else HARD
            harder, core_s = _hardened(graph, output.with_stem(f"{output.stem}-hard"), hard, seed, threads)
            if core_s:
                yield Row(f"{name}, hardened | all | learning", "mujoco", core_s / 60.0, "core-min", seed)
            yield from _pushed(f"{name}, hardened", harder, seed, threads)


def _pushed(name: str, graph: ControlGraph, seed: int, threads: int) -> Iterator[Row]:
    for limit in (1.0, 0.75):
        found = push_test_graph(graph, torque_limit=limit, workers=threads)
        for side in ("front", "rear", "right", "left"):
            yield Row(f"{name} | {limit:.0%} | {side}", "mujoco", getattr(found, f"{side}_n"), "N", seed)


def _hardened(
    graph: ControlGraph, output: Path, hardening: HardeningConfig, seed: int, threads: int
) -> tuple[ControlGraph, float]:
    """A learned graph that is hardened further, and the processor seconds of that; 0 if it was done before."""
    config = LearnConfig(seed=seed, relearn=True)
    config = replace(config, guided=replace(config.guided, iterations=0)).hardened_by(hardening)
    return learned_once(lambda: graph, output, config, threads)


def learned_once(
    graph: Callable[[], ControlGraph], output: Path, config: LearnConfig, threads: int
) -> tuple[ControlGraph, float]:
    """What `output` holds, or else `graph` learned, and the processor seconds of that; 0 if it was done before.

    Goes on with what an interrupted call has left.
    """
    begun = resumable(output)
    if output.is_file() and not begun:
        return read_graph(output), 0.0
    learned = learn_in_parts(
        graph(), output, config, threads=threads, resume=begun, overwrite=True, progress=partial(said, output.stem)
    )
    return learned.graph, sum(learned.core_s)


def _output(name: str, seed: int, quick: bool, changes: Sequence[str] = ()) -> Path:
    """Where what is learned is kept."""
    return CACHE / "learning" / f"{'-'.join([name, str(seed), *changes])}{'-quick' if quick else ''}.json"


def _learned(name: str, case: Case, seed: int, threads: int, quick: bool, changes: Sequence[str] = ()) -> Learned:
    """Learns with some settings changed, or goes on with what an interrupted call has left."""
    phase_reset, hardening = _settings(changes)
    graph = _begun(name, case, seed, threads, quick, phase_reset)
    config = LearnConfig(seed=seed)
    if hardening is not None:
        config = replace(config, hardening=replace(config.hardening, iterations=hardening))
    if quick:
        hardening = replace(config.hardening, iterations=1, updates=5)
        config = replace(config, guided=replace(config.guided, iterations=QUICK_ITERATIONS), hardening=hardening)
    output = _output(name, seed, quick, changes)
    output.parent.mkdir(parents=True, exist_ok=True)
    return learn(
        graph, output, config, threads=threads, resume=output.with_suffix(".learning").is_dir(), overwrite=True,
        progress=partial(said, output.stem),
    )  # fmt: skip


def _begun(name: str, case: Case, seed: int, threads: int, quick: bool, phase_reset: bool) -> ControlGraph:
    """What is learned: the clip's ring, or, for another body, what was learned for the usual one, see `graph.retarget`."""
    if case.height_m is None:
        character = load_character()
        clip = load_motion(case.clip, character).clip
        return motion_graph(clip, character, skill=name, gains=case.gains, phase_reset=phase_reset)[0]
    usual = read_graph(_learned_before(name.partition("-")[0], seed, threads, quick))
    return retargeted(usual, load_character(height_m=case.height_m))


def _learned_before(name: str, seed: int, threads: int, quick: bool) -> Path:
    """The file of what the table of learning has learned to its end, which is done first if it is not there."""
    output = _output(name, seed, quick)
    if not output.is_file() or output.with_suffix(".learning").is_dir():
        _learned(name, CASES[name], seed, threads, quick)
    return output


def _settings(changes: Sequence[str]) -> tuple[bool, int | None]:
    """Whether contacts reset the phase, and iterations of hardening, if they are set.

    Raises:
        ConfigError: something else is.
    """
    phase_reset, hardening = False, None
    for change in changes:
        name, _, value = change.partition("=")
        if change in ("phase_reset=yes", "phase_reset=no"):
            phase_reset = value == "yes"
        elif name == "hardening" and value.isdecimal():
            hardening = int(value)
        else:
            raise ConfigError(f"--set {change}: allowed are phase_reset=yes, phase_reset=no and hardening=N")
    return phase_reset, hardening


def said(name: str, p: Progress) -> None:
    """Tells what an iteration came to."""
    if p.what == "iterations":
        last = p.history[-1]
        print(
            f"{p.part or name}: iteration {p.iteration}, {last.undisturbed_s:.0f} s undisturbed, {last.pushed_s:.0f} s pushed",
            file=sys.stderr,
        )
