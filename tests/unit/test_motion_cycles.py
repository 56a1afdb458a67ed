"""Cycles: found where they are, refused where none is, and closed so that they can be walked on for ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_motion_in_place import FPS, SPEED_M_S, stilts

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion import cycles
from mocap2ctrl.motion.bvh_writer import write_bvh
from mocap2ctrl.motion.clips import close_loop, repeat, velocities
from mocap2ctrl.motion.cycles import Cycle, cut_cycle, find_cycle
from mocap2ctrl.motion.feet import measured
from mocap2ctrl.motion.footfalls import body_footfalls
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.types import MotionClip

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "bvh"


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


@pytest.fixture(scope="module")
def walk(character: Character) -> MotionClip:
    """Four seconds; a second is a period."""
    return stilts(character)


ARM = "left_upper_arm.flexion"


def disturbed(walk: MotionClip, clean: tuple[int, int], character: Character) -> MotionClip:
    """The walk with an arm that drifts everywhere but between two frames."""
    away = np.maximum(np.maximum(clean[0] - np.arange(len(walk)), np.arange(len(walk)) - clean[1]), 0.0)
    angles = walk.angles.copy()
    angles[:, character.hinge_names.index(ARM)] += 0.004 * away
    return replace(walk, angles=angles)


def test_the_period_of_a_periodic_motion(walk: MotionClip, character: Character) -> None:
    cycle = find_cycle(walk, character)
    assert cycle.stop - cycle.start == FPS
    assert cycle.seam_cm < 0.1
    assert cycle.seam_cm_s < 1.0
    assert cycle.likeness > 0.99


def test_the_seam_is_where_the_motion_repeats_itself_best(walk: MotionClip, character: Character) -> None:
    cycle = find_cycle(disturbed(walk, (100, 165), character), character)
    assert cycle.stop - cycle.start == FPS
    assert 100 <= cycle.start <= 105


def test_other_rates_and_headings_have_the_same_period(walk: MotionClip, character: Character) -> None:
    turn = rotations.yaw(1.0)
    turned = replace(
        walk,
        fps=2 * FPS,
        root_position=rotations.rotate(turn, walk.root_position),
        root_orientation=rotations.multiply(turn, walk.root_orientation),
    )
    cycle = find_cycle(turned, character)
    assert cycle.stop - cycle.start == FPS


def test_what_does_not_repeat_itself_is_refused(walk: MotionClip, character: Character) -> None:
    ramp = replace(walk, angles=np.linspace(0.0, 0.8, len(walk))[:, None] * np.ones(walk.angles.shape[1]))
    still = replace(
        walk, angles=np.zeros_like(walk.angles), root_position=0 * walk.root_position + walk.root_position[0]
    )
    for clip in (ramp, still, walk.cut(0, 40)):
        with pytest.raises(MotionFileError, match="does not repeat itself"):
            find_cycle(clip, character)
    with pytest.raises(MotionFileError, match="a cycle needs more than"):
        find_cycle(walk.cut(0, 4), character)


def test_a_closed_cycle_goes_on_without_a_jolt(walk: MotionClip, character: Character) -> None:
    clip = disturbed(walk, (0, 0), character)  # no two periods alike
    loop = cut_cycle(clip, character, find_cycle(clip, character))
    assert loop.loop
    many = repeat(loop, 3)
    seam = len(loop) - 1
    bends = np.abs(np.diff(many.angles, 2, axis=0)) * FPS**2
    arm = bends[:, character.hinge_names.index(ARM)]
    assert np.max(arm) < 100.0  # rad/s^2; the gap of 0.24 rad within a frame would be 864
    travel = many.root_position[-1, 0] - many.root_position[0, 0]
    assert travel == pytest.approx(3 * seam / FPS * SPEED_M_S, rel=0.01)
    state = (many.root_position, many.root_orientation, many.angles)
    slide = measured(character, state, body_footfalls(many, character), FPS).slide_cm_s
    assert slide is not None
    assert slide < 1.0


def test_the_end_of_a_loop_takes_the_pose_and_the_velocity_of_its_beginning(character: Character) -> None:
    fps = 240.0
    times = np.arange(241) / fps
    angles = np.zeros((241, len(character.hinges)))
    angles[:, 4] = 0.2 * times**2  # ends with a gap of 0.2 rad and 0.4 rad/s
    root = np.stack([times, 0.0 * times, 0.9 + 0.05 * times], axis=1)
    clip = MotionClip("gap", fps, root, rotations.yaw(0.1 * times), angles, loop=True)
    closed = close_loop(clip)
    assert closed.angles[-1, 4] == pytest.approx(closed.angles[0, 4], abs=1e-12)
    assert abs(velocities(closed).joints[-1, 4]) < 0.15
    assert abs(velocities(closed).root[-1, 2] - 0.05) < 0.05
    np.testing.assert_array_equal(closed.root_position[:200], root[:200])
    np.testing.assert_allclose(closed.root_position[-1], [1.0, 0.0, 0.9], atol=1e-12)


def test_cycles_of_a_file_that_is_no_loop(walk: MotionClip, character: Character, tmp_path: Path) -> None:
    write_bvh(tmp_path / "walk.bvh", walk, character)
    loaded = load_motion(tmp_path / "walk.bvh", character, cycles=5)
    assert loaded.clip.duration_s == pytest.approx(5.0, abs=0.05)
    assert loaded.clip.root_position[-1, 0] == pytest.approx(5.0 * SPEED_M_S, rel=0.03)
    assert loaded.source_points.shape[:2] == (len(loaded.clip), 15)
    assert np.nanmean(np.linalg.norm(loaded.source_points[:, 0] - loaded.clip.root_position, axis=1)) < 0.05
    first, last = loaded.clip.provenance["cycle_s"]
    assert last - first == pytest.approx(1.0, abs=0.02)
    assert any(f"its best cycle, from {first:.2f} to {last:.2f} s of the file" in w for w in loaded.warnings)
    assert not any("cycle" in w for w in load_motion(tmp_path / "walk.bvh", character).warnings)


@pytest.mark.parametrize(("fps", "late_s"), [(None, 0.0), (30.0, 0.0), (None, 0.5)])
def test_a_cycle_starts_when_it_does_in_the_file(
    fps: float | None, late_s: float, character: Character, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bvh(tmp_path / "walk.bvh", stilts(character), character)
    monkeypatch.setattr(cycles, "find_cycle", lambda *_: Cycle(30, 90, 1.0, 1.0, 1.0))
    cut = None if late_s == 0.0 else (late_s, 4.0)
    loaded = load_motion(tmp_path / "walk.bvh", character, fps=fps, cycles=2, time_range=cut)
    assert loaded.clip.start_s == pytest.approx(late_s + 0.5)
    assert loaded.clip.provenance["cycle_s"] == pytest.approx([late_s + 0.5, late_s + 1.5])


@pytest.mark.parametrize(
    ("name", "least_s", "most_s"), [("walk_games105_m_yup", 1.19, 1.21), ("walk_cmu12_01", 1.2, 1.4)]
)
def test_strides_of_real_walks(name: str, least_s: float, most_s: float, character: Character) -> None:
    if not SHARED.is_dir():
        pytest.skip("the test data folder ../shared/data/bvh is absent")
    clip = load_motion(SHARED / f"{name}.bvh", character).clip
    cycle = find_cycle(clip, character)
    assert least_s <= (cycle.stop - cycle.start) / clip.fps <= most_s
    assert cycle.seam_cm < 2.0
