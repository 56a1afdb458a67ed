"""Which reader a motion file gets, and the clips that this package wrote as its input."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.character import load_character
from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.fit.inputs import is_video_input
from mocap2ctrl.motion.formats import MAX_BYTES, READERS, find_motion, kind_of, read_bytes
from mocap2ctrl.motion.kinds import KINDS, KINDS_TEXT
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.npz import write_motion
from mocap2ctrl.motion.own_npz import read_own_npz
from mocap2ctrl.types import MotionClip


def bowing(frames: int = 40) -> MotionClip:
    """The body bows a little and swings its arms where it stands."""
    character = load_character(height_m=1.6)
    pose = character.zero_pose()
    angles = np.tile(pose.angles, (frames, 1))
    swing = np.sin(np.linspace(0.0, 2.0 * np.pi, frames))
    sizes = {"abdomen.flexion": 0.2, "chest.flexion": 0.2}  # the retargeting bends the two alike
    sizes |= {"left_upper_arm.flexion": 0.8, "right_upper_arm.flexion": -0.8}
    for name, size in sizes.items():
        angles[:, character.hinge_names.index(name)] = size * swing
    for side in ("left", "right"):
        angles[:, character.hinge_names.index(f"{side}_forearm.flexion")] = 0.7
    return MotionClip("bow", 50.0, [pose.root_position] * frames, [pose.root_orientation] * frames, angles)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("npz") / "motion.npz"
    write_motion(path, bowing(), load_character(height_m=1.6))
    return path


def test_every_kind_is_in_the_text_for_users():
    assert list(READERS) == [entry.kind for entry in KINDS]
    for entry in KINDS:
        assert entry.title in KINDS_TEXT
        assert all(suffix in KINDS_TEXT for suffix in entry.suffixes)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"HIERARCHY\n", "bvh"),
        (b"\xef\xbb\xbf \n hierarchy", "bvh"),
        (b' {"Frames"', "deepmimic"),
        (b"PK\x03\x04", "npz"),
    ],
)
def test_the_content_tells_the_kind_whatever_the_name(start: bytes, kind: str):
    assert kind_of(start, Path("clip.dat")).kind == kind


@pytest.mark.parametrize(
    ("start", "cause"),
    [
        (b"Kaydara FBX Binary", "an FBX file; export the motion as BVH"),
        (b"glTF\x02", "a glTF binary"),
        (b"# made by\n:version 1.10\n", "an Acclaim skeleton without motion; give the .amc"),
        (b"\x80\x04\x95", "a pickle, which is never opened"),
        (b"", "clip.dat: is empty; give a motion file: BVH"),
        (b" \r\n", "clip.dat: is empty"),
        (b"\x89PNG\r\n\x1a\n" + 4000 * b"T", "is a picture"),
        (b"\xff\xd8\xff\xe0", "is a picture"),
        (b"\x1aE\xdf\xa3", "is a video"),
        (b"\x02P" + 600 * b"\x00", "not a motion file; allowed are BVH"),
    ],
)
def test_what_cannot_be_read_is_named(start: bytes, cause: str):
    with pytest.raises(MotionFileError, match=cause):
        kind_of(start, Path("clip.dat"))


def test_a_picture_called_bvh_is_called_a_picture():
    with pytest.raises(MotionFileError, match=r"^walk\.bvh: is a picture"):
        kind_of(b"\x89PNG\r\n\x1a\n" + 4000 * b"\x00", Path("walk.bvh"))


@pytest.mark.parametrize("processor", [84, 85, 86])
def test_c3d_is_told_by_its_processor(processor: int):
    for block in (2, 3):
        head = bytearray(2000)
        head[0], head[1], head[512 * (block - 1) + 3] = block, 0x50, processor
        assert kind_of(bytes(head), Path("clip.dat")).kind == "c3d"


def changed(path: Path, own: Path, **entries: object) -> Path:
    """A copy of an archive with other entries."""
    with np.load(own) as data:
        np.savez(path, **{**data, **entries})
    return path


def test_what_to_do_about_broken_entries_is_said(own: Path, tmp_path: Path):
    for provenance in ("{", "[1]", "3"):
        broken = changed(tmp_path / "a.npz", own, provenance=provenance)
        with pytest.raises(
            MotionFileError, match=r"a\.npz: its entry 'provenance' is no JSON object .*or the file again"
        ):
            read_own_npz(broken, "a")
    with np.load(own) as data:
        names = [f"other_{name}" for name in data["hinge_names"]]
    with pytest.raises(MotionFileError, match=r"b\.npz: its .* joint angles.*mocap2ctrl convert FILE -o motion\.npz"):
        read_own_npz(changed(tmp_path / "b.npz", own, hinge_names=names), "b")


def test_a_folder_and_an_absent_file_are_refused(tmp_path: Path):
    with pytest.raises(MotionFileError, match=r"is a folder; give a motion file: BVH"):
        find_motion(tmp_path)
    with pytest.raises(MotionFileError, match="no such file"):
        find_motion(tmp_path / "absent.bvh")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path):
    with (tmp_path / "large.trc").open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)  # a hole: it takes no place
    with pytest.raises(MotionFileError, match="holds 268 MB; a motion file may hold 268 MB"):
        read_bytes(tmp_path / "large.trc")


def test_a_clip_that_we_wrote_comes_back_through_the_retargeting(own: Path):
    character, clip = load_character(height_m=1.6), bowing()
    again = load_motion(own, character)
    assert (again.kind, again.unit, again.up, again.clip.fps) == ("npz", "m", "z", 50.0)
    assert again.scale == pytest.approx(1.0)
    distance = np.linalg.norm(clip_points(character, again.clip) - clip_points(character, clip), axis=-1)
    assert np.max(distance) < 0.01


def test_a_clip_keeps_its_bodys_height(own: Path):
    assert load_motion(own, load_character(height_m=1.8)).scale == pytest.approx(1.8 / 1.6)


def test_a_motion_archive_is_no_masks(own: Path, tmp_path: Path):
    np.savez(tmp_path / "masks.npz", masks=np.zeros((2, 3, 4), bool))
    assert not is_video_input(own)
    assert is_video_input(tmp_path / "masks.npz")


def test_archives_of_other_kinds_are_refused(tmp_path: Path):
    np.savez(tmp_path / "amass.npz", poses=np.zeros((2, 156)), trans=np.zeros((2, 3)))
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    assert not is_video_input(tmp_path / "amass.npz")
    with pytest.raises(MotionFileError, match="SMPL family"):
        load_motion(tmp_path / "amass.npz", load_character())
    with pytest.raises(MotionFileError, match="without a motion"):
        load_motion(tmp_path / "other.npz", load_character())


def test_an_array_that_claims_more_than_its_file_holds_is_not_unpacked(own: Path, tmp_path: Path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(own) as good, zipfile.ZipFile(path, "w") as bad:
        for entry in good.infolist():
            bad.writestr(entry, header.getvalue() if entry.filename == "angles.npy" else good.read(entry))
    with pytest.raises(MotionFileError, match="damaged or too long"):
        read_own_npz(path, "bomb")


def test_mutated_archives_give_a_motion_or_a_motion_file_error(own: Path, tmp_path: Path):
    rng, data, path = np.random.default_rng(0), own.read_bytes(), tmp_path / "mutated.npz"
    for _ in range(300):
        changed = bytearray(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data)
        for place in rng.integers(0, len(changed), rng.integers(1, 5)):
            changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        try:
            source = read_own_npz(path, "mutated")
        except MotionFileError:
            continue
        assert np.all(np.isfinite(source.positions))
