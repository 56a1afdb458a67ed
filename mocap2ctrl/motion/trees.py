"""Several skeletons in one file: the person, and the props beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.motion.joint_names import LIMB_NAMES, rank, sided_names
from mocap2ctrl.motion.skeleton_shape import find_shape
from mocap2ctrl.motion.source import SourceMotion

STILL = 1e-3
"""Share of the skeleton's size that a joint moves at least if it carries the body about."""


def roots(source: SourceMotion) -> list[int]:
    """Indices of the joints without a parent."""
    return [joint for joint, parent in enumerate(source.parents) if parent < 0]


def tree(source: SourceMotion, root: int) -> SourceMotion:
    """The joints below `root`, and itself, as a motion of their own."""
    keep = [joint for joint in range(len(source.parents)) if source.ancestors(joint)[-1] == root]
    place = {old: new for new, old in enumerate(keep)}
    return replace(
        source,
        joint_names=tuple(source.joint_names[joint] for joint in keep),
        parents=tuple(place.get(source.parents[joint], -1) for joint in keep),
        is_tip=tuple(source.is_tip[joint] for joint in keep),
        offsets=source.offsets[keep],
        positions=source.positions[:, keep],
        orientations=source.orientations[:, keep],
    )


def person(source: SourceMotion, given: Mapping[str, str]) -> SourceMotion:
    """The skeleton that is a body, with a warning on those that were left out; of several bodies the first.

    Args:
        source: all skeletons of a file.
        given: joints' names by part, as the user says: a skeleton that has them comes first.
    """
    first = roots(source)
    if len(first) == 1:
        return source
    trees = [tree(source, root) for root in first]
    chosen = max(trees, key=lambda one: _likeness(one, given))
    others = ", ".join(repr(one.joint_names[0]) for one in trees if one is not chosen)
    said = f"the file holds {len(trees)} skeletons; {chosen.joint_names[0]!r} is taken for the person, without {others}"
    return replace(chosen, warnings=(*source.warnings, said))


def _likeness(source: SourceMotion, given: Mapping[str, str]) -> tuple[int, int, bool]:
    """How much a skeleton is a body's: joints that the user named, then limbs by name, then by shape."""
    limbs = sum(
        rank(name, names) is not None
        for side in SIDES
        for name in sided_names(source, side).values()
        for names in LIMB_NAMES.values()
    )
    return sum(name in source.joint_names for name in given.values()), limbs, find_shape(source) is not None


def carrier(source: SourceMotion, pelvis: int) -> int:
    """The first joint on the way from the root to the pelvis that leaves its place; the pelvis if none does."""
    way = source.ancestors(pelvis)[::-1]
    reach = np.max(np.ptp(source.positions[:, way], axis=0), axis=-1)
    size = float(np.max(np.ptp(source.positions[0], axis=0)))
    return next((joint for joint, far in zip(way, reach, strict=True) if far > STILL * size), pelvis)
