"""Simulations that perform a clip, and paths of a tracker that follow one."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import Rollouts
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.track.path import Path as Poses
from mocap2ctrl.types import Array, Camera, MotionClip


def rollouts_of(character: Character, clip: MotionClip, first_frame: int = 0, shift: Array | float = 0.0) -> Rollouts:
    """What a simulation that performed `clip`, moved, would have recorded, both feet in the air, always in state 0."""
    positions, orientations = clip_frames(character, clip)
    return Rollouts(
        first_frame=first_frame,
        qpos=np.concatenate([clip.root_position, clip.root_orientation, clip.angles], axis=1)[None],
        positions=(positions + shift)[None],
        orientations=orientations[None],
        load=np.zeros((1, len(clip), 2)),
        state=np.zeros((1, len(clip)), dtype=np.int64),
        torques=np.zeros((1, 0, clip.angles.shape[1])),
        final=np.zeros((1, 1)),
        diverged=np.zeros(1, dtype=bool),
    )


def walk_at_30_fps(character: Character, first: int, stop: int) -> MotionClip:
    """Frames of DeepMimic's walk."""
    if deepmimic_directory() is None:
        pytest.skip("DeepMimic's clips come with pybullet, which is not installed")
    return resample(load_motion("humanoid3d_walk", character).clip, 30.0).cut(first, stop)


def side_camera(
    clip: MotionClip,
    size: tuple[int, int] = (110, 100),
    focal: float = 150.0,
    centre: tuple[float, float] = (54.5, 38.0),
) -> Camera:
    """From the right of the motion's middle, 3.2 m away and 1.2 m up."""
    turn = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    place = np.array([clip.root_position[:, 0].mean(), clip.root_position[:, 1].mean() - 3.2, 1.2])
    matrix = np.array([[focal, 0, centre[0]], [0, focal, centre[1]], [0, 0, 1]])
    return Camera("side", size, matrix, cv2.Rodrigues(turn)[0].ravel(), -turn @ place)


def poses(clip: MotionClip) -> Poses:
    """The clip as the tracker has it."""
    return Poses(clip.root_position, clip.root_orientation, clip.angles)


def shaken(path: Poses, scale: float) -> Poses:
    """The path with noise."""
    step = scale * np.random.default_rng(0).standard_normal((path.frames, 6 + path.angles.shape[1]))
    step[:, :3] *= 0.2
    return path.moved(step)
