"""What 2D keypoints add to silhouettes: tracks of videos whose motion is known, with and without; no controller is fitted."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.rows import CACHE, SHARED, Row
from benchmarks.turned import TURNED, turned_camera
from benchmarks.videos import CASES as VIDEOS
from benchmarks.videos import footage
from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import load_character
from mocap2ctrl.evaluation.keypoints import keypoint_error_px
from mocap2ctrl.evaluation.reference import load_reference
from mocap2ctrl.evaluation.silhouettes import silhouette_iou
from mocap2ctrl.fit.config import budget
from mocap2ctrl.fit.run import cpu_seconds
from mocap2ctrl.geometry.camera import project, undistorted
from mocap2ctrl.objective.target import joint_error
from mocap2ctrl.prior.choose import load_prior
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.track.tracker import track
from mocap2ctrl.types import Array
from mocap2ctrl.video.camera_file import load_camera, save_camera
from mocap2ctrl.video.decode import probe
from mocap2ctrl.video.keypoints_layouts import BODY_25
from mocap2ctrl.video.silhouettes import load_silhouettes

NOISE_PX, MISSING, SWAPPED = 3.0, 0.1, 0.1
"""Errors of the detector that is imitated: noise, points that it does not find, frames in which it takes left for right."""
CONFIDENCE = 0.8
CLICKED = (0.1, 0.5, 0.9)
"""Where in the video somebody has clicked, as shares of its length."""
CLICK_PX = 3.0

BALANCING = SHARED / "video" / "pose2sim_cam03_balancing.mp4"
CALIBRATION = SHARED / "reference3d" / "pose2sim_Calib_qualisys.toml"
TRIANGULATED = SHARED / "reference3d" / "pose2sim_balancing_multiview_0-100.trc"
TRC_NAMES = {
    "neck": "Neck",
    **{
        f"{side}_{part.lower()}": side[0].upper() + part
        for side in ("left", "right")
        for part in ("Shoulder", "Elbow", "Wrist", "Hip", "Knee", "Ankle")
    },
}

NOTE = (
    f"Tracks without a controller. The points are the truth's, projected into the video, with noise of {NOISE_PX:g} px,\n"
    f"{100 * MISSING:.0f} % of them missing, and left and right exchanged in {100 * SWAPPED:.0f} % of the frames; written as "
    "OpenPose's JSON (BODY_25, without\nhead and feet). Clicks: all joints in three frames. Joint error: against the joints of the "
    "body in the picture. balancing is a\nreal video, whose points are projected from the very reference that its error is "
    "measured by: with keypoints its error is a\ndemonstration, and no test. balancing-turned: by the camera as it must have stood "
    "(benchmarks/turned.py)."
)


@dataclass(frozen=True, eq=False)
class Filmed:
    """A video whose motion is known.

    Attributes:
        video: the file.
        camera: spec of its camera; None for the one beside it.
        prior: that has not seen the motion.
        names: of the known points.
        points_m: (N, K, 3) of the video's frames, world.
    """

    video: Path
    camera: str | None
    prior: str
    names: tuple[str, ...]
    points_m: Array


def keypoints(options: argparse.Namespace) -> Iterator[Row]:
    """Tracks each video from silhouettes alone, with a detector's points, and with a few clicks."""
    for name in options.clips or CASES:
        filmed = CASES[name]()
        if filmed is None:
            print(f"{name}: left out, its footage is not there", file=sys.stderr)
            continue
        for seed in options.seeds:
            given = {
                "silhouettes alone": None,
                "and a detector's points": detected(name, filmed, seed),
                "and clicks on 3 frames": clicked(name, filmed, seed),
            }
            for evidence, file in given.items():
                for quantity, (value, unit) in _measured(filmed, file, seed, options).items():
                    yield Row(f"{name} | {evidence} | {quantity}", "", value, unit, seed)


def rendered(name: str) -> Callable[[], Filmed | None]:
    """One of the table `video`."""

    def load() -> Filmed | None:
        case = VIDEOS[name]
        file = footage(case)
        if file is None:
            return None
        truth = load_reference(file.with_name(f"{file.stem}.truth.npz"), 1.75)
        rate = probe(file).fps
        if truth.source_points is None or abs(truth.clip.fps - rate) > 0.01:
            raise ValueError(f"{file}: its truth is not of its frames")
        names = tuple(point.name for point in load_character().evaluation_points)
        return Filmed(file, None, case.prior, names, truth.source_points)

    return load


def balancing(camera: Callable[[], str] = lambda: f"{CALIBRATION}:{TURNED}") -> Filmed | None:
    """A real video with a motion that was triangulated from four views."""
    if not (BALANCING.is_file() and CALIBRATION.is_file() and TRIANGULATED.is_file()):
        return None
    lines = TRIANGULATED.read_text("utf-8").splitlines()
    heads = lines[3].split("\t")
    rows = np.array([[float(v) for v in line.split("\t") if v.strip()] for line in lines[5:] if line.strip()])
    columns = [heads.index(TRC_NAMES[name]) for name in TRC_NAMES]
    y_up = np.stack([rows[:, c : c + 3] for c in columns], axis=1)
    return Filmed(BALANCING, camera(), "all", tuple(TRC_NAMES), y_up[..., [2, 0, 1]])


def turned() -> str:
    """The camera that the balancing man was filmed by, turned to where it sees what does not move."""
    file = CACHE / "balancing_turned.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    save_camera(file, turned_camera(CALIBRATION))
    return str(file)


CASES: dict[str, Callable[[], Filmed | None]] = {
    **{name: rendered(name) for name in ("walk", "jump", "spinkick", "walk-oblique")},
    "balancing": balancing,
    "balancing-turned": lambda: balancing(turned),
}


def detected(name: str, filmed: Filmed, seed: int) -> Path:
    """A folder as OpenPose would have written it, from what is known."""
    folder = CACHE / f"{name}_openpose_{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([seed, 25])
    pixels = _pixels(filmed)
    pixels = pixels + rng.normal(0.0, NOISE_PX, pixels.shape)
    found, swapped = rng.random(pixels.shape[:2]) >= MISSING, rng.random(len(pixels)) < SWAPPED
    for frame, places in enumerate(pixels):
        at = {n: (*p, CONFIDENCE) for n, p, ok in zip(filmed.names, places.tolist(), found[frame], strict=True) if ok}
        if swapped[frame]:
            at = {_other_side(n): p for n, p in at.items()}
        numbers = [v for landmark in BODY_25 for v in at.get(str(landmark), (0.0, 0.0, 0.0))]
        value = {"version": 1.3, "people": [{"person_id": [-1], "pose_keypoints_2d": numbers}]}
        (folder / f"{filmed.video.stem}_{frame:012d}_keypoints.json").write_text(json.dumps(value), "utf-8")
    return folder


def clicked(name: str, filmed: Filmed, seed: int) -> Path:
    """A file of clicks on a few frames."""
    rng = np.random.default_rng([seed, 3])
    pixels = _pixels(filmed)
    entries = []
    for share in CLICKED:
        frame = round(share * (len(pixels) - 1))
        places = pixels[frame] + rng.normal(0.0, CLICK_PX, pixels[frame].shape)
        entries.append(
            {
                "frame": frame,
                "points": {
                    n: [round(x, 1), round(y, 1)] for n, (x, y) in zip(filmed.names, places.tolist(), strict=True)
                },
            }
        )
    file = CACHE / f"{name}_clicks_{seed}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"frames": entries}), "utf-8")
    return file


def _pixels(filmed: Filmed) -> Array:
    """(N, K, 2) the known points in the video; the cameras here have next to no distortion."""
    camera = load_camera(filmed.camera or filmed.video.with_suffix(".toml"))
    return project(undistorted(camera), filmed.points_m)


def _other_side(name: str) -> str:
    return name.replace("left", "right") if name.startswith("left") else name.replace("right", "left")


def _measured(
    filmed: Filmed, file: Path | None, seed: int, options: argparse.Namespace
) -> dict[str, tuple[float | None, str]]:
    character = load_character()
    prior = load_prior(filmed.prior, character)
    if not isinstance(prior, PosePrior):
        raise ValueError(f"{filmed.prior} is no pose prior")
    seen = load_silhouettes(filmed.video, filmed.camera, keypoints=file).silhouettes
    begun = cpu_seconds()
    config = budget("quick" if options.quick else options.budget).tracking
    found = track(seen, character, prior, seed=seed, workers=options.workers or 2, config=config)
    minutes = (cpu_seconds() - begun) / 60.0
    truth = _known_at(filmed, float(seen.provenance["start_s"]) + np.arange(len(seen)) / seen.fps)
    index = [[p.name for p in character.evaluation_points].index(name) for name in filmed.names]
    points = clip_points(found.character, found.clip)[:, index][: len(truth)]
    hips = [filmed.names.index(f"{side}_hip") for side in ("left", "right")]
    ours, theirs = (p - p[:, hips].mean(axis=1, keepdims=True) for p in (points, truth))
    return {
        "joint error": (float(joint_error(points, truth).mean()), "cm"),
        "root-aligned error": (float(joint_error(ours, theirs).mean()), "cm"),
        "overlap": (silhouette_iou(found.character, found.clip, found.girth, seen), "IoU"),
        "reprojection error": (keypoint_error_px(found.character, found.clip, seen), "px"),
        "core time": (minutes, "min"),
    }


def _known_at(filmed: Filmed, times: Array) -> Array:
    """(F, K, 3) the known points in the video's frames nearest to times (F,), as far as they are known."""
    frames = np.rint(times * probe(filmed.video).fps).astype(int)
    return filmed.points_m[frames[frames < len(filmed.points_m)]]
