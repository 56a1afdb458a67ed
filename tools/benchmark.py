"""Prints every number that the README and docs show.

    python tools/benchmark.py accuracy --seeds 1 2 3        joint error, falls, effort (hours; --quick: minutes)
    python tools/benchmark.py physics                       speed of the closed loop
    python tools/benchmark.py servo                         softness of the servo rows: precision against speed
    python tools/benchmark.py actuation                     who holds the root: dense tracking without any fit

Rows are `name, engine, value, unit, seed`. `--json` prints one object a line; `--results FILE` also appends them there, and
`--table-of FILE…` prints the rows of such files instead of running anything: tables may fill over several runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from mocap2ctrl import api
from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.character.strength import directional_torque_limits
from mocap2ctrl.control.closed_loop import (
    ROOT_FREE,
    ROOT_STANCE,
    ROOT_STANCE_TORQUE,
    ROOT_SWING_TORQUE,
    run,
    start_vector,
)
from mocap2ctrl.control.law import EXIT_TIME, Program
from mocap2ctrl.fit.config import budget
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import resample, state
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.objective.target import joint_error
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.types import MotionClip, SimState

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Row:
    """One measured number."""

    name: str
    engine: str
    value: float | None
    unit: str
    seed: int | None


@dataclass(frozen=True)
class Case:
    """A clip of the accuracy table: what is fitted, and what the paper reports for the same kind of motion."""

    name: str
    motion: str
    cycles: int = 1
    time_range: tuple[float, float] | None = None
    paper_cm: float | None = None


CASES = {
    case.name: case
    for case in (
        Case("walk", "humanoid3d_walk", cycles=2, paper_cm=2.3),
        Case("jump", "humanoid3d_jump", paper_cm=4.3),
        Case("cartwheel", "humanoid3d_cartwheel", paper_cm=11.8),
        Case("walk-games105", str(SHARED / "bvh" / "walk_games105_m_yup.bvh"), time_range=(0.0, 2.0)),
        Case("run", "humanoid3d_run", cycles=2),
        Case("kick", "humanoid3d_kick"),
        Case("spinkick", "humanoid3d_spinkick", paper_cm=9.2),
        Case("backflip", "humanoid3d_backflip", paper_cm=6.3),
        Case("punch", "humanoid3d_punch"),
        Case("spin", "humanoid3d_spin"),
        Case("roll", "humanoid3d_roll"),
        Case("crawl", "humanoid3d_crawl"),
        Case("dance_a", "humanoid3d_dance_a"),
        Case("dance_b", "humanoid3d_dance_b"),
        Case("getup_facedown", "humanoid3d_getup_facedown"),
        Case("getup_faceup", "humanoid3d_getup_faceup"),
    )
}
MAIN_CASES = ("walk", "jump", "cartwheel", "walk-games105")


def accuracy(options: argparse.Namespace) -> Iterator[Row]:
    """Fits each clip with each seed; the joint error is DESIGN's: 15 joints, all frames, not aligned."""
    config = budget("quick" if options.quick else options.budget)
    for name in options.clips or MAIN_CASES:
        case = CASES[name]
        if case.motion.endswith(".bvh") and not Path(case.motion).is_file():
            print(f"{name}: left out, {Path(case.motion).name} is not beside the project", file=sys.stderr)
            continue
        for seed in options.seeds:
            yield from fit_rows(case, replace(config, seed=seed), options)


def fit_rows(case: Case, config: api.FitConfig, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of one fit."""
    with tempfile.TemporaryDirectory() as folder:
        result = api.fit(
            case.motion,
            Path(folder) / case.name,
            config=config,
            cycles=case.cycles,
            time_range=case.time_range,
            workers=options.workers,
            torque_scale=options.torque_limit,
        )
    controller = result.capture.finished_controller()
    evaluation, outcome, torques = result.evaluation, result.outcome, np.abs(result.replay.torques)
    hips = [i for i, n in enumerate(result.capture.character.hinge_names) if "thigh" in n]
    knees = [i for i, n in enumerate(result.capture.character.hinge_names) if "shank" in n]
    limits = np.nan_to_num(directional_torque_limits(result.capture.character), nan=np.inf)
    signed = result.replay.torques
    beyond = (signed > limits[:, 1]) | (signed < -limits[:, 0])
    values = {
        "joint error": (evaluation.joint_error_cm, "cm"),
        "root-aligned error": (evaluation.root_aligned_error_cm, "cm"),
        "fell at": (evaluation.fell_at_s, "s"),
        "states a second": (len(controller.states) / result.capture.reference.duration_s, "1/s"),
        "core time": (outcome.core_s / 60.0, "min"),
        "wall time": (outcome.wall_s / 60.0, "min"),
        "evaluations": (float(outcome.evaluations), ""),
        "peak hip torque": (float(torques[:, hips].max()), "N m"),
        "95 % hip torque": (float(np.percentile(torques[:, hips].max(axis=1), 95)), "N m"),
        "peak knee torque": (float(torques[:, knees].max()), "N m"),
        "steps beyond human strength": (100.0 * float(beyond.any(axis=1).mean()), "%"),
    }
    for what, (value, unit) in values.items():
        yield Row(f"{case.name} {what}", result.capture.engine_name, value, unit, config.seed)


def physics(options: argparse.Namespace) -> Iterator[Row]:
    """Simulated seconds a second on one core: a closed loop under a dense state machine, torque bounds on, 1/120 s."""
    character = load_character()
    engine = MujocoEngine(character)
    for name in ("walk", "jump", "cartwheel"):
        clip = reference(CASES[name], character)
        program = dense_program(clip, 0.1, clip.duration_s)
        start, steps = start_vector(state(clip, 0)), len(clip) - 1
        run(engine, program, start, 1)
        repeats = 3 if options.quick else 20
        times = []
        for _ in range(repeats):
            begun = time.perf_counter()
            run(engine, program, start, steps)
            times.append(time.perf_counter() - begun)
        factor = steps * TIME_STEP_S / statistics.median(times)
        yield Row(f"{name}, closed loop, real time a core", engine.name, factor, "x", None)


def servo(options: argparse.Namespace) -> Iterator[Row]:
    """For several softnesses: how exactly a step removes alpha = 0.1, standing, and what a perturbed step costs."""
    character = load_character()
    for softness in (0.999, 0.998, 0.995, 0.99):
        engine = MujocoEngine(character)
        engine.model.dof_solimp[:, :2] = softness
        ratios = step_ratios(engine, character)
        for percentile in (5, 50, 95):
            value = float(np.percentile(ratios, percentile))
            yield Row(f"{softness} | {percentile} % of ratios after/before a step", engine.name, value, "", 3)
        costs = [perturbed_step_us(engine, character, name) for name in ("walk", "jump", "cartwheel")]
        yield Row(f"{softness} | a step with its controller", engine.name, float(np.mean(costs)), "µs", 0)


def step_ratios(engine: MujocoEngine, character: Character) -> np.ndarray:
    """Pose differences after a step over those before, of hinges that are not at their bounds; 0.9 is exact."""
    rng = np.random.default_rng(3)
    target = np.clip(
        0.3 * rng.standard_normal(len(character.hinges)), 0.8 * character.lower_limits, 0.8 * character.upper_limits
    )
    engine.reset(SimState(character.zero_pose(), np.zeros(3), np.zeros(3), np.zeros(len(target))))
    ratios = []
    for step in range(60):
        before = engine.state().pose.angles - target
        engine.set_servo(-0.1 * before / TIME_STEP_S)
        engine.step()
        after = engine.state().pose.angles - target
        free = (np.abs(engine.servo_torques()) < 0.99 * engine.torque_bounds) & (np.abs(before) > 0.02)
        if step > 3:
            ratios.append((np.abs(after) / np.abs(before))[free])
    return np.concatenate(ratios)


def perturbed_step_us(engine: MujocoEngine, character: Character, name: str) -> float:
    """Microseconds a step over 20 half-second runs with targets disturbed by 0.15 rad; the least of three."""
    clip = reference(CASES[name], character)
    program = dense_program(clip, 0.1, 1.2)
    noise = 0.15 * np.random.default_rng(0).standard_normal((20, 1, clip.angles.shape[1]))
    many = {f: np.repeat(getattr(program, f), 20, axis=0) for f in ("root_target", "root_alpha", "alpha", "balance")}
    times = np.repeat(program.exit_time_s, 20, axis=0)
    program = program._replace(**many, exit_time_s=times, angle_target=program.angle_target + noise)
    start = start_vector(state(clip, 0))
    run(engine, program, start, 60)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        run(engine, program, start, 60)
        seconds.append(time.process_time() - begun)
    return 1e6 * min(seconds) / (20 * 60)


def actuation(options: argparse.Namespace) -> Iterator[Row]:
    """Tracks references densely (a state each 1/60 s, targets ahead by one time constant) without any optimisation."""
    modes = {
        "stance hip, velocity": ROOT_STANCE,
        "stance hip, torque": ROOT_STANCE_TORQUE,
        "swing hip, torque (as printed)": ROOT_SWING_TORQUE,
        "nobody": ROOT_FREE,
    }
    character = load_character()
    for name in ("walk", "run", "jump", "kick", "cartwheel"):
        clip = reference(CASES[name], character)
        for who, mode in modes.items():
            for alpha in (0.1,) if options.quick else (0.05, 0.1, 0.2):
                for gamma in (1.0,) if options.quick or mode != ROOT_STANCE else (1.0, 0.5, 0.25):
                    label = f"{name} | {who} | {alpha:g} | {gamma:g}"
                    yield from tracking_rows(label, clip, character, mode, alpha, gamma)


def tracking_rows(
    label: str, clip: MotionClip, character: Character, mode: int, alpha: float, gamma: float
) -> Iterator[Row]:
    """The rows of one tracking experiment."""
    engine = MujocoEngine(character, torque_scale=gamma)
    program = dense_program(clip, alpha, clip.duration_s + 1.0)
    start = start_vector(state(clip, 0))
    result = run(engine, program, start, len(clip) - 1, root_mode=mode, record_torques=True)
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    points = evaluation_points(character, result.positions[0], result.orientations[0])
    error = joint_error(points, evaluation_points(character, *frames)).mean(axis=1)
    far = np.flatnonzero(~(error < 30.0))
    last = int(far[0]) if len(far) else len(error)
    good = slice(0, max(last - 12, 1))
    tilt = rotations.multiply(result.qpos[0, :, 3:7], rotations.conjugate(clip.root_orientation))
    degrees = np.degrees(np.linalg.norm(rotations.to_rotation_vector(tilt), axis=-1))
    hips = [i for i, n in enumerate(character.hinge_names) if "thigh" in n]
    torques = np.abs(result.torques[0, good])
    values = {
        "within 30 cm until": (last / 120.0, "s"),
        "root error, median": (float(np.median(degrees[good])), "deg"),
        "hip torque, median": (float(np.median(torques[:, hips].max(axis=1))), "N m"),
        "hip torque, 95 %": (float(np.percentile(torques[:, hips].max(axis=1), 95)), "N m"),
        "steps at a bound": (100.0 * float(np.mean(np.any(torques > 0.99 * engine.torque_bounds, axis=1))), "%"),
    }
    for what, (value, unit) in values.items():
        yield Row(f"{label} | {what}", engine.name, value, unit, None)


def reference(case: Case, character: Character) -> MotionClip:
    """A case's clip at 120 frames a second."""
    loaded = load_motion(case.motion, character, cycles=case.cycles, time_range=case.time_range)
    return resample(replace(loaded.clip, loop=False), 120.0)


def dense_program(clip: MotionClip, alpha: float, seconds: float) -> Program:
    """A chain with a state each 1/60 s whose targets lie one servo time constant ahead on `clip`."""
    states = round(seconds * 60.0)
    times = np.arange(states) / 60.0 + TIME_STEP_S / alpha
    rows = np.minimum(np.round(times * clip.fps).astype(int), len(clip) - 1)
    return Program(
        root_target=clip.root_orientation[rows][None],
        angle_target=clip.angles[rows][None],
        root_alpha=np.full((1, states), alpha),
        alpha=np.full((1, states, clip.angles.shape[1]), alpha),
        balance=np.zeros((1, states, 3)),
        swing=np.zeros(states, dtype=np.int64),
        exit_kind=np.full(states, EXIT_TIME, dtype=np.int64),
        exit_time_s=np.full((1, states), 1.0 / 60.0),
        next_state=np.minimum(np.arange(states) + 1, states - 1),
    )


TABLES: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "accuracy": accuracy,
    "physics": physics,
    "servo": servo,
    "actuation": actuation,
}


def print_table(rows: list[Row]) -> None:
    """Markdown: for each number its median and worst over seeds; one line an experiment where names have parts."""
    if all(" | " in row.name for row in rows):
        print_experiments(rows)
        return
    print("| | engine | median | worst | unit | seeds |\n|---|---|---|---|---|---|")
    for name in dict.fromkeys(row.name for row in rows):
        same = [row for row in rows if row.name == name]
        values = [row.value for row in same if row.value is not None]
        seeds = ", ".join(str(row.seed) for row in same if row.seed is not None) or "–"
        cells = (f"{statistics.median(values):.2f}", f"{max(values):.2f}") if values else ("–", "–")
        print(f"| {name} | {same[0].engine} | {cells[0]} | {cells[1]} | {same[0].unit} | {seeds} |")


def print_experiments(rows: list[Row]) -> None:
    """Markdown: rows whose names are `experiment | … | quantity`, a line an experiment, a column a quantity."""
    cells = {tuple(row.name.rsplit(" | ", 1)): row for row in rows}
    experiments = dict.fromkeys(experiment for experiment, _ in cells)
    quantities = dict.fromkeys(quantity for _, quantity in cells)
    parts = max(experiment.count(" | ") for experiment in experiments) + 1
    units = {row.name.rsplit(" | ", 1)[1]: row.unit for row in rows}
    heads = ["motion", "root held by", "α", "γ / 120"] if parts == 4 else ["solimp"]
    print("| " + " | ".join(heads + [f"{q}, {units[q]}".rstrip(", ") for q in quantities]) + " |")
    print("|---" * (parts + len(quantities)) + "|")
    for experiment in experiments:
        values = [cells[experiment, q].value for q in quantities]
        print(f"| {experiment} | " + " | ".join("–" if v is None else f"{v:.3g}" for v in values) + " |")


def main() -> int:
    """Runs one table, or prints rows measured before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--quick", action="store_true", help="a small version, for a look")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--clips", nargs="+", choices=CASES, help="of the accuracy table")
    parser.add_argument("--budget", default="default", help="of the accuracy table's fits")
    parser.add_argument("--torque-limit", type=float, default=1.0, help="factor on the torque bounds")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    parser.add_argument("--results", type=Path, help="append rows to this file")
    parser.add_argument(
        "--table-of", type=Path, nargs="+", metavar="FILE", help="print the rows of these files; run nothing"
    )
    options = parser.parse_args()
    if options.table_of:
        lines = [line for path in options.table_of for line in path.read_text("utf-8").splitlines()]
        print_table([Row(**json.loads(line)) for line in lines])
        return 0
    rows = []
    for row in TABLES[options.table](options):
        rows.append(row)
        line = json.dumps(asdict(row))
        if options.results:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        if options.json:
            print(line, flush=True)
    if not options.json:
        print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
