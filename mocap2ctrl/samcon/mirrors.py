"""Fragments that are each other's mirror: of symmetric gaits, which are learned for one side (Liu 2016, §6.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.graph.fragments import FEET, ControlFragment, ControlGraph, FeedbackPolicy
from mocap2ctrl.samcon.features import MIRROR_STATE_INDEX, MIRROR_STATE_SIGN, Actions
from mocap2ctrl.types import Array

SAME = 1e-9


def mirror_pairs(graph: ControlGraph, character: Character) -> dict[str, str]:
    """The mirror of each fragment that has one in its skill, both ways."""
    pairs: dict[str, str] = {}
    for name, fragment in graph.fragments.items():
        angles = mirrored_angles(fragment.targets, character)
        for other_name, other in graph.fragments.items():
            if (
                name != other_name
                and other.skill == fragment.skill
                and other.targets.shape == angles.shape
                and np.allclose(other.targets, angles, atol=SAME)
                and _same_after(graph, name, other_name, character)
            ):
                pairs[name] = other_name
                break
    return pairs


def _same_after(graph: ControlGraph, name: str, other: str, character: Character) -> bool:
    """Whether what two fragments end in is alike, but for left and right."""
    one, two = graph.fragments[name], graph.fragments[other]
    return mirrored_foot(one.touchdown) == two.touchdown and np.allclose(
        mirrored_angles(one.reference_angles, character), two.reference_angles, atol=SAME
    )


def mirrored_angles(angles: npt.ArrayLike, character: Character) -> Array:
    """Joint angles (..., J) seen in a mirror."""
    index, sign = character.mirror_hinges
    return np.asarray(sign * np.asarray(angles, float)[..., index])


def mirrored_states(features: Array) -> Array:
    """S (N, 18) of states seen in a mirror."""
    return np.asarray(MIRROR_STATE_SIGN * features[:, MIRROR_STATE_INDEX])


def mirrored_actions(values: Array, actions: Actions) -> Array:
    """Actions (N, A) seen in a mirror."""
    return np.asarray(actions.mirror_sign * values[:, actions.mirror_index])


def mirrored_policy(policy: FeedbackPolicy, actions: Actions) -> FeedbackPolicy:
    """The policy of a fragment's mirror: what mirrored states make it do is the mirror of what these do."""
    sign, index = actions.mirror_sign, actions.mirror_index
    gain = sign[:, None] * policy.gain[index][:, MIRROR_STATE_INDEX] * MIRROR_STATE_SIGN[MIRROR_STATE_INDEX]
    return FeedbackPolicy(gain, sign * policy.offset[index], policy.variance[index])


def mirrored_fragment(fragment: ControlFragment, name: str, character: Character) -> ControlFragment:
    """The fragment seen in a mirror, called `name`, without a policy."""
    return ControlFragment(
        name=name,
        skill=fragment.skill,
        frame_s=fragment.frame_s,
        targets=mirrored_angles(fragment.targets, character),
        reference_root_position=fragment.reference_root_position * np.array([1.0, -1.0, 1.0]),
        reference_root_orientation=fragment.reference_root_orientation * np.array([1.0, -1.0, 1.0, -1.0]),
        reference_angles=mirrored_angles(fragment.reference_angles, character),
        touchdown=mirrored_foot(fragment.touchdown),
    )


def mirrored_foot(foot: str | None) -> str | None:
    """The other one of `FEET`."""
    return None if foot is None else FEET[1 - FEET.index(foot)]
