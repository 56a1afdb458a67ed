"""`mocap2ctrl convert`."""

from __future__ import annotations

import argparse

from mocap2ctrl.cli.input_options import add_correction_arguments, add_time_arguments
from mocap2ctrl.cli.options import add_json, given, note, number, print_json, whole

EPILOG = """examples:
  mocap2ctrl convert captures/walk -o walk.glb                  what the controller does, skinned, for Blender, Unity, Unreal
  mocap2ctrl convert captures/walk --reference -o walk.bvh      the motion that it was fitted to
  mocap2ctrl convert walk.bvh -o walk.csv -o walk.xml --mirror  a motion file on our body; MuJoCo's model with keyframes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "input",
        metavar="INPUT",
        type=given,
        help="a motion file, a motion.npz, the name of a clip in pybullet_data, or a capture: what its controller does now",
    )
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="FILE",
        help="a name that ends in .bvh, .glb, .npz, .csv or .xml (MuJoCo); several are allowed",
    )
    parser.add_argument(
        "--reference", action="store_true", help="of a capture, the motion that its controller was fitted to"
    )
    parser.add_argument(
        "--height", type=number(0.8, 2.4), metavar="M", help="body height (default: 1.75; a capture's or .npz's own)"
    )
    add_time_arguments(
        parser,
        "motion",
        "frames a second (default: the input's own); a loop gets the nearest rate that divides its period evenly. Of a motion file "
        "whose own rate cannot be true, or that holds none, as an .amc, it is the rate",
    )
    add_correction_arguments(parser.add_argument_group("for motion files"))
    parser.add_argument(
        "--cycles",
        type=whole(1, 1000),
        default=1,
        metavar="N",
        help="repeat a loop, or the best cycle of a motion file that is none, N times (default: 1)",
    )
    parser.add_argument("--mirror", action="store_true", help="exchange left and right")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Reads or simulates the motion, and writes it."""
    from mocap2ctrl.evaluation.convert import convert
    from mocap2ctrl.motion.stated import Stated

    done = convert(
        options.input,
        options.output,
        reference=options.reference,
        height_m=options.height,
        time_range=tuple(options.time_range) if options.time_range else None,
        fps=options.fps,
        cycles=options.cycles,
        mirror=options.mirror,
        stated=Stated(options.skeleton, options.fps, options.unit, options.up, options.joint_map),
        overwrite=options.overwrite,
    )
    clip, files = done.clip, [str(file) for file in done.files]
    for warning in done.warnings:
        note(f"note: {warning}")
    if options.json:
        said = {"kind": done.kind, "frames": len(clip), "fps": clip.fps, "start_s": clip.start_s, "loop": clip.loop}
        print_json({**said, "seconds": clip.duration_s, "height_m": done.character.height_m, "files": files})
        return 0
    print(
        f"{clip.name} ({done.kind}): {len(clip)} frames at {clip.fps:g} a second, from {clip.start_s:.2f} s of its source"
    )
    for file in files:
        print(f"wrote {file}")
    return 0
