"""The options that say how an input is to be read: declared once, for every command that reads one."""

from __future__ import annotations

import argparse
from typing import Any

from mocap2ctrl.cli.options import add_person, add_slowmo, given, number
from mocap2ctrl.motion.kinds import KINDS_TEXT
from mocap2ctrl.motion.units import UP_AXES

INPUT_HELP = (
    "a video; masks (FILE.npz:KEY, a folder of PNGs, or a video in black and white); a motion file: "
    f"{KINDS_TEXT}; or the name of sample footage or of a clip in pybullet_data"
)


def add_input_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """INPUT and the options that `input_options` hands on; returns the group of those for videos and masks."""
    parser.add_argument("input", metavar="INPUT", type=given, help=INPUT_HELP)
    parser.add_argument("--height", type=number(0.8, 2.4), metavar="M", help="body height (default: 1.75)")
    add_time_arguments(
        parser,
        "input",
        "frames a second: to use of a video, of masks; for a motion, that the objective looks at (default: 30), or the file's if "
        "its own cannot be true, or it holds none, as an .amc (default: 120)",
    )
    add_correction_arguments(parser.add_argument_group("for motion files"))
    group = parser.add_argument_group("for videos and masks")
    group.add_argument(
        "--camera",
        metavar="FILE.toml[:NAME]",
        help="that saw them (default: the .toml file of the input's name, else estimated)",
    )
    add_background_argument(group)
    group.add_argument(
        "--background-method", metavar="NAME", help="how the empty scene is found: see mocap2ctrl silhouettes --help"
    )
    add_person(group)
    add_slowmo(group)
    add_belt_argument(group)
    group.add_argument(
        "--keypoints",
        metavar="FILE|FOLDER",
        help="2D points of the body: OpenPose, Sports2D, Pose2Sim, MediaPipe, or clicks on a few frames; see docs/keypoints.md",
    )
    return group


def add_time_arguments(parser: argparse._ActionsContainer, what: str, fps: str) -> None:
    """`--time-range` and `--fps`, whose help is `fps`, of a `what`."""
    parser.add_argument(
        "--time-range", nargs=2, type=number(0.0, 1e6), metavar=("A", "B"), help=f"seconds of the {what} to use"
    )
    parser.add_argument("--fps", type=number(1, 1000), help=fps)


def add_correction_arguments(group: argparse._ActionsContainer) -> None:
    """`--unit`, `--up` and `--joint-map`, for what a motion file does not say."""
    group.add_argument(
        "--unit", metavar="m|dm|cm|mm|inch|ft|cmu|METRES", help="of length (default: by the height of the body)"
    )
    group.add_argument(
        "--up",
        choices=UP_AXES,
        metavar="x|y|z|-x|-y|-z",
        help="the up axis (default: the one that the body stands along)",
    )
    group.add_argument("--skeleton", metavar="FILE.asf", help="of an .amc (default: the .asf beside it)")
    group.add_argument(
        "--joint-map",
        metavar="FILE.toml",
        help="which joint is which part of the body (default: by name, else by shape); inspect writes one to begin with",
    )


def add_background_argument(group: argparse._ActionsContainer) -> None:
    """`--background`."""
    group.add_argument("--background", metavar="FILE", help="a picture of the empty scene, by the same camera")


def add_belt_argument(group: argparse._ActionsContainer) -> None:
    """`--belt`."""
    group.add_argument(
        "--belt",
        metavar="auto|none|SPEED",
        help="a treadmill's belt as ground, of motion files too: none, its speed in m/s, or, by default, what feet that slide "
        "back tell",
    )


def input_options(options: argparse.Namespace) -> dict[str, Any]:
    """What `api.fit` and `api.inspect` take, by name."""
    return {
        "height_m": options.height,
        "time_range": tuple(options.time_range) if options.time_range else None,
        "fps": options.fps,
        "camera": options.camera,
        "background": options.background,
        "background_method": options.background_method,
        "skeleton": options.skeleton,
        "person": options.person,
        "masks": options.masks,
        "slowmo": options.slowmo,
        "belt": options.belt,
        "keypoints": options.keypoints,
        "unit": options.unit,
        "up": options.up,
        "joint_map": options.joint_map,
    }
