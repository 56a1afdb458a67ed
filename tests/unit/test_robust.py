"""Robust fits: worlds are what they say, feedback of a chain is the optimal one, and what is chosen of it costs least."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_fit import needs_walk, tiny_capture, tiny_fit, tiny_setup
from tiny_video import new_folder, silhouettes_of, tiny_config, true_track, walk_clip

from mocap2ctrl.character.kinematics import lowest_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import run, start_vector
from mocap2ctrl.control.controller import Controller, Exit, compile_program
from mocap2ctrl.control.entry_feedback import ACTIONS, deviation_size, entered_at
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.fit.config import FitConfig
from mocap2ctrl.fit.incremental import Stage, window_cost, with_new_state
from mocap2ctrl.fit.methods import growth_of
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.regulator import DISCOUNT, Slopes, regulated, weights
from mocap2ctrl.fit.robust import EFFORTS, SCALES, WORLDS_SEED, hardened, regulators, standing
from mocap2ctrl.fit.run import fit_capture
from mocap2ctrl.fit.structure import Step
from mocap2ctrl.fit.video import video_capture
from mocap2ctrl.simulation.choose import available_engines
from mocap2ctrl.simulation.coordinates import coordinates
from mocap2ctrl.simulation.environment import GRAVITY_M_S2
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.simulation.worlds import CONTACTS, LEAN_DEGREES, SHOVE_S, World, drawn_worlds
from mocap2ctrl.types import SimState

TINY = {"seconds": 0.6, "generations": 1, "robust": True}
WORLDS = drawn_worlds(3, np.random.default_rng(1))


@pytest.mark.parametrize("name", available_engines())
def test_gravity_leans_and_keeps_its_size(character: Character, name: str) -> None:
    """In flight a body falls along it: no torque, no contact, whatever the engine."""
    engine = World("leaning", lean_degrees=(3.0, -2.0), strength=0.5).engine(name, character, 2.0)
    pose = character.zero_pose()
    aloft = replace(pose, root_position=pose.root_position + np.array([0.0, 0.0, 2.0]))
    engine.reset(SimState(aloft, np.zeros(3), np.zeros(3), np.zeros(len(character.hinges))))
    for _ in range(12):
        engine.step()
    fallen = engine.state().root_velocity / (12 * engine.time_step_s)
    assert np.linalg.norm(fallen) == pytest.approx(GRAVITY_M_S2, rel=2e-3)
    np.testing.assert_allclose(fallen[:2] / -fallen[2], np.tan(np.radians([3.0, -2.0])), rtol=2e-3)
    np.testing.assert_array_equal(engine.torque_bounds, character.torque_bounds)


@pytest.mark.parametrize("name", available_engines())
def test_who_stands_on_softer_contacts_sinks_deeper(character: Character, standing: SimState, name: str) -> None:
    """Feet are pressed into the ground by the weight; knees and hips are held."""
    depths = []
    for kind in CONTACTS:
        engine = World(kind, contacts=kind).engine(name, character, 1.0)
        engine.reset(standing)
        engine.set_servo(np.zeros(len(character.hinges)))
        lowest = []
        for _ in range(60):
            engine.step()
            lowest.append(lowest_points(character, *engine.segment_frames()).min())
        depths.append(-float(np.mean(lowest[30:])))
    usual, hard, soft = depths
    assert hard < 0.95 * usual < 0.9 * soft


def test_the_ground_s_grip_is_a_share_of_the_character_s(character: Character) -> None:
    engine = World("slippery", friction=0.5).engine("mujoco", character, 1.0)
    assert isinstance(engine, MujocoEngine)
    np.testing.assert_allclose(engine.model.pair_friction[:, 0], 0.5 * character.friction)


def test_shoves_come_from_all_sides_and_are_the_same_again(character: Character) -> None:
    world = World("shoved", shove_n=40.0, seed=3)
    forces = np.array([push.force for push in world.pushes(character)])
    np.testing.assert_allclose(np.linalg.norm(forces, axis=1), 40.0)
    np.testing.assert_array_equal(forces[:, 2], 0.0)
    assert np.all(forces[:, :2].min(axis=0) < -20.0)
    assert np.all(forces[:, :2].max(axis=0) > 20.0)
    np.testing.assert_array_equal(forces, [push.force for push in world.pushes(character)])
    assert not np.array_equal(forces, [push.force for push in replace(world, seed=4).pushes(character)])
    ends = [push.start_s + SHOVE_S for push in world.pushes(character)]
    assert all(end <= later.start_s for end, later in zip(ends, world.pushes(character)[1:], strict=False))
    assert World("calm").pushes(character) == ()


def test_a_chain_s_gains_are_those_of_the_shortest_way(character: Character, standing: SimState, state_of) -> None:
    """Two entries behind a deviation: the actions that least squares finds at once."""
    joints = len(character.hinges)
    size, effort = deviation_size(joints), 7.0
    rng = np.random.default_rng(2)
    a = [np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2)]
    b = [0.1 * rng.normal(size=(size, ACTIONS)) for _ in range(2)]
    entered = entered_at(*coordinates(standing), 0.0, np.zeros((ACTIONS, size)))
    states = [
        state_of(n, standing.pose.angles, Exit("time", 0.2, m) if m else Exit())
        for n, m in (("1", "2"), ("2", "3"), ("3", ""))
    ]
    chain = Controller(tuple(states), standing)
    found = regulated(chain, {i: Slopes(entered, a[i], b[i]) for i in (0, 1)}, effort, rounds=1)
    assert found.states[2].feedback is None
    off = rng.normal(size=size)
    root, later = np.sqrt(weights(joints))[:, None], np.sqrt(DISCOUNT)
    none = np.zeros((size, ACTIONS))
    rows = np.vstack(
        [
            later * np.hstack([root * b[0], none]),
            later**2 * np.hstack([root * (a[1] @ b[0]), root * b[1]]),
            np.sqrt(effort) * np.diag(np.repeat([1.0, later], ACTIONS)),
        ]
    )
    wanted = -np.concatenate(
        [later * root[:, 0] * (a[0] @ off), later**2 * root[:, 0] * (a[1] @ a[0] @ off), np.zeros(2 * ACTIONS)]
    )
    first, second = np.split(np.linalg.lstsq(rows, wanted, rcond=None)[0], 2)
    gains = [state.feedback.gain for state in found.states[:2]]
    np.testing.assert_allclose(gains[0] @ off, first, atol=2e-4)
    np.testing.assert_allclose(gains[1] @ (a[0] @ off + b[0] @ first), second, atol=2e-4)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Controller:
    """Three states of the walk as they are guessed."""
    growth = growth_of(tiny_capture(tmp_path_factory.mktemp("guess") / "walk", character), lambda generation: None)
    controller = Controller((growth.guess("1", 0.0, 0.2, None),), growth.start)
    steps = [Step(6), Step(12), Step(18)]
    for count in (2, 3):
        controller = with_new_state(controller, growth.guess, steps[:count], 30.0)
    return controller


def test_drawn_worlds_fill_their_ranges_and_are_the_same_again() -> None:
    worlds = drawn_worlds(200, np.random.default_rng(4))
    assert worlds == drawn_worlds(200, np.random.default_rng(4))
    leans = np.array([world.lean_degrees for world in worlds])
    assert np.all(np.abs(leans) <= LEAN_DEGREES)
    assert np.all(leans.max(axis=0) > 0.9 * LEAN_DEGREES)
    assert np.all(leans.min(axis=0) < -0.9 * LEAN_DEGREES)
    assert {world.contacts for world in worlds} == {"usual", "hard", "soft"}
    assert min(world.friction for world in worlds) < 0.75
    assert max(world.friction for world in worlds) > 1.25


@needs_walk
def test_feedback_changes_nothing_where_nothing_deviates(
    chain: Controller, engine: MujocoEngine, character: Character
) -> None:
    found = regulators(engine, chain)
    assert len(found) == len(SCALES) * len(EFFORTS)
    held = found[0]
    assert [state.feedback is None for state in held.states] == [True, False, True]

    def played(world: World) -> tuple[np.ndarray, np.ndarray]:
        there = world.engine("mujoco", character, 1.0)
        start = start_vector(chain.start)
        programs = [compile_program([c], character, there.time_step_s) for c in (chain, held)]
        one, other = (run(there, p, start, 72, pushes=world.pushes(character)).qpos for p in programs)
        return one, other

    np.testing.assert_allclose(*played(World("its own")), atol=1e-9)
    one, other = played(WORLDS[0])
    assert np.abs(one - other).max() > 1e-3
    assert regulators(engine, chain.with_states([replace(chain.states[0], exit=Exit())])) == []


@needs_walk
def test_worlds_share_their_weight(tmp_path: Path, chain: Controller, character: Character) -> None:
    with EvaluationPool(tiny_setup(tiny_capture(tmp_path / "walk", character)), 1) as pool:
        own = window_cost(pool.evaluator, chain, 12)
        alone = []
        for world in WORLDS[:2]:
            with pool.judging_in((world,), 1.0):
                alone.append(2.0 * window_cost(pool.evaluator, chain, 12) - own)
        with pool.judging_in(WORLDS[:2], 3.0):
            together = window_cost(pool.evaluator, chain, 12)
    assert len({own, *alone}) == 3
    assert together == pytest.approx((own + 3.0 * np.mean(alone)) / 4.0)


@needs_walk
def test_who_lies_does_not_stand(tmp_path: Path, chain: Controller, character: Character) -> None:
    limp = replace(tiny_setup(tiny_capture(tmp_path / "walk", character, seconds=1.0)), torque_scale=0.01)
    with EvaluationPool(limp, 1) as pool, pool.judging_in(WORLDS[:2], 1.0):
        assert standing(pool.evaluator, chain) == 0
    with EvaluationPool(tiny_setup(tiny_capture(tmp_path / "beginning", character, seconds=0.2)), 1) as pool:
        assert standing(pool.evaluator, chain) == 1


@pytest.fixture
def few_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three are enough for a test."""
    monkeypatch.setattr(sys.modules[hardened.__module__], "WORLDS", {"mujoco": 3})


@needs_walk
@pytest.mark.usefixtures("few_worlds")
def test_a_robust_fit_is_the_same_resumed_and_with_two_workers(tmp_path: Path, character: Character) -> None:
    alone = tiny_fit(tmp_path / "alone", character, **TINY)
    capture = tiny_capture(tmp_path / "shared", character, **TINY)
    shared = fit_capture(capture, 2, resume=False)
    journal = capture.folder / "checkpoint" / "journal.bin"
    data = journal.read_bytes()
    journal.write_bytes(data[:-200])
    resumed = fit_capture(capture, 1, resume=True)
    assert alone.evaluations == shared.evaluations == resumed.evaluations
    assert alone.told == shared.told == resumed.told
    controllers = [found.capture.finished_controller() for found in (alone, shared, resumed)]
    for states in zip(*(controller.states for controller in controllers), strict=True):
        for other in states[1:]:
            np.testing.assert_array_equal(states[0].target.angles, other.target.angles)
            assert (states[0].feedback is None) == (other.feedback is None)
            if states[0].feedback is not None:
                np.testing.assert_array_equal(states[0].feedback.gain, other.feedback.gain)


@needs_walk
@pytest.mark.usefixtures("few_worlds")
def test_a_robust_fit_is_the_plain_one_with_feedback_and_says_where_it_stands(
    tmp_path: Path, character: Character
) -> None:
    plain = tiny_fit(tmp_path / "plain", character, **{**TINY, "robust": False})
    robust = tiny_fit(tmp_path / "robust", character, **TINY)
    assert robust.cost == plain.cost
    states = zip(*(found.capture.finished_controller().states for found in (plain, robust)), strict=True)
    for bare, held in states:
        np.testing.assert_array_equal(bare.target.angles, held.target.angles)
    (told,) = robust.told
    assert told == "robust: stands in 4 of 4 worlds, its own among them, without feedback in 4"
    lines = [json.loads(line) for line in (robust.capture.folder / "log.jsonl").read_text().splitlines()]
    stages = [line for line in lines if line["event"] == "stage"]
    assert stages[-1]["stage"] == stages[0]["stages"]
    assert stages[-1]["told"] == told


@needs_walk
@pytest.mark.usefixtures("few_worlds")
def test_what_is_chosen_costs_least(tmp_path: Path, chain: Controller, character: Character) -> None:
    """Of all that each state could have been given; the chain as it was is among them."""
    capture = tiny_capture(tmp_path / "walk", character, seconds=0.6)
    labels: list[str] = []
    growth = growth_of(capture, lambda generation: labels.append(generation.label))
    with EvaluationPool(tiny_setup(capture), 1) as pool:
        *_, last = hardened(pool, [Stage(0, 1, 0.6, chain, 1.0, False)], growth)
        with pool.judging_in(drawn_worlds(3, np.random.default_rng(WORLDS_SEED)), 3.0):
            options = [chain, *regulators(pool.evaluator.engine, chain)]
            costs = [window_cost(pool.evaluator, option, 18) for option in options]
            found = window_cost(pool.evaluator, last.controller, 18)
    assert found <= min(costs) + 1e-9
    assert costs[0] > min(costs)
    assert labels == ["robust", "robust: state 2"]


@needs_walk
@pytest.mark.usefixtures("few_worlds")
def test_what_is_refined_and_robust_stays_a_chain(tmp_path: Path, character: Character) -> None:
    outcome = tiny_fit(tmp_path / "walk", character, **{**TINY, "seconds": 0.4, "refine": True, "sweeps": 0})
    _, cycle, robust = outcome.told
    assert cycle == "the cycle: left out, for what is to be robust is a chain"
    assert robust.startswith("robust: stands in ")


@needs_walk
@pytest.mark.usefixtures("few_worlds")
def test_a_video_s_controller_gets_its_feedback_by_silhouettes_too(tmp_path: Path, character: Character) -> None:
    clip = walk_clip(character, 0.6)
    seen = silhouettes_of(character, clip)
    track = true_track(character, clip)
    capture = video_capture(new_folder(tmp_path / "walk"), seen, track, tiny_config(generations=1, robust=True), {})
    outcome = fit_capture(capture, 1, resume=False)
    assert outcome.told == ("robust: stands in 4 of 4 worlds, its own among them, without feedback in 4",)
    assert [state.feedback is not None for state in outcome.capture.finished_controller().states][::2] == [False, False]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"robust": True, "method": "batch"}, "robust"),
        ({"robust": True, "method": "growth"}, "robust"),
        ({"robust": True, "refine": True, "cyclic": True}, "chains"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, object], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        FitConfig(**settings)  # type: ignore[arg-type]
