"""`graph.json`: a control graph as networkx's node-link data of a DiGraph, checked wholly at the door.

A node is a fragment, an edge says what may follow; `networkx.node_link_graph(json.load(file))` reads it as it is. Units are
named in the file. Numbers survive a round trip to the bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import GraphError, Mocap2CtrlError
from mocap2ctrl.files import write_text
from mocap2ctrl.graph.body import character_of
from mocap2ctrl.graph.fragments import (
    ACTION_FEATURES,
    FEET,
    STATE_FEATURES,
    ControlFragment,
    ControlGraph,
    FeedbackPolicy,
)
from mocap2ctrl.simulation.engine import PD_TIME_STEP_S
from mocap2ctrl.simulation.pd_gains import GAIN_SETS
from mocap2ctrl.types import Array, frozen_array

FORMAT = "mocap2ctrl control graph"
VERSION = 1
UNITS = {
    "frame_s": "s",
    "targets": "rad, one row each frame_s, hinges in the order of `hinges`",
    "reference": "m, quaternions wxyz, rad; a row at the begin and after each target",
    "policy": "a = gain s + offset; a: rad; s: rad, m, m/s, kg m^2/s, see docs/graph.md",
    "variance": "rad^2, the diagonal of Sigma",
}
LONGEST_FRAME_S = 10.0
FIRST_BYTES = 4096
"""Of a file, in which a motion of DeepMimic has its key "Frames"; a graph has none."""


def is_graph_file(path: Path) -> bool:
    """Whether a file is meant to be a graph: its name ends in .json, and it is no motion of DeepMimic, which does, too."""
    if path.suffix.lower() != ".json" or path.is_dir():
        return False
    try:
        with path.open("rb") as file:
            return b'"Frames"' not in file.read(FIRST_BYTES)
    except OSError:
        return True


def write_graph(graph: ControlGraph, path: Path) -> None:
    """Writes `graph` to `path`, whole or not at all."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "units": UNITS,
        "character": {"sha256": graph.character, "description": graph.description},
        "hinges": list(character_of(graph).hinge_names),
        "gains": graph.gains,
        "provenance": graph.provenance,
    }
    nodes = [_fragment_to_data(fragment) for fragment in graph.fragments.values()]
    edges = [{"source": name, "target": other} for name in graph.fragments for other in graph.successors.get(name, ())]
    write_text(
        path,
        f'{{"directed": true, "multigraph": false,\n"graph": {_json(head)},\n'
        f'"nodes": {_lines(nodes)},\n"edges": {_lines(edges)}}}\n',
    )


def _fragment_to_data(fragment: ControlFragment) -> dict[str, Any]:
    policy = fragment.policy
    return {
        "id": fragment.name,
        "skill": fragment.skill,
        "frame_s": fragment.frame_s,
        **({} if fragment.touchdown is None else {"touchdown": fragment.touchdown}),
        "targets": fragment.targets.tolist(),
        "reference": {
            "root_position": fragment.reference_root_position.tolist(),
            "root_orientation_wxyz": fragment.reference_root_orientation.tolist(),
            "angles": fragment.reference_angles.tolist(),
        },
        "policy": None
        if policy is None
        else {"gain": policy.gain.tolist(), "offset": policy.offset.tolist(), "variance": policy.variance.tolist()},
    }


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _lines(values: list[dict[str, Any]]) -> str:
    """A list in JSON, one entry a line."""
    return "[\n" + ",\n".join(_json(value) for value in values) + "\n]"


def read_graph(path: Path) -> ControlGraph:
    """Reads and checks a graph.

    Raises:
        GraphError: unreadable, of another format or version, or something in it does not hold together; says what and where.
    """
    if path.is_dir():
        raise GraphError(f"{path}: is a folder, not a graph's file; export-graph makes a graph of a capture")
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise GraphError(f"{path}: no such file; export-graph and learn write one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise GraphError(f"{path}: cannot be read ({error})") from error
    except (ValueError, RecursionError) as error:
        raise GraphError(f"{path}: not valid JSON: {error}") from error
    return _graph_from_data(_Entry(data, str(path)))


def _graph_from_data(root: _Entry) -> ControlGraph:
    head = root.child("graph")
    head.expect("format", lambda v: v == FORMAT, repr(FORMAT))
    head.expect("version", lambda v: v == VERSION and v is not True, f"{VERSION}, which this mocap2ctrl reads")
    root.expect("directed", lambda v: v is True, "true")
    root.expect("multigraph", lambda v: v is False, "false")
    body = head.child("character")
    description, provenance = body.value("description"), head.value("provenance")
    for entry, name, value in ((body, "description", description), (head, "provenance", provenance)):
        entry.expect(name, lambda v: isinstance(v, dict), "an object with names")
        entry.refuse_nan(name, value)
    graph = ControlGraph(
        character=body.text("sha256"),
        gains=head.expect("gains", lambda v: isinstance(v, str) and v in GAIN_SETS, " or ".join(GAIN_SETS)),
        fragments={},
        successors={},
        provenance=provenance,
        description=description,
    )
    character = character_of(graph, root.place)
    names = list(character.hinge_names)
    head.expect("hinges", lambda v: v == names, "the character's own hinges in their order")
    fragments = _fragments(root, character)
    return replace(graph, fragments=fragments, successors=_successors(root, fragments))


def _fragments(root: _Entry, character: Character) -> dict[str, ControlFragment]:
    fragments: dict[str, ControlFragment] = {}
    for node in root.children("nodes"):
        fragment = _fragment(node, len(character.hinges))
        if fragment.name in fragments:
            node.fail("id", fragment.name, "a name that no other node has")
        fragments[fragment.name] = fragment
    if not fragments:
        root.fail("nodes", [], "a list of at least one fragment")
    return fragments


def _fragment(node: _Entry, joints: int) -> ControlFragment:
    targets = node.array("targets", (None, joints))
    frames = len(targets)
    if frames == 0:
        node.fail("targets", [], "at least one row")
    reference = node.child("reference")
    orientation = reference.array("root_orientation_wxyz", (frames + 1, 4))
    if np.any(np.abs(np.linalg.norm(orientation, axis=1) - 1.0) > 1e-6):
        reference.fail("root_orientation_wxyz", "not of length 1", "quaternions of length 1")
    return ControlFragment(
        name=node.text("id"),
        skill=node.text("skill"),
        frame_s=_frame_s(node),
        targets=targets,
        reference_root_position=reference.array("root_position", (frames + 1, 3)),
        reference_root_orientation=orientation,
        reference_angles=reference.array("angles", (frames + 1, joints)),
        policy=None if node.value("policy") is None else _policy(node.child("policy")),
        touchdown=_touchdown(node),
    )


def _touchdown(node: _Entry) -> str | None:
    """The foot that a fragment waits for; files of older versions have none."""
    if not node.has("touchdown"):
        return None
    return str(
        node.expect("touchdown", lambda v: isinstance(v, str) and v in FEET, f"{' or '.join(FEET)}, or left out")
    )


def _frame_s(node: _Entry) -> float:
    def fits(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST_FRAME_S:
            return False
        steps = value / PD_TIME_STEP_S
        return round(steps) >= 1 and abs(steps - round(steps)) < 1e-6

    step_ms = 1000 * PD_TIME_STEP_S
    return float(node.expect("frame_s", fits, f"a multiple of {step_ms:g} ms, up to {LONGEST_FRAME_S:g} s"))


def _policy(entry: _Entry) -> FeedbackPolicy:
    variance = entry.array("variance", (ACTION_FEATURES,))
    if np.any(variance < 0):
        entry.fail("variance", float(np.min(variance)), "numbers from 0")
    return FeedbackPolicy(
        gain=entry.array("gain", (ACTION_FEATURES, STATE_FEATURES)),
        offset=entry.array("offset", (ACTION_FEATURES,)),
        variance=variance,
    )


def _successors(root: _Entry, fragments: Mapping[str, ControlFragment]) -> dict[str, tuple[str, ...]]:
    after: dict[str, tuple[str, ...]] = {name: () for name in fragments}
    for edge in root.children("edges"):
        ends = [edge.text(end) for end in ("source", "target")]
        for end, name in zip(("source", "target"), ends, strict=True):
            if name not in fragments:
                edge.fail(end, name, "the id of a node")
        source, target = ends
        if target in after[source]:
            edge.fail("target", target, f"an edge from {source!r} that does not stand there twice")
        after[source] += (target,)
    return after


class _Entry:
    """One JSON object; every failure says file, place, what was given and what is allowed."""

    def __init__(self, data: Any, place: str) -> None:
        self.place = place
        if not isinstance(data, dict):
            raise GraphError(f"{place}: is {_short(data)}; expected an object with names")
        self._data: dict[str, Any] = data

    def _at(self, name: str) -> str:
        return f"{self.place}: {name}" if ": " not in self.place else f"{self.place}.{name}"

    def fail(self, name: str, given: Any, allowed: str) -> None:
        raise GraphError(f"{self._at(name)} is {_short(given)}; allowed is {allowed}")

    def has(self, name: str) -> bool:
        return name in self._data

    def value(self, name: str) -> Any:
        if name not in self._data:
            raise GraphError(f"{self._at(name)} is missing")
        return self._data[name]

    def expect(self, name: str, fits: Callable[[Any], bool], allowed: str) -> Any:
        value = self.value(name)
        if not fits(value):
            self.fail(name, value, allowed)
        return value

    def child(self, name: str) -> _Entry:
        return _Entry(self.value(name), self._at(name))

    def children(self, name: str) -> list[_Entry]:
        self.expect(name, lambda v: isinstance(v, list), "a list")
        return [_Entry(value, f"{self._at(name)}[{i}]") for i, value in enumerate(self._data[name])]

    def text(self, name: str) -> str:
        return str(
            self.expect(name, lambda v: isinstance(v, str) and v != "" and v.isprintable(), "a text in one line")
        )

    def array(self, name: str, shape: tuple[int | None, ...]) -> Array:
        value = self.value(name)
        try:
            if np.asarray(value).dtype.kind not in "if":
                raise ValueError
            return frozen_array(value, shape, self._at(name))
        except Mocap2CtrlError as error:
            raise GraphError(str(error)) from error
        except ValueError as error:
            raise GraphError(f"{self._at(name)} is no table of numbers with rows of one length") from error

    def refuse_nan(self, name: str, value: Any) -> None:
        try:
            _json(value)
        except ValueError as error:
            raise GraphError(f"{self._at(name)} holds NaN or infinity, which JSON does not have") from error


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
