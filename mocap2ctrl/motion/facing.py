"""Where a body faces, in its file's own axes, and whether these are left-handed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mocap2ctrl.character.model import SIDES
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.rotations import unit
from mocap2ctrl.motion.anatomy import Body
from mocap2ctrl.types import Array

MIRROR = np.array([1.0, -1.0, 1.0])
SLANT_DEG = 10.0
"""Below this angle a body faces along an axis."""


def facing(body: Body, up: str, *, left_handed: bool = False) -> str:
    """`+z`, or `+z, 30° towards +x`, of the first frame: square to the line from hip to hip, and to `up`.

    The axes are those of the file, of which the body is the mirror image where they are `left_handed`.
    """
    left = body.at("left", "hip")[0] - body.at("right", "hip")[0]
    front = np.array([left[1], -left[0], 0.0])
    if not np.linalg.norm(front) > 1e-9:
        return "unknown"
    front = front * MIRROR if left_handed else front
    in_file = rotations.rotate(rotations.conjugate(body.to_z_up), front / np.linalg.norm(front))
    return _named(in_file, "xyz".index(up[-1]))


def mirrored(body: Body) -> Body:
    """The mirror image, left for right, rest pose included: what left-handed axes mean by the numbers of a file."""
    across = int(np.argmax(np.abs(rotations.to_matrix(body.to_z_up)[1])))  # the file's axis that becomes y, or -y
    mirror, turns = np.ones(3), -np.ones(4)  # a turn keeps its angle, and of its axis what lies along `across`
    mirror[across], turns[[0, 1 + across]] = -1.0, 1.0
    source = body.source
    image = replace(
        source,
        positions=source.positions * mirror,
        orientations=source.orientations * turns,
        offsets=source.offsets * mirror,
    )
    orientations = rotations.multiply(body.to_z_up, image.orientations)
    return Body(image, body.joints, body.positions * MIRROR, orientations, body.to_z_up)


def feet_forwards(body: Body) -> float:
    """Mean cosine between the feet and the front that hips and trunk tell, square to the trunk; 0 where there are no feet."""
    left = body.at("left", "hip") - body.at("right", "hip")
    trunk = (
        body.at("left", "shoulder") + body.at("right", "shoulder") - body.at("left", "hip") - body.at("right", "hip")
    )
    front = unit(np.cross(left, trunk))
    cosines = [0.0]
    for side in SIDES:
        ankle = body.joints.limbs[side, "ankle"]
        end = body.end_of_foot(side)
        if end is not None:
            cosines.append(
                float(np.mean(np.sum(unit(body.positions[:, end] - body.positions[:, ankle]) * front, axis=-1)))
            )
    return float(np.mean(cosines[1:] or cosines))


def _named(direction: Array, up: int) -> str:
    size = np.abs(direction)
    size[up] = -1.0
    main, second = np.argsort(-size)[:2]
    slant = float(np.degrees(np.arctan2(size[second], size[main])))
    signed = [f"{'-' if direction[axis] < 0.0 else '+'}{'xyz'[axis]}" for axis in (main, second)]
    return signed[0] if slant < SLANT_DEG else f"{signed[0]}, {slant:.0f}° towards {signed[1]}"
