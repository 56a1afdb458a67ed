"""The state of a track in a file, so that a crash loses one step only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath

import numpy as np

from mocap2ctrl.files import write_arrays
from mocap2ctrl.track.path import Path


class Checkpoint:
    """Paths by stage, under a key; written whole or not at all, and ignored when damaged or another fit's."""

    def __init__(self, file: FilePath | None, key: bytes) -> None:
        """Reads `file`, which need not exist; without one nothing is kept."""
        self._file, self._key = file, key.hex()
        self._stages = self._read()

    def save(self, stage: str, paths: Sequence[Path]) -> None:
        """Keeps `paths`, of equal length, for `stage`, beside what is there for others."""
        if self._file is None:
            return
        self._stages[stage] = list(paths)
        arrays = {
            f"{name}.{field}": np.stack([getattr(path, field) for path in kept])
            for name, kept in self._stages.items()
            for field in Path._fields
        }
        write_arrays(self._file, {"key": np.array(self._key), "stages": np.array(list(self._stages)), **arrays})

    def paths(self, stage: str) -> list[Path]:
        """What was saved for `stage`; empty if there is nothing that can be used."""
        return list(self._stages.get(stage, ()))

    def _read(self) -> dict[str, list[Path]]:
        if self._file is None or not self._file.is_file():
            return {}
        try:
            with self._file.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
                if str(data["key"]) != self._key:
                    return {}
                return {
                    str(stage): [
                        Path(*parts)
                        for parts in zip(*(np.array(data[f"{stage}.{f}"], float) for f in Path._fields), strict=True)
                    ]
                    for stage in data["stages"]
                }
        except Exception:  # a damaged archive raises many kinds, and only costs time
            return {}
