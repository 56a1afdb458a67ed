"""Files that are whole or absent: written under a temporary name, flushed, then renamed."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import ConfigError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path beside `path`, with its suffix; renames it on success and removes it on any failure.

    Raises:
        OSError: names `path`, whichever step failed.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        temporary.unlink(missing_ok=True)


def is_partial(path: Path) -> bool:
    """Whether a file is what a process that died in `replacing` has left."""
    return path.name.startswith(".") and path.stem.endswith(".part")


def refuse_existing(*paths: Path, overwrite: bool, option: str = "-o") -> None:
    """Whether files can be written where they are wanted, which `option` says.

    Raises:
        ConfigError: one is there already, and may not be replaced, or is a folder.
    """
    for path in paths:
        if path.is_dir() or (path.exists() and not overwrite):
            raise ConfigError(f"{path}: exists already; use --overwrite or another {option}")


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes `data` to `path`; on any failure the old file stays and no other is left behind."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """`write_bytes` of indented JSON; refuses NaN, which JSON does not have."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, npt.ArrayLike]) -> None:
    """`write_bytes` of a compressed NPZ; loads without pickles."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{k: np.asarray(v) for k, v in arrays.items()})
    write_bytes(path, buffer.getvalue())
