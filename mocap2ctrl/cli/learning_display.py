"""Progress of `learn`: a bar on a terminal, a line an iteration elsewhere; survival times so far, and the time that is left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mocap2ctrl.cli.progress import _Display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mocap2ctrl.samcon.guided import Iteration
    from mocap2ctrl.samcon.learn import Progress


class LearningDisplay(_Display):
    """Shows `samcon.learn.Progress`."""

    def __init__(self) -> None:
        super().__init__("learn")
        self._task = self._bar.add_task("starting", total=1.0)
        self._begun, self._first, self._said = time.monotonic(), 0, 0
        self._stages: set[str] = set()
        self._part = ""

    def progress(self, p: Progress) -> None:
        """Shows how far learning is."""
        if p.part != self._part:
            self._part, self._first, self._said, self._stages = p.part, 0, 0, set()
            self._console.print(f"learning {p.part} …", highlight=False)
        done = len(p.history)
        if p.iteration and not self._first:
            self._begun, self._first = time.monotonic(), p.iteration
        left = self._left(p, done)
        best = f"{_best(p.history)} · " if p.history else ""
        what = f"{p.part}: {p.what}" if p.part else p.what
        text = f"{what} · iteration {p.iteration}/{p.iterations} · {best}{left}" if p.iteration else what
        whole = (max(p.iteration, 1) - 1 + 0.9 * p.share) / p.iterations if p.iteration else 0.0
        self._bar.update(self._task, completed=whole, description=text)
        if self._bar.disable and p.what not in self._stages and p.what != "iterations":
            after = f", after iteration {done}" if done else ""
            self._console.print(f"{p.what}{after} …", highlight=False)
            self._stages.add(p.what)
        if self._bar.disable and done > self._said and done == p.iteration:
            last = p.history[-1]
            self._console.print(
                f"iteration {last.number}/{p.iterations}: {last.undisturbed_s:.0f} s undisturbed, {last.pushed_s:.0f} s under "
                f"pushes; {last.stage}, cost {sum(last.cost.values()):.2f}, failures {last.failures}; {_best(p.history)}; {left}",
                highlight=False,
            )
            self._said = done

    def _left(self, p: Progress, done: int) -> str:
        """Time left, by the iterations that this call has done."""
        mine = done - (self._first - 1) if self._first else 0
        if mine < 1:
            return "time left unknown yet"
        seconds = (time.monotonic() - self._begun) / mine * (p.iterations - done)
        return f"{seconds / 60:.0f} min left" if seconds >= 90 else f"{seconds:.0f} s left"


def _best(history: Sequence[Iteration]) -> str:
    """The best iteration so far, which is what the output holds."""
    from mocap2ctrl.samcon.learn import best_of

    best = best_of(history)
    return f"best so far: iteration {best.number}, {best.pushed_s:.0f} s"
