"""A fit that cannot be gone on with names what differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mocap2ctrl.character.model import load_character
from mocap2ctrl.errors import CaptureError
from mocap2ctrl.fit.capture import save_begun
from mocap2ctrl.fit.config import budget
from mocap2ctrl.fit.differing import other_settings
from mocap2ctrl.fit.journal import Journal

RUN = {"engine": "mujoco", "command": "mocap2ctrl fit walk.mp4 --seed 1 --time-range 0 2 -o out"}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("mocap2ctrl fit walk.mp4 --seed 2 --time-range 0 2 -o out --resume", "(--seed was 1 and is 2)"),
        ("mocap2ctrl fit walk.mp4 --seed 1 --resume --workers 3", "(--time-range was 0 2 and is not given)"),
        ("mocap2ctrl fit run.mp4 --seed=1 --time-range 0 2", "(the input was walk.mp4 and is run.mp4)"),
        ("mocap2ctrl fit walk.mp4 --seed 1 --time-range 0 2 --masks", "(--masks was not given and is given)"),
        ("mocap2ctrl fit walk.mp4 --seed 1 --time-range 0.0 2.00", "(the input's content, its camera or the version"),
    ],
)
def test_options_of_the_command_line(tmp_path: Path, command: str, told: str) -> None:
    config = budget("quick")
    save_begun(tmp_path, load_character(), config, RUN)
    assert told in other_settings(tmp_path, config, {**RUN, "command": command})


def test_what_may_come_later_is_no_difference(tmp_path: Path) -> None:
    config = budget("quick")
    save_begun(tmp_path, load_character(), config, RUN)
    later = {**RUN, "command": "mocap2ctrl fit walk.mp4 --seed 2 --time-range 0 2 --resume --refine"}
    assert "(--seed was 1 and is 2)" in other_settings(tmp_path, replace(config, refine=True), later)
    typed = {**RUN, "command": ""}
    save_begun(tmp_path, load_character(), config, typed)
    assert "(seed was 1 and is 7)" in other_settings(tmp_path, replace(config, refine=True, seed=7), typed)
    save_begun(tmp_path, load_character(), replace(config, refine=True), {**RUN, "command": later["command"]})
    assert "(--seed was 2 and is 1, --refine was given and is not given)" in other_settings(tmp_path, config, RUN)


def test_settings_of_the_python_api(tmp_path: Path) -> None:
    config = budget("quick")
    save_begun(tmp_path, load_character(), config, {**RUN, "command": ""})
    now = replace(config, seed=7, tracking=replace(config.tracking, candidates=5))
    told = other_settings(tmp_path, now, {"engine": "bullet", "command": ""})
    assert f"engine was mujoco and is bullet, seed was {config.seed} and is 7, tracking.candidates was" in told


def test_a_journal_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    path = tmp_path / "checkpoint" / "journal"
    Journal(path, b"one", resume=False).close()
    with pytest.raises(CaptureError, match="the seed is another"):
        Journal(path, b"two", resume=True, other=lambda: "the seed is another")
