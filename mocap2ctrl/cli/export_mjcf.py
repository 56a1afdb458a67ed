"""`mocap2ctrl export-mjcf`."""

from __future__ import annotations

import argparse

from mocap2ctrl.cli.options import add_engine, add_json, given, note, number, print_json

EPILOG = """examples:
  mocap2ctrl export-mjcf captures/walk
  mocap2ctrl export-mjcf captures/walk -o walk.xml --fps 120
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument("capture", metavar="CAPTURE", type=given, help="a folder that mocap2ctrl fit has written")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.xml",
        help="the model; its motion as arrays goes to FILE.npz (default: CAPTURE/mujoco.xml)",
    )
    parser.add_argument(
        "--fps",
        type=number(1.0, 1000.0),
        help="keyframes a second, a divisor of the simulation's rate (default: the fit's)",
    )
    parser.add_argument("--seconds", type=number(0.01, 3600.0), help="how long (default: the clip)")
    add_engine(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Simulates controller.json, and writes model and motion."""
    from mocap2ctrl import api

    done = api.export_mjcf(
        api.load(options.capture),
        options.output,
        fps=options.fps,
        seconds=options.seconds,
        engine=options.engine,
        overwrite=options.overwrite,
    )
    keys, seconds = len(done.keys.time_s), float(done.keys.time_s[-1])
    if done.diverged:
        note(f"note: the simulation diverged; the motion ends at {seconds:.2f} s")
    if options.json:
        where = {"model": str(done.model), "motion": str(done.motion)}
        print_json({**where, "keys": keys, "fps": done.fps, "seconds": seconds, "diverged": done.diverged})
        return 0
    print(f"wrote {done.model}: the character, {keys} keyframes at {done.fps:g} a second")
    print(f"wrote {done.motion}: time, qpos, qvel")
    return 0
