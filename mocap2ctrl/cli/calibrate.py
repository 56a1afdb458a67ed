"""`mocap2ctrl calibrate`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.options import add_json, given, note, number, print_json

if TYPE_CHECKING:
    from mocap2ctrl.character.model import Character
    from mocap2ctrl.track.camera_from_joints import PointedCamera
    from mocap2ctrl.video.calibration.points_file import SeenPoints

EPILOG = """examples:
  mocap2ctrl calibrate walk.mp4                       click the joints of one frame; writes walk.points.toml and walk.toml
  mocap2ctrl calibrate walk.mp4 --points walk.points.toml --height 1.82

A points file, TOML (or JSON of the same structure), one [[frame]] or several:

  [[frame]]
  time_s = 0.4                      # for the reader
  left_ankle = [412.0, 820.5]       # pixels of the video, from the upper left
  head = [438.0, 310.0]             # and more joints: the more, the better

  [[point]]                         # if places were measured: four and more
  pixel = [120.0, 700.0]
  world = [0.0, 2.5, 0.0]           # metres; z up, 0 on the ground

Joints: pelvis, neck, head, and left_ and right_ shoulder, elbow, wrist, hip, knee, ankle. The feet stand on the ground.
Several frames, with the person near and far, tell the camera's height and tilt better than one.
"""
DOUBTFUL = 0.06
"""Reprojection error of a joint, as a share of the body's height, from which it was hardly what was meant."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument("video", metavar="VIDEO", type=given, help="a video by a still camera")
    parser.add_argument("--points", metavar="FILE", help="joints and places with their pixels, instead of clicking")
    parser.add_argument(
        "--time", type=number(0.0, 1e6), default=0.0, metavar="S", help="second to click in (default: 0)"
    )
    parser.add_argument("--height", type=number(0.8, 2.4), metavar="M", help="the person's height (default: 1.75)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the camera to write (default: the video's name with .toml)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Solves for the camera, says how well it explains the points, and writes it."""
    from mocap2ctrl.character.model import load_character
    from mocap2ctrl.errors import CameraError
    from mocap2ctrl.files import refuse_existing
    from mocap2ctrl.fit.capture import check_place
    from mocap2ctrl.prior.choose import load_prior
    from mocap2ctrl.prior.pca import PosePrior
    from mocap2ctrl.track.camera_from_joints import camera_from_joints
    from mocap2ctrl.video.calibration.metadata import focal_from_metadata
    from mocap2ctrl.video.calibration.points_file import load_points
    from mocap2ctrl.video.camera_file import save_camera
    from mocap2ctrl.video.decode import probe
    from mocap2ctrl.video.samples import VIDEO, shipped_file

    video = shipped_file(options.video, VIDEO) or Path(options.video)
    target = Path(options.output) if options.output else Path(options.video).with_suffix(".toml")
    size = probe(video).size
    refuse_existing(target, overwrite=options.overwrite)
    check_place(target.parent)
    character = load_character(height_m=options.height)
    names = [point.name for point in character.evaluation_points]
    file = Path(options.points) if options.points else _click(options, video, target, names)
    points = load_points(file, names)
    _refuse_outside(points, size, file, names)
    prior = load_prior("all", character)
    if not isinstance(prior, PosePrior):
        raise CameraError("there is no pose prior here; install the package with its priors")
    found = camera_from_joints(
        points,
        size,
        character,
        prior,
        focal=focal_from_metadata(video),
        height_known=options.height is not None,
    )
    save_camera(target, found.camera)
    _report(options, found, points, character, target)
    return 0


def _refuse_outside(points: SeenPoints, size: tuple[int, int], file: Path, names: list[str]) -> None:
    """Refuses pixels that are of another picture."""
    from mocap2ctrl.errors import CameraError

    for when, joints in zip(points.when, points.joints, strict=True):
        for name, (x, y) in zip(names, joints, strict=True):
            if x < -0.5 * size[0] or y < -0.5 * size[1] or x > 1.5 * size[0] or y > 1.5 * size[1]:
                raise CameraError(
                    f"{file}: {name} of frame {when} is at ({x:g}, {y:g}), far outside the video's {size[0]}x{size[1]} pixels"
                )


def _click(options: argparse.Namespace, video: Path, target: Path, names: list[str]) -> Path:
    """Lets the user click; returns the file beside the camera's that keeps what was clicked."""
    from mocap2ctrl.cli.click_window import NoScreenError, clicked_joints
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.files import write_bytes
    from mocap2ctrl.video.calibration.pixel_grid import frame_at, with_pixel_grid
    from mocap2ctrl.video.calibration.points_file import save_joints
    from mocap2ctrl.video.picture import png_bytes

    file = target.with_suffix(".points.toml")
    if file.exists() and not options.overwrite:
        raise ConfigError(f"{file}: exists already; give it with --points {file}, or click anew with --overwrite")
    image = frame_at(video, options.time)
    try:
        joints = clicked_joints(image, names, f"{video.name}, {options.time:g} s")
    except NoScreenError:
        picture = target.with_suffix(".grid.png")
        write_bytes(picture, png_bytes(with_pixel_grid(image)))
        raise ConfigError(
            f"there is no screen to click on; read joints' pixels from {picture}, write them into a file, and give it with "
            "--points FILE; calibrate --help shows its form"
        ) from None
    save_joints(file, options.time, joints)
    note(f"clicks: {file}")
    return file


def _report(
    options: argparse.Namespace, found: PointedCamera, points: SeenPoints, character: Character, target: Path
) -> None:
    import numpy as np

    from mocap2ctrl.video.calibration.statement import in_words

    view, spread, longer = found.view, found.spread, max(found.camera.size)
    names = [point.name for point in character.evaluation_points]
    errors = {
        when: {name: round(float(e), 1) for name, e in zip(names, row, strict=True) if np.isfinite(e)}
        for when, row in zip(points.when, found.joint_errors, strict=True)
    }
    if options.json:
        numbers = {
            "focal_px": (view.focal * longer, view.focal * longer * spread.focal),
            "height_m": (view.height_m, spread.height_m),
            "tilt_deg": (np.degrees(view.tilt), np.degrees(spread.tilt)),
            "roll_deg": (np.degrees(view.roll), np.degrees(spread.roll)),
        }
        print_json(
            {
                "camera": str(target),
                **{name: [float(v) for v in pair] for name, pair in numbers.items()},
                "joint_errors_px": errors,
                "place_errors_px": [round(float(e), 1) for e in found.place_errors],
            }
        )
        return
    print(f"camera: {in_words(view, spread, found.camera.size)}")
    for (when, row), tall in zip(errors.items(), found.tall_px, strict=True):
        print(f"reprojection error, pixels, of {tall:.0f} that the person is tall, frame {when}:")
        print("  " + ", ".join(f"{name} {error:g}" for name, error in row.items()))
        doubtful = [name for name, error in row.items() if error > DOUBTFUL * tall]
        if doubtful:
            note(
                f"note: far from where a body has them: {', '.join(doubtful)}; are left and right as the person's own?"
            )
    if len(found.place_errors):
        print("reprojection error of the places, pixels: " + ", ".join(f"{e:.1f}" for e in found.place_errors))
    print(f"written: {target}")
