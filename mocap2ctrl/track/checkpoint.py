"""The state of a track in a file, so that a crash loses one step only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath

import numpy as np

from mocap2ctrl.files import write_arrays
from mocap2ctrl.track.path import Path


class Checkpoint:
    """Paths under a stage's name and a key; written whole or not at all, and ignored when damaged or another fit's."""

    def __init__(self, file: FilePath | None, key: bytes) -> None:
        """Looks at `file`, which need not exist; without one nothing is kept."""
        self._file, self._key = file, key.hex()

    def save(self, stage: str, paths: Sequence[Path]) -> None:
        """Replaces what is there with `paths` of equal length."""
        if self._file is None:
            return
        arrays = {name: np.stack([getattr(path, name) for path in paths]) for name in Path._fields}
        write_arrays(self._file, {"key": np.array(self._key), "stage": np.array(stage), **arrays})

    def paths(self, stage: str) -> list[Path]:
        """What was saved for `stage`; empty if there is nothing that can be used."""
        if self._file is None or not self._file.is_file():
            return []
        try:
            with self._file.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
                if str(data["key"]) != self._key or str(data["stage"]) != stage:
                    return []
                arrays = [np.array(data[name], float) for name in Path._fields]
        except Exception:  # a damaged archive raises many kinds, and only costs time
            return []
        return [Path(*parts) for parts in zip(*arrays, strict=True)]
