"""Simulations that diverge: they cost like bad samples, are counted, and are kept so that the same bits can be had again."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_fit import needs_walk, tiny_capture, tiny_setup

from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import start_step
from mocap2ctrl.control.law import MEMORY_SIZE, STATE, STEP
from mocap2ctrl.errors import CaptureError
from mocap2ctrl.fit import divergence_log
from mocap2ctrl.fit.capture import CONTROLLER, JOURNAL, Capture
from mocap2ctrl.fit.divergence import replay_divergence
from mocap2ctrl.fit.divergence_file import FOLDER, divergence_path, load_divergence, save_divergence
from mocap2ctrl.fit.divergence_log import KEPT, DivergenceLog
from mocap2ctrl.fit.judgement import Judgement, Task, portions
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Problem, Spreads
from mocap2ctrl.fit.run import FitOutcome, fit_capture
from mocap2ctrl.simulation.engine import DIVERGED_VELOCITY
from mocap2ctrl.types import Array

pytestmark = needs_walk

WILD = Spreads(velocity=25.0)
"""First velocities of hundreds of radians a second: some simulations diverge at once, some later, some not at all."""


@dataclass(frozen=True)
class Wild:
    """A fit of which many simulations have diverged, and what its pool was asked."""

    capture: Capture
    outcome: FitOutcome
    seen: list[tuple[Problem, Array, Judgement]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.capture.folder


def wild_capture(folder: Path, character: Character, **settings: Any) -> Capture:
    return tiny_capture(folder, character, spreads=WILD, **settings)


def watched_fit(capture: Capture, crew: int = 1) -> Wild:
    """A fit, and every population with what it came to."""
    seen: list[tuple[Problem, Array, Judgement]] = []
    witness = DivergenceLog.__call__

    def watch(
        self: DivergenceLog, problem: Problem, values: Array, judgement: Judgement, generation: int, search: int
    ) -> None:
        seen.append((problem, values, judgement))
        witness(self, problem, values, judgement, generation, search)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DivergenceLog, "__call__", watch)
        outcome = fit_capture(capture, crew, resume=False)
    return Wild(capture, outcome, seen)


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Wild:
    return watched_fit(wild_capture(tmp_path_factory.mktemp("wild") / "walk", character))


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((folder / FOLDER).iterdir())}


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def diverged_samples(wild: Wild) -> list[tuple[Problem, Array, int]]:
    """Problem, population and number of each diverged sample, in order."""
    return [(p, x, int(i)) for p, x, judgement in wild.seen for i in np.flatnonzero(judgement.diverged)]


def test_they_are_counted_and_the_fit_goes_on(wild: Wild) -> None:
    judgements = [judgement for _, _, judgement in wild.seen]
    total = sum(int(j.diverged.sum()) for j in judgements)
    assert wild.outcome.diverged == total
    assert KEPT < total < wild.outcome.evaluations
    assert [e["diverged"] for e in log_of(wild.folder) if e["event"] == "generation"][-1] == total
    assert np.isfinite(wild.outcome.cost)
    assert not api.simulate(wild.outcome.capture).diverged


def test_each_costs_a_finite_amount_and_more_than_the_best(wild: Wild) -> None:
    for _, _, judgement in wild.seen:
        assert np.isfinite(judgement.terms).all()
        if judgement.diverged.any() and not judgement.diverged.all():
            markers = judgement.terms[:, 0]
            assert markers[judgement.diverged].min() > markers[~judgement.diverged].min()


def test_a_fit_without_any_says_so_and_keeps_nothing(tmp_path: Path, character: Character) -> None:
    outcome = fit_capture(tiny_capture(tmp_path / "walk", character, generations=1), 1, resume=False)
    assert outcome.diverged == 0
    assert not (tmp_path / "walk" / FOLDER).exists()


def test_the_first_are_kept(wild: Wild) -> None:
    assert list(files(wild.folder)) == [f"{n + 1:04d}.json" for n in range(KEPT)]
    for number, (problem, _, sample) in enumerate(diverged_samples(wild)[:KEPT]):
        kept = load_divergence(divergence_path(wild.folder, number + 1))
        assert (kept.stage, kept.sample) == (problem.label, sample)
        assert kept.config == wild.capture.config
        assert kept.engine == "mujoco"


@pytest.mark.parametrize("settings", [{}, {"prior": "walk"}, {"method": "batch", "fps": 60.0}], ids=str)
def test_replayed_to_the_same_bits(
    tmp_path: Path, character: Character, wild: Wild, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the very simulation that the search saw, with plain targets, under a prior, at another rate."""
    monkeypatch.setattr(divergence_log, "KEPT", 40)
    fitted = watched_fit(wild_capture(tmp_path / "walk", character, **settings))
    evaluator = tiny_setup(fitted.capture).evaluator()
    steps = set()
    for number, (problem, values, sample) in enumerate(diverged_samples(fitted)[:40]):
        part = next(part for part in portions(len(values)) if sample < part.stop)
        spec = evaluator.spec(problem)
        (rollouts,) = evaluator.simulate(problem, spec, spec.feasible(values[part]))
        kept, again = api.replay_diverged(fitted.folder, number + 1)
        assert again.diverged
        np.testing.assert_array_equal(again.final, rollouts.final[sample - part.start])
        steps.add(again.step - start_step(kept.begin))
    assert len(steps) > 2, "all diverged at the same step; nothing of their motion was compared"


def test_a_replay_says_when_and_which_joint(wild: Wild) -> None:
    kept, again = api.replay_diverged(wild.folder, 2)
    assert again.velocity >= DIVERGED_VELOCITY
    assert again.fastest in wild.capture.character.hinge_names or again.fastest.startswith("root.")
    assert again.at_s == pytest.approx(again.step / 120)
    assert again.clip is not None
    assert len(again.clip) == max(again.step - start_step(kept.begin), 1)


def test_what_stops_earlier_shows_less(wild: Wild) -> None:
    """A simulation that is to end before it diverges does not."""
    kept = next(
        k
        for k in (load_divergence(divergence_path(wild.folder, n + 1)) for n in range(KEPT))
        if replay_divergence(k).step > start_step(k.begin) + 1
    )
    step = replay_divergence(kept).step
    for end, diverges in ((step, True), (step - 1, False)):
        again = replay_divergence(replace(kept, end_step=end))
        assert (again.diverged, again.step) == (diverges, end)


def test_a_resumed_fit_counts_and_keeps_the_same(tmp_path: Path, wild: Wild, character: Character) -> None:
    data = (wild.folder / JOURNAL).read_bytes()
    for number, share in enumerate((0.3, 1.0)):
        capture = wild_capture(tmp_path / str(number), character)
        (capture.folder / JOURNAL).write_bytes(data[: int(share * len(data))])
        outcome = fit_capture(capture, 1, resume=True)
        assert outcome.diverged == wild.outcome.diverged
        assert files(capture.folder) == files(wild.folder)
        assert (capture.folder / CONTROLLER).read_bytes() == (wild.folder / CONTROLLER).read_bytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_a_beginning_that_is_no_state_comes_back_too(tmp_path: Path, wild: Wild, value: float) -> None:
    """What a state that was fixed in an earlier stage may leave behind."""
    kept = load_divergence(divergence_path(wild.folder, 1))
    begin = kept.begin.copy()
    begin[7 + len(kept.character.hinges) + 8] = value
    path = tmp_path / "0001.json"
    save_divergence(path, replace(kept, begin=begin))
    loaded = load_divergence(path)
    np.testing.assert_array_equal(loaded.begin, begin)
    again = replay_divergence(loaded)
    assert again.diverged
    assert again.step == start_step(begin)
    assert again.fastest == kept.character.hinge_names[2]
    assert again.clip is not None


def test_a_beginning_without_a_pose_has_no_motion(wild: Wild) -> None:
    kept = load_divergence(divergence_path(wild.folder, 1))
    begin = kept.begin.copy()
    begin[: 13 + 2 * len(kept.character.hinges)] = np.nan
    assert replay_divergence(replace(kept, begin=begin)).clip is None


Change = Callable[[dict[str, Any]], Any]

DAMAGES: list[tuple[str, Change, str]] = [
    ("no object", lambda d: [], "format is missing"),
    ("another format", lambda d: d.update(format="x"), "version is"),
    ("a later version", lambda d: d.update(version=2), "version is 2"),
    ("a missing entry", lambda d: d.pop("begin"), "begin is missing"),
    ("a short beginning", lambda d: d["begin"].pop(), "begin is"),
    ("words in the beginning", lambda d: d["begin"].__setitem__(3, "one"), "begin is"),
    ("a list in the beginning", lambda d: d["begin"].__setitem__(3, [1]), "begin is"),
    ("a huge number in the beginning", lambda d: d["begin"].__setitem__(3, 10**400), "begin is"),
    ("a state that is not there", lambda d: d["begin"].__setitem__(-MEMORY_SIZE + STATE, 1e6), "begin is"),
    ("a negative state", lambda d: d["begin"].__setitem__(-MEMORY_SIZE + STATE, -1), "begin is"),
    ("no state", lambda d: d["begin"].__setitem__(-MEMORY_SIZE + STATE, "nan"), "begin is"),
    ("a negative step", lambda d: d["begin"].__setitem__(-MEMORY_SIZE + STEP, -5), "begin is"),
    ("an end before the beginning", lambda d: d.update(end_step=-1), "end_step is -1"),
    ("an end that fills the memory", lambda d: d.update(end_step=10**9), "end_step is"),
    ("half a step", lambda d: d.update(end_step=7.5), "end_step is 7.5"),
    ("no end", lambda d: d.update(end_step=float("nan")), "end_step is nan"),
    ("a strange scale", lambda d: d.update(torque_scale="big"), "torque_scale is 'big'"),
    ("no engine's name", lambda d: d.update(engine=7), "engine is 7"),
    ("a controller that is none", lambda d: d.update(controller=[]), "controller is"),
    ("a wrong state", lambda d: d["controller"]["states"][0].pop("alpha"), r"controller: states\[0\]"),
    (
        "coefficients",
        lambda d: d["controller"]["states"][0].update(target={"coefficients": [1.0]}),
        "do not fit the prior",
    ),
    ("a character without a body", lambda d: d["character"].pop("segment"), "character"),
    ("a wrong setting", lambda d: d["config"].update(seed=-1), "seed"),
]


@pytest.mark.parametrize(("change", "says"), [d[1:] for d in DAMAGES], ids=[d[0] for d in DAMAGES])
def test_damage_is_refused_in_one_line(tmp_path: Path, wild: Wild, change: Change, says: str) -> None:
    data = json.loads(divergence_path(wild.folder, 1).read_text())
    changed = change(data)
    path = tmp_path / "0001.json"
    path.write_text(json.dumps(changed if isinstance(changed, list) and not changed else data))
    with pytest.raises(CaptureError, match=says) as refused:
        load_divergence(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, wild: Wild) -> None:
    data = divergence_path(wild.folder, 1).read_bytes().rstrip()
    path = tmp_path / "0001.json"
    draw = random.Random(1)
    for length in (0, 1, len(data) - 1, *(draw.randrange(len(data)) for _ in range(30))):
        path.write_bytes(data[:length])
        with pytest.raises(CaptureError, match="cannot be read"):
            load_divergence(path)


def test_one_that_is_not_there_names_those_that_are(tmp_path: Path, wild: Wild) -> None:
    with pytest.raises(CaptureError, match=r"0099\.json: no such file; there are 1, 2, 3, 4, 5"):
        api.replay_diverged(wild.folder, 99)
    calm = shutil.copytree(wild.folder, tmp_path / "calm", ignore=shutil.ignore_patterns(FOLDER))
    with pytest.raises(CaptureError, match="no simulation of this fit has diverged"):
        api.replay_diverged(calm)
    with pytest.raises(CaptureError, match="no capture folder"):
        api.replay_diverged(tmp_path)


def test_a_pool_without_a_witness_counts_too(wild: Wild) -> None:
    problem, values, judgement = wild.seen[0]
    with EvaluationPool(tiny_setup(wild.capture), 1) as pool:
        (again,) = pool.evaluate([Task(problem, values)])
    assert pool.diverged == int(judgement.diverged.sum())
    np.testing.assert_array_equal(again.terms, judgement.terms)
