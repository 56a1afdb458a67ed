"""Environments: files and names, loads as rigid bodies, the ground's shape, soft ground, and level ground unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, EngineError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.choose import has_bullet, make_engine
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.simulation.environment import (
    LEVEL,
    Belt,
    Curb,
    Environment,
    Load,
    Slope,
    Softness,
    Stairs,
    laden,
)
from mocap2ctrl.simulation.environment_file import environment_names, load_environment
from mocap2ctrl.simulation.mjcf import build_mjcf
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.simulation.terrain import ground_height, lowest_clearances, surfaces
from mocap2ctrl.types import SimState

SLANTED = Load("chest", 9.0, (0.1, 0.0, 0.05), (0.3, 0.2, 0.4), 0.06)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "place.toml"
    path.write_text(text)
    return path


def test_every_shipped_environment_loads_and_an_engine_takes_it(character: Character):
    assert {"slope-up", "slope-down", "stairs", "skis", "mass-in-hand", "trampoline", "moving-belt"} <= set(
        environment_names()
    )
    for name in environment_names():
        environment = load_environment(name)
        assert environment.name == name
        assert environment != Environment(name=name)
        MujocoEngine(character, environment=environment).step()


def test_a_file_says_all(tmp_path: Path):
    text = """
    format = 1
    name = "hall"
    about = "what it is"
    gravity_m_s2 = 5
    friction = 0.4
    [belt]
    velocity_m_s = [1, -0.5]
    start_m = 2
    length_m = 3
    [sway]
    travel_m = [0, 0.1, 0]
    period_s = 2
    [soft]
    stiffness_n_m = 4000
    damping_n_s_m = 10
    [[load]]
    segment = "head"
    mass_kg = 2
    """
    place = load_environment(written(tmp_path, text))
    assert (place.name, place.gravity_m_s2, place.friction) == ("hall", 5.0, 0.4)
    assert place.belt == Belt((1.0, -0.5), 2.0, 3.0)
    assert place.softness == Softness(4000.0, 10.0)
    assert place.loads == (Load("head", 2.0, (0, 0, 0), (0, 0, 0), 0.05),)
    assert place.sway is not None
    assert place.sway.travel_m == (0.0, 0.1, 0.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[slope]\ndegrees = 5", "format = 1"),
        ("format = 1\n[slope]\ndegrees = 80", "slope.degrees is 80; allowed is a number from -45 to 45"),
        ("format = 1\n[slope]\ndegrees = true", "slope.degrees is True"),
        ("format = 1\n[slope]", "[slope] needs the key 'degrees'"),
        ("format = 1\nslope = 5", "slope is 5; allowed is a table, [slope]"),
        ("format = 1\n[slope]\ndegrees = 5\nsteep = 1", "unknown key 'steep' in [slope]; known are degrees"),
        ("format = 1\nfrction = 0.1", "unknown key 'frction'; known are"),
        ("format = 1\nfriction = 0.1\nfriction_divisor = 3", "friction and friction_divisor"),
        ("format = 1\n[stairs]\nheight_m = 0.1\ndepth_m = 0.3\ncount = 2.5", "count is 2.5; allowed is a whole"),
        ("format = 1\n[belt]\nvelocity_m_s = 1", "belt.velocity_m_s is 1; allowed is 2 numbers"),
        ("format = 1\n[belt]\nvelocity_m_s = [1, nan]", "allowed is 2 numbers"),
        ("format = 1\n[load]\nmass_kg = 1", "load is {'mass_kg': 1}; allowed is tables, [[load]]"),
        ("format = 1\n[[load]]\nsegment = 3\nmass_kg = 1", "load.segment is 3; allowed is text"),
        (
            "format = 1\n[slope]\ndegrees = 5\n[[curb]]\nstart_m = 1\nheight_m = 0.1\nlength_m = 1",
            "slope and curbs; a ground is one of them",
        ),
        ("format = 1\n[", "not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, says: str):
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load_environment(path)
    assert says in str(error.value)
    assert str(path) in str(error.value) or "environment 'place'" in str(error.value)


def test_a_name_that_is_not_there_tells_those_that_are(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no such file, and none of that name; give a TOML file, or one of .*skis"):
        load_environment("lava")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_environment(tmp_path / "bytes.toml")


def test_level_ground_is_what_it_was(character: Character):
    text = build_mjcf(character, TIME_STEP_S)
    assert text == build_mjcf(character, TIME_STEP_S, environment=Environment(name="another name"))
    assert 'name="ground" type="plane" size="0 0 1" contype="0" conaffinity="0" condim="3"' in text
    assert "gravity" not in text
    assert "elliptic" not in text


def test_a_load_makes_one_rigid_body_of_both(character: Character):
    index = character.segment_index("chest")
    bare, both = character.segments[index], laden(character, (SLANTED,)).segments[index]
    rng = np.random.default_rng(5)
    axis = np.subtract(SLANTED.to_m, SLANTED.from_m)
    box = rng.uniform(-1, 1, (400_000, 3)) * (0.5 * np.linalg.norm(axis) + SLANTED.radius_m)
    unit = axis / np.linalg.norm(axis)
    along = np.clip(box @ unit, -0.5 * np.linalg.norm(axis), 0.5 * np.linalg.norm(axis))
    inside = box[np.linalg.norm(box - along[:, None] * unit, axis=1) < SLANTED.radius_m]
    points = inside + 0.5 * np.add(SLANTED.from_m, SLANTED.to_m)
    com = (bare.mass * bare.com + SLANTED.mass_kg * points.mean(axis=0)) / (bare.mass + SLANTED.mass_kg)
    np.testing.assert_allclose(both.com, com, atol=1e-3)

    def tensor(at: np.ndarray) -> np.ndarray:
        return np.sum(at**2, axis=-1)[..., None, None] * np.eye(3) - at[..., :, None] * at[..., None, :]

    total = np.diag(bare.inertia) + bare.mass * tensor(bare.com - com)
    total += SLANTED.mass_kg * tensor(points - com).mean(axis=0)
    np.testing.assert_allclose(both.inertia_tensor, total, rtol=0.03, atol=1e-3)
    assert both.mass == bare.mass + 9.0
    assert laden(character, ()) is character


def test_mujoco_has_the_load_and_its_products_of_inertia(character: Character):
    engine = MujocoEngine(character, environment=Environment(loads=(SLANTED,)))
    body = character.segment_index("chest") + 1
    axes = rotations.to_matrix(engine.model.body_iquat[body])
    tensor = axes @ np.diag(engine.model.body_inertia[body]) @ axes.T
    wanted = laden(character, (SLANTED,)).segments[body - 1].inertia_tensor
    assert abs(wanted[0, 1]) > 0.01
    np.testing.assert_allclose(tensor, wanted, atol=1e-9)
    np.testing.assert_array_equal(engine.torque_bounds, character.torque_bounds)


def test_a_load_on_nothing_is_refused(character: Character):
    with pytest.raises(ConfigError, match="segment 'tail', which the character does not have; choose one of pelvis"):
        MujocoEngine(character, environment=Environment(loads=(Load("tail", 1.0, (0, 0, 0), (0, 0, 0), 0.1),)))


def test_a_load_on_nothing_names_its_file(character: Character, tmp_path: Path):
    path = written(tmp_path, 'format = 1\n[[load]]\nsegment = "tail"\nmass_kg = 2')
    with pytest.raises(ConfigError, match=f"^{re.escape(str(path))}: a load is on segment 'tail'"):
        MujocoEngine(character, environment=load_environment(path))


def test_environments_from_arrays_and_lists_are_values(character: Character):
    load = Load("head", 1.0, np.zeros(3), [0, 0, 0.1], 0.05)  # type: ignore[arg-type]
    place = Environment(loads=[load], belt=Belt(np.array([1.0, 0.0])))  # type: ignore[arg-type]
    same = Environment(loads=(Load("head", 1.0, (0, 0, 0), (0, 0, 0.1), 0.05),), belt=Belt((1, 0)))
    assert place == same
    assert surfaces(place) is surfaces(same)
    assert laden(character, place.loads) is laden(character, same.loads)
    with pytest.raises(ConfigError, match="gravity_m_s2 = 0; it must be positive"):
        Environment(gravity_m_s2=0.0)


def test_heights_of_slopes_stairs_and_curbs():
    ahead = np.array([[-1.0, 0.3], [0.7, 0.0], [2.0, -0.4]])
    whole = surfaces(Environment(slope=Slope(10.0)))
    np.testing.assert_allclose(ground_height(whole, ahead), ahead[:, 0] * np.tan(np.radians(10)), atol=1e-12)
    later = surfaces(Environment(slope=Slope(-10.0, 90.0, 0.1)))
    np.testing.assert_allclose(ground_height(later, ahead), [-0.2 * np.tan(np.radians(10)), 0, 0], atol=1e-12)
    flight = surfaces(Environment(stairs=Stairs(0.1, 0.5, 2, 0.5)))
    np.testing.assert_allclose(ground_height(flight, ahead), [0.0, 0.1, 0.2], atol=1e-12)
    ridge = surfaces(Environment(curbs=(Curb(0.5, 0.04, 0.5),)))
    np.testing.assert_allclose(ground_height(ridge, ahead), [0.0, 0.04, 0.0], atol=1e-12)


def test_environments_turn_and_move_with_the_start():
    stairs = Environment(stairs=Stairs(0.1, 0.5, 2, 0.5)).placed((3.0, 1.0), np.pi / 2)
    ground = surfaces(stairs)
    np.testing.assert_allclose(ground_height(ground, np.array([[3.0, 1.7], [3.0, 2.5], [4.5, 1.2]])), [0.1, 0.2, 0.0])
    belt = surfaces(Environment(belt=Belt((1.0, 0.0)), slope=Slope(30.0)).placed((0, 0), np.pi / 2))[0]
    steep = np.radians(30.0)
    np.testing.assert_allclose(belt.velocity, [0.0, np.cos(steep) ** 2, np.cos(steep) * np.sin(steep)], atol=1e-12)


def test_clearances_above_level_ground_are_heights(character: Character, standing: SimState):
    pose = standing.pose
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    expected = lowest_points(character, *frames)
    np.testing.assert_allclose(lowest_clearances(character, *frames, surfaces(LEVEL)), expected, atol=1e-12)
    boxed = surfaces(Environment(belt=Belt((0.0, 0.1), -5.0, 10.0)))
    np.testing.assert_allclose(lowest_clearances(character, *frames, boxed), expected, atol=1e-12)


def test_distance_to_a_box_beyond_an_edge_is_that_to_the_edge():
    step = surfaces(Environment(stairs=Stairs(0.1, 0.5, 1, 1.0)))[1]
    np.testing.assert_allclose(step.distance(np.array([[0.7, 0.0, 0.5], [1.5, 0.0, 0.3]])), [0.5, 0.2], atol=1e-12)


def sunk(character: Character, softness: Softness, mass_kg: float, steps: int) -> np.ndarray:
    """Height over time of a stiff statue that is set on soft ground, relative to its start, with a load in its chest."""
    load = Load("pelvis", mass_kg, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.01)
    engine = MujocoEngine(
        character, torque_scale=10.0, environment=Environment(softness=softness, loads=(load,) if mass_kg else ())
    )
    pose = character.zero_pose()
    engine.reset(SimState(pose, np.zeros(3), np.zeros(3), np.zeros(35)))
    heights = []
    for _ in range(steps):
        engine.set_servo(np.zeros(35))
        engine.step()
        heights.append(engine.data.qpos[2] - pose.root_position[2])
    return np.array(heights)


@pytest.mark.parametrize(("mass", "damping"), [(0.0, 0.0), (40.0, 0.0), (0.0, 0.25)])
def test_soft_ground_swings_as_a_spring_and_damper(character: Character, mass: float, damping: float):
    stiffness, total = 20_000.0, 75.0 + mass
    height = sunk(character, Softness(stiffness, 2.0 * damping * np.sqrt(stiffness * total)), mass, 32)
    depth = total * 9.81 / stiffness
    slower = np.sqrt(1.0 - damping**2)
    overshoot = np.exp(-np.pi * damping / slower)
    assert height.min() == pytest.approx(-depth * (1.0 + overshoot), rel=0.08)
    half_period = np.pi * np.sqrt(total / stiffness) / slower
    assert (np.argmin(height) + 1) * TIME_STEP_S == pytest.approx(half_period, rel=0.1)


@pytest.mark.skipif(not has_bullet(), reason="pybullet is not installed")
def test_bullet_refuses_soft_ground_in_one_line(character: Character):
    with pytest.raises(EngineError, match="engine 'bullet' has no soft ground; choose 'mujoco' for it"):
        make_engine("bullet", character, environment=load_environment("trampoline"))


def test_every_example_in_the_documentation_loads(tmp_path: Path):
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text("utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 8
    for block in blocks:
        text = block if "format = 1" in block else f"format = 1\n{block}"
        assert load_environment(written(tmp_path, text)) != Environment(name="place")
    for name in environment_names():
        assert f"`{name}`" in page
