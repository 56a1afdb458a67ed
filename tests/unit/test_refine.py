"""Algorithm 4 end to end on a fraction of a second, and its second half on a walk that is only guessed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_fit import WALK, needs_walk, tiny_capture, tiny_fit, tiny_setup

from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.controller import Controller
from mocap2ctrl.errors import CaptureError, ConfigError, MotionFileError
from mocap2ctrl.fit.capture import REPORT
from mocap2ctrl.fit.config import FitConfig
from mocap2ctrl.fit.incremental import Growth, window_cost, with_new_state
from mocap2ctrl.fit.methods import growth_of
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.refine import _Found, contact_steps, cyclic, refined_weights, reopened
from mocap2ctrl.fit.run import fit_capture
from mocap2ctrl.fit.structure import Step, cycle_states
from mocap2ctrl.motion.cycles import carried_past
from mocap2ctrl.motion.load import load_motion

pytestmark = needs_walk

LANDINGS = {20: "left", 37: "right", 58: "left"}
"""Frames at 30 a second at which the feet of the walk come down."""


def told(folder: Path) -> list[str]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line["told"] for line in lines if "told" in line]


def guessed(growth: Growth, steps: Sequence[Step]) -> Controller:
    """A chain along `steps` of guesses alone."""
    chain = Controller((growth.guess("1", 0.0, steps[0].end_frame / 30.0, None),), growth.start)
    for count in range(2, len(steps) + 1):
        chain = with_new_state(chain, growth.guess, steps[:count], 30.0)
    return chain


@pytest.fixture
def one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep goes over the chain once."""
    monkeypatch.setattr(sys.modules[reopened.__module__], "PASSES", 1)


@pytest.mark.usefixtures("one_pass")
def test_a_refined_fit_is_never_worse_than_delta_allows_and_says_what_it_did(
    tmp_path: Path, character: Character
) -> None:
    settings = {"seconds": 0.8, "generations": 2}
    plain = tiny_fit(tmp_path / "plain", character, **settings)
    refined = tiny_fit(tmp_path / "refined", character, refine=True, **settings)
    assert refined.cost <= 1.15 * plain.cost
    contacts, cycle = refined.told
    assert told(refined.capture.folder) == [contacts, cycle]
    assert contacts.startswith("exits on contact: ")
    assert cycle == "the cycle: left out, for the motion does not repeat itself, or no foot comes down twice"
    exits = {state.exit.kind for state in refined.capture.finished_controller().states}
    assert ("left" in exits) == ("taken" in contacts)


@pytest.mark.usefixtures("one_pass")
def test_a_refined_fit_is_the_same_resumed_and_with_two_workers(tmp_path: Path, character: Character) -> None:
    settings = {"seconds": 0.8, "generations": 1, "refine": True, "sweeps": 1, "delta": 1e9}
    alone = tiny_fit(tmp_path / "alone", character, **settings)
    capture = tiny_capture(tmp_path / "shared", character, **settings)
    shared = fit_capture(capture, 2, resume=False)
    journal = capture.folder / "checkpoint" / "journal.bin"
    data = journal.read_bytes()
    journal.write_bytes(data[: 2 * len(data) // 3])
    resumed = fit_capture(capture, 1, resume=True)
    assert alone.cost == shared.cost == resumed.cost
    for other in (shared, resumed):
        for a, b in zip(
            alone.capture.finished_controller().states, other.capture.finished_controller().states, strict=True
        ):
            assert a.exit == b.exit
            np.testing.assert_array_equal(a.target.angles, b.target.angles)


@pytest.mark.usefixtures("one_pass")
def test_a_finished_growth_is_refined_as_if_at_once(tmp_path: Path, character: Character) -> None:
    settings = {"seconds": 0.8, "generations": 1, "sweeps": 1, "delta": 1e9}
    at_once = tiny_fit(tmp_path / "once", character, **settings, refine=True)
    grown = tiny_capture(tmp_path / "later", character, **settings)
    simulated = fit_capture(grown, 1, resume=False).evaluations
    later = replace(grown, config=replace(grown.config, refine=True))
    journal = grown.folder / "checkpoint" / "journal.bin"
    before = journal.stat().st_size
    (grown.folder / REPORT).write_text("of what was grown")
    refined = fit_capture(later, 1, resume=True)
    assert refined.cost == at_once.cost
    assert refined.earlier == grown.folder / "controller.earlier.json"
    assert not (grown.folder / REPORT).exists()
    assert refined.evaluations == at_once.evaluations > simulated
    assert journal.read_bytes()[before:] == (tmp_path / "once/checkpoint/journal.bin").read_bytes()[before:]
    with pytest.raises(CaptureError, match="was begun with other"):
        fit_capture(grown, 1, resume=True)


def test_sweeps_lower_e_with_little_momentum_and_leave_the_weights(tmp_path: Path, character: Character) -> None:
    capture = tiny_capture(tmp_path / "walk", character, seconds=0.8, refine=True, descents=1, sweeps=1)
    shares: list[float] = []
    growth = growth_of(capture, lambda g: shares.append(g.generation / g.generations))
    chain = guessed(growth, [Step(6), Step(12), Step(18), Step(24)])
    with EvaluationPool(tiny_setup(capture), 1) as pool:
        before, end = pool.evaluator, 24 + growth.stability_frames
        found = reopened(pool, chain, growth)
        assert pool.evaluator is before
        with pool.weighing(refined_weights(capture.config)):
            assert found.cost == window_cost(pool.evaluator, found.controller, end)
            assert found.cost < window_cost(pool.evaluator, chain, end) < window_cost(before, chain, end)
    assert np.all(np.diff(shares) > 0.0)
    assert 2 / 3 <= shares[-1] <= 1.0  # it ends early where two passes find nothing
    changed = [
        not np.array_equal(a.target.angles, b.target.angles)
        for a, b in zip(chain.states, found.controller.states, strict=True)
    ]
    assert any(changed)


def test_a_chain_that_falls_behind_its_rival_is_swept_no_further(tmp_path: Path, character: Character) -> None:
    capture = tiny_capture(tmp_path / "walk", character, seconds=0.6, refine=True, descents=1, sweeps=1)
    growth = growth_of(capture, lambda g: None)
    chain = guessed(growth, [Step(6), Step(12), Step(18)])
    with EvaluationPool(tiny_setup(capture), 1) as pool:
        alone = reopened(pool, chain, growth)
        assert len(alone.way) > 2
        assert alone.way[-1] == alone.cost
        level = reopened(pool, chain, growth, alone.way)
        behind = reopened(pool, chain, growth, (alone.way[0], alone.way[1] / 1.15))
    assert level.way == alone.way
    assert behind.way == alone.way[:2]


def test_a_guessed_walk_is_closed_to_a_cycle_whose_way_in_stays(
    tmp_path: Path, character: Character, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[cyclic.__module__], "AHEAD_S", (0.0,))
    capture = tiny_capture(tmp_path / "walk", character, descents=1, refine=True)
    reference = load_motion(WALK, character, cycles=2).clip
    capture = replace(capture, reference=reference)
    growth = growth_of(capture, lambda generation: None)
    steps = [Step(f, LANDINGS.get(f, "")) for f in (7, 13, 20, 26, 31, 37, 44, 51, 58, 64, 70, 76)]
    chain = guessed(growth, steps)
    with EvaluationPool(tiny_setup(capture), 1) as pool:
        before = pool.evaluator
        found = cyclic(pool, _Found(chain, np.inf), growth, capture)
        assert pool.evaluator is before
    assert found is not None
    assert cycle_states(found.controller) == (3, 4, 5, 6, 7, 8)
    assert np.isfinite(found.cost)
    for i, (old, new) in enumerate(zip(chain.states, found.controller.states, strict=False)):
        assert np.array_equal(old.target.angles, new.target.angles) == (i < 3)


def test_a_chain_is_moved_to_its_own_touchdowns(tmp_path: Path, character: Character) -> None:
    capture = tiny_capture(tmp_path / "walk", character, seconds=0.8, refine=True)
    growth = growth_of(capture, lambda generation: None)
    chain = guessed(growth, [Step(6), Step(12), Step(18), Step(24)])
    with EvaluationPool(tiny_setup(capture), 1) as pool:
        moved = contact_steps(pool, chain, growth)
    assert [step.contact for step in moved].count("left") == 1
    assert moved[-1] == Step(24)
    assert len(moved) == 4


def test_a_walk_carried_past_its_end_goes_on_walking(character: Character) -> None:
    clip = load_motion(WALK, character, cycles=2).clip
    longer = carried_past(clip, character, 3.0)
    assert longer.duration_s >= clip.duration_s + 3.0
    np.testing.assert_array_equal(longer.angles[: len(clip)], clip.angles)
    period = round(1.2667 * clip.fps)
    points = clip_points(character, longer)
    travel = points[period:, 0] - points[:-period, 0]
    np.testing.assert_allclose(travel, np.broadcast_to(travel[0], travel.shape), atol=0.02)
    speed = np.linalg.norm(np.diff(points, axis=0), axis=2) * clip.fps
    assert speed[len(clip) - 3 :].max() < 1.3 * speed[: len(clip)].max()


def test_half_a_stride_is_not_carried_on(character: Character) -> None:
    clip = load_motion(WALK, character, time_range=(0.0, 0.5)).clip
    with pytest.raises(MotionFileError, match="repeat itself"):
        carried_past(clip, character, 1.0)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"refine": True, "method": "batch"}, "refine"), ({"cyclic": True}, "cyclic"), ({"delta": -1.0}, "delta")],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, object], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        FitConfig(**settings)  # type: ignore[arg-type]
