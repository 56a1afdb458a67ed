"""C3D files: a body of known motion comes back from its markers; units, axes, gaps; another reader; bad input."""

from __future__ import annotations

from pathlib import Path

import ezc3d
import numpy as np
import pytest
from bodies_in_points import joints, markers, up_axis, walking, write_c3d

from mocap2ctrl.character import load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.c3d import parse_c3d
from mocap2ctrl.motion.clips import mirror
from mocap2ctrl.motion.formats import parse_motion
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.marker_body import body_of
from mocap2ctrl.motion.marker_track import bridged
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.types import Array

WALK = Path(__file__).resolve().parents[3] / "shared/data/c3d/opensim_walking2.c3d"
needs_walk = pytest.mark.skipif(not WALK.is_file(), reason="the shared motion files are not here")
TO_Y_UP = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def read(path: Path, points: dict[str, Array], **how) -> SourceMotion:
    write_c3d(path, points, **how)
    return parse_motion(path.read_bytes(), path)


def errors_m(source: SourceMotion, parts: tuple[str, ...], start: int = 0) -> dict[str, float]:
    """Largest distance of each joint from where it truly is, metres; the axes must be z up."""
    true = joints(walking())
    return {
        name: float(
            np.max(
                np.linalg.norm(
                    source.positions[:, source.joint_names.index(name)] * source.unit_m
                    - true[name][start : start + len(source)],
                    axis=-1,
                )
            )
        )
        for name in true
        if name.split()[-1] in parts
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "body.c3d"


@pytest.mark.parametrize("unit", ["mm", "m"])
def test_joint_centres_are_recovered_from_markers(file: Path, unit: str):
    source = read(file, {f"Bob:{label}": place for label, place in markers(walking()).items()}, unit=unit)
    assert (source.fps, source.up, source.unit_m) == (100.0, "z", {"mm": 0.001, "m": 1.0}[unit])
    exact = errors_m(source, ("knee", "ankle", "toe", "shoulder", "elbow", "wrist", "neck"))
    assert max(exact.values()) < 1e-5
    assert max(errors_m(source, ("hip",)).values()) < 2e-3  # the regression's 8.65 cm beside the body's 8.75
    assert source.warnings == (
        "joint centres are estimated: hips by Harrington's regression; shoulders below the acromia by Rab's rule; "
        "elbows inside their lateral markers by an adult's usual widths",
    )


def test_the_motion_comes_back_from_its_markers(file: Path):
    write_c3d(file, markers(walking()))
    character = load_character()
    motion = load_motion(file, character)
    error = np.degrees(np.abs(motion.clip.angles - walking().angles))
    for hinge, mean in zip(character.hinge_names, error.mean(axis=0), strict=True):
        # The sole's own angle is as uncertain as the heel's marker is high.
        assert mean < (6.0 if "foot" in hinge else 1.0), hinge
    assert motion.scale * 1000.0 == pytest.approx(1.0, abs=1e-3)


def test_lateral_markers_alone_are_moved_inwards(file: Path):
    points = {label: place for label, place in markers(walking()).items() if not label.endswith(("KNM", "MED"))}
    source = read(file, points)
    error = errors_m(source, ("knee", "ankle"))
    assert max(error.values()) < 0.02
    assert max(error.values()) > 0.001, "the widths are not this body's"
    assert any("knees inside their lateral markers by an adult's" in w for w in source.warnings)
    widths = {
        f"{letter}{part}Width": 86.0 for letter in "LR" for part in ("Knee", "Ankle")
    }  # and a marker's radius: 5 cm
    write_c3d(file, points, processing=widths)
    measured = parse_motion(file.read_bytes(), file)
    assert np.mean(list(errors_m(measured, ("knee", "ankle")).values())) < np.mean(list(error.values()))
    assert any("ankles inside their lateral markers by the file's widths" in warning for warning in measured.warnings)


def test_the_up_axis_is_the_files_then_the_bodys(file: Path):
    turned = {label: place @ TO_Y_UP.T for label, place in markers(walking()).items()}
    source = read(file, turned, up="+Y")
    assert source.up == "y"
    assert not any("up" in warning for warning in source.warnings)
    silent = read(file, turned, up="")
    assert (silent.up, up_axis(silent)) == (None, "y")
    over = read(file, {label: place * np.array([1.0, -1.0, -1.0]) for label, place in turned.items()}, up="")
    assert up_axis(over) == "y"
    assert any("the y axis points down" in warning for warning in over.warnings)


def test_a_file_that_says_how_it_lies_is_believed(file: Path):
    lying = {label: place @ TO_Y_UP.T for label, place in markers(walking()).items()}
    source = read(file, lying, up="+Z")
    assert source.up == "z"
    assert any("the file says that z is up, but the body lies along y" in warning for warning in source.warnings)


def test_the_axes_do_not_change_the_motion(file: Path, tmp_path: Path):
    character = load_character()
    write_c3d(file, markers(walking()))
    write_c3d(tmp_path / "y.c3d", {label: place @ TO_Y_UP.T for label, place in markers(walking()).items()}, up="+Y")
    upright, other = load_motion(file, character).clip, load_motion(tmp_path / "y.c3d", character).clip
    np.testing.assert_allclose(other.angles, upright.angles, atol=1e-3)
    np.testing.assert_allclose(other.root_position, upright.root_position, atol=1e-3)


def test_mirrored_markers_make_a_mirrored_motion(file: Path, tmp_path: Path):
    character = load_character()
    other = {"L": "R", "R": "L"}
    write_c3d(file, markers(walking()))
    mirrored = {
        (other[label[0]] + label[1:] if label[0] in other else label): place * np.array([1.0, -1.0, 1.0])
        for label, place in markers(walking()).items()
    }
    write_c3d(tmp_path / "mirrored.c3d", mirrored)
    expected = mirror(load_motion(file, character).clip, character)
    clip = load_motion(tmp_path / "mirrored.c3d", character).clip
    np.testing.assert_allclose(clip.angles, expected.angles, atol=1e-3)
    np.testing.assert_allclose(clip.root_position, expected.root_position, atol=1e-3)


def test_short_gaps_are_bridged_and_long_ones_left_out(file: Path):
    points = markers(walking())
    points["LKNE"][30:50] = np.nan
    source = read(file, points)
    assert len(source) == 120
    assert max(errors_m(source, ("knee",)).values()) < 0.01
    assert any(
        "gaps were bridged in 1 landmarks; the longest is 0.20 s, of the left lateral knee" in w
        for w in source.warnings
    )
    points["RASI"][:45] = np.nan
    cut = read(file, points)
    assert (len(cut), cut.start_s) == (75, pytest.approx(0.45))
    assert max(errors_m(cut, ("ankle", "wrist"), start=45).values()) < 1e-5
    assert any("seen from 0.45 to 1.19 s; the rest of the file's 1.19 s" in warning for warning in cut.warnings)


def test_seconds_are_those_of_the_file(file: Path):
    points = markers(walking())
    points["RASI"][:45] = np.nan
    write_c3d(file, points)
    assert len(load_motion(file, load_character(), time_range=(0.0, 0.65)).clip) == 21
    assert len(load_motion(file, load_character(), time_range=(0.55, 0.65)).clip) == 11
    with pytest.raises(MotionFileError, match=r"the file runs from 0\.45 to 1\.19 s"):
        load_motion(file, load_character(), time_range=(0.0, 0.4))


def test_a_bridge_does_not_overshoot():
    places = np.stack([np.array([0.0, 0.0, np.nan, np.nan, 1.0, 1.0])] * 3, axis=-1)
    filled = bridged(places, 2)
    assert np.all(np.diff(filled[:, 0]) >= 0.0)
    assert np.isnan(bridged(places, 1)).any()


def test_a_lower_body_is_enough_and_the_arms_hang(file: Path):
    keep = ("ASI", "PSI", "KNE", "KNM", "ANK", "MED", "TOE", "HEE")
    write_c3d(file, {label: place for label, place in markers(walking()).items() if label.endswith(keep)})
    character = load_character()
    motion = load_motion(file, character)
    assert any("the trunk stays upright, arms hang" in warning for warning in motion.warnings)
    known = {
        point.name
        for point, there in zip(
            character.evaluation_points, np.isfinite(motion.source_points).all(axis=(0, 2)), strict=True
        )
        if there
    }
    assert known == {"pelvis", *(f"{side}_{part}" for side in ("left", "right") for part in ("hip", "knee", "ankle"))}
    bent = motion.clip.angles[:, [character.hinge_names.index(f"{s}_shank.flexion") for s in ("left", "right")]]
    true = walking().angles[:, [character.hinge_names.index(f"{s}_shank.flexion") for s in ("left", "right")]]
    assert np.max(np.abs(bent - true)) < np.radians(2.0)
    arms = motion.clip.angles[:, [character.hinge_names.index(f"{s}_forearm.flexion") for s in ("left", "right")]]
    assert np.max(np.abs(arms)) < np.radians(6.0)


def test_one_of_several_subjects_is_taken_whole(file: Path):
    """None of Ann's markers stands in for one that Bob lacks."""
    bob = {f"Bob:{label}": place for label, place in markers(walking()).items() if label != "C7"}
    ann = {f"Ann:{label}": place + 3.0 for label, place in markers(walking()).items() if label[1:] != "ELB"}
    source = read(file, {**ann, **bob})
    assert max(errors_m(source, ("knee", "elbow")).values()) < 1e-5
    assert np.max(np.abs(source.positions[:, source.joint_names.index("neck"), 1:])) < 2500.0
    assert any("that of 'Bob' was taken; others: Ann" in warning for warning in source.warnings)


def test_what_is_missing_is_named_with_the_labels(file: Path):
    points = {label: place for label, place in markers(walking()).items() if not label.startswith("LKN")}
    with pytest.raises(MotionFileError, match=r"body\.c3d: no marker for left knee; the file's labels are: LASI, LPSI"):
        read(file, points)
    points = {label: place for label, place in markers(walking()).items() if not label.endswith("PSI")}
    with pytest.raises(MotionFileError, match=r"no marker for the hips \(both hips' centres, or LASI and RASI"):
        read(file, points)


def test_points_that_are_no_body_are_refused(file: Path):
    with pytest.raises(MotionFileError, match="fits no person in m, cm or mm"):
        read(file, {label: place * 37.0 for label, place in markers(walking()).items()})
    points = {label: place.copy() for label, place in markers(walking()).items()}
    points["LASI"][:60], points["RKNE"][60:] = np.nan, np.nan
    with pytest.raises(MotionFileError, match="never seen together"):
        read(file, points)


@needs_walk
def test_opensims_walk_is_read_as_another_library_reads_it():
    track, other = parse_c3d(WALK.read_bytes(), str(WALK), "walk"), ezc3d.c3d(str(WALK))
    labels = other["parameters"]["POINT"]["LABELS"]["value"]
    assert list(track.points) == labels
    places = np.stack(list(track.points.values()), axis=0).transpose(2, 0, 1)
    np.testing.assert_array_equal(places, other["data"]["points"][:3])


@needs_walk
def test_opensims_walk_is_retargeted_with_the_right_unit_axes_and_rate():
    character = load_character()
    motion = load_motion(WALK, character, time_range=(1.7, 2.5))
    assert (motion.kind, motion.unit, motion.up, motion.clip.fps) == ("c3d", "mm", "z", 250.0)
    assert motion.height == pytest.approx(1750.0, abs=60.0)
    assert motion.travels
    assert any("from 1.69 to 3.34 s" in warning for warning in motion.warnings)
    assert any("arms hang" in warning for warning in motion.warnings)
    assert motion.joints["left knee"] == "LKJC, LMFC, LLFC"
    assert motion.joints["left elbow"] == "not marked"
    shanks = [character.hinge_names.index(f"{side}_shank.flexion") for side in ("left", "right")]
    assert np.degrees(np.max(motion.clip.angles[:, shanks])) == pytest.approx(62.0, abs=12.0)  # a swing's knee


def test_mutated_files_give_a_motion_or_a_motion_file_error(file: Path):
    write_c3d(file, {label: place[:8] for label, place in markers(walking(8)).items()})
    data, rng, kinds = file.read_bytes(), np.random.default_rng(0), set()
    for number in range(1600):
        changed = bytearray(data)
        for place in rng.integers(0, min(len(data), 3000), rng.integers(1, 7)):
            changed[place] = rng.choice([0, 1, 127, 128, 255, int(rng.integers(0, 256))])
        if rng.random() < 0.3:
            changed = changed[: rng.integers(2, len(changed))]
        changed[1] = 0x50
        try:
            track = parse_c3d(bytes(changed), "body.c3d", "body")
            if number % 5 == 0:  # what follows is slower, and sees fewer kinds of damage
                assert np.all(np.isfinite(body_of(track).positions))
        except MotionFileError as error:
            kinds.add(str(error)[-20:])
    assert len(kinds) > 3, "the mutations reach more than the header"
