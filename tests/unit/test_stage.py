"""Several characters in one model: one alone is the usual simulation; together they collide, and each is itself."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.simulation.mujoco_stage import Stage
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.types import Array, SimState

STEPS = 120


@pytest.fixture(scope="module")
def start(character: Character) -> Array:
    """Standing, as a snapshot."""
    hinges = len(character.hinges)
    state = SimState(character.zero_pose(), np.zeros(3), np.zeros(3), np.zeros(hinges))
    with PdRollouts(character) as rollouts:
        return rollouts.snapshot(state)


def moved(start: Array, x: float, velocity: float = 0.0, joints: int = 35) -> Array:
    snapshot = start.copy()
    snapshot[1] += x
    snapshot[8 + joints] = velocity
    return snapshot


def targets(character: Character) -> Array:
    rng = np.random.default_rng(0)
    return rng.normal(0.0, 0.3, (STEPS, len(character.hinges)))


@pytest.mark.parametrize("gains", ["locomotion", "stunts"])
def test_one_alone_is_the_usual_simulation_bit_for_bit(character: Character, start: Array, gains: str) -> None:
    held, servo = targets(character), pd_gains(character, gains)
    with PdRollouts(character, servo, torque_scale=0.5) as rollouts:
        usual = rollouts.run(start, held[None])
    stage = Stage(character, 1, servo, torque_scale=0.5)
    stage.place(start[None])
    assert all([stage.step(row[None]) for row in held])
    np.testing.assert_array_equal(stage.snapshots(), usual.final)


def test_far_apart_each_is_itself(character: Character, start: Array) -> None:
    """All alike, at other places and with other targets: to solver tolerance what each does alone."""
    held = targets(character)
    both = np.stack([held, held[::-1]], axis=1)
    stage = Stage(character, 2)
    stage.place([start, moved(start, 50.0, joints=len(character.hinges))])
    alone = [Stage(character), Stage(character)]
    for one in alone:
        one.place(start[None])
    for row in both[:40]:
        stage.step(row)
        for number, one in enumerate(alone):
            one.step(row[number : number + 1])
        assert stage.collisions() == ()
    together, apart = stage.snapshots(), np.concatenate([one.snapshots() for one in alone])
    together[1, 1] -= 50.0
    np.testing.assert_allclose(together, apart, atol=1e-4)


def test_two_who_run_into_each_other_keep_their_momentum_and_do_not_pass(character: Character, start: Array) -> None:
    """In free fall high above the ground, so that nothing else pushes: equal masses at +2 and -2 m/s."""
    joints = len(character.hinges)
    high = start.copy()
    high[3] += 30.0
    stage = Stage(character, 3)
    stage.place([moved(high, -0.6, 2.0, joints), moved(high, 0.6, -2.0, joints), moved(high, 20.0, 0.0, joints)])
    touched = set()
    for _ in range(STEPS):
        assert stage.step(np.zeros((3, joints)))
        touched |= set(stage.collisions())
    assert touched == {(0, 1)}
    ends = stage.snapshots()
    assert ends[0, 1] < ends[1, 1] - 0.05  # still on their own sides
    assert ends[0, 8 + joints] < 1.0  # and slowed down
    still = Stage(character, 3)
    still.place([moved(high, -0.6, 2.0, joints), moved(high, 5.0, -2.0, joints), moved(high, 20.0, 0.0, joints)])
    for _ in range(STEPS):
        still.step(np.zeros((3, joints)))
    assert still.collisions() == ()
    assert still.snapshots()[0, 1] > 0.0  # without the other it would have passed


def test_a_push_moves_the_one_who_is_pushed(character: Character, start: Array) -> None:
    """In the air: impulse over mass."""
    joints = len(character.hinges)
    high = start.copy()
    high[3] += 30.0
    stage = Stage(character, 2)
    stage.place([moved(high, 0.0, 0.0, joints), moved(high, 5.0, 0.0, joints)])
    stage.push(1, 0, [0.0, 150.0, 0.0])
    for _ in range(20):
        stage.step(np.zeros((2, joints)))
    stage.push(1, 0, [0.0, 0.0, 0.0])
    for _ in range(60):
        stage.step(np.zeros((2, joints)))
    moved_m = stage.snapshots()[:, 2]
    assert moved_m[0] == pytest.approx(0.0, abs=1e-9)
    assert moved_m[1] == pytest.approx(150.0 * 0.1 / character.mass_kg * (0.05 + 0.3), rel=0.1)


def test_how_many_there_can_be(character: Character) -> None:
    for count in (0, 17):
        with pytest.raises(EngineError, match="allowed are 1 to 16"):
            Stage(character, count)
