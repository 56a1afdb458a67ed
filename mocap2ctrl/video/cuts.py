"""Cuts: where a video goes over to another scene, at once, by a dissolve, or from and to a blank picture."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Masks
from mocap2ctrl.video.decode import Footage, Image

LOOK, CELLS = (64, 36), (8, 4)
"""Width and height at which frames are compared, and cells in which each for itself: a near body covers some of them only."""
COARSE = 3.0
"""Standard deviation of the window, pixels of that, whose mean is taken off: what is left is the scene's and not the light's."""
BLANK = 1.0
"""Grey levels, root mean square, below which nothing of a scene is left in a cell."""
ALIKE, OTHER = 0.5, 0.25
"""Correlation from which a cell shows the same, and share of those that show anything below which frames are of other scenes."""
STILL = 0.6
"""Share of the cells that keep their texture before a still camera, though a body hides some."""
CHANGED = 12.0, 25.0
"""Mean difference of two frames, grey levels, that goes with a cut, and with a dissolve, in whose time a body gets farther."""
CALM = 0.5
"""Share of that difference that may be between frames before it, or after it: a camera that turns makes more."""
DISSOLVE_S, RIM_S = 0.5, 0.1
"""How far apart the frames are that a dissolve lies between, and how long it goes on beyond where the two scenes differ most."""


def one_scene(footage: Footage, moment_s: float | None = None) -> tuple[Footage, str | None]:
    """A part of a video without a cut, and a sentence for the user where there is one; times are the file's.

    Args:
        footage: as decoded.
        moment_s: that must be in it, where there is one; else the longest part is taken.
    """
    parts = scenes(footage.images, footage.fps)
    if len(parts) == 1:
        return footage, None
    wanted = None if moment_s is None else (moment_s / footage.slowmo - footage.start_s) * footage.fps
    around = [part for part in parts if wanted is not None and part[0] <= wanted < part[1]]
    first, last = max(around or parts, key=lambda part: part[1] - part[0])
    times = footage.slowmo * (
        footage.start_s + np.array([first, last, *(begun for begun, _ in parts[1:])]) / footage.fps
    )
    begin, end, *cuts = times.tolist()
    told = ", ".join(f"{cut:.2f}" for cut in cuts[:4]) + (" and on" if len(cuts) > 4 else "")
    part = replace(footage, images=footage.images[first:last], start_s=footage.start_s + first / footage.fps)
    return part, (
        f"the video goes over to another scene at {told} s; used is {'that of --person' if around else 'the longest part'}, "
        f"{begin:.2f} to {end:.2f} s: choose another with --time-range A B"
    )


def keeps_its_place(images: Image) -> bool:
    """Whether the middle frame's texture, coarsely, is where it was in most frames (T, H, W, 3): nothing turns or wanders."""
    texture = _texture(_looks(images))
    middle = texture[len(texture) // 2]
    shows = np.any(middle, axis=-1)
    same = np.einsum("tkn,kn->tk", texture[:, shows], middle[shows]) > ALIKE
    return bool(shows.any() and np.median(np.mean(same, axis=1)) > STILL)


def scenes(images: Image, fps: float) -> list[tuple[int, int]]:
    """First frame, and the one after the last, of each part of a clip (T, H, W, 3) in which the scene stays the same."""
    if len(images) < 2:
        return [(0, len(images))]
    looks = _looks(images)
    texture = _texture(looks)
    lag = max(2, round(DISSOLVE_S * fps))
    hard = _changes(looks, texture, 1, CHANGED[0])
    soft = _changes(looks, texture, lag, CHANGED[1]) if len(images) > 3 * lag else np.zeros(0, bool)
    parts, begun = [], 0
    for last, first in _cuts(hard, soft, lag, round(RIM_S * fps)):
        parts.append((begun, last + 1))
        begun = max(begun, first)
    return [*(p for p in parts if p[1] > p[0]), (begun, len(images))]


def _looks(images: Image) -> npt.NDArray[np.float32]:
    """(T, h, w, 3) the frames, small."""
    return np.stack([cv2.resize(image, LOOK, interpolation=cv2.INTER_AREA) for image in images]).astype(np.float32)


def _texture(looks: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(T, K, N) of each cell what is finer than light and shade, of length 1; 0 where nothing is."""
    grey = looks.mean(axis=-1)
    fine = np.stack([g - cv2.GaussianBlur(g, (0, 0), COARSE) for g in grey])
    cells = fine.reshape(len(fine), CELLS[1], LOOK[1] // CELLS[1], CELLS[0], LOOK[0] // CELLS[0]).swapaxes(2, 3)
    cells = cells.reshape(len(fine), CELLS[0] * CELLS[1], -1)
    size = np.sqrt(np.mean(cells**2, axis=-1, keepdims=True))
    return np.asarray(
        np.where(size > BLANK, cells / np.maximum(size, BLANK), 0.0) / np.sqrt(cells.shape[-1]), np.float32
    )


def _changes(looks: npt.NDArray[np.float32], texture: npt.NDArray[np.float32], lag: int, least: float) -> Masks:
    """(T - lag,) whether the scene changes from a frame to the one so much later, and is calm before and after that."""
    shows = np.any(texture, axis=-1)
    shows = shows[:-lag] | shows[lag:]
    same = np.einsum("tkn,tkn->tk", texture[:-lag], texture[lag:]) > ALIKE
    alike = np.count_nonzero(same, axis=1) >= OTHER * np.count_nonzero(shows, axis=1)
    away = np.abs(looks[lag:] - looks[:-lag]).mean(axis=(1, 2, 3))
    padded = np.concatenate([np.zeros(lag), away, np.zeros(lag)])
    around = np.maximum(padded[: len(away)], padded[2 * lag :])
    return np.asarray(~alike & (away > least) & (around < CALM * away))


def _cuts(hard: Masks, soft: Masks, lag: int, rim: int) -> list[tuple[int, int]]:
    """The last frame of a scene and the first of the next one, of each cut; a dissolve with a cut inside is that cut."""
    cuts = [(int(t), int(t) + 1) for t in np.flatnonzero(hard)]
    for run in np.split(np.flatnonzero(soft), np.flatnonzero(np.diff(np.flatnonzero(soft)) > 1) + 1):
        if len(run) and not hard[run[0] : run[-1] + lag].any():
            cuts.append((int(run[-1]) - rim, min(int(run[0]) + lag + rim, len(hard))))
    return sorted(cuts)
