"""Soft ground in a MuJoCo model: each point of contact as a spring and a damper to the ground.

A contact's force in MuJoCo is (a_ref - a) / R, with a_ref = -(damping v + stiffness r) / d at depth r (direct `solref`, impedance
d) and R = (1 - d) / d times the inverse mass that MuJoCo takes the touching body to have. So a spring of K newtons a metre is a
stiffness of K (1 - d) times that inverse mass; what is left, -a / R, is the inertia of a share d of the body, which a small d makes
negligible. Friction has rows of its own under the elliptic cone, and is kept stiff.
"""

from __future__ import annotations

import mujoco
import numpy as np

from mocap2ctrl.character.kinematics import points_world, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.simulation.environment import Softness

IMPEDANCE = 0.01
SLIP_RATE = 0.5
"""Share of a foot's sliding velocity that friction removes in a step, within its cone."""
STANDING_M = 0.002
"""A point of the sole that is so near the ground in the zero pose bears the body."""


def soften(model: mujoco.MjModel, character: Character, softness: Softness) -> None:
    """Makes the contacts of `model`, all of them explicit pairs of the ground and a shape, as soft as `softness` says."""
    share = 1.0 / _standing_points(character)
    inverse_mass = model.body_invweight0[model.geom_bodyid[model.pair_geom2], 0]
    spring = np.array([softness.stiffness_n_m, softness.damping_n_s_m]) * share * (1.0 - IMPEDANCE)
    model.pair_solref[:] = -np.outer(inverse_mass, spring)
    model.pair_solreffriction[:] = (-1.0, -SLIP_RATE * IMPEDANCE / model.opt.timestep)
    model.pair_solimp[:, :2] = IMPEDANCE


def _standing_points(character: Character) -> int:
    """How many ends of capsules bear the body in the zero pose."""
    pose = character.zero_pose()
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    owner = [index for index, s in enumerate(character.segments) for _ in range(2 * len(s.capsules))]
    capsules = [c for s in character.segments for c in s.capsules]
    ends = points_world(*frames, owner, np.array([end for c in capsules for end in (c.start, c.end)]))
    heights = ends[:, 2] - np.repeat([c.radius for c in capsules], 2)
    return int(np.sum(heights < heights.min() + STANDING_M))
