"""What is told of a fit that cannot be gone on with: the settings that are not those it was begun with, by name."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.fit.capture import load_settings
from mocap2ctrl.fit.config import BEYOND_GROWTH, FitConfig

MOST = 4
"""Differences that are named."""
UNRELATED = ("--resume", "--overwrite", "--workers", "--scheduler", "--json", "-o", "--output", "--reference")
"""Options that a fit does not depend on."""
MAY_COME_LATER = tuple(f"--{name}" for name in BEYOND_GROWTH)
"""Options of which a fit may be begun without any."""


def other_settings(folder: Path, config: FitConfig, run: Mapping[str, Any]) -> str:
    """A sentence that names what differs from the settings with which the fit in `folder` was begun."""
    why = differing(folder, config, run) or "the input's content, its camera or the version is another"
    return f"{folder}: was begun with other input, settings or version ({why}); resume with the same ones, or use --overwrite"


def differing(folder: Path, config: FitConfig, run: Mapping[str, Any]) -> str:
    """The settings that are not those of the fit in `folder`, with both values; empty where none is known to differ."""
    try:
        was, begun = load_settings(folder)
    except Mocap2CtrlError:
        was, begun = {}, config
    words = [_words(str(of.get("command", ""))) for of in (was, run)]
    if not begun.beyond_growth:
        config = config.grown()
        words = [{name: value for name, value in of.items() if name not in MAY_COME_LATER} for of in words]
    named = _differences(*words)
    if not named:  # not by the command line
        options = [name for name in run if name not in ("command", "track_key")]
        named = _differences({n: was.get(n, run[n]) for n in options}, {n: run[n] for n in options})
        named += _differences(_flat(asdict(begun)), _flat(asdict(config)))
    more = f" and {len(named) - MOST} more" if len(named) > MOST else ""
    return ", ".join(named[:MOST]) + more


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Of each name that has another value, both values."""
    names = [*now, *(name for name in was if name not in now)]
    told = {name: [_told(of.get(name)) for of in (was, now)] for name in names}
    return [f"{name} was {before} and is {after}" for name, (before, after) in told.items() if before != after]


def _told(value: Any) -> str:
    if value is None or value == ():
        return "not given"
    return f"{value:g}" if isinstance(value, float) else str(list(value) if isinstance(value, tuple) else value)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        result |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return result


def _words(command: str) -> dict[str, Any]:
    """The input and the options of a command line, but for those that a fit does not depend on."""
    result: dict[str, Any] = {}
    name = "the input"
    for word in shlex.split(command)[2:]:
        if word.startswith("-") and not word[1:2].isdigit():
            name, _, value = word.partition("=")
            result[name] = (_plain(value),) if value else ()
        else:
            result[name] = (*result.get(name, ()), _plain(word))
    return {n: " ".join(words) or "given" for n, words in result.items() if n not in UNRELATED}


def _plain(word: str) -> str:
    """A number in its shortest form, so that it is the same however it was typed; other words as they are."""
    try:
        return f"{float(word):.12g}"
    except ValueError:
        return word
