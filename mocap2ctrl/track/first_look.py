"""A quick look at how somebody stands at first: a few hypotheses over the first frames, the best of each direction."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.track.beam import settle
from mocap2ctrl.track.descent import Fitted
from mocap2ctrl.track.evidence import evidence_of
from mocap2ctrl.track.path import Path
from mocap2ctrl.track.start import first_paths
from mocap2ctrl.track.tree import FACTORS
from mocap2ctrl.types import Array, Pose, Silhouettes

HEADINGS = 12
CANDIDATES = 96
FOLLOWED = 12
"""So many candidates are descended: the best, and the best of other directions."""
FOLLOWED_FOR_FIT = 6
LOOK_S = 0.2
APART = np.radians(40.0)
"""Headings further apart than this are different directions."""


@dataclass(frozen=True, eq=False)
class FirstPose:
    """A hypothesis of the first pose.

    Attributes:
        pose: at `frame`.
        frame: the first one that shows the person.
        heading: direction in which the person faces, about world z from x, radians.
        energy: the tracker's over the first frames, a negative logarithm; less is better.
    """

    pose: Pose
    frame: int
    heading: float
    energy: float


def first_look(
    silhouettes: Silhouettes, character: Character, prior: PosePrior, *, workers: int = 1
) -> tuple[FirstPose, ...]:
    """The best hypothesis of each direction that was followed, most likely first.

    A silhouette does not tell left from right, nor towards from away: this is what the tracker starts from, and not its result.

    Args:
        silhouettes: with at least one mask that is not empty.
        character: a body of the person's height.
        prior: over poses.
        workers: threads; they do not change the result.
    """
    seen = np.flatnonzero(silhouettes.masks.any(axis=(1, 2)))
    frame = int(seen[0])
    frames = min(max(3, round(LOOK_S * silhouettes.fps)), len(silhouettes) - frame)
    onward = replace(silhouettes, masks=silhouettes.masks[frame:])
    evidence = evidence_of(onward, character, prior)
    headings = 2.0 * np.pi * np.arange(HEADINGS) / HEADINGS
    paths = first_paths(evidence, onward, character, prior.exemplars, headings, frames, CANDIDATES)
    with threadpool_limits(limits=1), ThreadPoolExecutor(workers) as executor:
        fits = settle(evidence, _followed(paths), np.ones(FACTORS), executor)
    return tuple(_first_pose(fit, frame) for fit in _best_of_directions(fits))


def _followed(paths: list[Path]) -> list[Path]:
    """The best of all `paths`, which are in order, and the best of directions that these do not look in."""
    kept = paths[:FOLLOWED_FOR_FIT]
    for path in paths[FOLLOWED_FOR_FIT:]:
        if len(kept) == FOLLOWED:
            break
        if all(_apart(_heading(path), _heading(other)) for other in kept):
            kept = [*kept, path]
    return kept


def _best_of_directions(fits: list[Fitted]) -> list[Fitted]:
    kept: list[Fitted] = []
    for fit in sorted(fits, key=lambda fit: fit.energy):
        if all(_apart(_heading(fit.path), _heading(other.path)) for other in kept):
            kept.append(fit)
    return kept


def _heading(path: Path) -> float:
    return float(rotations.heading(path.root_orientation[0]))


def _apart(a: float, b: float) -> bool:
    return bool(abs((a - b + np.pi) % (2.0 * np.pi) - np.pi) > APART)


def _first_pose(fit: Fitted, frame: int) -> FirstPose:
    position, orientation, angles = (np.asarray(values[0]) for values in fit.path)
    return FirstPose(Pose(position, orientation, angles), frame, _heading(fit.path), float(fit.energy))


def facing(heading: float, right: Array, away: Array) -> str:
    """A heading in words, as who looks at the picture sees it.

    Args:
        heading: about world z from x, radians.
        right, away: (3,) world directions of the picture's right and of the view.
    """
    direction = np.array([np.cos(heading), np.sin(heading)])
    across, along = (float(axis[:2] @ direction / max(np.linalg.norm(axis[:2]), 1e-9)) for axis in (right, away))
    words = []
    if abs(across) > np.sin(np.radians(22.5)):
        words.append("right" if across > 0 else "left")
    if abs(along) > np.sin(np.radians(22.5)):
        words.append("away" if along > 0 else "towards us")
    return " and ".join(words)
