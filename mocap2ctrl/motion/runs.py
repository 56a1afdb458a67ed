"""Runs of frames in which something holds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First frame and last, the last not included, of each run of true in `flags` (T,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]
