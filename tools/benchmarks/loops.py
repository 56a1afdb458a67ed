"""The closed loop without any fit: the softness of the servo rows, and who holds the root."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.motions import CASES, reference
from benchmarks.rows import Row
from mocap2ctrl.character.kinematics import clip_frames, evaluation_points
from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.control.closed_loop import (
    ROOT_FREE,
    ROOT_STANCE,
    ROOT_STANCE_TORQUE,
    ROOT_SWING_TORQUE,
    run,
    start_vector,
)
from mocap2ctrl.control.law import EXIT_TIME, Program
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import state
from mocap2ctrl.objective.target import joint_error
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.types import MotionClip, SimState


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
    frames = clip_frames(character, clip)
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
