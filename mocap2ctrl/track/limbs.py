"""Limbs looked for anew where the outline is covered worst: a descent does not find an arm that it has lost beside the body."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.track.descent import FINE, Fitted, Level
from mocap2ctrl.track.evidence import MIDDLE, Evidence, softness_px
from mocap2ctrl.track.moves import Move
from mocap2ctrl.track.outline import outline_equations
from mocap2ctrl.track.path import Path, Sides
from mocap2ctrl.types import Array

PLACES = 3
"""Moments at which the outline is covered worst, and where limbs are looked for."""
APART = 6
"""Frames between two of them."""
EVERY = 3
"""Every so manieth frame of the track itself is also looked at for poses of limbs: what was lost was often there before."""
TAKEN = 2
"""Poses of each group of limbs that are tried at a moment, of all that were looked at."""
REACHES = (2, 5, 9)
"""Frames before and after the moment in which the limbs take the new pose."""
PIXEL_STEP = 2
SETTLED_LIMBS = (Level(MIDDLE, 2, 6), FINE[-1])
"""Soft enough to draw a limb in, and not so soft that a short flight is lost."""


def limb_moves(evidence: Evidence, fit: Fitted, poses: Array, sides: Sides) -> list[Move]:
    """Moves of legs, arms, or both, into poses that cover the outline better at the moments at which it is covered worst.

    Args:
        evidence: of all frames.
        fit: the track.
        poses: (E, J) angles, of which limbs' are taken; beside the track's own.
        sides: the limbs.
    """
    known = np.concatenate([poses, fit.path.angles[::EVERY]])
    energy = _outline(evidence, fit.path, fit.body)
    moves = []
    for moment in worst(energy, PLACES, APART):
        for hinges in sides.groups:
            for angles in _better(evidence, fit, moment, known, hinges, float(energy[moment])):
                moves += [_taken(fit.path, moment, reach, hinges, angles) for reach in REACHES]
    return moves


def worst(energy: Array, count: int, apart: int) -> list[int]:
    """The frames of the `count` largest of energies (T,), none within `apart` frames of another."""
    found: list[int] = []
    for frame in np.argsort(-energy, kind="stable"):
        if all(abs(frame - other) > apart for other in found):
            found.append(int(frame))
        if len(found) == count:
            break
    return found


def _better(
    evidence: Evidence, fit: Fitted, moment: int, known: Array, hinges: npt.NDArray[np.int64], energy: float
) -> Array:
    """(N, J) angles at a moment with limbs of those of the poses `known` that cover the outline best, and better than now."""
    angles = np.repeat(fit.path.angles[moment : moment + 1], len(known), axis=0)
    angles[:, hinges] = known[:, hinges]
    here = Path(*(np.repeat(array[moment : moment + 1], len(known), axis=0) for array in fit.path)).with_angles(angles)
    found = _outline(evidence.window(moment, moment + 1), here, fit.body)
    order = np.argsort(found, kind="stable")[:TAKEN]
    return angles[order[found[order] < energy]]


def _taken(path: Path, moment: int, reach: int, hinges: npt.NDArray[np.int64], angles: Array) -> Move:
    begin, end = max(0, moment - reach), min(path.frames, moment + reach + 1)
    changed = np.array(path.angles)
    changed[begin:end, hinges] = angles[hinges]
    return Move(begin, end, path.with_angles(changed))


def _outline(evidence: Evidence, poses: Path, body: Array) -> Array:
    """(N,) energies of the outline of N poses, each in its frame, or all in the only one; 0 where nobody is seen."""
    tau, each = softness_px(MIDDLE, evidence.pixels_per_m), poses.frames // len(evidence.seen)
    shifts, seen = np.repeat(evidence.shifts, each, axis=0), np.repeat(evidence.seen, each)
    energy, _, _ = outline_equations(
        *(evidence.tree, evidence.view, body, *poses, shifts, evidence.soft[MIDDLE]), *(seen, tau, PIXEL_STEP, False)
    )
    return np.asarray(evidence.outline_factor(tau) * energy)
