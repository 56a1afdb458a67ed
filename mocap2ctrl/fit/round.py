"""Populations of several searches on their way from questions to answers, each search at its own pace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from mocap2ctrl.fit.judgement import Judgement, Task, joined, portions

AHEAD = 3
"""Generations that a search may be ahead of the slowest, so that all end at about the same time."""


class Asker(Protocol):
    """A search that asks what its next population comes to, and is told."""

    def ask(self) -> Task:
        """The next population. Every `ask` is followed by one `tell`."""

    def digest(self, judgement: Judgement) -> Judgement:
        """What of an answer is to be kept, and told: the same, or, of residuals, the steps that follow from them."""

    def tell(self, judgement: Judgement) -> None:
        """What the population that was asked of last came to."""


class Piece(NamedTuple):
    """What one worker evaluates at a time: part number `part` of the population that search number `search` waits for."""

    search: int
    part: int
    task: Task


Known = Callable[[int, int], Judgement | None]
"""From the number of a search and the size of its next population to what that came to, if it is known already."""

Told = Callable[[int, Judgement], None]
"""Told the number of a search and what its population came to, before the search is."""

Settled = Callable[[int, list[Task], list[Judgement]], None]
"""Told the number of a generation, from 1, and of each search its population and what that came to."""


class Round:
    """Some generations of several searches. None waits for another's population, so workers do not either.

    A search depends on what it was told alone, so the order in which populations are made and judged changes nothing; of a
    generation is told when all have ended it.

    Attributes:
        todo: pieces that nobody has taken yet, those of the oldest population first.
        settled: generations that all searches have ended.
    """

    def __init__(
        self,
        searches: Sequence[Asker],
        generations: int,
        on_settled: Settled,
        known: Known = lambda search, size: None,
        on_told: Told = lambda search, judgement: None,
    ) -> None:
        """Makes nothing yet.

        Args:
            searches: whose populations these are.
            generations: of each.
            on_settled: told of each generation, in order.
            known: what need not be found out again.
            on_told: hears of each population that had to be found out.
        """
        self.todo: deque[Piece] = deque()
        self.settled = 0
        self._searches, self._generations, self._on_settled = searches, generations, on_settled
        self._known, self._on_told = known, on_told
        self._populations: list[list[Task]] = [[] for _ in searches]
        self._judgements: list[list[Judgement]] = [[] for _ in searches]
        self._parts: list[list[Judgement | None]] = [[] for _ in searches]

    @property
    def complete(self) -> bool:
        """Whether all populations of all generations are made."""
        return all(len(made) == self._generations for made in self._populations)

    def make_next(self) -> bool:
        """Makes the next population of the search that is farthest behind; False when all wait for answers, or have ended."""
        ready = [i for i in range(len(self._searches)) if self._may_ask(i)]
        if not ready:
            return False
        search = min(ready, key=lambda i: len(self._populations[i]))
        task = self._searches[search].ask()
        self._populations[search].append(task)
        known = self._known(search, len(task.values))
        if known is not None:
            self._tell(search, known)
            return True
        parts = portions(len(task.values))
        self._parts[search] = [None] * len(parts)
        self.todo.extend(Piece(search, k, task._replace(values=task.values[part])) for k, part in enumerate(parts))
        return True

    def make_all(self) -> None:
        """Makes all that can be made before more is answered."""
        while self.make_next():
            pass

    def found(self, piece: Piece, judgement: Judgement) -> None:
        """Keeps what a piece came to, and tells its search when that was the last one."""
        parts = self._parts[piece.search]
        parts[piece.part] = judgement
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            whole = self._searches[piece.search].digest(joined(known))
            self._on_told(piece.search, whole)
            self._tell(piece.search, whole)

    def take(self, pieces: Sequence[Piece]) -> None:
        """The first of `todo`, which somebody does now."""
        for _ in pieces:
            self.todo.popleft()

    def put_back(self, pieces: Sequence[Piece]) -> None:
        """Pieces whose worker died are to be done again."""
        self.todo.extendleft(reversed(pieces))

    def _may_ask(self, search: int) -> bool:
        made, told = len(self._populations[search]), len(self._judgements[search])
        return made == told and made < min(self._generations, self.settled + 1 + AHEAD)

    def _tell(self, search: int, judgement: Judgement) -> None:
        self._judgements[search].append(judgement)
        self._searches[search].tell(judgement)
        while all(len(told) > self.settled for told in self._judgements):
            number = self.settled
            self.settled += 1
            tasks = [made[number] for made in self._populations]
            self._on_settled(self.settled, tasks, [told[number] for told in self._judgements])
