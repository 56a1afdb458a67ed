"""A person who moves before a porch: masks and frames made from a known motion, for tests of what users see of a video."""

from __future__ import annotations

import cv2
import numpy as np

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.geometry.camera import cropped
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.report.performer import Performer
from mocap2ctrl.report.scene import Footage
from mocap2ctrl.types import Camera, Masks, MotionClip, Silhouettes

GIRTH = 1.15
FPS = 25.0
BLIND = 4
"""A frame without evidence."""

PICTURE = Camera(
    "porch",
    (320, 240),
    [[290.0, 0.0, 150.0], [0.0, 300.0, 127.0], [0.0, 0.0, 1.0]],
    cv2.Rodrigues(np.array([[1.0, 0, 0], [0, -0.1, -0.995], [0, 0.995, -0.1]]))[0][:, 0],
    [0.0, 1.0, 3.3],
)
"""Sees frames: pixels that are not square, a principal point off the middle, and a little tilt."""
REGION = (40.0, 10.0, 240.0, 220.0)
WORKING = cropped(PICTURE, *REGION, (96, 88))
"""Sees the silhouettes."""


def motion(character: Character, seconds: float, *, shift: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> MotionClip:
    """A body that slides to the right and swings its limbs."""
    times = np.arange(round(seconds * FPS) + 1) / FPS
    angles = np.zeros((len(times), len(character.hinges)))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        angles[:, character.hinge_names.index(f"{side}_thigh.flexion")] = 0.2 + 0.4 * sign * np.sin(6.0 * times)
        angles[:, character.hinge_names.index(f"{side}_shank.flexion")] = 0.5 + 0.3 * sign * np.sin(6.0 * times)
    position = character.zero_pose().root_position + np.stack([0.5 * times - 0.2, 0 * times, 0 * times], axis=1)
    return MotionClip("porch", FPS, position + shift, np.tile([1.0, 0, 0, 0], (len(times), 1)), angles)


def seen(character: Character, clip: MotionClip, camera: Camera) -> Masks:
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    shape = body_shape(character)
    return rasterise(capsule_ends(shape, *frames), shape.radii_at(GIRTH), camera)


def track_of(character: Character) -> MotionClip:
    return motion(character, 0.6)


def silhouettes_of(character: Character) -> Silhouettes:
    masks = seen(character, track_of(character), WORKING)
    masks[BLIND] = False
    return Silhouettes("porch", FPS, masks, WORKING)


def footage_from(character: Character) -> Footage:
    """Green frames on which the person is red."""
    masks = seen(character, track_of(character), PICTURE)
    return Footage(np.where(masks[..., None], [200, 30, 30], [40, 150, 60]).astype(np.uint8), PICTURE, FPS)


def performer_of(character: Character) -> Performer:
    """Two centimetres too far to the right, and for 0.4 s longer than the video."""
    return Performer(character, GIRTH, motion(character, 1.0, shift=(0.02, 0.0, 0.0)))
