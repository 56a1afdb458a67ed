"""What a damaged state of an interrupted learning says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graphs import random_graph

from mocap2ctrl.character.model import load_character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.samcon.checkpoint import STATE, Checkpoint, CheckpointFolder
from mocap2ctrl.samcon.learn import LearnConfig


@pytest.mark.parametrize(
    "damage",
    [{"files": {}}, {"files": {"graph": "graph-0.json"}}, {"files": 3}, {"core_s": None}, {"history": [1]}],
)
def test_a_damaged_state_is_told(damage: dict[str, object], tmp_path: Path) -> None:
    graph = random_graph(load_character())
    folder = CheckpointFolder(tmp_path / "learned.json", graph, LearnConfig())
    folder.save(Checkpoint(graph, graph, (), (1.0,)))
    assert folder.load().core_s == (1.0,)
    file = tmp_path / "learned.learning" / STATE
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | damage), "utf-8")
    with pytest.raises(GraphError, match=r"is damaged.*--overwrite"):
        folder.load()


@pytest.mark.parametrize("left", [None, "{"])
def test_a_damaged_graph_is_told_with_what_to_do(left: str | None, tmp_path: Path) -> None:
    graph = random_graph(load_character())
    folder = CheckpointFolder(tmp_path / "learned.json", graph, LearnConfig())
    folder.save(Checkpoint(graph, graph, (), (1.0,)))
    file = tmp_path / "learned.learning" / "best-0.json"
    file.unlink() if left is None else file.write_text(left, "utf-8")
    with pytest.raises(GraphError, match=r"cannot go on \(.*best-0.json: .*--overwrite"):
        folder.load()
