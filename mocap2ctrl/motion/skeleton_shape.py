"""Which joint is which by the skeleton's shape alone: for files whose names say nothing.

A body has two pairs of long, equal branches: legs and arms. Each branch's two longest neighbouring bones are thigh and
shank, or upper arm and forearm. The head hangs where the arms do. Feet and knees tell the front, and so left and right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.geometry.rotations import unit
from mocap2ctrl.motion.joint_names import side_and_name
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.types import Array

ALIKE = 0.12
"""Relative difference of the lengths of a left and a right branch."""
LONG = 0.3
"""Share of the longest pair's length that another must have to be arms: what is shorter are fingers, eyes or hair."""
SAME_PLACE = 0.01
"""Share of a branch's length below which two joints lie at one place."""
SKIPPED = 0.8
"""What a joint between the ends of a bone, such as one for its twist, takes from the belief that it is one bone."""
APART = 0.1
"""Share of a limb's length by which left and right hips and shoulders are at least apart."""
FURTHER_OUT = 1.15
"""What each joint in front, a clavicle, adds to the belief: some are as long as a forearm."""
LONGEST_PATH, MOST_BRANCHES, MOST_PAIRS = 12, 10, 40
"""Of a limb, of a joint, and of a skeleton, the longest: what is more is no person's."""
SAMPLES = 60
FEET_TELL, KNEES_TELL, TRAVEL_TELLS = 0.3, 0.02, 0.02
"""From which mean on each tells the front: the feet's cosine with it, and leg lengths by which knees stand in front of the line
from hip to ankle, or by which the body goes from one sample to the next."""
STRAIGHT = 1e-4
"""Share of a bone by which joints on it may leave it."""


@dataclass(frozen=True)
class Shape:
    """Joints by part, sides included (`left knee`), and whether left and right are evident."""

    parts: dict[str, int]
    sides_evident: bool


@dataclass(frozen=True)
class _Pair:
    """Two equal branches of the joint `parent`."""

    parent: int
    branches: tuple[int, int]
    length: float


class _Tree:
    """Lengths in a skeleton: of each bone, and of the longest way down from each joint."""

    def __init__(self, source: SourceMotion) -> None:
        self.source = source
        step = max(1, len(source) // SAMPLES)
        self.positions: Array = source.positions[::step]
        parents = np.maximum(source.parents, 0)
        lengths = np.linalg.norm(self.positions - self.positions[:, parents], axis=-1)
        self.bone: Array = np.median(lengths, axis=0)
        self.bone[np.array(source.parents) < 0] = 0.0
        self.children: list[list[int]] = [[] for _ in source.parents]
        self.below: Array = np.zeros(len(source.parents))
        for joint in reversed(range(len(source.parents))):
            parent = source.parents[joint]
            if parent >= 0:
                self.children[parent].insert(0, joint)
                self.below[parent] = max(self.below[parent], self.length(joint))

    def length(self, branch: int) -> float:
        """From the branch's parent to its farthest end, along the bones."""
        return float(self.bone[branch] + self.below[branch])

    def path(self, branch: int) -> list[int]:
        """The longest way down, the branch's first joint included."""
        path = [branch]
        while self.children[path[-1]]:
            path.append(max(self.children[path[-1]], key=self.length))
        return path

    def holds(self, branch: int, joint: int) -> bool:
        """Whether `joint` is the branch's first joint or below it."""
        return branch in self.source.ancestors(joint)

    @cached_property
    def pairs(self) -> list[_Pair]:
        """Pairs of equal branches, those of the same joint told apart by how equal they are; longest first."""
        found = [pair for joint in range(len(self.children)) for pair in self._pairs_of(joint)]
        return sorted(found, key=lambda pair: -pair.length)[:MOST_PAIRS]

    def _pairs_of(self, joint: int) -> list[_Pair]:
        branches = [child for child in self.children[joint] if self.length(child) > 0.0 and self.children[child]]
        branches = sorted(branches, key=self.length, reverse=True)[:MOST_BRANCHES]
        options = sorted(
            (abs(self.length(a) - self.length(b)) / max(self.length(a), self.length(b)), a, b)
            for place, a in enumerate(branches)
            for b in branches[place + 1 :]
        )
        pairs: list[_Pair] = []
        for difference, a, b in options:
            if difference < ALIKE and not any({a, b} & set(pair.branches) for pair in pairs):
                pairs.append(_Pair(joint, (a, b), 0.5 * (self.length(a) + self.length(b))))
        return pairs


def find_shape(source: SourceMotion) -> Shape | None:
    """Legs, arms, neck and head of a skeleton; None where it has no two pairs of equal branches."""
    tree = _Tree(source)
    pairs = _legs_and_arms(tree)
    if pairs is None:
        return None
    legs, arms = pairs
    leg_joints = _limb_joints(tree, legs, ("hip", "knee", "ankle", "toe"))
    arm_joints = _limb_joints(tree, arms, ("shoulder", "elbow", "wrist"))
    if leg_joints is None or arm_joints is None:
        return None
    signs, evident = _sides(tree, legs, arms, leg_joints, arm_joints)
    parts: dict[str, int] = {}
    for (first, second), sign in zip((leg_joints, arm_joints), signs, strict=True):
        for side, joints in zip(SIDES, (first, second) if sign > 0.0 else (second, first), strict=True):
            parts |= {f"{side} {part}": joint for part, joint in joints.items()}
    return Shape(parts | _neck_and_head(tree, legs, arms), evident)


def _legs_and_arms(tree: _Tree) -> tuple[_Pair, _Pair] | None:
    """The two longest pairs of which neither lies in a branch of the other; the legs first."""
    for place, first in enumerate(tree.pairs):
        for second in tree.pairs[place + 1 :]:
            if second.length < LONG * first.length:
                break
            if not _nested(tree, first, second) and not _nested(tree, second, first):
                return (first, second) if _leg_score(tree, first, second) >= 0.0 else (second, first)
    return None


def _nested(tree: _Tree, outer: _Pair, inner: _Pair) -> bool:
    return any(tree.holds(branch, inner.parent) for branch in outer.branches)


def _leg_score(tree: _Tree, first: _Pair, second: _Pair) -> float:
    """Above zero if the first, longer pair are the legs: no head beside them, nearer to the root."""
    heads = [bool(_spare_branches(tree, pair, other)) for pair, other in ((first, second), (second, first))]
    depths = [len(tree.source.ancestors(pair.parent)) for pair in (first, second)]
    return 0.5 + 1.0 * (heads[1] - heads[0]) + 0.5 * float(np.sign(depths[1] - depths[0]))


def _spare_branches(tree: _Tree, pair: _Pair, other: _Pair) -> list[int]:
    """Branches beside a pair that do not lead to the other pair."""
    return [
        child
        for child in tree.children[pair.parent]
        if child not in pair.branches
        and child not in other.branches
        and not tree.holds(child, other.parent)
        and tree.length(child) > 0.08 * pair.length
    ]


def _limb_joints(tree: _Tree, pair: _Pair, parts: tuple[str, ...]) -> tuple[dict[str, int], dict[str, int]] | None:
    """The joints of both limbs by part."""
    found = []
    paths = [_clear_path(tree, branch) for branch in pair.branches]
    first = next((i for i, (a, b) in enumerate(zip(*paths, strict=False)) if _apart(tree, a, b, pair.length)), 0)
    for path in paths:
        bent = _bent_chain(tree, path[first:])
        if bent is None and "ankle" not in parts and len(path[first:]) == 2:
            bent = tuple(path[first:])  # an arm that ends at its elbow's joint
        if bent is None:
            return None
        joints = [*bent, *path[path.index(bent[-1]) + 1 :]]
        # An End Site is no hand, and no toes; it may be the ankle, without which there is no leg.
        found.append(
            {
                part: joint
                for part, joint in zip(parts, joints, strict=False)
                if part == "ankle" or not tree.source.is_tip[joint]
            }
        )
    return (found[0], found[1])


def _apart(tree: _Tree, a: int, b: int, length: float) -> bool:
    """Whether a joint and its counterpart on the other side lie apart, as hips and shoulders do, but not what carries them."""
    return float(np.median(_distance(tree, a, b))) > APART * length


def _clear_path(tree: _Tree, branch: int) -> list[int]:
    """The way down a limb; of joints that lie at one place the lowest, unless others hang from the upper one too."""
    path: list[int] = []
    for joint in tree.path(branch):
        if path and tree.bone[joint] < SAME_PLACE * tree.length(branch):
            if not tree.source.is_tip[joint] and len(tree.children[path[-1]]) == 1:
                path[-1] = joint
        else:
            path.append(joint)
    return path


def _bent_chain(tree: _Tree, path: list[int]) -> tuple[int, ...] | None:
    """Hip, knee and ankle, or shoulder, elbow and wrist: long bones of about one length, with no joint between, or few."""
    best, chosen = 0.0, None
    for i, j, k in combinations(range(min(len(path), LONGEST_PATH)), 3):
        if tree.source.is_tip[path[j]] or not (_straight(tree, path[i : j + 1]) and _straight(tree, path[j : k + 1])):
            continue
        upper, lower = (float(np.median(_distance(tree, path[a], path[b]))) for a, b in ((i, j), (j, k)))
        shorter, longer = sorted((upper, lower))
        score = shorter * (shorter / max(longer, 1e-12)) * SKIPPED ** (k - i - 2) * FURTHER_OUT**i
        if score > best:
            best, chosen = score, (path[i], path[j], path[k])
    return chosen


def _straight(tree: _Tree, path: list[int]) -> bool:
    """Whether the joints between the first and the last never leave the line between them."""
    length = sum((_distance(tree, a, b) for a, b in pairwise(path)), np.zeros(len(tree.positions)))
    return bool(len(path) == 2 or np.max(length - _distance(tree, path[0], path[-1])) < STRAIGHT * np.max(length))


def _distance(tree: _Tree, a: int, b: int) -> Array:
    return np.asarray(np.linalg.norm(tree.positions[:, a] - tree.positions[:, b], axis=-1))


def _sides(
    tree: _Tree,
    legs: _Pair,
    arms: _Pair,
    leg_joints: tuple[dict[str, int], ...],
    arm_joints: tuple[dict[str, int], ...],
) -> tuple[tuple[float, float], bool]:
    """Above zero where the first branch of the legs, and of the arms, is the left one; and whether that is evident."""
    left, evident = _left(tree, leg_joints, arm_joints)
    signs = []
    for pair, joints, upper in ((legs, leg_joints, ("hip", "knee")), (arms, arm_joints, ("shoulder", "elbow"))):
        named = _named_side(tree, pair)
        across = sum(tree.positions[:, joints[0][part]] - tree.positions[:, joints[1][part]] for part in upper)
        sign = float(np.mean(np.sum(across * left, axis=-1)))
        signs.append(named if named else sign)
        evident = evident or named != 0
    return (signs[0], signs[1]), evident


def _named_side(tree: _Tree, pair: _Pair) -> int:
    """+1 or -1 where the names of the joints in a pair's branches say which is left; 0 where they do not."""
    votes = []
    for branch in pair.branches:
        sides = [side_and_name(tree.source.joint_names[joint])[0] for joint in tree.path(branch)]
        votes.append(sides.count("left") - sides.count("right"))
    return int(np.sign(votes[0] - votes[1])) if votes[0] * votes[1] <= 0 else 0


def _left(tree: _Tree, legs: tuple[dict[str, int], ...], arms: tuple[dict[str, int], ...]) -> tuple[Array, bool]:
    """(T, 3) the body's left: up along the trunk, times the front, which feet, else knees, else the way it goes tell."""
    at = tree.positions
    hips = 0.5 * (at[:, legs[0]["hip"]] + at[:, legs[1]["hip"]])
    trunk = unit(0.5 * (at[:, arms[0]["shoulder"]] + at[:, arms[1]["shoulder"]]) - hips)
    across = unit(sum((at[:, legs[0][part]] - at[:, legs[1][part]] for part in ("hip", "knee")), np.zeros_like(hips)))
    size = max(float(np.median(_distance(tree, legs[0]["hip"], legs[0]["ankle"]))), 1e-12)
    feet = sum((unit(at[:, _foot_end(tree, leg["ankle"])] - at[:, leg["ankle"]]) for leg in legs), np.zeros_like(hips))
    knees = sum(
        (at[:, leg["knee"]] - 0.5 * (at[:, leg["hip"]] + at[:, leg["ankle"]]) for leg in legs), np.zeros_like(hips)
    )
    travel = np.gradient(hips, axis=0) if len(hips) > 1 else np.zeros_like(hips)
    for front, least in ((0.5 * feet, FEET_TELL), (knees / size, KNEES_TELL), (travel / size, TRAVEL_TELLS)):
        left = np.cross(trunk, front)
        if abs(float(np.mean(np.sum(left * across, axis=-1)))) > least:
            return left, True
    return across, False


def _foot_end(tree: _Tree, ankle: int) -> int:
    return tree.path(ankle)[-1]


def _neck_and_head(tree: _Tree, legs: _Pair, arms: _Pair) -> dict[str, int]:
    """The longest branch beside the arms: its first joint, and the one that the face's joints hang from, or the last."""
    spare = _spare_branches(tree, arms, legs)
    if not spare:
        return {}
    path = [joint for joint in tree.path(max(spare, key=tree.length)) if not tree.source.is_tip[joint]]
    if not path:
        return {}
    neck = next((joint for joint in path if tree.bone[joint] > SAME_PLACE * tree.length(path[0])), path[0])
    head = next((joint for joint in path if len(tree.children[joint]) > 1), path[-1])
    return {"neck": neck, "head": head}
