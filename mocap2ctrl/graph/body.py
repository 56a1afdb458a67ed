"""For whom a control graph is: its character, and the content hash that tells one character from another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from mocap2ctrl.character.model import Character, load_character, parse_character
from mocap2ctrl.errors import CharacterError, GraphError
from mocap2ctrl.graph.fragments import ControlGraph


def digest(character: Character) -> str:
    """SHA-256 of the character's description, height and mass included, in hexadecimal."""
    return _digest(character.description)


def _digest(description: Mapping[str, object]) -> str:
    content = json.dumps(description, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(content.encode()).hexdigest()


def character_of(graph: ControlGraph, source: str = "the graph") -> Character:
    """The character that a graph's fragments drive; `source` is named in errors.

    Raises:
        GraphError: its description is damaged, or is not the one whose hash the graph holds.
    """
    if graph.description and _digest(graph.description) != graph.character:
        raise GraphError(
            f"{source}: is for a character with the hash {graph.character[:12]}…, but describes one with "
            f"{_digest(graph.description)[:12]}…: export the graph again"
        )
    try:
        character = parse_character(graph.description, source) if graph.description else load_character()
    except (CharacterError, AttributeError) as error:
        raise GraphError(f"{source}: its character cannot be used: {error}") from error
    check_character(graph, character, source)
    return character


def check_character(graph: ControlGraph, character: Character, source: str = "the graph") -> None:
    """Whether a graph is for `character`.

    Raises:
        GraphError: it is for another one.
    """
    if graph.character != digest(character):
        raise GraphError(
            f"{source}: is for a character with the hash {graph.character[:12]}…; this one, {character.name!r} of "
            f"{character.height_m:g} m and {character.mass_kg:g} kg, has {digest(character)[:12]}…: export the graph again for it"
        )
