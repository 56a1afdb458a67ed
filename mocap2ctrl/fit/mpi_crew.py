"""Evaluation on the processes of an MPI job. Nothing else imports `mpi4py`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager

from mocap2ctrl.errors import ConfigError
from mocap2ctrl.fit.crew import Crew

COMMAND = "mpiexec -n 5 python -m mpi4py.futures -m mocap2ctrl fit … --scheduler mpi"
"""One process that searches, and four that evaluate."""


class MpiProcesses(Crew):
    """The other processes of the job; when one dies, MPI ends the whole job, and `--resume` goes on."""

    remote = True
    broken = (BrokenExecutor,)
    advice = "the job's workers have gone; go on with --resume"

    def __init__(self, executor: Executor) -> None:
        """On the job's executor."""
        self._executor = executor

    def executor(self) -> Executor:
        """See `Crew.executor`."""
        return self._executor


@contextmanager
def open_mpi() -> Iterator[MpiProcesses]:
    """The workers of the MPI job that this process is the first of.

    Raises:
        ConfigError: mpi4py or an MPI library is not installed, or this is no such job.
    """
    try:
        from mpi4py import futures
        from mpi4py.futures import _core
    except (ImportError, RuntimeError) as error:  # the second: there is no MPI library
        raise ConfigError(
            "scheduler mpi: mpi4py or an MPI library is not installed here; pip install mpi4py mpich, or leave --scheduler out"
        ) from error
    # Without the pool that `-m mpi4py.futures` makes, each process of the job would fit by itself, into the same folder.
    if getattr(_core, "SharedPool", None) is None:
        raise ConfigError(f"scheduler mpi: this process is not part of an MPI job; start it with {COMMAND}")
    with futures.MPIPoolExecutor() as executor:
        if executor.num_workers < 1:
            raise ConfigError(f"scheduler mpi: the job has no process to evaluate; start it with {COMMAND}")
        yield MpiProcesses(executor)
