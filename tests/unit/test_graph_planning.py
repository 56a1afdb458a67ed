"""Walks through graphs: a given order, at random, and towards a point in a world where references come true."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from graphs import random_fragment, random_graph

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph
from mocap2ctrl.graph.planning import ChasePlanner, GoalPlanner, PathPlanner, Place, Planner, RandomPlanner, travel

HERE = Place(0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def body() -> Character:
    return load_character()


def walk(planner: Planner, count: int) -> list[str]:
    """The first `count` fragments of a walk that stays in its place."""
    names = [planner.first()]
    while len(names) < count:
        names.append(planner.next(names[-1], HERE))
    return names


def test_a_path_performs_each_skill_for_a_cycle_and_starts_over(body: Character) -> None:
    """Walk leaves for run/2 at its end, run leaves for walk/2 after run/1: what is skipped is made up for in the next round."""
    graph = random_graph(body)
    names = walk(PathPlanner(graph, ["walk", "walk", "run"]), 40)
    assert all(after in graph.successors[name] for name, after in pairwise(names))
    assert names[:6] == ["walk/0", "walk/1", "walk/2", "walk/0", "walk/1", "walk/2"]
    assert names[6:12] == ["walk/0", "run/2", "run/0", "run/1", "walk/2", "walk/0"]
    alone = walk(PathPlanner(graph, ["run"]), 7)
    assert alone == ["run/0", "run/1", "run/2"] * 2 + ["run/0"]


def test_paths_that_are_not_there(body: Character) -> None:
    graph = random_graph(body)
    with pytest.raises(GraphError, match="no skill 'jump' in the graph; there are walk, run"):
        PathPlanner(graph, ["jump"])
    one_way = {**graph.successors, "run/1": ("run/2",)}
    there = ControlGraph(graph.character, graph.gains, graph.fragments, one_way)
    with pytest.raises(GraphError, match="no way leads from skill 'run' to 'walk'"):
        PathPlanner(there, ["walk", "run"])
    dead = ControlGraph(graph.character, graph.gains, graph.fragments, {**graph.successors, "run/1": ()})
    for planner in (
        lambda: PathPlanner(dead, ["walk"]),
        lambda: RandomPlanner(dead),
        lambda: GoalPlanner(dead, (0, 0)),
    ):
        with pytest.raises(GraphError, match="nothing follows the fragment 'run/1'"):
            planner()


def test_random_walks_take_every_way_alike_and_are_had_again(body: Character) -> None:
    graph = random_graph(body)
    names = walk(RandomPlanner(graph, 5), 6000)
    ways = Counter(pairwise(names))
    assert set(ways) == {(name, other) for name, after in graph.successors.items() for other in after}
    for name in ("walk/0", "run/1"):
        one, two = (ways[name, other] for other in graph.successors[name])
        assert 0.4 < one / (one + two) < 0.6
    assert walk(RandomPlanner(graph, 5), 50) == names[:50]
    assert walk(RandomPlanner(graph, 6), 50) != names[:50]


def test_random_walks_do_not_begin_on_a_one_way_road(body: Character) -> None:
    graph = random_graph(body)
    road = random_fragment("rise/0", body, np.random.default_rng(1))
    fragments = {"rise/0": road, **graph.fragments}
    with_road = ControlGraph(graph.character, graph.gains, fragments, {"rise/0": ("walk/1",), **graph.successors})
    assert {RandomPlanner(with_road, seed).first() for seed in range(40)} == set(graph.fragments)
    assert GoalPlanner(with_road, (1.0, 0.0)).first() == "walk/0"


def moving(name: str, body: Character, metres: float, turn: float, heading: float = 0.7) -> ControlFragment:
    """A fragment of 0.1 s that goes ahead and turns evenly; its skill's world is turned by `heading`."""
    frames, joints = 20, len(body.hinges)
    share = np.linspace(0.0, 1.0, frames + 1)
    ahead = np.stack([metres * share, 0.0 * share, 0.9 + 0.0 * share], axis=1)
    return ControlFragment(
        name=name,
        skill=name.split("/", maxsplit=1)[0],
        frame_s=0.005,
        targets=np.zeros((frames, joints)),
        reference_root_position=rotations.rotate(rotations.yaw(heading), ahead) + np.array([3.0, 1.0, 0.0]),
        reference_root_orientation=rotations.yaw(heading + turn * share),
        reference_angles=np.zeros((frames + 1, joints)),
    )


@pytest.fixture(scope="module")
def steering(body: Character) -> ControlGraph:
    """Straight ahead, and half a second of turning to either side by 30 degrees."""
    fragments, successors = (
        {"ahead/0": moving("ahead/0", body, 0.12, 0.0)},
        {"ahead/0": ("ahead/0", "left/0", "right/0")},
    )
    for side, turn in (("left", 1.0), ("right", -1.0)):
        for k in range(5):
            fragments[f"{side}/{k}"] = moving(f"{side}/{k}", body, 0.1, turn * np.radians(6.0))
            successors[f"{side}/{k}"] = (f"{side}/{k + 1}" if k < 4 else "ahead/0",)
    return ControlGraph("any", "locomotion", fragments, successors)


def test_travel_is_measured_where_the_character_faces(body: Character) -> None:
    gone = travel(moving("ahead/0", body, 0.12, 0.3, heading=2.0))
    assert (gone.x, gone.y, gone.heading) == pytest.approx((0.12, 0.0, 0.3))
    quarter = Place(1.0, 1.0, np.pi / 2).moved(Place(0.5, 0.25, -0.1))
    assert (quarter.x, quarter.y, quarter.heading) == pytest.approx((0.75, 1.5, np.pi / 2 - 0.1))
    across = travel(moving("ahead/0", body, 0.1, 0.2, heading=np.pi - 0.1))
    assert across.heading == pytest.approx(0.2)


@pytest.mark.parametrize("goal", [(6.0, 0.0), (0.0, 5.0), (-5.0, 0.5), (-2.0, -4.0), (3.0, -3.0)])
def test_the_greedy_planner_reaches_points_all_round(steering: ControlGraph, goal: tuple[float, float]) -> None:
    """In a world where every reference comes true; a walk of 12 s at 1.2 m/s."""
    planner = GoalPlanner(steering, goal)
    place, name, nearest = HERE, planner.first(), np.inf
    for _ in range(120):
        place = place.moved(travel(steering.fragments[name]))
        nearest = min(nearest, float(np.hypot(place.x - goal[0], place.y - goal[1])))
        name = planner.next(name, place)
    assert nearest < 0.4


def test_straight_to_what_is_ahead(steering: ControlGraph) -> None:
    assert GoalPlanner(steering, (9.0, 0.0)).next("ahead/0", HERE) == "ahead/0"
    assert GoalPlanner(steering, (0.0, 9.0)).next("ahead/0", HERE) == "left/0"
    assert GoalPlanner(steering, (0.0, -9.0)).next("ahead/0", HERE) == "right/0"
    assert GoalPlanner(steering, (0.0, -9.0)).next("ahead/0", Place(0.0, 0.0, -np.pi / 2)) == "ahead/0"


def test_how_hard_to_turn(steering: ControlGraph) -> None:
    planner = GoalPlanner(steering, (0.0, 5.0))
    assert planner.turn(HERE) == 1.0
    assert planner.turn(Place(0.0, 0.0, np.pi / 2)) == pytest.approx(0.0)
    assert planner.turn(Place(0.0, 0.0, np.radians(100.0))) == pytest.approx(-0.5)
    assert planner.turn(Place(0.0, 10.0, np.radians(-85.0))) == pytest.approx(-0.25)
    assert planner.turn(Place(0.0, 0.0, np.radians(80.0 + 720.0))) == pytest.approx(0.5)
    assert RandomPlanner(steering).turn(HERE) == PathPlanner(steering, ["ahead"]).turn(HERE) == 0.0


def test_who_chases_heads_for_the_nearest_other(steering: ControlGraph) -> None:
    places = {0: HERE, 1: Place(0.0, 9.0, 0.0), 2: Place(-7.0, 0.0, 0.0)}
    chaser = ChasePlanner(steering, 0, places)
    chaser.next("ahead/0", HERE)
    assert chaser.goal == (-7.0, 0.0)
    assert ChasePlanner(steering, 1, places).next("ahead/0", Place(0.0, 9.0, np.pi / 2)) in ("left/0", "right/0")
    assert places[1].heading == np.pi / 2
    places[2] = Place(0.0, -20.0, 0.0)
    assert chaser.next("ahead/0", Place(0.0, 0.0, np.pi / 2)) == "ahead/0"
    assert chaser.goal == (0.0, 9.0)
