"""Transformations of a controller's structure, without a simulation (Vondrak §5.1.3)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import Controller, ControlState, Exit, TargetPose
from mocap2ctrl.fit.structure import (
    Step,
    Touchdown,
    chain_steps,
    closed,
    cycle_states,
    on_contacts,
    repeats,
    touchdowns,
    with_way_in,
)
from mocap2ctrl.types import SimState

FPS = 30.0


def chain_of(character: Character, kinds: str, poses: list[float] | None = None) -> Controller:
    """States 1, 2, … whose exits are T, L or R, and a last one without; their elbows at `poses`."""
    size = len(character.hinges)
    states = []
    for i in range(len(kinds) + 1):
        angles = np.full(size, 0.0 if poses is None else poses[i])
        exit_ = Exit()
        if i < len(kinds):
            exit_ = Exit({"T": "time", "L": "left", "R": "right"}[kinds[i]], 0.2, str(i + 2))
        states.append(
            ControlState(str(i + 1), TargetPose(np.zeros(3), angles), np.full(10, 0.1), np.zeros(3), exit=exit_)
        )
    start = SimState(character.zero_pose(), np.zeros(3), np.zeros(3), np.zeros(size))
    return Controller(tuple(states), start)


def test_a_foot_comes_down_when_it_was_up_for_long_enough() -> None:
    loaded = np.ones((40, 2), dtype=bool)
    loaded[10:18, 0] = False  # a swing of the left foot
    loaded[18:20, 1] = False  # chatter of the right one
    loaded[25:37, 1] = False
    assert touchdowns(loaded, FPS) == [Touchdown(18, "left"), Touchdown(37, "right")]
    assert touchdowns(np.zeros((40, 2), dtype=bool), FPS) == []


def test_exits_move_to_the_touchdowns_next_to_them_and_the_others_share_the_time_between() -> None:
    ends = [6, 12, 18, 24, 30, 36, 42]
    steps = on_contacts(ends, [Touchdown(20, "left"), Touchdown(34, "right")], FPS)
    assert steps == [Step(7), Step(13), Step(20, "left"), Step(25), Step(29), Step(34, "right"), Step(42)]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "nothing comes down"),
        ([Touchdown(8, "left"), Touchdown(12, "right")], "two feet within the window"),
        ([Touchdown(41, "left")], "the clip's end does not move"),
    ],
)
def test_exits_stay_on_time_where(found: list[Touchdown], why: str) -> None:
    ends = [10, 20, 42]
    assert on_contacts(ends, found, FPS) == [Step(10), Step(20), Step(42)], why


def test_touchdowns_too_far_from_any_exit_move_none() -> None:
    assert on_contacts([5, 60], [Touchdown(12, "left")], FPS) == [Step(5), Step(60)]
    assert on_contacts([5, 60], [Touchdown(11, "left")], FPS) == [Step(11, "left"), Step(60)]


def test_a_touchdown_without_room_leaves_the_others() -> None:
    """One at the clip's end once took all others with it; so does one too soon after the beginning no more."""
    ends = [5, 11, 18, 23, 30, 37, 42]
    found = [Touchdown(20, "left"), Touchdown(41, "right")]
    assert on_contacts(ends, found, FPS) == on_contacts(ends, found[:1], FPS) != [Step(end) for end in ends]
    soon = [Touchdown(2, "right"), Touchdown(20, "left")]
    assert on_contacts(ends, soon, FPS) == on_contacts(ends, found[:1], FPS)
    assert on_contacts(ends, [Touchdown(12, "left")], FPS)[1] == Step(12, "left")


def test_as_many_states_as_before_none_too_short_for_an_exit_on_time() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        ends = [step.end_frame for step in chain_steps(int(rng.integers(20, 120)), FPS, float(rng.uniform(0.1, 0.4)))]
        found = [
            Touchdown(int(frame), str(rng.choice(["left", "right"])))
            for frame in np.unique(rng.integers(1, ends[-1], rng.integers(0, 8)))
        ]
        steps = on_contacts(ends, found, FPS)
        assert len(steps) == len(ends)
        assert steps[-1] == Step(ends[-1])
        assert np.all(np.diff([0, *(step.end_frame for step in steps)]) >= 3)
        for step, end in zip(steps, ends, strict=True):
            if step.contact:
                assert Touchdown(step.end_frame, step.contact) in found
                assert abs(step.end_frame - end) <= 0.2 * FPS


def test_between_touchdowns_states_are_placed_by_their_errors() -> None:
    errors = np.triu(np.ones((43, 43)), 1)
    errors[np.tril_indices(43)] = np.inf
    errors[7, 11] = 0.0
    found = [Touchdown(7, "left"), Touchdown(20, "right")]
    assert on_contacts([5, 13, 20, 42], found, FPS, errors) == [Step(7, "left"), Step(11), Step(20, "right"), Step(42)]
    assert on_contacts([5, 13, 20, 42], found, FPS)[1] == Step(13)  # equal, up to rounding


def test_a_chain_has_the_least_sum_of_errors() -> None:
    """Against all chains of four states, counted out."""
    rng = np.random.default_rng(3)
    errors = np.triu(rng.uniform(size=(12, 12)), 1)
    errors[np.tril_indices(12)] = np.inf
    chains = [(0, *inner, 11) for inner in itertools.combinations(range(1, 11), 3)]
    best = min(chains, key=lambda ends: sum(errors[a, b] for a, b in itertools.pairwise(ends)))
    assert [step.end_frame for step in chain_steps(12, 10.0, 0.25, errors)] == list(best[1:])


def test_where_no_chain_is_allowed_stages_are_equal() -> None:
    assert chain_steps(13, 10.0, 0.3, np.full((13, 13), np.inf)) == [Step(3), Step(6), Step(9), Step(12)]


def test_a_walk_repeats_itself_from_one_touchdown_of_a_foot_to_the_next(character: Character) -> None:
    assert repeats(chain_of(character, "TTLTTRTTLTT")) == (2, 8)
    assert repeats(chain_of(character, "TTLTTRTT")) is None  # each foot once
    assert repeats(chain_of(character, "LTTL")) is None  # the other foot never: that is hopping
    assert repeats(chain_of(character, "TTTT")) is None


def test_of_two_cycles_the_one_that_is_more_alike_is_taken(character: Character) -> None:
    poses = [0.0, 0.3, 0.1, 0.7, 0.2, 0.9, 0.1, 0.71, 0.0]  # states 2, 3 and 6, 7 differ, state 4 and 8 hardly
    assert repeats(chain_of(character, "LTRTLTRT", poses)) == (2, 6)


def test_a_closed_cycle_goes_on_for_ever_and_a_chain_does_not(character: Character) -> None:
    chain = chain_of(character, "TTLTTRTTLTT")
    cycle = closed(chain, 2, 8)
    assert cycle_states(chain) == ()
    assert cycle_states(cycle) == (3, 4, 5, 6, 7, 8)
    assert cycle.structure == "⊕→1→T→2→T→3→L→4→T→5→T→6→R→7→T→8→T→9→L→4"
    at, visited = 0, []
    names = {state.name: i for i, state in enumerate(cycle.states)}
    for _ in range(20):
        visited.append(at)
        at = names[cycle.states[at].exit.to]
    assert visited[3:9] == visited[9:15] == [3, 4, 5, 6, 7, 8]
    loop = chain.with_states([replace(chain.states[0], exit=Exit("time", 0.2, "1"))])
    assert cycle_states(loop) == (0,)


def test_a_way_in_goes_once_through_a_cycle_s_copies(character: Character) -> None:
    cycle = closed(chain_of(character, "TLTRTLTT"), 1, 5)
    entering = with_way_in(cycle)
    assert cycle.structure == "⊕→1→T→2→L→3→T→4→R→5→T→6→L→3"
    assert entering.structure == "⊕→1→T→2→L→3→T→4→R→5→T→6→L→7→T→8→R→9→T→10→L→7"
    assert cycle_states(entering) == (6, 7, 8, 9)
    for before, after in zip(cycle.states[2:], entering.states[6:], strict=True):
        assert after.target is before.target
        assert replace(after.exit, to="") == replace(before.exit, to="")
    loop = with_way_in(cycle.with_states([replace(cycle.states[0], name="7", exit=Exit("time", 0.2, "7"))]))
    assert [(state.name, state.exit.to) for state in loop.states] == [("7", "2"), ("2", "2")]
