"""What Blender makes of our files, where its wheel is installed (`pip install bpy`, a few hundred megabytes)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.rest_pose import rest_pose
from mocap2ctrl.character.skin import body_skin
from mocap2ctrl.evaluation.export import export_motion
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.bvh_writer import joint_name
from mocap2ctrl.types import Array, MotionClip

bpy = pytest.importorskip("bpy", reason="Blender's wheel is not installed")

pytestmark = pytest.mark.filterwarnings("default")  # Blender's importers leave files open

FPS = 30.0


@pytest.fixture(scope="module")
def clip(character: Character) -> MotionClip:
    random = np.random.default_rng(3)
    low, high = character.lower_limits, character.upper_limits
    turn = rotations.continuous(rotations.normalise(random.normal(size=(8, 4))))
    angles = low + (high - low) * random.random((8, len(low)))
    return MotionClip("random", FPS, random.normal(size=(8, 3)), turn, angles)


def in_blender(world: Array) -> Array:
    """Vectors (..., 3), x forward, y left, z up, as Blender has them: x left, -y forward, z up."""
    return np.stack([world[..., 1], -world[..., 0], world[..., 2]], axis=-1)


def places(character: Character, frames: int) -> Array:
    """(T, S, 3) world places of the imported armature's bones, by our names."""
    (armature,) = (thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    first = armature.animation_data.action.frame_range[0]
    found = []
    for frame in range(frames):
        bpy.context.scene.frame_set(round(first) + frame)
        bones = armature.pose.bones
        found.append([armature.matrix_world @ bones[joint_name(name)].head for name in character.segment_names])
    return np.array(found)


def test_bvh(clip: MotionClip, character: Character, tmp_path: Path) -> None:
    export_motion(tmp_path / "x.bvh", clip, character)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.import_anim.bvh(filepath=str(tmp_path / "x.bvh"), global_scale=0.01, update_scene_fps=True)
    scene = bpy.context.scene
    assert scene.render.fps / scene.render.fps_base == pytest.approx(FPS)
    expected = in_blender(clip_frames(character, clip)[0])
    np.testing.assert_allclose(places(character, len(clip)), expected, atol=1e-5)


def test_glb(clip: MotionClip, character: Character, tmp_path: Path) -> None:
    export_motion(tmp_path / "x.glb", clip, character)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = round(FPS)
    bpy.ops.import_scene.gltf(filepath=str(tmp_path / "x.glb"))
    positions, orientations = clip_frames(character, clip)
    np.testing.assert_allclose(places(character, len(clip)), in_blender(positions), atol=1e-5)
    bones = bpy.data.objects["humanoid"].data.bones
    for bone, child in (("LeftArm", "LeftForeArm"), ("RightUpLeg", "RightLeg"), ("Spine", "Chest")):
        np.testing.assert_allclose(bones[bone].tail_local, bones[child].head_local, atol=1e-4)
    # The scene is at the last frame: the mesh as Blender deforms it, against our own blend of the segments.
    skin, rest, expected = body_skin(character), rest_pose(character), 0.0
    for segment, weight in zip(skin.segments.T, skin.weights.T, strict=True):
        local = rotations.rotate(
            rotations.conjugate(rest.orientations[segment]), skin.vertices - rest.positions[segment]
        )
        expected += weight[:, None] * (positions[-1, segment] + rotations.rotate(orientations[-1, segment], local))
    body = bpy.data.objects["Body"].evaluated_get(bpy.context.evaluated_depsgraph_get())
    found = np.array([body.matrix_world @ vertex.co for vertex in body.data.vertices])
    np.testing.assert_allclose(found, in_blender(expected), atol=2e-5)
