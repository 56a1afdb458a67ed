"""A small synthetic scene for the tests of `mocap2ctrl.video`: a textured room, a figure, its video, its exact masks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
Masks = npt.NDArray[np.bool_]

SIZE = (160, 120)
SHIRT, TROUSERS = (200, 60, 50), (30, 40, 90)


def room(size: tuple[int, int] = SIZE, seed: int = 1) -> Image:
    """A wall and a floor with texture."""
    width, height = size
    rng = np.random.default_rng(seed)
    texture = cv2.GaussianBlur(rng.normal(0, 40, (height, width)).astype(np.float32), (0, 0), 1.2)
    picture = np.full((height, width, 3), (150, 145, 135), np.float32)
    picture[int(0.7 * height) :] = (110, 100, 95)
    return np.clip(picture + texture[..., None], 20, 235).astype(np.uint8)


def figure(x: float, size: tuple[int, int] = SIZE, scale: float = 1.0, lower: float = 0.0) -> Masks:
    """(H, W) a standing figure around column `x`, 0.6 of the picture's height tall times `scale`."""
    width, height = size
    mask = np.zeros((height, width), np.uint8)
    tall, feet = 0.6 * height * scale, 0.85 * height + lower
    top = feet - tall
    cv2.ellipse(mask, (round(x), round(top + 0.1 * tall)), (round(0.08 * tall), round(0.1 * tall)), 0, 0, 360, 1, -1)
    half = round(0.13 * tall)
    cv2.rectangle(mask, (round(x) - half, round(top + 0.18 * tall)), (round(x) + half, round(top + 0.55 * tall)), 1, -1)
    for side in (-1, 1):
        leg = round(x + side * 0.085 * tall)
        half_leg = round(0.05 * tall)
        cv2.rectangle(mask, (leg - half_leg, round(top + 0.5 * tall)), (leg + half_leg, round(feet)), 1, -1)
    return mask > 0


def painted(picture: Image, mask: Masks) -> Image:
    """The scene with a figure: a red shirt above, blue trousers below."""
    result = picture.copy()
    rows = np.flatnonzero(mask.any(axis=1))
    if len(rows):
        waist = int(rows[0] + 0.55 * (rows[-1] - rows[0]))
        result[:waist][mask[:waist]] = SHIRT
        result[waist:][mask[waist:]] = TROUSERS
    return result


def noisy(images: Sequence[Image], level: float = 2.0, seed: int = 5) -> list[Image]:
    """The frames with noise of a sensor, grey levels."""
    rng = np.random.default_rng(seed)
    return [np.clip(i + rng.normal(0, level, i.shape), 0, 255).astype(np.uint8) for i in images]


def walk(positions: Iterable[float | None], size: tuple[int, int] = SIZE) -> tuple[list[Image], Masks]:
    """Frames of a figure at these columns (None: nobody is there), and its masks (T, H, W)."""
    scene, nobody = room(size), np.zeros(size[::-1], bool)
    masks = np.stack([nobody if x is None else figure(x, size) for x in positions])
    return noisy([painted(scene, mask) for mask in masks]), masks


def write_video(path: Path, images: Sequence[Image], fps: float = 30.0, stamps: Sequence[int] | None = None) -> Path:
    """An MP4 of the frames, nearly without loss; `stamps` are the times of the frames, in frames."""
    rate = Fraction(fps).limit_denominator(1001)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate, options={"crf": "8", "preset": "ultrafast"})
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = "yuv444p"
        stream.time_base = 1 / rate
        for number, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            frame.pts, frame.time_base = (number if stamps is None else stamps[number]), 1 / rate
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_png(path: Path, image: Image) -> Path:
    """A PNG of an RGB image or a grey one."""
    path.write_bytes(cv2.imencode(".png", image[..., ::-1] if image.ndim == 3 else image)[1].tobytes())
    return path


def overlap(found: Masks, truth: Masks) -> float:
    """Intersection over union of all masks together."""
    return float(np.count_nonzero(found & truth) / np.count_nonzero(found | truth))
