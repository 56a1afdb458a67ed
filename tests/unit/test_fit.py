"""Fits from end to end without their reports: better than the guess, reproducible, structured as the algorithms say."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_fit import needs_walk, tiny_capture, tiny_fit, tiny_setup

from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import Rollouts, start_vector
from mocap2ctrl.control.controller import EXIT_TIME_RANGE_S, Controller, ControlState, Exit
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.fit.batch import BatchResult
from mocap2ctrl.fit.capture import CONTROLLER, LOG, Capture, load_capture, save_result
from mocap2ctrl.fit.config import ASTRAY_CM, BUDGETS, FitConfig, budget, growth_weights
from mocap2ctrl.fit.incremental import (
    WAIT_S,
    astray,
    grow,
    last_states_problem,
    may_go_on,
    search,
    window_cost,
    with_new_state,
)
from mocap2ctrl.fit.methods import growth_of
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Elsewhere, Evaluator, Problem, Spreads, decode, state_entry_snapshots
from mocap2ctrl.fit.refine import MOMENTUM
from mocap2ctrl.fit.run import FitProgress, fit_capture
from mocap2ctrl.fit.structure import Step, chain_steps
from mocap2ctrl.fit.video import video_config
from mocap2ctrl.fit.warm_start import reference_of
from mocap2ctrl.motion.clips import resample, state
from mocap2ctrl.objective.flight import Momentum
from mocap2ctrl.report.capture import final_terms, log_rows, read_log
from mocap2ctrl.simulation.mujoco import MujocoEngine

pytestmark = needs_walk


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Evaluator:
    return tiny_setup(tiny_capture(tmp_path_factory.mktemp("fit") / "c", character, seconds=0.8)).evaluator()


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Controller:
    """Four states of 0.2 s, as guessed from the walk."""
    clip = resample(tiny_capture(tmp_path_factory.mktemp("chain") / "c", character, seconds=0.8).reference, 120.0)
    reference = reference_of(clip, 0.0, character)
    states = [reference.state(str(i + 1), 0.2 * i, 0.2 * (i + 1)) for i in range(4)]
    leaving = [replace(s, exit=Exit("time", 0.2, str(i + 2))) for i, s in enumerate(states[:-1])]
    return Controller((*leaving, states[-1]), state(clip, 0))


def costs_by_stage(folder: Path) -> dict[str, list[float]]:
    costs: dict[str, list[float]] = {}
    for line in (folder / "log.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["event"] == "generation":
            costs.setdefault(entry["stage"], []).append(entry["cost"])
    return costs


def simulate_mean(evaluator: Evaluator, problem: Problem) -> Rollouts:
    """The simulation of a problem's first guess."""
    spec = evaluator.spec(problem)
    return next(evaluator.simulate(problem, spec, spec.mean[None]))


@pytest.mark.parametrize(
    "settings", [{}, {"method": "batch"}, {"prior": "walk"}, {"starts": 2, "try_without": True}], ids=str
)
def test_a_fit_beats_its_guess(tmp_path: Path, character: Character, settings: dict[str, Any]) -> None:
    outcome = tiny_fit(tmp_path / "walk", character, **{"generations": 6, **settings})
    first, *_ = costs_by_stage(outcome.capture.folder).values()
    assert first[-1] < first[0]
    assert not outcome.interrupted
    assert outcome.capture.complete
    assert outcome.cost > 0
    evaluation, _ = api.evaluate(outcome.capture)
    assert evaluation.joint_error_cm < 25


def test_the_cost_reported_is_the_controller_s_own(tmp_path: Path, character: Character) -> None:
    """Simulated anew from what was saved, over the whole clip."""
    outcome = tiny_fit(tmp_path / "walk", character)
    capture = api.load(outcome.capture.folder)
    fresh = tiny_setup(capture).evaluator()
    end = len(fresh.objective.target) - 1
    assert window_cost(fresh, capture.finished_controller(), end) == pytest.approx(outcome.cost, rel=1e-12)


@pytest.mark.parametrize("refine", [False, True])
def test_the_report_s_terms_make_up_the_controller_s_cost(
    tmp_path: Path, character: Character, *, refine: bool
) -> None:
    """Also where the last that was searched is another controller, and where momentum counts less."""
    settings = {"refine": True, "sweeps": 1, "delta": 0.0, "seconds": 0.8} if refine else {}
    outcome = tiny_fit(tmp_path / "walk", character, **settings)
    log = read_log(outcome.capture.folder / LOG)
    terms = final_terms(log, outcome.capture)
    assert sum(term.weight * term.value for term in terms) == pytest.approx(outcome.cost, rel=1e-12)
    assert {"markers", "velocity"} < {term.name for term in terms}
    weighed = {row.stage: row.weights["velocity"] for row in log_rows(log, outcome.capture)}
    growth = outcome.capture.config.weights.velocity
    assert set(weighed.values()) == ({growth, MOMENTUM * growth} if refine else {growth})


def test_the_seed_alone_decides(tmp_path: Path, character: Character) -> None:
    files = {
        name: (tiny_fit(tmp_path / name, character, seconds=0.2, seed=seed).capture.folder / CONTROLLER).read_bytes()
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    }
    assert files["a"] == files["b"]
    assert files["a"] != files["c"]


@pytest.mark.parametrize("settings", [{}, {"astray_cm": 1e-3, "free_states": 1}])
def test_progress_never_goes_back_and_ends_at_one(
    tmp_path: Path, character: Character, settings: dict[str, Any]
) -> None:
    seen: list[FitProgress] = []
    outcome = fit_capture(tiny_capture(tmp_path / "walk", character, **settings), 1, False, seen.append)
    assert [p.fraction for p in seen] == sorted(p.fraction for p in seen)
    assert [p.evaluations for p in seen] == sorted(p.evaluations for p in seen)
    assert seen[-1].fraction == pytest.approx(1.0)
    assert seen[-1].evaluations == outcome.evaluations
    assert {(p.stage, p.stages) for p in seen} == {(1, 2), (2, 2)}


def test_ctrl_c_before_the_first_stage_keeps_the_journal(tmp_path: Path, character: Character) -> None:
    """KeyboardInterrupt is what Python makes of SIGINT; after it the fit goes on to the same end."""

    def interrupt(progress: FitProgress) -> None:
        raise KeyboardInterrupt

    capture = tiny_capture(tmp_path / "walk", character)
    with pytest.raises(KeyboardInterrupt):
        fit_capture(capture, 1, False, interrupt)
    assert not (capture.folder / CONTROLLER).exists()
    fit_capture(capture, 1, resume=True)
    tiny_fit(tmp_path / "plain", character)
    assert (capture.folder / CONTROLLER).read_bytes() == (tmp_path / "plain" / CONTROLLER).read_bytes()


def test_ctrl_c_is_heard_though_somebody_swallows_it(tmp_path: Path, character: Character) -> None:
    """As a library does that catches every exception."""
    capture = tiny_capture(tmp_path / "walk", character, stage_s=0.1)
    told: list[FitProgress] = []

    def interrupt_and_swallow(progress: FitProgress) -> None:
        told.append(progress)
        if progress.stage == 2:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    outcome = fit_capture(capture, 1, False, interrupt_and_swallow)
    assert outcome.interrupted
    assert [progress.stage for progress in told].count(2) == 1
    assert load_capture(capture.folder).finished_controller().provenance["complete"] is False


def test_ctrl_c_in_compiled_code_keeps_the_best(tmp_path: Path, character: Character) -> None:
    """Which reports it as an error of its own."""
    capture = tiny_capture(tmp_path / "walk", character, stage_s=0.1)

    def interrupt_compiled_code(progress: FitProgress) -> None:
        if progress.stage == 2:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt as error:
                raise SystemError("returned a result with an exception set") from error

    assert fit_capture(capture, 1, False, interrupt_compiled_code).interrupted

    def fail(progress: FitProgress) -> None:
        if progress.stage == 2:
            raise SystemError("of its own")

    with pytest.raises(SystemError, match="of its own"):
        fit_capture(tiny_capture(tmp_path / "other", character, stage_s=0.1), 1, False, fail)


def test_ctrl_c_while_the_controller_is_saved_loses_nothing(
    tmp_path: Path, character: Character, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = tiny_capture(tmp_path / "walk", character)

    def interrupted_save(finished: Capture) -> None:
        signal.raise_signal(signal.SIGINT)
        save_result(finished)

    monkeypatch.setattr(sys.modules[fit_capture.__module__], "save_result", interrupted_save)
    assert not fit_capture(capture, 1, False).interrupted
    assert load_capture(capture.folder).finished_controller().provenance["complete"] is True


@pytest.mark.parametrize(("seconds", "stage_s", "count"), [(1.0, 0.2, 5), (0.5, 0.2, 2), (0.1, 0.2, 1), (2.0, 0.3, 6)])
def test_stages_are_equal_and_end_with_the_clip(seconds: float, stage_s: float, count: int) -> None:
    frames = round(seconds * 30) + 1
    ends = [step.end_frame for step in chain_steps(frames, 30.0, stage_s)]
    assert len(ends) == count
    assert ends[-1] == frames - 1
    widths = np.diff([0, *ends])
    assert widths.max() - widths.min() <= 1
    assert widths.min() >= 1


def test_a_new_state_follows_the_last_on_time(chain: Controller) -> None:
    alone = chain.with_states(chain.states[:1])
    grown = with_new_state(alone, lambda name, a, b, before: chain.states[1], [Step(6), Step(12)], 30.0)
    assert grown.states[0].exit == Exit("time", pytest.approx(0.2), "2")
    early = with_new_state(alone, lambda name, a, b, before: chain.states[1], [Step(1), Step(12)], 30.0)
    assert early.states[0].exit.time_s == EXIT_TIME_RANGE_S[0]


def test_a_state_goes_on_for_as_long_as_an_exit_on_time_can_end_it(chain: Controller) -> None:
    """A stage without a new state leaves the last one acting over two; only the very last may act for longer."""
    alone = chain.with_states(chain.states[:1])
    steps = [Step(7), Step(15), Step(22), Step(30)]
    assert may_go_on(alone, steps[:2], 4, 30.0)
    assert not may_go_on(alone, steps[:3], 4, 30.0)
    assert may_go_on(alone, steps[:3], 3, 30.0)
    grown = with_new_state(alone, lambda name, a, b, before: chain.states[1], steps[:2], 30.0)
    assert may_go_on(grown, steps[:3], 4, 30.0)
    assert not may_go_on(grown, steps, 5, 30.0)


def test_a_state_that_ends_on_contact_waits_for_it_and_times_count_from_there(chain: Controller) -> None:
    steps = [Step(6), Step(12, "left"), Step(18), Step(24)]
    alone = chain.with_states(chain.states[:1])
    asked: list[tuple[float, float]] = []

    def guess(name: str, begin_s: float, end_s: float, before: ControlState | None) -> ControlState:
        asked.append((begin_s, end_s))
        return replace(chain.states[1], name=name)

    for count in (2, 3, 4):
        alone = with_new_state(alone, guess, steps[:count], 30.0)
        if count == 2:  # a search has moved the exit; the contact still comes when it comes
            early = replace(alone.states[0], exit=Exit("time", 0.15, "2"))
            alone = alone.with_states([early, *alone.states[1:]])
    exits = [state.exit for state in alone.states]
    assert exits[1] == Exit("left", pytest.approx(0.25 + WAIT_S), "3")
    assert exits[2] == Exit("time", pytest.approx(0.2), "4")
    assert asked == [pytest.approx(pair) for pair in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8))]


def test_only_the_last_two_states_are_free_and_begin_where_the_first_of_them_does(
    evaluator: Evaluator, chain: Controller
) -> None:
    problem = last_states_problem(evaluator, chain, 18, 24, FitConfig(), "x")
    assert problem.free == (2, 3)
    assert not problem.free_start
    assert problem.first_frame == 12
    whole = last_states_problem(evaluator, chain.with_states(chain.states[:2]), 6, 12, FitConfig(), "x")
    assert whole.free == (0, 1)
    assert whole.free_start
    assert whole.first_frame == 0


def test_after_a_stage_that_went_astray_one_search_opens_two_states_more(
    tmp_path: Path, character: Character, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[list[tuple[int, ...]]] = []

    def watched(pool: EvaluationPool, problems: Sequence[Problem], *rest: Any) -> list[BatchResult]:
        searched.append([problem.free for problem in problems])
        return search(pool, problems, *rest)

    monkeypatch.setattr(sys.modules[grow.__module__], "search", watched)
    ends: dict[float, float] = {}
    for astray_cm in (1e-3, 0.0):
        searched.clear()
        capture = tiny_capture(tmp_path / str(astray_cm), character, seconds=0.8, astray_cm=astray_cm)
        labels: list[str] = []
        growth = growth_of(capture, lambda generation, said=labels: said.append(generation.label))  # type: ignore[misc]
        with EvaluationPool(tiny_setup(capture), 1) as pool:
            steps = chain_steps(len(pool.evaluator.objective.target), 30.0, 0.2)
            *_, last = grow(pool, steps, growth)
        ends[astray_cm] = last.cost
        normal = [[(0,)], [(0, 1)], [(1, 2)], [(2, 3)]]
        wide = [[], [(0, 1)], [(0, 1, 2)], [(0, 1, 2, 3)]]
        assert searched == ([a + b for a, b in zip(normal, wide, strict=True)] if astray_cm > 0.0 else normal)
        assert ("states 1 to 4 again" in labels) == (astray_cm > 0.0)
    assert ends[1e-3] < ends[0.0]


def test_a_stage_is_astray_by_its_last_two_states(evaluator: Evaluator, chain: Controller) -> None:
    objective = evaluator.objective
    squared = objective.marker_distances(next(evaluator.rollouts(chain, 12)), 6, 12).mean()
    config = FitConfig()
    for share, far in ((0.99, True), (1.01, False)):
        strict = replace(config, astray_cm=share * float(np.sqrt(squared)))
        assert astray(evaluator, chain, 6, 12, strict) is far
    assert not astray(evaluator, chain, 6, 12, config)


def test_videos_alone_are_told_to_be_astray() -> None:
    assert FitConfig().astray_cm == 0.0
    assert (
        video_config(FitConfig()).astray_cm == video_config(FitConfig(weights=growth_weights())).astray_cm == ASTRAY_CM
    )
    assert video_config(FitConfig(astray_cm=7.0)).astray_cm == 7.0
    assert video_config(FitConfig(method="growth")).astray_cm == 0.0


def test_where_the_reference_flies_one_more_state_is_free(evaluator: Evaluator, chain: Controller) -> None:
    """From the stage in which it takes off to the one in which it lands, and in no other."""
    target = evaluator.objective.target
    flying = np.zeros(len(target) - 1, dtype=bool)
    flying[14:17] = True
    momentum = Momentum(flying, np.zeros((len(flying), 3)), np.zeros((len(flying), 3)))
    leaping = replace(evaluator, objective=replace(evaluator.objective, target=replace(target, momentum=momentum)))
    ends = {24: (2, 3), 23: (2, 3), 22: (1, 2, 3), 15: (1, 2, 3), 14: (2, 3)}
    for end, free in ends.items():
        assert last_states_problem(leaping, chain, end - 6, end, FitConfig(), "x").free == free


def test_going_on_from_a_snapshot_is_going_through(evaluator: Evaluator, chain: Controller) -> None:
    """The window simulated from where state 3 is entered has the bits of the whole simulation's end."""
    problem = last_states_problem(evaluator, chain, 18, 24, FitConfig(), "x")
    part = simulate_mean(evaluator, problem)
    everything = replace(problem, free=(0, 1, 2, 3), free_start=True, first_frame=0)
    everything = replace(everything, snapshot=start_vector(chain.start))
    whole = simulate_mean(evaluator, everything)
    np.testing.assert_array_equal(part.qpos[0], whole.qpos[0, part.first_frame :])


def test_the_mean_of_the_parameters_is_the_guess(evaluator: Evaluator, chain: Controller, character: Character) -> None:
    problem = Problem(chain, (0, 1, 2, 3), True, start_vector(chain.start), 0, 24, Spreads(), "x")
    spec = evaluator.spec(problem)
    same = decode(problem, spec.mean, character, evaluator.prior, spec)
    for a, b in zip(same.states, chain.states, strict=True):
        np.testing.assert_allclose(a.target.angles, b.target.angles, atol=1e-12)
        np.testing.assert_allclose(a.target.root_rotation, b.target.root_rotation, atol=1e-12)
        np.testing.assert_array_equal(a.alpha, b.alpha)
        assert a.exit == b.exit
    np.testing.assert_allclose(same.start.pose.angles, chain.start.pose.angles, atol=1e-12)
    np.testing.assert_allclose(same.start.root_velocity, chain.start.root_velocity, atol=1e-12)
    assert len({p.name for p in spec.parameters}) == len(spec)
    assert all(p.std > 0 and p.unit for p in spec.parameters)


def test_arrays_and_controllers_say_the_same(evaluator: Evaluator, chain: Controller, character: Character) -> None:
    """What the search simulated as arrays is what the decoded controller does."""
    problem = Problem(chain, (0, 1, 2, 3), True, start_vector(chain.start), 0, 24, Spreads(), "x")
    spec = evaluator.spec(problem)
    values = spec.feasible(spec.values(0.3 * np.random.default_rng(1).normal(size=len(spec))))
    terms = evaluator.terms(problem, [values])
    controller = decode(problem, values, character, evaluator.prior, spec)
    cost = sum(t.weight * t.value[0] for t in terms if t.name != "prior")
    assert window_cost(evaluator, controller, 24) == pytest.approx(cost, rel=1e-9)


def test_a_state_that_is_never_entered_ends_at_the_window_s_end(evaluator: Evaluator, chain: Controller) -> None:
    slow = chain.with_states([replace(chain.states[0], exit=Exit("time", 9.0, "2")), *chain.states[1:]])
    (snapshot,) = state_entry_snapshots(evaluator, slow, 2, 24)
    problem = last_states_problem(evaluator, slow, 18, 24, FitConfig(), "x")
    assert snapshot.shape == problem.snapshot.shape
    assert problem.first_frame == 24
    assert np.isfinite([t.value[0] for t in evaluator.terms(problem, [evaluator.spec(problem).mean])]).all()


@pytest.mark.parametrize("name", list(BUDGETS))
def test_budgets_have_names(name: str) -> None:
    assert budget(name) is BUDGETS[name]


def test_an_unknown_budget_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="quick, default, thorough"):
        budget("huge")


def test_the_shortest_stages_end_without_nan(tmp_path: Path, character: Character) -> None:
    """States of 0.1 s, as short as an exit may be; costs stay numbers."""
    outcome = tiny_fit(tmp_path / "walk", character, seconds=0.5, stage_s=0.1, generations=1)
    assert np.isfinite(outcome.cost)
    assert len(costs_by_stage(outcome.capture.folder)) == 5


def test_costs_are_means_over_engines(evaluator: Evaluator, chain: Controller, character: Character) -> None:
    """MuJoCo with another friction stands in for another engine; each goes on from a snapshot of its own."""
    other = MujocoEngine(replace(character, friction=0.3))
    both, alone = replace(evaluator, others=(Elsewhere(other),)), replace(evaluator, engine=other)
    config = budget("quick")
    problems = [last_states_problem(e, chain, 18, 24, config, "") for e in (both, evaluator, alone)]
    assert len(problems[0].snapshots_elsewhere) == 1
    np.testing.assert_array_equal(problems[0].snapshots_elsewhere[0], problems[2].snapshot)
    assert not np.array_equal(problems[0].snapshot, problems[0].snapshots_elsewhere[0])
    values = both.spec(problems[0]).mean[None]
    found = [e.terms(p, values) for e, p in zip((both, evaluator, alone), problems, strict=True)]
    for mean, own, elsewhere in zip(*found, strict=True):
        np.testing.assert_allclose(mean.value, 0.5 * (own.value + elsewhere.value), rtol=1e-12)
    assert found[1][0].value != found[2][0].value
    costs = [window_cost(e, chain, 24) for e in (both, evaluator, alone)]
    assert costs[0] == pytest.approx(0.5 * (costs[1] + costs[2]))
