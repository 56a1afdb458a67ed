"""The stage of one character in any engine: MuJoCo's own is the measure, and Bullet's keeps to it for a while."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.samcon.body import body_of, see
from mocap2ctrl.samcon.features import snapshot_coordinates
from mocap2ctrl.simulation.choose import has_bullet
from mocap2ctrl.simulation.coordinates import coordinates
from mocap2ctrl.simulation.engine_stage import AnyStage, EngineStage, make_stage
from mocap2ctrl.simulation.environment import Environment, Softness, Sway
from mocap2ctrl.simulation.pd_gains import PdGains, pd_gains
from mocap2ctrl.types import Array, SimState

needs_bullet = pytest.mark.skipif(not has_bullet(), reason="pybullet is not installed")


@pytest.fixture(scope="module")
def servo(character: Character) -> PdGains:
    return pd_gains(character, "locomotion")


@pytest.fixture(scope="module")
def start(character: Character) -> Array:
    """Standing, moving forwards, as a snapshot at time 0."""
    state = SimState(character.zero_pose(), np.array([0.4, 0.0, 0.0]), np.zeros(3), np.zeros(len(character.hinges)))
    return np.concatenate([[0.0], *coordinates(state)])


def after(stage: AnyStage, start: Array, steps: int, force: tuple[float, float, float] | None = None) -> Array:
    """Its snapshot after some steps towards bent knees, pushed on the chest all along."""
    joints = (len(start) - 14) // 2
    held = 0.1 * np.sin(np.arange(joints))
    stage.place(start[None])
    if force is not None:
        stage.push(0, 2, force)
    assert all([stage.step(held[None]) for _ in range(steps)])
    return stage.snapshots()[0]


@pytest.mark.parametrize("name", ["mujoco", pytest.param("bullet", marks=needs_bullet)])
@pytest.mark.parametrize("force", [None, (60.0, -40.0, 0.0)])
def test_it_does_what_the_stage_of_many_does(
    name: str, force: tuple[float, float, float] | None, character: Character, servo: PdGains, start: Array
) -> None:
    here = EngineStage(name, character, servo, torque_scale=0.7)
    many = make_stage("mujoco", character, 1, servo, torque_scale=0.7)
    one, other = after(here, start, 20, force), after(many, start, 20, force)
    assert one[0] == pytest.approx(0.1)
    np.testing.assert_allclose(one[:8], other[:8], atol=1e-6 if name == "mujoco" else 1.2e-2)
    unpushed = after(here, start, 20)
    assert (np.abs(unpushed - one).max() > 0.1) == (force is not None)


@needs_bullet
def test_placed_again_it_does_the_same_again(character: Character, servo: PdGains, start: Array) -> None:
    stage = make_stage("bullet", character, 1, servo)
    first = after(stage, start, 30)
    np.testing.assert_array_equal(after(stage, start, 30), first)
    assert stage.collisions() == ()


@needs_bullet
@pytest.mark.parametrize("sway", [None, Sway((0.1, 0.0, 0.0), 0.4)])
def test_environments(sway: Sway | None, character: Character, servo: PdGains, start: Array) -> None:
    """Free fall under another gravity, seen from a ground that may move to and fro below it."""
    high = start.copy()
    high[3] += 2.0
    moon = Environment("moon", gravity_m_s2=1.6, sway=sway)
    level = after(make_stage("bullet", character, 1, servo, environment=moon), high, 40)
    steps, step_s = 40, 0.005
    before, now = (
        see(body_of(character), *snapshot_coordinates(s[None], len(character.hinges))).com[0] for s in (high, level)
    )
    moved = 0.0 if sway is None else 0.05 * (1.0 - np.cos(2.0 * np.pi * 0.2 / 0.4))
    expected = [0.4 * 0.2 - moved, 0.0, -1.6 * step_s**2 * steps * (steps + 1) / 2.0]
    np.testing.assert_allclose(now - before, expected, atol=2e-3)


@needs_bullet
def test_what_it_refuses(character: Character, servo: PdGains) -> None:
    with pytest.raises(EngineError, match="one character at a time; there are 3"):
        make_stage("bullet", character, 3, servo)
    with pytest.raises(EngineError, match="soft ground"):
        make_stage("bullet", character, 1, servo, environment=Environment("bed", softness=Softness(2e4, 500.0)))


def test_an_engine_that_is_none(character: Character, servo: PdGains) -> None:
    with pytest.raises(EngineError, match="'ode' is not available"):
        make_stage("ode", character, 1, servo)
