"""Fits on a real Dask cluster of worker processes: the same bits as here, and whatever happens to its parts."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dask_cluster
import pytest
from dask_cluster import Cluster, kill_group, wait_for_workers
from tiny_fit import WALK, needs_walk, tiny_capture

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, FitError
from mocap2ctrl.fit import dask_crew, pool
from mocap2ctrl.fit.capture import CONTROLLER, JOURNAL
from mocap2ctrl.fit.crew import open_crew
from mocap2ctrl.fit.run import FitOutcome, FitProgress, fit_capture
from mocap2ctrl.fit.worker import refuse_other_versions, versions

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
pytestmark = [
    needs_walk,
    # Dask's client leaves a socket or two to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

THREADS = ("--no-nanny", "--nthreads", "2")
HERE = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two worker processes of two threads each."""
    with dask_cluster.dask_cluster(tmp_path_factory.mktemp("dask"), 2, *THREADS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, character: Character) -> FitOutcome:
    """The fit of this process alone."""
    return fit_capture(tiny_capture(tmp_path_factory.mktemp("plain") / "walk", character, generations=6), 1, False)


def dask_fit(
    folder: Path,
    character: Character,
    address: str,
    on_progress: Callable[[FitProgress], None] = lambda progress: None,
    resume: bool = False,
) -> FitOutcome:
    capture = tiny_capture(folder, character, generations=6)
    with open_crew(None, address) as crew:
        return fit_capture(capture, crew, resume, on_progress)


def same_files(a: FitOutcome, b: FitOutcome) -> bool:
    return all(
        (a.capture.folder / name).read_bytes() == (b.capture.folder / name).read_bytes()
        for name in (CONTROLLER, JOURNAL)
    )


def test_the_same_bits_as_here(tmp_path: Path, character: Character, cluster: Cluster, plain: FitOutcome) -> None:
    """On two processes, in two threads each; a second fit finds workers that know another."""
    for name in ("a", "b"):
        outcome = dask_fit(tmp_path / name, character, cluster.address)
        assert same_files(outcome, plain)
    assert 0.0 < outcome.remote_s < outcome.core_s


def test_by_the_command_line(tmp_path: Path, cluster: Cluster) -> None:
    """One object on stdout, nothing of Dask's on stderr."""
    program = (
        "import sys; from dataclasses import replace; from mocap2ctrl.cli.main import main; from mocap2ctrl.fit import config; "
        "config.BUDGETS['tiny'] = replace(config.budget('quick'), generations=2); sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["fit", WALK, "-o", str(tmp_path / "walk"), "--budget", "tiny", "--time-range", "0", "0.2", "--json"]
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--scheduler", cluster.address],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["evaluations"] > 0
    assert "distributed" not in ran.stderr
    assert "Traceback" not in ran.stderr


def test_workers_killed_at_work_are_replaced_by_those_that_join_late(
    tmp_path: Path, character: Character, cluster: Cluster, plain: FitOutcome
) -> None:
    """All that had the setup go while they evaluate."""
    first, joined = list(cluster.workers), threading.Event()

    def kill() -> None:
        for worker in first:
            kill_group(worker)

    def exchange(progress: FitProgress) -> None:
        if progress.stage == 2 and not joined.is_set():
            joined.set()
            for _ in first:
                cluster.add_worker(*THREADS)
            wait_for_workers(cluster, 2 * len(first))
            threading.Timer(0.02, kill).start()

    assert same_files(dask_fit(tmp_path / "walk", character, cluster.address, exchange), plain)
    assert joined.is_set()
    assert [worker.poll() for worker in first] == [-signal.SIGKILL] * len(first)


def test_a_result_is_one_also_if_its_worker_dies_while_it_is_told(cluster: Cluster) -> None:
    """The client's own executor takes it for an error, and fails to raise it."""
    with distributed.Client(cluster.address, set_as_default=False) as client:
        executor = dask_crew._executor(client)
        gather = client._gather

        async def late(futures: list[distributed.Future]) -> object:
            found = await gather(futures)
            for future in futures:
                future._state.lose()
            return found

        client._gather = late
        assert executor.submit(len, "four").result(timeout=30.0) == 4
        with pytest.raises(TypeError, match="int"):
            executor.submit(len, 4).result(timeout=30.0)


def die(*arguments: object) -> None:
    """A task that no worker survives."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[Cluster]:
    """One worker, which finds this file; a task that takes it along is not tried again."""
    environment = {"PYTHONPATH": HERE, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with dask_cluster.dask_cluster(tmp_path, 1, "--no-nanny", environment=environment) as cluster:
        yield cluster


def test_a_task_that_kills_its_workers_ends_the_fit_with_advice(
    tmp_path: Path, character: Character, lonely: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "work", die)
    with pytest.raises(FitError, match=r"died again and again.*--resume"):
        dask_fit(tmp_path / "walk", character, lonely.address)


@pytest.mark.parametrize("what", ["workers die", "scheduler dies", "scheduler stands still"])
def test_when_all_are_gone_the_fit_ends_and_can_be_resumed(
    tmp_path: Path,
    character: Character,
    lonely: Cluster,
    plain: FitOutcome,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    monkeypatch.setattr(dask_crew, "DESERTED_S", 1.0)
    monkeypatch.setattr(pool, "LOOK_EVERY_S", 0.2)

    def kill(progress: FitProgress) -> None:
        if progress.stage != 2:
            return
        monkeypatch.setattr(dask_crew, "CONNECT_S", 0.5)
        if what == "scheduler stands still":
            os.killpg(lonely.scheduler.pid, signal.SIGSTOP)
        elif what == "scheduler dies":
            kill_group(lonely.scheduler)
        else:
            kill_group(*lonely.workers)

    begun = time.monotonic()
    with pytest.raises(FitError, match=r"--resume"):
        dask_fit(tmp_path / "walk", character, lonely.address, kill)
    assert time.monotonic() - begun < 30.0
    capture = tiny_capture(tmp_path / "copy", character, generations=6)
    (capture.folder / JOURNAL).write_bytes((tmp_path / "walk" / JOURNAL).read_bytes())
    assert same_files(fit_capture(capture, 1, resume=True), plain)


def test_other_versions_and_other_environments_are_refused(tmp_path: Path) -> None:
    """A worker whose numpy says that it is 0.0.1, one that has no mocap2ctrl, and then the scheduler that has none."""
    for name in ("old", "bare"):
        (tmp_path / name).mkdir()
    (tmp_path / "old" / "numpy-0.0.1.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: numpy\nVersion: 0.0.1\n"
    (tmp_path / "old" / "numpy-0.0.1.dist-info" / "METADATA").write_text(metadata)
    (tmp_path / "bare" / "mocap2ctrl.py").write_text("raise ImportError('not here')")
    bare = {"PYTHONPATH": str(tmp_path / "bare")}
    cannot = r"cannot run this mocap2ctrl.*not here.*install the same version"
    with dask_cluster.dask_cluster(tmp_path, 0) as cluster:
        for environment, says in (
            ({"PYTHONPATH": str(tmp_path / "old")}, r"has numpy 0\.0\.1, this process \d.*same versions"),
            (bare, cannot),
        ):
            worker = cluster.add_worker("--no-nanny", environment=environment)
            wait_for_workers(cluster, 1)
            refuses(cluster, says)
            kill_group(worker)
    (tmp_path / "scheduler.json").unlink()
    with dask_cluster.dask_cluster(tmp_path, 0, environment=bare) as cluster:
        cluster.add_worker("--no-nanny")
        wait_for_workers(cluster, 1)
        refuses(cluster, cannot)


def refuses(cluster: Cluster, says: str) -> None:
    with pytest.raises(FitError, match=says), open_crew(None, cluster.address):
        pass


def test_a_scheduler_without_workers_and_the_address_of_a_worker_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_crew, "CONNECT_S", 1.0)
    with dask_cluster.dask_cluster(tmp_path, 0) as cluster:
        with pytest.raises(ConfigError, match=r"has no workers; start some"), open_crew(None, cluster.address):
            pass
        cluster.add_worker("--no-nanny")
        wait_for_workers(cluster, 1)
        with distributed.Client(cluster.address, set_as_default=False) as client:
            (worker,) = client.scheduler_info()["workers"]
        with pytest.raises(ConfigError, match=r"is no scheduler but a Worker"), open_crew(None, worker):
            pass


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://nobody.invalid:8786"])
def test_a_scheduler_that_does_not_answer_is_refused_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_crew, "CONNECT_S", 0.5)
    begun = time.monotonic()
    with pytest.raises(ConfigError, match=r"does not answer.*'dask scheduler'"), open_crew(None, address):
        pass
    assert time.monotonic() - begun < 10.0


def test_dask_s_loggers_are_as_before(cluster: Cluster) -> None:
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.worker")]
    before = [logger.level for logger in loggers]
    with open_crew(None, cluster.address):
        assert not any(logger.isEnabledFor(logging.CRITICAL) for logger in loggers)
    assert [logger.level for logger in loggers] == before


def test_each_difference_of_versions_is_named() -> None:
    own = versions()
    refuse_other_versions(own)
    for name in own:
        with pytest.raises(FitError, match=f"a worker or its scheduler has {name} x, this process"):
            refuse_other_versions({**own, name: "x"})
        with pytest.raises(FitError, match=f"a worker or its scheduler has {name} of no known version"):
            refuse_other_versions({key: value for key, value in own.items() if key != name})
