"""`mocap2ctrl train-prior`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mocap2ctrl.cli.input_options import add_correction_arguments
from mocap2ctrl.cli.options import add_json, given, note, number, print_json
from mocap2ctrl.motion.kinds import KINDS_TEXT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = "example:\n  mocap2ctrl train-prior walk1.bvh walk2.bvh -o walking.npz"
    parser.add_argument(
        "files",
        metavar="FILE",
        type=given,
        nargs="+",
        help=f"motion files: {KINDS_TEXT}; or names of clips in pybullet_data",
    )
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the prior to write, an .npz")
    parser.add_argument("--name", help="what reports call it (default: the output's name)")
    parser.add_argument(
        "--variance", type=number(0.5, 1.0), default=0.99, help="share of the variance to keep (default: 0.99)"
    )
    parser.add_argument("--no-mirror", action="store_true", help="do not learn from each motion's mirror image too")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--fps", type=number(1, 1000), help="frames a second of files whose own rate cannot be true")
    add_correction_arguments(parser.add_argument_group("for all of the files"))
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Trains and writes a prior."""
    from mocap2ctrl.character.model import load_character
    from mocap2ctrl.errors import PriorError
    from mocap2ctrl.motion.load import load_motion
    from mocap2ctrl.motion.stated import Stated
    from mocap2ctrl.prior.files import save_prior
    from mocap2ctrl.prior.pca import train

    path = Path(options.output)
    if path.suffix != ".npz":
        raise PriorError(f"{path}: a prior's file name ends in .npz")
    if path.exists() and not options.overwrite:
        raise PriorError(f"{path}: exists already; use --overwrite or another -o")
    character = load_character()
    said = Stated(
        skeleton=options.skeleton, fps=options.fps, unit=options.unit, up=options.up, joint_map=options.joint_map
    )
    motions = [load_motion(file, character, stated=said) for file in options.files]
    for motion in motions:
        for warning in motion.warnings:
            note(f"note: {motion.clip.name}: {warning}")
    prior = train(
        [m.clip for m in motions],
        character,
        name=options.name or path.stem,
        variance=options.variance,
        mirrored=not options.no_mirror,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    save_prior(path, prior)
    if options.json:
        print_json({"prior": str(path), "components": prior.size, "variance": prior.provenance["variance"]})
        return 0
    print(f"{path}: {prior.size} components keep {100 * float(prior.provenance['variance']):.1f} % of the variance")
    return 0
