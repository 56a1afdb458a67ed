"""A body of known motion, and the markers and keypoints that a capture of it would hold: for tests of C3D and TRC."""

from __future__ import annotations

from pathlib import Path

import ezc3d
import numpy as np

from mocap2ctrl.character import load_character
from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.names import map_joints
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.units import infer_scale
from mocap2ctrl.types import Array, MotionClip

FPS = 100.0
PELVIS_WIDTH_M, PELVIS_DEPTH_M = 0.24, 0.16


def walking(frames: int = 120) -> MotionClip:
    """The body glides along x, too fast for its feet ever to stand, and turns a little, all limbs moving and bent."""
    character = load_character()
    pose = character.zero_pose()
    t = np.arange(frames) / FPS
    angles = np.tile(pose.angles, (frames, 1))
    swing = np.sin(2.0 * np.pi * t)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for hinge, mean, size in (
            ("thigh.flexion", 0.1, 0.45),
            ("shank.flexion", 0.6, 0.4),
            ("foot.dorsiflexion", 0.0, 0.2),
            ("upper_arm.flexion", 0.0, -0.5),
            ("forearm.flexion", 0.8, 0.3),
        ):
            angles[:, character.hinge_names.index(f"{side}_{hinge}")] = mean + sign * size * swing
    root = pose.root_position + np.stack([3.0 * t, 0.1 * t, 0.02 * np.cos(4.0 * np.pi * t)], axis=-1)
    return MotionClip("walking", FPS, root, rotations.yaw(0.3 * t), angles)


def joints(clip: MotionClip) -> dict[str, Array]:
    """True joint centres (T, 3), metres, z up, by part."""
    character = load_character()
    positions, orientations = clip_frames(character, clip)
    at = {segment.name: positions[:, i] for i, segment in enumerate(character.segments)}
    ends = {
        s.name: positions[:, i] + rotations.rotate(orientations[:, i], s.tip) for i, s in enumerate(character.segments)
    }
    parts = {
        "hip": "thigh",
        "knee": "shank",
        "ankle": "foot",
        "shoulder": "upper_arm",
        "elbow": "forearm",
        "wrist": "hand",
    }
    found = {f"{side} {part}": at[f"{side}_{name}"] for side in ("left", "right") for part, name in parts.items()}
    found |= {f"{side} toe": ends[f"{side}_foot"] for side in ("left", "right")}
    return found | {"neck": at["head"], "head top": ends["head"]}


def markers(clip: MotionClip) -> dict[str, Array]:
    """Plug-in Gait's markers, and medial ones, on the body: places (T, 3), metres, z up."""
    character, true = load_character(), joints(clip)
    _, orientations = clip_frames(character, clip)
    frame = {segment.name: orientations[:, i] for i, segment in enumerate(character.segments)}

    def off(point: Array, segment: str, *vector: float) -> Array:
        return point + rotations.rotate(frame[segment], np.array(vector))

    marks = {}
    hips = 0.5 * (true["left hip"] + true["right hip"])
    # Harrington's regression, inverted by hand: centres are 4.83 cm behind and 8.29 cm below the middle of the front markers.
    for letter, sign in (("L", 1.0), ("R", -1.0)):
        marks[f"{letter}ASI"] = off(hips, "pelvis", 0.0483, sign * PELVIS_WIDTH_M / 2, 0.0829)
        marks[f"{letter}PSI"] = off(hips, "pelvis", 0.0483 - PELVIS_DEPTH_M, sign * 0.05, 0.0829)
        side = "left" if letter == "L" else "right"
        for part, segment, labels in (("knee", "shank", "KNE KNM"), ("ankle", "foot", "ANK MED")):
            for label, reach in zip(labels.split(), (0.05, -0.05), strict=True):
                marks[letter + label] = off(true[f"{side} {part}"], f"{side}_{segment}", 0.0, sign * reach, 0.0)
        marks[f"{letter}TOE"] = true[f"{side} toe"]
        marks[f"{letter}HEE"] = off(true[f"{side} ankle"], f"{side}_foot", -0.05, 0.0, -0.03)
        gap = np.linalg.norm(true["left shoulder"] - true["right shoulder"], axis=-1, keepdims=True)
        trunk = 0.5 * (true["left shoulder"] + true["right shoulder"]) - hips
        marks[f"{letter}SHO"] = true[f"{side} shoulder"] + 0.17 * gap * trunk / np.linalg.norm(
            trunk, axis=-1, keepdims=True
        )
        marks[f"{letter}ELB"] = off(true[f"{side} elbow"], f"{side}_forearm", 0.0, sign * 0.042, 0.0)
        marks[f"{letter}WRA"] = off(true[f"{side} wrist"], f"{side}_forearm", 0.03, 0.0, 0.0)
        marks[f"{letter}WRB"] = off(true[f"{side} wrist"], f"{side}_forearm", -0.03, 0.0, 0.0)
    marks["C7"], marks["CLAV"] = (off(true["neck"], "chest", x, 0.0, 0.0) for x in (-0.06, 0.06))
    return marks


def up_axis(source: SourceMotion) -> str:
    """The axis that is taken for up."""
    return infer_scale(source, map_joints(source, "body"), "body").up


def write_c3d(
    path: Path,
    points: dict[str, Array],
    *,
    unit: str = "mm",
    up: str = "+Z",
    processing: dict[str, float] | None = None,
) -> None:
    """A C3D by ezc3d; `points` (T, 3) in metres, NaN in gaps; what Plug-in Gait keeps of a subject as `processing`."""
    factor = {"mm": 1000.0, "m": 1.0}[unit]
    file = ezc3d.c3d()
    file["parameters"]["POINT"]["RATE"]["value"] = [FPS]
    file["parameters"]["POINT"]["LABELS"]["value"] = list(points)
    file["parameters"]["POINT"]["UNITS"]["value"] = [unit]
    file.add_parameter("POINT", "Y_SCREEN", [up])
    for name, value in (processing or {}).items():
        file.add_parameter("PROCESSING", name, [value])
    places = factor * np.stack(list(points.values())).transpose(2, 0, 1)  # 3, N, T
    file["data"]["points"] = np.concatenate([places, np.ones((1, *places.shape[1:]))])
    file.write(str(path))


def trc_text(points: dict[str, Array], *, unit: str = "m", fps: float = FPS) -> str:
    """A TRC as Pose2Sim writes it; `points` (T, 3) in that unit, empty cells in gaps."""
    frames = len(next(iter(points.values())))
    head = [
        "PathFileType\t4\t(X/Y/Z)\tbody.trc",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{fps:g}\t{fps:g}\t{frames}\t{len(points)}\t{unit}\t{fps:g}\t0\t{frames}",
        "Frame#\tTime\t" + "\t\t\t".join(points) + "\t\t",
        "\t\t" + "\t".join(f"{axis}{i + 1}" for i in range(len(points)) for axis in "XYZ"),
    ]
    rows = np.stack(list(points.values()), axis=1).reshape(frames, -1)
    body = [
        f"{i + 1}\t{i / fps:.6f}\t" + "\t".join("" if np.isnan(x) else f"{x:.7f}" for x in row)
        for i, row in enumerate(rows)
    ]
    return "\n".join([*head, *body]) + "\n"
