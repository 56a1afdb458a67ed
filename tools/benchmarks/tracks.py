"""The kinematic track by itself, without a controller: overlap with real masks, and errors where the motion is known."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, measured_before
from benchmarks.videos import filmed
from benchmarks.weizmann import ALL, FPS, MASKS, SEQUENCES
from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import load_character
from mocap2ctrl.evaluation.metrics import mean_errors, source_error
from mocap2ctrl.evaluation.reference import at_rate, load_reference
from mocap2ctrl.evaluation.silhouettes import silhouette_iou
from mocap2ctrl.fit.config import budget
from mocap2ctrl.fit.inputs import video_priors
from mocap2ctrl.fit.run import cpu_seconds
from mocap2ctrl.track.tracker import Track, track
from mocap2ctrl.types import Silhouettes
from mocap2ctrl.video.silhouettes import load_silhouettes

RENDERED = ("walk", "jump", "spinkick", "walk-oblique")
OVERLAP = "overlap"

WEIZMANN_NOTE = (
    "Tracks only, of real masks without calibration or truth, by a camera that is estimated. With --results FILE the\n"
    "sequences that the file has are not tracked again."
)
RENDERED_NOTE = (
    "Tracks only, of rendered footage, under a prior that has not seen the clip; the columns of the table `video`."
)


def weizmann_tracks(options: argparse.Namespace) -> Iterator[Row]:
    """Tracks each sequence with each seed, but for those that the file of results has."""
    if not MASKS.is_file():
        print(f"weizmann-tracks: left out, {MASKS.name} is not beside the project", file=sys.stderr)
        return
    done = measured_before(options.results)
    for name in options.clips or SEQUENCES:
        for seed in options.seeds:
            if (name, seed) in done:
                continue
            seen = load_silhouettes(f"{MASKS}:{name}", fps=FPS).silhouettes
            found, minutes = _tracked(seen, "auto", seed, options)
            iou = silhouette_iou(found.character, found.clip, found.girth, seen)
            for what, value, unit in ((OVERLAP, iou, "IoU"), ("core time", minutes, "min")):
                yield Row(f"{name} | {found.prior.name} | {what}", "", value, unit, seed)
                yield Row(f"{ALL} | any | {what}", "", value, unit, seed)


def rendered_tracks(options: argparse.Namespace) -> Iterator[Row]:
    """Tracks each video with each seed."""
    for case, file in filmed(options.clips or RENDERED):
        seen = load_silhouettes(file).silhouettes
        for seed in options.seeds:
            found, minutes = _tracked(seen, case.prior, seed, options)
            values = {
                **_errors(found, file),
                OVERLAP: (silhouette_iou(found.character, found.clip, found.girth, seen), "IoU"),
            }
            for what, (value, unit) in (values | {"core time": (minutes, "min")}).items():
                yield Row(f"{case.name} | {what}", "", value, unit, seed)


def _tracked(seen: Silhouettes, prior: str, seed: int, options: argparse.Namespace) -> tuple[Track, float]:
    """A track, and the core-minutes that it took."""
    character = load_character()
    first, *others = video_priors(prior, character)
    config = budget("quick" if options.quick else options.budget).tracking
    begun = cpu_seconds()
    found = track(seen, character, first, others=others, seed=seed, workers=options.workers or 2, config=config)
    return found, (cpu_seconds() - begun) / 60.0


def _errors(found: Track, video: Path) -> dict[str, tuple[float | None, str]]:
    """Joint errors in cm against the truth beside a video, as `evaluate_video` takes them of a capture."""
    truth = load_reference(video.with_name(f"{video.stem}.truth.npz"), found.character.height_m)
    fps = truth.clip.fps
    points = clip_points(found.character, at_rate(found.clip, fps))
    error, aligned = mean_errors(points, truth.points(fps))
    filmed = None if truth.source_points is None else source_error(points, fps, truth.source_points, fps)
    named = {"joint error": error, "joint error, filmed body": filmed, "root-aligned error": aligned}
    return {name: (None if value is None else float(np.round(value, 3)), "cm") for name, value in named.items()}
