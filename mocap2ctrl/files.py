"""Files that are whole or absent: written under a temporary name, flushed, then renamed."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def write_bytes(path: Path, data: bytes) -> None:
    """Writes `data` to `path`; on any failure the old file stays and no other is left behind.

    Raises:
        OSError: names `path`, whichever step failed.
    """
    try:
        _write_and_rename(path, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_and_rename(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """`write_bytes` of indented JSON; refuses NaN, which JSON does not have."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_arrays(path: Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """`write_bytes` of a compressed NPZ; loads without pickles."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{k: np.asarray(v) for k, v in arrays.items()})
    write_bytes(path, buffer.getvalue())
