"""Evaluation on a Dask cluster. Nothing else imports `distributed`."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from mocap2ctrl.errors import ConfigError, FitError
from mocap2ctrl.fit.crew import Crew
from mocap2ctrl.fit.worker import refuse_other_versions, versions

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 5.0
"""How long a scheduler may take to answer, and to have a worker."""

LOOK_S = 30.0
"""How long it may take a worker to import this package and look at its versions."""

DESERTED_S = 60.0
"""How long a fit waits for a worker when all have left; nannies bring them back within seconds."""

SILENT = logging.CRITICAL + 1


class DaskCluster(Crew):
    """The workers of a Dask scheduler, which gives the tasks of dead ones to others."""

    remote = True

    def __init__(self, client: Client, address: str) -> None:
        """On a connected client."""
        from distributed.scheduler import KilledWorker

        self.broken = (KilledWorker, CancelledError, ImportError)
        self.advice = (
            f"{address}: workers died again and again over one task, perhaps for lack of memory, or the scheduler has gone, or a "
            "worker that joined late has no mocap2ctrl; go on with --resume"
        )
        self._client, self._address = client, address
        self._executor = _executor(client)
        self._seen_s = time.monotonic()

    def executor(self) -> Executor:
        """See `Crew.executor`."""
        self._seen_s = time.monotonic()
        return self._executor

    def check(self) -> None:
        """See `Crew.check`."""
        if self._has_workers():
            self._seen_s = time.monotonic()
        if time.monotonic() - self._seen_s > DESERTED_S:
            raise FitError(f"{self._address}: no worker for {DESERTED_S:.0f} s; start some, then go on with --resume")

    def _has_workers(self) -> bool:
        try:
            return self._client.status == "running" and bool(_within(CONNECT_S, self._client.scheduler_info)["workers"])
        except OSError:  # nobody answers
            return False


def _executor(client: Client) -> Executor:
    """The client's own, but that a result stays one if its worker dies while it is told; that one raises a `TypeError` then."""
    from distributed.cfexecutor import ClientExecutor

    class Results(ClientExecutor):  # type: ignore[misc]
        def _wrap_future(self, future: Any) -> Future[Any]:
            told: Future[Any] = Future()
            told.add_done_callback(lambda _: future.cancel() if told.cancelled() else None)

            async def tell() -> None:
                found = await future._result(raiseit=False)
                if isinstance(found, CancelledError | asyncio.CancelledError):
                    told.cancel()
                    told.set_running_or_notify_cancel()  # without this, those that wait are not told
                elif not told.set_running_or_notify_cancel():
                    return
                elif isinstance(found, tuple):  # type, error and traceback
                    told.set_exception(found[1].with_traceback(found[2]))
                else:
                    told.set_result(found)

            self._client.loop.add_callback(tell)
            return told

    return Results(client, pure=False)


@contextmanager
def open_dask(address: str) -> Iterator[DaskCluster]:
    """Connects to a scheduler, and asks its workers for their versions.

    Raises:
        ConfigError: Dask is not installed here, or nobody answers at `address`, or no worker is there.
        FitError: the workers cannot run this mocap2ctrl.
    """
    try:
        import distributed
    except ImportError as error:
        raise ConfigError(
            f"scheduler {address}: Dask is not installed here; pip install distributed, or leave --scheduler out"
        ) from error
    with _silence():
        _check_scheduler(address)
        with _connected(distributed.Client, address) as client:
            _check_workers(client, address)
            yield DaskCluster(client, address)


def _check_scheduler(address: str) -> None:
    """Whether a scheduler answers; a client that meets anything else at its address waits, or fails in many ways."""
    try:
        with ThreadPoolExecutor(1) as thread:  # there may be an event loop in this one
            kind = thread.submit(asyncio.run, _kind_of(address)).result()
    except Exception as error:
        raise ConfigError(
            f"scheduler {address}: does not answer ({type(error).__name__}); start it with 'dask scheduler', or correct "
            "tcp://HOST:PORT"
        ) from error
    if kind != "Scheduler":
        raise ConfigError(f"scheduler {address}: is no scheduler but a {kind}; give the scheduler's address")


async def _kind_of(address: str) -> str:
    from distributed import rpc
    from distributed.security import Security

    async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
        answer = await asyncio.wait_for(server.identity(), CONNECT_S)
        return str(answer["type"])


@contextmanager
def _connected(make_client: type[Client], address: str) -> Iterator[Client]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other versions; what matters of them is refused
        client = make_client(address, timeout=CONNECT_S, set_as_default=False, name="mocap2ctrl")
    try:
        yield client
    finally:
        with suppress(TimeoutError):
            _within(CONNECT_S, client.close)


def _check_workers(client: Client, address: str) -> None:
    """Whether there are workers, and all are as this process is."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError as error:
        raise ConfigError(f"scheduler {address}: has no workers; start some with 'dask worker {address}'") from error
    try:
        # The scheduler unpickles what it passes on.
        found = [
            _within(LOOK_S, lambda: client.run_on_scheduler(versions)),
            *_within(LOOK_S, lambda: client.run(versions)).values(),
        ]
    except Exception as error:  # whatever keeps them from finding or running it
        raise FitError(
            f"{address}: the scheduler or a worker cannot run this mocap2ctrl ({type(error).__name__}: {error}); install the same "
            "version there"
        ) from error
    for theirs in found:
        refuse_other_versions(theirs)


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    """What `call` returns or raises; most of the client's calls wait for ever when the other side stands still.

    Raises:
        TimeoutError: it has not returned in time.
    """
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(seconds)


@contextmanager
def _silence() -> Iterator[None]:
    """What Dask would log of workers and schedulers that come and go is told, where it matters, by errors."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ("distributed", "tornado")]
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(SILENT)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
