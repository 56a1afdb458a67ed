"""How far a retargeted motion is from its source, joint by joint: so that a bad retarget is told from a bad fit."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.types import Array, MotionClip


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
