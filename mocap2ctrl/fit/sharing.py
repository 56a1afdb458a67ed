"""Work that this process and others on the same machine do together."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from itertools import islice

from mocap2ctrl.fit.judgement import judge
from mocap2ctrl.fit.problem import Evaluator
from mocap2ctrl.fit.round import Piece, Round
from mocap2ctrl.fit.setup import EvaluationSetup
from mocap2ctrl.fit.worker import Answer, name_of, prepare, work_through

MOST = 6
"""Pieces in a message: enough to hide what a message costs."""

MESSAGES = 3
"""Of a worker's share of what is left: who is done first is known only message by message."""

Running = dict[Future[list[Answer]], list[Piece]]


class Sharing:
    """Shares rounds with the workers of one executor, as soon as they are ready for it."""

    def __init__(
        self, executor: Executor, capacity: int, key: str, setup: EvaluationSetup, evaluator: Evaluator
    ) -> None:
        """Has the workers prepared.

        Args:
            executor: of the workers.
            capacity: how many messages they should have at a time: those at work, and the next ones.
            key, setup: what they evaluate.
            evaluator: this process's own.
        """
        self.executor = executor
        self._others = capacity // 2
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
                self._hand_out(running, round_)
                if round_.make_next():
                    continue
                if round_.todo:
                    piece = round_.todo.popleft()
                    round_.found(piece, judge(self._evaluator, piece.task))
                elif not running:
                    return
                self._take_in(running, round_)
        finally:
            round_.put_back([piece for pieces in running.values() for piece in pieces])

    def _hand_out(self, running: Running, round_: Round) -> None:
        """Has the workers hold their share of what is left, those at work and the next ones, so that all end together."""
        while len(running) < self._capacity and self._workers_are_ready():
            held = sum(map(len, running.values()))
            share = -(-(held + len(round_.todo)) * self._others // (self._others + 1))
            count = min(MOST, -(-share // (MESSAGES * self._others)), len(round_.todo))
            if count < 1 or (held + count > share and len(running) >= self._others):
                return
            pieces = list(islice(round_.todo, count))
            running[self._send(pieces)] = pieces
            round_.take(pieces)

    def _workers_are_ready(self) -> bool:
        if not self._ready.done():
            return False
        self._ready.result()  # raises when one died
        return True

    def _send(self, pieces: list[Piece], setup: EvaluationSetup | None = None) -> Future[list[Answer]]:
        tasks = [piece.task for piece in pieces]
        return self.executor.submit(work_through, self._key, tasks, [name_of(task.problem) for task in tasks], setup)

    def _take_in(self, running: Running, round_: Round) -> None:
        """Collects answers; when there is nothing else to do, waits for the first."""
        if not running:
            return
        for future in wait(running, 0.0 if round_.todo else None, FIRST_COMPLETED).done:
            answers, pieces = future.result(), running[future]
            if answers[0].judgement is None:  # a worker that is new
                running[self._send(pieces, self._setup)] = pieces
            del running[future]
            for piece, answer in zip(pieces, answers, strict=True):
                if answer.judgement is not None:
                    round_.found(piece, answer.judgement)
