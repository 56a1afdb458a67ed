"""What the camera of a video saw: its frames, dimmed or grey, silhouettes outlined on them, and parts of them at any size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import cv2
import numpy as np

from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.geometry.camera import cropped
from mocap2ctrl.geometry.masks import signed_distances
from mocap2ctrl.report.camera import VideoCamera
from mocap2ctrl.report.ground import Float, Image
from mocap2ctrl.types import Array, Camera, Silhouettes
from mocap2ctrl.video.silhouettes import LoadedSilhouettes

PLAIN = (238, 241, 244)
PERSON = (158, 166, 177)
OUTLINE = (255, 224, 50)
HALO = (20, 22, 26)
DIMMED = 0.62
PADDING = 4
"""Pixels around a mask in which its distances go on."""
SMOOTHING_PX = 0.6
"""Takes the steps of pixels out of outlines, in pixels of the mask."""

Size = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Footage:
    """The frames of a video, undistorted.

    Attributes:
        frames: (T, H, W, 3) RGB.
        camera: the ideal pinhole that sees them, in the place of the one that sees the silhouettes.
        fps: frames a second; the first is at time 0, as that of the silhouettes.
    """

    frames: Image
    camera: Camera
    fps: float

    def __post_init__(self) -> None:
        shape, (width, height) = np.shape(self.frames), self.camera.size
        if len(shape) != 4 or shape[0] == 0 or shape[1:] != (height, width, 3):
            raise Mocap2CtrlError(
                f"frames have shape {shape}; expected (frames, {height}, {width}, 3), the camera's size"
            )
        if not (np.isfinite(self.fps) and self.fps > 0):
            raise Mocap2CtrlError(f"fps is {self.fps}; expected a positive number")


def footage_of(loaded: LoadedSilhouettes) -> Footage | None:
    """The footage of a loaded video; None for a user's masks."""
    return None if loaded.frames is None else Footage(loaded.frames, loaded.frames_camera, loaded.silhouettes.fps)


class Part(NamedTuple):
    """A rectangle of a picture, in whole pixels."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, eq=False)
class Scene:
    """Silhouettes, and the footage that they come from if there is any; without it the silhouettes are the picture.

    Attributes:
        silhouettes: where the person is.
        footage: of the same moments, seen from the same place.
    """

    silhouettes: Silhouettes
    footage: Footage | None = None

    @property
    def camera(self) -> Camera:
        """That sees the whole picture."""
        return self.silhouettes.camera if self.footage is None else self.footage.camera

    @property
    def whole(self) -> Part:
        """The whole picture."""
        return Part(0, 0, *self.camera.size)

    @property
    def duration_s(self) -> float:
        """Time from the first to the last silhouette, seconds."""
        return (len(self.silhouettes) - 1) / self.silhouettes.fps

    def frame_at(self, time_s: float) -> int:
        """The silhouette nearest to a time; the ends are held."""
        return int(np.clip(round(time_s * self.silhouettes.fps), 0, len(self.silhouettes) - 1))

    def view(self, part: Part, size: Size) -> VideoCamera:
        """The camera of a part of the picture, at a width and height of its own."""
        return VideoCamera(cropped(self.camera, *part, size))

    def picture(self, frame: int, part: Part, size: Size) -> Image:
        """A part of the frame of silhouette `frame`, RGB; without footage the person in grey."""
        if self.footage is None:
            return self.silhouette(frame, part, size)
        index = min(round(frame / self.silhouettes.fps * self.footage.fps), len(self.footage.frames) - 1)
        left, top, width, height = part
        cut = self.footage.frames[index, top : top + height, left : left + width]
        smaller = size[0] < width
        return np.asarray(cv2.resize(cut, size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_CUBIC), np.uint8)

    def silhouette(self, frame: int, part: Part, size: Size) -> Image:
        """A part of silhouette `frame` in grey on a plain background, RGB."""
        inside = np.clip(0.5 - self.distances(frame, part, size), 0.0, 1.0)[..., None]
        plain, person = (np.array(colour, np.float32) for colour in (PLAIN, PERSON))
        return np.asarray(np.rint(plain + inside * (person - plain)), np.uint8)

    def distances(self, frame: int, part: Part, size: Size) -> Float:
        """(h, w) distance of each pixel of a part from the person's outline, in its own pixels, negative inside."""
        fx, fy, cx, cy = self.view(part, size).pinhole
        gx, gy, dx, dy = VideoCamera(self.silhouettes.camera).pinhole
        sx, sy = fx / gx, fy / gy
        # Padded pixel p is pixel p - PADDING of the mask.
        forward = np.array([[sx, 0.0, cx - sx * (dx + PADDING)], [0.0, sy, cy - sy * (dy + PADDING)]])
        own = self._own_distances(frame)
        far = float(own.max())
        laid = cv2.warpAffine(own, forward, size, flags=cv2.INTER_LINEAR, borderValue=(far, far, far, far))
        return np.asarray(laid * np.float32(0.5 * (sx + sy)), np.float32)

    def _own_distances(self, frame: int) -> Float:
        mask = np.pad(self.silhouettes.masks[frame], PADDING)
        if not mask.any():
            return np.full(mask.shape, np.float32(max(mask.shape)))
        distances = signed_distances(mask[None])[0].astype(np.float32)
        return np.asarray(cv2.GaussianBlur(distances, (0, 0), SMOOTHING_PX), np.float32)

    @cached_property
    def boxes(self) -> Array:
        """(T, 4) left, top, right, bottom of the person in pixels of the picture; NaN for frames without evidence."""
        masks = self.silhouettes.masks
        boxes = np.full((len(masks), 4), np.nan)
        for box, mask in zip(boxes, masks, strict=True):
            if mask.any():
                rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
                box[:] = columns[0] - 0.5, rows[0] - 0.5, columns[-1] + 0.5, rows[-1] + 0.5
        fx, fy, cx, cy = VideoCamera(self.camera).pinhole
        gx, gy, dx, dy = VideoCamera(self.silhouettes.camera).pinhole
        scale, shift = np.array([fx / gx, fy / gy] * 2), np.array([cx - dx * fx / gx, cy - dy * fy / gy] * 2)
        return np.asarray(boxes * scale + shift)


def draw_outline(image: Image, distances: Float, *, width_px: float = 2.0) -> None:
    """Draw the line of distance 0 on an RGB image (H, W, 3), in place, in yellow on a dark halo."""
    far = np.abs(distances)
    for colour, half, strength in ((HALO, 0.5 * width_px + 1.2, 0.55), (OUTLINE, 0.5 * width_px, 1.0)):
        cover = strength * np.clip(half + 0.5 - far, 0.0, 1.0)[..., None]
        np.copyto(image, np.rint(image + cover * (np.array(colour, np.float32) - image)).astype(np.uint8))


def dimmed(image: Image) -> Image:
    """The image, darker and paler, so that what is drawn over it stands out."""
    grey = image.mean(axis=2, keepdims=True)
    return np.asarray(np.rint(DIMMED * (0.7 * image + 0.3 * grey)), np.uint8)


def greyed(image: Image) -> Image:
    """The image in pale grey: of a time that is over."""
    grey = 0.45 * image.mean(axis=2, keepdims=True) + 105.0
    return np.asarray(np.repeat(np.rint(grey), 3, axis=2), np.uint8)
