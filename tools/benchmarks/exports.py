"""Motions written for other programs and read back: how much is lost."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np

from benchmarks.rows import SHARED, Row
from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.character.rest_pose import rest_pose
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.evaluation.export import WRITERS, export_motion
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.bvh import read_bvh
from mocap2ctrl.motion.bvh_writer import joint_name
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.npz import read_body_and_motion
from mocap2ctrl.types import Array, MotionClip

CLIPS = (
    *(
        f"humanoid3d_{name}"
        for name in ("walk", "run", "jump", "cartwheel", "backflip", "roll", "dance_a", "getup_facedown")
    ),
    *("walk_8_pattern_root_offset", "walk_cmu12_01", "jumping_jacks_cmu", "boxing_fall_getup", "dance_rokoko"),
)
WORLD_OF_FILE = [2, 0, 1]
"""x forward, y left, z up of x left, y up, z forward."""

NOTE = (
    "Largest error over all segments and frames of a clip: of the joints' places, and of the segments' orientations; median\n"
    "(worst) over the clips. A dash: that reader tells no orientations. bvhio computes in single precision."
)
Frames = tuple[Array, Array | None]


def export(options: argparse.Namespace) -> Iterator[Row]:
    """Writes each clip in every format, and compares what several readers, imported when they are wanted, make of it."""
    character = load_character()
    for name in options.clips or CLIPS[: 2 if options.quick else None]:
        file = SHARED / "bvh" / f"{name}.bvh"
        try:
            clip = load_motion(file if file.is_file() else name, character).clip
        except MotionFileError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            yield from _rows(clip, character, Path(folder))


def _rows(clip: MotionClip, character: Character, folder: Path) -> Iterator[Row]:
    for suffix in WRITERS:
        export_motion(folder / f"x{suffix}", clip, character)
    positions, orientations = clip_frames(character, clip)
    names = [joint_name(segment) for segment in character.segment_names]
    for kind, reader, (places, turns) in (
        ("BVH", "mocap2ctrl", _own_bvh(folder / "x.bvh", names, character)),
        ("BVH", "pybvh", _pybvh(folder / "x.bvh", names)),
        ("BVH", "bvhio", _bvhio(folder / "x.bvh", names, len(clip))),
        ("GLB", "pygltflib", _glb(folder / "x.glb", names, character)),
        ("NPZ", "mocap2ctrl", _npz(folder / "x.npz")),
        ("NPZ", "NumPy", _numpy(folder / "x.npz")),
        ("CSV", "NumPy", _csv(folder / "x.csv", character)),
        ("MJCF", "MuJoCo", _mujoco(folder / "x.xml")),
    ):
        apart = 1e6 * float(np.abs(places - positions).max())
        yield Row(f"{kind} | {reader} | places", "", round(apart, 6), "µm", None)
        turned = None if turns is None else round(_angle(turns, orientations), 6)
        yield Row(f"{kind} | {reader} | orientations", "", turned, "0.001°", None)


def _angle(a: Array, b: Array) -> float:
    """The largest angle between orientations, thousandths of a degree."""
    between = rotations.multiply(a, rotations.conjugate(b))
    return 1000.0 * float(np.degrees(np.linalg.norm(rotations.to_rotation_vector(between), axis=-1)).max())


def _own_bvh(path: Path, names: list[str], character: Character) -> Frames:
    source = read_bvh(path)
    order = [source.joint_names.index(name) for name in names]
    turns = source.orientations[:, order]
    turns = np.concatenate([turns[..., :1], turns[..., 1:][..., WORLD_OF_FILE]], axis=-1)
    return 0.01 * source.positions[:, order][..., WORLD_OF_FILE], rotations.multiply(
        turns, rest_pose(character).orientations
    )


def _pybvh(path: Path, names: list[str]) -> Frames:
    import pybvh

    motion = pybvh.read_bvh_file(path, world_up="+y")
    return 0.01 * motion.node_positions()[:, [motion.node_index[n] for n in names]][..., WORLD_OF_FILE], None


def _bvhio(path: Path, names: list[str], frames: int) -> Frames:
    import bvhio

    root, found = bvhio.readAsHierarchy(str(path)), []
    for frame in range(frames):
        root.loadPose(frame)
        places = {joint.Name: joint.PositionWorld for joint, _, _ in root.layout()}
        found.append([list(places[name]) for name in names])
    return 0.01 * np.array(found)[..., WORLD_OF_FILE], None


def _glb(path: Path, names: list[str], character: Character) -> Frames:
    from benchmarks.glb_reader import GlbReader

    reader = GlbReader(path)
    order = [reader.joint_names.index(name) for name in names]
    worlds, rest = reader.worlds()[:, order], reader.worlds(rest=True)[:, order]
    turns = (worlds[..., :3, :3] @ rest[..., :3, :3].swapaxes(-1, -2))[..., WORLD_OF_FILE, :][..., WORLD_OF_FILE]
    from_rest = rotations.multiply(rotations.from_matrix(turns), rest_pose(character).orientations)
    return worlds[..., :3, 3][..., WORLD_OF_FILE], from_rest


def _npz(path: Path) -> Frames:
    return clip_frames(*read_body_and_motion(path))


def _numpy(path: Path) -> Frames:
    with np.load(path, allow_pickle=False) as data:
        return data["segment_positions"], data["segment_orientations"]


def _csv(path: Path, character: Character) -> Frames:
    data = np.genfromtxt(path, delimiter=",", names=True)
    return np.stack([np.stack([data[f"{s}_{a}_m"] for a in "xyz"], -1) for s in character.segment_names], 1), None


def _mujoco(path: Path) -> Frames:
    model = mujoco.MjModel.from_xml_path(str(path))
    data, places, turns = mujoco.MjData(model), [], []
    for key in range(model.nkey):
        mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_forward(model, data)
        places.append(data.xpos[1:].copy())
        turns.append(data.xquat[1:].copy())
    return np.array(places), np.array(turns)
