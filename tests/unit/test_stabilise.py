"""Cycles are stabilised: slopes foretell the simulation, gains solve the Riccati equation, and what would fall stands."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import run
from mocap2ctrl.control.controller import Controller, ControlState, Exit, TargetPose, compile_program
from mocap2ctrl.control.entry_feedback import ACTIONS, deviation_size, deviations, entered_at
from mocap2ctrl.fit import stabilise
from mocap2ctrl.fit.regulator import DISCOUNT, Slopes, kinds, mean_slopes, regulated, slopes, weights
from mocap2ctrl.fit.stabilise import entries, growing_pushes, stabilised, survival
from mocap2ctrl.simulation.coordinates import coordinates
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.types import SimState


def stander(character: Character, standing: SimState, ankle: float) -> Controller:
    """Two states that stand, over and over; with loose ankles it falls like an inverted pendulum."""
    alpha = np.full(len(character.groups), 0.1)
    alpha[list(character.groups).index("ankle")] = ankle
    target = TargetPose(np.zeros(3), standing.pose.angles)
    states = [
        ControlState(name, target, alpha, np.zeros(3), exit=Exit("time", 0.2, following))
        for name, following in (("1", "2"), ("2", "1"))
    ]
    return Controller(tuple(states), standing)


def test_slopes_foretell_how_the_next_state_is_entered(
    engine: MujocoEngine, character: Character, standing: SimState, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stabilise, "WATCH_S", 2.0)
    controller = stander(character, standing, 0.05)
    start = next(s for index, s in list(entries(engine, controller))[2:] if index == 0)
    found = slopes(engine, controller, 0, start)
    joints = len(character.hinges)
    none = np.zeros((ACTIONS, deviation_size(joints)))
    base = entered_at(*split(entered_next(engine, controller, start), joints), 0.0, none)

    def half_difference(ends: list[np.ndarray]) -> np.ndarray:
        off = [deviations(base, *(part[None] for part in split(end, joints)), 0.0)[0] for end in ends]
        return (off[0] - off[1]) / 2.0

    move = np.zeros(deviation_size(joints))
    move[4:6] = 0.01, -0.02  # the root's velocity
    both = []
    for sign in (1.0, -1.0):
        moved = start.copy()
        moved[7 + joints : 10 + joints] += sign * move[4:7]
        both.append(entered_next(engine, controller, moved))
    assert_foretold(half_difference(both), found.by_deviation @ move)

    gain = none.copy()
    gain[:, 0] = np.random.default_rng(1).normal(size=ACTIONS)
    both = []
    for sign in (1.0, -1.0):
        answer = replace(found.reference, height=found.reference.height - sign * 0.01, gain=gain)
        acting = controller.with_states([replace(controller.states[0], feedback=answer), controller.states[1]])
        both.append(entered_next(engine, acting, start))
    assert_foretold(half_difference(both), found.by_action @ (0.01 * gain[:, 0]))


def entered_next(engine: MujocoEngine, controller: Controller, start: np.ndarray) -> np.ndarray:
    program = compile_program([controller], engine.character, TIME_STEP_S)
    return run(engine, program, start, 10_000, stride=10_001, stop_at_state=1).final[0]


def assert_foretold(got: np.ndarray, foretold: np.ndarray) -> None:
    """In direction, and roughly in size; contacts bend the rest."""
    sizes = np.linalg.norm(got), np.linalg.norm(foretold)
    assert got @ foretold > 0.85 * sizes[0] * sizes[1]
    assert 0.6 < sizes[0] / sizes[1] < 1.6


def split(start: np.ndarray, joints: int) -> tuple[np.ndarray, np.ndarray]:
    return start[: 7 + joints], start[7 + joints : 13 + 2 * joints]


def test_gains_solve_the_riccati_equation(character: Character, standing: SimState):
    joints = len(character.hinges)
    rng, size = np.random.default_rng(2), deviation_size(joints)
    a, b = 1.1 * np.linalg.qr(rng.normal(size=(size, size)))[0], rng.normal(size=(size, ACTIONS))
    a[ACTIONS:] *= 0.5  # so that what actions reach in one step is what grows
    reference = entered_at(*coordinates(standing), 0.0, np.zeros((ACTIONS, size)))
    controller = stander(character, standing, 0.1)
    one = controller.with_states([replace(controller.states[0], exit=Exit("time", 0.2, "1"))])
    effort, root = 7.0, np.sqrt(DISCOUNT)
    found = regulated(one, {0: Slopes(reference, a, b)}, effort).states[0].feedback
    assert found is not None
    cost = np.diag(weights(joints))
    p = solve_discrete_are(root * a, root * b, cost, effort * np.eye(ACTIONS))
    expected = -np.linalg.solve(effort * np.eye(ACTIONS) + DISCOUNT * b.T @ p @ b, DISCOUNT * b.T @ p @ a)
    np.testing.assert_allclose(found.gain, expected, atol=1e-3 * np.abs(expected).max())


def test_a_fall_is_turned_into_standing(
    engine: MujocoEngine, character: Character, standing: SimState, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stabilise, "WATCH_S", 8.0)
    monkeypatch.setattr(stabilise, "LONG_S", 12.0)
    monkeypatch.setattr(stabilise, "ENTRIES", (3,))
    monkeypatch.setattr(stabilise, "EFFORTS", (3.0,))
    loose = stander(character, standing, 0.001)
    held, upright_s = stabilised(engine, loose)
    before, after = survival(engine, [loose, held], [(), ()], 12.0)
    assert before < 7.0
    assert after == upright_s == 12.0
    assert all(state.feedback is not None for state in held.states)


def test_what_stands_best_without_feedback_stays_without(
    engine: MujocoEngine, character: Character, standing: SimState, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stabilise, "WATCH_S", 4.0)
    monkeypatch.setattr(stabilise, "LONG_S", 4.0)
    firm = stander(character, standing, 0.1)
    chain = firm.with_states([firm.states[0], replace(firm.states[1], exit=Exit())])
    assert stabilised(engine, chain)[0] is chain  # no cycle, nothing that comes again
    monkeypatch.setattr(stabilise, "entries", lambda *_: iter(()))
    assert stabilised(engine, firm) == (firm, 4.0)


def test_feedback_may_begin_with_the_second_time_round(
    engine: MujocoEngine, character: Character, standing: SimState, monkeypatch: pytest.MonkeyPatch
):
    """The way in is the cycle's own first time round, and its slopes are those of later times."""
    monkeypatch.setattr(stabilise, "WATCH_S", 4.0)
    monkeypatch.setattr(stabilise, "ENTRIES", (1, 2))
    monkeypatch.setattr(stabilise, "EFFORTS", (3.0,))
    tried: list[list[Controller]] = []

    def longest(_: MujocoEngine, candidates: list[Controller]) -> tuple[Controller, float]:
        tried.append(candidates)
        return candidates[-1], float(len(tried))

    monkeypatch.setattr(stabilise, "_longest", longest)
    monkeypatch.setattr(stabilise, "_searched", lambda *_: (firm, 0.0))
    loose, firm = (stander(character, standing, ankle) for ankle in (0.001, 0.1))
    held, upright_s = stabilised(engine, loose)
    assert upright_s == 2.0
    (plain, *regulators), entering = tried
    assert plain is loose
    assert [len(c.states) for c in regulators] == [2, 2]
    assert held is entering[-1]
    assert [state.feedback is None for state in held.states] == [True, True, False, False]
    second = list(entries(engine, loose))[2][1]
    feedback = held.states[2].feedback
    assert feedback is not None
    assert feedback.height == pytest.approx(second[2])
    np.testing.assert_allclose(feedback.angles, second[7 : 7 + len(character.hinges)], atol=1e-9)


def test_costs_are_searched_for_what_stands_longest(
    engine: MujocoEngine, character: Character, standing: SimState, monkeypatch: pytest.MonkeyPatch
):
    """Of usual costs a multiple, by kind; the search knows no better than how long each stands, and is the same each time."""
    joints = len(character.hinges)
    assert [int(n) for n in np.bincount(kinds(joints))] == [1, 2, 1, 3, 3, joints, joints]
    loose = stander(character, standing, 0.001)
    found = {
        index: slopes(engine, loose, index, start) for index, start in itertools.islice(entries(engine, loose), 4, 6)
    }
    usual = stabilise._by_costs(loose, found, np.zeros(8))
    same = regulated(loose, found, stabilise.USUAL_EFFORT, stabilise.SETTLED)
    dear = regulated(loose, found, 100.0 * stabilise.USUAL_EFFORT, stabilise.SETTLED)
    gains = [c.states[0].feedback.gain for c in (usual, same, dear)]
    np.testing.assert_array_equal(gains[0], gains[1])
    assert np.linalg.norm(gains[2]) < np.linalg.norm(gains[1])

    monkeypatch.setattr(stabilise, "WATCH_S", 6.0)
    monkeypatch.setattr(stabilise, "LONG_S", 9.0)
    for name, few in (("DRAWS", 6), ("REFINED", 1), ("GENERATIONS", 2), ("POPULATION", 4)):
        monkeypatch.setattr(stabilise, name, few)
    told: list[int] = []
    held, upright_s = stabilise._searched(engine, loose, [found], lambda: told.append(1))
    before, after = survival(engine, [loose, held], [(), ()], 9.0)
    assert before < after == upright_s
    assert len(told) in (1, 2)  # it ends early with one that stands for long
    again, _ = stabilise._searched(engine, loose, [found], lambda: None)
    np.testing.assert_array_equal(again.states[0].feedback.gain, held.states[0].feedback.gain)


def test_pushes_end_what_stands(
    engine: MujocoEngine, character: Character, standing: SimState, monkeypatch: pytest.MonkeyPatch
):
    firm = stander(character, standing, 0.1)
    sequences = growing_pushes(character.segment_index("chest"))
    hard = [[replace(push, force=40.0 * push.force) for push in pushes] for pushes in sequences]
    assert survival(engine, [firm], [()], 6.0)[0] == 6.0
    pushed = survival(engine, [firm] * len(hard), hard, 6.0)
    assert np.all(pushed < 6.0)
    assert np.all(pushed > 2.0)  # when the first push begins


def test_the_mean_of_entries_is_in_the_middle(character: Character, standing: SimState):
    joints = len(character.hinges)
    size = deviation_size(joints)
    qpos, qvel = coordinates(standing)
    two = [
        Slopes(
            entered_at(qpos + k, qvel + k, 0.0, np.zeros((ACTIONS, size))),
            np.full((size, size), k),
            np.zeros((size, ACTIONS)),
        )
        for k in (0.0, 0.02)
    ]
    middle = mean_slopes(two)
    assert middle.reference.height == pytest.approx(qpos[2] + 0.01)
    np.testing.assert_allclose(middle.reference.velocities, qvel + 0.01)
    np.testing.assert_allclose(middle.by_deviation, 0.01)
