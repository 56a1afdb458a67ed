"""The push protocol: pushes that recur, whom they reach, and the search for the largest one survived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import centre_of_mass
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import run, single_state_program, start_vector
from mocap2ctrl.control.controller import Controller, ControlState, Exit, compile_program
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.evaluation import push_test as tested
from mocap2ctrl.evaluation.falls import FallRule, fall_rule
from mocap2ctrl.evaluation.push_test import cycle_start, push_test
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.simulation.pushes import Push, force_from, push_table
from mocap2ctrl.types import Array, MotionClip, Pose, SimState


@dataclass(frozen=True, eq=False)
class Standing:
    """As much of a capture as the test asks for."""

    character: Character
    controller: Controller
    reference: MotionClip
    torque_scale: float = 1.0
    engine_name: str = "mujoco"

    def finished_controller(self) -> Controller:
        return self.controller


@pytest.fixture
def stander(character: Character, standing: SimState, state_of: Callable[..., ControlState]) -> Standing:
    """Stands, in a cycle of two states of half a second together."""
    upright = np.zeros(len(character.hinges))
    states = (
        state_of("one", upright, Exit("time", 0.25, "two")),
        state_of("two", upright, Exit("time", 0.25, "one")),
    )
    pose = standing.pose
    clip = MotionClip("stand", 30.0, [pose.root_position] * 30, [pose.root_orientation] * 30, [pose.angles] * 30)
    return Standing(character, Controller(states, standing), clip)


def test_a_push_that_recurs_gives_its_impulse_each_time(engine: MujocoEngine, character: Character):
    high = SimState(Pose([0, 0, 100.0], [1, 0, 0, 0], np.zeros(35)), np.zeros(3), np.zeros(3), np.zeros(35))
    still = single_state_program([1, 0, 0, 0], np.zeros(35), 0.1)
    push = Push(2, np.array([60.0, 0.0, 0.0]), 0.1, 0.2, 0.5)
    np.testing.assert_allclose(push.starts_before(1.2), [0.1, 0.6, 1.1])
    rollouts = run(engine, still, start_vector(high), 144, pushes=(push,))
    x = centre_of_mass(character, rollouts.positions[0], rollouts.orientations[0])[:, 0]
    speed = np.diff(x) / TIME_STEP_S
    one = 60.0 * 0.2 / character.mass_kg
    np.testing.assert_allclose(speed[[10, 40, 70, 100, 130]], np.array([0, 1, 1, 2, 2]) * one, rtol=0.02, atol=1e-9)


def test_each_machine_of_a_population_has_its_own_pushes(engine: MujocoEngine, stander: Standing):
    program = compile_program([stander.controller] * 3, stander.character, TIME_STEP_S)
    start = start_vector(stander.controller.start)
    own = [(Push(2, np.array([f, 0.0, 0.0]), 0.1, 0.2),) for f in (30.0, 60.0)]
    together = run(engine, program, start, 60, own_pushes=[*own, ()])
    alone = compile_program([stander.controller], stander.character, TIME_STEP_S)
    for p, pushes in enumerate([*own, ()]):
        np.testing.assert_array_equal(together.qpos[p], run(engine, alone, start, 60, pushes=pushes).qpos[0])
    assert not np.array_equal(together.qpos[0], together.qpos[1])


def test_the_table_of_pushes(character: Character):
    table = push_table((Push(3, np.ones(3), 0.1, 0.2),), [(), (Push(1, np.zeros(3), 1.0, 0.4, 4.0),)], 2, 0.01)
    assert table.shape == (2, 2, 7)
    np.testing.assert_array_equal(table[0, 0, [0, 1, 3, 4]], [10, 20, 3, 1])
    assert table[0, 1, 1] == 0  # lasts no step
    np.testing.assert_array_equal(table[1, 1], [100, 40, 400, 1, 0, 0, 0])


@pytest.mark.parametrize(
    ("side", "expected"), [("front", [0, -9, 0]), ("rear", [0, 9, 0]), ("left", [9, 0, 0]), ("right", [-9, 0, 0])]
)
def test_sides_are_those_of_a_body_that_faces_left(side: str, expected: list[float]):
    np.testing.assert_allclose(force_from(side, 9.0, np.pi / 2), expected, atol=1e-12)


def test_a_cycle_is_found_in_the_exits(stepping: Controller, state_of: Callable[..., ControlState]):
    assert cycle_start(stepping) == 0
    pose = np.zeros(35)
    into = Controller(
        (
            state_of("a", pose, Exit("time", 0.1, "b")),
            state_of("b", pose, Exit("left", 0.1, "c")),
            state_of("c", pose, Exit("time", 0.1, "b")),
        ),
        stepping.start,
    )
    assert cycle_start(into) == 1
    assert cycle_start(into.with_states((*into.states[:2], replace(into.states[2], exit=Exit())))) is None


def test_the_protocol_over_a_cycle(stander: Standing, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tested, "SECONDS", 6.5)  # the paper's are 40
    told: list[float] = []
    result = push_test(_capture(stander), max_force_n=60.0, on_progress=lambda share, what: told.append(share))
    assert result.cyclic
    assert result.undisturbed_s == result.seconds == 6.5
    assert result.cycle_s == pytest.approx(0.5)
    assert "0.4 s on the chest every 4 s for 6.5 s, at 3 phases of the cycle, steps of 10 N" in result.protocol
    sides = {side: getattr(result, f"{side}_n") for side in ("front", "rear", "left", "right")}
    assert all(0.0 < n < 60.0 for n in sides.values()), sides
    for side, least in sides.items():
        assert least == min(result.by_phase_n[side])
    assert sides["left"] == pytest.approx(sides["right"], abs=10.0)  # the body is its own mirror image
    assert told == sorted(told)
    assert push_test(_capture(stander), max_force_n=60.0, workers=2) == result
    longer = push_test(_capture(stander), max_force_n=10.0, watch_s=7.0)
    assert (longer.undisturbed_s, longer.seconds) == (7.0, 6.5)


def test_the_largest_push_is_the_last_survived_in_a_row(stander: Standing, monkeypatch: pytest.MonkeyPatch):
    """What a search of its own finds, one force after the other, each in a simulation of its own."""
    monkeypatch.setattr(tested, "SECONDS", 6.5)
    result = push_test(_capture(stander), step_n=15.0, max_force_n=45.0)
    engine, rule = MujocoEngine(stander.character), fall_rule(_capture(stander))
    program = compile_program([stander.controller], stander.character, TIME_STEP_S)
    for phase in range(3):
        best = 0.0
        for newtons in (15.0, 30.0, 45.0):
            start = 4.0 + 0.5 * phase / 3
            push = Push(2, force_from("rear", newtons, 0.0), start, 0.4, 4.0)
            rollouts = run(engine, program, start_vector(stander.controller.start), 780, stride=4, pushes=(push,))
            if np.isfinite(rule.first_falls(engine, rollouts, 4 * TIME_STEP_S)[0][0]):
                break
            best = newtons
        assert result.by_phase_n["rear"][phase] == best


def test_a_chain_gets_a_single_push_within_its_clip(stander: Standing):
    states = stander.controller.states
    chain = stander.controller.with_states((states[0], replace(states[1], exit=Exit())))
    clip = replace(stander.reference, ends_standing=True)
    result = push_test(_capture(replace(stander, controller=chain, reference=clip)), max_force_n=30.0)
    assert not result.cyclic
    assert result.protocol.startswith("one push of 0.4 s on the chest at 0.00, 0.19, 0.38 s, survived until 1.97 s")
    assert result.cycle_s is None
    assert result.rear_n == 30.0
    short = replace(
        clip, root_position=clip.root_position[:6], root_orientation=clip.root_orientation[:6], angles=clip.angles[:6]
    )
    with pytest.raises(ConfigError, match=r"the clip's 0.17 s are less than a push of 0.4 s"):
        push_test(_capture(replace(stander, controller=chain, reference=short)))


def test_a_cycle_that_falls_by_itself_is_pushed_within_its_clip_only(stander: Standing, stepping: Controller):
    result = push_test(_capture(replace(stander, controller=stepping)), max_force_n=60.0)
    assert not result.cyclic
    assert 0.5 < result.undisturbed_s < 40.0
    assert result.seconds < result.undisturbed_s
    assert result.protocol.startswith("one push of 0.4 s on the chest")
    assert result.left_n is not None


def test_who_falls_by_himself_within_the_clip_is_not_pushed(stander: Standing, stepping: Controller):
    fallen = push_test(_capture(replace(stander, controller=stepping)), max_force_n=10.0, step_n=10.0)
    clip = stander.reference
    longer = np.arange(round((fallen.undisturbed_s + 1.0) * clip.fps)) % len(clip)
    reference = replace(
        clip,
        root_position=clip.root_position[longer],
        root_orientation=clip.root_orientation[longer],
        angles=clip.angles[longer],
    )
    result = push_test(_capture(replace(stander, controller=stepping, reference=reference)))
    assert (result.front_n, result.rear_n, result.left_n, result.right_n) == (None,) * 4
    assert result.simulations == 1
    with pytest.raises(ConfigError, match="the step is 20 N and the largest force 10 N"):
        push_test(_capture(stander), step_n=20.0, max_force_n=10.0)


def test_a_fall_is_low_for_a_while_or_a_touch(engine: MujocoEngine, stander: Standing):
    rule = fall_rule(_capture(stander))
    assert rule.low_m == pytest.approx(0.6 * stander.character.standing_height_m)
    program = compile_program([stander.controller], stander.character, TIME_STEP_S)
    rollouts = run(engine, program, start_vector(stander.controller.start), 120, stride=4)

    def lowered(frames: slice) -> float:
        qpos = rollouts.qpos.copy()
        qpos[0, frames, 2] = 0.3
        return float(rule.first_falls(engine, replace(rollouts, qpos=qpos), 1 / 30)[0][0])

    assert lowered(slice(3, 11)) == np.inf
    assert lowered(slice(3, 12)) == pytest.approx(11 / 30)
    halves = [replace(rollouts, qpos=q, first_frame=f) for q, f in _split(rollouts.qpos, 10)]
    for half in halves:
        half.qpos[..., 2] = 0.3
    cut = replace(halves[0], positions=rollouts.positions[:, :5], orientations=rollouts.orientations[:, :5])
    cut = replace(cut, qpos=cut.qpos[:, :5])
    none, low = rule.first_falls(engine, cut, 1 / 30)
    assert none[0] == np.inf
    later = replace(
        halves[1], first_frame=4, positions=rollouts.positions[:, 10:], orientations=rollouts.orientations[:, 10:]
    )
    assert rule.first_falls(engine, later, 1 / 30, low)[0][0] == pytest.approx(8 / 30)  # low from 0 to 8; 4 is in both
    every = FallRule(np.arange(len(stander.character.segments)), 0.0)
    assert every.first_falls(engine, rollouts, 1 / 30)[0][0] == 0.0  # feet touch


def _split(qpos: Array, at: int) -> list[tuple[Array, int]]:
    return [(qpos[:, :at].copy(), 0), (qpos[:, at:].copy(), at)]


def _capture(stander: Standing) -> Any:
    return stander
