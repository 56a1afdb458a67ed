"""Joints found by the names of many programs, by the skeleton's shape, and by a map that a user gives."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bvh_dialects import PARTS_OF_BODY, Dialect, all_axes
from scipy.spatial.transform import Rotation

from mocap2ctrl.errors import JointsError, MotionFileError
from mocap2ctrl.motion.bvh import parse_bvh, read_bvh
from mocap2ctrl.motion.calibration import calibration_frames
from mocap2ctrl.motion.joint_map import chosen_joints, joint_map_text, read_joint_map
from mocap2ctrl.motion.joint_names import side_and_name
from mocap2ctrl.motion.names import map_joints, named_joints
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
        ("Skeleton_001_LUArm", ("left", "uarm")),
        ("Bip001 R Toe0", ("right", "toe")),
        ("ValveBiped.Bip01_R_Forearm", ("right", "forearm")),
        ("LHipJoint", ("left", "hipjoint")),
        ("m_avg_L_Hip", ("left", "hip")),
        ("mHipLeft", ("left", "hip")),
        ("SHOULDER_RIGHT", ("right", "shoulder")),
        ("Robot_RightUpLeg", ("right", "upleg")),
        ("lfemur", ("left", "femur")),
        ("ik_foot_l", ("left", "ikfoot")),
        ("upperarm_twist_01_l", ("left", "upperarmtwist")),
        ("L5", (None, "l")),
        ("lowerback", (None, "lowerback")),
        ("Root", (None, "root")),
        ("", (None, "")),
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


# Sides as {L}eft, {l}eft, upper case {U}, or a letter: {S}, {s}. Clavicle, upper arm, forearm, hand / thigh, shank, foot, toes.
SCHEMES: dict[str, tuple[str, str]] = {
    "Mixamo": ("Hips Spine Neck Head", "{L}Shoulder {L}Arm {L}ForeArm {L}Hand / {L}UpLeg {L}Leg {L}Foot {L}ToeBase"),
    "Mixamo, prefixed": (
        "mixamorig:Hips mixamorig:Spine mixamorig:Neck mixamorig:Head",
        "mixamorig:{L}Shoulder mixamorig:{L}Arm mixamorig:{L}ForeArm mixamorig:{L}Hand"
        " / mixamorig:{L}UpLeg mixamorig:{L}Leg mixamorig:{L}Foot mixamorig:{L}ToeBase",
    ),
    "CMU, cgspeed": ("hip abdomen neck head", "{s}Collar {s}Shldr {s}ForeArm {s}Hand / {s}Thigh {s}Shin {s}Foot {s}Toe"),
    "CMU, ASF": ("root lowerback upperneck head", "{s}clavicle {s}humerus {s}radius {s}wrist / {s}femur {s}tibia {s}foot {s}toes"),
    "CMU, MotionBuilder": (
        "Hips LowerBack Neck1 Head",
        "{L}Shoulder {L}Arm {L}ForeArm {L}Hand / {S}HipJoint>{L}UpLeg {L}Leg {L}Foot {L}ToeBase",
    ),
    "Rokoko": ("Hips Spine Neck Head", "{L}Shoulder {L}Arm {L}ForeArm {L}Hand / {L}Thigh {L}Shin {L}Foot {L}Toe"),
    "Xsens, 100STYLE": ("Hips Chest Neck Head", "{L}Collar {L}Shoulder {L}Elbow {L}Wrist / {L}Hip {L}Knee {L}Ankle {L}Toe"),
    "Xsens, MVN": ("Pelvis L5 Neck Head", "{L}Shoulder {L}UpperArm {L}ForeArm {L}Hand / {L}UpperLeg {L}LowerLeg {L}Foot {L}Toe"),
    "Vicon": ("Solving:Hips Solving:Spine Solving:Neck Solving:Head",
              "Solving:{L}Shoulder Solving:{L}Arm Solving:{L}ForeArm Solving:{L}Hand"
              " / Solving:{L}UpLeg Solving:{L}Leg Solving:{L}Foot Solving:{L}ToeBase"),
    "OptiTrack": ("Skeleton_001_Hip Skeleton_001_Ab Skeleton_001_Neck Skeleton_001_Head",
                  "Skeleton_001_{S}Shoulder Skeleton_001_{S}UArm Skeleton_001_{S}FArm Skeleton_001_{S}Hand"
                  " / Skeleton_001_{S}Thigh Skeleton_001_{S}Shin Skeleton_001_{S}Foot Skeleton_001_{S}Toe"),
    "Unreal": ("pelvis spine_01 neck_01 head",
               "clavicle_{s} upperarm_{s} lowerarm_{s} hand_{s} / thigh_{s} calf_{s} foot_{s} ball_{s}"),
    "Biped": ("Bip01_Pelvis Bip01_Spine Bip01_Neck Bip01_Head",
              "Bip01_{S}_Clavicle Bip01_{S}_UpperArm Bip01_{S}_Forearm Bip01_{S}_Hand"
              " / Bip01_{S}_Thigh Bip01_{S}_Calf Bip01_{S}_Foot Bip01_{S}_Toe0"),
    "Rigify": ("hips spine neck head", "shoulder.{S} upper_arm.{S} forearm.{S} hand.{S} / thigh.{S} shin.{S} foot.{S} toe.{S}"),
    "Rigify, twisted": ("DEF-spine DEF-spine.001 DEF-neck DEF-head",
                        "DEF-shoulder.{S} DEF-upper_arm.{S} DEF-forearm.{S} DEF-hand.{S}"
                        " / DEF-thigh.{S} DEF-shin.{S} DEF-foot.{S} DEF-toe.{S}"),
    "VRoid": ("J_Bip_C_Hips J_Bip_C_Spine J_Bip_C_Neck J_Bip_C_Head",
              "J_Bip_{S}_Shoulder J_Bip_{S}_UpperArm J_Bip_{S}_LowerArm J_Bip_{S}_Hand"
              " / J_Bip_{S}_UpperLeg J_Bip_{S}_LowerLeg J_Bip_{S}_Foot J_Bip_{S}_ToeBase"),
    "VRM": ("hips spine neck head", "{l}Shoulder {l}UpperArm {l}LowerArm {l}Hand / {l}UpperLeg {l}LowerLeg {l}Foot {l}Toes"),
    "Perception Neuron": ("Robot_Hips Robot_Spine Robot_Neck Robot_Head",
                          "Robot_{L}Shoulder Robot_{L}Arm Robot_{L}ForeArm Robot_{L}Hand"
                          " / Robot_{L}UpLeg Robot_{L}Leg Robot_{L}Foot Robot_{L}ToeBase"),
    "Kinect": ("SpineBase SpineMid Neck Head", "Clavicle{L} Shoulder{L} Elbow{L} Wrist{L} / Hip{L} Knee{L} Ankle{L} Foot{L}"),
    "Azure Kinect": ("PELVIS SPINE_CHEST NECK HEAD",
                     "CLAVICLE_{U} SHOULDER_{U} ELBOW_{U} WRIST_{U} / HIP_{U} KNEE_{U} ANKLE_{U} FOOT_{U}"),
    "SMPL": ("Pelvis Spine1 Neck Head", "{S}_Collar {S}_Shoulder {S}_Elbow {S}_Wrist / {S}_Hip {S}_Knee {S}_Ankle {S}_Foot"),
    "SMPL-X": ("pelvis spine1 neck head", "{l}_collar {l}_shoulder {l}_elbow {l}_wrist / {l}_hip {l}_knee {l}_ankle {l}_foot"),
    "MotionBuilder": ("Character1_Hips Character1_Spine Character1_Neck Character1_Head",
                      "Character1_{L}Shoulder Character1_{L}Arm Character1_{L}ForeArm Character1_{L}Hand"
                      " / Character1_{L}UpLeg Character1_{L}Leg Character1_{L}Foot Character1_{L}ToeBase"),
    "DAZ Genesis": ("hip abdomenLower neckLower head",
                    "{s}Collar {s}ShldrBend {s}ForearmBend {s}Hand / {s}ThighBend {s}Shin {s}Foot {s}Metatarsals"),
    "DAZ Genesis 9": ("hip spine1 neck1 head",
                      "{s}_shoulder {s}_upperarm {s}_forearm {s}_hand / {s}_thigh {s}_shin {s}_foot {s}_metatarsal"),
    "Character Creator": ("CC_Base_Hip CC_Base_Spine01 CC_Base_NeckTwist01 CC_Base_Head",
                          "CC_Base_{S}_Clavicle CC_Base_{S}_Upperarm CC_Base_{S}_Forearm CC_Base_{S}_Hand"
                          " / CC_Base_{S}_Thigh CC_Base_{S}_Calf CC_Base_{S}_Foot CC_Base_{S}_ToeBase"),
    "Second Life": ("mPelvis mTorso mNeck mHead",
                    "mCollar{L} mShoulder{L} mElbow{L} mWrist{L} / mHip{L} mKnee{L} mAnkle{L} mToe{L}"),
    "Advanced Skeleton": ("Root_M Spine1_M Neck_M Head_M",
                          "Scapula_{S} Shoulder_{S} Elbow_{S} Wrist_{S} / Hip_{S} Knee_{S} Ankle_{S} Toes_{S}"),
    "DeepMotion": ("hips_JNT spine_JNT neck_JNT head_JNT",
                   "{s}_shoulder_JNT {s}_arm_JNT {s}_forearm_JNT {s}_hand_JNT"
                   " / {s}_upleg_JNT {s}_leg_JNT {s}_foot_JNT {s}_toebase_JNT"),
    "Bandai Namco": ("Hips Spine Neck Head",
                     "Shoulder_{S} UpperArm_{S} LowerArm_{S} Hand_{S} / UpperLeg_{S} LowerLeg_{S} Foot_{S} Toes_{S}"),
    "MakeHuman": ("root spine05 neck01 head",
                  "clavicle.{S} upperarm01.{S} lowerarm01.{S} wrist.{S} / upperleg01.{S} lowerleg01.{S} foot.{S} toe1-1.{S}"),
    "Trinity, GENEA": ("b_root b_spine0 b_neck0 b_head",
                       "b_{s}_shoulder b_{s}_arm b_{s}_forearm b_{s}_wrist / b_{s}_upleg b_{s}_leg b_{s}_foot b_{s}_toe"),
    "OpenSim": ("pelvis torso neck head", "clavicle_{s} humerus_{s} ulna_{s} hand_{s} / femur_{s} tibia_{s} talus_{s} toes_{s}"),
    "Theia": ("pelvis torso neck head", "{s}_clav {s}_uarm {s}_larm {s}_hand / {s}_thigh {s}_shank {s}_foot {s}_toes"),
}  # fmt: skip


def scheme_skeleton(scheme: str) -> tuple[SourceMotion, dict[str, str]]:
    """A skeleton with a scheme's names, fingers and twists beside it; and which joint is which part."""
    trunk, limbs = SCHEMES[scheme]
    pelvis, spine, neck, head = trunk.split()
    edges = [(pelvis, ""), (spine, pelvis), (neck, spine), (head, neck)]
    parts = {"pelvis": pelvis, "chest": spine, "neck": neck, "head": head}
    for side in ("right", "left"):
        words = {"L": side.title(), "l": side, "U": side.upper(), "S": side[0].upper(), "s": side[0]}
        arm, leg = (half.format(**words).split() for half in limbs.split(" / "))
        arm_parts, leg_parts = ("", "shoulder", "elbow", "wrist"), ("hip", "knee", "ankle", "toe")
        for chain, root, names in ((arm, spine, arm_parts), (leg, pelvis, leg_parts)):
            above = root
            for joint, part in zip(chain, names, strict=True):
                *links, last = joint.split(">")
                for link in (*links, last):
                    edges.append((link, above))
                    above = link
                if part:
                    parts[f"{side} {part}"] = last
        edges += [(f"{side}HandIndex1", arm[-1]), (f"{side}_thumb", arm[-1]), (f"{side[0]}Eye", head)]
        edges.append((f"ik_foot_{side[0]}", pelvis))
        edges.append((f"forearm_twist_01_{side[0]}", arm[-2]))
    return skeleton(*edges), parts


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_program_s_names_are_known(scheme: str):
    source, parts = scheme_skeleton(scheme)
    joints = map_joints(source, "f")
    assert named_joints(source, joints) == parts
    assert set(joints.how.values()) == {"name"}
    assert joints.warnings == ()


def test_a_thigh_of_two_bones_begins_at_the_upper_one():
    legs = [
        e
        for s in ("L", "R")
        for e in (
            (f"thigh.{s}", "hips"),
            (f"thigh.{s}.001", f"thigh.{s}"),
            (f"shin.{s}", f"thigh.{s}.001"),
            (f"foot.{s}", f"shin.{s}"),
        )
    ]
    arms = [e for s in ("L", "R") for e in ((f"upper_arm.{s}", "hips"), (f"forearm.{s}", f"upper_arm.{s}"))]
    source = skeleton(("hips", ""), *legs, *arms)
    joints = map_joints(source, "f")
    assert source.joint_names[joints.limbs["left", "hip"]] == "thigh.L"
    assert source.joint_names[joints.limbs["left", "knee"]] == "shin.L"


def test_of_joints_of_one_name_the_one_that_carries_the_limb_is_taken():
    """A rig's helper comes first, and holds nothing."""
    legs = [
        e
        for s in ("L", "R")
        for e in (
            (f"thigh.{s}", "hips"),
            (f"ORG-thigh.{s}", "hips"),
            (f"shin.{s}", f"ORG-thigh.{s}"),
            (f"foot.{s}", f"shin.{s}"),
        )
    ]
    arms = [e for s in ("L", "R") for e in ((f"upper_arm.{s}", "hips"), (f"forearm.{s}", f"upper_arm.{s}"))]
    source = skeleton(("hips", ""), *legs, *arms)
    joints = map_joints(source, "f")
    leg = [source.joint_names[joints.limbs["left", part]] for part in ("hip", "knee", "ankle")]
    assert leg == ["ORG-thigh.L", "shin.L", "foot.L"]


def test_missing_joints_are_named_and_the_files_joints_listed():
    source = skeleton(("Root", ""), ("Tail", "Root"))
    with pytest.raises(
        JointsError, match=r"f\.bvh: no joint found for left hip, left knee, .* joints are: Root, Tail; .* --joint-map"
    ) as caught:
        map_joints(source, "f.bvh")
    assert caught.value.found == {}


# By shape.


def numbered(source: SourceMotion) -> SourceMotion:
    """The same motion with names that say nothing."""
    names = tuple(f"joint{i}{':tip' if tip else ''}" for i, tip in enumerate(source.is_tip))
    return replace(source, joint_names=names)


def found_by_shape(source: SourceMotion) -> dict[str, str]:
    """The true names of the joints that are found when the names say nothing."""
    anonymous = numbered(source)
    joints = map_joints(anonymous, "f")
    assert set(joints.how.values()) == {"shape"}
    found = named_joints(anonymous, joints)
    return {part: source.joint_names[anonymous.joint_names.index(name)] for part, name in found.items()}


def parse(dialect: Dialect) -> SourceMotion:
    return parse_bvh(dialect.write(), "f.bvh", "f")


@pytest.mark.parametrize(
    "turn", [Rotation.identity(), Rotation.from_rotvec([0.3, 2.0, 0.4]), Rotation.from_euler("x", 180, True)]
)
def test_a_body_is_found_by_its_shape_whichever_way_it_faces(turn: Rotation):
    assert found_by_shape(parse(Dialect(turn=turn, channels=all_axes))) == PARTS_OF_BODY


def test_a_mirrored_body_s_sides_follow_its_feet():
    """The order of left and right in the file says nothing."""
    source = parse(Dialect())
    mirror = np.array([-1.0, 1.0, 1.0])
    mirrored = replace(source, positions=source.positions * mirror, offsets=source.offsets * mirror)
    other = {"left": "right", "right": "left"}
    exchanged = {part: re.sub("left|right", lambda m: other[m[0]], name) for part, name in PARTS_OF_BODY.items()}
    assert found_by_shape(mirrored) == exchanged


def without(source: SourceMotion, ends: tuple[str, ...]) -> SourceMotion:
    """The motion without joints, sides and tips included, that nothing else hangs from."""
    keep = [i for i, name in enumerate(source.joint_names) if not name.removesuffix(":tip").endswith(ends)]
    return replace(
        source,
        joint_names=tuple(source.joint_names[i] for i in keep),
        parents=tuple(keep.index(source.parents[i]) if source.parents[i] >= 0 else -1 for i in keep),
        is_tip=tuple(source.is_tip[i] for i in keep),
        offsets=source.offsets[keep],
        positions=source.positions[:, keep],
        orientations=source.orientations[:, keep],
    )


@pytest.mark.parametrize("ends", [("toe",), ("hand",), ("neck", "head"), ("toe", "hand", "neck", "head")])
def test_a_body_is_found_without_its_ends(ends: tuple[str, ...]):
    """Without toes it is knees and travel that tell left from right."""
    expected = {part: name for part, name in PARTS_OF_BODY.items() if not name.endswith(ends)}
    assert found_by_shape(without(parse(Dialect()), ends)) == expected


def test_sides_in_names_are_believed_where_parts_are_foreign():
    source = parse(Dialect())
    names = tuple(f"{name.split()[0]} x{i}" if " " in name else f"x{i}" for i, name in enumerate(source.joint_names))
    foreign = replace(source, joint_names=names, positions=source.positions * np.array([-1.0, 1.0, 1.0]))
    joints = map_joints(foreign, "f")
    assert foreign.joint_names[joints.limbs["left", "knee"]].startswith("left")
    assert "found by the skeleton's shape; check it with inspect" in joints.warnings[0]


DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "bvh"
REAL_FILES = sorted(path.name for path in DATA.glob("*.bvh") if not path.name.startswith("fixture"))


@pytest.mark.skipif(not REAL_FILES, reason="the test data folder ../shared/data/bvh is absent")
@pytest.mark.parametrize("name", REAL_FILES)
def test_shape_alone_finds_what_names_tell_in_real_files(name: str):
    source = read_bvh(DATA / name)
    source = source.cut(calibration_frames(source, map_joints(source, "f")))
    assert found_by_shape(source) == named_joints(source, map_joints(source, "f"))


# By a map.


def write_map(folder: Path, text: str) -> Path:
    (folder / "joint-map.toml").write_text(text, "utf-8")
    return folder / "joint-map.toml"


def mapped(source: SourceMotion, path: Path):
    return map_joints(source, "f.bvh", chosen_joints(source, read_joint_map(path), str(path)))


def test_a_written_map_is_read_back_as_it_is(tmp_path: Path):
    source = parse(Dialect(names={"hips": 'Hips "main"', "left shin": "Łydka\tL"}))
    found = named_joints(source, map_joints(source, "f"))
    path = write_map(tmp_path, joint_map_text(source, found, "walk.bvh"))
    assert read_joint_map(path) == found
    assert set(mapped(source, path).how.values()) == {"map"}
    text = path.read_text("utf-8")
    assert "Which joint of walk.bvh" in text
    assert "#         left foot\n" in text


def test_a_map_overrules_names_and_shape_and_may_be_partial(tmp_path: Path):
    source = parse(Dialect())
    path = write_map(tmp_path, 'left_toe = ""\nneck = "head"\nchest = "SPINE"\n')
    joints = mapped(source, path)
    assert joints.limb("left", "toe") is None
    assert joints.limb("right", "toe") is not None
    assert source.joint_names[joints.chest] == "spine"
    assert (joints.neck, joints.how["neck"], joints.how["left knee"]) == (joints.head, "map", "name")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('left_knee = "left shim"', r"left_knee = 'left shim', but the motion has no such joint; near are 'left shin'"),
        ('left_kne = "left shin"', r"unknown part 'left_kne'; near are 'left_knee'"),
        ('x = "y"', r"unknown part 'x'; there are 'pelvis', 'chest'"),
        ("left_knee = 3", "left_knee = 3; a joint's name in quotes is needed"),
        ('left_knee = "left shin', r"not a joint map \(.*\)"),
        ('left_hip = "left shin"\nleft_knee = "left shin"', "'left shin' is given for left_hip and for left_knee"),
        ('left_hip = "left foot"', "left_knee = 'left shin' .* is not below left_hip = 'left foot'|no joint found for left knee"),
        ('left_knee = ""', "no joint found for left knee"),
        ('left_ankle = "right foot"', r"left_ankle = 'right foot' \(map\) is not below left_knee"),
        ("\ufffe", "not a joint map"),
    ],
)  # fmt: skip
def test_wrong_maps_are_refused_in_one_line(tmp_path: Path, text: str, says: str):
    path = write_map(tmp_path, text)
    with pytest.raises(MotionFileError, match=says) as caught:
        mapped(parse(Dialect()), path)
    assert "\n" not in str(caught.value)


def test_a_map_that_cannot_be_read_is_refused(tmp_path: Path):
    with pytest.raises(MotionFileError, match=r"none\.toml: cannot be read as a joint map"):
        read_joint_map(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MotionFileError, match=r"bytes\.toml: not a joint map"):
        read_joint_map(tmp_path / "bytes.toml")
