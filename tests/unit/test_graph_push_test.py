"""push-test of graphs: when pushes come and from where, what is survived, and that threads change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.body import digest
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.samcon import push_test
from mocap2ctrl.samcon.push_test import _Push, learned_cycle, push_test_graph

NOTHING = FeedbackPolicy(np.zeros((11, 18)), np.zeros(11), np.full(11, 0.003))


def lying(body: Character, policy: FeedbackPolicy | None = NOTHING) -> ControlGraph:
    """A body that lies on its face, in two fragments of 0.1 s: it stays up, in a manner, as long as it does not roll."""
    pieces = [
        ControlFragment(
            name=f"lie/{i}",
            skill="lie",
            frame_s=0.005,
            targets=np.zeros((20, len(body.hinges))),
            reference_root_position=np.tile([0.0, 0.0, 0.12], (21, 1)),
            reference_root_orientation=np.tile(rotations.about_axis((0.0, 1.0, 0.0), np.pi / 2), (21, 1)),
            reference_angles=np.zeros((21, len(body.hinges))),
            policy=policy,
        )
        for i in range(2)
    ]
    after = {"lie/0": ("lie/1",), "lie/1": ("lie/0",)}
    return ControlGraph(digest(body), "locomotion", {p.name: p for p in pieces}, after, description=body.description)


def test_pushes_last_0_4_s_and_come_every_4_s() -> None:
    moments = np.arange(2000) * 0.005
    on, begins = _Push("front", 10.0, 1.2).at(moments)
    wanted = [(m >= 1.2 - 1e-9 and (m - 1.2 + 1e-9) % 4.0 < 0.4) for m in moments]
    assert on.tolist() == wanted
    assert begins
    assert int(on.sum()) == 3 * 80
    assert _Push("front", 10.0, 1.2).at(moments[260:270])[1] is False  # in the middle of one


def test_what_a_lying_body_survives(character: Character, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be pushed along more than it may be rolled over; threads change no number."""
    monkeypatch.setattr(push_test, "SECONDS", 2.0)
    monkeypatch.setattr(push_test, "PHASES", 1)
    graph = lying(character)
    one, two = (push_test_graph(graph, step_n=400.0, max_force_n=2400.0, workers=n) for n in (1, 2))
    assert one == two
    assert one.cyclic
    assert one.undisturbed_s == one.seconds == 2.0
    assert one.cycle_s == pytest.approx(0.2)
    assert one.front_n is not None
    assert one.left_n is not None
    assert min(one.front_n, one.rear_n or 0.0) > max(one.left_n, one.right_n or 0.0)
    assert one.by_phase_n["left"] == (one.left_n,)


def test_refusals(character: Character) -> None:
    graph = lying(character)
    assert [piece.name for piece in learned_cycle(graph, "lie")] == ["lie/0", "lie/1"]
    with pytest.raises(GraphError, match="no learned cycle 'walk'; there are lie"):
        learned_cycle(graph, "walk")
    with pytest.raises(GraphError, match="no skill of the graph is a learned cycle"):
        learned_cycle(lying(character, None))
    with pytest.raises(GraphError, match="no skill of the graph is a learned cycle"):
        learned_cycle(replace(graph, successors={"lie/0": ("lie/1",), "lie/1": ()}))
    with pytest.raises(ConfigError, match="the step must be positive"):
        push_test_graph(graph, step_n=20.0, max_force_n=10.0)
