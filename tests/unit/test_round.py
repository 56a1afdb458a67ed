"""Populations on their way: whoever answers when, each search hears the same, and none waits longer than it must."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.fit.judgement import LARGE, TERMS, Judgement, Task
from mocap2ctrl.fit.round import AHEAD, Piece, Round


class Search:
    """Asks for populations of one size; what it asks next depends on what it was told, as CMA-ES does."""

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size, self.state, self.heard = number, size, float(number), 0

    def ask(self) -> Task:
        return Task(None, self.state + np.arange(self.size, dtype=float)[:, None])  # type: ignore[arg-type]

    def digest(self, judgement: Judgement) -> Judgement:
        return judgement

    def tell(self, judgement: Judgement) -> None:
        self.state = float(np.sin(judgement.terms[:, 0]).sum())
        self.heard += 1


def answer(piece: Piece) -> Judgement:
    values = piece.task.values
    return Judgement(np.tile(values**2, len(TERMS)), values[:, 0] > 3.0)


def run(order: str, sizes: tuple[int, ...] = (7, 20, 40), generations: int = 6) -> tuple[list, list[float]]:
    """What is settled, and where the searches end, when pieces are answered in `order`."""
    searches, settled = [Search(i, n) for i, n in enumerate(sizes)], []
    round_ = Round(
        searches, generations, lambda n, tasks, told: settled.append((n, [j.terms.sum() for j in told], len(tasks)))
    )
    rng = np.random.default_rng(0)
    while round_.make_next() or round_.todo:
        while round_.make_next():
            pass
        pieces = list(round_.todo)
        k = {"first": 0, "last": -1, "any": int(rng.integers(len(pieces)))}[order]
        piece = pieces[k]
        round_.todo.remove(piece)
        round_.found(piece, answer(piece))
        assert all(search.heard <= round_.settled + 1 + AHEAD for search in searches)
    assert round_.complete
    return settled, [search.state for search in searches]


@pytest.mark.parametrize("order", ["last", "any"])
def test_the_order_of_answers_changes_nothing(order: str) -> None:
    assert run(order) == run("first")


def test_generations_are_settled_in_order_when_all_searches_have_ended_them() -> None:
    settled, _ = run("any")
    assert [number for number, _, _ in settled] == [1, 2, 3, 4, 5, 6]
    assert all(searches == 3 for _, _, searches in settled)


def test_a_search_goes_on_while_another_waits() -> None:
    searches = [Search(0, 4), Search(1, 4)]
    round_ = Round(searches, 9, lambda number, tasks, told: None)
    while round_.make_next():
        pass
    held = [piece for piece in round_.todo if piece.search == 1]
    while any(piece.search == 0 for piece in round_.todo) or round_.make_next():
        piece = next(piece for piece in round_.todo if piece.search == 0)
        round_.todo.remove(piece)
        round_.found(piece, answer(piece))
    assert searches[0].heard == 1 + AHEAD
    assert round_.settled == 0
    for piece in held:
        round_.found(piece, answer(piece))
    assert round_.settled == 1
    assert round_.make_next()


def test_pieces_of_dead_workers_come_first() -> None:
    round_ = Round([Search(0, 5 * LARGE)], 1, lambda number, tasks, told: None)
    round_.make_next()
    taken = list(round_.todo)[:2]
    round_.take(taken)
    assert taken[0] not in round_.todo
    round_.put_back(taken)
    assert list(round_.todo)[:2] == taken


def test_what_is_known_is_not_asked_of_workers_and_what_is_not_is_told_before_the_search() -> None:
    searches = [Search(0, 5), Search(1, 8)]
    known = {0: 2, 1: 1}
    heard: list[tuple[int, int]] = []

    def journal(search: int, size: int) -> Judgement | None:
        known[search] -= 1
        return Judgement(np.ones((size, len(TERMS))), np.zeros(size, bool)) if known[search] >= 0 else None

    round_ = Round(
        searches,
        3,
        lambda number, tasks, told: None,
        journal,
        lambda search, judgement: heard.append((search, searches[search].heard)),
    )
    while round_.make_next():
        pass
    assert [search.heard for search in searches] == [2, 1]
    assert {piece.search for piece in round_.todo} == {0, 1}
    while round_.make_next() or round_.todo:
        piece = round_.todo.popleft()
        round_.found(piece, answer(piece))
    assert sorted(heard) == [(0, 2), (1, 1), (1, 2)]
