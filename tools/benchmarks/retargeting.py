"""Motion files as the character performs them: how near, how clean the feet, how fast."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.rows import SHARED, Row
from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import SIDES, Character, load_character
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.motion import clips
from mocap2ctrl.motion.anatomy import Body
from mocap2ctrl.motion.bvh import parse_bvh
from mocap2ctrl.motion.deepmimic import deepmimic_directory, read_deepmimic
from mocap2ctrl.motion.facing import mirrored
from mocap2ctrl.motion.load import LoadedMotion, load_motion
from mocap2ctrl.motion.names import JointMap, map_joints
from mocap2ctrl.motion.retarget import retarget
from mocap2ctrl.motion.units import infer_scale, z_up

WALKS_AND_RUNS = (
    "walk_games105_m_yup",
    "run_games105_m_yup",
    "walk_turn_left_games105_100fps",
    "walk_cmu12_01",
    "walk_mixamo_3ch_colon_names",
    "walk_8_pattern_root_offset",
    "fairmotion_11_01",
    "humanoid3d_walk",
    "humanoid3d_run",
)
OTHERS = (
    "stand_idle_games105",
    "sit_stand_mocapbank",
    "jump_forward_fair1_zup_inch",
    "jumping_jacks_cmu",
    "dance_rokoko",
    "boxing_fall_getup",
    "fairmotion_01_01",
    *(
        f"humanoid3d_{name}"
        for name in ("jump", "kick", "punch", "spin", "spinkick", "cartwheel", "backflip", "roll", "crawl")
    ),
    *(f"humanoid3d_{name}" for name in ("dance_a", "dance_b", "getup_facedown", "getup_faceup")),
)
CLIPS = (*WALKS_AND_RUNS, *OTHERS)
QUICK = ("walk_games105_m_yup", "walk_mixamo_3ch_colon_names", "humanoid3d_walk", "humanoid3d_cartwheel")
ENDS = ("left_wrist", "right_wrist", "left_ankle", "right_ankle", "head", "pelvis")
LONG_FRAMES = 500
"""Clips shorter than this do not say how long a second of motion takes."""
MIRRORED_FRAMES = 300
NOTE = (
    "End effectors: wrists, ankles, head and pelvis, mean over the frames. Whole: the file's skeleton scaled by its leg "
    "length, so that other proportions count as error. By bone: each limb from its root, along the file's directions on the "
    "body's own bones. Feet: heels and balls while they stand by the file's own joints, before and after they are planted. "
    "Height is the mean distance from the ground, above or below. Mirrored: largest angle by which the mirrored file's result "
    "differs from the mirrored result. Time: of one processor, to read and retarget 10 s at 120 frames a second, of files of "
    "500 frames or more."
)


def motion(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of each file, and the medians over walks and runs."""
    character = load_character()
    load_motion_or_none(CLIPS[0], character)
    found: dict[str, list[float]] = {}
    for name in options.clips or (QUICK if options.quick else CLIPS):
        loaded, seconds = load_motion_or_none(name, character)
        if loaded is None:
            continue
        values = {**figures(loaded, character), "mirrored": (mirror_asymmetry(name, character), "deg")}
        long = len(loaded.clip) >= LONG_FRAMES
        values["time for 10 s"] = (seconds * 1200 / len(loaded.clip) if long else None, "s")
        for what, (value, unit) in values.items():
            if value is not None and name in WALKS_AND_RUNS:
                found.setdefault(what, []).append(value)
            yield Row(f"{name} | {what}", "", value, unit, None)
    units = {what: unit for what, (_, unit) in values.items()}
    for what, several in found.items():
        yield Row(f"median of walks and runs | {what}", "", statistics.median(several), units[what], None)


def load_motion_or_none(name: str, character: Character) -> tuple[LoadedMotion | None, float]:
    """A motion by its name, and the processor seconds that it took; none, and said so, where it is absent or not read."""
    file = path_of(name)
    begun = time.process_time()
    try:
        loaded = None if file is None else load_motion(file, character)
    except Mocap2CtrlError as error:
        print(f"{name}: left out, {error}", file=sys.stderr)
        return None, 0.0
    if file is None:
        print(f"{name}: left out, it is not beside the project, or pybullet is not installed", file=sys.stderr)
    return loaded, time.process_time() - begun


def path_of(name: str) -> Path | None:
    """The file of a motion: of the shared data, or one of DeepMimic's."""
    folders = [SHARED / "bvh", SHARED / "amc", deepmimic_directory() or SHARED]
    places = [folder / f"{name}.{kind}" for folder in folders for kind in ("bvh", "amc", "txt")]
    return next((place for place in places if place.is_file()), None)


def figures(loaded: LoadedMotion, character: Character) -> dict[str, tuple[float | None, str]]:
    """What is measured of one file, with units."""
    clip, feet = loaded.clip, loaded.feet
    points = clip_points(character, clip)
    names = [point.name for point in character.evaluation_points]
    ends = [names.index(name) for name in ENDS]
    distance = 100.0 * np.linalg.norm(points - loaded.source_points, axis=-1)[:, ends]
    beyond = np.maximum(character.lower_limits - clip.angles, clip.angles - character.upper_limits)
    return {
        "end effectors, whole": (float(np.nanmean(distance)), "cm"),
        "end effectors, by bone": (loaded.limb_error_cm, "cm"),
        "slide before": (feet.before.slide_cm_s, "cm/s"),
        "slide": (feet.after.slide_cm_s, "cm/s"),
        "height before": (feet.before.height_mm, "mm"),
        "height": (feet.after.height_mm, "mm"),
        "sinks": (feet.after.sinks_mm, "mm"),
        "beyond limits": (float(np.degrees(max(0.0, np.max(beyond)))), "deg"),
    }


def mirror_asymmetry(name: str, character: Character) -> float | None:
    """Largest difference in degrees between the mirrored file's angles and the file's, mirrored; of its first frames."""
    file = path_of(name)
    if file is None or file.suffix not in (".bvh", ".txt"):
        return None
    source = parse_bvh(file.read_text("utf-8-sig"), name, name) if file.suffix == ".bvh" else read_deepmimic(file)
    source = source.cut(0, MIRRORED_FRAMES)
    joints = map_joints(source, name)
    scale = infer_scale(source, joints, name)
    metres = 0.86 / scale.leg
    body = Body(source, joints, *z_up(source, scale.up))
    here = retarget(body, character, metres).clip
    there = retarget(replace(mirrored(body), joints=exchanged(joints)), character, metres).clip
    return float(np.degrees(np.max(np.abs(clips.mirror(here, character).angles - there.angles))))


def exchanged(joints: JointMap) -> JointMap:
    """The map with left for right."""
    other = dict(zip(SIDES, SIDES[::-1], strict=True))
    return replace(joints, limbs={(other[side], part): index for (side, part), index in joints.limbs.items()})
