"""Calibration poses in front of a motion: a T-pose, the rest pose, or one far away, in one frame or held for some."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.motion.names import JointMap
from mocap2ctrl.motion.source import SourceMotion, rest_positions
from mocap2ctrl.types import Array

FEWEST_FRAMES = 10
LONGEST_S = 5.0
"""A pose that is held for longer in front belongs to the motion, unless it is one frame."""
LONGEST_SHARE = 0.5
STILL, JUMP = 0.01, 0.1
"""Of the body's size: how far a joint may move while the pose is held, and must jump from it into the motion."""
OUTLIER = 5.0
"""How often larger than nearly all other steps that jump is from a pose that is no calibration pose by its shape."""
ODD = 1.5
"""And how often larger than the median step from one that is."""
ALIKE = 0.02
"""Of the body's size: how far distances between joints may differ from those at rest."""
STRAIGHT, ACROSS = 0.95, 0.25
"""Cosines: between the bones of a T-pose's limbs at least, and between its arms and trunk at most."""


def calibration_frames(source: SourceMotion, joints: JointMap) -> int:
    """How many frames in front are a calibration pose, held still, from which the body jumps into the motion; mostly 0."""
    if len(source) < FEWEST_FRAMES:
        return 0
    body = sorted(set(joints.limbs.values()))
    positions = source.positions[:, body]
    steps = np.max(np.linalg.norm(np.diff(positions, axis=0), axis=-1), axis=1)
    size = float(np.max(np.ptp(positions[0], axis=0)))
    held = int(np.argmax(steps > STILL * size))
    most = max(1, int(min(LONGEST_SHARE * len(source), LONGEST_S * source.fps)))
    if held >= most or steps[held] <= JUMP * size:
        return 0
    others = np.delete(steps, held)
    posed = _is_rest(source, body, size) or _is_t_pose(source, joints)
    least = ODD * np.median(others) if posed else OUTLIER * np.percentile(others, 99)
    return held + 1 if steps[held] > least else 0


def _is_rest(source: SourceMotion, body: list[int], size: float) -> bool:
    """The first frame has the shape of the rest pose, wherever it stands and faces."""
    first, rest = source.positions[0, body], rest_positions(source)[body]
    return bool(np.max(np.abs(_distances(first) - _distances(rest))) < ALIKE * size)


def _distances(pose: Array) -> Array:
    """(N, N) between the joints of a pose (N, 3)."""
    return np.asarray(np.linalg.norm(pose[:, None] - pose[None], axis=-1))


def _is_t_pose(source: SourceMotion, joints: JointMap) -> bool:
    """In the first frame the limbs are straight, the arms stretched out to both sides, the legs down."""

    def bone(side: str, start: str, end: str) -> Array:
        line = source.positions[0, joints.limbs[side, end]] - source.positions[0, joints.limbs[side, start]]
        return np.asarray(line / max(float(np.linalg.norm(line)), 1e-12))

    def middle(part: str) -> Array:
        left, right = (source.positions[0, joints.limbs[side, part]] for side in ("left", "right"))
        return np.asarray(0.5 * (left + right))

    trunk = middle("shoulder") - middle("hip")
    trunk = trunk / max(float(np.linalg.norm(trunk)), 1e-12)
    arms = [bone(side, "shoulder", "elbow") for side in ("left", "right")]
    lower = "wrist" if ("left", "wrist") in joints.limbs and ("right", "wrist") in joints.limbs else None
    forearms = arms if lower is None else [bone(side, "elbow", lower) for side in ("left", "right")]
    legs = [bone(side, *ends) for side in ("left", "right") for ends in (("hip", "knee"), ("knee", "ankle"))]
    return bool(
        arms[0] @ arms[1] < -STRAIGHT
        and all(abs(arm @ trunk) < ACROSS for arm in arms)
        and all(arm @ forearm > STRAIGHT for arm, forearm in zip(arms, forearms, strict=True))
        and all(leg @ trunk < -STRAIGHT for leg in legs)
    )
