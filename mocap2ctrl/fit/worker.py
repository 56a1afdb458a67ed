"""What runs in a worker, wherever it is: evaluators that are made once a setup, and the evaluation of a task."""

from __future__ import annotations

import platform
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata

from threadpoolctl import threadpool_limits

import mocap2ctrl
from mocap2ctrl.compiled import source_digest
from mocap2ctrl.errors import FitError
from mocap2ctrl.fit.judgement import Judgement, Task, judge
from mocap2ctrl.fit.problem import Evaluator, Problem
from mocap2ctrl.fit.setup import EvaluationSetup

SETUPS_KEPT = 4
"""Evaluators that a worker keeps: a cluster may serve several fits."""

PROBLEMS_KEPT = 16

LIBRARIES = ("numpy", "scipy", "mujoco", "numba", "llvmlite")
"""On which the bits of a result depend."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What a worker says to a task.

    Attributes:
        judgement: of the task's vectors; None when the worker does not have the setup.
        cpu_s: processor time that it took, seconds.
        versions: of the worker, when it does not have the setup.
    """

    judgement: Judgement | None
    cpu_s: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)


class _Kept(threading.local):
    """A thread's evaluators, and problems: an engine is one thread's, and some clusters run several tasks in one process."""

    def __init__(self) -> None:
        self.evaluators: OrderedDict[str, Evaluator] = OrderedDict()
        self.problems: OrderedDict[str, Problem] = OrderedDict()


_kept = _Kept()


def work(key: str, task: Task, setup: EvaluationSetup | None = None) -> Answer:
    """Evaluates `task` under the setup called `key`.

    A setup is sent only to workers that say they do not have it, so that any executor will do, and a worker that is new, or takes
    the place of a dead one, is served like the others.
    """
    begun = time.thread_time()
    if key not in _kept.evaluators:
        if setup is None:
            return Answer(None, versions=versions())
        _keep(key, setup)
    judgement = judge(_kept.evaluators[key], task)
    return Answer(judgement, time.thread_time() - begun)


def work_through(
    key: str, tasks: Sequence[Task], names: Sequence[str], setup: EvaluationSetup | None = None
) -> list[Answer]:
    """`work` on one task after the other, each with the name of its problem: what follows from a problem is found out once."""
    return [
        work(key, task._replace(problem=_known(name, task.problem)), setup)
        for task, name in zip(tasks, names, strict=True)
    ]


@lru_cache(maxsize=PROBLEMS_KEPT)
def name_of(problem: Problem) -> str:
    """By which workers know a problem again: each message brings another copy."""
    return uuid.uuid4().hex


def _known(name: str, problem: Problem) -> Problem:
    while name not in _kept.problems and len(_kept.problems) >= PROBLEMS_KEPT:
        _kept.problems.popitem(last=False)
    return _kept.problems.setdefault(name, problem)


def prepare(key: str, setup: EvaluationSetup) -> None:
    """Makes a worker ready for the first task under the setup called `key`: libraries, engine, compiled code."""
    if key not in _kept.evaluators:
        _keep(key, setup)
    _kept.evaluators[key].compile()


def _keep(key: str, setup: EvaluationSetup) -> None:
    threadpool_limits(limits=1)  # for good: cores are shared out among workers, not among BLAS threads
    while len(_kept.evaluators) >= SETUPS_KEPT:
        _kept.evaluators.popitem(last=False)
    _kept.evaluators[key] = setup.evaluator()


def versions() -> dict[str, str]:
    """What the bits of a result depend on in this process, by name."""
    python = ".".join(platform.python_version_tuple()[:2])
    libraries = {name: metadata.version(name) for name in LIBRARIES}
    return {"python": python, "mocap2ctrl": f"{mocap2ctrl.__version__} (sources {source_digest()[:8]})", **libraries}


def refuse_other_versions(theirs: Mapping[str, str]) -> None:
    """Workers must be as this process is, or results would depend on who evaluated what.

    Raises:
        FitError: they are not; names the first difference.
    """
    for name, own in versions().items():
        other = theirs.get(name, "of no known version")
        if other != own:
            raise FitError(
                f"a worker or its scheduler has {name} {other}, this process {own}; the same bits need the same versions, install "
                "these on all of them"
            )
