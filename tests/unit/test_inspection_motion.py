"""What an inspection says of motion files: a written motion comes back without error, other programs' files as they are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from porch import motion
from test_report_html import parse

from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, MotionFileError
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.npz import write_motion
from mocap2ctrl.report import inspection_motion
from mocap2ctrl.report.inspection import Inspection

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "bvh"


@pytest.fixture(scope="module")
def own(character: Character, tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    """A body that slides half a metre a second, as a BVH of its own skeleton."""
    path = tmp_path_factory.mktemp("own") / "slide.bvh"
    write_bvh(path, motion(character, 1.6), character)
    return api.inspect(path)


def test_own_skeleton_comes_back_in_its_place(own: Inspection, character: Character) -> None:
    said = json.loads(json.dumps(own.summary(), allow_nan=False))
    assert (said["kind"], said["unit"], said["up"], said["fps"], said["frames"]) == ("bvh", "cm", "y", 25.0, 41)
    assert (said["travels"], said["usable"], said["error"]) == (True, True, None)
    assert said["standing_height"] == pytest.approx(100.0 * character.height_m, rel=0.03)
    assert said["retarget_error_cm"] < 1.5
    assert said["joints"]["left knee"] == "LeftLeg"
    assert set(said["retarget_errors_cm"]) >= {"left knee", "right wrist", "head"}


def test_page_of_a_motion_holds_joints_and_figures(own: Inspection) -> None:
    page = parse(own.html())
    text = " ".join(page.text)
    for words in ("slide", "LeftLeg", "left knee", "BVH", "Contacts with the ground", "planted", "mocap2ctrl fit"):
        assert words in text
    assert all(link.startswith("data:image/") for link in page.links)
    assert len(own.figures) == 4


@pytest.mark.parametrize(
    ("name", "unit", "up", "travels", "fps"),
    [
        ("run_games105_m_yup", "m", "y", True, 60.0),
        ("stand_idle_games105", "m", "y", False, 60.0),
        ("walk_mixamo_3ch_colon_names", "cm", "y", None, 30.0),
        ("jump_forward_fair1_zup_inch", "inch", "z", True, 119.9),
    ],
)
def test_other_programs_files_are_understood(name: str, unit: str, up: str, travels: bool | None, fps: float) -> None:
    file = SHARED / f"{name}.bvh"
    if not file.exists():
        pytest.skip(f"{file.name} of the shared data is not beside the project")
    seen = api.inspect(file, time_range=(0.0, 3.0))
    assert (seen.kind, seen.unit, seen.up) == ("bvh", unit, up)
    assert seen.fps == pytest.approx(fps, rel=1e-3)
    assert travels is None or seen.travels == travels
    assert seen.values["retarget_error_cm"] < 8.0
    assert seen.values["limb_error_cm"] < 2.0
    feet = seen.values["feet"]
    assert feet["slide_cm_s"] < 1.0
    assert feet["height_mm"] < 2.0
    assert all(0.0 <= a <= b <= 3.01 for spans in feet["contacts_s"].values() for a, b in spans)


@pytest.mark.parametrize("name", ["bad_merge_conflict"])
def test_malformed_files_are_refused(name: str) -> None:
    file = SHARED / "malformed" / f"{name}.bvh"
    if not file.exists():
        pytest.skip(f"{file.name} of the shared data is not beside the project")
    with pytest.raises(MotionFileError, match=name):
        api.inspect(file)


def test_options_of_videos_are_refused(own: Inspection) -> None:
    with pytest.raises(ConfigError, match="--camera goes with videos"):
        api.inspect("walk.bvh", camera="c.toml")


def test_command_repeats_what_was_asked(tmp_path: Path, character: Character) -> None:
    path = tmp_path / "a b.bvh"
    write_bvh(path, motion(character, 0.8), character)
    seen = api.inspect(path, time_range=(0.0, 0.4), height_m=1.6)
    assert seen.command == f"mocap2ctrl fit '{path}' --time-range 0 0.4 --height 1.6"
    assert seen.frames == 11
    assert np.isclose(seen.duration_s or 0.0, 0.4)


def test_times_are_those_of_the_files_own_clock(
    tmp_path: Path, character: Character, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that begins at 1.5 s, standing still, and a part of it: start, contacts and plot, whatever the range said."""
    still, shown, labels = motion(character, 0.0), [], []
    count = 31
    clip = replace(
        still,
        root_position=np.tile(character.zero_pose().root_position, (count, 1)),
        root_orientation=np.tile(still.root_orientation, (count, 1)),
        angles=np.zeros((count, len(character.hinges))),
        start_s=1.5,
    )
    write_motion(tmp_path / "late.npz", clip, character)
    plot = inspection_motion.plot_contacts
    monkeypatch.setattr(
        inspection_motion, "plot_contacts", lambda t, *rest: shown.append((t, rest[0])) or plot(t, *rest)
    )
    monkeypatch.setattr(inspection_motion, "draw_label", lambda picture, text, **how: labels.append(text))
    for asked, first, last in ((None, 1.5, 2.7), ((0.5, 2.1), 1.5, 2.1), ((1.9, 2.3), 1.9, 2.3)):
        shown.clear(), labels.clear()
        seen = api.inspect(tmp_path / "late.npz", time_range=asked)
        assert seen.summary()["start_s"] == pytest.approx(first)
        for spans in seen.values["feet"]["contacts_s"].values():
            np.testing.assert_allclose(spans, [[first, last]], atol=1e-3)
        assert seen.facts["Feet, planted"]["left foot stands"] == f"{first:.2f} to {last:.2f} s"
        for times_s, stands in shown:
            np.testing.assert_allclose(times_s[[0, -1]], [first, last])
            assert stands.all()
        assert (labels[0], labels[-1]) == (f"{first:.2f} s", f"{last:.2f} s")
