"""Pictures of environments: the ground that is drawn is the ground that bears, belts run, loads and pushes can be seen."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.report.camera import VirtualCamera
from mocap2ctrl.report.ground import Image, background
from mocap2ctrl.report.overlay import panels
from mocap2ctrl.report.render import LOAD_COLOUR, draw_frames
from mocap2ctrl.report.surroundings import (
    ARROW_COLOUR,
    BELT_COLOUR,
    dent_m,
    draw_ground,
    draw_pushes,
    ground_below,
    ground_faces,
    is_plain,
)
from mocap2ctrl.simulation.environment import (
    Belt,
    Curb,
    Environment,
    Load,
    Slope,
    Softness,
    Stairs,
    Sway,
)
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.simulation.terrain import ground_height, surfaces, sway_at
from mocap2ctrl.types import MotionClip, SimState

SIZE = (160, 120)
ABOVE = VirtualCamera(np.array([1.0, 0.0, 6.0]), 0.0, np.pi / 2 - 1e-3, 100.0, SIZE)
"""Looks down on the ground 1 m ahead; right in the picture is to the right."""


def looking(place: tuple[float, float, float], camera: VirtualCamera = ABOVE) -> tuple[int, int]:
    x, y = camera.project(np.array([place]))[0]
    return round(float(y)), round(float(x))


def drawn(environment: Environment, time_s: float = 0.0) -> Image:
    image = background(ABOVE)
    draw_ground(image, ABOVE, environment, np.array([1.0, 0.0, 0.9]), time_s)
    return image


@pytest.mark.parametrize(
    "environment",
    [
        Environment(slope=Slope(12.0, 30.0)),
        Environment(slope=Slope(-12.0, 0.0, 0.4)).placed((0.3, 0.2), 1.0),
        Environment(stairs=Stairs(0.1, 0.4, 3)),
        Environment(curbs=(Curb(1.0, 0.1, 0.3),), sway=Sway((0.0, 0.2, 0.1), 1.0)),
    ],
)
def test_every_square_lies_on_the_ground(environment: Environment):
    around, time_s = np.array([1.0, 0.3, 1.0]), 0.3
    moved = sway_at(environment, time_s)
    faces = [
        f.corners.mean(axis=0) - moved
        for f in ground_faces(environment, around, time_s)
        if np.ptp(f.corners[:, 0]) > 0.02
    ]
    tops = np.array(faces)
    heights = ground_height(surfaces(environment), tops[:, :2])
    on_top = np.abs(tops[:, 2] - heights) < 1e-9
    assert np.all(tops[:, 2] < heights + 1e-9)  # what is not on top is below it, or a riser
    assert on_top.mean() > 0.5


def test_a_belt_has_its_colour_where_it_is_and_runs():
    belt = Environment(belt=Belt((0.25, 0.0), 0.5, 1.0))
    image = drawn(belt)
    np.testing.assert_allclose(image[looking((1.2, 0.2, 0.0))], BELT_COLOUR, atol=40)
    assert abs(int(image[looking((2.2, 0.2, 0.0))][0]) - int(image[looking((1.2, 0.2, 0.0))][0])) > 5
    assert not np.array_equal(image, drawn(belt, 0.5))
    np.testing.assert_array_equal(image, drawn(belt, 2.0))  # one square of the grid further


def test_which_grounds_the_usual_picture_shows():
    load = Load("head", 1.0, (0, 0, 0), (0, 0, 0), 0.1)
    assert is_plain(Environment(friction=0.1, gravity_m_s2=2.0, loads=(load,)))
    assert not is_plain(Environment(slope=Slope(1.0)))
    assert not is_plain(Environment(belt=Belt((1.0, 0.0))))
    assert not is_plain(Environment(softness=Softness(1000.0, 1.0)))


def test_the_ground_below_moves_with_it():
    ship = Environment(sway=Sway((0.0, 0.0, 0.2), 1.0), slope=Slope(45.0))
    below = ground_below(ship, np.array([[1.0, 0.0, 3.0], [1.0, 0.0, 3.0]]), np.array([0.0, 0.5]))
    np.testing.assert_allclose(below, [1.0, 1.2])


def test_a_push_is_an_arrow_while_it_acts(character: Character, standing: SimState):
    camera = VirtualCamera(np.array([0.0, -4.0, 1.2]), np.pi / 2, 0.0, 100.0, SIZE)
    pose = standing.pose
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    push = Push(character.segment_index("chest"), np.array([100.0, 0.0, 0.0]), 1.0, 0.4, 4.0)

    def red(time_s: float) -> np.ndarray:
        image = np.full((SIZE[1], SIZE[0], 3), 255, np.uint8)
        draw_pushes(image, camera, character, frames, (push,), time_s)
        return np.argwhere(np.all(np.abs(image.astype(int) - ARROW_COLOUR) < 30, axis=-1))

    assert [len(red(t)) > 0 for t in (0.9, 1.0, 1.39, 1.41, 5.2)] == [False, True, True, False, True]
    columns = red(1.2)[:, 1]
    assert columns.max() <= SIZE[0] // 2 + 2  # from behind, up to the chest's middle
    assert columns.min() < SIZE[0] // 2 - 8


def test_a_load_is_drawn_where_it_is(character: Character, standing: SimState):
    camera = VirtualCamera(np.array([0.0, -3.0, 1.0]), np.pi / 2, 0.0, 120.0, SIZE)
    pose = standing.pose
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    ball = Load("head", 5.0, (0.0, 0.0, 0.35), (0.0, 0.0, 0.35), 0.12)
    bare, laden = (np.full((SIZE[1], SIZE[0], 3), 255, np.uint8) for _ in range(2))
    draw_frames(bare, camera, character, *frames, shadow=0.0)
    draw_frames(laden, camera, character, *frames, shadow=0.0, loads=(ball,))
    place = frames[0][character.segment_index("head")] + [0.0, 0.0, 0.35]
    row, column = looking(tuple(place), camera)
    assert np.all(bare[row, column] == 255)
    assert np.all(np.abs(laden[row, column].astype(int) - LOAD_COLOUR) < 60)
    changed = np.argwhere(np.any(bare != laden, axis=-1))
    assert np.ptp(changed[:, 1]) == pytest.approx(2 * 0.12 * 120.0 / 3.0, abs=2)


def test_soft_ground_is_pressed_in_by_who_sinks(character: Character, standing: SimState):
    pose = standing.pose
    frames = segment_frames(character, pose.root_position - [0, 0, 0.1], pose.root_orientation, pose.angles)
    assert dent_m(Environment(softness=Softness(5000.0, 10.0)), character, frames) == pytest.approx(0.1, abs=1e-6)
    assert dent_m(Environment(), character, frames) == 0.0


def test_the_panel_of_the_simulation_shows_the_environment_and_follows_it(character: Character, standing: SimState):
    pose = standing.pose
    level = MotionClip("level", 30.0, [pose.root_position] * 2, [pose.root_orientation] * 2, [pose.angles] * 2)
    higher = MotionClip(
        "up", 30.0, [pose.root_position + np.array([0.0, 0.0, 1.0])] * 2, [pose.root_orientation] * 2, [pose.angles] * 2
    )
    hill = Environment(stairs=Stairs(0.5, 0.5, 2, 0.0)).placed((-2.0, 0.0), 0.0)
    times = np.array([0.0, 1 / 30])
    pair = panels(character, level, higher, times, size=SIZE, fps=30.0, environment=hill)
    reference, simulated = pair.images(0)
    plain, same = panels(character, level, level, times, size=SIZE, fps=30.0).images(0)
    np.testing.assert_array_equal(plain, same)
    assert not np.array_equal(simulated, reference)
    body = np.abs(reference.astype(int) - background(pair.cameras[0])).sum(axis=-1) > 90
    difference = np.abs(simulated[body].astype(int) - reference[body]).max(axis=-1)
    assert np.mean(difference < 8) > 0.9  # the body stands at the same place of the picture
