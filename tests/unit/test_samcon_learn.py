"""Learning: the same bits for any threads and after an interruption, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.graph.file import read_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.report.learning import plot_learning
from mocap2ctrl.samcon.cost import Cost
from mocap2ctrl.samcon.cycle import motion_graph
from mocap2ctrl.samcon.features import feedback_actions
from mocap2ctrl.samcon.guided import GuidedConfig, GuidedLearning, Iteration
from mocap2ctrl.samcon.hardening import HardeningConfig
from mocap2ctrl.samcon.learn import LearnConfig, Progress, learn
from mocap2ctrl.samcon.mirrors import mirror_pairs, mirrored_policy
from mocap2ctrl.samcon.open_loop import OpenLoopConfig
from mocap2ctrl.samcon.performance import Trials
from mocap2ctrl.samcon.rising import starts_of
from mocap2ctrl.simulation.mujoco_fragments import PdRollouts

pytestmark = pytest.mark.skipif(deepmimic_directory() is None, reason="pybullet_data is not installed")

TINY = LearnConfig(
    OpenLoopConfig(rounds=2, round_visits=1, visits=1, samples=40),
    GuidedConfig(iterations=2, visits=4, first_samples=16, samples=12, lookahead=1, roll_back=6),
    HardeningConfig(iterations=1, updates=2, bodies=24, actions=60),
    Trials(runs=2, seconds=0.4),
    seed=3,
)


@pytest.fixture(scope="module")
def graph(character: Character) -> ControlGraph:
    return motion_graph(load_motion("humanoid3d_walk", character).clip, character, skill="walk", gains="locomotion")[0]


@pytest.fixture(scope="module")
def learned(graph: ControlGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("learn") / "walk.json"
    learn(graph, output, TINY)
    return output


class KilledError(Exception):
    """Stands for Ctrl-C, a kill or a full disk."""


def test_threads_change_no_bit(learned: Path, graph: ControlGraph, tmp_path: Path):
    learn(graph, tmp_path / "two.json", TINY, threads=2)
    assert (tmp_path / "two.json").read_bytes() == learned.read_bytes()


@pytest.mark.parametrize("iteration", [0, 1])
def test_after_an_interruption_the_same_bits_come_out(
    learned: Path, graph: ControlGraph, tmp_path: Path, iteration: int
):
    output = tmp_path / "again.json"

    def kill(progress: Progress) -> None:
        if progress.what == "sampling" and progress.iteration == iteration + 1:
            raise KilledError

    with pytest.raises(KilledError):
        learn(graph, output, TINY, progress=kill)
    assert output.is_file() == (iteration > 0)  # the best so far is there
    with pytest.raises(ConfigError, match=r"was interrupted; --resume goes on with it"):
        learn(graph, output, TINY)
    with pytest.raises(GraphError, match=r"was begun with another graph or other options"):
        learn(graph, output, replace(TINY, seed=4), resume=True)
    learn(graph, output, TINY, resume=True)
    assert output.read_bytes() == learned.read_bytes()
    assert not output.with_suffix(".learning").exists()


def test_a_learned_graph_is_a_graph_with_symmetric_feedback(learned: Path, character: Character):
    graph = read_graph(learned)
    pairs, actions = mirror_pairs(graph, character), feedback_actions(character)
    assert len(pairs) == 12
    for name, other in pairs.items():
        policy, mirror = graph.fragments[name].policy, graph.fragments[other].policy
        assert policy is not None
        assert mirror is not None
        np.testing.assert_allclose(mirrored_policy(policy, actions).gain, mirror.gain)
    how = graph.provenance["learning"]
    assert [entry["number"] for entry in how["iterations"]] == [1, 2, 3]


def test_frozen_fragments_keep_their_policy(learned: Path, character: Character):
    graph = read_graph(learned)
    frozen = [f"walk/{i}" for i in range(6)]
    opened = replace(
        graph, fragments={n: f if n in frozen else replace(f, policy=None) for n, f in graph.fragments.items()}
    )
    with PdRollouts(character) as rollouts:
        learning = GuidedLearning(
            opened, character, rollouts, TINY.guided, TINY.trials, starts_of(opened, rollouts, 1), 1, frozen
        )
        learning.iterate(1)
    for name, fragment in learning.graph.fragments.items():
        assert fragment.policy is not None
        if name in frozen:
            assert fragment.policy is opened.fragments[name].policy
    assert Cost(character).body.masses.mass.sum() == pytest.approx(character.mass_kg)


def test_what_is_there_is_not_replaced_and_what_is_learned_is_not_learned_again(learned: Path, graph: ControlGraph):
    with pytest.raises(ConfigError, match="exists already; use --overwrite"):
        learn(graph, learned, TINY)
    with pytest.raises(GraphError, match="has a policy already; --relearn"):
        learn(read_graph(learned), learned, TINY, overwrite=True)
    with pytest.raises(GraphError, match="nothing to resume"):
        learn(graph, learned, TINY, resume=True)


def test_the_learning_curve_is_a_picture(learned: Path):
    how = read_graph(learned).provenance["learning"]
    history = [Iteration(**entry) for entry in how["iterations"]]
    assert plot_learning({"": history}).startswith(b"\x89PNG")
    assert plot_learning({"walk": history, "rising": history[:1]}).startswith(b"\x89PNG")
