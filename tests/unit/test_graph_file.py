"""Graph files: exact round trips, networkx as another reader, and one clear line for every kind of damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from graphs import random_graph

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.graph.body import character_of, check_character
from mocap2ctrl.graph.file import read_graph, write_graph
from mocap2ctrl.graph.fragments import ControlGraph


@pytest.fixture(scope="module")
def graph() -> ControlGraph:
    return random_graph(load_character())


@pytest.fixture
def file(graph: ControlGraph, tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    write_graph(graph, path)
    return path


def test_a_round_trip_keeps_every_bit(graph: ControlGraph, file: Path) -> None:
    again = read_graph(file)
    assert (again.character, again.gains, again.provenance) == (graph.character, graph.gains, graph.provenance)
    assert dict(again.successors) == dict(graph.successors)
    assert list(again.fragments) == list(graph.fragments)
    for name, fragment in graph.fragments.items():
        other = again.fragments[name]
        assert (other.name, other.skill, other.frame_s) == (fragment.name, fragment.skill, fragment.frame_s)
        for field in ("targets", "reference_root_position", "reference_root_orientation", "reference_angles"):
            np.testing.assert_array_equal(getattr(other, field), getattr(fragment, field), strict=True)
        assert (other.policy is None) == (fragment.policy is None)
        if fragment.policy is not None and other.policy is not None:
            for field in ("gain", "offset", "variance"):
                np.testing.assert_array_equal(getattr(other.policy, field), getattr(fragment.policy, field))


def test_written_twice_it_is_the_same_file(file: Path, tmp_path: Path) -> None:
    write_graph(read_graph(file), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


def test_networkx_reads_it_as_it_is(graph: ControlGraph, file: Path) -> None:
    read = networkx.node_link_graph(json.loads(file.read_text("utf-8")))
    assert type(read) is networkx.DiGraph
    assert list(read.nodes) == list(graph.fragments)
    assert {n: tuple(read.successors(n)) for n in read} == dict(graph.successors)
    np.testing.assert_array_equal(read.nodes["run/1"]["targets"], graph.fragments["run/1"].targets)
    assert networkx.is_strongly_connected(read)


def test_what_networkx_writes_is_read(graph: ControlGraph, file: Path, tmp_path: Path) -> None:
    read = networkx.node_link_graph(json.loads(file.read_text("utf-8")))
    read.remove_edge("walk/0", "run/2")
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(networkx.node_link_data(read, edges="edges")), "utf-8")
    assert read_graph(edited).successors["walk/0"] == ("walk/1",)


Damage = Callable[[dict[str, Any]], None]


def put(*path: Any, value: Any) -> Damage:
    """Damage: `value` at a place; a `KeyError` class as value takes it away."""

    def damage(data: dict[str, Any]) -> None:
        at: Any = data
        for step in path[:-1]:
            at = at[step]
        if value is KeyError:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return damage


DAMAGES = [
    pytest.param(put("graph", "format", value="control"), "graph.format is 'control'", id="another format"),
    pytest.param(put("graph", "version", value=2), "graph.version is 2; allowed is 1", id="a newer version"),
    pytest.param(put("graph", "version", value=True), "graph.version is True", id="a version that is no number"),
    pytest.param(put("graph", value=KeyError), "graph is missing", id="no head"),
    pytest.param(put("nodes", value=[]), "nodes is []", id="no fragments"),
    pytest.param(put("nodes", value=3), "nodes is 3; allowed is a list", id="nodes are no list"),
    pytest.param(put("nodes", 2, value=None), "nodes[2]: is None", id="a node is nothing"),
    pytest.param(put("directed", value=False), "directed is False", id="undirected"),
    pytest.param(put("graph", "gains", value=["a"]), "graph.gains is ['a']; allowed is locomotion", id="gains"),
    pytest.param(put("graph", "hinges", 0, value="x"), "graph.hinges is ", id="other hinges"),
    pytest.param(put("graph", "provenance", value=[]), "graph.provenance is []", id="provenance"),
    pytest.param(
        put("graph", "provenance", value={"x": float("nan")}), "graph.provenance holds NaN", id="NaN in provenance"
    ),
    pytest.param(put("graph", "character", "sha256", value="0" * 64), "hash 000000000000", id="another character"),
    pytest.param(
        put("graph", "character", "description", "format", value=9), "hash e03b7c66b7cd", id="broken character"
    ),
    pytest.param(put("nodes", 1, "id", value="walk/0"), "nodes[1].id is 'walk/0'", id="a name twice"),
    pytest.param(put("nodes", 1, "id", value="a\nb"), "nodes[1].id is 'a\\nb'", id="a name in two lines"),
    pytest.param(put("nodes", 1, "skill", value=""), "nodes[1].skill is ''", id="no skill"),
    pytest.param(put("nodes", 1, "frame_s", value=0.007), "frame_s is 0.007; allowed is a multiple of 5", id="7 ms"),
    pytest.param(put("nodes", 1, "frame_s", value=-0.005), "frame_s is -0.005", id="negative time"),
    pytest.param(put("nodes", 1, "targets", value=[]), "nodes[1].targets has shape (0,)", id="no targets"),
    pytest.param(put("nodes", 1, "targets", 0, 0, value=float("nan")), "nodes[1].targets holds NaN", id="NaN"),
    pytest.param(put("nodes", 1, "targets", 0, 0, value=None), "nodes[1].targets is no table", id="null"),
    pytest.param(put("nodes", 1, "targets", 0, 0, value="0.1"), "nodes[1].targets is no table", id="a text"),
    pytest.param(put("nodes", 1, "targets", 0, value=[1.0]), "nodes[1].targets is no table", id="a short row"),
    pytest.param(
        put("nodes", 1, "reference", "angles", 0, value=KeyError),
        "nodes[1].reference.angles has shape",
        id="a row less",
    ),
    pytest.param(
        put("nodes", 1, "reference", "root_orientation_wxyz", 0, value=[2.0, 0, 0, 0]),
        "nodes[1].reference.root_orientation_wxyz is 'not of length 1'",
        id="a quaternion of length 2",
    ),
    pytest.param(put("nodes", 1, "policy", value={"gain": []}), "nodes[1].policy.variance is missing", id="policy"),
    pytest.param(
        put("nodes", 1, "policy", value={"gain": [[0.0]], "offset": [0.0] * 11, "variance": [1.0] * 11}),
        "nodes[1].policy.gain has shape (1, 1); expected (11, 18)",
        id="a small gain",
    ),
    pytest.param(
        put("nodes", 1, "policy", value={"gain": [[0.0] * 18] * 11, "offset": [0.0] * 11, "variance": [-1.0] * 11}),
        "nodes[1].policy.variance is -1.0",
        id="a negative variance",
    ),
    pytest.param(put("edges", 0, "target", value="jump/0"), "edges[0].target is 'jump/0'", id="unknown successor"),
    pytest.param(put("edges", 1, "source", value=4), "edges[1].source is 4; allowed is a text", id="a number as end"),
    pytest.param(put("edges", 1, value={"source": "walk/0", "target": "walk/1"}), "edges[1].target", id="edge twice"),
]


@pytest.mark.parametrize(("damage", "expected"), DAMAGES)
def test_damage_is_named_in_one_line(file: Path, damage: Damage, expected: str) -> None:
    data = json.loads(file.read_text("utf-8"))
    damage(data)
    file.write_text(json.dumps(data), "utf-8")
    with pytest.raises(GraphError) as caught:
        read_graph(file)
    assert expected in str(caught.value)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "cannot be read"),
        (b"[]", "is []; expected an object"),
        (b"", "not valid"),
    ],
)
def test_what_is_no_graph_at_all(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(content)
    with pytest.raises(GraphError, match=expected.replace("[", r"\[")):
        read_graph(path)
    with pytest.raises(GraphError, match="no such file"):
        read_graph(tmp_path / "none.json")


def test_a_half_written_file_is_refused(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(GraphError, match="not valid JSON"):
        read_graph(file)


def test_a_graph_belongs_to_its_character(graph: ControlGraph, file: Path) -> None:
    assert character_of(read_graph(file)).height_m == load_character().height_m
    taller: Character = load_character(height_m=1.9)
    with pytest.raises(GraphError, match="export the graph again"):
        check_character(graph, taller)
    with pytest.raises(GraphError, match="hash"):
        write_graph(replace(graph, description=taller.description), file)


def test_a_graph_that_cannot_be_written_leaves_the_old_file(graph: ControlGraph, file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(ValueError, match="JSON compliant"):
        write_graph(replace(graph, provenance={"x": float("nan")}), file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_folder_is_no_graph_and_says_who_makes_one(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="is a folder, not a graph's file; export-graph"):
        read_graph(tmp_path)
