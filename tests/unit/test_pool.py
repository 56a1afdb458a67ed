"""The evaluation pool: the same bits for any number of workers, and whatever happens to them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from tiny_fit import needs_walk, tiny_capture, tiny_fit, tiny_setup

from mocap2ctrl.character.model import Character
from mocap2ctrl.control import closed_loop, mujoco_loop
from mocap2ctrl.control.closed_loop import start_vector
from mocap2ctrl.control.controller import Controller, Exit
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.fit import worker
from mocap2ctrl.fit.capture import CONTROLLER, JOURNAL
from mocap2ctrl.fit.crew import Crew
from mocap2ctrl.fit.journal import Journal
from mocap2ctrl.fit.judgement import LARGE, SMALL, TERMS, Judgement, Task, portions
from mocap2ctrl.fit.pool import EvaluationPool
from mocap2ctrl.fit.problem import Evaluator, Problem, Spreads, declare
from mocap2ctrl.fit.run import FitProgress, fit_capture
from mocap2ctrl.fit.setup import EvaluationSetup
from mocap2ctrl.fit.warm_start import reference_of
from mocap2ctrl.motion.clips import resample, state
from mocap2ctrl.types import Array

pytestmark = needs_walk

END_FRAME = 12


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory, character: Character) -> EvaluationSetup:
    return tiny_setup(tiny_capture(tmp_path_factory.mktemp("pool") / "capture", character))


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Problem:
    """Two states over the first 0.4 s of a walk, all free."""
    clip = resample(tiny_capture(tmp_path_factory.mktemp("problem") / "capture", character).reference, 120.0)
    reference = reference_of(clip, 0.0, character)
    first, second = (reference.state(name, begin, begin + 0.2) for name, begin in (("1", 0.0), ("2", 0.2)))
    leaving = type(first)(first.name, first.target, first.alpha, first.balance, first.swing, Exit("time", 0.2, "2"))
    start = state(clip, 0)
    controller = Controller((leaving, second), start)
    return Problem(controller, (0, 1), True, start_vector(start), 0, END_FRAME, Spreads(), "two states")


@pytest.fixture(scope="module")
def two_workers(setup: EvaluationSetup) -> Iterator[EvaluationPool]:
    with EvaluationPool(setup, 2) as pool:
        yield pool


def test_warming_up_compiles_what_evaluations_need(setup: EvaluationSetup, problem: Problem) -> None:
    """Read-only arrays are another type to numba: a second variant costs each worker of a first fit many seconds."""
    with EvaluationPool(setup, 1) as pool:
        closed_loop.compile_closed_loop(pool.evaluator.engine)
        compiled = list(mujoco_loop._loop.signatures)
        pool.evaluate([Task(problem, samples(pool, problem, 3))])
        fixed = replace(problem, free_start=False)
        pool.evaluate([Task(fixed, samples(pool, fixed, 1))])
    assert list(mujoco_loop._loop.signatures) == compiled


def samples(pool: EvaluationPool, problem: Problem, count: int, seed: int = 0) -> Array:
    """Parameter vectors, the guess first, some outside their bounds."""
    spec = pool.evaluator.spec(problem)
    z = np.random.default_rng(seed).normal(size=(count, len(spec)))
    z[0] = 0.0
    return spec.values(z)


def terms_of(pool: EvaluationPool, job: Task) -> Array:
    return pool.evaluate([job])[0].terms


def workers() -> list[int]:
    return [p.pid for p in multiprocessing.active_children() if p.pid is not None]


def test_workers_do_not_change_a_bit(setup: EvaluationSetup, two_workers: EvaluationPool, problem: Problem) -> None:
    """Populations of several sizes, several problems at once; chunks that do not divide evenly."""
    with EvaluationPool(setup, 1) as one:
        jobs = [Task(problem, samples(one, problem, n, seed=n), n > 1) for n in (1, LARGE, 5 * LARGE + 1)]
        alone = [terms_of(one, job) for job in jobs]
        together = one.evaluate(jobs)
        assert workers() == []
    parallel = two_workers.evaluate(jobs)
    for a, b, c, job in zip(alone, together, parallel, jobs, strict=True):
        assert a.shape == (len(job.values), len(TERMS))
        np.testing.assert_array_equal(a, b.terms)
        np.testing.assert_array_equal(a, c.terms)
        assert (b.residuals is not None) == job.residuals
        np.testing.assert_array_equal(b.residuals, c.residuals)


def test_a_vector_s_cost_does_not_depend_on_its_neighbours(setup: EvaluationSetup, problem: Problem) -> None:
    """Nothing leaks from one simulation into the next, not even a solver's warm start."""
    with EvaluationPool(setup, 1) as pool:
        values = samples(pool, problem, 9)
        forward, backward = terms_of(pool, Task(problem, values)), terms_of(pool, Task(problem, values[::-1]))
    np.testing.assert_array_equal(forward, backward[::-1])
    assert len(np.unique(forward[:, 0])) == 9


def test_terms_are_those_of_the_objective(setup: EvaluationSetup, problem: Problem) -> None:
    with EvaluationPool(setup, 1) as pool:
        values = samples(pool, problem, 4)
        terms = pool.evaluator.terms(problem, values)
        assert tuple(t.name for t in terms) == TERMS
        np.testing.assert_array_equal(terms_of(pool, Task(problem, values)), np.array([t.value for t in terms]).T)
        assert pool.evaluations == 4


class Threads(Crew):
    """Any executor will do: here one of threads, which must not share an engine."""

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count)

    def executor(self) -> Executor:
        return self._executor

    def release(self) -> None:
        self._executor.shutdown()


def test_each_worker_makes_its_evaluator_once_whatever_the_executor(
    setup: EvaluationSetup, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = EvaluationSetup.evaluator

    def count(self: EvaluationSetup) -> Evaluator:
        made.append(threading.current_thread().name)
        return make(self)

    monkeypatch.setattr(EvaluationSetup, "evaluator", count)
    with threadpool_limits(limits=1), EvaluationPool(setup, 1) as one, EvaluationPool(setup, Threads(3)) as pool:
        values = samples(one, problem, 60)
        for _ in range(4):
            np.testing.assert_array_equal(terms_of(pool, Task(problem, values)), terms_of(one, Task(problem, values)))
    own = threading.current_thread().name
    others = [name for name in made if name != own]
    assert made.count(own) == 2
    assert 1 <= len(others) <= 3
    assert len(set(others)) == len(others)


def test_a_worker_forgets_the_setups_of_long_ago(setup: EvaluationSetup, problem: Problem) -> None:
    """What a cluster's worker keeps of the fits it has served does not grow."""
    task = Task(problem, samples(EvaluationPool(setup, 1), problem, 1))
    with threadpool_limits(limits=1):
        answers = [worker.work(f"fit {i}", task, setup) for i in range(worker.SETUPS_KEPT + 1)]
    assert all(answer.judgement is not None for answer in answers)
    assert worker.work("fit 0", task).judgement is None
    assert worker.work("fit 0", task).versions == worker.versions()
    assert worker.work("fit 1", task).judgement is not None


def test_a_worker_knows_a_problem_again(setup: EvaluationSetup, problem: Problem) -> None:
    """Each message brings another copy of it; its parameters are declared once."""
    task = Task(problem, samples(EvaluationPool(setup, 1), problem, 2))
    name = worker.name_of(problem)
    declare.cache_clear()
    with threadpool_limits(limits=1):
        answers = [worker.work_through(name, [replaced(task), task], [name, name], setup) for _ in range(3)]
    assert declare.cache_info().misses == 1
    first = answers[0][0].judgement
    for answer in (answer for message in answers for answer in message):
        assert answer.judgement is not None
        assert first is not None
        np.testing.assert_array_equal(answer.judgement.terms, first.terms)
    assert worker.name_of(replaced(task).problem) != name


def replaced(task: Task) -> Task:
    """With a copy of its problem, as a message brings."""
    return task._replace(problem=replace(task.problem))


def test_recorded_costs_are_told_instead_of_simulated(tmp_path: Path, setup: EvaluationSetup, problem: Problem) -> None:
    """A journal with made-up costs: they come back, then the real ones follow and are recorded."""
    made_up = np.arange(5.0 * len(TERMS)).reshape(5, -1)
    path = tmp_path / "journal.bin"
    with contextlib.closing(Journal(path, b"key", resume=False)) as journal:
        journal.append(1, Judgement(made_up[2:], np.array([False, True, True])))
        journal.append(0, Judgement(made_up[:2], np.array([False, True])))
    with (
        contextlib.closing(Journal(path, b"key", resume=True)) as journal,
        EvaluationPool(setup, 1, journal) as pool,
    ):
        values = samples(pool, problem, 5)
        told = pool.evaluate([Task(problem, values[:2]), Task(problem, values[2:])])
        np.testing.assert_array_equal(np.concatenate([t.terms for t in told]), made_up)
        assert [t.diverged.tolist() for t in told] == [[False, True], [False, True, True]]
        assert pool.diverged == 3
        real = terms_of(pool, Task(problem, values))
        assert not np.any(real[:, 0] == made_up[:, 0])
        assert pool.evaluations == 10
        assert pool.diverged == 3
    with contextlib.closing(Journal(path, b"key", resume=True)) as journal:
        assert journal.recorded == 10


def test_a_worker_killed_while_idle_is_replaced(
    setup: EvaluationSetup, two_workers: EvaluationPool, problem: Problem
) -> None:
    values = samples(two_workers, problem, 30)
    before = terms_of(two_workers, Task(problem, values))
    os.kill(workers()[0], signal.SIGKILL)
    np.testing.assert_array_equal(terms_of(two_workers, Task(problem, values)), before)


def test_a_worker_killed_at_work_is_replaced(two_workers: EvaluationPool, problem: Problem) -> None:
    values = np.tile(samples(two_workers, problem, 30), (20, 1))
    before = terms_of(two_workers, Task(problem, values[:30]))
    victim = workers()[0]
    killer = threading.Timer(0.2, os.kill, (victim, signal.SIGKILL))
    killer.start()
    during = terms_of(two_workers, Task(problem, values))
    killer.join()
    assert victim not in workers()
    np.testing.assert_array_equal(during, np.tile(before, (20, 1)))


def test_workers_that_die_again_and_again_end_the_fit_with_advice(setup: EvaluationSetup, problem: Problem) -> None:
    done, others = threading.Event(), set(workers())

    def kill_all() -> None:
        while not done.wait(0.02):
            for pid in set(workers()) - others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_all)
    killer.start()
    try:
        with (
            EvaluationPool(setup, 2) as pool,
            pytest.raises(Mocap2CtrlError, match=r"died.*--resume and fewer --workers"),
        ):
            pool.evaluate([Task(problem, samples(pool, problem, 600))])
    finally:
        done.set()
        killer.join()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Path:
    """The folder of a fit without workers."""
    folder = tmp_path_factory.mktemp("plain") / "walk"
    tiny_fit(folder, character)
    return folder


def same_files(a: Path, b: Path) -> bool:
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in (CONTROLLER, JOURNAL))


def test_a_fit_is_the_same_with_four_workers(tmp_path: Path, character: Character, plain: Path) -> None:
    tiny_fit(tmp_path / "four", character, workers=4)
    assert same_files(tmp_path / "four", plain)


def test_a_fit_is_the_same_with_two_workers_one_of_which_dies(
    tmp_path: Path, character: Character, plain: Path
) -> None:
    others = set(workers())
    rough = tiny_capture(tmp_path / "rough", character)
    killed: list[int] = []

    def kill_one(progress: FitProgress) -> None:
        mine = set(workers()) - others
        if progress.stage == 2 and not killed and mine:
            killed.append(min(mine))
            os.kill(killed[0], signal.SIGKILL)

    fit_capture(rough, 2, False, kill_one)
    assert killed
    assert set(workers()) <= others
    assert same_files(rough.folder, plain)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 9, 17, 18, 54, 100])
def test_portions_cover_a_population_once_large_ones_first(count: int) -> None:
    parts = portions(count)
    np.testing.assert_array_equal(np.concatenate([np.arange(count)[part] for part in parts]), np.arange(count))
    sizes = [part.stop - part.start for part in parts]
    assert sorted(sizes, reverse=True) == sizes
    assert set(sizes[:-1]) <= {LARGE, SMALL}
    assert 0 < sizes[-1] <= LARGE
