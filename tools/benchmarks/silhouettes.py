"""Masks of rendered footage against the exact ones: how well the person is told from the scene, under what a camera meets."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout

import numpy as np
import render_video

from benchmarks.rows import CACHE, Row
from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.extract import from_video

CLIPS = {
    "walk": ("humanoid3d_walk", "--seconds", "1.6"),
    "jump": ("humanoid3d_jump",),
}
CONDITIONS: dict[str, tuple[str, ...]] = {
    "clean": ("--crf", "18"),
    "shadow and noise": ("--scene", "street", "--noise", "3"),
    "moving light": ("--light", "drift", "cloud"),
    "strong compression": ("--crf", "36"),
    "no empty frame": ("--no-plate",),
    "moving leaves": ("--no-plate", "--scene", "garden", "--sway", "1.5"),
    "studio, in place": ("--no-plate", "--in-place", "--scene", "green"),
    "ordinary wall, in place": ("--no-plate", "--in-place", "--scene", "street"),
}
"""Arguments of `tools/render_video.py`."""
SIZE = "480x270"
NOTE = (
    "Intersection over union of each frame's mask with the exact one; the mean over the frames that are used, then the median\n"
    "(worst) over two clips and the seeds. Frames that are not used do not count; a clip that is refused counts as 0. All but the\n"
    "clean footage is compressed as a messenger does."
)


def silhouettes(options: argparse.Namespace) -> Iterator[Row]:
    """Renders footage under each condition and looks for the person."""
    for condition in options.clips or CONDITIONS:
        for clip in list(CLIPS)[: 1 if options.quick else None]:
            for seed in options.seeds:
                yield from _rows(condition, clip, seed)


def _rows(condition: str, clip: str, seed: int) -> Iterator[Row]:
    name = f"{clip}_{seed}_{condition.replace(',', '').replace(' ', '_')}"
    file = CACHE / "silhouettes" / f"{name}.mp4"
    masks = file.with_name(f"{name}.masks.npz")
    if not masks.is_file():
        more = (*CONDITIONS[condition], "--seed", str(seed), "--size", SIZE, "--subframes", "2", "--masks")
        with redirect_stdout(sys.stderr):
            if render_video.main([*CLIPS[clip], *more, "-o", str(file)]) != 0:
                return
    with np.load(masks) as data:
        truth = data[name]
    begun = time.process_time()
    try:
        found = from_video(file)
    except VideoError as error:
        print(error, file=sys.stderr)
        yield Row(f"{condition} | overlap", "", 0.0, "", seed)
        return
    spent = time.process_time() - begun
    first = round(found.start_s * found.fps)
    print(f"{name}: {found.method}", file=sys.stderr)
    yield Row(f"{condition} | overlap", "", overlap(found.masks, truth[first : first + len(found.masks)]), "", seed)
    yield Row(f"{condition} | core time a frame", "", 1000.0 * spent / len(truth), "ms", seed)


def overlap(masks: Masks, truth: Masks) -> float:
    """Mean over frames of the intersection over union of (T, H, W) masks."""
    both = np.count_nonzero(masks & truth, axis=(1, 2))
    return float(np.mean(both / np.maximum(np.count_nonzero(masks | truth, axis=(1, 2)), 1)))
