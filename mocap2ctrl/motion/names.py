"""Which joint of a file's skeleton is which part of the body: by its name, checked against the tree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.source import SourceMotion

SIDES = ("left", "right")

# Names without side, prefix, blanks and punctuation, most telling first.
_LIMB_NAMES: dict[str, tuple[str, ...]] = {
    "hip": ("upleg", "thigh", "upperleg", "femur", "hip", "legupper"),
    "knee": ("knee", "lowleg", "lowerleg", "leg", "shin", "calf", "shank", "tibia", "leglower"),
    "ankle": ("ankle", "foot"),
    "toe": ("toebase", "toe", "toes", "toejoint", "ball", "foottoe", "foot"),
    "shoulder": ("arm", "upperarm", "uparm", "humerus", "armupper", "shoulder"),
    "elbow": ("elbow", "forearm", "lowarm", "lowerarm", "radius", "armlower"),
    "wrist": ("wrist", "hand"),
}
_ALL_LIMB_NAMES = frozenset(name for names in _LIMB_NAMES.values() for name in names)
_CHAINS = (("hip", "knee", "ankle", "toe"), ("shoulder", "elbow", "wrist"))
_OPTIONAL = ("toe", "wrist")
_PREFIXES = re.compile(
    r"^(mixamorig\d*|j_bip_|(bip\d*|def|org|rig|character\d*|skeleton\d*|humanoid)(?=[\s_.\-]))[\s_.\-]*", re.I
)


@dataclass(frozen=True)
class JointMap:
    """Indices into a source skeleton.

    Attributes:
        pelvis, chest: the joints that carry both hips and both shoulders.
        neck, head: None where the skeleton has none.
        limbs: index by (side, part); parts: hip, knee, ankle, toe, shoulder, elbow, wrist.
    """

    pelvis: int
    chest: int
    neck: int | None
    head: int | None
    limbs: dict[tuple[str, str], int]

    def limb(self, side: str, part: str) -> int | None:
        """Index of a limb's joint, None where the skeleton has none."""
        return self.limbs.get((side, part))


def map_joints(source: SourceMotion, path: str) -> JointMap:
    """Finds the body's joints in the skeleton.

    Raises:
        MotionFileError: naming the joints that are missing and listing those that are there.
    """
    limbs: dict[tuple[str, str], int] = {}
    for side in SIDES:
        names = {i: side_and_name(name)[1] for i, name in enumerate(source.joint_names) if _is_on(source, i, side)}
        for chain in _CHAINS:
            limbs.update(_map_chain(source, names, side, chain))
    required = [part for chain in _CHAINS for part in chain if part not in _OPTIONAL]
    missing = [f"{side} {part}" for side in SIDES for part in required if (side, part) not in limbs]
    if missing:
        joints = ", ".join(name for name, tip in zip(source.joint_names, source.is_tip, strict=True) if not tip)
        raise MotionFileError(
            f"{path}: no joint found for {', '.join(missing)}; the file's joints are: {joints}. Rename them "
            "(for example LeftUpLeg, LeftLeg, LeftFoot, LeftArm, LeftForeArm, LeftHand)"
        )
    pelvis = _common_ancestor(source, limbs["left", "hip"], limbs["right", "hip"])
    chest = _common_ancestor(source, limbs["left", "shoulder"], limbs["right", "shoulder"])
    return JointMap(pelvis, chest, *_neck_and_head(source), limbs)


def named_joints(source: SourceMotion, joints: JointMap) -> dict[str, str]:
    """The file's name of the joint of each part of the body that was found, from the pelvis outwards."""
    trunk = {name: getattr(joints, name) for name in ("pelvis", "chest", "neck", "head")}
    limbs = {f"{side} {part}": joints.limb(side, part) for side in SIDES for chain in _CHAINS for part in chain}
    return {part: source.joint_names[i] for part, i in {**trunk, **limbs}.items() if i is not None}


def side_and_name(name: str) -> tuple[str | None, str]:
    """A joint's side (None: midline) and its name in lower-case letters without side, prefix and punctuation."""
    name = _PREFIXES.sub("", name.rpartition(":")[2].strip())
    lower = re.sub(r"[^a-z]", "", name.lower())
    for side in SIDES:
        if lower.startswith(side) and len(lower) > len(side):
            return side, lower[len(side) :]
        if lower.endswith(side) and len(lower) > len(side):
            return side, lower[: -len(side)]
        letter = side[0]
        if re.match(rf"[{letter}{letter.upper()}]([\s_.\-]|(?=[A-Z][a-z]))", name):
            return side, lower[1:]
        if re.search(rf"[\s_.\-][{letter}{letter.upper()}]$", name) or re.search(rf"[a-z]{letter.upper()}$", name):
            return side, lower[:-1]
        if lower[:1] == letter and lower[1:] in _ALL_LIMB_NAMES:
            return side, lower[1:]
    return None, lower


def _is_on(source: SourceMotion, joint: int, side: str) -> bool:
    return not source.is_tip[joint] and side_and_name(source.joint_names[joint])[0] == side


def _map_chain(
    source: SourceMotion, names: dict[int, str], side: str, chain: tuple[str, ...]
) -> dict[tuple[str, str], int]:
    """The joints of one limb, each below the one before."""
    found: dict[tuple[str, str], int] = {}
    above = -1
    for part in chain:
        candidates = [
            (_LIMB_NAMES[part].index(name), joint)
            for joint, name in names.items()
            if name in _LIMB_NAMES[part]
            and joint not in found.values()
            and (above < 0 or above in source.ancestors(joint))
        ]
        if candidates:
            above = min(candidates)[1]
            found[side, part] = above
    return found


def _common_ancestor(source: SourceMotion, a: int, b: int) -> int:
    others = set(source.ancestors(b))
    return next((joint for joint in source.ancestors(a) if joint in others), 0)


def _neck_and_head(source: SourceMotion) -> tuple[int | None, int | None]:
    midline = {
        i: side_and_name(name)[1]
        for i, name in enumerate(source.joint_names)
        if not source.is_tip[i] and side_and_name(name)[0] is None
    }
    necks = [i for i, name in midline.items() if name.startswith(("neck", "lowerneck"))]
    heads = [i for i, name in midline.items() if name.endswith("head")]
    head = heads[0] if heads else (necks[-1] if necks else None)
    return _lowest_neck(source, necks, head), head


def _lowest_neck(source: SourceMotion, necks: list[int], head: int | None) -> int | None:
    """The first neck joint that stands clear of the joint below it; some skeletons double joints at one place."""
    for neck in necks:
        if any(abs(value) > 1e-9 for value in source.offsets[neck]):
            return neck
    return head
