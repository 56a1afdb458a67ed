"""Evaluates populations, on whatever crew: the same bits for any number of workers; and keeps a journal of all of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, wait
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any

from mocap2ctrl.errors import FitError
from mocap2ctrl.fit.crew import Crew, local_crew
from mocap2ctrl.fit.journal import Journal
from mocap2ctrl.fit.judgement import Judgement, Task, judge
from mocap2ctrl.fit.problem import Evaluator, Problem
from mocap2ctrl.fit.round import Asker, Round
from mocap2ctrl.fit.setup import EvaluationSetup
from mocap2ctrl.fit.sharing import Sharing
from mocap2ctrl.fit.worker import Answer, refuse_other_versions, work
from mocap2ctrl.objective.target import MarkerTarget
from mocap2ctrl.objective.terms import Weights
from mocap2ctrl.simulation.worlds import World
from mocap2ctrl.types import Array

LOOK_EVERY_S = 2.0
"""How often it is seen whether there are still workers, while they are waited for."""

Witness = Callable[[Problem, Array, Judgement, int, int], None]
"""Told a problem, its parameter vectors (P, N), what they came to, and the numbers of the generation and of the search."""


def _nobody(problem: Problem, values: Array, judgement: Judgement, generation: int, search: int) -> None:
    """No witness."""


class _Question:
    """Asks once, and keeps the answer."""

    answer: Judgement

    def __init__(self, task: Task) -> None:
        self._task = task

    def ask(self) -> Task:
        return self._task

    def digest(self, judgement: Judgement) -> Judgement:
        return judgement

    def tell(self, judgement: Judgement) -> None:
        self.answer = judgement


class EvaluationPool:
    """Judges populations of several problems at once. A context manager: leaving it ends workers on this machine.

    Attributes:
        evaluator: this process's own.
        evaluations: simulations so far, recorded ones included.
        diverged: how many of them diverged.
        remote_s: processor time of workers on a cluster, seconds.
    """

    def __init__(
        self,
        setup: EvaluationSetup,
        crew: Crew | int,
        journal: Journal | None = None,
        witness: Witness = _nobody,
    ) -> None:
        """Makes the evaluator of this process; workers start with the first evaluation.

        Args:
            setup: what is judged, and how.
            crew: who evaluates, or how many processes on this machine do.
            journal: what is recorded in it is told again instead of simulated.
            witness: told of every population.
        """
        self._sharing: Sharing | None = None
        self._take(setup)
        self.evaluations = self.diverged = 0
        self.remote_s = 0.0
        self._crew = local_crew(crew) if isinstance(crew, int) else crew
        self._journal, self._witness = journal, witness
        self._compiled = False

    def __enter__(self) -> EvaluationPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._crew.release()

    @contextmanager
    def judging_by(self, target: MarkerTarget) -> Iterator[None]:
        """Inside, markers are compared with `target` instead, which has the same frame rate."""
        with self._judging(replace(self._setup, target=target)):
            yield

    @contextmanager
    def weighing(self, weights: Weights) -> Iterator[None]:
        """Inside, the terms of Eq. (8) have these weights instead."""
        with self._judging(replace(self._setup, weights=weights)):
            yield

    @contextmanager
    def judging_in(self, worlds: tuple[World, ...], weight: float) -> Iterator[None]:
        """Inside, controllers have to do in other worlds too, which together weigh `weight` beside the fit's own."""
        with self._judging(replace(self._setup, worlds=worlds, world_weight=weight)):
            yield

    @contextmanager
    def _judging(self, setup: EvaluationSetup) -> Iterator[None]:
        before = self._setup, self.evaluator
        self._take(setup)
        try:
            yield
        finally:
            self._take(*before)

    def _take(self, setup: EvaluationSetup, evaluator: Evaluator | None = None) -> None:
        """What is judged from now on; workers are sent it under another key."""
        self._setup, self._key, self._sharing = setup, uuid.uuid4().hex, None
        self.evaluator = setup.evaluator() if evaluator is None else evaluator

    def search(
        self, searches: Sequence[Asker], generations: int, on_generation: Callable[[int], None] = lambda number: None
    ) -> None:
        """Answers what searches ask, for some generations of each; what is recorded in the journal is told again.

        Args:
            searches: they share the workers, and none waits for another.
            generations: of each.
            on_generation: told the number of each generation, from 1, when all searches have ended it.

        Raises:
            FitError: workers die again and again, or are of other versions.
        """

        def settled(number: int, tasks: list[Task], judgements: list[Judgement]) -> None:
            for search, (task, judgement) in enumerate(zip(tasks, judgements, strict=True)):
                self.evaluations += len(judgement)
                self.diverged += int(judgement.diverged.sum())
                self._witness(task.problem, task.values, judgement, number, search)
            on_generation(number)

        journal = self._journal
        if journal is None:
            self._simulate(Round(searches, generations, settled))
        else:
            self._simulate(Round(searches, generations, settled, journal.next, journal.append))

    def evaluate(self, jobs: Sequence[Task]) -> list[Judgement]:
        """What the parameter vectors (P, N) of each job come to.

        Raises:
            FitError: workers die again and again, or are of other versions.
        """
        questions = [_Question(job) for job in jobs]
        self.search(questions, 1)
        return [question.answer for question in questions]

    def _simulate(self, round_: Round) -> None:
        round_.make_all()
        if not round_.todo:  # all of it is recorded
            return
        self._compile()
        failures, settled = 0, round_.settled
        while True:
            try:
                return self._judge(round_)
            except self._crew.broken:
                self._crew.release()
                failures, settled = 1 if round_.settled > settled else failures + 1, round_.settled
                if failures == self._crew.attempts:
                    raise FitError(self._crew.advice) from None

    def _compile(self) -> None:
        """Once here, so that workers on this machine find it in the cache."""
        if not self._compiled:
            self.evaluator.compile()
        self._compiled = True

    def _judge(self, round_: Round) -> None:
        """By whoever is there."""
        executor = self._crew.executor()
        if executor is None:
            self._alone(round_)
        elif self._crew.shared:
            if self._sharing is None or self._sharing.executor is not executor:
                self._sharing = Sharing(executor, self._crew.capacity(), self._key, self._setup, self.evaluator)
            self._sharing.judge(round_)
        else:
            while round_.todo:
                self._hand_out(executor, round_)
                round_.make_all()

    def _alone(self, round_: Round) -> None:
        while round_.todo:
            piece = round_.todo.popleft()
            round_.found(piece, judge(self.evaluator, piece.task))
            round_.make_all()

    def _hand_out(self, executor: Executor, round_: Round) -> None:
        """All that is to be done to the workers. Those that do not have the setup say so, and are sent it."""
        pieces = list(round_.todo)
        answers = self._ask(executor, [(self._key, piece.task) for piece in pieces])
        lacking = [i for i, answer in enumerate(answers) if answer.judgement is None]
        for i in lacking:
            refuse_other_versions(answers[i].versions)
        again = self._ask(executor, [(self._key, pieces[i].task, self._setup) for i in lacking])
        for i, answer in zip(lacking, again, strict=True):
            answers[i] = answer
        if self._crew.remote:
            self.remote_s += sum(answer.cpu_s for answer in answers)
        round_.todo.clear()
        for piece, answer in zip(pieces, answers, strict=True):
            if answer.judgement is not None:
                round_.found(piece, answer.judgement)

    def _ask(self, executor: Executor, questions: Sequence[tuple[Any, ...]]) -> list[Answer]:
        """Answers to `work`'s arguments, in order."""
        futures = [executor.submit(work, *arguments) for arguments in questions]
        try:
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, LOOK_EVERY_S, FIRST_EXCEPTION)
                for future in done:
                    future.result()  # raises what went wrong
                if waiting:
                    self._crew.check()
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
