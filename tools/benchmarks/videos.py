"""Fits to videos whose motion is known: errors of controller and track, overlap with the silhouettes, falls, effort."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import render_video

from benchmarks.parts import in_parts, of_growth
from benchmarks.rows import CACHE, FALLS, PROJECT, Row, measured_before
from benchmarks.settings import config_of, named
from mocap2ctrl import api
from mocap2ctrl.fit.config import FitConfig
from mocap2ctrl.fit.run import cpu_seconds
from mocap2ctrl.motion.deepmimic import deepmimic_directory

SAMPLES = PROJECT / "video"
PAPER_CORE_MIN = 2016.0
"""V §5: 3 hours on eight cores for 200 frames of motion capture, 40 % more for video."""
NOTE = (
    "Footage is rendered, of bodies that are not the project's; the prior has not seen the clip. Filmed body: against the joints\n"
    "of the body in the picture; else against the motion on the standard character. Median (worst) over seeds. The paper's\n"
    "clips show the same kind of motion, not the same motion; its time is for 200 frames. With --results FILE what the file has\n"
    "is not fitted again."
)


@dataclass(frozen=True)
class Case:
    """A video of the table.

    Attributes:
        name: of the column.
        video: file name, in the sample footage or, if `rendered`, in the cache.
        prior: trained without the clip.
        method: of the fit.
        paper_cm: what the paper reports for the same kind of motion.
        rendered: arguments of `tools/render_video.py` for footage that is not shipped.
    """

    name: str
    video: str
    prior: str
    method: str = "incremental"
    paper_cm: float | None = None
    rendered: tuple[str, ...] = ()


OBLIQUE = ("humanoid3d_walk", "--view", "oblique", "--seed", "21", "--seconds", "2")
RUN = ("humanoid3d_run", "--view", "side", "--seed", "22", "--seconds", "2")
BACKFLIP = ("humanoid3d_backflip", "--view", "side", "--seed", "23")
CASES = {
    case.name: case
    for case in (
        Case("walk", "walk.mp4", "everyday-but-walk", paper_cm=4.2),
        Case("jump", "jump.mp4", "everyday-but-jump", paper_cm=6.8),
        Case("spinkick", "spinkick.mp4", "everyday-but-spinkick"),
        Case("walk-oblique", "walk_oblique.mp4", "everyday-but-walk", rendered=OBLIQUE),
        Case("run", "run.mp4", "everyday-but-run", rendered=RUN),
        Case("backflip", "backflip.mp4", "everyday-but-backflip", paper_cm=17.5, rendered=BACKFLIP),
        Case("walk-growth", "walk.mp4", "everyday-but-walk", method="growth", paper_cm=4.2),
    )
}


def video(options: argparse.Namespace) -> Iterator[Row]:
    """Fits each video with each seed, but for those that the file of results has."""
    config = config_of(options)
    done = measured_before(options.results)
    for case, file in filmed(options.clips or CASES):
        for seed in options.seeds:
            if (named(case.name, options), seed) not in done:
                yield from _case_rows(case, file, replace(config, seed=seed, method=case.method), options)


def filmed(names: Iterable[str]) -> Iterator[tuple[Case, Path]]:
    """The cases of these names with their videos; says of which there is none."""
    for name in names:
        file = footage(CASES[name])
        if file is None:
            print(f"{name}: left out, its footage is rendered from a clip that pybullet brings", file=sys.stderr)
        else:
            yield CASES[name], file


def footage(case: Case) -> Path | None:
    """The video's file, rendered if need be; None if it cannot be."""
    if not case.rendered:
        return SAMPLES / case.video
    file = CACHE / case.video
    if file.with_name(f"{file.stem}.truth.npz").is_file():
        return file
    if deepmimic_directory() is None:
        return None
    with redirect_stdout(sys.stderr):
        code = render_video.main([*case.rendered, "-o", str(file)])
    return file if code == 0 else None


def _case_rows(case: Case, file: Path, config: FitConfig, options: argparse.Namespace) -> Iterator[Row]:
    truth = file.with_name(f"{file.stem}.truth.npz")
    values, engine = measured(file, config, options, prior=case.prior, reference=truth)
    values |= {
        "the paper, same kind of motion": (case.paper_cm, "cm"),
        "the paper's core time": (PAPER_CORE_MIN if case.paper_cm else None, "min"),
    }
    for what, (value, unit) in values.items():
        yield Row(f"{named(case.name, options)} | {what}", engine, value, unit, config.seed)


Values = dict[str, tuple[float | None, str]]


def measured(
    source: Path | str, config: FitConfig, options: argparse.Namespace, **arguments: Any
) -> tuple[Values, str]:
    """One fit: quantities with their units, and the engine. Errors are left out where there is no reference.

    Args:
        source: a video or masks.
        config: settings.
        options: of the benchmark's command line.
        arguments: more, for `api.fit`.
    """
    begun = cpu_seconds()
    tracked = begun

    def on_preparation(what: str, share: float) -> None:
        nonlocal tracked
        tracked = cpu_seconds()

    with tempfile.TemporaryDirectory() as folder:

        def fit(of: FitConfig, resume: bool) -> api.FitResult:
            return api.fit(
                source,
                Path(folder) / "capture",
                config=of,
                workers=options.workers,
                torque_scale=options.torque_limit,
                on_preparation=(lambda what, share: None) if resume else on_preparation,
                resume=resume,
                **arguments,
            )

        grown, result = in_parts(fit, config)
    found, seconds = result.evaluation, result.capture.reference.duration_s
    total, track = result.outcome.core_s / 60.0, (tracked - begun) / 60.0
    values: Values = {
        "joint error": (found.joint_error_cm, "cm"),
        "joint error, filmed body": (found.source_error_cm, "cm"),
        "root-aligned error": (found.root_aligned_error_cm, "cm"),
        "track: joint error": (found.track_joint_error_cm, "cm"),
        "track: joint error, filmed body": (found.track_source_error_cm, "cm"),
        "track: root-aligned error": (found.track_root_aligned_error_cm, "cm"),
        "overlap": (found.silhouette_iou, "IoU"),
        "track: overlap": (found.track_silhouette_iou, "IoU"),
        "from the track": (found.track_error_cm, "cm"),
        FALLS: (float(found.fell), ""),
        "states a second": (result.replay.states_entered(seconds) / seconds, ""),
        "core time": (total, "min"),
        "silhouettes and track: core time": (track, "min"),
        "controller: core time": (total - track, "min"),
        "wall time": (result.outcome.wall_s / 60.0, "min"),
    }
    values |= of_growth(grown)
    if "reference" not in arguments:
        values = {name: pair for name, pair in values.items() if pair[0] is not None}
    return values, result.capture.engine_name
