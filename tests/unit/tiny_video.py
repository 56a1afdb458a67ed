"""A video small enough to be fitted within a test: silhouettes of the beginning of a walk, seen from the side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames, evaluation_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.evaluation.replay import Replay
from mocap2ctrl.fit.capture import prepare_folder
from mocap2ctrl.fit.config import FitConfig, budget
from mocap2ctrl.fit.video import video_config
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.prior.choose import load_prior
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.track.tracker import Track, TrackConfig
from mocap2ctrl.types import Camera, MotionClip, Silhouettes

WALK = "humanoid3d_walk"
GIRTH = 1.1
SIDE = Camera(
    "side", (96, 72), [[60.0, 0.0, 47.5], [0.0, 60.0, 35.5], [0.0, 0.0, 1.0]], [np.pi / 2, 0.0, 0.0], [-0.3, 0.9, 3.0]
)
"""Three metres to the right of the walk's beginning, level, 0.9 m high."""

TINY_TRACKING = TrackConfig(
    candidates=8, headings=4, hypotheses=2, explored=1, finished=1, rounds=1, moves=1, patience=1
)


def walk_clip(character: Character, seconds: float = 0.4, fps: float = 30.0) -> MotionClip:
    """The beginning of a walk, no loop."""
    clip = load_motion(WALK, character, time_range=(0.0, seconds)).clip
    return resample(replace(clip, loop=False), fps)


def silhouettes_of(
    character: Character, clip: MotionClip, camera: Camera = SIDE, girth: float = GIRTH, **provenance: Any
) -> Silhouettes:
    """What `camera` sees of a body that performs `clip`."""
    shape = body_shape(character)
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    masks = rasterise(capsule_ends(shape, *frames), shape.radii_at(girth), camera)
    return Silhouettes("walk", clip.fps, masks, camera, {"sha256": "of the video", "start_s": 0.0, **provenance})


def true_track(character: Character, clip: MotionClip, girth: float = GIRTH) -> Track:
    """What a tracker that makes no mistake would find."""
    return Track(character, replace(clip, provenance={}), girth, walk_prior(character), 0.0, {}, (0.0,))


def walk_prior(character: Character) -> PosePrior:
    """A prior that has not seen the walk."""
    prior = load_prior("all-but-walk", character)
    assert isinstance(prior, PosePrior)
    return prior


def tiny_config(**settings: Any) -> FitConfig:
    """Few generations, a tracker that hardly tries, weights for video."""
    return video_config(
        replace(budget("quick"), **{"generations": 3, "descents": 1, "tracking": TINY_TRACKING, **settings})
    )


def new_folder(folder: Path) -> Path:
    """The folder of a capture, ready."""
    prepare_folder(folder, resume=False, overwrite=False)
    return folder


def replay_of(character: Character, clip: MotionClip, *, diverged: bool = False) -> Replay:
    """A simulation that went as `clip` goes."""
    positions, orientations = clip_frames(character, clip)
    return Replay(
        clip=clip,
        points=evaluation_points(character, positions, orientations),
        positions=positions,
        orientations=orientations,
        contacts=np.ones((len(clip), 2), dtype=bool),
        state=np.zeros(len(clip), dtype=np.int64),
        torques=np.zeros((len(clip) - 1, clip.angles.shape[1])),
        steps_per_frame=1,
        diverged=diverged,
    )
