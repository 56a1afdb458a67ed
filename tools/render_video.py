"""Renders footage of a person who performs a motion, with its camera, its clean plate and its ground truth.

    python tools/render_video.py humanoid3d_walk -o walk.mp4 --view side --seed 1 --seconds 2
    python tools/render_video.py motion.bvh -o footage/ --view 30 --time-range 1 3 --masks
    python tools/render_video.py humanoid3d_run -o treadmill.mp4 --seconds 4 --in-place
    python tools/render_video.py --samples                      the footage in video/

The person is not the project's character: lengths, girths and clothes differ by seed. Beside NAME.mp4 are written
NAME.toml            the camera (Pose2Sim's keys; world z up, metres)
NAME.background.jpg  the empty scene, unless --no-plate
NAME.truth.npz       the motion on the standard character at the video's frames (`mocap2ctrl.motion.npz`), and `points_m`,
                     (T, 15, 3) the rendered body's evaluation points; both over the ground, also of who stays in place:
                     `ground_velocity_m_s`, (2,), is how that ground, a belt, moves by the camera
NAME.masks.npz       with --masks: the exact silhouettes, bool (T, H, W) under NAME, and `fps`
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import cv2
import numpy as np
from rendering.conditions import LIGHTS, Conditions
from rendering.footage import Image, Shot
from rendering.performer import Performer, draw_performer, perform
from rendering.scenery import BACKDROPS, SCENES, build_scene
from rendering.viewpoint import VIEWS, place_camera, random_camera

from mocap2ctrl.character import load_character
from mocap2ctrl.character.kinematics import clip_frames, evaluation_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.files import replacing, write_arrays, write_bytes
from mocap2ctrl.geometry.camera import to_camera
from mocap2ctrl.motion import clips
from mocap2ctrl.motion.load import ends_standing, load_motion
from mocap2ctrl.motion.npz import write_motion
from mocap2ctrl.report.overlay import encode_h264
from mocap2ctrl.types import Array, Camera, MotionClip
from mocap2ctrl.video.camera_file import save_camera

CRF = 28
JPEG_QUALITY = 88
BEHIND_M = 0.2
"""How far a body may reach behind its solids' ends."""
SMALL = (160, 90)
CAMERAS = {"near": place_camera, "random": random_camera}
VIDEO = Path(__file__).resolve().parent.parent / "video"


@dataclass(frozen=True)
class Sample:
    """Footage that is shipped."""

    name: str
    motion: str
    view: str
    seed: int
    scene: str
    seconds: float | None


SAMPLES = (
    Sample("walk", "humanoid3d_walk", "side", 1, "street", 2.0),
    Sample("jump", "humanoid3d_jump", "side", 33, "garden", None),
    Sample("spinkick", "humanoid3d_spinkick", "side", 10, "hall", None),
)


@dataclass(frozen=True)
class Settings:
    """What the command line says about one video; see `--help`."""

    motion: str
    output: Path
    view: str = "side"
    camera: str = "near"
    seed: int = 0
    scene: str | None = None
    seconds: float | None = None
    cycles: int | None = None
    time_range: tuple[float, float] | None = None
    fps: int = 30
    size: tuple[int, int] = (960, 540)
    subframes: int = 4
    samples: int = 1
    masks: bool = False
    light: tuple[str, ...] = ()
    sway: float = 0.0
    noise: float = 1.0
    crf: int = CRF
    plate: bool = True
    in_place: bool = False


@dataclass(frozen=True, eq=False)
class Take:
    """A shot that is ready, with its truth over the ground.

    Attributes:
        shot: as it is filmed.
        truth: the clip of the standard character at the frames.
        points_m: (T, 15, 3) of the body that is filmed.
        ground_velocity: (2,) m/s of the ground by the camera.
    """

    shot: Shot
    truth: MotionClip
    points_m: Array
    ground_velocity: Array

    @property
    def times_s(self) -> Array:
        """(T,) of the frames."""
        return np.arange(len(self.truth)) / self.truth.fps


@dataclass(frozen=True, eq=False)
class Performance:
    """Who moves how before which camera; `truth` as in `Take`, `motion` the performer's own at any rate."""

    performer: Performer
    motion: MotionClip
    truth: MotionClip
    camera: Camera
    points_m: Array
    ground_velocity: Array


def stage(settings: Settings, character: Character) -> Performance:
    """Everything but the scene and its light."""
    draw = [np.random.default_rng([settings.seed, part]) for part in range(2)]
    performer = draw_performer(character, draw[0])
    source = _clip(settings, character)
    truth = _at_frames(settings, source)
    about = {"view": settings.view, "seed": settings.seed, "performer": dict(performer.lengths)}
    truth = replace(
        truth, ends_standing=ends_standing(truth, character), provenance={**source.provenance, "rendered": about}
    )
    travelling = perform(performer, character, source)
    belt = -_mean_travel(truth) if settings.in_place else np.zeros(2)
    motion = _carried(travelling, belt)
    seen = clips.at_times(motion, np.arange(len(truth)) / settings.fps)
    camera = CAMERAS[settings.camera](*_azimuth(settings.view), *performer.spheres(seen), settings.size, draw[1])
    frames = clip_frames(performer.character, clips.at_times(travelling, np.arange(len(truth)) / settings.fps))
    return Performance(performer, motion, truth, camera, evaluation_points(performer.character, *frames), belt)


def _mean_travel(clip: MotionClip) -> Array:
    """(2,) the root's mean velocity over the ground, m/s."""
    return np.asarray((clip.root_position[-1, :2] - clip.root_position[0, :2]) / clip.duration_s)


def _carried(clip: MotionClip, velocity: Array) -> MotionClip:
    """The motion on ground that moves with `velocity` (2,), m/s."""
    times = np.arange(len(clip)) / clip.fps
    return replace(clip, root_position=clip.root_position + times[:, None] * np.append(velocity, 0.0))


def prepare(settings: Settings, character: Character) -> Take:
    """Everything but the rendering."""
    staged = stage(settings, character)
    camera, seen = staged.camera, clips.at_times(staged.motion, np.arange(len(staged.truth)) / settings.fps)
    behind = float(np.max(to_camera(camera, staged.performer.spheres(seen)[0])[..., 2])) + BEHIND_M
    rng = np.random.default_rng([settings.seed, 2])
    scene = build_scene(settings.scene or SCENES[settings.seed % len(SCENES)], camera, behind, rng)
    conditions = Conditions(tuple(settings.light), settings.sway, settings.noise)
    shot = Shot(
        staged.performer, staged.motion, camera, scene, settings.seed, settings.subframes, settings.samples, conditions
    )
    return Take(shot, staged.truth, staged.points_m, staged.ground_velocity)


def _at_frames(settings: Settings, source: MotionClip) -> MotionClip:
    """The clip at the video's frames: frame i at i / fps."""
    duration = min(source.duration_s, settings.seconds or math.inf)
    steps = math.floor(duration * settings.fps + 1e-6)
    if steps < 1:
        raise Mocap2CtrlError(
            f"{settings.motion}: {duration:g} s are less than two frames at {settings.fps} fps; film more of it"
        )
    return replace(clips.at_times(source, np.arange(steps + 1) / settings.fps), fps=float(settings.fps), loop=False)


def _clip(settings: Settings, character: Character) -> MotionClip:
    """The part of the motion to film, at the file's rate."""

    def load(cycles: int) -> MotionClip:
        return load_motion(settings.motion, character, time_range=settings.time_range, cycles=cycles).clip

    clip = load(settings.cycles or 1)
    if settings.seconds is None:
        return replace(clip, loop=False)
    if clip.loop and settings.cycles is None and settings.seconds > clip.duration_s > 0.0:
        clip = load(math.ceil(settings.seconds / clip.duration_s))
    return clip.cut(0, math.ceil(settings.seconds * clip.fps - 1e-6) + 1)


def _azimuth(view: str) -> tuple[str, float]:
    """The camera's name and azimuth in degrees."""
    if view in VIEWS:
        return view, VIEWS[view]
    try:
        azimuth = float(view)
    except ValueError:
        azimuth = math.nan
    if not math.isfinite(azimuth):
        raise Mocap2CtrlError(f"--view is {view!r}; allowed are {', '.join(VIEWS)}, or an azimuth in degrees")
    return f"azimuth_{view}", azimuth


def render(settings: Settings, character: Character) -> Path:
    """Renders one video and writes all its files; returns the video's path."""
    video = _video_path(settings)
    take = prepare(settings, character)
    video.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    masks: list[np.ndarray] = []

    def frames() -> Iterable[Image]:
        for image, mask in take.shot.frames(take.times_s):
            masks.append(mask)
            yield image

    with replacing(video) as temporary:
        # As a phone or a messenger compresses it.
        encode_h264(temporary, frames(), settings.fps, settings.size, crf=str(settings.crf), preset="medium")
    spent = (time.perf_counter() - start) / len(masks)
    base = video.with_suffix("")
    save_camera(base.with_suffix(".toml"), take.shot.camera)
    if settings.plate:
        write_bytes(f"{base}.background.jpg", jpeg(take.shot.clean_plate()))
    write_truth(Path(f"{base}.truth.npz"), take, character)
    if settings.masks:
        write_arrays(f"{base}.masks.npz", {base.name: np.stack(masks), "fps": float(settings.fps)})
    if settings.in_place:
        print(f"{video}: the belt runs at {np.linalg.norm(take.ground_velocity):.3f} m/s")
    print(
        f"{video}: {len(masks)} frames, {spent:.2f} s a frame, {video.stat().st_size / 1000:.0f} kB; {_tallness(masks)}"
    )
    return video


def _video_path(settings: Settings) -> Path:
    if settings.output.suffix.lower() == ".mp4":
        return settings.output
    name = Path(settings.motion).stem.removeprefix("humanoid3d_")
    return settings.output / f"{name}.mp4"


def _tallness(masks: list[np.ndarray]) -> str:
    """How tall the person is in the silhouettes that a fit would see."""
    rows = [np.flatnonzero(mask.any(axis=1)) for mask in masks]
    share = SMALL[1] / masks[0].shape[0]
    tall = [share * float(row[-1] - row[0] + 1) for row in rows if len(row)] or [0.0]
    return f"person {min(tall):.0f} to {max(tall):.0f} px tall at {SMALL[0]}x{SMALL[1]}, median {np.median(tall):.0f}"


def jpeg(image: Image) -> bytes:
    """The picture as a phone stores it."""
    coded = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1]
    return bytes(coded)


def write_truth(path: Path, take: Take, character: Character) -> None:
    """A motion file that also holds the rendered body's points."""
    with replacing(path) as temporary:
        write_motion(temporary, take.truth, character)
        with np.load(temporary, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    arrays["points_m"] = take.points_m
    if take.ground_velocity.any():
        arrays["ground_velocity_m_s"] = take.ground_velocity
    write_arrays(path, arrays)


def main(arguments: list[str] | None = None) -> int:
    """Parse and render; returns the exit code."""
    try:
        for settings in _jobs(arguments):
            render(settings, load_character())
    except Mocap2CtrlError as error:
        print(f"render_video: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"render_video: {error.filename}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _jobs(arguments: list[str] | None) -> list[Settings]:
    options = vars(_parser().parse_args(arguments))
    shipped, output, motion = options.pop("shipped"), options.pop("output"), options["motion"]
    if shipped:
        folder = output or VIDEO
        return [
            Settings(s.motion, folder / f"{s.name}.mp4", s.view, s.seed, s.scene, s.seconds, masks=options["masks"])
            for s in SAMPLES
        ]
    if motion is None:
        raise Mocap2CtrlError("no motion given; give a motion file or the name of a DeepMimic clip, or --samples")
    return [Settings(output=output or Path(), **options)]


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises its errors."""

    def error(self, message: str) -> NoReturn:
        raise Mocap2CtrlError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("motion", nargs="?", help="BVH or DeepMimic file, or the name of one of DeepMimic's clips")
    add("-o", "--output", type=Path, help="a folder, or the video's path (.mp4); default here, with --samples video/")
    add("--view", default="side", help=f"{', '.join(VIEWS)}, or degrees from straight ahead, counterclockwise")
    add(
        "--camera",
        choices=CAMERAS,
        default="near",
        help="as near as can be, or any height, lens, distance and tilt, by seed",
    )
    add("--seed", type=_whole(0), default=0, help="of the person, the scene and the noise")
    add("--scene", choices=(*SCENES, *BACKDROPS), help="by seed, one of the first three, without this")
    add("--seconds", type=_positive, help="length; a loop is repeated as often as it needs")
    add("--cycles", type=_whole(1), help="repeat a loop")
    add("--time-range", type=float, nargs=2, metavar=("A", "B"), help="seconds of the motion")
    add("--fps", type=_whole(1), default=30)
    add("--size", type=_size, default=(960, 540), help="WIDTHxHEIGHT")
    add("--subframes", type=_whole(1), default=4, help="moments within the shutter's time")
    add("--samples-a-subframe", dest="samples", type=_whole(1), default=1, help="samples a pixel in each")
    add("--in-place", action="store_true", help="on a belt that takes the mean travel back, as on a treadmill")
    add("--masks", action="store_true", help="write the exact silhouettes, too")
    add("--light", nargs="+", choices=LIGHTS, default=(), help="light that changes")
    add("--sway", type=_positive, default=0.0, help="leaves or curtains move by so many pixels to each side")
    add("--noise", type=_positive, default=1.0, help="of the sensor, times the usual")
    add("--crf", type=_whole(0), default=CRF, help="compression: 18 is hardly visible, 40 is strong")
    add("--no-plate", dest="plate", action="store_false", help="write no picture of the empty scene")
    add("--samples", dest="shipped", action="store_true", help="render the footage in video/")
    return parser


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text) if text.isdigit() else -1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r}; it must be a whole number from {least}")
        return value

    return parse


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}; it must be a positive number")
    return value


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r}; give WIDTHxHEIGHT, for example 960x540")
    size = (int(width), int(height))
    if min(size) < 32 or size[0] % 2 or size[1] % 2:
        raise argparse.ArgumentTypeError(f"{text!r}; both must be even and at least 32")
    return size


if __name__ == "__main__":
    sys.exit(main())
