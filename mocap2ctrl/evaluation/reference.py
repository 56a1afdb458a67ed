"""A motion that a video's capture is compared with: ground truth, or a motion capture of the same performance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.clips import at_times, values_at
from mocap2ctrl.motion.load import ends_standing, load_motion
from mocap2ctrl.motion.npz import read_body_and_motion
from mocap2ctrl.types import Array, MotionClip
from mocap2ctrl.video.samples import TRUTH, shipped_file

SHORTEST_S = 0.1
LATEST_S = 0.05
"""A reference may begin so much later than the capture: a calibration pose in front of it was left out."""


@dataclass(frozen=True, eq=False)
class Reference:
    """A motion over the time of a capture, in the capture's world.

    Attributes:
        character: the standard character of the file's height.
        clip: its motion, from the capture's first frame on.
        source_points: (T, E, 3) evaluation points of the body that was captured or filmed, metres; None if unknown.
    """

    character: Character
    clip: MotionClip
    source_points: Array | None

    def points(self, fps: float) -> Array:
        """(N, E, 3) evaluation points of the character at a rate."""
        return clip_points(self.character, at_rate(self.clip, fps))


def at_rate(clip: MotionClip, fps: float) -> MotionClip:
    """The clip sampled at `fps`, loops like any other."""
    count = int(np.floor(clip.duration_s * fps + 1e-6)) + 1
    return replace(at_times(clip, np.arange(count) / fps), fps=fps)


def load_reference(path: Path | str, height_m: float, part: tuple[float, float] | None = None) -> Reference:
    """Reads a reference.

    Args:
        path: an `.npz` as `motion.npz.write_motion` writes it, with or without `points_m` (T, E, 3) of the body that was filmed,
            or a motion file of any other kind, or the name of a sample video's truth; its clock is the video's.
        height_m: of the body that a motion file without a height is retargeted to.
        part: seconds of the video that the capture was fitted to; all if not given.

    Raises:
        MotionFileError: it cannot be read, ends before the part begins, or begins after it.
    """
    path = shipped_file(path, TRUTH) or path
    if Path(path).suffix.lower() == ".npz":
        character, clip, points = _from_npz(Path(path))
    else:
        character = load_character(height_m=height_m)
        loaded = load_motion(path, character)
        clip, points = loaded.clip, loaded.source_points
    first_s, last_s = clip.start_s, clip.start_s + clip.duration_s
    start_s, end_s = (0.0, last_s) if part is None else part
    if last_s - start_s < SHORTEST_S or first_s - start_s > LATEST_S:
        raise MotionFileError(
            f"{path}: is there from {first_s:.2f} to {last_s:.2f} s, but the capture begins {start_s:.2f} s into its video; "
            "give a reference of the whole video"
        )
    begin_s = max(start_s, first_s)
    seconds = min(end_s, last_s) - begin_s
    times = begin_s - first_s + np.arange(int(np.floor(seconds * clip.fps + 1e-6)) + 1) / clip.fps
    clip = replace(at_times(clip, times), loop=False, start_s=begin_s)
    clip = replace(clip, ends_standing=ends_standing(clip, character))
    return Reference(character, clip, None if points is None else values_at(points, clip.fps, times))


def _from_npz(path: Path) -> tuple[Character, MotionClip, Array | None]:
    if not path.exists():
        raise MotionFileError(f"{path}: no such file; give a truth.npz or a motion.npz, or a .bvh")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            height = float(data["height_m"])
            points = np.asarray(data["points_m"], float) if "points_m" in data.files else None
    except Exception as error:  # a damaged or foreign archive raises many kinds
        raise MotionFileError(f"{path}: not a readable motion .npz; give a truth.npz, or a .bvh") from error
    if not 0.5 <= height <= 3.0:
        raise MotionFileError(f"{path}: height_m is {height:g}; expected metres of a person")
    character, clip = read_body_and_motion(path)
    shape = (len(clip), len(character.evaluation_points), 3)
    if points is not None and (points.shape != shape or not np.isfinite(points).all()):
        raise MotionFileError(f"{path}: points_m has shape {points.shape}; expected {shape}, finite, metres")
    return character, clip, points
