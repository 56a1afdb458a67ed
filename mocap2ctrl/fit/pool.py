"""Evaluates populations, on whatever crew: the same bits for any number of workers; and keeps a journal of all of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, wait
from types import TracebackType
from typing import Any

from mocap2ctrl.errors import FitError
from mocap2ctrl.fit.crew import Crew, local_crew
from mocap2ctrl.fit.journal import Journal
from mocap2ctrl.fit.judgement import Judgement, joined, judge, portions
from mocap2ctrl.fit.problem import Problem
from mocap2ctrl.fit.setup import EvaluationSetup
from mocap2ctrl.fit.sharing import Sharing
from mocap2ctrl.fit.worker import Answer, Task, refuse_other_versions, work
from mocap2ctrl.types import Array

LOOK_EVERY_S = 2.0
"""How often it is seen whether there are still workers, while they are waited for."""

Witness = Callable[[Problem, Array, Judgement, int, int], None]
"""Told a problem, its parameter vectors (P, N), what they came to, and the numbers of the generation and of the search."""


def _nobody(problem: Problem, values: Array, judgement: Judgement, generation: int, search: int) -> None:
    """No witness."""


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
        self.evaluator = setup.evaluator()
        self.evaluations = self.diverged = 0
        self.remote_s = 0.0
        self._setup, self._key = setup, uuid.uuid4().hex
        self._crew = local_crew(crew) if isinstance(crew, int) else crew
        self._journal, self._witness = journal, witness
        self._compiled = False
        self._sharing: Sharing | None = None

    def __enter__(self) -> EvaluationPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._crew.release()

    def evaluate(self, jobs: Sequence[Task], generation: int = 0) -> list[Judgement]:
        """What each job's parameter vectors (P, N) come to; `generation` is for the witness.

        Raises:
            FitError: workers die again and again, or are of other versions.
        """
        sizes = [len(values) for _, values in jobs]
        judgement = self._journal.next(sum(sizes)) if self._journal else None
        if judgement is None:
            judgement = self._simulate(
                [(problem, values[part]) for problem, values in jobs for part in portions(len(values))]
            )
            if self._journal:
                self._journal.append(judgement)
        self.evaluations += len(judgement)
        self.diverged += int(judgement.diverged.sum())
        parts = judgement.split(sizes)
        for search, ((problem, values), part) in enumerate(zip(jobs, parts, strict=True)):
            self._witness(problem, values, part, generation, search)
        return parts

    def _simulate(self, tasks: Sequence[Task]) -> Judgement:
        self._compile()
        for _ in range(self._crew.attempts):
            try:
                return joined(self._judgements(tasks))
            except self._crew.broken:
                self._crew.release()
        raise FitError(self._crew.advice)

    def _compile(self) -> None:
        """Once here, so that workers on this machine find it in the cache."""
        if not self._compiled:
            self.evaluator.compile()
        self._compiled = True

    def _judgements(self, tasks: Sequence[Task]) -> list[Judgement]:
        """Of each task, by whoever is there."""
        executor = self._crew.executor()
        if executor is None:
            return [judge(self.evaluator, *task) for task in tasks]
        return self._shared(executor, tasks) if self._crew.shared else self._handed_out(executor, tasks)

    def _shared(self, executor: Executor, tasks: Sequence[Task]) -> list[Judgement]:
        """By workers and this process."""
        if self._sharing is None or self._sharing.executor is not executor:
            self._sharing = Sharing(executor, self._crew.capacity(), self._key, self._setup, self.evaluator)
        return self._sharing.judgements(tasks)

    def _handed_out(self, executor: Executor, tasks: Sequence[Task]) -> list[Judgement]:
        """All by the workers. Those that do not have the setup say so, and are sent it."""
        answers = self._ask(executor, [(self._key, task) for task in tasks])
        lacking = [i for i, answer in enumerate(answers) if answer.judgement is None]
        for i in lacking:
            refuse_other_versions(answers[i].versions)
        again = self._ask(executor, [(self._key, tasks[i], self._setup) for i in lacking])
        for i, answer in zip(lacking, again, strict=True):
            answers[i] = answer
        if self._crew.remote:
            self.remote_s += sum(answer.cpu_s for answer in answers)
        return [answer.judgement for answer in answers if answer.judgement is not None]

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
