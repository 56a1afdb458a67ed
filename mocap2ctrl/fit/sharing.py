"""Tasks that this process and workers on the same machine do together."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait

from mocap2ctrl.fit.judgement import Judgement, judge
from mocap2ctrl.fit.problem import Evaluator
from mocap2ctrl.fit.setup import EvaluationSetup
from mocap2ctrl.fit.worker import Answer, Task, prepare, work


class Sharing:
    """Shares tasks with the workers of one executor, as soon as they are ready for them."""

    def __init__(
        self, executor: Executor, capacity: int, key: str, setup: EvaluationSetup, evaluator: Evaluator
    ) -> None:
        """Has the workers prepared; `capacity` is how many tasks they should have at a time.

        Args:
            executor: of the workers.
            capacity: those at work and the next ones.
            key, setup: what they evaluate.
            evaluator: this process's own.
        """
        self.executor = executor
        self._capacity, self._key, self._setup, self._evaluator = capacity, key, setup, evaluator
        self._ready: Future[None] = executor.submit(prepare, key, setup)

    def judgements(self, tasks: Sequence[Task]) -> list[Judgement]:
        """Of each task: workers take them from the beginning, this process takes them from the end.

        Raises:
            concurrent.futures.BrokenExecutor: a worker died.
        """
        todo = _small_ones_in_the_middle(tasks)
        running: dict[Future[Answer], int] = {}
        found: dict[int, Judgement] = {}
        while todo or running:
            while todo and len(running) < self._capacity and self._workers_are_ready():
                self._hand_out(tasks, todo.popleft(), running)
            if todo:
                i = todo.pop()
                found[i] = judge(self._evaluator, *tasks[i])
            for future in _done(running, waiting=not todo):
                i, judgement = running.pop(future), future.result().judgement
                if judgement is None:  # a worker that is new
                    self._hand_out(tasks, i, running, self._setup)
                else:
                    found[i] = judgement
        return [found[i] for i in range(len(tasks))]

    def _workers_are_ready(self) -> bool:
        if not self._ready.done():
            return False
        self._ready.result()  # raises when one died
        return True

    def _hand_out(
        self, tasks: Sequence[Task], i: int, running: dict[Future[Answer], int], setup: EvaluationSetup | None = None
    ) -> None:
        running[self.executor.submit(work, self._key, tasks[i], setup)] = i


def _small_ones_in_the_middle(tasks: Sequence[Task]) -> deque[int]:
    """Indices of tasks, so that both ends begin with large ones and meet at small ones."""
    by_size = sorted(range(len(tasks)), key=lambda i: -len(tasks[i][1]))
    return deque([*by_size[::2], *by_size[1::2][::-1]])


def _done(running: dict[Future[Answer], int], waiting: bool) -> list[Future[Answer]]:
    """Futures that are done; of none, when `waiting`, the first one that will be."""
    if not running:
        return []
    return list(wait(running, None if waiting else 0.0, FIRST_COMPLETED).done)
