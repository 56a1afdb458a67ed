"""What an interrupted learning goes on from: a folder beside its output, each state of which is whole or absent."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.files import write_json
from mocap2ctrl.graph.file import read_graph, write_graph
from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.samcon.guided import Iteration

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
        core_s: processor seconds so far, see `Learned`.
    """

    graph: ControlGraph
    best: ControlGraph
    history: tuple[Iteration, ...]
    core_s: tuple[float, ...]


class CheckpointFolder:
    """`learned.learning/` beside `learned.json`. `state.json` names the other files, and is written last."""

    def __init__(self, output: Path, graph: ControlGraph, config: LearnConfig) -> None:
        """For learning `graph` by `config`; what another task has left is refused by `load`."""
        self.path = output.with_suffix(".learning")
        self._output = output
        self._key = key_of(graph, config)

    def save(self, state: Checkpoint) -> None:
        """Writes a state, then removes the one before."""
        self.path.mkdir(parents=True, exist_ok=True)
        number = len(state.history)
        names = {"graph": f"graph-{number}.json", "best": f"best-{number}.json"}
        write_graph(state.graph, self.path / names["graph"])
        write_graph(state.best, self.path / names["best"])
        history = [asdict(iteration) for iteration in state.history]
        write_json(self.path / STATE, {"key": self._key, "files": names, "history": history, "core_s": state.core_s})
        for file in self._graphs():
            if file.name not in names.values():
                file.unlink()

    @property
    def begun(self) -> bool:
        """Whether a state is there, of whatever task."""
        return (self.path / STATE).is_file()

    @property
    def is_mine(self) -> bool:
        """Whether a state of this very task is there."""
        try:
            return bool(json.loads((self.path / STATE).read_text("utf-8"))["key"] == self._key)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def refuse(self) -> None:
        """Whether nothing would be lost by beginning anew.

        Raises:
            ConfigError: an interrupted learning is there.
        """
        if self.begun:
            raise interrupted(self._output)

    def _graphs(self) -> list[Path]:
        return [file for kind in ("graph", "best") for file in self.path.glob(f"{kind}-*.json")]

    def load(self) -> Checkpoint:
        """The latest state.

        Raises:
            GraphError: there is none, it is damaged, or it is another task's.
        """
        try:
            data: dict[str, Any] = json.loads((self.path / STATE).read_text("utf-8"))
            if data["key"] != self._key:
                raise another_task(self.path)
            files = {what: self.path / name for what, name in data["files"].items()}
            history = tuple(Iteration(**entry) for entry in data["history"])
            return Checkpoint(read_kept(files["graph"]), read_kept(files["best"]), history, tuple(data["core_s"]))
        except FileNotFoundError as error:
            raise GraphError(
                f"{self._output}: there is nothing to resume; {self.path.name} is not there, or is incomplete"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise GraphError(f"{self.path}: is damaged ({error}); begin anew with --overwrite") from error

    def clear(self) -> None:
        """Removes what this program has put there, and the folder if nothing else is in it."""
        (self.path / STATE).unlink(missing_ok=True)
        for file in self._graphs():
            file.unlink()
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()


def interrupted(output: Path) -> ConfigError:
    """What is wrong where a learning would begin anew without being told to."""
    return ConfigError(f"{output}: its learning was interrupted; --resume goes on with it, --overwrite begins anew")


def another_task(kept: Path) -> GraphError:
    """What is wrong where another learning would be gone on with."""
    return GraphError(
        f"{kept}: was begun with another graph or other options; give the same, or begin anew with --overwrite"
    )


def read_kept(path: Path) -> ControlGraph:
    """A graph that an interrupted learning has left.

    Raises:
        GraphError: it is not there, or is damaged; says what to do.
    """
    try:
        return read_graph(path)
    except GraphError as error:
        raise GraphError(f"an interrupted learning cannot go on ({error}); begin anew with --overwrite") from error


def key_of(graph: ControlGraph, config: LearnConfig) -> str:
    """Digest of the task: all but the numbers of iterations."""
    options = asdict(config)
    for stage in ("guided", "hardening"):
        del options[stage]["iterations"]
    digest = hashlib.sha256(json.dumps([options, graph.character, graph.gains], sort_keys=True).encode())
    for name, fragment in graph.fragments.items():
        digest.update((name + (fragment.touchdown or "")).encode())
        for values in (fragment.targets, fragment.reference_root_position, fragment.reference_angles):
            digest.update(values.tobytes())
        if fragment.policy is not None:
            digest.update(fragment.policy.gain.tobytes() + fragment.policy.offset.tobytes())
    digest.update(json.dumps({name: list(after) for name, after in graph.successors.items()}).encode())
    return digest.hexdigest()
