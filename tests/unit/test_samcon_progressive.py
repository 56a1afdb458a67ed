"""Learning in parts: which they are, what each is learned with, and that an interruption loses one at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from mocap2ctrl.graph.ways import moved, rings, ways
from mocap2ctrl.samcon import progressive
from mocap2ctrl.samcon.checkpoint import STATE
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


def learner(made: list[Call], stop: int = -1) -> Callable[..., Learned]:
    def learn(graph: ControlGraph, output: Path, config: LearnConfig, *, resume: bool = False, **_: Any) -> Learned:
        lacking = [name for name, fragment in graph.fragments.items() if fragment.policy is None]
        made.append((next(iter(graph.fragments)), lacking, resume))
        folder = output.with_suffix(".learning")
        if len(made) - 1 == stop:
            folder.mkdir()
            write_json(folder / STATE, {})
            raise KeyboardInterrupt
        for way in ways(graph):
            if way.chain[0] in lacking:
                graph, _ = moved(graph, way, way.leave, way.arrive - 1)
        fragments = {name: replace(f, policy=f.policy or policy(len(made))) for name, f in graph.fragments.items()}
        done = replace(graph, fragments=fragments, provenance={"learning": {"call": len(made)}})
        write_graph(done, output)
        if folder.is_dir():
            (folder / STATE).unlink()
            folder.rmdir()
        return Learned(done, (), (1.5,))

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
    assert {f.skill: float(f.policy.gain[0, 0]) for f in found.fragments.values() if f.policy} == {
        "walk": 1.0,
        "run": 2.0,
        "walk-run": 3.0,
        "run-walk": 3.0,
    }
    for before, after in zip(ways(graph), ways(found), strict=True):
        size = len(rings(graph)[before.target])
        assert (after.leave, after.arrive) == (before.leave, (before.arrive - 1) % size)
    assert done.core_s == (1.5, 1.5, 1.5)
    assert [how["learning"]["call"] for how in found.provenance["parts"].values()] == [1, 2, 3]  # type: ignore[attr-defined]
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
    interrupted = made[-1][0]
    again: list[Call] = [("", [], False)] * stop  # so that policies have the numbers of the first call
    monkeypatch.setattr(progressive, "learn", learner(again))
    learn_in_parts(graph, output, LearnConfig(), resume=True)
    assert [resumed for _, _, resumed in again[stop:]] == [True, False, False][: 3 - stop]
    assert again[stop][0] == interrupted
    assert read_graph(output).fragments.keys() == read_graph(whole).fragments.keys()
    for name, fragment in read_graph(output).fragments.items():
        expected = read_graph(whole).fragments[name].policy
        assert fragment.policy is not None
        assert expected is not None
        assert (fragment.policy.gain == expected.gain).all()
    assert read_graph(output).successors == read_graph(whole).successors
    assert not resumable(output)


def test_a_part_that_was_learned_but_not_put_in_is_not_learned_again(
    graph: ControlGraph, calls: list[Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "learned.json"
    monkeypatch.setattr(progressive, "_merged", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        learn_in_parts(graph, output, LearnConfig())
    monkeypatch.undo()
    monkeypatch.setattr(progressive, "learn", learner(calls))
    assert resumable(output)
    learn_in_parts(graph, output, LearnConfig(), resume=True)
    assert [lacking[0] for _, lacking, _ in calls] == ["walk/0", "run/0", ways(graph)[0].chain[0]]


def test_another_graph_s_parts_are_refused(
    graph: ControlGraph, calls: list[Call], character: Character, tmp_path: Path
) -> None:
    output = tmp_path / "learned.json"
    write_graph(build_graph(two_skills(character)[:1], [], character).graph, output.with_suffix(".parts.json"))
    with pytest.raises(GraphError, match=r"learned.parts.json: was begun with another graph"):
        learn_in_parts(graph, output, LearnConfig(), resume=True)
    assert not calls


@pytest.mark.parametrize("name", ["learned.parts.json", "learned.part.json"])
def test_damaged_parts_are_told_with_what_to_do(
    name: str, graph: ControlGraph, calls: list[Call], tmp_path: Path
) -> None:
    (tmp_path / name).write_text("{")
    with pytest.raises(GraphError, match=rf"{name}: not valid JSON.*--overwrite"):
        learn_in_parts(graph, tmp_path / "learned.json", LearnConfig(), resume=True)
    assert not calls
