"""The state of a track in a file, so that a crash loses one step only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from mocap2ctrl.files import write_arrays
from mocap2ctrl.track.path import Followed, Path


class Checkpoint:
    """Hypotheses by stage, under a key; written whole or not at all, and ignored when damaged or another fit's."""

    def __init__(self, file: FilePath | None, key: bytes) -> None:
        """Reads `file`, which need not exist; without one nothing is kept."""
        self._file, self._key = file, key.hex()
        self._stages = self._read()

    def save(self, stage: str, hypotheses: Followed) -> None:
        """Keeps `hypotheses` for `stage`, beside what is there for others."""
        if self._file is None:
            return
        self._stages[stage] = hypotheses
        arrays = {
            f"{name}.{field}": np.stack([getattr(path, field) for path in kept.paths])
            for name, kept in self._stages.items()
            for field in Path._fields
        }
        arrays |= {f"{name}.past": np.array(kept.past) for name, kept in self._stages.items()}
        write_arrays(self._file, {"key": np.array(self._key), "stages": np.array(list(self._stages)), **arrays})

    def hypotheses(self, stage: str) -> Followed | None:
        """What was saved for `stage`; None if there is nothing that can be used."""
        return self._stages.get(stage)

    def _read(self) -> dict[str, Followed]:
        if self._file is None or not self._file.is_file():
            return {}
        try:
            with self._file.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
                if str(data["key"]) != self._key:
                    return {}
                return {str(stage): _stage(data, str(stage)) for stage in data["stages"]}
        except Exception:  # a damaged archive raises many kinds, and only costs time
            return {}


def _stage(data: Mapping[str, Any], stage: str) -> Followed:
    arrays = [np.array(data[f"{stage}.{field}"], float) for field in Path._fields]
    past = np.array(data[f"{stage}.past"], float).tolist()
    paths = [Path(*parts) for parts in zip(*arrays, strict=True)]
    if len(past) != len(paths):
        raise ValueError(f"{len(past)} pasts of {len(paths)} paths")
    return Followed(paths, past)
