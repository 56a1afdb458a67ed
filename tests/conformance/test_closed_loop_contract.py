"""Controller and engine together: no torque from outside, runs that can be split, machines that do not see each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from subjects import Subject, random_angles

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import (
    ROOT_FREE,
    ROOT_STANCE,
    ROOT_STANCE_TORQUE,
    ROOT_SWING_TORQUE,
    Rollouts,
    run,
    single_state_program,
    start_step,
    start_vector,
)
from mocap2ctrl.control.controller import Controller, compile_program, step_alpha
from mocap2ctrl.control.law import MEMORY_SIZE, Program
from mocap2ctrl.errors import EngineError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.engine import TIME_STEP_S, Engine
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array, Pose, SimState

SHARED = {"swing", "exit_kind", "next_state", "feedback"}
"""Fields of `Program` without a machine's axis; a feedback of none has no rows."""


def replayed(engine: Engine, start: SimState, torques: Array) -> Array:
    """Segment positions (N, S, 3) before each of N steps of a plain engine that is given torques (N, J)."""
    engine.reset(start)
    positions = []
    for torque in torques:
        positions.append(engine.segment_frames()[0])
        engine.set_torques(torque)
        engine.step()
    return np.array(positions)


def replay_error(engine: Engine, start: SimState, rollouts: Rollouts) -> Array:
    """(N,) largest distance of any segment between a recorded motion and its replay, metres."""
    torques = rollouts.torques[0]
    positions = replayed(engine, start, torques)
    return np.linalg.norm(positions - rollouts.positions[0, : len(torques)], axis=2).max(axis=1)


def still(character: Character, alpha: float = 0.1) -> Program:
    return single_state_program([1, 0, 0, 0], np.zeros(len(character.hinges)), alpha)


def program_of(controller: Controller, character: Character, machines: int = 1) -> Program:
    return compile_program([controller] * machines, character, TIME_STEP_S)


def varied(controller: Controller, character: Character, machines: int) -> Program:
    """Machines that differ in their target poses."""
    program = program_of(controller, character, machines)
    noise = np.random.default_rng(0).normal(0.0, 0.05, program.angle_target.shape)
    return program._replace(angle_target=program.angle_target + noise)


def assert_same_bits(a: Rollouts, b: Rollouts, rows_a: object = slice(None), rows_b: object = slice(None)) -> None:
    for name in ("qpos", "positions", "orientations", "load", "state"):
        np.testing.assert_array_equal(getattr(a, name)[rows_a], getattr(b, name)[rows_b], err_msg=name)


# No torque from outside. The plain model has neither servos nor root help, so what it repeats, the joints alone did. Steps are
# replayed one by one, each from its recorded state; where contacts allow it, also the whole motion. There an upright body
# without feedback is an unstable pendulum: rounding errors of 1e-15 grow about e^20 a second, hence the time windows.

EXACT_M = 1e-9


def step_errors(
    engine: Engine,
    plain: Engine,
    program: Program,
    start: SimState,
    steps: int,
    weaken: float = 1.0,
    push: Push | None = None,
) -> Array:
    """(N,) largest distance of any segment between each step and what recorded torques, times `weaken`, make of it, metres."""
    vector, errors = start_vector(start), []
    for step in range(steps):
        pushes = () if push is None else (push,)
        rollouts = run(engine, program, vector, step + 1, record_torques=True, pushes=pushes)
        plain.set_state_vector(vector[:-MEMORY_SIZE])
        plain.set_torques(weaken * rollouts.torques[0, 0])
        plain.step()
        difference = plain.segment_frames()[0] - engine.segment_frames()[0]
        errors.append(np.linalg.norm(difference, axis=1).max())
        vector = rollouts.final[0]
    return np.array(errors)


def test_steps_replay_one_by_one(
    subject: Subject,
    subject_engine: Engine,
    plain_engine: Engine,
    stepping: Controller,
    standing: SimState,
    character: Character,
):
    for program, start in ((program_of(stepping, character), stepping.start), (still(character), standing)):
        errors = step_errors(subject_engine, plain_engine, program, start, 90)
        assert np.mean(errors < EXACT_M) >= subject.replay_share


def test_no_step_replays_with_weaker_torques(
    subject_engine: Engine, plain_engine: Engine, stepping: Controller, character: Character
):
    program = program_of(stepping, character)
    assert np.all(step_errors(subject_engine, plain_engine, program, stepping.start, 90, weaken=0.98) > 1e3 * EXACT_M)


def test_no_step_replays_under_a_push(
    subject: Subject, subject_engine: Engine, plain_engine: Engine, stepping: Controller, character: Character
):
    push = Push(character.segment_index("chest"), np.array([20.0, 0.0, 0.0]), 0.1, 0.2)
    program = program_of(stepping, character)
    errors = step_errors(subject_engine, plain_engine, program, stepping.start, 60, push=push)
    assert np.all(errors[12:36] > 1e3 * EXACT_M)
    assert np.mean(np.delete(errors, np.s_[12:36]) < EXACT_M) >= subject.replay_share


def test_replay_of_standing(
    subject: Subject, subject_engine: Engine, plain_engine: Engine, standing: SimState, character: Character
):
    tolerance = whole_motion_tolerance(subject)
    rollouts = run(subject_engine, still(character), start_vector(standing), 120, record_torques=True)
    error = replay_error(plain_engine, standing, rollouts)
    assert np.max(np.abs(rollouts.torques[0])) > 1.0
    assert error.max() < tolerance
    assert error[60] < 1e-3 * tolerance


@pytest.mark.parametrize("mode", [ROOT_STANCE, ROOT_STANCE_TORQUE, ROOT_SWING_TORQUE, ROOT_FREE])
def test_replay_of_stepping(
    subject: Subject,
    subject_engine: Engine,
    plain_engine: Engine,
    stepping: Controller,
    character: Character,
    mode: int,
):
    tolerance = whole_motion_tolerance(subject)
    program = program_of(stepping, character)
    rollouts = run(subject_engine, program, start_vector(stepping.start), 90, record_torques=True, root_mode=mode)
    assert len(set(rollouts.state[0])) >= 2
    assert np.any(rollouts.load[0, :, 0] > 0)
    assert np.any(rollouts.load[0, :, 1] > 0)
    assert replay_error(plain_engine, stepping.start, rollouts).max() < tolerance


@pytest.mark.parametrize("mode", [ROOT_STANCE_TORQUE, ROOT_SWING_TORQUE])
def test_experiments_of_one_engine_are_refused_by_another(
    subject: Subject, subject_engine: Engine, stepping: Controller, character: Character, mode: int
):
    if subject.computed_root:
        return
    with pytest.raises(EngineError, match="cannot hold the root by a computed torque; choose 'mujoco'"):
        run(subject_engine, program_of(stepping, character), start_vector(stepping.start), 1, root_mode=mode)


def test_replay_with_the_torques_scaled_down_differs(
    subject: Subject, subject_engine: Engine, plain_engine: Engine, stepping: Controller, character: Character
):
    tolerance = whole_motion_tolerance(subject)
    rollouts = run(
        subject_engine, program_of(stepping, character), start_vector(stepping.start), 15, record_torques=True
    )
    weaker = replace(rollouts, torques=0.98 * rollouts.torques)
    assert replay_error(plain_engine, stepping.start, weaker).max() > 3 * tolerance


@pytest.mark.parametrize(("root_gain", "reproduced"), [(0.0, True), (300.0, False)])
def test_replay_unmasks_a_puppet(
    subject: Subject,
    subject_engine: Engine,
    plain_engine: Engine,
    standing: SimState,
    character: Character,
    angles_of,
    root_gain: float,
    reproduced: bool,
):
    # The root is held upright by a spring from outside, N m / rad: what looks wonderful and is none of the body's work.
    target = angles_of(left_thigh__flexion=40, left_shank__flexion=50)
    rate = float(step_alpha(np.array(0.1), TIME_STEP_S)) / TIME_STEP_S
    subject_engine.reset(standing)
    errors = []
    for _ in range(60):
        state, before = subject_engine.state(), subject_engine.state_vector()
        subject_engine.set_servo(rate * (target - state.pose.angles))
        spring = -root_gain * rotations.to_rotation_vector(state.pose.root_orientation)
        subject_engine.apply_wrench(0, np.zeros(3), spring)
        subject_engine.step()
        plain_engine.set_state_vector(before)
        plain_engine.set_torques(subject_engine.servo_torques())
        plain_engine.step()
        difference = plain_engine.segment_frames()[0] - subject_engine.segment_frames()[0]
        errors.append(np.linalg.norm(difference, axis=1).max())
    share = np.mean(np.array(errors) < EXACT_M)
    assert share >= subject.replay_share if reproduced else share < 0.1


def whole_motion_tolerance(subject: Subject) -> float:
    """The tolerance, in metres, of motions that are replayed without a stop, for engines that can."""
    if subject.replay_m is None:
        pytest.skip(f"{subject.name}: contacts of sliding feet allow only single steps to be replayed")
    return subject.replay_m


# Runs are reproducible to the bit.


@pytest.mark.parametrize("split", [1, 7, 30, 31, 53, 89])
def test_a_run_may_be_split_anywhere(subject_engine: Engine, stepping: Controller, character: Character, split: int):
    program = varied(stepping, character, 2)
    whole = run(subject_engine, program, start_vector(stepping.start), 110, record_torques=True)
    first = run(subject_engine, program, start_vector(stepping.start), split, record_torques=True)
    assert start_step(first.final[0]) == split
    run(subject_engine, still(character), start_vector(stepping.start), 20)  # other work in between
    second = run(subject_engine, program, first.final, 110, record_torques=True)
    assert second.first_frame == split
    assert_same_bits(whole, second, np.s_[:, split:])
    assert_same_bits(whole, first, np.s_[:, : split + 1])
    np.testing.assert_array_equal(whole.torques, np.concatenate([first.torques, second.torques], axis=1))
    np.testing.assert_array_equal(whole.final, second.final)


def test_a_run_stopped_at_a_state_goes_on_to_the_same_bits(
    subject_engine: Engine, stepping: Controller, character: Character
):
    program = program_of(stepping, character)
    whole = run(subject_engine, program, start_vector(stepping.start), 100)
    entered = int(np.flatnonzero(whole.state[0] == 1)[0])
    assert entered == 30  # 0.25 s
    stopped = run(subject_engine, program, start_vector(stepping.start), 100, stop_at_state=1)
    assert start_step(stopped.final[0]) == entered
    assert_same_bits(whole, run(subject_engine, program, stopped.final, 100), np.s_[:, entered:])


def test_a_stopped_run_has_not_yet_used_the_state_it_stopped_at(
    subject_engine: Engine, stepping: Controller, character: Character
):
    # The fit grows a controller from such a snapshot, with another state in the place of the one that was entered.
    program = program_of(stepping, character)
    stopped = run(subject_engine, program, start_vector(stepping.start), 100, stop_at_state=1)
    other = program._replace(angle_target=program.angle_target.copy())
    other.angle_target[:, 1] += 0.2
    whole = run(subject_engine, other, start_vector(stepping.start), 60)
    assert_same_bits(whole, run(subject_engine, other, stopped.final, 60), np.s_[:, 30:])


@pytest.mark.parametrize("stride", [2, 4])
def test_stride_thins_the_record_and_nothing_else(
    subject_engine: Engine, stepping: Controller, character: Character, stride: int
):
    program, start = program_of(stepping, character), start_vector(stepping.start)
    every, thin = run(subject_engine, program, start, 60), run(subject_engine, program, start, 60, stride=stride)
    assert_same_bits(every, thin, np.s_[:, ::stride])
    late = run(subject_engine, program, run(subject_engine, program, start, 21).final, 60, stride=stride)
    assert late.first_frame == -(-21 // stride)
    assert_same_bits(thin, late, np.s_[:, late.first_frame :])


def test_machines_of_a_population_do_not_see_each_other(
    subject: Subject, subject_engine: Engine, stepping: Controller, character: Character
):
    program, start = varied(stepping, character, 5), start_vector(stepping.start)
    together = run(subject_engine, program, start, 90)
    assert np.ptp(together.qpos[:, -1, 0]) > 1e-3  # they are five different motions
    for p in (3, 0):
        own = {n: getattr(program, n)[p : p + 1] for n in Program._fields if n not in SHARED}
        for engine in (subject_engine, subject.make(character)):
            alone = run(engine, program._replace(**own), start, 90)
            assert_same_bits(together, alone, np.s_[p : p + 1])


def test_engines_in_threads_give_the_same_bits(subject: Subject, stepping: Controller, character: Character):
    program, start = varied(stepping, character, 8), start_vector(stepping.start)
    reference = run(subject.make(character), program, start, 90)
    engines = [subject.make(character) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        for rollouts in pool.map(lambda engine: run(engine, program, start, 90), engines):
            assert_same_bits(reference, rollouts)


# Failure is data.


def flailing(character: Character, alpha: float, share: float, seeds: int) -> tuple[Program, Array]:
    """Programs and starts of bodies that fall from 2 m and take a random target pose every 0.1 s."""
    states = 50
    programs, starts = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        programs.append(
            (rng.normal(0.0, 0.5, (states, 3)), [random_angles(character, rng, share) for _ in range(states)])
        )
        orientation = rotations.normalise(rng.normal(size=4))
        pose = Pose(np.array([0.0, 0.0, 2.0]), orientation, random_angles(character, rng, share))
        start = SimState(pose, rng.normal(size=3), rng.normal(size=3), rng.normal(size=len(pose.angles)))
        starts.append(start_vector(start))
    hinges = len(character.hinges)
    program = Program(
        root_target=rotations.from_rotation_vector(np.array([root for root, _ in programs])),
        angle_target=np.array([angles for _, angles in programs]),
        root_alpha=np.full((seeds, states), alpha),
        alpha=np.full((seeds, states, hinges), alpha),
        balance=np.tile([0.3, 0.3, 0.5], (seeds, states, 1)),
        swing=np.zeros(states, dtype=np.int64),
        exit_kind=np.ones(states, dtype=np.int64),
        exit_time_s=np.full((seeds, states), 0.1),
        next_state=(np.arange(states) + 1) % states,
    )
    return program, np.array(starts)


@pytest.mark.parametrize(("alpha", "share"), [(0.2, 0.5), (0.1, 1.0)])
def test_a_falling_flailing_body_stays_finite(subject_engine: Engine, character: Character, alpha: float, share: float):
    program, starts = flailing(character, alpha, share, 12)
    rollouts = run(subject_engine, program, starts, 600, stride=4)
    assert not rollouts.diverged.any()
    assert np.all(np.isfinite(rollouts.qpos))
    assert np.all(rollouts.positions[..., 2] > -0.1)  # on the ground, not through it
    assert np.all(np.abs(rollouts.positions[..., :2]) < 20.0)
    excess = np.maximum(
        rollouts.qpos[..., 7:] - character.upper_limits, character.lower_limits - rollouts.qpos[..., 7:]
    )
    assert np.quantile(excess, 0.99) <= 0.0  # limits hold,
    assert np.quantile(excess, 0.999) < 0.3  # but for brief overshoots


def test_divergence_is_data(
    subject_engine: Engine,
    standing: SimState,
    character: Character,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    good = start_vector(standing)
    absurd = [
        SimState(standing.pose, np.array([v, 0, 0]), np.zeros(3), standing.joint_velocities) for v in (500.0, 1e12)
    ]
    one = still(character)
    repeated = {n: np.repeat(getattr(one, n), 3, axis=0) for n in Program._fields if n not in SHARED}
    program = one._replace(**repeated)
    rollouts = run(subject_engine, program, np.array([good, *map(start_vector, absurd)]), 30)
    np.testing.assert_array_equal(rollouts.diverged, [False, True, True])
    assert np.all(np.isfinite(rollouts.qpos[0]))
    assert np.all(np.isnan(rollouts.qpos[1:, -1]))
    blow = Push(0, np.array([1e15, 0.0, 0.0]), 0.05, 0.05)
    struck = run(subject_engine, still(character), good, 30, pushes=(blow,))
    assert struck.diverged[0]
    assert np.all(np.isfinite(struck.qpos[0, :7]))
    assert_same_bits(
        rollouts, run(subject_engine, program, good, 30), np.s_[:1], np.s_[:1]
    )  # and the engine still works
    assert list(tmp_path.iterdir()) == []
