"""`mocap2ctrl simulate CAPTURE --diverged N`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mocap2ctrl.cli.options import print_json

if TYPE_CHECKING:
    from mocap2ctrl.fit.capture import Capture
    from mocap2ctrl.fit.divergence import Divergence, DivergenceReplay
    from mocap2ctrl.types import MotionClip

OTHERS = ("seconds", "push", "push_at", "push_for", "push_every", "environment", "torque_limit", "engine", "motion")
"""Options that a simulation which is to be the same cannot have."""


def run(options: argparse.Namespace) -> int:
    """Simulates again, says where it diverges, and writes the motion and a video up to there."""
    from mocap2ctrl import api
    from mocap2ctrl.errors import CaptureError, ConfigError
    from mocap2ctrl.fit.capture import check_place, holds_capture

    for name in OTHERS:
        if getattr(options, name) not in (None, []):
            raise ConfigError(f"--diverged simulates the same again; leave --{name.replace('_', '-')} out")
    capture = Path(options.capture)
    folder = Path(options.output) if options.output else capture / "simulations" / f"diverged_{options.diverged}"
    check_place(folder)
    if holds_capture(folder):
        raise CaptureError(f"{folder}: is a capture, whose own motion and video would be lost; choose another -o")
    divergence, replay = api.replay_diverged(capture, options.diverged)
    written = _write(folder, divergence, replay, capture=None if options.no_video else api.load(capture))
    if options.json:
        print_json(_as_json(divergence, replay))
        return 0
    print(_told(divergence, replay))
    print(f"look at {written}" if written else "it has no motion to look at: it does not begin with numbers")
    return 0


def _write(folder: Path, divergence: Divergence, replay: DivergenceReplay, *, capture: Capture | None) -> Path | None:
    """The motion and, with `capture`'s reference beside it, the video; returns what is best to look at."""
    from mocap2ctrl.control.closed_loop import start_step
    from mocap2ctrl.evaluation.export import export_motion
    from mocap2ctrl.fit.capture import make_folder
    from mocap2ctrl.report.overlay import write_overlay

    if replay.clip is None:
        return None
    make_folder(folder)
    for name in ("motion.npz", "motion.bvh"):
        export_motion(folder / name, replay.clip, divergence.character)
    if capture is None:
        return folder / "motion.bvh"
    reference = _same_part(capture.reference, replay.clip, start_step(divergence.begin))
    write_overlay(folder / "overlay.mp4", divergence.character, reference, replay.clip)
    return folder / "overlay.mp4"


def _same_part(reference: MotionClip, simulated: MotionClip, first: int) -> MotionClip:
    """The reference from frame `first` of the simulation's rate on, for as long as the simulation lasts."""
    from dataclasses import replace

    from mocap2ctrl.motion.clips import resample

    dense = resample(replace(reference, loop=False), simulated.fps)
    first = min(first, len(dense) - 1)
    rows = slice(first, first + len(simulated))
    return replace(
        dense,
        root_position=dense.root_position[rows],
        root_orientation=dense.root_orientation[rows],
        angles=dense.angles[rows],
    )


def _told(divergence: Divergence, replay: DivergenceReplay) -> str:
    d, r = divergence, replay
    unit = "m/s" if r.fastest.startswith("root.velocity") else "rad/s"
    end = f"diverges at step {r.step} ({r.at_s:.3f} s)" if r.diverged else f"does not diverge up to step {r.step}"
    return (
        f"{end}, when {r.fastest} has {r.velocity:.4g} {unit}\n"
        f"it was sample {d.sample} of generation {d.generation}, search {d.search}, stage {d.stage}, seed {d.config.seed}, "
        f"in {d.engine}"
    )


def _as_json(divergence: Divergence, replay: DivergenceReplay) -> dict[str, Any]:
    d, r = divergence, replay
    return {
        "seconds": None if r.clip is None else r.clip.duration_s,
        "fell": None,
        "fell_at_s": None,
        "diverged": r.diverged,
        "diverged_at_s": r.at_s if r.diverged else None,
        "diverged_at_step": r.step if r.diverged else None,
        "fastest": r.fastest,
        "velocity": r.velocity,
        "engine": d.engine,
        "seed": d.config.seed,
        "stage": d.stage,
        "generation": d.generation,
        "search": d.search,
        "sample": d.sample,
    }
