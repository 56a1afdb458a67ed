"""Writes a clip as binary glTF: a skinned body in T-pose and one animation, y up, z forward, x left, metres.

Joints are the segments, called as in BVH files; a joint's y axis points along its bone, which is how Blender draws bones. The
animation begins at time 0, for players hold the first pose until it; `extras` say when the motion begins in its source, whether it
is a loop, and where it comes from.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mocap2ctrl
from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.rest_pose import rest_pose
from mocap2ctrl.character.skin import body_skin
from mocap2ctrl.files import write_bytes
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.bvh_writer import FILE_ORDER, joint_name
from mocap2ctrl.motion.gltf import INDICES, VERTICES, Buffer
from mocap2ctrl.types import Array, MotionClip

COLOUR = (0.62, 0.60, 0.56, 1.0)
"""Of the body: plaster. Linear red, green and blue, and opacity."""

_QUATERNION_ORDER = (*(1 + axis for axis in FILE_ORDER), 0)
"""World wxyz to the file's xyzw."""


def write_glb(path: Path | str, clip: MotionClip, character: Character) -> None:
    """Write `clip` to a GLB file, under a temporary name first, so that a reader never sees half a file."""
    buffer = Buffer()
    nodes = _joints(character)
    root = [{"name": "Body", "mesh": 0, "skin": 0}]
    document = {
        "asset": {
            "version": "2.0",
            "generator": f"mocap2ctrl {mocap2ctrl.__version__}",
            "extras": _about(clip, character),
        },
        "scene": 0,
        "scenes": [{"name": clip.name, "nodes": [0, len(nodes)]}],
        "nodes": [*nodes, *root],
        "meshes": [_mesh(buffer, character)],
        "materials": [_material()],
        "skins": [_skin(buffer, character)],
        "animations": [_animation(buffer, clip, character)],
    }
    write_bytes(path, buffer.glb(document))


def _about(clip: MotionClip, character: Character) -> dict[str, Any]:
    provenance = json.loads(json.dumps(dict(clip.provenance)), parse_constant=lambda word: None)  # NaN is no JSON
    return {
        "character": character.name,
        "height_m": character.height_m,
        "mass_kg": character.mass_kg,
        "rest_pose": "T-pose",
        "provenance": provenance,
    }


def _joints(character: Character) -> list[dict[str, Any]]:
    """A node a segment, in the character's order, in T-pose."""
    local, turns = _local(character, rest_pose(character).orientations), _bone_turns(character)
    nodes = []
    for index, segment in enumerate(character.segments):
        offset = (
            rotations.rotate(rotations.conjugate(turns[segment.parent]), segment.offset) if index else segment.offset
        )
        node: dict[str, Any] = {
            "name": joint_name(segment.name),
            "translation": _vectors(offset).tolist(),
            "rotation": _quaternions(local[index]).tolist(),
            "extras": {"segment": segment.name},
        }
        children = [i for i, other in enumerate(character.segments) if other.parent == index]
        nodes.append({**node, "children": children} if children else node)
    return nodes


def _mesh(buffer: Buffer, character: Character) -> dict[str, Any]:
    skin = body_skin(character)
    attributes = {
        "POSITION": buffer.add(_vectors(skin.vertices), target=VERTICES, bounds=True),
        "NORMAL": buffer.add(_vectors(skin.normals), target=VERTICES),
        "JOINTS_0": buffer.add(skin.segments.astype(np.uint16), target=VERTICES),
        "WEIGHTS_0": buffer.add(skin.weights.astype(np.float32), target=VERTICES),
    }
    indices = buffer.add(skin.triangles.astype(np.uint32).reshape(-1), target=INDICES)
    return {"name": "Body", "primitives": [{"attributes": attributes, "indices": indices, "material": 0}]}


def _material() -> dict[str, Any]:
    surface = {"baseColorFactor": list(COLOUR), "metallicFactor": 0.0, "roughnessFactor": 0.8}
    return {"name": "Body", "pbrMetallicRoughness": surface}


def _skin(buffer: Buffer, character: Character) -> dict[str, Any]:
    """The joints with the inverse of each one's place in the T-pose."""
    rest = rest_pose(character)
    inverse = np.tile(np.eye(4, dtype=np.float32), (len(rest.positions), 1, 1))
    axes = np.array(FILE_ORDER)
    joints = rotations.multiply(rest.orientations, _bone_turns(character))
    turns = rotations.to_matrix(rotations.conjugate(joints))[:, axes][:, :, axes]
    inverse[:, :3, :3] = turns
    inverse[:, :3, 3] = -np.einsum("sij,sj->si", turns, rest.positions[:, axes])
    matrices = buffer.add(np.swapaxes(inverse, 1, 2))  # glTF: column by column
    return {
        "name": character.name,
        "skeleton": 0,
        "joints": list(range(len(rest.positions))),
        "inverseBindMatrices": matrices,
    }


def _animation(buffer: Buffer, clip: MotionClip, character: Character) -> dict[str, Any]:
    """The root's translation and every joint's rotation at each frame, linear between them."""
    positions, orientations = clip_frames(character, clip)
    local = _local(character, orientations)
    times = buffer.add((np.arange(len(clip)) / clip.fps).astype(np.float32), bounds=True)
    outputs = [(0, "translation", _vectors(positions[:, 0]))]
    outputs += [
        (joint, "rotation", _quaternions(rotations.continuous(local[:, joint]))) for joint in range(local.shape[1])
    ]
    samplers = [{"input": times, "output": buffer.add(values), "interpolation": "LINEAR"} for _, _, values in outputs]
    channels = [
        {"sampler": number, "target": {"node": joint, "path": path}} for number, (joint, path, _) in enumerate(outputs)
    ]
    told = {"fps": clip.fps, "frames": len(clip), "start_s": clip.start_s, "loop": clip.loop}
    return {"name": clip.name, "samplers": samplers, "channels": channels, "extras": told}


def _bone_turns(character: Character) -> Array:
    """(S, 4) from each segment's frame to its joint's: turned in the sagittal plane, or out of it, until up is along the bone."""
    frames = []
    for segment in character.segments:
        length = np.linalg.norm(segment.tip)
        up = segment.tip / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
        left = np.array([0.0, 1.0, 0.0]) if abs(up[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
        forward = np.cross(left, up)
        forward /= np.linalg.norm(forward)
        frames.append(np.stack([forward, np.cross(up, forward), up], axis=-1))
    return rotations.from_matrix(np.array(frames))


def _local(character: Character, orientations: Array) -> Array:
    """The joints' rotations (..., S, 4) in their parents, from the segments' world orientations (..., S, 4)."""
    parents = [segment.parent for segment in character.segments[1:]]
    orientations = rotations.multiply(orientations, _bone_turns(character))
    local = rotations.multiply(rotations.conjugate(orientations[..., parents, :]), orientations[..., 1:, :])
    return np.concatenate([orientations[..., :1, :], local], axis=-2)


def _vectors(world: Array) -> npt.NDArray[np.float32]:
    """Vectors (..., 3) in the file's axes."""
    return np.asarray(world[..., FILE_ORDER], np.float32)


def _quaternions(world: Array) -> npt.NDArray[np.float32]:
    """Quaternions (..., 4) in the file's axes and order."""
    return np.asarray(rotations.normalise(world)[..., _QUATERNION_ORDER], np.float32)
