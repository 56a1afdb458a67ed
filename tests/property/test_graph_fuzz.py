"""Whatever happens to a graph's file, reading it gives a graph or a `GraphError` in one line, nothing else."""

from __future__ import annotations

from pathlib import Path

from graphs import random_graph
from mutations import survive

from mocap2ctrl.character.model import load_character
from mocap2ctrl.errors import GraphError, MotionFileError
from mocap2ctrl.graph.file import read_graph, write_graph
from mocap2ctrl.graph.fragments import ControlGraph


def test_mutants(tmp_path: Path) -> None:
    """Small fragments, so that names, edges and the head are hit as often as numbers."""
    path = tmp_path / "f.file"
    seeds = []
    for seed in range(2):
        write_graph(random_graph(load_character(), seed, frames=1), path)
        seeds.append(path.read_bytes())

    def parse(data: bytes, name: str) -> ControlGraph:
        path.write_bytes(data)
        try:
            return read_graph(path)
        except GraphError as error:
            raise MotionFileError(str(error)) from error  # the one that `survive` knows

    tally = survive(parse, seeds, 250)
    assert tally.refused > 100
    assert tally.read > 10
