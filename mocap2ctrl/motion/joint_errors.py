"""How far a retargeted motion is from its source, so that a bad retarget is told from a bad fit.

Distances at the joints hold what other proportions cost; the error of the limbs, scaled bone by bone, does not.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.types import Array, MotionClip

LIMBS = (
    *((f"{side}_shoulder", f"{side}_elbow", f"{side}_wrist") for side in SIDES),
    *((f"{side}_hip", f"{side}_knee", f"{side}_ankle") for side in SIDES),
    ("neck", "head"),
)


def joint_errors_cm(character: Character, clip: MotionClip, source_points: Array) -> dict[str, tuple[float, float]]:
    """Mean and 95th percentile, cm, of the distance between body and source at each joint that the source has.

    Args:
        character: the body.
        clip: its motion.
        source_points: (T, E, 3) the source's joints at the evaluation points; NaN where it has no such joint.
    """
    distance = 100.0 * np.linalg.norm(clip_points(character, clip) - source_points, axis=-1)
    names = [point.name.replace("_", " ") for point in character.evaluation_points]
    known = np.isfinite(distance).all(axis=0)
    return {
        name: (float(np.mean(values)), float(np.percentile(values, 95)))
        for name, values, there in zip(names, distance.T, known, strict=True)
        if there
    }


def limb_error_cm(character: Character, clip: MotionClip, source_points: Array) -> float:
    """Mean distance, cm, of wrists, ankles and head from where the source's directions put them on the body's own bones.

    Each limb is laid out from its root on the body, so that neither lengths nor the places of shoulders and hips count. NaN
    where the source has none of these joints.
    """
    points = clip_points(character, clip)
    names = [point.name for point in character.evaluation_points]
    errors = []
    for limb in LIMBS:
        if not set(limb) <= set(names):
            continue
        joints = [names.index(name) for name in limb]
        place = points[:, joints[0]]
        for this, following in pairwise(joints):
            bone = source_points[:, following] - source_points[:, this]
            length = np.linalg.norm(points[:, following] - points[:, this], axis=-1, keepdims=True)
            place = place + length * bone / np.maximum(np.linalg.norm(bone, axis=-1, keepdims=True), 1e-9)
        errors.append(100.0 * np.linalg.norm(points[:, joints[-1]] - place, axis=-1))
    known = [np.mean(error) for error in errors if np.isfinite(error).all()]
    return float(np.mean(known)) if known else float("nan")
