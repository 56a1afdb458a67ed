"""Makes the README's pictures from captures.

python tools/make_pictures.py captures/walk --video video/walk.mp4 -o docs/video.png
python tools/make_pictures.py captures/cartwheel --columns 7 -o docs/cartwheel.png

A video's capture gives rows of frames, silhouettes and the simulated body over the frames; a motion's, of reference and simulated
body. The controller is simulated anew. A video that is not given is looked for in `video/`, beside its camera; without one the
frames are left out.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

from mocap2ctrl import api
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.files import write_bytes
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.report.contact_sheet import contact_sheet
from mocap2ctrl.report.performer import Performer
from mocap2ctrl.report.scene import Footage, Scene, footage_of
from mocap2ctrl.report.video_sheet import video_strip
from mocap2ctrl.types import Silhouettes
from mocap2ctrl.video.silhouettes import load_silhouettes

SAMPLES = Path(__file__).resolve().parents[1] / "video"
WIDTH = 1200


def main(arguments: list[str] | None = None) -> int:
    """Makes one picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", metavar="CAPTURE", help="a folder that mocap2ctrl fit has written")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="PNG")
    parser.add_argument("--columns", type=int, default=6, help="moments shown (default: 6)")
    parser.add_argument("--video", metavar="FILE", help="that the capture was made from")
    parser.add_argument("--camera", metavar="FILE[:NAME]", help="that took it (default: the file beside it)")
    options = parser.parse_args(arguments)
    try:
        capture = api.load(options.capture)
        write_bytes(options.output, picture(capture, options.columns, options.video, options.camera))
    except Mocap2CtrlError as error:
        print(f"make_pictures: {error}", file=sys.stderr)
        return 2
    print(options.output)
    return 0


def picture(capture: Capture, columns: int, video: str | None, camera: str | None) -> bytes:
    """The PNG of a capture's controller, simulated anew."""
    _, run = api.evaluate(capture)
    if capture.silhouettes is None:
        return contact_sheet(capture.character, capture.reference, run.clip, columns)
    scene = Scene(capture.silhouettes, footage(capture.silhouettes, video, camera))
    return reduced(video_strip(scene, Performer(capture.character, capture.girth, run.clip), columns))


def reduced(png: bytes) -> bytes:
    """A picture with photographs in it as small as a page needs it: at most WIDTH pixels wide, 256 colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.thumbnail((WIDTH, image.height), Image.Resampling.LANCZOS)
    coded = io.BytesIO()
    image.quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(coded, "PNG", optimize=True)
    return coded.getvalue()


def footage(silhouettes: Silhouettes, video: str | None, camera: str | None) -> Footage | None:
    """The frames of the video that silhouettes come from; None if it is not found."""
    name = str(silhouettes.provenance.get("file", ""))
    path = Path(video) if video is not None else SAMPLES / name
    if video is None and not (name and path.is_file()):
        return None
    start_s = float(silhouettes.provenance.get("start_s", 0.0))
    seconds = (start_s, start_s + len(silhouettes) / silhouettes.fps)
    return footage_of(load_silhouettes(path, camera, fps=silhouettes.fps, time_range=seconds))


if __name__ == "__main__":
    sys.exit(main())
