"""One at a time: a file is locked as long as the process lives that works at it; the system unlocks it if that is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mocap2ctrl.errors import ConfigError

try:
    import fcntl
except ImportError:  # where there is none, nothing is locked
    fcntl = None  # type: ignore[assignment]

IN_USE = "another fit is at work in it; let it end, or choose another -o"


def claim(file: Any) -> bool:
    """Locks an open file until it is closed; False if somebody else has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def alone(output: Path) -> Iterator[None]:
    """Holds `output.lock` meanwhile, and then removes it.

    Raises:
        ConfigError: another process holds it.
    """
    path = output.with_suffix(".lock")
    with open(path, "wb") as file:
        if not claim(file):
            raise ConfigError(f"{output}: another call is at work on it; let it end, or choose another -o")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def in_use(path: Path) -> bool:
    """Whether somebody has locked the file at `path`."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return not claim(file)
