"""Work that this process and others on the same machine do together."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait

from mocap2ctrl.fit.judgement import judge
from mocap2ctrl.fit.problem import Evaluator
from mocap2ctrl.fit.round import Piece, Round
from mocap2ctrl.fit.setup import EvaluationSetup
from mocap2ctrl.fit.worker import Answer, prepare, work

Running = dict[Future[Answer], Piece]


class Sharing:
    """Shares rounds with the workers of one executor, as soon as they are ready for it."""

    def __init__(
        self, executor: Executor, capacity: int, key: str, setup: EvaluationSetup, evaluator: Evaluator
    ) -> None:
        """Has the workers prepared.

        Args:
            executor: of the workers.
            capacity: how many pieces they should have at a time: those at work, and the next ones.
            key, setup: what they evaluate.
            evaluator: this process's own.
        """
        self.executor = executor
        self._capacity, self._key, self._setup, self._evaluator = capacity, key, setup, evaluator
        self._ready: Future[None] = executor.submit(prepare, key, setup)

    def judge(self, round_: Round) -> None:
        """Judges all of a round. This process makes populations whenever it can, and does pieces as the workers do.

        Raises:
            concurrent.futures.BrokenExecutor: a worker died; what it had is to be done again.
        """
        running: Running = {}
        try:
            while True:
                while round_.todo and len(running) < self._wanted(round_) and self._workers_are_ready():
                    self._hand_out(running, round_.todo.popleft())
                if round_.make_next():
                    continue
                if round_.todo:
                    piece = round_.todo.popleft()
                    round_.found(piece, judge(self._evaluator, piece.task))
                elif not running:
                    return
                self._take_in(running, round_)
        finally:
            round_.put_back(list(running.values()))

    def _wanted(self, round_: Round) -> int:
        """How many pieces workers should have: those at work and the next ones, which are none when all should end together."""
        plenty = len(round_.todo) > self._capacity or not round_.complete
        return self._capacity if plenty else self._capacity // 2

    def _workers_are_ready(self) -> bool:
        if not self._ready.done():
            return False
        self._ready.result()  # raises when one died
        return True

    def _hand_out(self, running: Running, piece: Piece, setup: EvaluationSetup | None = None) -> None:
        running[self.executor.submit(work, self._key, piece.task, setup)] = piece

    def _take_in(self, running: Running, round_: Round) -> None:
        """Collects answers; when there is nothing else to do, waits for the first."""
        if not running:
            return
        for future in wait(running, 0.0 if round_.todo else None, FIRST_COMPLETED).done:
            judgement = future.result().judgement
            piece = running.pop(future)
            if judgement is None:  # a worker that is new
                self._hand_out(running, piece, self._setup)
            else:
                round_.found(piece, judgement)
