"""One generation's work: populations that are made while others are judged, and told as soon as they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mocap2ctrl.fit.judgement import Judgement, joined, portions
from mocap2ctrl.fit.worker import Task

Told = Callable[[int, Judgement], None]
"""Told the number of a population and what it came to."""


class Piece(NamedTuple):
    """What one worker evaluates at a time: part number `part` of population number `job`."""

    job: int
    part: int
    task: Task


class Round:
    """Populations of one generation, one for each search, on their way from questions to answers.

    Attributes:
        jobs: populations made so far: problems and parameter vectors (P, N).
        todo: pieces of them that nobody has taken yet.
        complete: whether all are made.
    """

    def __init__(self, jobs: Iterable[Task], told: Told) -> None:
        """`jobs` are asked for one by one; `told` hears of each as soon as it is judged, whatever the order."""
        self.jobs: list[Task] = []
        self.todo: deque[Piece] = deque()
        self._source, self._told, self.complete = iter(jobs), told, False
        self._found: list[list[Judgement | None]] = []
        self._judgements: dict[int, Judgement] = {}

    def make_next(self) -> bool:
        """Makes the next population; False when all are made."""
        job = next(self._source, None)
        if job is None:
            if not self.complete:
                self.todo = _small_ones_in_the_middle(self.todo)
            self.complete = True
            return False
        problem, values = job
        parts = portions(len(values))
        number = len(self.jobs)
        self.jobs.append(job)
        self._found.append([None] * len(parts))
        self.todo.extend(Piece(number, k, (problem, values[part])) for k, part in enumerate(parts))
        return True

    def make_all(self) -> None:
        """Makes all populations."""
        while self.make_next():
            pass

    def found(self, piece: Piece, judgement: Judgement) -> None:
        """Keeps what a piece came to, and tells of its population when that was the last one."""
        parts = self._found[piece.job]
        parts[piece.part] = judgement
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            self.settle(piece.job, joined(known))

    def settle(self, job: int, judgement: Judgement) -> None:
        """Tells what a whole population came to."""
        self._judgements[job] = judgement
        self._told(job, judgement)

    def put_back(self, pieces: Iterable[Piece]) -> None:
        """Pieces whose worker died are to be done again."""
        self.todo.extend(pieces)

    @property
    def judgements(self) -> list[Judgement]:
        """Of all populations, in their order."""
        return [self._judgements[number] for number in range(len(self.jobs))]


def _small_ones_in_the_middle(pieces: Sequence[Piece]) -> deque[Piece]:
    """Both ends begin with large ones and meet at small ones."""
    by_size = sorted(pieces, key=lambda piece: -len(piece.task[1]))
    return deque([*by_size[::2], *by_size[1::2][::-1]])
