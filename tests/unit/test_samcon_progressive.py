"""Learning in parts: which they are, what each is learned with, and that an interruption loses one at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from graphs import two_skills
from test_graph_ways import linked, policy

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.files import write_json
from mocap2ctrl.graph.build import build_graph
from mocap2ctrl.graph.file import read_graph, write_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.learned import rings
from mocap2ctrl.graph.ways import moved, ways
from mocap2ctrl.samcon import progressive
from mocap2ctrl.samcon.checkpoint import STATE, CheckpointFolder, key_of
from mocap2ctrl.samcon.guided import Iteration
from mocap2ctrl.samcon.joining import joined
from mocap2ctrl.samcon.learn import LearnConfig, Learned
from mocap2ctrl.samcon.open_loop import refine
from mocap2ctrl.samcon.progressive import learn_in_parts, parts, resumable

Call = tuple[str, list[str], bool]
"""Of `learn`: name of the first fragment, those without a policy, whether it was to resume."""


def bare(graph: ControlGraph) -> ControlGraph:
    return replace(graph, fragments={name: replace(f, policy=None) for name, f in graph.fragments.items()})


@pytest.fixture
def graph(character: Character) -> ControlGraph:
    """A walk, a run and the ways between them, of which nothing is learned."""
    return bare(linked(character, two_skills(character)))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What `learn` is called for; it moves the ways that it learns. The call with the number `stop` is interrupted."""
    made: list[Call] = []
    monkeypatch.setattr(progressive, "learn", learner(made))
    return made


ITERATION = Iteration(1, "sampling", 0, 0.0, 0.0, 1.0, {}, 3.0, 5.0, 2.0)


def learner(made: list[Call], stop: int = -1) -> Callable[..., Learned]:
    """Stands for `learn`: leaves its state as that does, and takes another time with each call."""

    def learn(
        graph: ControlGraph, output: Path, config: LearnConfig, *, resume: bool = False, clear: bool = True, **_: Any
    ) -> Learned:
        lacking = [name for name, fragment in graph.fragments.items() if fragment.policy is None]
        made.append((next(iter(graph.fragments)), lacking, resume))
        folder = output.with_suffix(".learning")
        folder.mkdir(exist_ok=True)
        write_json(folder / STATE, {"key": key_of(graph, config)})
        if len(made) - 1 == stop:
            raise KeyboardInterrupt
        for way in ways(graph):
            if way.chain[0] in lacking:
                graph, _ = moved(graph, way, way.leave, way.arrive - 1)
        number = 1.0 + sum(f.policy is not None for f in graph.fragments.values())
        fragments = {name: replace(f, policy=f.policy or policy(number)) for name, f in graph.fragments.items()}
        how = {"learned": len(lacking), "iterations": [asdict(ITERATION)]}
        done = replace(graph, fragments=fragments, provenance={"learning": how})
        write_graph(done, output)
        assert not clear
        return Learned(done, (ITERATION,), (1.0 + len(made),))

    return learn


def test_cycles_come_first_then_the_ways_between_them(graph: ControlGraph) -> None:
    config = LearnConfig()
    walk, run, between = parts(graph, config)
    assert (walk.name, run.name, between.name) == ("walk", "run", "transitions")
    assert (walk.learned, run.learned) == (rings(graph)["walk"], rings(graph)["run"])
    assert walk.within == walk.learned
    assert set(between.learned) == {name for way in ways(graph) for name in way.chain}
    assert set(between.within) == set(graph.fragments)
    assert (walk.opening, between.opening) == (refine, joined)
    assert (walk.config, between.config.guided.iterations) == (config, 0)
    assert 1 <= between.config.hardening.iterations <= config.hardening.iterations
    unhardened = replace(config, hardening=replace(config.hardening, iterations=0))
    assert parts(graph, unhardened)[2].config.hardening.iterations == 1  # else nothing would be tested


def test_what_is_learned_is_no_part(graph: ControlGraph, character: Character) -> None:
    config = LearnConfig()
    walk = {n: replace(f, policy=policy(1.0)) if f.skill == "walk" else f for n, f in graph.fragments.items()}
    assert [part.name for part in parts(replace(graph, fragments=walk), config)] == ["run", "transitions"]
    (all_,) = parts(replace(graph, fragments=walk), replace(config, relearn=True))
    assert set(all_.learned) == set(all_.within) == set(graph.fragments)
    alone = build_graph(two_skills(character)[:1], [], character).graph
    (one,) = parts(alone, config)
    assert (one.learned, one.config, one.opening) == (tuple(alone.fragments), config, refine)


def test_parts_are_put_together(graph: ControlGraph, calls: list[Call], tmp_path: Path) -> None:
    output = tmp_path / "learned.json"
    told: list[str] = []
    done = learn_in_parts(graph, output, LearnConfig(), progress=lambda p: told.append(p.part))
    between = [name for way in ways(graph) for name in way.chain]
    assert [lacking for _, lacking, _ in calls] == [list(rings(graph)["walk"]), list(rings(graph)["run"]), between]
    assert list(tmp_path.iterdir()) == [output]
    found = read_graph(output)
    assert list(found.fragments) == list(graph.fragments)
    cycles = 1.0 + sum(map(len, rings(graph).values()))
    assert {f.skill: float(f.policy.gain[0, 0]) for f in found.fragments.values() if f.policy} == {
        "walk": 1.0,
        "run": 1.0,
        "walk-run": cycles,
        "run-walk": cycles,
    }
    for before, after in zip(ways(graph), ways(found), strict=True):
        size = len(rings(graph)[before.target])
        assert (after.leave, after.arrive) == (before.leave, (before.arrive - 1) % size)
    assert done.core_s == (2.0, 3.0, 4.0)
    assert found.provenance["parts"] == {
        name: {"learned": len(names), "iterations": [asdict(ITERATION)]}
        for name, names in zip(("walk", "run", "transitions"), [c[1] for c in calls], strict=True)
    }
    assert done.parts == {name: (ITERATION,) for name in ("walk", "run", "transitions")}
    with pytest.raises(ConfigError, match="exists already"):
        learn_in_parts(graph, output, LearnConfig())


@pytest.mark.parametrize("stop", range(3))
def test_an_interruption_loses_no_part(
    graph: ControlGraph, tmp_path: Path, stop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, output = tmp_path / "whole.json", tmp_path / "learned.json"
    monkeypatch.setattr(progressive, "learn", learner([]))
    learn_in_parts(graph, whole, LearnConfig())
    made: list[Call] = []
    monkeypatch.setattr(progressive, "learn", learner(made, stop))
    with pytest.raises(KeyboardInterrupt):
        learn_in_parts(graph, output, LearnConfig())
    assert resumable(output)
    assert not output.exists()
    with pytest.raises(ConfigError, match="was interrupted"):
        learn_in_parts(graph, output, LearnConfig())
    again: list[Call] = []
    monkeypatch.setattr(progressive, "learn", learner(again))
    learn_in_parts(graph, output, LearnConfig(), resume=True)
    assert [resumed for _, _, resumed in again] == [True, False, False][: 3 - stop]
    assert again[0][:2] == made[-1][:2]
    assert output.read_bytes() == whole.read_bytes()
    assert not resumable(output)
    assert {path.name for path in tmp_path.iterdir()} == {"whole.json", "learned.json"}


def test_a_part_that_was_learned_but_not_put_in_is_not_learned_again(
    graph: ControlGraph, calls: list[Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "learned.json"
    monkeypatch.setattr(progressive, "_merged", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        learn_in_parts(graph, output, LearnConfig())
    monkeypatch.undo()
    calls.clear()
    monkeypatch.setattr(progressive, "learn", learner(calls))
    assert resumable(output)
    learn_in_parts(graph, output, LearnConfig(), resume=True)
    assert [(lacking[0], resumed) for _, lacking, resumed in calls] == [
        ("walk/0", True),  # by its state, at once
        ("run/0", False),
        (ways(graph)[0].chain[0], False),
    ]


def test_a_part_that_was_put_in_but_not_removed_is_not_gone_on_with(
    graph: ControlGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "learned.json"
    monkeypatch.setattr(progressive, "learn", learner([]))
    monkeypatch.setattr(CheckpointFolder, "clear", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        learn_in_parts(graph, output, LearnConfig())
    monkeypatch.undo()
    calls: list[Call] = []
    monkeypatch.setattr(progressive, "learn", learner(calls))
    learn_in_parts(graph, output, LearnConfig(), resume=True)
    assert [(lacking[0], resumed) for _, lacking, resumed in calls] == [
        ("run/0", False),
        (ways(graph)[0].chain[0], False),
    ]


def test_what_cannot_be_gone_on_with_is_refused(
    graph: ControlGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of another graph, or by other options; or none."""
    output = tmp_path / "learned.json"
    monkeypatch.setattr(progressive, "learn", learner([], stop=1))
    with pytest.raises(KeyboardInterrupt):
        learn_in_parts(graph, output, LearnConfig())
    calls: list[Call] = []
    monkeypatch.setattr(progressive, "learn", learner(calls))
    way = ways(graph)[0]
    elsewhere, _ = moved(graph, way, way.leave, way.arrive - 1)
    for other, config in ((graph, LearnConfig(seed=2)), (elsewhere, LearnConfig())):
        with pytest.raises(GraphError, match=r"learned.parts.json: was begun with another graph or other options"):
            learn_in_parts(other, output, config, resume=True)
    with pytest.raises(GraphError, match="there is nothing to resume"):
        learn_in_parts(graph, tmp_path / "other.json", LearnConfig(), resume=True)
    assert not calls
    (tmp_path / "learned.part.learning" / STATE).unlink()  # as a kill before the first state leaves it
    learn_in_parts(graph, output, LearnConfig(), resume=True)
    assert [resumed for _, _, resumed in calls] == [False, False]
