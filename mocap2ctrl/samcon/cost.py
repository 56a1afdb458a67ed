"""How far a fragment's end is from its reference (Liu 2016, Eq. 20).

The first four terms are those of Liu 2010, which the paper does not print; the forms here are ours. All are measured in the
heading frames of the two states, so that neither place nor heading counts:

- E_p, pose: root mean square difference of the hinge angles, those of the wrists and toes by a tenth, radians;
- E_r, root: angle between the root's tilts, radians, and the difference of their heights, metres;
- E_e, ends: mean difference of the heights of feet, hands and head, metres;
- E_b, balance: mean length of the difference of the planar vectors from the centre of mass to the feet, by body height;
- E_c, E_v, E_L: length of the difference of c (metres), c' (m/s) and L (kg m^2/s);
- E_a: length of the action, radians.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.samcon.body import Body, body_of, see
from mocap2ctrl.samcon.features import snapshot_coordinates, state_features
from mocap2ctrl.types import Array

TERMS = ("pose", "root", "ends", "balance", "com", "com_velocity", "momentum", "action")
WEIGHTS = np.array([4.0, 4.0, 10.0, 1.0, 3.0, 0.1, 0.03, 0.5])
"""Of the terms, in order (§5.3)."""
LEGS = ("thigh", "shank", "foot", "toes")
LIGHT_GROUPS, LIGHT = ("wrist", "toe"), 0.1


@dataclass(frozen=True, eq=False)
class Ends:
    """States as the cost compares them.

    Attributes:
        features: (N, 18) s.
        angles: (N, J) radians.
        heights: (N, Q) of feet, hands and head, metres.
        lowest: (N, U) of the lowest points of all segments but the legs', metres.
    """

    features: Array
    angles: Array
    heights: Array
    lowest: Array


class Cost:
    """Eq. 20 for one character."""

    def __init__(self, character: Character) -> None:
        self.character = character
        self.body: Body = body_of(character)
        self._height_m = character.height_m
        groups = [character.groups[g] for g in character.hinge_group]
        self._upper = np.array([i for i, s in enumerate(character.segments) if not s.name.endswith(LEGS)])
        weights = np.array([LIGHT if group in LIGHT_GROUPS else 1.0 for group in groups])
        self._share = weights / weights.sum()

    def ends(self, snapshots: Array) -> Ends:
        """What of snapshots (N, K) is compared."""
        qpos, qvel = snapshot_coordinates(snapshots, len(self.body.masses.axis))
        seen = see(self.body, qpos, qvel)
        return Ends(state_features(qpos, seen), qpos[:, 7:], seen.points[..., 2], seen.lowest[:, self._upper])

    def terms(self, ends: Ends, reference: Ends, actions: Array) -> Array:
        """(N, 8) the unweighted terms of N ends against one reference (arrays of length 1), for actions (N, A)."""
        s, r = ends.features, reference.features
        feet = [np.linalg.norm(s[:, i : i + 2] - r[:, i : i + 2], axis=1) for i in (9, 12)]
        return np.stack(
            [
                np.sqrt(np.sum(self._share * (ends.angles - reference.angles) ** 2, axis=1)),
                np.linalg.norm(s[:, 0:2] - r[:, 0:2], axis=1) + np.abs(s[:, 2] - r[:, 2]),
                np.mean(np.abs(ends.heights - reference.heights), axis=1),
                (feet[0] + feet[1]) / (2.0 * self._height_m),
                np.linalg.norm(s[:, 3:6] - r[:, 3:6], axis=1),
                np.linalg.norm(s[:, 6:9] - r[:, 6:9], axis=1),
                np.linalg.norm(s[:, 15:18] - r[:, 15:18], axis=1),
                np.linalg.norm(actions, axis=1),
            ],
            axis=1,
        )
