"""Evaluates populations on worker processes, the same bits for any number of them, and keeps a journal of every cost.

The journal makes a fit resumable: searches depend only on seeds and costs, so a resumed fit asks the same questions and is told
the recorded answers, until they run out. A record that a crash cut short is dropped.
"""

from __future__ import annotations

import os
import signal
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mocap2ctrl.character.model import parse_character
from mocap2ctrl.control.closed_loop import compile_closed_loop
from mocap2ctrl.errors import CaptureError, FitError
from mocap2ctrl.fit.problem import Evaluator, Problem
from mocap2ctrl.objective.silhouettes import compile_silhouettes
from mocap2ctrl.objective.target import MarkerTarget, SilhouetteTarget
from mocap2ctrl.objective.terms import Objective, Weights
from mocap2ctrl.prior.pca import Prior
from mocap2ctrl.simulation.choose import make_engine
from mocap2ctrl.types import Array

TERMS = ("markers", "velocity", "stability", "prior", "contact", "silhouette")
CHUNK = 6
"""Parameter vectors a task: small enough to balance workers, large enough to hide the cost of a message."""

WORKER_RESTARTS = 3


@dataclass(frozen=True, eq=False)
class EvaluationSetup:
    """What a worker needs to judge controllers; plain values, sent once.

    Attributes:
        character: the character's description.
        engine: name of the engine.
        torque_scale: factor on the torque bounds.
        target: the reference's markers.
        weights: lambda.
        prior: decodes target poses.
        silhouettes: what a camera saw, at the target's frames; None for motion capture.
    """

    character: Mapping[str, Any]
    engine: str
    torque_scale: float
    target: MarkerTarget
    weights: Weights
    prior: Prior
    silhouettes: SilhouetteTarget | None = None

    def evaluator(self) -> Evaluator:
        """An evaluator with an engine of its own."""
        engine = make_engine(
            self.engine, parse_character(self.character, "the character"), torque_scale=self.torque_scale
        )
        stride = round(1.0 / (self.target.fps * engine.time_step_s))
        objective = Objective(engine.character, self.target, self.weights, self.silhouettes)
        return Evaluator(engine, objective, self.prior, stride)


class EvaluationPool:
    """Judges populations of several problems at once. A context manager: leaving it ends the workers."""

    def __init__(self, setup: EvaluationSetup, workers: int, journal: Journal | None = None) -> None:
        """Makes the evaluator of this process; `workers` above 1 start with the first evaluation."""
        self.evaluator = setup.evaluator()
        self.evaluations = 0
        self.diverged = 0
        self._setup = setup
        self._workers = workers
        self._journal = journal
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> EvaluationPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def evaluate(self, jobs: Sequence[tuple[Problem, Array]]) -> list[Array]:
        """Unweighted terms, (P, len(TERMS)) for each job of a problem and parameter vectors (P, N)."""
        sizes = [len(values) for _, values in jobs]
        self.evaluations += sum(sizes)
        recorded = self._journal.next(sum(sizes)) if self._journal else None
        if recorded is None:
            recorded = np.concatenate(self._simulate(jobs))
            if self._journal:
                self._journal.append(recorded)
        return np.split(recorded, np.cumsum(sizes)[:-1])

    def _simulate(self, jobs: Sequence[tuple[Problem, Array]]) -> list[Array]:
        tasks = [(p, x[i : i + CHUNK]) for p, x in jobs for i in range(0, len(x), CHUNK)]
        if self._workers == 1:
            return [term_values(self.evaluator, task) for task in tasks]
        for attempt in range(WORKER_RESTARTS):
            try:
                if self._executor is None:
                    with _interrupts_ignored():
                        self._executor = self._start()
                return list(self._executor.map(_evaluate_in_worker, tasks))
            except BrokenProcessPool:
                if self._executor is not None:
                    self._executor.shutdown(wait=False, cancel_futures=True)
                self._executor = None
                if attempt == WORKER_RESTARTS - 1:
                    raise FitError(
                        f"worker processes died {WORKER_RESTARTS} times in one generation, perhaps for lack of memory; "
                        "go on with --resume and fewer --workers"
                    ) from None
        raise AssertionError

    def _start(self) -> ProcessPoolExecutor:
        compile_closed_loop(self.evaluator.engine)  # once here, so that workers find it in the cache
        if self.evaluator.objective.view is not None:
            compile_silhouettes(self.evaluator.objective.view)
        executor = ProcessPoolExecutor(
            self._workers, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(self._setup,)
        )
        executor.submit(os.getpid)  # starts all workers now, while they inherit that interrupts are ignored
        return executor


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


def term_values(evaluator: Evaluator, task: tuple[Problem, Array]) -> Array:
    """(P, len(TERMS)) unweighted terms of one task."""
    return np.stack([term.value for term in evaluator.terms(*task)], axis=1)


_worker_evaluator: Evaluator | None = None


def _start_worker(setup: EvaluationSetup) -> None:
    global _worker_evaluator  # a worker process has one evaluator for its life
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides what Ctrl-C means
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(limits=1)  # cores are shared out among workers, not among BLAS threads
    _worker_evaluator = setup.evaluator()


def _end_with_parent() -> None:
    """A main process that is killed cannot end its workers, which would wait for tasks for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _evaluate_in_worker(task: tuple[Problem, Array]) -> Array:
    if _worker_evaluator is None:
        raise RuntimeError("the worker was not started with a setup")
    return term_values(_worker_evaluator, task)


class Journal:
    """An append-only file of evaluated costs, each record with its length and checksum, bound to a fit by a key."""

    MAGIC = b"mocap2ctrl journal 1\n"
    HEADER = struct.Struct("<II")

    def __init__(self, path: Path, key: bytes, resume: bool) -> None:
        """Opens the journal at `path`; without `resume` it begins anew.

        Raises:
            CaptureError: it was written by a fit of other input or settings.
        """
        self._path = path
        self._records: list[Array] = []
        self._position = 0
        head = self.MAGIC + key.hex().encode() + b"\n"
        end = len(head)
        if resume and path.exists():
            data = path.read_bytes()
            if data.startswith(head):
                self._records, end = self._read(data, len(head))
            elif data.startswith(self.MAGIC) and not head.startswith(data):
                raise CaptureError(
                    f"{path.parent.parent}: was begun with other input, settings or version; "
                    "resume with the same ones, or use --overwrite"
                )
        # Unbuffered, so that after a failed write nothing waits to fail again on closing.
        self._file = open(path, "r+b" if self._records else "wb", buffering=0)  # noqa: SIM115  # lives as long as the fit
        if self._records:
            self._file.truncate(end)
            self._file.seek(end)
        else:
            self._write(head)

    @property
    def recorded(self) -> int:
        """How many evaluations it holds."""
        return sum(len(r) for r in self._records)

    def next(self, size: int) -> Array | None:
        """The next recorded (size, len(TERMS)) costs, or None when there are no more."""
        if self._position == len(self._records):
            return None
        record = self._records[self._position]
        if len(record) != size:
            raise CaptureError(
                f"{self._path}: a record has {len(record)} costs where {size} were asked for; use --overwrite"
            )
        self._position += 1
        return record

    def append(self, costs: Array) -> None:
        """Adds costs (n, len(TERMS)); they are in the operating system's hands when this returns."""
        payload = np.ascontiguousarray(costs, dtype="<f8").tobytes()
        self._write(self.HEADER.pack(len(payload), zlib.crc32(payload)) + payload)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    @classmethod
    def _read(cls, data: bytes, offset: int) -> tuple[list[Array], int]:
        records = []
        while offset + cls.HEADER.size <= len(data):
            size, checksum = cls.HEADER.unpack_from(data, offset)
            payload = data[offset + cls.HEADER.size : offset + cls.HEADER.size + size]
            if size == 0 or len(payload) < size or zlib.crc32(payload) != checksum:
                break  # zeros after a power failure look like an empty record
            records.append(np.frombuffer(payload, "<f8").reshape(-1, len(TERMS)).copy())
            offset += cls.HEADER.size + size
        return records, offset
