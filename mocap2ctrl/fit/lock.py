"""One fit at a time in a folder: its journal is locked as long as the fit lives, and the system unlocks it if the fit is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def in_use(path: Path) -> bool:
    """Whether somebody has locked the file at `path`."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return not claim(file)
