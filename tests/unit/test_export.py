"""Motion files for other programs: written, read back by others' readers, and compared with our kinematics."""

from __future__ import annotations

import copy
import csv
import json
import re
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character, parse_character
from mocap2ctrl.character.rest_pose import rest_pose
from mocap2ctrl.character.skin import body_skin
from mocap2ctrl.errors import CaptureError, ConfigError, Mocap2CtrlError, MotionFileError
from mocap2ctrl.evaluation.convert import convert
from mocap2ctrl.evaluation.export import WRITERS, check_outputs, export_motion
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.bvh import read_bvh
from mocap2ctrl.motion.bvh_writer import joint_name
from mocap2ctrl.motion.clips import velocities
from mocap2ctrl.motion.npz import read_body, read_motion, write_motion
from mocap2ctrl.motion.source import rest_positions
from mocap2ctrl.types import Array, MotionClip

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from benchmarks.glb_reader import GlbReader

FPS = 30000 / 1001
SMALL_M, SMALL_RAD = 2e-6, np.radians(1e-3)
"""What files may lose; the limits are 0.1 mm and 0.1 degrees."""


def motion_of(character: Character, frames: int = 12, **changes: Any) -> MotionClip:
    """Poses at random within the hinges' limits, the root anywhere."""
    random = np.random.default_rng(7)
    low, high = character.lower_limits, character.upper_limits
    clip = MotionClip(
        name="random",
        fps=FPS,
        root_position=random.normal(size=(frames, 3)),
        root_orientation=rotations.continuous(rotations.normalise(random.normal(size=(frames, 4)))),
        angles=low + (high - low) * random.random((frames, len(low))),
        provenance={"file": "x.bvh", "energy": float("nan")},
        start_s=3.25,
    )
    return replace(clip, **changes)


def oblique(character: Character) -> Character:
    """The character with shoulder and knee axes that are no coordinate axes."""
    description = copy.deepcopy(dict(character.description))
    for entry in description["segment"]:
        if entry["name"] in ("left_upper_arm", "right_shank"):
            entry["hinges"][0]["axis"] = [0.6, 0.0, 0.8]
    return parse_character(description, "oblique")


def in_file_axes(world: Array) -> Array:
    """Vectors (..., 3), x forward, y left, z up, as x left, y up, z forward."""
    return np.stack([world[..., 1], world[..., 2], world[..., 0]], axis=-1)


def angle_between(a: Array, b: Array) -> float:
    """The greatest angle between quaternions (..., 4), radians."""
    return float(
        np.linalg.norm(rotations.to_rotation_vector(rotations.multiply(a, rotations.conjugate(b))), axis=-1).max()
    )


@pytest.fixture(scope="module")
def clip(character: Character) -> MotionClip:
    return motion_of(character)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, clip: MotionClip, character: Character) -> Path:
    """A folder with the motion in every format, `x.<suffix>`."""
    folder = tmp_path_factory.mktemp("files")
    for suffix in WRITERS:
        export_motion(folder / f"x{suffix}", clip, character)
    return folder


class TestBvh:
    @pytest.mark.parametrize("change", [lambda character: character, oblique], ids=["humanoid", "oblique hinges"])
    def test_our_reader_gets_places_and_orientations_back(
        self, character: Character, tmp_path: Path, change: Any
    ) -> None:
        body = change(character)
        clip = motion_of(body)
        export_motion(tmp_path / "x.bvh", clip, body)
        source = read_bvh(tmp_path / "x.bvh")
        order = [source.joint_names.index(joint_name(name)) for name in body.segment_names]
        positions, orientations = clip_frames(body, clip)
        np.testing.assert_allclose(0.01 * source.positions[:, order], in_file_axes(positions), atol=SMALL_M)
        from_rest = rotations.multiply(orientations, rotations.conjugate(rest_pose(body).orientations))
        in_file = np.concatenate([from_rest[..., :1], in_file_axes(from_rest[..., 1:])], axis=-1)
        assert angle_between(source.orientations[:, order], in_file) < SMALL_RAD

    def test_pybvh_and_bvhio_get_the_places_back(self, files: Path, clip: MotionClip, character: Character) -> None:
        pybvh, bvhio = pytest.importorskip("pybvh"), pytest.importorskip("bvhio")
        expected = in_file_axes(clip_frames(character, clip)[0])
        names = [joint_name(name) for name in character.segment_names]
        other = pybvh.read_bvh_file(files / "x.bvh", world_up="+y")
        order = [other.node_index[name] for name in names]
        np.testing.assert_allclose(0.01 * other.node_positions()[:, order], expected, atol=SMALL_M)
        root = bvhio.readAsHierarchy(str(files / "x.bvh"))
        for frame in range(len(clip)):
            root.loadPose(frame)
            places = {joint.Name: np.array(joint.PositionWorld) for joint, _, _ in root.layout()}
            # bvhio computes in single precision
            np.testing.assert_allclose(0.01 * np.array([places[name] for name in names]), expected[frame], atol=2e-5)

    def test_it_rests_in_t_pose(self, files: Path, character: Character) -> None:
        source = read_bvh(files / "x.bvh")
        rest = dict(zip(source.joint_names, rest_positions(source), strict=True))
        for side, sign in (("Left", 1.0), ("Right", -1.0)):
            arm = rest[f"{side}Hand"] - rest[f"{side}Arm"]
            assert arm == pytest.approx([sign * np.linalg.norm(arm), 0.0, 0.0], abs=1e-9)
            leg = rest[f"{side}Foot"] - rest[f"{side}UpLeg"]
            assert leg == pytest.approx([0.0, -np.linalg.norm(leg), 0.0], abs=1e-9)

    @pytest.mark.parametrize("fps", [FPS, 60000 / 1001, 120.0, 25.0, 7.3, 240.0])
    def test_its_rate_is_read_back(self, character: Character, tmp_path: Path, fps: float) -> None:
        export_motion(tmp_path / "x.bvh", motion_of(character, 2, fps=fps), character)
        seconds = float((tmp_path / "x.bvh").read_text().split("Frame Time:")[1].split()[0])
        assert 1.0 / seconds == pytest.approx(fps, rel=1e-9)

    @pytest.mark.parametrize("axis", np.eye(3), ids=["sideways", "somersault", "spin"])
    def test_whoever_turns_over_has_no_jumps_in_the_root_s_angles(
        self, character: Character, tmp_path: Path, axis: Array
    ) -> None:
        """Two turns about an axis, through both places where the angles are not unique."""
        frames = 144
        turn = rotations.about_axis(axis, np.linspace(0.1, 4.0 * np.pi, frames))
        export_motion(tmp_path / "x.bvh", motion_of(character, frames, root_orientation=turn), character)
        rows = (tmp_path / "x.bvh").read_text().split("Frame Time:")[1].splitlines()[1:]
        angles = np.array([row.split()[3:6] for row in rows], float)
        assert np.abs(np.diff(angles, axis=0)).max() < 6.0
        assert np.abs(angles[-1] - angles[0]).max() > 700.0


class TestSkin:
    def test_it_is_a_closed_surface_around_the_body(self, character: Character) -> None:
        trimesh = pytest.importorskip("trimesh")
        skin = body_skin(character)
        mesh = trimesh.Trimesh(skin.vertices, skin.triangles, process=False)
        assert mesh.is_watertight
        assert mesh.is_winding_consistent
        assert (mesh.body_count, mesh.euler_number) == (1, 2)  # no holes
        assert mesh.volume == pytest.approx(character.mass_kg / 1000.0, rel=0.2)
        assert np.sum(mesh.vertex_normals * skin.normals, axis=1).mean() > 0.98
        assert mesh.bounds[:, 2] == pytest.approx([0.0, character.height_m], abs=0.03)

    def test_each_side_has_its_own_weights_and_they_mirror(self, character: Character) -> None:
        skin = body_skin(character)
        assert skin.weights.sum(axis=1) == pytest.approx(1.0)
        share = np.zeros((len(skin.weights), len(character.segments)))
        np.put_along_axis(share, skin.segments, skin.weights, axis=1)
        left, right = (character.segment_index(f"{side}_thigh") for side in ("left", "right"))
        inner = (np.abs(skin.vertices[:, 1]) < 0.03) & (skin.vertices[:, 2] < 0.75)
        assert inner.sum() > 20
        assert np.all(np.minimum(share[:, left], share[:, right])[inner] < 1e-9)

    def test_it_grows_with_the_body(self, character: Character) -> None:
        small = body_skin(character.scaled(1.25))
        assert np.ptp(small.vertices[:, 2]) / np.ptp(body_skin(character).vertices[:, 2]) == pytest.approx(
            1.25 / 1.75, abs=0.01
        )


@pytest.fixture(scope="module")
def glb(files: Path) -> GlbReader:
    return GlbReader(files / "x.glb")


class TestGlb:
    def test_joints_move_as_our_segments_do(self, glb: GlbReader, clip: MotionClip, character: Character) -> None:
        positions, orientations = clip_frames(character, clip)
        from_rest = rotations.multiply(orientations, rotations.conjugate(rest_pose(character).orientations))
        axes = [1, 2, 0]
        turns = rotations.to_matrix(from_rest)[..., axes, :][..., axes]
        worlds, rest = glb.worlds(), glb.worlds(rest=True)
        assert glb.joint_names == [joint_name(name) for name in character.segment_names]
        np.testing.assert_allclose(worlds[..., :3, 3], in_file_axes(positions), atol=SMALL_M)
        found = worlds[..., :3, :3] @ rest[..., :3, :3].swapaxes(-1, -2)
        np.testing.assert_allclose(found, turns, atol=SMALL_RAD)

    def test_y_axes_point_along_the_bones(self, glb: GlbReader) -> None:
        rest = dict(zip(glb.joint_names, glb.worlds(rest=True)[0], strict=True))
        for bone, child in (("LeftArm", "LeftForeArm"), ("RightUpLeg", "RightLeg"), ("LeftFoot", "LeftToeBase")):
            along = rest[child][:3, 3] - rest[bone][:3, 3]
            np.testing.assert_allclose(rest[bone][:3, 1], along / np.linalg.norm(along), atol=1e-6)

    def test_the_mesh_follows_them(self, glb: GlbReader, clip: MotionClip, character: Character) -> None:
        """Linear blend skinning from the file against the same with our own kinematics; at rest nothing moves."""
        skin, (positions, orientations) = body_skin(character), clip_frames(character, clip)
        np.testing.assert_allclose(glb.skinned(glb.worlds(rest=True)[0]), in_file_axes(skin.vertices), atol=SMALL_M)
        rest = rest_pose(character)
        for frame in (0, 7):
            expected = np.zeros_like(skin.vertices)
            for segment, weight in zip(skin.segments.T, skin.weights.T, strict=True):
                local = rotations.rotate(
                    rotations.conjugate(rest.orientations[segment]), skin.vertices - rest.positions[segment]
                )
                world = positions[frame, segment] + rotations.rotate(orientations[frame, segment], local)
                expected += weight[:, None] * world
            np.testing.assert_allclose(glb.skinned(glb.worlds()[frame]), in_file_axes(expected), atol=5e-6)

    def test_it_keeps_the_rules_of_the_format(self, glb: GlbReader, clip: MotionClip, character: Character) -> None:
        gltf, primitive = glb.gltf, glb.gltf.meshes[0].primitives[0]
        for index in (primitive.attributes.POSITION, gltf.animations[0].samplers[0].input):
            accessor, values = gltf.accessors[index], glb.array(index)
            np.testing.assert_array_equal(accessor.min, values.min(axis=0))
            np.testing.assert_array_equal(accessor.max, values.max(axis=0))
        times = glb.array(gltf.animations[0].samplers[0].input)[:, 0]
        np.testing.assert_allclose(times, np.arange(len(clip)) / clip.fps, atol=1e-6)
        weights, joints = glb.array(primitive.attributes.WEIGHTS_0), glb.array(primitive.attributes.JOINTS_0)
        assert weights.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
        assert joints.max() < len(gltf.skins[0].joints) == len(character.segments)
        assert np.all(joints[weights == 0] == 0)
        assert np.linalg.norm(glb.array(primitive.attributes.NORMAL), axis=1) == pytest.approx(1.0, abs=1e-5)
        assert glb.array(primitive.indices).max() < len(weights)
        targets = {(channel.target.node, channel.target.path) for channel in gltf.animations[0].channels}
        assert targets == {(0, "translation"), *((joint, "rotation") for joint in gltf.skins[0].joints)}
        assert {node.name for node in gltf.nodes} >= {"Hips", "LeftForeArm", "RightToeBase", "Body"}
        assert gltf.materials[0].pbrMetallicRoughness.metallicFactor == 0.0

    def test_trimesh_reads_a_body_of_the_right_size(self, files: Path, character: Character) -> None:
        scene = pytest.importorskip("trimesh").load_scene(files / "x.glb")
        (mesh,) = scene.geometry.values()
        assert mesh.extents[1] == pytest.approx(character.height_m, abs=0.03)  # y up
        assert mesh.extents[0] > 1.7  # arms out to the sides

    def test_it_says_where_it_comes_from(self, character: Character, tmp_path: Path) -> None:
        for loop in (False, True):
            export_motion(tmp_path / "x.glb", motion_of(character, loop=loop), character)
            gltf = GlbReader(tmp_path / "x.glb").gltf
            assert gltf.animations[0].extras == {"fps": FPS, "frames": 12, "start_s": 3.25, "loop": loop}
            assert gltf.asset.extras["character"] == "humanoid"
            assert gltf.asset.extras["provenance"] == {"file": "x.bvh", "energy": None}

    def test_a_single_pose_is_a_file_too(self, character: Character, tmp_path: Path) -> None:
        export_motion(tmp_path / "x.glb", motion_of(character, 1), character)
        assert GlbReader(tmp_path / "x.glb").worlds().shape == (1, 18, 4, 4)

    def test_rotations_do_not_change_sign_on_the_way(self, character: Character, tmp_path: Path) -> None:
        """Programs that mix the four numbers, and curve editors, see no jumps."""
        turn = rotations.about_axis(np.array([0.0, 1.0, 0.0]), np.linspace(0.0, 6.0 * np.pi, 90))
        turn[40:50] *= -1.0
        export_motion(tmp_path / "x.glb", motion_of(character, 90, root_orientation=turn), character)
        read = GlbReader(tmp_path / "x.glb")
        values = read.array(read.gltf.animations[0].samplers[1].output)
        assert np.all(np.sum(values[1:] * values[:-1], axis=1) > 0.9)


class TestNpz:
    def test_numpy_alone_tells_everything(self, files: Path, clip: MotionClip, character: Character) -> None:
        positions, orientations = clip_frames(character, clip)
        with np.load(files / "x.npz", allow_pickle=False) as data:
            np.testing.assert_array_equal(data["segment_positions"], positions)
            np.testing.assert_array_equal(data["segment_orientations"], orientations)
            assert tuple(data["segment_names"]) == character.segment_names
            assert [data["segment_names"][p] for p in data["segment_parents"][1:3]] == ["pelvis", "abdomen"]
            assert data["time"] == pytest.approx(3.25 + np.arange(len(clip)) / FPS)
            assert (float(data["start_s"]), float(data["fps"])) == (3.25, FPS)
            assert data["contacts"].shape == (len(clip), 2)
            units = [str(data[name]) for name in ("length_unit", "angle_unit", "time_unit", "quaternion_order", "up")]
        assert units == ["m", "rad", "s", "wxyz", "z"]

    def test_we_read_it_back_to_the_bit_with_its_body(self, character: Character, tmp_path: Path) -> None:
        body = oblique(character.scaled(1.6))
        clip = motion_of(body, provenance={"file": "x.bvh"})
        write_motion(tmp_path / "x.npz", clip, body)
        again = read_body(tmp_path / "x.npz")
        assert again.description == body.description
        read = read_motion(tmp_path / "x.npz", again)
        for name in ("root_position", "root_orientation", "angles"):
            np.testing.assert_array_equal(getattr(read, name), getattr(clip, name))
        assert (read.name, read.fps, read.start_s, read.provenance) == (clip.name, FPS, 3.25, {"file": "x.bvh"})

    def changed(self, files: Path, path: Path, *without: str, **changes: Any) -> Path:
        with np.load(files / "x.npz") as data:
            np.savez(path, **{**{name: data[name] for name in data.files if name not in without}, **changes})
        return path

    def test_format_1_is_still_read(self, files: Path, clip: MotionClip, tmp_path: Path) -> None:
        younger = ("start_s", "time", "character_toml", "segment_names", "segment_positions", "contacts")
        path = self.changed(files, tmp_path / "old.npz", *younger, format=1, height_m=1.6)
        assert read_body(path).height_m == 1.6
        read = read_motion(path, read_body(path))
        np.testing.assert_array_equal(read.angles, clip.angles)
        assert read.start_s == 0.0

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"format": 3}, "format 3; this version reads format 1 to 2"),
            ({"root_orientation": np.ones((12, 4))}, "no unit quaternions"),
            ({"angles": np.zeros((12, 3))}, "3 columns for 35"),
            ({"angles": np.zeros((5, 35))}, "angles has shape"),
            ({"start_s": np.nan}, "start_s is nan"),
            ({"fps": 0.0}, "fps is 0"),
            ({"provenance": "[1]"}, "x.npz"),
            ({"character_toml": "format = 1"}, "its character cannot be used"),
            ({"character_toml": "format = ]"}, "its character cannot be used"),
            ({"hinge_names": ["a"]}, "1 joint angles"),
        ],
    )
    def test_what_is_wrong_is_told(self, files: Path, tmp_path: Path, changes: dict[str, Any], says: str) -> None:
        path = self.changed(files, tmp_path / "x.npz", **changes)
        with pytest.raises(MotionFileError, match=r"x\.npz: ") as error:
            read_motion(path, read_body(path))
        assert says in str(error.value)

    def test_whatever_the_bytes_it_is_read_or_refused(self, files: Path, tmp_path: Path) -> None:
        whole, random = (files / "x.npz").read_bytes(), np.random.default_rng(1)
        path, refused = tmp_path / "x.npz", 0
        for _ in range(100):
            data = bytearray(whole)
            for place in random.integers(len(data), size=4):
                data[place] = random.integers(256)
            path.write_bytes(data[: random.integers(len(data)) if random.random() < 0.1 else None])
            try:
                read_motion(path, read_body(path))
            except MotionFileError:
                refused += 1
        assert refused > 50


class TestCsv:
    def test_a_row_is_a_frame_and_a_column_a_quantity_with_its_unit(
        self, files: Path, clip: MotionClip, character: Character
    ) -> None:
        with (files / "x.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [int(row["frame"]) for row in rows] == list(range(len(clip)))
        positions, _ = clip_frames(character, clip)
        hand, knee = character.segment_index("left_hand"), character.hinge_names.index("left_shank.flexion")
        read = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
        assert len(read) == 2 + 54 + 4 + 35 + 2
        np.testing.assert_allclose(read["time_s"], clip.times_s, atol=1e-9)
        np.testing.assert_allclose(read["left_hand_z_m"], positions[:, hand, 2], atol=1e-7)
        np.testing.assert_allclose(read["left_shank_flexion_rad"], clip.angles[:, knee], atol=1e-7)
        np.testing.assert_allclose(read["pelvis_qw"], clip.root_orientation[:, 0], atol=1e-7)
        assert set(read["right_contact"]) <= {0.0, 1.0}


class TestMjcf:
    def test_keyframes_are_the_motion_s_poses_and_velocities(
        self, files: Path, clip: MotionClip, character: Character
    ) -> None:
        model = mujoco.MjModel.from_xml_path(str(files / "x.xml"))
        data = mujoco.MjData(model)
        positions, orientations = clip_frames(character, clip)
        for key in range(model.nkey):
            mujoco.mj_resetDataKeyframe(model, data, key)
            mujoco.mj_forward(model, data)
            np.testing.assert_allclose(data.xpos[1:], positions[key], atol=1e-9)
            assert angle_between(data.xquat[1:], orientations[key]) < 1e-7
        np.testing.assert_allclose(model.key_time, np.arange(len(clip)) / FPS)
        np.testing.assert_allclose(model.key_qvel[:, 6:], velocities(clip).joints, atol=1e-9)

    def test_velocities_are_mujoco_s_own_differences(self, character: Character, tmp_path: Path) -> None:
        """A body that turns about a fixed axis and travels straight, at constant speed."""
        frames, spin, speed = 9, np.array([0.3, -0.5, 1.1]), np.array([1.0, 0.2, -0.1])
        times = np.arange(frames) / FPS
        tilt = rotations.from_rotation_vector(np.array([0.4, 0.2, -0.3]))
        clip = motion_of(
            character,
            frames,
            root_position=times[:, None] * speed,
            root_orientation=rotations.multiply(rotations.from_rotation_vector(times[:, None] * spin), tilt),
        )
        export_motion(tmp_path / "x.xml", clip, character)
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "x.xml"))
        for key in range(1, frames - 1):
            qvel = np.zeros(model.nv)
            mujoco.mj_differentiatePos(model, qvel, 2.0 / FPS, model.key_qpos[key - 1], model.key_qpos[key + 1])
            np.testing.assert_allclose(model.key_qvel[key, :3], qvel[:3], atol=1e-9)
            np.testing.assert_allclose(model.key_qvel[key, 3:6], qvel[3:6], atol=1e-3)
            np.testing.assert_allclose(model.key_qvel[key, 6:], qvel[6:], atol=1e-9)


class TestDoor:
    @pytest.mark.parametrize("suffix", WRITERS)
    def test_a_full_disk_leaves_the_old_file_and_no_other(
        self, suffix: str, clip: MotionClip, character: Character, tmp_path: Path
    ) -> None:
        path = tmp_path / f"x{suffix}"
        path.write_bytes(b"old")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(OSError, match=path.name):
                export_motion(path, clip, character)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {path.name: b"old"}

    def test_what_cannot_be_written_is_told_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "there.bvh").write_text("mine")
        (tmp_path / "folder.bvh").mkdir()
        for names, overwrite, says in (
            ((), False, "no output"),
            (("x.fbx",), False, "allowed are names that end in .bvh, .glb, .npz, .csv or .xml"),
            (("x",), False, "unknown kind"),
            (("x.bvh", "./x.bvh"), False, "named twice"),
            (("x.glb", "there.bvh"), False, "--overwrite"),
            (("folder.bvh",), True, "folder.bvh"),
        ):
            with pytest.raises(ConfigError, match=says):
                check_outputs(names, overwrite=overwrite)
        with pytest.raises(CaptureError, match="another -o"):
            check_outputs(["there.bvh/x.bvh"], overwrite=False)
        assert check_outputs(["there.bvh", "new/X.GLB"], overwrite=True) == (Path("there.bvh"), Path("new/X.GLB"))
        assert not (tmp_path / "new").exists()


class TestConvert:
    @pytest.fixture
    def npz(self, character: Character, tmp_path: Path) -> Path:
        """Two seconds of walking on: a loop of 61 frames."""
        angles = np.zeros((61, len(character.hinges)))
        swing = character.hinge_names.index("left_thigh.flexion")
        angles[:, swing] = 0.5 * np.sin(np.linspace(0.0, 2.0 * np.pi, 61))
        root = np.linspace([0.0, 0.0, character.standing_height_m], [1.8, 0.0, character.standing_height_m], 61)
        clip = MotionClip("steps", 30.0, root, np.tile([1.0, 0.0, 0.0, 0.0], (61, 1)), angles, loop=True, start_s=1.5)
        write_motion(tmp_path / "steps.npz", clip, character)
        return tmp_path / "steps.npz"

    def test_as_it_is(self, npz: Path, tmp_path: Path) -> None:
        done = convert(npz, tmp_path / "same.npz")
        assert (done.kind, done.files, done.clip.fps, done.clip.loop) == ("npz", (tmp_path / "same.npz",), 30.0, True)
        with np.load(npz) as one, np.load(tmp_path / "same.npz") as other:
            for name in set(one.files) - {"ends_standing"}:
                np.testing.assert_array_equal(one[name], other[name], err_msg=name)

    def test_a_part_keeps_its_place_in_time(self, npz: Path, tmp_path: Path) -> None:
        done = convert(npz, tmp_path / "part.csv", time_range=(2.0, 2.5), fps=60.0)
        assert (done.clip.start_s, len(done.clip), done.clip.loop) == (2.0, 31, False)
        assert done.clip.root_position[0, 0] == pytest.approx(0.45)
        assert done.warnings == ()
        assert (tmp_path / "part.csv").read_text().splitlines()[1].startswith("0,2.000000000,0.4500000,")

    def test_a_part_that_goes_on_after_the_end_is_told_to_be_shorter(self, npz: Path, tmp_path: Path) -> None:
        done = convert(npz, tmp_path / "end.csv", time_range=(3.0, 9.0))
        assert len(done.clip) == 16
        assert done.warnings == ("time range 3 to 9 s goes on after the input's end at 3.50 s",)

    def test_mirrored_scaled_and_repeated(self, npz: Path, character: Character, tmp_path: Path) -> None:
        done = convert(npz, [tmp_path / "x.bvh", tmp_path / "x.npz"], mirror=True, height_m=1.4, cycles=3)
        assert done.character.height_m == read_body(tmp_path / "x.npz").height_m == 1.4
        assert done.clip.root_position[-1, 0] == pytest.approx(3 * 1.8 * 1.4 / 1.75)
        right = character.hinge_names.index("right_thigh.flexion")
        assert done.clip.angles[15, right] == pytest.approx(0.5)
        assert len(read_bvh(tmp_path / "x.bvh")) == len(done.clip) == 181

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"time_range": (0.5, 1.0)}, "runs from 1.5 to 3.5 s"),
            ({"time_range": (3.5, 4.0)}, "runs from 1.5 to 3.5 s"),
            ({"time_range": (1.0, 1.0)}, "time range 1 to 1 s; the first number must be less"),
            ({"height_m": 17.0}, "height is 17"),
            ({"fps": -1.0}, "fps is -1"),
            ({"cycles": 0}, "cycles is 0"),
            ({"reference": True}, "no capture"),
        ],
    )
    def test_bad_options_write_nothing(self, npz: Path, tmp_path: Path, options: dict[str, Any], says: str) -> None:
        with pytest.raises(Mocap2CtrlError, match=says):
            convert(npz, tmp_path / "x.bvh", **options)
        assert [path.name for path in tmp_path.iterdir()] == ["steps.npz"]

    def test_the_input_is_never_overwritten(self, npz: Path) -> None:
        before = npz.read_bytes()
        with pytest.raises(ConfigError, match="is the input"):
            convert(npz, npz, overwrite=True)
        assert npz.read_bytes() == before

    def test_videos_are_fitted_first(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"fitted first: mocap2ctrl fit .*walk\.mp4"):
            convert(tmp_path / "walk.mp4", tmp_path / "x.bvh")


def test_glb_json_is_strict(files: Path) -> None:
    """No NaN, which other readers refuse; Python's own reader would let it pass."""
    data = (files / "x.glb").read_bytes()
    length = int.from_bytes(data[12:16], "little")

    def refuse(word: str) -> None:
        raise ValueError(word)

    assert json.loads(data[20 : 20 + length], parse_constant=refuse)["asset"]["version"] == "2.0"
    assert int.from_bytes(data[8:12], "little") == len(data)


RECIPES = re.findall(
    r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "export.md").read_text("utf-8"), re.S
)


@pytest.mark.parametrize("code", RECIPES, ids=lambda code: code.split()[1])
def test_the_recipes_of_the_docs_run(
    code: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the motion of these tests in place of the reader's own."""
    pytest.importorskip(code.split()[1])
    for file in files.iterdir():
        (tmp_path / f"walk{file.suffix}").write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/export.md", "exec"), {})
    assert capsys.readouterr().out.strip()
