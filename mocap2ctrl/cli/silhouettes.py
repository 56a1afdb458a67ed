"""`mocap2ctrl silhouettes`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.input_options import add_background_argument, add_time_arguments
from mocap2ctrl.cli.options import add_json, add_person, add_slowmo, given, note, print_json

if TYPE_CHECKING:
    from mocap2ctrl.video.extract import ExtractedMasks

EPILOG = """examples:
  mocap2ctrl silhouettes walk.mp4                            writes silhouettes/walk.npz and silhouettes/walk.png
  mocap2ctrl silhouettes walk.mp4 --background empty.png -o walk.npz
  mocap2ctrl silhouettes duet.mp4 --person 520,610@0.5       the one of two people who is there half a second from the start
  mocap2ctrl fit silhouettes/walk.npz:walk --camera walk.toml

The clean plate walk.background.png (or .jpg) beside walk.mp4 is used, and named.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "video",
        metavar="VIDEO",
        type=given,
        help="a video by a still camera; or masks: FILE.npz:KEY, a folder of PNGs, or a video in black and white",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the masks to write, an .npz (default: silhouettes/<video's name>.npz)"
    )
    parser.add_argument("--camera", metavar="FILE[:NAME]", help="check that this camera fits, too; none is needed here")
    add_background_argument(parser)
    parser.add_argument(
        "--method",
        "--background-method",
        metavar="NAME",
        help="how the empty scene is found: plate, that picture; empty, frames without anybody; median, of each pixel; mog2, a "
        "mixture for each pixel, where leaves or water move; key, a plain backdrop continued behind a person who stays; motion, "
        "around a person who stays before anything else (default: what suits the clip, and says why)",
    )
    add_person(parser)
    add_slowmo(parser)
    add_time_arguments(parser, "video", "frames a second (default: the video's, or a fraction near 30)")
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Finds the person in each frame; writes masks and a picture, and says what was understood."""
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.files import refuse_existing, write_bytes
    from mocap2ctrl.fit.capture import check_place
    from mocap2ctrl.video.mask_files import save_masks
    from mocap2ctrl.video.picture import outlined_frames, png_bytes
    from mocap2ctrl.video.silhouettes import input_name

    name = input_name(options.video)
    path = Path(options.output) if options.output else Path("silhouettes") / f"{name}.npz"
    picture = path.with_suffix(".png")
    if path.suffix != ".npz":
        raise ConfigError(f"{path}: a file of masks ends in .npz")
    refuse_existing(path, picture, overwrite=options.overwrite)
    check_place(path.parent)
    found, notes = _extract(options)
    path.parent.mkdir(parents=True, exist_ok=True)
    key = save_masks(path, name, found.masks, found.fps)
    times = [found.start_s + t / found.fps for t in range(len(found.masks))]
    write_bytes(picture, png_bytes(outlined_frames(found.masks, found.images, times)))
    for warning in found.warnings:
        note(f"note: {warning}")
    if options.json:
        _print_json(found, f"{path}:{key}", picture, notes)
        return 0
    for line in notes:
        print(line)
    print(
        f"{len(found.masks)} masks from {times[0]:.2f} s on, the person {found.person_px:.0f} pixels tall: {path}:{key}"
    )
    print(f"look at {picture}")
    return 0


def _print_json(found: ExtractedMasks, masks: str, picture: Path, notes: tuple[str, ...]) -> None:
    height, width = found.masks.shape[1:]
    print_json(
        {
            "masks": masks,
            "picture": str(picture),
            "frames": len(found.masks),
            "fps": found.fps,
            "start_s": found.start_s,
            "size": [width, height],
            "method": found.method,
            "person_px": found.person_px,
            "notes": list(notes),
            "warnings": list(found.warnings),
        }
    )


def _extract(options: argparse.Namespace) -> tuple[ExtractedMasks, tuple[str, ...]]:
    """The masks, and what was understood."""
    from mocap2ctrl.cli.progress import StepDisplay
    from mocap2ctrl.errors import ConfigError
    from mocap2ctrl.video.camera_file import camera_for_size, load_camera
    from mocap2ctrl.video.choice import person_at
    from mocap2ctrl.video.extract import from_masks, from_video
    from mocap2ctrl.video.mask_files import holds_masks
    from mocap2ctrl.video.samples import VIDEO, shipped_file
    from mocap2ctrl.video.silhouettes import input_file, sample_note, seen_by

    shipped = shipped_file(options.video, VIDEO)
    video = shipped or options.video
    camera = load_camera(options.camera) if options.camera else None
    time_range = tuple(options.time_range) if options.time_range else None
    at = person_at(options.person)
    if holds_masks(video, insist=options.masks):
        if options.background or options.method or options.slowmo:
            raise ConfigError(f"{options.video}: are masks already; --background, --method and --slowmo are for videos")
        found = from_masks(video, fps=options.fps, time_range=time_range, person_at=at)
    else:
        with StepDisplay("silhouettes") as display:
            found = from_video(
                video,
                fps=options.fps,
                time_range=time_range,
                plate=options.background,
                method=options.method,
                person_at=at,
                slowmo=options.slowmo,
                progress=display.step,
            )
    notes = () if shipped is None else (sample_note(shipped),)
    if camera is None:
        return found, (*notes, *found.notes)
    fitting = camera_for_size(camera, found.source_size)
    return found, (*notes, *seen_by(found, fitting, input_file(video), f"camera: {options.camera}").notes)
