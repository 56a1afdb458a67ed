"""How long machines stay up: simulated piece by piece, so that whoever has fallen is simulated no further."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from mocap2ctrl.control.closed_loop import Rollouts, run
from mocap2ctrl.control.law import Program
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array

PIECE_S = 4.0

Which = npt.NDArray[np.int64]
Falls = Callable[[Rollouts, Which], Array]
"""When each of the machines `Which` (N,) has fallen in their rollouts, (N,) seconds, infinite if it has not."""


def seconds_up(
    engine: Engine,
    program: Program,
    starts: Array,
    pushes: Sequence[Sequence[Push]],
    seconds: float,
    *,
    stride: int,
    falls: Falls,
) -> Array:
    """(P,) time until the fall of each of a program's P machines, or `seconds`.

    Args:
        engine: where.
        program: the machines.
        starts: (P, K) start vectors at step 0.
        pushes: those of each machine: P sequences.
        seconds: how long they are watched.
        stride: steps between the frames that `falls` sees.
        falls: tells of a piece who has fallen in it.
    """
    piece, end = round(PIECE_S / engine.time_step_s), round(seconds / engine.time_step_s)
    times, going = np.full(len(starts), np.inf), np.arange(len(starts))
    for last in range(piece, end + piece, piece):
        if not len(going):
            break
        own = [pushes[int(p)] for p in going]
        rollouts = run(engine, program.of(going), starts, min(last, end), stride=stride, own_pushes=own)
        times[going] = falls(rollouts, going)
        stands = np.isinf(times[going])
        going, starts = going[stands], rollouts.final[stands]
    return np.asarray(np.minimum(times, seconds))
