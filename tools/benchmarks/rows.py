"""Rows of measured numbers, and how tables of them are printed."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import EngineError
from mocap2ctrl.simulation.choose import ENGINES, make_engine
from mocap2ctrl.simulation.engine import Engine

PROJECT = Path(__file__).resolve().parents[2]
SHARED = PROJECT.parent / "shared" / "data"
"""Test data that the project does not ship; tables leave out what is absent."""
CACHE = PROJECT / "captures" / "benchmark"
"""What tables render or derive, kept from run to run."""
SPLIT = " | "
BIGGER_IS_BETTER = ("overlap", "real time", "speed-up", "undisturbed", "pushed", "stays up")
"""Words in the names of quantities whose worst value is the smallest."""
FALLS = "falls"
"""A quantity that is 1 or 0, and is printed as a count."""


@dataclass(frozen=True)
class Row:
    """One measured number."""

    name: str
    engine: str
    value: float | None
    unit: str
    seed: int | None


@dataclass(frozen=True)
class Table:
    """A table of the benchmark.

    Attributes:
        rows: measures them, one after the other.
        heads: of the columns that a row's name splits into; none where each name is a line of its own.
        across: quantities are lines and experiments columns, not the other way round.
        clips: names that `--clips` may choose from.
        note: printed below.
    """

    rows: Callable[[argparse.Namespace], Iterator[Row]]
    heads: tuple[str, ...] = ()
    across: bool = False
    clips: tuple[str, ...] = ()
    note: str = ""


def engine_names(options: argparse.Namespace) -> tuple[str, ...]:
    """The engines that were asked for, or all."""
    return tuple(options.engine or ENGINES)


def engine_or_none(name: str, character: Character) -> Engine | None:
    """The engine called `name`, or None where it, or its library, is not there."""
    try:
        return make_engine(name, character)
    except (EngineError, ImportError) as error:
        print(f"{name}: left out, {error}", file=sys.stderr)
        return None


def measured_before(results: Path | None) -> set[tuple[str, int]]:
    """Names, up to the first split, and seeds of the rows in a file of results."""
    if results is None or not results.is_file():
        return set()
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    return {(row["name"].split(SPLIT, 1)[0], row["seed"]) for row in rows}


def print_table(table: Table, rows: list[Row]) -> None:
    """Markdown."""
    if not table.heads:
        _print_lines(rows)
    else:
        _print_grid(table, rows)
    if table.note:
        print(f"\n{table.note}")


def _print_lines(rows: list[Row]) -> None:
    """For each number its median and worst over seeds."""
    print("| | engine | median | worst | unit | seeds |\n|---|---|---|---|---|---|")
    for name, engine in dict.fromkeys((row.name, row.engine) for row in rows):
        same = [row for row in rows if (row.name, row.engine) == (name, engine)]
        values = [row.value for row in same if row.value is not None]
        seeds = ", ".join(str(row.seed) for row in same if row.seed is not None) or "–"
        worst = min if any(word in name for word in BIGGER_IS_BETTER) else max
        cells = (f"{statistics.median(values):.2f}", f"{worst(values):.2f}") if values else ("–", "–")
        print(f"| {name} | {engine} | {cells[0]} | {cells[1]} | {same[0].unit} | {seeds} |")


def _print_grid(table: Table, rows: list[Row]) -> None:
    """Rows whose names are `experiment | … | quantity`."""
    split = [(row, *row.name.rsplit(SPLIT, 1)) for row in rows]
    experiments = list(dict.fromkeys(experiment for _, experiment, _ in split))
    quantities = {quantity: row.unit for row, _, quantity in split}
    cells = {
        (e, q): cell(q, [row.value for row, experiment, quantity in split if (experiment, quantity) == (e, q)])
        for e in experiments
        for q in quantities
    }
    named = {q: f"{q}, {unit}".rstrip(", ") for q, unit in quantities.items()}
    if table.across:
        _print_markdown(
            [*table.heads, *experiments], [[named[q], *(cells[e, q] for e in experiments)] for q in quantities]
        )
    else:
        heads = [*table.heads, *named.values()]
        _print_markdown(heads, [[*e.split(SPLIT), *(cells[e, q] for q in quantities)] for e in experiments])


def cell(quantity: str, values: list[float | None]) -> str:
    """The median over seeds and, in brackets, the worst; a count of falls; a dash where nothing was measured."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    if quantity == FALLS:
        return f"{sum(value > 0 for value in known)} of {len(known)}"
    median = _digits(statistics.median(known))
    if len(known) == 1:
        return median
    worst = min if any(word in quantity for word in BIGGER_IS_BETTER) else max
    return f"{median} ({_digits(worst(known))})"


def _digits(value: float) -> str:
    """Three of them, without an exponent."""
    rounded = float(f"{value:.3g}")
    return f"{value:.3g}" if abs(rounded) < 1000 else f"{rounded:,.0f}"


def _print_markdown(heads: list[str], lines: list[list[str]]) -> None:
    for line in (heads, ["---"] * len(heads), *lines):
        print("| " + " | ".join(line) + " |")
