"""How much faster than real time footage is read: decoded, held still, subtracted and masked, on one core."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np

from benchmarks.rows import CACHE, PROJECT, Row
from mocap2ctrl.report.overlay import encode_h264
from mocap2ctrl.video.alignment import held_still
from mocap2ctrl.video.decode import Footage, Image, probe, read_footage
from mocap2ctrl.video.extract import from_video

SAMPLE = PROJECT / "video" / "walk.mp4"
SIZE, FPS, CRF = (1920, 1080), 60, "20"
GRAIN = 2.5
"""Grey levels, standard deviation: what makes a decoder work as a phone's footage does."""
REPEATS = 3
NOTE = (
    "The sample walk, enlarged to 1920x1080, with a frame between every two, so at 60 a second, and grain of its own, in H.264\n"
    "at CRF 20. Real time is the clip's length over processor time of one process, of which OpenCV and the decoder get one core."
)


def decoding(options: argparse.Namespace) -> Iterator[Row]:
    """Decoding alone, with the search for the camera's motion, and all of `from_video`."""
    _one_core()
    for seed in options.seeds:
        video = _clip(seed)
        seconds = probe(video).duration_s
        footage = read_footage(video)
        stages: dict[str, Callable[[], object]] = {
            "1080p60, decoded and reduced": lambda video=video: read_footage(video),
            "1080p60, camera found still": lambda video=video, footage=footage: held_still(footage, str(video)),
            "1080p60, decoded, subtracted and masked": lambda video=video: from_video(video),
        }
        for name, stage in stages.items():
            spent = statistics.median(_core_seconds(stage) for _ in range(1 if options.quick else REPEATS))
            yield Row(f"{name} | processor time", "–", spent, "s", seed)
            yield Row(f"{name} | real time", "–", seconds / spent, "×", seed)


def _one_core() -> None:
    cv2.setNumThreads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _core_seconds(stage: Callable[[], object]) -> float:
    begun = time.process_time()
    stage()
    return time.process_time() - begun


def _clip(seed: int) -> Path:
    """The footage, with the clean plate beside it; made once."""
    video = CACHE / f"walk1080p60_{seed}.mp4"
    if not video.is_file():
        video.parent.mkdir(parents=True, exist_ok=True)
        plate = cv2.imread(str(SAMPLE.with_suffix(".background.jpg")))
        cv2.imwrite(str(video.with_suffix(".background.jpg")), cv2.resize(plate, SIZE, interpolation=cv2.INTER_CUBIC))
        encode_h264(video, _frames(read_footage(SAMPLE), seed), FPS, SIZE, crf=CRF, preset="medium")
    return video


def _frames(footage: Footage, seed: int) -> Iterator[Image]:
    rng = np.random.default_rng(seed)
    for before, after in zip(footage.images[:-1], footage.images[1:], strict=True):
        for image in (before, cv2.addWeighted(before, 0.5, after, 0.5, 0.0)):
            large = cv2.resize(image, SIZE, interpolation=cv2.INTER_CUBIC).astype(np.float32)
            grain = rng.standard_normal(large.shape[:2], np.float32)[..., None] * GRAIN
            yield np.clip(large + grain, 0, 255).astype(np.uint8)
