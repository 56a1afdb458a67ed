"""Trains the shipped pose priors, and prints what they cost on clips left out.

They learn from DeepMimic's clips, which come in pybullet_data, and from the movements of `tools/exercises`, which are authored.

python tools/train_priors.py                  write priors/*.npz
python tools/train_priors.py --only exercise  write some of them
python tools/train_priors.py --report         only print the reconstruction errors of the leave-one-clip-out sets
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from exercises import exercise_clips

import mocap2ctrl
from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.prior import PosePrior, train
from mocap2ctrl.prior.features import root_rotation_vector
from mocap2ctrl.prior.files import save_prior
from mocap2ctrl.types import MotionClip

VARIANCE = 0.99
COMMAND = "python tools/train_priors.py"

# Activities of more than one clip; every single clip is an activity of its own as well.
ACTIVITIES = {
    "locomotion": ("walk", "run"),
    "dance": ("dance_a", "dance_b"),
    "getup": ("getup_facedown", "getup_faceup"),
    "strike": ("kick", "punch", "spinkick"),
    "acrobatics": ("backflip", "cartwheel", "roll"),
}

FILMED = ("walk", "run", "jump", "spinkick", "backflip")
"""Clips that the benchmark films; `everyday` without one of them is what a video is tracked by that nobody has seen."""


def load_clips(character: Character) -> dict[str, MotionClip]:
    """All of DeepMimic's humanoid clips by short name."""
    folder = deepmimic_directory()
    if folder is None:
        raise Mocap2CtrlError("pybullet_data is not installed; install pybullet, whose data hold the clips")
    paths = sorted(folder.glob("humanoid3d_*.txt"))
    return {path.stem.removeprefix("humanoid3d_"): load_motion(path, character).clip for path in paths}


def sets(names: tuple[str, ...], exercises: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Name of each prior to the names of the clips inside.

    Args:
        names: DeepMimic's clips.
        exercises: authored ones. They are in `exercise`, `everyday` and what is left of it only, so that what was measured
            under the other priors stays what it was.
    """
    singles = {name: (name,) for name in names}
    left_out = {f"all-but-{name}": tuple(other for other in names if other != name) for name in names}
    everyday = (*names, *exercises)
    authored = {"exercise": exercises, "everyday": everyday}
    unseen = {f"everyday-but-{name}": tuple(other for other in everyday if other != name) for name in FILMED}
    return {"all": names, **ACTIVITIES, **singles, **left_out, **authored, **unseen}


def reconstruction_error_cm(prior: PosePrior, clip: MotionClip, character: Character) -> float:
    """Mean distance in cm of the evaluation points, root fixed, when each pose goes through the prior and back."""
    vectors = root_rotation_vector(clip.root_orientation)
    decoded, angles = prior.decode(prior.encode(vectors, clip.angles))
    heading = rotations.yaw(rotations.heading(clip.root_orientation))
    orientation = rotations.multiply(heading, rotations.from_rotation_vector(decoded))
    points = [
        evaluation_points(character, *segment_frames(character, clip.root_position, root, pose))
        for root, pose in ((clip.root_orientation, clip.angles), (orientation, angles))
    ]
    return float(100.0 * np.mean(np.linalg.norm(points[0] - points[1], axis=-1)))


def main() -> int:
    """Train, write and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="print errors only, write nothing")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the priors")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).resolve().parent.parent / "priors")
    options = parser.parse_args()
    character = load_character()
    recorded, authored = load_clips(character), {clip.name: clip for clip in exercise_clips(character)}
    clips, known = recorded | authored, sets(tuple(recorded), tuple(authored))
    if unknown := set(options.only or ()) - set(known):
        parser.error(f"--only {', '.join(sorted(unknown))}: no such prior; there are {', '.join(known)}")
    provenance = {"command": COMMAND, "version": getattr(mocap2ctrl, "__version__", "unknown")}
    print(f"{'prior':28s} {'size':>4s} {'held-out clip':16s} {'95 %':>7s} {'99 %':>7s}  (cm; size at 95 / 99 %)")
    for name in options.only or known:
        inside = known[name]
        prior = train([clips[clip] for clip in inside], character, name=name, variance=VARIANCE, provenance=provenance)
        _, but, out = name.partition("-but-")
        held_out = out if but else inside[0]
        smaller = prior.truncated(0.95 / VARIANCE)
        errors = [reconstruction_error_cm(p, clips[held_out], character) for p in (smaller, prior)]
        mark = held_out if but else f"({held_out})"
        print(f"{name:28s} {prior.size:4d} {mark:16s} {errors[0]:7.2f} {errors[1]:7.2f}  {smaller.size} / {prior.size}")
        if not options.report:
            options.output.mkdir(exist_ok=True)
            save_prior(options.output / f"{name}.npz", prior)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Mocap2CtrlError as error:
        print(f"train_priors: {error}", file=sys.stderr)
        sys.exit(2)
