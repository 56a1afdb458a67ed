"""`mocap2ctrl evaluate`."""

from __future__ import annotations

import argparse

from mocap2ctrl.cli.options import add_engine, add_environment, add_json, given, note, print_json

ROWS = (
    ("joint error", "joint_error_cm", "cm"),
    ("root-aligned error", "root_aligned_error_cm", "cm"),
    ("against the source", "source_error_cm", "cm"),
    ("the track's error", "track_joint_error_cm", "cm"),
    ("the same, aligned", "track_root_aligned_error_cm", "cm"),
    ("the same, source", "track_source_error_cm", "cm"),
    ("from the track", "track_error_cm", "cm"),
    ("silhouette overlap", "silhouette_iou", ""),
    ("the track's overlap", "track_silhouette_iou", ""),
    ("off the keypoints", "keypoint_error_px", "px of the video"),
    ("the track is off by", "track_keypoint_error_px", "px of the video"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = (
        "examples:\n  mocap2ctrl evaluate captures/walk\n  mocap2ctrl evaluate captures/walk --reference walk.truth.npz\n"
        "  mocap2ctrl evaluate captures/walk --environment slope-up"
    )
    parser.add_argument("capture", metavar="CAPTURE", type=given, help="a folder that mocap2ctrl fit has written")
    parser.add_argument(
        "--reference",
        metavar="FILE",
        help="compare with this motion (for a video's capture also a truth.npz) instead of the one it was fitted to",
    )
    add_engine(parser)
    add_environment(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Simulates the controller as it stands in controller.json and compares it with what it was fitted to, or with a reference."""
    from dataclasses import asdict

    from mocap2ctrl import api
    from mocap2ctrl.evaluation.video import video_warnings

    capture = api.load(options.capture)
    engine = options.engine or capture.engine_name
    evaluation, replay = api.evaluate(
        capture, reference=options.reference, engine=engine, environment=options.environment
    )
    for warning in (*video_warnings(capture, evaluation, replay), *api.capture_warnings(capture, options.reference)):
        note(f"note: {warning}")
    if options.json:
        print_json({**asdict(evaluation), "engine": engine, "environment": replay.environment.name})
        return 0
    print(f"frames                {evaluation.frames:6d}     (15 joints, not aligned unless it says so)")
    print(
        f"engine                {engine}"
        + ("" if engine == capture.engine_name else f" (fitted in {capture.engine_name})")
    )
    if options.environment is not None:
        print(f"environment           {replay.environment.name}")
    for label, name, unit in ROWS:
        value = getattr(evaluation, name)
        if value is not None:
            print(f"{label:<22}{value:6.2f} {unit}".rstrip())
    print(f"fell                  {'no' if evaluation.fell_at_s is None else f'at {evaluation.fell_at_s:.2f} s'}")
    return 0
