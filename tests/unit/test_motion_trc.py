"""TRC files and labels: keypoints of a known motion come back; units, axes, rates, noise; every marker set's names; bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bodies_in_points import joints, markers, trc_text, up_axis, walking

from mocap2ctrl.character import load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.formats import parse_motion
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.marker_body import body_of
from mocap2ctrl.motion.marker_names import landmarks
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.trc import parse_trc
from mocap2ctrl.types import Array

BALANCING = Path(__file__).resolve().parents[3] / "shared/data/reference3d/pose2sim_balancing_multiview_0-100.trc"
needs_balancing = pytest.mark.skipif(not BALANCING.is_file(), reason="the shared motion files are not here")
Y_UP = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
HALPE = {"hip": "Hip", "knee": "Knee", "ankle": "Ankle", "toe": "BigToe", "shoulder": "Shoulder", "elbow": "Elbow"}
HALPE |= {"wrist": "Wrist"}


def keypoints() -> dict[str, Array]:
    """HALPE's points of the walking body, y up, metres."""
    true = joints(walking())
    points = {f"{s[0].upper()}{name}": true[f"{s} {part}"] for part, name in HALPE.items() for s in ("left", "right")}
    return {name: place @ Y_UP.T for name, place in {**points, "Neck": true["neck"], "Head": true["head top"]}.items()}


def read(text: str) -> SourceMotion:
    return parse_motion(text.encode(), Path("body.trc"))


@pytest.mark.parametrize(("unit", "metres"), [("m", 1.0), ("cm", 0.01), ("mm", 0.001)])
def test_keypoints_are_joints_as_they_are(unit: str, metres: float):
    source = read(trc_text({name: place / metres for name, place in keypoints().items()}, unit=unit))
    assert (up_axis(source), source.unit_m, source.fps, source.warnings) == ("y", metres, 100.0, ())
    for part, name in HALPE.items():
        place = source.positions[:, source.joint_names.index(f"left {part}")] * metres
        np.testing.assert_allclose(place, keypoints()[f"L{name}"], atol=1e-6)


def test_a_unit_that_makes_no_person_is_not_believed():
    source = read(trc_text({name: place * 1000.0 for name, place in keypoints().items()}, unit="m"))
    assert source.unit_m == 0.001
    assert any("the file states 1 m, in which a leg is" in warning for warning in source.warnings)


def test_points_of_one_camera_are_no_motion():
    with pytest.raises(MotionFileError, match="all points lie in one plane, as those of one camera do"):
        read(trc_text({name: place * np.array([0.0, 1.0, 1.0]) for name, place in keypoints().items()}))


def test_axes_are_told_by_the_body():
    turned = {name: place @ Y_UP for name, place in keypoints().items()}
    assert up_axis(read(trc_text(turned))) == "z"
    below = read(trc_text({name: place * np.array([1.0, -1.0, -1.0]) for name, place in keypoints().items()}))
    assert up_axis(below) == "y"
    assert any("points down" in warning for warning in below.warnings)


def test_the_motion_comes_back_from_keypoints(tmp_path: Path):
    (tmp_path / "body.trc").write_text(trc_text(keypoints()))
    character = load_character()
    error = np.degrees(np.abs(load_motion(tmp_path / "body.trc", character).clip.angles - walking().angles))
    for hinge, mean in zip(character.hinge_names, error.mean(axis=0), strict=True):
        if (
            "foot" not in hinge and "head" not in hinge and "toes" not in hinge
        ):  # heels and faces are not among the points
            assert mean < 2.0, hinge


def test_noise_is_not_amplified(tmp_path: Path):
    rng, character = np.random.default_rng(0), load_character()
    clean, noisy = tmp_path / "clean.trc", tmp_path / "noisy.trc"
    clean.write_text(trc_text(keypoints()))
    noisy.write_text(trc_text({name: p + rng.normal(scale=0.003, size=p.shape) for name, p in keypoints().items()}))
    difference = load_motion(noisy, character).clip.angles - load_motion(clean, character).clip.angles
    hinges = [i for i, name in enumerate(character.hinge_names) if "foot" not in name and "toes" not in name]
    # 3 mm across a bone of 20 cm are 0.9 degrees; about a limb's own axis its bend is the lever.
    assert np.degrees(np.sqrt(np.mean(difference[:, hinges] ** 2))) < 2.0


def test_jitter_is_told():
    rng = np.random.default_rng(1)
    source = read(trc_text({name: p + rng.normal(scale=0.01, size=p.shape) for name, p in keypoints().items()}))
    assert any("jitter by about 10 mm" in warning for warning in source.warnings)


@needs_balancing
def test_pose2sims_file_is_retargeted_well():
    character = load_character()
    motion = load_motion(BALANCING, character)
    assert (motion.kind, motion.unit, motion.up, motion.clip.fps, len(motion.clip)) == ("trc", "m", "y", 60.0, 100)
    assert motion.warnings == ()
    assert motion.height == pytest.approx(1.68, abs=0.05)
    errors = motion.joint_errors_cm
    assert set(errors) == {point.name.replace("_", " ") for point in character.evaluation_points}
    assert np.mean([mean for mean, _ in errors.values()]) < 6.0


def test_empty_cells_and_points_at_the_origin_are_gaps():
    points = keypoints()
    points["LKnee"][20:25], points["RKnee"][40:44] = np.nan, 0.0
    track = parse_trc(trc_text(points), "body.trc", "body")
    assert np.flatnonzero(np.isnan(track.points["LKnee"][:, 0])).tolist() == [20, 21, 22, 23, 24]
    assert np.flatnonzero(np.isnan(track.points["RKnee"][:, 0])).tolist() == [40, 41, 42, 43]
    assert len(read(trc_text(points))) == 120


def test_rates_that_disagree_are_told():
    text = trc_text(keypoints()).replace("100\t100\t120", "60\t60\t120", 1)
    track = parse_trc(text, "body.trc", "body")
    assert track.fps == pytest.approx(100.0)
    assert any("by its header 60; the times were used" in warning for warning in track.warnings)
    short = parse_trc(trc_text(keypoints()).replace("100\t100\t120", "100\t100\t119", 1), "body.trc", "body")
    assert any("NumFrames 119, but 120 rows follow" in warning for warning in short.warnings)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("Bob:LASI Bob:RPSI Bob:LKNE Bob:RANK", "left asis, right psis, left lateral knee, right lateral ankle"),
        ("R.ASIS V.Sacral R.Knee.Lat L.Ankle.Med", "right asis, sacrum, right lateral knee, left medial ankle"),
        ("R.Acromium r_calc_study RHJC_study", "right acromion, right heel, right hip"),
        ("r.ASIS_study r_knee_study r_mknee_study", "right asis, right lateral knee, right medial knee"),
        ("LKnee L_knee_study L_shoulder_study", "left knee, left lateral knee, left acromion"),
        ("LKNM LMED RHEE LD5M RSMH", "left medial knee, left medial ankle, right heel, left lateral toe, right toe"),
        ("left_hip right_knee Left-Ankle", "left hip, right knee, left ankle"),
        ("LMMAL LLMAL RLFC", "left medial ankle, left lateral ankle, right lateral knee"),
        ("LTH1 RTB2 C7 STRN Unlabelled7 *12", "c7, sternum"),
    ],
)
def test_labels_of_the_usual_sets(labels: str, expected: str):
    assert ", ".join(landmarks(labels.split())) == expected


def test_a_rate_is_not_that_of_rounded_times():
    text = trc_text(keypoints(), fps=60.0)
    rows = text.splitlines()
    times = [f"{float(row.split(chr(9))[1]):.3f}" for row in rows[5:]]
    rows[5:] = [
        chr(9).join([row.split(chr(9))[0], time, *row.split(chr(9))[2:]])
        for row, time in zip(rows[5:], times, strict=True)
    ]
    track = parse_trc("\n".join(rows), "body.trc", "body")
    assert (track.fps, track.warnings) == (60.0, ())


def test_opencaps_knee_is_the_lateral_marker():
    points = markers(walking())
    names = {"KNE": "knee", "KNM": "mknee", "ANK": "ankle", "MED": "mankle"}
    points = {f"{k[0].lower()}_{names[k[1:]]}_study" if k[1:] in names else k: v for k, v in points.items()}
    source = read(trc_text(points))
    for part in ("knee", "ankle"):
        place = source.positions[:, source.joint_names.index(f"left {part}")]
        np.testing.assert_allclose(place, joints(walking())[f"left {part}"], atol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("\tm\t", "\tfurlong\t", "line 3: Units 'furlong'; allowed are m, "),
        ("RHip", "LHip", "line 4: the label 'LHip' is given twice"),
        ("\n5\t0.040000\t", "\n5\t0.030000\t", "time 0.03 s follows 0.03 s; rows must go on"),
        ("\n5\t0.040000\t", "\n5\t\t", "line 10: a row without frame number and time"),
        ("\n5\t0.040000\t", "\n5\t0.040000\tx", "line 10: 'x"),
        ("\n5\t0.040000\t", "\n5\t0.040000\t1e300\t", "line 10: "),
        ("PathFileType", "PathFileType\n", "values for the|line 4"),
        ("LHip", "LFlipper", r"no marker for the hips .*; the file's labels are: LFlipper, RHip"),
    ],
)
def test_damaged_files_are_refused(old: str, new: str, cause: str):
    with pytest.raises(MotionFileError, match=cause):
        read(trc_text(keypoints()).replace(old, new, 1))


def test_mutated_files_give_a_motion_or_a_motion_file_error():
    text = trc_text({name: place[:6] for name, place in keypoints().items()})
    rng = np.random.default_rng(0)
    junk = ["", "nan", "inf", "1e999", "\t", "\n", "-1", "0", "x", "9" * 40, "\x00", "٣", "m", "1e6"]
    refused = 0
    for number in range(1500):
        words = text.split("\t")
        # Half of the mutations in the header, half in the rows.
        for place in rng.integers(0, len(words) if rng.random() < 0.5 else 60, rng.integers(1, 4)):
            words[place] = junk[rng.integers(0, len(junk))]
        changed = "\t".join(words)
        try:
            changed = changed[: rng.integers(12, len(changed))] if rng.random() < 0.2 else changed
            track = parse_trc(changed, "body.trc", "body")
            if number % 5 == 0:  # what follows is slower, and sees fewer kinds of damage
                assert np.all(np.isfinite(body_of(track).positions))
        except MotionFileError as error:
            message = str(error)
            refused += 1
        else:
            continue
        assert message.startswith("body.trc")
        assert "\n" not in message
    assert 100 < refused < 1500
