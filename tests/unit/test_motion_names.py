"""Joint names of many exporters, mapped to the body."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.joint_names import side_and_name
from mocap2ctrl.motion.names import map_joints
from mocap2ctrl.motion.source import SourceMotion


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mixamorig:LeftUpLeg", ("left", "upleg")),
        ("RightHip", ("right", "hip")),
        ("lShoulder", ("left", "shoulder")),
        ("rTorso_Clavicle", ("right", "torsoclavicle")),
        ("lowerback_torso", (None, "lowerbacktorso")),
        ("thigh_l", ("left", "thigh")),
        ("calf.R", ("right", "calf")),
        ("Bip01 L Calf", ("left", "calf")),
        ("L_Hip", ("left", "hip")),
        ("J_Bip_R_UpperLeg", ("right", "upperleg")),
        ("Character1_LeftForeArm", ("left", "forearm")),
        ("rig_upper_arm.L", ("left", "upperarm")),
        ("hand_Left", ("left", "hand")),
        ("lhand", ("left", "hand")),
        ("Neck1", (None, "neck")),
        ("LowerBack", (None, "lowerback")),
        ("RightArm", ("right", "arm")),
    ],
)
def test_sides_and_names(name: str, expected: tuple[str | None, str]):
    assert side_and_name(name) == expected


def skeleton(*edges: tuple[str, str]) -> SourceMotion:
    names = [name for name, _ in edges]
    count = len(names)
    positions = np.arange(count * 3, dtype=float).reshape(1, count, 3)
    return SourceMotion(
        name="s",
        joint_names=tuple(names),
        parents=tuple(names.index(parent) if parent else -1 for _, parent in edges),
        offsets=np.ones((count, 3)),
        is_tip=(False,) * count,
        positions=positions,
        orientations=np.tile([1.0, 0, 0, 0], (1, count, 1)),
        fps=30.0,
        format="bvh",
    )


def limb(side: str, *names: str, root: str) -> list[tuple[str, str]]:
    full = [side + name for name in names]
    return list(zip(full, [root, *full[:-1]], strict=True))


def test_shoulder_is_the_clavicle_where_there_is_an_arm_below_it():
    legs = [edge for side in ("Left", "Right") for edge in limb(side, "UpLeg", "Leg", "Foot", root="Hips")]
    arms = [e for side in ("Left", "Right") for e in limb(side, "Shoulder", "Arm", "ForeArm", "Hand", root="Spine")]
    source = skeleton(("Hips", ""), *legs, ("Spine", "Hips"), *arms)
    joints = map_joints(source, "f")
    assert source.joint_names[joints.limbs["left", "shoulder"]] == "LeftArm"
    assert source.joint_names[joints.chest] == "Spine"
    assert source.joint_names[joints.pelvis] == "Hips"
    assert joints.neck is None
    assert joints.limb("left", "toe") is None


def test_shoulder_is_the_arm_where_collars_are_named_and_foot_is_the_toe_below_an_ankle():
    legs = [edge for side in ("L_", "R_") for edge in limb(side, "Hip", "Knee", "Ankle", "Foot", root="Pelvis")]
    arms = [e for side in ("L_", "R_") for e in limb(side, "Collar", "Shoulder", "Elbow", "Wrist", root="Spine3")]
    source = skeleton(("Pelvis", ""), *legs, ("Spine3", "Pelvis"), *arms)
    joints = map_joints(source, "f")
    assert source.joint_names[joints.limbs["right", "shoulder"]] == "R_Shoulder"
    assert source.joint_names[joints.limbs["right", "toe"]] == "R_Foot"


def test_missing_joints_are_named_and_the_files_joints_listed():
    source = skeleton(("Root", ""), ("Tail", "Root"))
    with pytest.raises(
        MotionFileError, match=r"f\.bvh: no joint found for left hip, left knee, .* joints are: Root, Tail"
    ):
        map_joints(source, "f.bvh")
