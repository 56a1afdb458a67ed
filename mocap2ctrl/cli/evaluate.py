"""`mocap2ctrl evaluate`."""

from __future__ import annotations

import argparse

from mocap2ctrl.cli.options import add_json, note, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = "example:\n  mocap2ctrl evaluate captures/walk"
    parser.add_argument("capture", metavar="CAPTURE", help="a folder that mocap2ctrl fit has written")
    parser.add_argument(
        "--reference", metavar="FILE", help="compare with this motion instead of the one it was fitted to"
    )
    parser.add_argument("--engine", help="simulate in this engine instead of the one it was fitted in")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Simulates the controller as it stands in controller.json and compares it with the reference."""
    from mocap2ctrl import api

    capture = api.load(options.capture)
    evaluation, _ = api.evaluate(capture, reference=options.reference, engine=options.engine)
    for warning in api.capture_warnings(capture):
        note(f"note: {warning}")
    if options.json:
        print_json(
            {
                "joint_error_cm": evaluation.joint_error_cm,
                "root_aligned_error_cm": evaluation.root_aligned_error_cm,
                "silhouette_iou": None,
                "fell": evaluation.fell,
                "frames": evaluation.frames,
                "source_error_cm": evaluation.source_error_cm,
                "fell_at_s": evaluation.fell_at_s,
            }
        )
        return 0
    print(
        f"joint error           {evaluation.joint_error_cm:6.2f} cm  (15 joints, {evaluation.frames} frames, not aligned)"
    )
    print(f"root-aligned error    {evaluation.root_aligned_error_cm:6.2f} cm")
    if evaluation.source_error_cm is not None:
        print(f"against the source    {evaluation.source_error_cm:6.2f} cm")
    print(f"fell                  {'no' if evaluation.fell_at_s is None else f'at {evaluation.fell_at_s:.2f} s'}")
    return 0
