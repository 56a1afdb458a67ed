"""How the camera moves: the path of the picture over a clip, in shift, turn and zoom."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array
from mocap2ctrl.video.decode import Image, working_size
from mocap2ctrl.video.registration import Complex, Register, Similarity

LOOK_PIXELS = 320 * 180
"""Area of the pictures that are compared; corners are found again to a tenth of a pixel."""
SAMPLES = 240
"""Frames that are looked at."""
FAR = 0.25
"""Share of the width: frames that are shifted by more are compared with a nearer one than the clip's first."""
MOST_STEPS = 16
"""Frames between two that are looked at, through which the scene is followed one by one if they do not compare."""
RARELY = 0.02
"""Share of the frames whose measure may be a slip."""


@dataclass(frozen=True, eq=False)
class CameraPath:
    """Where the scene is in the frames that were looked at.

    Attributes:
        frames: (N,) their numbers.
        zoom, turn, shift: (N,) each against the first frame: a factor; radians, clockwise; complex pixels of the picture's centre,
            right and down. NaN where nothing can be told.
        size: width and height of the frames, pixels.
        rich: whether the first frame has enough all over to be found again.
    """

    frames: npt.NDArray[np.intp]
    zoom: Array
    turn: Array
    shift: Complex
    size: tuple[int, int]
    rich: bool = True

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """(N,) where something can be told."""
        return np.isfinite(self.zoom)

    @property
    def middle(self) -> Similarity:
        """From the first frame to where the scene usually is."""
        a = np.median(self.zoom[self.known]) * np.exp(1j * np.median(self.turn[self.known]))
        b = complex(np.median(self.shift.real[self.known]), np.median(self.shift.imag[self.known]))
        return Similarity(complex(a), b)

    def away(self, origin: Similarity) -> Array:
        """(N,) how far the scene is from where `origin` has it, pixels, root mean square over the picture; NaN where unknown."""
        points = _grid(self.size)
        poses = self.zoom * np.exp(1j * self.turn)
        moved = poses[:, None] * points + self.shift[:, None]
        return np.asarray(np.sqrt(np.mean(np.abs(moved - origin(points)) ** 2, axis=1)))

    @property
    def shake_px(self) -> float:
        """How far the scene is from its usual place at most, but for rare slips of the measure, pixels."""
        return float(np.quantile(self.away(self.middle)[self.known], 1.0 - RARELY)) if self.known.any() else 0.0

    @property
    def reach_px(self) -> float:
        """Distance of the picture's points from its centre, pixels, root mean square: what a radian, or a zoom by 1, moves them."""
        return float(np.sqrt(np.mean(np.abs(_grid(self.size)) ** 2)))

    @property
    def farthest_px(self) -> float:
        """The largest shift between any two frames, pixels."""
        known = self.shift[self.known]
        return float(np.max(np.abs(known[:, None] - known)))

    @property
    def turn_range(self) -> float:
        """Between the frames that are turned most and least, radians."""
        return float(np.ptp(self.turn[self.known]))

    @property
    def zoom_range(self) -> float:
        """The largest zoom between any two frames, less 1."""
        known = self.zoom[self.known]
        return float(known.max() / known.min() - 1.0)

    def pose(self, index: int) -> Similarity:
        """From the first frame to the one with this index into `frames`."""
        return Similarity(complex(self.zoom[index] * np.exp(1j * self.turn[index])), complex(self.shift[index]))

    def moving(self, most_px: float) -> tuple[int, int]:
        """The frames between which the scene leaves its first place, and comes to its last, each within `most_px`."""
        indices = np.flatnonzero(self.known)
        left = np.flatnonzero(self.away(self.pose(indices[0]))[indices] > most_px)
        came = np.flatnonzero(self.away(self.pose(indices[-1]))[indices] > most_px)
        first = indices[max(0, left[0] - 1)] if len(left) else indices[0]
        last = indices[min(len(indices) - 1, came[-1] + 1)] if len(came) and self.known[-1] else len(self.frames) - 1
        return int(self.frames[first]), int(self.frames[last])

    def longest_still(self, most_px: float) -> tuple[int, int]:
        """First and last frame of the longest part in which the scene stays within `most_px` of its place at one moment of it."""
        best = (0, 0)
        for middle in map(int, np.flatnonzero(self.known)):
            first, last = self._still_beyond(middle, middle, middle, most_px)
            if self.frames[last] - self.frames[first] > best[1] - best[0]:
                best = (int(self.frames[first]), int(self.frames[last]))
        return best

    def still_around(self, part: tuple[int, int], most_px: float) -> tuple[int, int]:
        """First frame, and the one after the last, of what joins on to a part of the clip, the camera standing as it does there."""
        inside = np.flatnonzero((self.frames >= part[0]) & (self.frames < part[1]))
        known = inside[self.known[inside]]
        if len(known) == 0:
            return part
        first, last = self._still_beyond(int(known[len(known) // 2]), int(inside[0]), int(inside[-1]), most_px)
        return min(part[0], int(self.frames[first])), max(part[1], int(self.frames[last]) + 1)

    def _still_beyond(self, origin: int, low: int, high: int, most_px: float) -> tuple[int, int]:
        """First and last index, below `low` and above `high`, until the scene is farther than that from its place at `origin`."""
        apart = np.flatnonzero(~(self.away(self.pose(origin)) <= most_px))  # unknown ones are not still
        return int(apart[apart < low].max(initial=-1)) + 1, int(apart[apart > high].min(initial=len(self.frames))) - 1


def _grid(size: tuple[int, int]) -> Complex:
    """Points all over a picture, from its centre."""
    x, y = np.meshgrid(*(np.linspace(-0.5, 0.5, 7) * length for length in size))
    return np.asarray((x + 1j * y).ravel())


def camera_path(images: Image, *, samples: int = SAMPLES, pixels: int = LOOK_PIXELS) -> CameraPath:
    """Follows the still scene through a clip.

    Each frame that is looked at is compared with the first one or, where that has gone out of sight, with a nearer one.

    Args:
        images: (T, H, W, 3).
        samples: how many of them to look at.
        pixels: area at which to look at them.
    """
    frames = np.unique(np.linspace(0, len(images) - 1, min(len(images), samples)).astype(int))
    follower = _Follower(images, pixels)
    poses = [follower.pose(int(t)) for t in frames]
    values = np.array([(np.nan, np.nan + 0j) if p is None else (p.a, p.b) for p in poses], complex)
    scale = images.shape[2] / follower.size[0]
    turn, known = np.angle(values[:, 0]), np.isfinite(values[:, 0])
    turn[known] = np.unwrap(turn[known])
    return CameraPath(
        frames=frames,
        zoom=np.abs(values[:, 0]),
        turn=turn,
        shift=values[:, 1] * scale,
        size=(images.shape[2], images.shape[1]),
        rich=follower.rich,
    )


def small_grey(image: Image, size: tuple[int, int]) -> Image:
    """(h, w) grey levels of a picture (H, W, 3) at another width and height, by the mean of the area."""
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.uint8)


class _Follower:
    """Finds the poses of later and later frames."""

    def __init__(self, images: Image, pixels: int) -> None:
        self._images = images
        self.size = working_size((images.shape[2], images.shape[1]), pixels)
        self._first = Register(self._grey(0))
        self._key, self._key_frame, self._key_pose = self._first, 0, Similarity()
        self._last: tuple[int, Similarity] = (0, Similarity())

    @property
    def rich(self) -> bool:
        """Whether the first frame has enough all over to be found again."""
        return self._first.rich

    def pose(self, frame: int) -> Similarity | None:
        """From the first frame to this one."""
        grey = self._grey(frame)
        found = self._from_first(grey) or self._from_key(grey) or self._from_last(frame, grey)
        if found is not None:
            self._last = (frame, found)
        return found

    def _grey(self, frame: int) -> Image:
        return small_grey(self._images[frame], self.size)

    def _from_first(self, grey: Image) -> Similarity | None:
        if abs(self._last[1].b) > FAR * self.size[0]:
            return None
        return self._first.find(grey, self._last[1])

    def _from_key(self, grey: Image) -> Similarity | None:
        """By the frame that the last ones were compared with."""
        if self._key is self._first:
            return None
        step = self._key.find(grey, self._last[1].after(self._key_pose.inverse()))
        return None if step is None else step.after(self._key_pose)

    def _from_last(self, frame: int, grey: Image) -> Similarity | None:
        """By the last frame whose pose is known, step by step if it must be."""
        begin, pose = self._last
        if self._key_frame != begin:
            self._key, self._key_frame, self._key_pose = Register(self._grey(begin)), begin, pose
            step = self._key.find(grey)
            if step is not None:
                return step.after(pose)
        between = (begin + frame) // 2
        if between == begin or frame - begin > MOST_STEPS:
            return None
        return self.pose(frame) if self.pose(between) is not None else None
