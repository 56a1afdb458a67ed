"""`mocap2ctrl train-prior`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mocap2ctrl.cli.options import add_json, note, number, print_json
from mocap2ctrl.motion.formats import KINDS_TEXT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = "example:\n  mocap2ctrl train-prior walk1.bvh walk2.bvh -o walking.npz"
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help=f"motion files: {KINDS_TEXT}; or names of clips in pybullet_data"
    )
    parser.add_argument("--skeleton", metavar="FILE.asf", help="of .amc files (default: the .asf beside each)")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the prior to write, an .npz")
    parser.add_argument("--name", help="what reports call it (default: the output's name)")
    parser.add_argument(
        "--variance", type=number(0.5, 1.0), default=0.99, help="share of the variance to keep (default: 0.99)"
    )
    parser.add_argument("--no-mirror", action="store_true", help="do not learn from each motion's mirror image too")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Trains and writes a prior."""
    from mocap2ctrl.character.model import load_character
    from mocap2ctrl.errors import PriorError
    from mocap2ctrl.motion.formats import Stated
    from mocap2ctrl.motion.load import load_motion
    from mocap2ctrl.prior.files import save_prior
    from mocap2ctrl.prior.pca import train

    path = Path(options.output)
    if path.suffix != ".npz":
        raise PriorError(f"{path}: a prior's file name ends in .npz")
    if path.exists() and not options.overwrite:
        raise PriorError(f"{path}: exists already; use --overwrite or another -o")
    character = load_character()
    motions = [load_motion(file, character, stated=Stated(skeleton=options.skeleton)) for file in options.files]
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
