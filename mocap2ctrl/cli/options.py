"""Option types that several commands share; each says in one line what is allowed."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def number(low: float, high: float) -> Callable[[str], float]:
    """A type for argparse: a finite number from `low` to `high`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r}: allowed is a number from {low:g} to {high:g}")
        return value

    return parse


def whole(low: int, high: int) -> Callable[[str], int]:
    """A type for argparse: a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r}: allowed is a whole number from {low} to {high}")
        return value

    return parse


def given(text: str) -> str:
    """A type for argparse: a name that is not empty, as that of a shell's unset variable is."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; give a name")
    return text


def engine_name(text: str) -> str:
    """A type for argparse: the name of an engine, as people write it."""
    return given(text).lower()


def add_slowmo(parser: argparse._ActionsContainer) -> None:
    """Declares `--slowmo`."""
    parser.add_argument(
        "--slowmo",
        type=number(1, 1000),
        metavar="F",
        help="the video plays F times slower than life: shot at 240 frames a second, played at 30: 8 (default: what the file says)",
    )


def add_environment(parser: argparse.ArgumentParser) -> None:
    """The option `--environment`."""
    parser.add_argument(
        "--environment",
        type=given,
        metavar="NAME|FILE",
        help="simulate there: slope-up, slope-down, stairs, curb, ice, skis, mass-in-hand, trampoline, moving-belt, ship, moon, or "
        "a TOML file; see docs/environments.md (default: level ground)",
    )


def add_engine(parser: argparse.ArgumentParser, made: str = "fitted") -> None:
    """The option `--engine` of what simulates a controller that was fitted, or `made` otherwise."""
    parser.add_argument(
        "--engine",
        type=engine_name,
        help=f"mujoco or bullet: simulate in this engine instead of the one it was {made} in",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else on stdout")


def add_person(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The options `--person` and `--masks`."""
    parser.add_argument(
        "--person",
        metavar="X,Y[@T]",
        help="which one, if there are several: a point on or beside the person, in pixels of the input's picture from its top "
        "left corner, T seconds from the input's start (default: in the first frame in which the most people are seen)",
    )
    parser.add_argument(
        "--masks",
        action="store_true",
        help="the video holds masks, white = person (default: if it is black and white, or has an alpha channel)",
    )


def print_json(values: dict[str, Any]) -> None:
    """One JSON object on stdout; NaN and infinity become null."""
    print(json.dumps({k: _plain(v) for k, v in values.items()}))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def note(text: str) -> None:
    """A line for the person at the terminal, on stderr."""
    print(text, file=sys.stderr)
