"""`mocap2ctrl inspect`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mocap2ctrl.cli.input_options import add_input_arguments, input_options
from mocap2ctrl.cli.options import add_json, note, print_json

if TYPE_CHECKING:
    from mocap2ctrl.errors import JointsError, MotionFileError
    from mocap2ctrl.report.inspection import Inspection

EPILOG = """examples:
  mocap2ctrl inspect walk.mp4                            writes inspect/walk/index.html and inspect/walk/inspect.png
  mocap2ctrl inspect walk.mp4 --camera studio.toml:left --height 1.82
  mocap2ctrl inspect masks.npz:walk --fps 30 -o look
  mocap2ctrl inspect walk.bvh                            and inspect/walk/joint-map.toml, to be corrected; then:
  mocap2ctrl inspect walk.bvh --joint-map inspect/walk/joint-map.toml --up z --overwrite
  mocap2ctrl inspect humanoid3d_cartwheel --json

Footage that a fit would refuse is shown as far as it can be; the exit code is then 2.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.epilog = EPILOG
    add_input_arguments(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (default: inspect/<input's name>)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing page and picture")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Looks at an input as a fit would; writes a page and a picture, and says what was understood."""
    from mocap2ctrl import api
    from mocap2ctrl.cli.progress import StepDisplay
    from mocap2ctrl.errors import JointsError
    from mocap2ctrl.fit.capture import check_place
    from mocap2ctrl.fit.inputs import input_name
    from mocap2ctrl.report.inspection import page_and_picture

    folder = Path(options.output) if options.output else Path("inspect") / input_name(options.input)
    check_place(folder)  # what cannot be written is told before the work
    page_and_picture(folder, overwrite=options.overwrite)
    with StepDisplay("inspect") as display:
        try:
            seen = api.inspect(options.input, **input_options(options), on_step=display.step)
        except JointsError as error:
            raise _with_joint_map(error, options.input, folder) from error
        page, picture = seen.write(folder, overwrite=options.overwrite)
    if options.json:
        print_json({**seen.summary(), "page": str(page), "picture": str(picture)})
    if seen.error is not None:
        note(f"mocap2ctrl inspect: {seen.error}; what can be seen of it: {page}")
        return 2
    for warning in seen.warnings:
        note(f"note: {warning}")
    if not options.json:
        _print(seen, page, picture)
    return 0


def _with_joint_map(error: JointsError, file: str, folder: Path) -> MotionFileError:
    """The error, with a joint map of what was found to be filled in, in `folder`; one that is there already stays."""
    from mocap2ctrl.errors import MotionFileError
    from mocap2ctrl.files import write_text
    from mocap2ctrl.motion.joint_map import FILE_NAME, joint_map_text

    path = folder / FILE_NAME
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, joint_map_text(error.source, error.found, file))
    return MotionFileError(f"{error.cause}; fill in {path} and give it with --joint-map")


def _print(seen: Inspection, page: Path, picture: Path) -> None:
    print(
        f"{seen.name}: {seen.kind}, {seen.frames} frames, {seen.fps:.4g} a second, from {seen.start_s or 0.0:.2f} s on"
    )
    for rows in seen.facts.values():
        for name, text in rows.items():
            print(f"  {name:<30} {text}")
    for line in seen.notes:
        print(f"  {line}")
    print(f"look at {page} or {picture}")
    for name in seen.files:
        print(f"a joint is wrong? correct {page.parent / name} and give it with --{Path(name).stem}")
    if seen.command is not None:
        print(f"then: {seen.command}")
