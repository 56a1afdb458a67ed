"""What an interrupted learning goes on from: a folder beside its output, each state of which is whole or absent."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mocap2ctrl.errors import GraphError
from mocap2ctrl.files import write_arrays, write_json
from mocap2ctrl.graph.file import read_graph, write_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.samcon.guided import Iteration
from mocap2ctrl.types import Array

if TYPE_CHECKING:
    from mocap2ctrl.samcon.learn import LearnConfig

STATE = "state.json"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """After an iteration.

    Attributes:
        graph: with the latest policies.
        best: with those of the best iteration.
        history: of all iterations.
        tuples: of each fragment the pairs (states (N, 18), actions (N, 11)) of the iterations that are remembered.
        core_s: processor seconds so far, see `Learned`.
    """

    graph: ControlGraph
    best: ControlGraph
    history: tuple[Iteration, ...]
    tuples: Mapping[str, Sequence[tuple[Array, Array]]]
    core_s: tuple[float, ...]


class CheckpointFolder:
    """`learned.learning/` beside `learned.json`. `state.json` names the other files, and is written last."""

    def __init__(self, output: Path, graph: ControlGraph, config: LearnConfig) -> None:
        """For learning `graph` by `config`; what another task has left is refused by `load`."""
        self.path = output.with_suffix(".learning")
        self._output = output
        self._key = _key(graph, config)

    def save(self, state: Checkpoint) -> None:
        """Writes a state, then removes the one before."""
        self.path.mkdir(parents=True, exist_ok=True)
        number = len(state.history)
        names = {"graph": f"graph-{number}.json", "best": f"best-{number}.json", "tuples": f"tuples-{number}.npz"}
        write_graph(state.graph, self.path / names["graph"])
        write_graph(state.best, self.path / names["best"])
        fragments = list(state.tuples)
        arrays = {
            f"{fragments.index(name)}.{i}.{what}": values
            for name, pairs in state.tuples.items()
            for i, pair in enumerate(pairs)
            for what, values in zip("sa", pair, strict=True)
        }
        write_arrays(self.path / names["tuples"], arrays)
        counts = {name: len(pairs) for name, pairs in state.tuples.items()}
        history = [asdict(iteration) for iteration in state.history]
        write_json(
            self.path / STATE,
            {"key": self._key, "files": names, "tuples": counts, "history": history, "core_s": state.core_s},
        )
        for file in self.path.iterdir():
            if file.name not in (STATE, *names.values()):
                file.unlink()

    def load(self) -> Checkpoint:
        """The latest state.

        Raises:
            GraphError: there is none, it is damaged, or it is another task's.
        """
        try:
            data: dict[str, Any] = json.loads((self.path / STATE).read_text("utf-8"))
            if data["key"] != self._key:
                raise GraphError(
                    f"{self.path}: was begun with another graph or other options; give the same, or begin anew with --overwrite"
                )
            files = {what: self.path / name for what, name in data["files"].items()}
            with np.load(files["tuples"], allow_pickle=False) as arrays:
                tuples = {
                    name: [(arrays[f"{n}.{i}.s"], arrays[f"{n}.{i}.a"]) for i in range(count)]
                    for n, (name, count) in enumerate(data["tuples"].items())
                }
            history = tuple(Iteration(**entry) for entry in data["history"])
        except FileNotFoundError as error:
            raise GraphError(
                f"{self._output}: there is nothing to resume; {self.path.name} is not there, or is incomplete"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise GraphError(f"{self.path}: is damaged ({error}); begin anew with --overwrite") from error
        return Checkpoint(read_graph(files["graph"]), read_graph(files["best"]), history, tuples, tuple(data["core_s"]))

    def clear(self) -> None:
        """Removes the folder, which is this program's own."""
        if (self.path / STATE).is_file():
            shutil.rmtree(self.path)


def _key(graph: ControlGraph, config: LearnConfig) -> str:
    """Digest of the task: all but the number of iterations."""
    options = asdict(config)
    del options["guided"]["iterations"]
    digest = hashlib.sha256(json.dumps([options, graph.character, graph.gains], sort_keys=True).encode())
    for name, fragment in graph.fragments.items():
        digest.update(name.encode())
        for values in (fragment.targets, fragment.reference_root_position, fragment.reference_angles):
            digest.update(values.tobytes())
        if fragment.policy is not None:
            digest.update(fragment.policy.gain.tobytes() + fragment.policy.offset.tobytes())
    digest.update(json.dumps({name: list(after) for name, after in graph.successors.items()}).encode())
    return digest.hexdigest()
