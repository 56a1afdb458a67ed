"""A real Dask cluster on this machine: a scheduler and worker processes, started as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 60.0


@dataclass
class Cluster:
    """Processes in groups of their own, a nanny and its worker together.

    Attributes:
        address: of the scheduler.
        folder: where they run and log.
        scheduler: the process.
        workers: the processes, nannies where there are any.
    """

    address: str
    folder: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self, *options: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts one more; it joins within seconds."""
        command = ("distributed.cli.dask_worker", self.address, "--no-dashboard", "--nworkers", "1", *options)
        self.workers.append(_started(command, self.folder, environment))
        return self.workers[-1]

    def end(self) -> None:
        """Kills all of them."""
        for process in (*self.workers, self.scheduler):
            kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to a process and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)


def _started(command: Sequence[str], folder: Path, environment: dict[str, str] | None) -> subprocess.Popen[bytes]:
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", *command],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@contextmanager
def dask_cluster(
    folder: Path, workers: int, *options: str, environment: dict[str, str] | None = None
) -> Iterator[Cluster]:
    """A scheduler on a free port of 127.0.0.1 with `workers` processes, which are there when this yields.

    `environment` is the scheduler's and theirs, beside this process's.
    """
    found = folder / "scheduler.json"
    command = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    scheduler = _started((*command, "--scheduler-file", str(found)), folder, environment)
    cluster = Cluster("", folder, scheduler)
    try:
        cluster.address = _address(found, scheduler)
        for _ in range(workers):
            cluster.add_worker(*options, environment=environment)
        if workers:
            wait_for_workers(cluster, workers)
        yield cluster
    finally:
        cluster.end()


def _address(found: Path, scheduler: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and scheduler.poll() is None:
        try:
            return str(json.loads(found.read_text())["address"])
        except (OSError, ValueError, KeyError):
            time.sleep(0.05)
    raise AssertionError(f"no scheduler: {found.with_name('log.txt').read_text()}")


def wait_for_workers(cluster: Cluster, count: int) -> None:
    """Until `count` workers are there."""
    from distributed import Client

    with Client(cluster.address, timeout=PATIENCE_S, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=PATIENCE_S)
