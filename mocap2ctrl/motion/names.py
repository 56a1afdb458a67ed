"""Which joint of a file's skeleton is which part of the body: as the user says, else by its name, else by the skeleton's shape."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.errors import JointsError, MotionFileError
from mocap2ctrl.motion.joint_names import LIMB_NAMES, midline_names, rank, side_and_name, sided_names
from mocap2ctrl.motion.skeleton_shape import find_shape
from mocap2ctrl.motion.source import SourceMotion

__all__ = ["PARTS", "SIDES", "JointMap", "map_joints", "named_joints", "side_and_name"]

CHAINS = (("hip", "knee", "ankle", "toe"), ("shoulder", "elbow", "wrist"))
TRUNK = ("pelvis", "chest", "neck", "head")
PARTS = (*TRUNK, *(f"{side} {part}" for side in SIDES for chain in CHAINS for part in chain))
"""All parts of the body that a joint can be, from the pelvis outwards."""

_OPTIONAL = ("toe", "wrist", "neck", "head")
MOST_CANDIDATES = 8
"""Joints of one name that are tried for a part."""


@dataclass(frozen=True)
class JointMap:
    """Indices into a source skeleton.

    Attributes:
        pelvis, chest: the joints that carry both hips and both shoulders.
        neck, head: None where the skeleton has none.
        limbs: index by (side, part); parts: hip, knee, ankle, toe, shoulder, elbow, wrist.
        how: by part, how its joint was found: `map`, `name` or `shape`.
        warnings: what is doubtful.
    """

    pelvis: int
    chest: int
    neck: int | None
    head: int | None
    limbs: dict[tuple[str, str], int]
    how: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def limb(self, side: str, part: str) -> int | None:
        """Index of a limb's joint, None where the skeleton has none."""
        return self.limbs.get((side, part))


def map_joints(source: SourceMotion, path: str, given: Mapping[str, int | None] | None = None) -> JointMap:
    """Finds the body's joints in the skeleton.

    Args:
        source: the motion.
        path: of its file, for errors.
        given: joints that the user named, by part; None for a part that the skeleton has not. See `joint_map.chosen_joints`.

    Raises:
        JointsError: naming the joints that are missing and listing those that are there.
        MotionFileError: the given ones contradict the skeleton.
    """
    given = given or {}
    parts: dict[str, int | None] = dict(given)
    how = dict.fromkeys(given, "map")
    named = _by_name(source, given)
    how |= dict.fromkeys(named, "name")
    parts |= named
    doubts: tuple[str, ...] = ()
    if missing := _missing(parts):
        shaped, doubts = _by_shape(source, parts, missing)
        how |= dict.fromkeys(shaped, "shape")
        parts |= shaped
    if missing := _missing(parts):
        raise _not_found(source, path, parts, missing)
    limbs = {
        (side, part): joint
        for side in SIDES
        for chain in CHAINS
        for part in chain
        if (joint := parts.get(f"{side} {part}")) is not None
    }
    _check_chains(source, path, limbs, how)
    pelvis = _trunk_joint(source, parts, limbs, "hip", "pelvis")
    chest = _trunk_joint(source, parts, limbs, "shoulder", "chest")
    limb_ways = {how["left hip"], how["left shoulder"]}
    for trunk in ("pelvis", "chest"):
        how.setdefault(trunk, "shape" if "shape" in limb_ways else "name")
    return JointMap(pelvis, chest, parts.get("neck"), parts.get("head"), limbs, how, doubts)


def named_joints(source: SourceMotion, joints: JointMap) -> dict[str, str]:
    """The file's name of the joint of each part of the body that was found, from the pelvis outwards."""
    trunk = {name: getattr(joints, name) for name in TRUNK}
    limbs = {f"{side} {part}": joints.limb(side, part) for side in SIDES for chain in CHAINS for part in chain}
    return {part: source.joint_names[i] for part, i in {**trunk, **limbs}.items() if i is not None}


def _missing(parts: Mapping[str, int | None]) -> list[str]:
    required = [f"{side} {part}" for side in SIDES for chain in CHAINS for part in chain if part not in _OPTIONAL]
    return [part for part in required if parts.get(part) is None]


def _not_found(source: SourceMotion, path: str, parts: Mapping[str, int | None], missing: list[str]) -> JointsError:
    joints = ", ".join(name for name, tip in zip(source.joint_names, source.is_tip, strict=True) if not tip)
    joints = joints if len(joints) < 1000 else joints[:1000] + " …"
    found = {part: source.joint_names[joint] for part, joint in parts.items() if joint is not None}
    message = f"{path}: no joint found for {', '.join(missing)}; the file's joints are: {joints}"
    return JointsError(message, source, found)


def _by_name(source: SourceMotion, given: Mapping[str, int | None]) -> dict[str, int]:
    """Joints by part as far as names tell them; never one that was given for another part."""
    found: dict[str, int] = {}
    for side in SIDES:
        names = {i: name for i, name in sided_names(source, side).items() if i not in given.values()}
        for chain in CHAINS:
            keys = [f"{side} {part}" for part in chain]
            options = [_candidates(names, given, key, part) for key, part in zip(keys, chain, strict=True)]
            chosen = _longest_chain(source, options, above=-1)
            found |= {
                key: joint for key, joint in zip(keys, chosen, strict=True) if joint is not None and key not in given
            }
    return found | _neck_and_head(source, given)


def _candidates(names: Mapping[int, str], given: Mapping[str, int | None], key: str, part: str) -> list[int]:
    """The joints that may be a part, most telling name first; only the given one if one is."""
    if key in given:
        joint = given[key]
        return [] if joint is None else [joint]
    ranked = [(place, i) for i, name in names.items() if (place := rank(name, LIMB_NAMES[part])) is not None]
    return [joint for _, joint in sorted(ranked)[:MOST_CANDIDATES]]


def _longest_chain(source: SourceMotion, options: list[list[int]], above: int) -> list[int | None]:
    """Of each part's options the first, each below the one before, such that as many parts as may be have a joint.

    Rigs hold joints of one name beside each other, of which only some carry the rest of the limb.
    """
    if not options:
        return []
    best = [None, *_longest_chain(source, options[1:], above)]
    most = sum(joint is not None for joint in best)
    for joint in reversed(options[0]):
        if joint == above or (above >= 0 and above not in source.ancestors(joint)):
            continue
        chain = [joint, *_longest_chain(source, options[1:], joint)]
        count = sum(joint is not None for joint in chain)
        if count >= most:
            best, most = chain, count
    return best


def _neck_and_head(source: SourceMotion, given: Mapping[str, int | None]) -> dict[str, int]:
    names = midline_names(source)
    necks = [i for i, name in names.items() if "neck" in name]
    heads = [i for i, name in names.items() if name.endswith(("head", "skull"))]
    head = heads[0] if heads else (necks[-1] if necks else None)
    neck = _lowest_neck(source, necks, head)
    found = {"neck": neck, "head": head}
    return {part: joint for part, joint in found.items() if joint is not None and part not in given}


def _lowest_neck(source: SourceMotion, necks: list[int], head: int | None) -> int | None:
    """The first neck joint that stands clear of the joint below it; some skeletons double joints at one place."""
    for neck in necks:
        if any(abs(value) > 1e-9 for value in source.offsets[neck]):
            return neck
    return head


def _by_shape(
    source: SourceMotion, parts: Mapping[str, int | None], missing: list[str]
) -> tuple[dict[str, int], tuple[str, ...]]:
    """The whole limbs that names left incomplete, and the head; and warnings. Empty where the shape contradicts the names."""
    shape = find_shape(source)
    if shape is None:
        return {}, ()
    limbs = [chain for chain in CHAINS if any(part.split()[1] in chain for part in missing)]
    wanted = [f"{side} {part}" for side in SIDES for chain in limbs for part in chain] + ["neck", "head"]
    taken = {joint for part, joint in parts.items() if part not in wanted}
    found = {part: shape.parts[part] for part in wanted if part in shape.parts and part not in parts}
    if taken & set(found.values()):
        return {}, ()
    doubt = "" if shape.sides_evident else ", and left and right are guessed"
    said = f"names do not tell {', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}: found by the skeleton's shape{doubt}"
    return found, (f"{said}; check it with inspect, correct it with --joint-map",)


def _check_chains(
    source: SourceMotion, path: str, limbs: Mapping[tuple[str, str], int], how: Mapping[str, str]
) -> None:
    """Each joint of a limb lies below the one before, which only what a user gives may contradict."""
    for side in SIDES:
        for chain in CHAINS:
            present = [(part, limbs[side, part]) for part in chain if (side, part) in limbs]
            for (upper, above), (lower, below) in itertools.pairwise(present):
                if above == below or above not in source.ancestors(below):
                    names = source.joint_names
                    raise MotionFileError(
                        f"{path}: {side}_{lower} = {names[below]!r} ({how[f'{side} {lower}']}) is not below "
                        f"{side}_{upper} = {names[above]!r} ({how[f'{side} {upper}']}) in the skeleton; correct the joint map"
                    )


def _trunk_joint(
    source: SourceMotion,
    parts: Mapping[str, int | None],
    limbs: Mapping[tuple[str, str], int],
    limb: str,
    part: str,
) -> int:
    """The given joint, else the nearest that carries both limbs."""
    given = parts.get(part)
    if given is not None:
        return given
    others = set(source.ancestors(limbs["right", limb]))
    return next((joint for joint in source.ancestors(limbs["left", limb]) if joint in others), 0)
