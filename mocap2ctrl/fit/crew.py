"""Who evaluates: this process, processes on this machine, or a cluster through somebody else's `concurrent.futures.Executor`."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from multiprocessing import get_context, parent_process

from mocap2ctrl.errors import ConfigError

MPI = "mpi"
SCHEDULER = re.compile(r"(tcp|tls)://\S+:\d+")


class Crew:
    """Evaluates in this process itself, without workers; what others override.

    Attributes:
        shared: whether this process evaluates beside the workers, instead of waiting for them.
        remote: whether the operating system does not count the workers' processor time as this process's children's.
        broken: exceptions by which an executor says that its workers are gone.
        attempts: executors that are tried in one generation before the fit is given up.
        advice: what happened and what to do then.
    """

    shared = False
    remote = False
    broken: tuple[type[BaseException], ...] = ()
    attempts = 1
    advice = ""

    def executor(self) -> Executor | None:
        """Runs tasks; None to run them in this process. The same one until `release`."""
        return None

    def capacity(self) -> int:
        """How many tasks the workers of a shared crew should have at a time: those at work, and the next ones."""
        return 0

    def start(self) -> None:
        """Starts workers of its own before there is anything to evaluate: they load what they need beside this process."""

    def check(self) -> None:
        """Called now and then while tasks are waited for.

        Raises:
            FitError: nobody is left to run them.
        """

    def release(self) -> None:
        """Ends workers that were started for a fit, or lets go of an executor that has broken."""


class LocalProcesses(Crew):
    """Processes on this machine, this one among them. The others start afresh and share no state; one that dies is replaced."""

    shared = True
    broken = (BrokenProcessPool,)
    attempts = 3
    advice = (
        f"worker processes died {attempts} times in one generation, perhaps for lack of memory; go on with --resume and fewer "
        "--workers"
    )

    def __init__(self, workers: int) -> None:
        """`workers` counts this process. The others start with `start`, or with the first evaluation."""
        self._others = workers - 1
        self._executor: ProcessPoolExecutor | None = None

    def executor(self) -> Executor:
        """See `Crew.executor`."""
        if self._executor is None:
            with _interrupts_ignored():
                self._executor = ProcessPoolExecutor(
                    self._others, mp_context=get_context("spawn"), initializer=_start_worker
                )
                for _ in range(self._others):  # starts all now, while they inherit that interrupts are ignored
                    self._executor.submit(_load)
        return self._executor

    def start(self) -> None:
        """See `Crew.start`."""
        self.executor()

    def capacity(self) -> int:
        """See `Crew.capacity`."""
        return 2 * self._others

    def release(self) -> None:
        """See `Crew.release`."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
        self._executor = None


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ctrl-C does nothing inside, in this process and in those that it starts; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides what Ctrl-C means
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _load() -> None:
    """What all tasks need takes longer to load than a process to start."""
    import_module("mocap2ctrl.fit.worker")


def _end_with_parent() -> None:
    """A main process that is killed cannot end its workers, which would wait for tasks for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def local_crew(workers: int) -> Crew:
    """`workers` processes on this machine, this one among them.

    Raises:
        ConfigError: fewer than one.
    """
    if workers < 1:
        raise ConfigError(f"workers is {workers}; allowed is 1 or more")
    return Crew() if workers == 1 else LocalProcesses(workers)


@contextmanager
def open_crew(workers: int | None, scheduler: str | None) -> Iterator[Crew]:
    """Who evaluates, from what a user gives; on leaving, workers are ended and a cluster's connection is closed.

    Args:
        workers: processes on this machine; all cores if not given.
        scheduler: of a Dask cluster, `tcp://HOST:PORT`; or `mpi`; None for this machine.

    Raises:
        ConfigError: both are given, one is not allowed, or the cluster cannot be used as it is.
        FitError: its workers have other versions.
    """
    if scheduler is None:
        crew = local_crew(default_workers() if workers is None else workers)
        try:
            yield crew
        finally:
            crew.release()  # workers that were started for nothing
        return
    if workers is not None:
        raise ConfigError(
            f"--workers {workers} and --scheduler {scheduler} were both given; --workers are processes on this machine, a "
            "scheduler has its own: leave one out"
        )
    if scheduler == MPI:
        from mocap2ctrl.fit.mpi_crew import open_mpi

        cluster: AbstractContextManager[Crew] = open_mpi()
    elif SCHEDULER.fullmatch(scheduler):
        from mocap2ctrl.fit.dask_crew import open_dask

        cluster = open_dask(scheduler)
    else:
        raise ConfigError(f"scheduler is {scheduler!r}; allowed is tcp://HOST:PORT of a Dask scheduler, or {MPI}")
    with cluster as connected:
        yield connected


def default_workers() -> int:
    """As many processes as this one may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
