"""Ways between learned cycles: which there are, their drafts, and how they are opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graphs import gait, two_skills

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.graph.blend import passed_s, share_of
from mocap2ctrl.graph.build import build_graph
from mocap2ctrl.graph.fragments import ControlGraph, FeedbackPolicy
from mocap2ctrl.graph.learned import cycles_of, rings
from mocap2ctrl.graph.skills import Skill, make_skill
from mocap2ctrl.graph.transitions import transition
from mocap2ctrl.graph.ways import Way, drafted, moved, ways
from mocap2ctrl.samcon import joining
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.joining import JoiningConfig, joined
from mocap2ctrl.samcon.open_loop import OpenLoopConfig
from mocap2ctrl.samcon.sampling import Episode, Followed, Sampler, Task
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts
from mocap2ctrl.types import Array


def policy(number: float) -> FeedbackPolicy:
    """One that is told from others by its numbers."""
    return FeedbackPolicy(np.full((11, 18), number), np.full(11, 2.0 * number), np.full(11, 1.0 + number))


def linked(character: Character, skills: Sequence[Skill], enter_s: float = 0.2, blend_s: float = 0.5) -> ControlGraph:
    """Two cycles, the first with the policy 1 and the second with 2, and a way from each to the other without any."""
    first, second = skills
    there = [
        transition(first, 0.3, second, enter_s, blend_s, 0.0),
        transition(second, enter_s, first, 0.3, blend_s, 0.0),
    ]
    graph = build_graph(skills, there, character).graph
    number = {first.name: 1.0, second.name: 2.0}
    return replace(
        graph,
        fragments={
            n: replace(f, policy=policy(number[f.skill])) if f.skill in number else f
            for n, f in graph.fragments.items()
        },
    )


def test_time_that_passes_in_a_blend(character: Character) -> None:
    walk, run = two_skills(character)
    u = np.linspace(0.0, 1.0, 2001)
    ours, theirs = passed_s(walk, run, 0.6, u)
    rate = (1.0 - share_of(u)) / walk.duration_s + share_of(u) / run.duration_s
    phase = 0.6 * np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(u))])
    np.testing.assert_allclose(ours, phase * walk.duration_s, atol=1e-6)
    np.testing.assert_allclose(theirs, phase * run.duration_s, atol=1e-6)


def test_which_ways_there_are(character: Character) -> None:
    graph = linked(character, two_skills(character))
    found = {way.name: way for way in ways(graph)}
    assert set(found) == {"walk-run", "run-walk"}
    for way in found.values():
        source, target = rings(graph)[way.source], rings(graph)[way.target]
        assert way.name == f"{way.source}-{way.target}"
        assert way.chain == tuple(name for name, f in graph.fragments.items() if f.skill == way.name)
        before = source[way.leave - 1]
        assert set(graph.successors[before]) == {source[way.leave], way.chain[0]}
        assert graph.successors[way.chain[-1]] == (target[way.arrive],)


def test_a_way_can_begin_and_end_elsewhere(character: Character) -> None:
    graph = linked(character, two_skills(character))
    way = ways(graph)[0]
    leave, arrive = (way.leave + 2) % len(rings(graph)["walk"]), way.arrive - 1
    other, place = moved(graph, way, leave, arrive)
    assert place == replace(way, leave=leave, arrive=arrive)
    assert place in ways(other)
    assert [w for w in ways(other) if w.name != way.name] == [w for w in ways(graph) if w.name != way.name]
    assert sum(map(len, other.successors.values())) == sum(map(len, graph.successors.values()))


def test_the_way_from_a_gait_to_itself_is_the_gait(character: Character) -> None:
    """Blending what is alike changes nothing: targets, poses and travel of the draft are those of the cycle there."""
    twins = tuple(make_skill(name, gait(character), character) for name in ("one", "two"))
    graph = linked(character, twins, enter_s=0.3)
    way = ways(graph)[0]
    chain = list(drafted(graph, way).values())
    ring = rings(graph)["one"]
    after = [graph.fragments[ring[(way.leave + k) % len(ring)]] for k in range(len(chain))]
    for piece, own in zip(chain, after, strict=True):
        np.testing.assert_allclose(piece.targets, own.targets, atol=2e-3)
        np.testing.assert_allclose(piece.reference_angles, own.reference_angles, atol=2e-3)
        travel, its = (f.reference_root_position - f.reference_root_position[0] for f in (piece, own))
        np.testing.assert_allclose(np.linalg.norm(travel, axis=1), np.linalg.norm(its, axis=1), atol=2e-3)


def test_policies_of_a_draft_turn_from_one_into_the_other(character: Character) -> None:
    graph = linked(character, two_skills(character), blend_s=0.6)
    for way, (first, last) in zip(ways(graph), ((1.0, 2.0), (2.0, 1.0)), strict=True):
        chain = drafted(graph, way)
        assert tuple(chain) == way.chain
        share = share_of((np.arange(len(chain)) + 0.5) / len(chain))
        for piece, part in zip(chain.values(), share, strict=True):
            assert piece.policy is not None
            expected = policy(float((1.0 - part) * first + part * last))
            np.testing.assert_allclose(piece.policy.gain, expected.gain)
            np.testing.assert_allclose(piece.policy.offset, expected.offset)
            np.testing.assert_allclose(piece.policy.variance, expected.variance)


MEAN = 0.25


class Made(Sampler):
    """Bodies that get through a way if its offsets are near what a landscape wants, where the way begins and ends as it should."""

    wanted, passable = 0.4, True
    tried: int

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.tried = 0

    def walk(self, tasks: Sequence[Task], config: Any, rng: np.random.Generator, progress: Any = None) -> Episode:
        """Where the way can be got through, sampling finds the wanted offsets."""
        way = [task for task in tasks if task.explored]
        self.tried += 1
        if not self.passable:
            return self._episode(np.zeros((0, 11)), np.zeros((0, 18)))
        features = rng.normal(size=(len(tasks), 18))
        actions = np.array([t.gain @ s + t.offset for t, s in zip(tasks, features, strict=True)])
        for k, task in enumerate(way):
            actions[k] += self.wanted - task.offset
        return self._episode(actions, features)

    def _episode(self, actions: Array, features: Array) -> Episode:
        nothing = np.zeros((len(actions), 1))
        return Episode(nothing, nothing, actions, nothing, features, 0, 0, complete=True, elites=[])

    def follow(self, starts: Array, task: Task, pushes: Array | None = None) -> Followed:
        near = not task.explored or float(np.abs(task.offset - self.wanted).max()) < 0.1
        stands = np.full(len(starts), near)
        steps = np.full(len(starts), task.steps)
        return Followed(np.full((len(starts), 11), MEAN), starts, self.cost.ends(starts), stands, steps)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Made]:
    """The samplers that `joined` has made."""
    all_: list[Made] = []

    def make(*arguments: Any) -> Made:
        all_.append(Made(*arguments))
        return all_[-1]

    monkeypatch.setattr(joining, "Sampler", make)
    return all_


def test_offsets_evolve_until_the_policies_alone_get_through(character: Character, made: list[Made]) -> None:
    graph = linked(character, two_skills(character))
    hinges = feedback_actions(character).hinges
    told: list[tuple[str, float]] = []
    with PdRollouts(character) as rollouts:
        done = joined(
            graph, character, rollouts, OpenLoopConfig(), 1, progress=lambda what, share: told.append((what, share))
        )
    assert told[0] == ("transitions", 0.0)  # before the first way is tried, which takes minutes
    assert [share for _, share in told] == sorted(share for _, share in told)
    for way in ways(done):
        drafts = drafted(graph, way)
        for name in way.chain:
            found, draft = done.fragments[name].policy, drafts[name].policy
            assert found is not None
            assert draft is not None
            np.testing.assert_array_equal(found.gain, draft.gain)
            assert np.abs(found.offset - (0.4 - MEAN)).max() < 0.1  # the rest has become part of the targets
            added = done.fragments[name].targets - drafts[name].targets
            np.testing.assert_allclose(added, np.broadcast_to(MEAN * hinges.sum(axis=0), added.shape), atol=1e-12)
    learned = [name for ring in rings(graph).values() for name in ring]
    assert all(done.fragments[name] is graph.fragments[name] for name in learned)
    rounds = made[0].tried / JoiningConfig().walks
    assert rounds == 6 + 6  # of two ways: from at most 3.6 away to 0.1, half-way in each round


def test_a_way_that_cannot_be_opened_is_looked_for_nearby(
    character: Character, made: list[Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bodies get through only where the way begins one fragment later."""
    graph = linked(character, two_skills(character))
    first = ways(graph)[0]
    real = joining.moved

    def watched(graph: ControlGraph, way: Way, leave: int, arrive: int) -> tuple[ControlGraph, Way]:
        at = first if way.name == first.name else way
        right = (leave, arrive) == ((at.leave + (way.name == first.name)) % len(rings(graph)[way.source]), at.arrive)
        made[-1].passable = right
        return real(graph, way, leave, arrive)

    monkeypatch.setattr(joining, "moved", watched)
    with PdRollouts(character) as rollouts:
        done = joined(graph, character, rollouts, OpenLoopConfig(), 1)
        (there,) = (way for way in ways(done) if way.name == first.name)
        assert (there.leave, there.arrive) == ((first.leave + 1) % len(rings(graph)["walk"]), first.arrive)
        monkeypatch.setattr(joining, "moved", lambda *a: (setattr(made[-1], "passable", False), real(*a))[1])
        with pytest.raises(GraphError, match=r"'walk' to 'run' by the transition 'walk-run'.*--transition"):
            joined(graph, character, rollouts, OpenLoopConfig(), 1)


def test_states_at_the_begin_of_a_way_are_those_of_the_cycle(character: Character) -> None:
    """The real sampler: as many states of each fragment as periods that are watched, in order around the ring."""
    graph = linked(character, two_skills(character))
    with PdRollouts(character) as rollouts:
        sampler = Sampler(rollouts, feedback_actions(character), Cost(character))
        opener = joining._Opener(sampler, graph, JoiningConfig(), np.random.default_rng(1))
        states = opener._settled("walk")
    assert [len(at) for at in states] == [joining.PERIODS - joining.SETTLED] * len(rings(graph)["walk"])
    lasts = {f.name: f.duration_s for f in graph.fragments.values()}
    times = np.array([at[0, 0] for at in states])
    np.testing.assert_allclose(np.diff(times), [lasts[name] for name in rings(graph)["walk"][:-1]], atol=1e-9)
    assert {skill.name for skill in cycles_of(graph)} == {"walk", "run"}
