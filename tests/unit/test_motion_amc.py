"""Acclaim skeletons and motions: one bone in closed form, CMU's files by an independent formula, skeletons found, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap2ctrl.character import load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.amc import find_skeleton, parse_amc, read_amc
from mocap2ctrl.motion.asf import parse_asf
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.stated import Stated

DATA = Path(__file__).resolve().parents[3] / "shared/data/amc"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared motion files are not here")
CMU_M = 0.0254 / 0.45

ASF = """# a comment
:version 1.10
:name two bones
:units
  mass 1.0
  length 0.45
  angle deg
:documentation
   free text
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 1 0
   orientation 0 0 0
:bonedata
  begin
     id 1
     name Upper
     direction 0 20 0
     length 10
     axis 0 0 90 XYZ
    dof rx rz
    limits (-90 90)
           (-45 45)
  end
  begin
     id 2
     name lower
     direction 1 0 0
     length 8
     axis 0 0 0 XYZ
  end
:hierarchy
  begin
    root Upper
    Upper lower
  end
"""
AMC = """#!OML:ASF somewhere
:FULLY-SPECIFIED
:DEGREES
1
root 1 2 3 0 0 0
Upper 30 0
2
root 1 2 3 0 90 0
Upper 0 40  # a comment
"""


def parse(amc: str = AMC, asf: str = ASF, fps: float | None = None):
    return parse_amc(amc, "f.amc", parse_asf(asf, "f.asf"), name="f", fps=fps)


def at(source, joint: str, frame: int):
    return source.positions[frame, source.joint_names.index(joint)]


def test_a_bone_turns_about_the_axes_of_its_own_frame():
    source = parse()
    # The frame is turned by 90 degrees about z, so its x axis is the world's y and its z axis the world's z.
    np.testing.assert_allclose(at(source, "lower", 0), [1, 13, 3], atol=1e-9)  # about y: an upright bone stays
    turned = np.array([np.cos(np.radians(30)), 0, -np.sin(np.radians(30))])
    np.testing.assert_allclose(at(source, "lower:tip", 0), [1, 13, 3] + 8 * turned, atol=1e-9)
    # Second frame: 40 degrees about z in the bone, then 90 about y of the root: (x, y, z) becomes (z, y, -x).
    lean = 10 * np.array([-np.sin(np.radians(40)), np.cos(np.radians(40)), 0])
    np.testing.assert_allclose(at(source, "lower", 1), [1, 3 + lean[1], 3 - lean[0]], atol=1e-9)


def test_rotations_that_are_listed_first_are_applied_first():
    source = parse(
        AMC.replace("Upper 30 0", "Upper 90 90").replace("0 0 90 XYZ", ""), ASF.replace("0 0 90 XYZ", "0 0 0 XYZ")
    )
    # y about x by 90 is z, which a turn about z leaves.
    np.testing.assert_allclose(at(source, "lower", 0), [1, 3, 13], atol=1e-9)


def test_radians_and_axis_orders():
    radians = parse(AMC.replace(":DEGREES", ":RADIANS").replace("Upper 30 0", f"Upper {np.radians(30)} 0"))
    np.testing.assert_allclose(at(radians, "lower:tip", 0), at(parse(), "lower:tip", 0), atol=1e-9)
    for order, expected in (("XYZ", [0, 0, 1]), ("ZYX", [-1, 0, 0])):  # where 90 degrees about x and z carry the y axis
        frame = parse_asf(ASF.replace("0 0 90 XYZ", f"90 0 90 {order}"), "f.asf").bones[1].frame
        turned = Rotation.from_quat(frame, scalar_first=True).apply([0, 1, 0])
        np.testing.assert_allclose(turned, expected, atol=1e-9)


def test_what_programs_add_is_overlooked():
    more = ASF.replace(":documentation", ":namespace walks\n:documentation").replace(
        "     length 10\n", "     length 10\n     bodymass 3\n"
    )
    np.testing.assert_array_equal(parse(asf=more).positions, parse().positions)


def test_the_rate_is_the_collections_unless_it_is_stated():
    assert parse().fps == 120.0
    assert any("--fps" in warning for warning in parse().warnings)
    assert parse(fps=60.0).fps == 60.0
    assert not any("--fps" in warning for warning in parse(fps=60.0).warnings)


def test_a_file_that_was_thinned_out_has_a_lower_rate():
    source = parse(AMC.replace("\n2\n", "\n5\n"))
    assert source.fps == 30.0
    assert any("every 4th frame" in warning for warning in source.warnings)


def test_a_bone_that_is_missing_stays_as_it_was():
    source = parse(AMC.replace("Upper 0 40", ""))
    assert any("'upper' is missing in 1 frames" in warning for warning in source.warnings)
    still = parse(AMC.replace("Upper 0 40", "").replace("Upper 30 0", ""))
    assert any("does not move" in warning for warning in still.warnings)


def test_a_unit_that_makes_no_person_is_inferred():
    assert parse(asf=ASF.replace("length 10", "length 20")).unit_m == pytest.approx(CMU_M)
    giant = parse(asf=ASF.replace("length 10", "length 2000"))
    assert giant.unit_m is None
    assert any("unit" in warning for warning in giant.warnings)


@needs_data
@pytest.mark.parametrize(("name", "frames"), [("01_01", 2751), ("11_01", 597)])
def test_cmus_files_by_another_formula(name: str, frames: int):
    file = DATA / f"fairmotion_{name}.amc"
    source = read_amc(file.read_text(), file, None, None)
    assert (len(source), source.fps, source.unit_m) == (frames, 120.0, CMU_M)
    asf = "\n".join(line.strip() for line in (DATA / f"fairmotion_{name[:2]}.asf").read_text().splitlines())
    rows = dict(line.split(maxsplit=1) for line in file.read_text().split("\n2\n")[0].splitlines() if " " in line)
    ends = {"root": np.array([float(x) for x in rows["root"].split()[:3]])}
    turns = {"root": Rotation.from_euler("xyz", [float(x) for x in rows["root"].split()[3:]], degrees=True)}
    for above, *below in (line.split() for line in asf.split(":hierarchy")[1].splitlines()[2:-1]):
        for bone in below:
            words = asf.split(f"name {bone}\n")[1].split("\nend")[0].split()
            direction, axis = ([float(x) for x in words[words.index(k) + 1 :][:3]] for k in ("direction", "axis"))
            free = [w for w in ("rx", "ry", "rz") if w in words]
            angles = dict(zip(free, map(float, rows.get(bone, "").split()), strict=True))
            frame = Rotation.from_euler("xyz", axis, degrees=True)
            own = Rotation.from_euler("xyz", [angles.get(k, 0.0) for k in ("rx", "ry", "rz")], degrees=True)
            turns[bone] = turns[above] * frame * own * frame.inv()
            ends[bone] = ends[above] + turns[bone].apply(direction) * float(words[words.index("length") + 1])
    for joint, parent in enumerate(source.parents):
        if parent >= 0:
            np.testing.assert_allclose(source.positions[0, joint], ends[source.joint_names[parent]], atol=1e-4)


@needs_data
def test_a_walk_of_cmu_is_retargeted_with_the_right_unit_axes_and_rate():
    motion = load_motion(DATA / "fairmotion_11_01.amc", load_character(), time_range=(1.5, 3.5))
    assert (motion.kind, motion.unit, motion.up, motion.clip.fps, motion.travels) == ("amc", "cmu", "y", 120.0, True)
    assert motion.height * CMU_M == pytest.approx(1.75, abs=0.1)
    assert any("the skeleton is fairmotion_11.asf, by its name" in warning for warning in motion.warnings)


@needs_data
def test_a_stated_skeleton_and_rate_are_used_and_remembered(tmp_path: Path):
    file, skeleton = tmp_path / "renamed.amc", DATA / "fairmotion_11.asf"
    file.write_bytes(b"\n".join((DATA / "fairmotion_11_01.amc").read_bytes().splitlines()[: 4 + 30 * 40]))
    with pytest.raises(MotionFileError, match="--skeleton"):
        load_motion(file, load_character())
    motion = load_motion(file, load_character(), stated=Stated(skeleton, 60.0))
    assert motion.clip.fps == 60.0
    assert motion.warnings == ()
    assert motion.clip.provenance["stated"] == {"skeleton": str(skeleton.resolve()), "fps": 60.0}


def test_where_the_skeleton_is_looked_for(tmp_path: Path):
    file = tmp_path / "HDM_bd_walk_001_120.amc"
    with pytest.raises(MotionFileError, match="beside it: none"):
        find_skeleton(file, None)
    (tmp_path / "other.asf").touch()
    assert find_skeleton(file, None) == (tmp_path / "other.asf", "the only .asf beside it")
    (tmp_path / "HDM_bd.ASF").touch()
    assert find_skeleton(file, None) == (tmp_path / "HDM_bd.ASF", "by its name")
    assert find_skeleton(file, tmp_path / "other.asf") == (tmp_path / "other.asf", None)
    with pytest.raises(MotionFileError, match=r"beside it: HDM_bd\.ASF, other\.asf"):
        find_skeleton(tmp_path / "third.amc", None)
    with pytest.raises(MotionFileError, match="no such skeleton"):
        find_skeleton(file, tmp_path / "absent.asf")


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("Upper 30 0", "Upper 30", "f.amc, line 6: 1 values for 'upper', which has 2"),
        ("Upper 30 0", "Arm 30 0", r"line 6: bone 'arm' is not in the skeleton; is it the .asf"),
        ("Upper 30 0", "Upper 30 nan", "line 6: upper 30 nan; allowed are finite numbers"),
        ("Upper 30 0", "Upper 30 x", "line 6: '30 x' where numbers"),
        ("Upper 30 0", "Upper 30 0\nUpper 30 0", "line 7: bone 'upper' is given twice"),
        ("root 1 2 3 0 90 0\n", "", "frame 2 has no root"),
        ("\n2\n", "\n1\n", "line 7: frame 1 follows frame"),
        ("\n1\nroot", "\nroot", "values before the first frame"),
    ],
)
def test_damaged_motions_are_refused(old: str, new: str, cause: str):
    with pytest.raises(MotionFileError, match=cause):
        parse(AMC.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("direction 0 20 0", "direction 0 20", "a direction needs 3 numbers"),
        ("     length 10\n", "", "a bone without 'length'"),
        ("dof rx rz", "dof rx l", r"line 22: degrees of freedom 'rx l'; allowed are rx ry rz"),
        ("0 0 90 XYZ", "0 0 90 XXZ", "axis order 'XXZ'"),
        ("angle deg", "angle gon", "angles in 'gon'"),
        ("length 0.45", "length 0", "must be a positive number"),
        (":hierarchy", ":hierarky", "no section :hierarchy"),
        ("    Upper lower\n", "", "bone 'lower' is missing in :hierarchy"),
        ("Upper lower", "Upper lower\n    lower Upper", "has two parents"),
        (ASF[ASF.index(":hierarchy") :], "", "no section :hierarchy"),
    ],
)
def test_damaged_skeletons_are_refused(old: str, new: str, cause: str):
    with pytest.raises(MotionFileError, match=cause):
        parse_asf(ASF.replace(old, new, 1), "f.asf")


def test_mutated_files_give_a_motion_or_a_motion_file_error():
    rng = np.random.default_rng(0)
    junk = ["", "nan", "1e999", "end", "begin", ":DEGREES", "root", "rx", "9" * 30, "\x00", "٣", "-1", "#", "XYZ"]
    for _ in range(1500):
        texts = [ASF, AMC]
        which = rng.integers(0, 2)
        words = texts[which].split(" ") if rng.random() < 0.7 else list(texts[which])
        for place in rng.integers(0, len(words), rng.integers(1, 4)):
            words[place] = junk[rng.integers(0, len(junk))]
        texts[which] = (" " if len(words) < 300 else "").join(words)
        texts[which] = texts[which][: rng.integers(0, len(texts[which]) + 1)] if rng.random() < 0.2 else texts[which]
        try:
            source = parse(texts[1], texts[0])
        except MotionFileError as error:
            message = str(error)
        else:
            assert np.all(np.isfinite(source.positions))
            continue
        assert message.startswith(("f.amc", "f.asf"))
        assert "\n" not in message
