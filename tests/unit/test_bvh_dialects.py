"""The same person in every dialect of BVH: the motion that is read is the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bvh_dialects import FPS, FRAMES, NAMES, PARTS_OF_BODY, Dialect, all_axes, positions
from scipy.spatial.transform import Rotation

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, MotionFileError
from mocap2ctrl.motion.bvh import parse_bvh, read_bvh
from mocap2ctrl.motion.calibration import calibration_frames
from mocap2ctrl.motion.clips import mirror
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.motion.names import map_joints
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.stated import Stated
from mocap2ctrl.motion.text import decoded

SIX = "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"
PROP = f"ROOT Stick\n{{\nOFFSET 0 0 0\n{SIX}\nEnd Site\n{{\nOFFSET 0 0 90\n}}\n}}\n"


def edit(*pairs: tuple[str, str]) -> Dialect:
    """The plain file with regular expressions replaced, each of which must occur."""

    def replace(text: str) -> str:
        for pattern, new in pairs:
            text, count = re.subn(pattern, new, text)
            assert count, pattern
        return text

    return Dialect(text=replace)


def last_row_twice(text: str) -> str:
    return text + text.splitlines()[-1] + "\n"


def broken_rows(text: str) -> str:
    head, rows = text[: text.index("Frame Time")], text[text.index("Frame Time") :].splitlines()
    return head + "\n".join([rows[0], *(word for row in rows[1:] for word in row.split())]) + "\n"


def scaled(text: str) -> str:
    """The root has three more channels, which say 1."""
    head, rows = text[: text.index("Frame Time")], text[text.index("Frame Time") :].splitlines()
    head = re.sub(r"CHANNELS 6 ([^\n]*)", r"CHANNELS 9 \1 Xscale Yscale Zscale", head, count=1)
    return head + "\n".join([rows[0], *(" ".join([*r.split()[:6], "1", "1", "1", *r.split()[6:]]) for r in rows[1:])])


DIALECTS: dict[str, Dialect] = {
    "plain": Dialect(),
    "three channels everywhere": Dialect(channels=all_axes),
    "six channels everywhere": Dialect(channels=lambda name, axes: "XYZzxy"),
    "rotation before position": Dialect(channels=lambda name, axes: "zxyXYZ"),
    "positions in another order": Dialect(channels=lambda name, axes: "ZXYyxz" if name == "hips" else "yxz"),
    "positions between rotations": Dialect(channels=lambda name, axes: "zXxYyZ" if name == "hips" else "xyz"),
    "another order in every joint": Dialect(
        channels=lambda name, axes: (
            ("XYZ" if name == "hips" else "") + ["xyz", "xzy", "yxz", "yzx", "zxy", "zyx"][NAMES.index(name) % 6]
        )
    ),
    "no End Sites": Dialect(tips=False),
    "CHANNELS left out where there are none": edit((r"\n *CHANNELS 0(?=\n)", "")),
    "CHANNELS that count wrong": edit((r"CHANNELS [13] ", "CHANNELS 2 "), ("CHANNELS 6", "CHANNELS 5")),
    "CHANNELS without a count": edit((r"CHANNELS [1-6] ", "CHANNELS ")),
    "channels on a line of their own": edit((r"(CHANNELS [1-6]) ", r"\1\n")),
    "scientific notation": Dialect(number="%.12e"),
    "no zero before the point": Dialect(text=lambda text: re.sub(r"(?<![\d.])0\.", ".", text)),
    "tabs": edit(("  ", "\t"), (" ", " \t ")),
    "CRLF": Dialect(text=lambda text: text.replace("\n", "\r\n")),
    "old Mac line ends": Dialect(text=lambda text: text.replace("\n", "\r")),
    "no final line end": Dialect(text=str.rstrip),
    "empty lines": Dialect(text=lambda text: text.replace("\n", "\n \n\n")),
    "padding of old systems": Dialect(text=lambda text: text + "\x1a\x00\x00"),
    "comments": Dialect(text=lambda text: "# by a program\n" + text.replace("\nMOTION", " # tree\n// now\nMOTION") + "; end\n"),
    "comments behind numbers": edit((r"(OFFSET [^\n]*)", r"\1 # cm"), (r"(Frame Time[^\n]*\n[^\n]*)", r"\1 // first")),
    "braces on the line": edit((r"\n *\{", " {")),
    "braces without a gap": edit((r"\n *\{", "{")),
    "all on few lines": Dialect(text=lambda text: text[: text.index("MOTION")].replace("\n", " ") + text[text.index("MOTION") :]),
    "upper case": edit(["position", "POSITION"], ["rotation", "ROTATION"], ("Frames", "FRAMES"), ("End Site", "END SITE")),
    "lower case": edit(*((word, word.lower()) for word in ["HIERARCHY", "ROOT", "JOINT", "OFFSET", "CHANNELS", "MOTION", "Frame"])),
    "short channel names": edit(("position", "pos"), ("rotation", "rot")),
    "EndSite": edit(("End Site", "EndSite")),
    "quoted names": edit((r"(ROOT|JOINT) ([^\n]+)", r'\1 "\2"')),
    "decimal commas": Dialect(text=lambda text: re.sub(r"(?<=\d)\.(?=\d)", ",", text)),
    "commas between numbers": edit((r"(?<=\d) (?=-?\d)", ", ")),
    "Frame Time first": Dialect(text=lambda text: re.sub(r"(Frames: \d+)\n(Frame Time: \S+)", r"\2\n\1", text)),
    "header without colons": edit(("Frames:", "Frames"), ("Frame Time:", "Frame  Time")),
    "header on one line": edit((r"MOTION\n(Frames: \d+)\n", r"MOTION \1 ")),
    "header values on the next line": edit((r"(Frames:|Frame Time:) ", r"\1\n")),
    "FrameTime": edit(("Frame Time:", "FrameTime =")),
    "a unit behind Frame Time": edit((r"(Frame Time: \S+)", r"\1 seconds")),
    "Frames left out": edit((r"Frames: \d+\n", "")),
    "Frames too large by one": edit((f"Frames: {FRAMES}", f"Frames: {FRAMES + 1}")),
    "Frames too small by one": edit((f"Frames: {FRAMES}", f"Frames: {FRAMES - 1}")),
    "frames broken over lines": Dialect(text=broken_rows),
    "all on one line": Dialect(text=lambda text: " ".join(text.split())),
    "scale channels": Dialect(text=scaled),
    "a prop behind": Dialect(after=(PROP, "1 2 3 0 0 0")),
    "a prop in front": Dialect(before=(PROP, "1 2 3 0 0 0")),
}  # fmt: skip
"""What is written differently, the motion being the same to the last digit of the file."""


def parse(dialect: Dialect) -> SourceMotion:
    return parse_bvh(decoded(dialect.write().encode()), "f.bvh", "f")


def places(source: SourceMotion) -> np.ndarray:
    """(T, joints, 3) of our joints."""
    return source.positions[:, [source.joint_names.index(name) for name in NAMES]]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_is_the_same_motion(name: str) -> None:
    source = parse(DIALECTS[name])
    assert source.fps == FPS
    assert source.rate_doubt == ""
    np.testing.assert_allclose(places(source), positions(), atol=1e-5)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_every_encoding_is_the_same_motion(encoding: str, tmp_path: Path) -> None:
    dialect = Dialect(names={"hips": "Hüfte", "left thigh": "Oberschenkel links"})
    (tmp_path / "f.bvh").write_bytes(dialect.write().encode(encoding))
    source = read_bvh(tmp_path / "f.bvh")
    np.testing.assert_allclose(source.positions[:, : len(NAMES)][:, 0], positions()[:, 0], atol=1e-5)
    assert source.joint_names[0] == ("Hüfte" if encoding != "latin-1" else "H\ufffdfte")
    assert "Oberschenkel links" in source.joint_names


def test_joints_of_one_name_and_without_a_name_are_told_apart() -> None:
    source = parse(edit((r"(left|right) toe", "toe"), (r"JOINT (left|right) clavicle", "JOINT")))
    assert [name for name in source.joint_names if name.startswith(("toe", "joint"))] == [
        "joint 7", "toe", "toe:tip", "toe#2", "toe:tip#2",
    ] or {"toe", "toe#2"} <= set(source.joint_names)  # fmt: skip
    np.testing.assert_allclose(source.positions[:, [0]], positions()[:, [0]], atol=1e-5)


@pytest.mark.parametrize(
    ("dialect", "says"),
    [
        ("CHANNELS that count wrong", "line 5: CHANNELS of 'hips' are said to be 5, but 6 are named"),
        ("Frames left out", f"the header does not say Frames; {FRAMES} rows follow"),
        ("Frames too large by one", f"the header says Frames: {FRAMES + 1}, but {FRAMES} rows follow; all are used"),
        ("Frames too small by one", f"the header says Frames: {FRAMES - 1}, but {FRAMES} rows follow and carry on the motion"),
        ("decimal commas", "decimal commas"),
        ("scale channels", "the scale channels of hips are left out"),
    ],
)  # fmt: skip
def test_what_is_overlooked_is_said(dialect: str, says: str) -> None:
    assert says in " ".join(parse(DIALECTS[dialect]).warnings)


def test_what_is_written_well_is_not_warned_about() -> None:
    loud = {"CHANNELS that count wrong", "decimal commas", "scale channels"}
    loud |= {name for name in DIALECTS if name.startswith("Frames ")}
    assert [name for name, dialect in DIALECTS.items() if name not in loud and parse(dialect).warnings] == []


# What the rows of a file say about a header that disagrees with them.
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[: text.rindex("\n", 0, -1) - 40], "the file is truncated, copy it again or remove this row"),
        (lambda text: text.replace(f"Frames: {FRAMES}", "Frames: 40"), f"write Frames: {FRAMES} to use what is there"),
        (lambda text: text.replace(f"Frames: {FRAMES}", "Frames: 1"), "more rows of motion than the header says (Frames: 1)"),
        (lambda text: text + text[text.index("Frame Time") :].split("\n", 1)[1].replace(" 9", " 4"), "more rows of motion"),
        (lambda text: text.replace("CHANNELS 3 Z", "CHANNELS 4 Yposition Z"), "so it is in every frame: CHANNELS"),
        (lambda text: text[: text.index("Frame Time")] + "Frame Time: 0.02\n", "no rows of motion follow"),
        (lambda text: text.replace("Frames: 12", "Frames: twelve"), "'Frames: <number>' and 'Frame Time: <seconds>'"),
    ],
)  # fmt: skip
def test_rows_that_contradict_the_header_are_refused(change: Callable[[str], str], says: str) -> None:
    with pytest.raises(MotionFileError, match=re.escape(says)) as caught:
        parse(Dialect(text=change))
    assert re.match(r"f\.bvh, line \d+: ", str(caught.value))


def test_position_channels_of_zeros_do_not_swallow_the_offsets() -> None:
    plain = Dialect(channels=lambda name, axes: "XYZzxy").write()
    head, rows = plain[: plain.index("Frame Time")], plain[plain.index("Frame Time") :].splitlines()
    zeroed = []
    for row in rows[1:]:
        values = row.split()
        for start in range(6, len(values), 6):
            values[start : start + 3] = ["0", "0", "0"]
        zeroed.append(" ".join(values))
    source = parse_bvh(head + "\n".join([rows[0], *zeroed]), "f.bvh", "f")
    np.testing.assert_allclose(places(source), positions(), atol=1e-5)
    assert "their OFFSET was taken" in source.warnings[0]


@pytest.mark.parametrize(
    ("frame_time", "meant"),
    [
        ("1", ""),
        ("0", ""),
        ("-0.02", ""),
        ("60", "perhaps 60 fps were meant"),
        ("33.333", "perhaps 33.333 ms were meant, which are 30 fps"),
    ],
)
def test_a_rate_that_cannot_be_true_is_asked_for(
    character: Character, tmp_path: Path, frame_time: str, meant: str
) -> None:
    path = tmp_path / "f.bvh"
    path.write_text(edit((r"Frame Time: \S+", f"Frame Time: {frame_time}")).write())
    with pytest.raises(MotionFileError, match="--fps 60") as caught:
        load_motion(path, character)
    assert meant in str(caught.value)
    motion = load_motion(path, character, stated=Stated(fps=FPS))
    assert motion.clip.fps == FPS
    assert "rate" in motion.said


def test_a_missing_frame_time_is_asked_for(character: Character, tmp_path: Path) -> None:
    (tmp_path / "f.bvh").write_text(edit((r"Frame Time: \S+\n", "")).write())
    with pytest.raises(MotionFileError, match=r"f.bvh, line \d+: no Frame Time follows; .* --fps"):
        load_motion(tmp_path / "f.bvh", character)


def test_a_rate_that_can_be_true_is_the_file_s(character: Character, tmp_path: Path) -> None:
    (tmp_path / "f.bvh").write_text(Dialect().write())
    assert load_motion(tmp_path / "f.bvh", character, stated=Stated(fps=25.0)).clip.fps == FPS


X_UP = Rotation.from_matrix([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
TURNS = {
    "y": Rotation.identity(),
    "z": Rotation.from_euler("x", 90, degrees=True),
    "x": X_UP,
    "-y": Rotation.from_euler("x", 180, degrees=True),
    "-z": Rotation.from_euler("x", -90, degrees=True),
}


@pytest.mark.parametrize("rest", [True, False])
@pytest.mark.parametrize(
    ("unit", "centimetres", "up", "facing"),
    [
        ("cm", 1.0, "y", "+z"),
        ("m", 100.0, "z", "-y"),
        ("mm", 0.1, "x", "+y"),
        ("inch", 2.54, "-y", "-z"),
        ("ft", 30.48, "-z", "+y"),
        ("cmu", 2.54 / 0.45, "y", "+z"),
    ],
)
def test_units_and_axes_are_inferred(
    character: Character, tmp_path: Path, unit: str, centimetres: float, up: str, facing: str, rest: bool
) -> None:
    """The whole skeleton in other axes, its rest pose too, or only the root's motion."""
    if up == "-y" and not rest:
        pytest.skip("a rest pose along y and a motion along -y is a handstand")
    path, plain = tmp_path / "f.bvh", tmp_path / "plain.bvh"
    turn = {"turn_rest" if rest else "turn": TURNS[up]}
    path.write_text(Dialect(channels=all_axes, unit=centimetres, **turn).write())
    plain.write_text(Dialect().write())
    motion, expected = load_motion(path, character), load_motion(plain, character)
    assert (motion.unit, motion.up, motion.facing, motion.said) == (unit, up, facing, frozenset())
    assert motion.unit_m == pytest.approx(centimetres / 100.0)
    np.testing.assert_allclose(motion.clip.root_position[:, :2], expected.clip.root_position[:, :2], atol=1e-3)
    np.testing.assert_allclose(motion.clip.root_position[:, 2], expected.clip.root_position[:, 2], atol=0.02)


def test_a_given_unit_and_axis_are_taken(character: Character, tmp_path: Path) -> None:
    path = tmp_path / "f.bvh"
    path.write_text(Dialect().write())
    motion = load_motion(path, character, stated=Stated(unit="0.0105", up="y"))
    assert (motion.unit_m, motion.up, motion.said) == (0.0105, "y", {"unit", "up"})
    assert motion.warnings == ()
    giant = load_motion(path, character, stated=Stated(unit="m"))
    assert "the body is 173 m tall; leave --unit out" in giant.warnings[0]
    for up in ("x", "-y", "z"):
        wrong = load_motion(path, character, stated=Stated(up=up))
        assert wrong.up == up
        assert f"the up axis that was given, {up}, the body does not stand: it seems to along y" in wrong.warnings[0]
    with pytest.raises(ConfigError, match=r"'furlong'; allowed are m, ft, .* or its metres"):
        load_motion(path, character, stated=Stated(unit="furlong"))
    with pytest.raises(ConfigError, match="'w'; allowed are x, y, z, -x, -y, -z"):
        load_motion(path, character, stated=Stated(up="w"))


def test_somebody_who_crawls_does_not_make_the_way_the_up_axis(character: Character, tmp_path: Path) -> None:
    """The body lies along its way, forward, as it would in a crawl; its rest pose stands along y."""
    lying = Dialect(channels=all_axes, turn=Rotation.from_euler("x", 90, degrees=True)).write()
    head, rows = lying[: lying.index("Frame Time")], lying[lying.index("Frame Time") :].splitlines()
    moved = []
    for i, row in enumerate(rows[1:]):
        values = row.split()
        values[:3] = ["0", "20", f"{20 * i}"]
        moved.append(" ".join(values))
    (tmp_path / "f.bvh").write_text(head + "\n".join([rows[0], *moved]))
    assert load_motion(tmp_path / "f.bvh", character).up == "y"


@pytest.mark.parametrize(("before", "after"), [((PROP, "1 2 3 0 0 0"), ("", "")), (("", ""), (PROP, "1 2 3 0 0 0"))])
def test_the_person_is_told_from_a_prop(
    character: Character, tmp_path: Path, before: tuple[str, str], after: tuple[str, str]
) -> None:
    (tmp_path / "f.bvh").write_text(Dialect(before=before, after=after).write())
    motion = load_motion(tmp_path / "f.bvh", character)
    assert motion.joints["pelvis"] == motion.carrier == "hips"
    assert "'hips' is taken for the person, without 'Stick'" in motion.warnings[0]


def test_of_two_people_the_first_is_taken_unless_a_map_names_the_other(character: Character, tmp_path: Path) -> None:
    """The second stands five metres beside the first, under the same names."""
    body, rows = Dialect().write().removeprefix("HIERARCHY\n").split("MOTION\n")
    head, lines = rows.splitlines()[:2], rows.splitlines()[2:]
    both = [f"{row} {float(row.split()[0]) + 500} {' '.join(row.split()[1:])}" for row in lines]
    path = tmp_path / "f.bvh"
    path.write_text("\n".join([f"HIERARCHY\n{body}{body}MOTION", *head, *both]) + "\n")
    first = load_motion(path, character)
    assert "the file holds 2 skeletons; 'hips' is taken for the person, without 'hips#2'" in first.warnings[0]
    second = load_motion(path, character, stated=Stated(joint_map={"pelvis": "hips#2"}))
    assert second.joints["left knee"] == "left shin#2"
    np.testing.assert_allclose(second.clip.root_position, first.clip.root_position, atol=1e-6)


def test_a_prop_below_the_same_root_is_not_the_person(character: Character, tmp_path: Path) -> None:
    """It stands in front of the hips, and jumps after the first frame."""
    body, rows = Dialect().write().removeprefix("HIERARCHY\nROOT hips").split("MOTION\n")
    prop = PROP.replace("ROOT", "JOINT")
    lines = rows.splitlines()
    moved = [f"{900 * (i > 0) + i} 0 0 0 0 0 {row}" for i, row in enumerate(lines[2:])]
    text = f"HIERARCHY\nROOT Reference\n{{\nOFFSET 0 0 0\nCHANNELS 0\n{prop}JOINT hips{body}}}\nMOTION\n"
    (tmp_path / "f.bvh").write_text(text + "\n".join([*lines[:2], *moved]) + "\n")
    motion = load_motion(tmp_path / "f.bvh", character)
    assert (motion.carrier, len(motion.clip), motion.warnings) == ("hips", FRAMES, ())


@pytest.mark.parametrize("carrier", ["hips", "Reference"])
def test_the_joint_that_travels_may_be_another_than_the_root(
    character: Character, tmp_path: Path, carrier: str
) -> None:
    """A root at rest above hips that travel; a root that travels above hips that only turn."""
    plain = Dialect().write()
    opening = f"ROOT Reference\n{{\nOFFSET 0 0 0\n{SIX if carrier == 'Reference' else 'CHANNELS 0'}\n"
    body, rows = plain.split("MOTION\n")
    lines = rows.splitlines()
    if carrier == "Reference":  # the root's position goes up one level, its turns stay
        body = body.replace(SIX, "CHANNELS 3 Zrotation Xrotation Yrotation")
        body = re.sub(r"OFFSET \S+ \S+ \S+", "OFFSET 0 0 0", body, count=1)
        lines[2:] = [" ".join([*row.split()[:3], "0", "0", "0", *row.split()[3:]]) for row in lines[2:]]
    body = body.replace("HIERARCHY\nROOT", f"HIERARCHY\n{opening}JOINT") + "}\n"
    (tmp_path / "plain.bvh").write_text(plain)
    (tmp_path / "f.bvh").write_text(body + "MOTION\n" + "\n".join(lines) + "\n")
    motion, expected = load_motion(tmp_path / "f.bvh", character), load_motion(tmp_path / "plain.bvh", character)
    assert (motion.carrier, motion.joints["pelvis"]) == (carrier, "hips")
    np.testing.assert_allclose(motion.clip.root_position, expected.clip.root_position, atol=1e-6)


@pytest.mark.parametrize(("count", "says"), [(1, "the first frame is"), (4, "the first 4 frames are")])
@pytest.mark.parametrize("far_cm", [0.0, 500.0])
def test_calibration_poses_in_front_are_left_out(
    character: Character, tmp_path: Path, count: int, says: str, far_cm: float
) -> None:
    plain = Dialect().write()
    head, rows = plain[: plain.index("Frame Time")], plain.splitlines()[-FRAMES:]
    pose = ["0"] * len(rows[0].split())
    pose[:3] = [f"{far_cm}", "95", "-200"]
    text = head.replace(f"Frames: {FRAMES}", f"Frames: {FRAMES + count}") + f"Frame Time: {1 / FPS}\n"
    (tmp_path / "f.bvh").write_text(text + "\n".join([" ".join(pose)] * count + rows) + "\n")
    motion = load_motion(tmp_path / "f.bvh", character)
    assert len(motion.clip) == FRAMES
    assert f"{says} a calibration pose" in motion.warnings[0]


@pytest.mark.parametrize(("angle", "dropped"), [(90, 1), (45, 0)])
def test_a_t_pose_is_told_by_its_shape_among_steps_that_are_nearly_as_large(angle: int, dropped: int) -> None:
    """Half a metre a frame; the rest pose has the arms down. Arms that slant are no T-pose, and the jump alone is too small."""
    dialect = Dialect(channels=all_axes)
    names = [name for name, *_ in dialect._ordered() for _ in dialect.channels(name, "")]
    pose = ["0"] * len(names)
    pose[1] = "95"
    for side, sign in (("left", 1), ("right", -1)):
        pose[names.index(f"{side} upper arm")] = str(sign * angle)
    text = dialect.write().replace(f"Frames: {FRAMES}", f"Frames: {FRAMES + 1}")
    head, rows = text.splitlines()[:-FRAMES], [row.split() for row in text.splitlines()[-FRAMES:]]
    fast = [" ".join([*row[:2], str(50 * (i + 1)), *row[3:]]) for i, row in enumerate(rows)]
    source = parse_bvh("\n".join([*head, " ".join(pose), *fast]) + "\n", "f.bvh", "f")
    assert calibration_frames(source, map_joints(source, "f")) == dropped


def test_hostile_sizes_are_refused_before_they_cost_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    joints = 1500
    wide = "JOINT a\n{\nOFFSET 0 0 0\n}\n" * joints
    text = f"HIERARCHY\nROOT r\n{{\nOFFSET 0 0 0\nCHANNELS 1 Xposition\n{wide}}}\nMOTION\nFrames: 900000000\nFrame Time: 0.01\n"
    monkeypatch.setattr("mocap2ctrl.motion.bvh_frames.MAX_POSES", joints * 10)
    with pytest.raises(MotionFileError, match="more than 9 frames of 1501 joints; cut the file"):
        parse_bvh(text + "0\n" * 1000, "f.bvh", "f")
    monkeypatch.setattr("mocap2ctrl.motion.bvh.MAX_CHARACTERS", 1000)
    with pytest.raises(MotionFileError, match="cut the file"):
        parse_bvh(text, "f.bvh", "f")


@pytest.mark.parametrize(
    ("channels", "up"), [(Dialect().channels, "y"), (all_axes, "y"), (all_axes, "z"), (all_axes, "x"), (all_axes, "-z")]
)
def test_left_handed_axes_are_told_from_right_handed_ones(
    character: Character, tmp_path: Path, channels: Callable[[str, str], str], up: str
) -> None:
    """A person who turns right in a left-handed file is no person who turns left."""
    left, right = tmp_path / "left.bvh", tmp_path / "right.bvh"
    left.write_text(Dialect(channels=channels, left_handed=True, turn_rest=TURNS[up]).write())
    right.write_text(Dialect(channels=all_axes, turn_rest=TURNS[up]).write())
    motion, expected = load_motion(left, character), load_motion(right, character)
    assert "the axes were taken for left-handed ones" in motion.warnings[0]
    assert motion.up[-1] == expected.up[-1] == up[-1]
    assert motion.facing == expected.facing
    np.testing.assert_allclose(motion.clip.root_position, expected.clip.root_position, atol=1e-4)
    np.testing.assert_allclose(motion.clip.angles, expected.clip.angles, atol=1e-3)
    other = {"left": "right", "right": "left"}
    exchanged = {part: re.sub("left|right", lambda m: other[m[0]], joint) for part, joint in PARTS_OF_BODY.items()}
    told = load_motion(left, character, stated=Stated(joint_map=exchanged))
    assert told.warnings == ()
    image = mirror(expected.clip, character)
    np.testing.assert_allclose(told.clip.angles, image.angles, atol=1e-3)


def test_sides_that_contradict_knees_or_feet_are_noticed(character: Character, tmp_path: Path) -> None:
    """Exchanged names, as a left-handed file would have them; then with legs straight, so that only the feet tell."""
    other = {"left": "right", "right": "left"}
    exchanged = {name: re.sub("left|right", lambda m: other[m[0]], name) for name in NAMES}
    text = Dialect(names=exchanged).write()
    (tmp_path / "f.bvh").write_text(text)
    assert "the knees bend forwards" in load_motion(tmp_path / "f.bvh", character).warnings[0]
    rows = text.splitlines()
    still = [" ".join(["0", "95", "0", *["0"] * (len(row.split()) - 3)]) for row in rows[-FRAMES:]]
    (tmp_path / "f.bvh").write_text("\n".join([*rows[:-FRAMES], *still]) + "\n")
    assert "the feet point backwards: left and right, or" in load_motion(tmp_path / "f.bvh", character).warnings[0]
    (tmp_path / "f.bvh").write_text("\n".join([*Dialect().write().splitlines()[:-FRAMES], *still]) + "\n")
    assert load_motion(tmp_path / "f.bvh", character).warnings == ()
