"""A control graph for another body (Liu 2016, §6.1, "retargeting"): where its learning begins, not what it can do yet."""

from __future__ import annotations

from dataclasses import replace

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError
from mocap2ctrl.graph.body import character_of, digest
from mocap2ctrl.graph.fragments import ControlFragment, ControlGraph


def retargeted(graph: ControlGraph, character: Character) -> ControlGraph:
    """The graph with `character` instead of its own, and without policies.

    "We simply re-run the pipeline on the new character, with the open-loop clip refinement step warm-started from the results built
    for our default character": targets and poses are those of the graph, heights and travel grow with the root's height in the zero
    pose.

    Raises:
        GraphError: the two have other hinges.
    """
    own = character_of(graph)
    if character.hinge_names != own.hinge_names:
        other = [name for name in own.hinge_names if name not in character.hinge_names]
        more = [name for name in character.hinge_names if name not in own.hinge_names]
        what = (
            f"lacks {', '.join(other)}"
            if other
            else f"has {', '.join(more)} besides"
            if more
            else "has them in another order"
        )
        raise GraphError(
            f"the character {character.name!r} {what}; a graph's targets are for the hinges of its own: give one with the same"
        )
    scale = character.standing_height_m / own.standing_height_m
    return replace(
        graph,
        character=digest(character),
        description=character.description,
        fragments={name: _scaled(fragment, scale) for name, fragment in graph.fragments.items()},
        provenance={**graph.provenance, "retargeted_from": {"character": graph.character, "scale": scale}},
    )


def _scaled(fragment: ControlFragment, scale: float) -> ControlFragment:
    return replace(fragment, reference_root_position=scale * fragment.reference_root_position, policy=None)
