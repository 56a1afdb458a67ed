"""Progress of `learn`: a bar on a terminal, a line an iteration elsewhere; survival times so far, and the time that is left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mocap2ctrl.cli.progress import _Display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mocap2ctrl.samcon.guided import Iteration
    from mocap2ctrl.samcon.learn import Progress


HARDER = 5.0
"""How much longer an iteration of hardening takes than one of sampling, about."""


class LearningDisplay(_Display):
    """Shows `samcon.learn.Progress`."""

    def __init__(self) -> None:
        super().__init__("learn")
        self._task = self._bar.add_task("starting", total=1.0)
        self._part: str | None = None
        self._stages: set[str] = set()
        self._took: dict[str, list[float]] = {}
        self._done, self._since = 0, time.monotonic()

    def progress(self, p: Progress) -> None:
        """Shows how far learning is."""
        done = len(p.history)
        if p.part != self._part:
            self._begin(p)
        if p.iteration == 0:  # the open loop is no iteration
            self._since = time.monotonic()
        new = done > self._done
        if new:
            now = time.monotonic()
            self._took.setdefault(p.history[-1].stage, []).append(now - self._since)
            self._since, self._done = now, done
        left = self._left(p)
        best = f"{_best(p.history)} · " if p.history else ""
        what = f"{p.part}: {p.what}" if p.part else p.what
        text = f"{what} · iteration {p.iteration}/{p.iterations} · {best}{left}" if p.iteration else what
        whole = (max(p.iteration, 1) - 1 + 0.9 * p.share) / p.iterations if p.iteration else 0.0
        self._bar.update(self._task, completed=whole, description=text)
        if self._bar.disable and p.what not in self._stages and p.what != "iterations":
            after = f", after iteration {done}" if done else ""
            self._console.print(f"{p.what}{after} …", highlight=False)
            self._stages.add(p.what)
        if self._bar.disable and new:
            last = p.history[-1]
            self._console.print(
                f"iteration {last.number}/{p.iterations}: {last.undisturbed_s:.0f} s undisturbed, {last.pushed_s:.0f} s under "
                f"pushes; {last.stage}, cost {sum(last.cost.values()):.2f}, failures {last.failures}; {_best(p.history)}; {left}",
                highlight=False,
            )

    def _begin(self, p: Progress) -> None:
        """A part of a graph, or all of it; or goes on with it."""
        self._part, self._stages, self._took = p.part, set(), {}
        self._done, self._since = len(p.history), time.monotonic()
        if p.part:
            self._console.print(f"learning {p.part} …", highlight=False)
        if p.history:
            self._console.print(
                f"going on after iteration {len(p.history)} of {p.iterations}; {_best(p.history)}", highlight=False
            )

    def _left(self, p: Progress) -> str:
        """Time left, by the iterations of the same stage that this call has done, or of the other if there are none."""
        from mocap2ctrl.samcon.guided import SAMPLING
        from mocap2ctrl.samcon.hardening import HARDENING

        if not self._took:
            return "time left unknown yet"
        mean = {stage: sum(took) / len(took) for stage, took in self._took.items()}
        sampling = mean.get(SAMPLING, mean.get(HARDENING, 0.0) / HARDER)
        hardening = mean.get(HARDENING, sampling * HARDER)
        hard = min(p.hardening, p.iterations - self._done)
        seconds = hard * hardening + (p.iterations - self._done - hard) * sampling
        return f"{seconds / 60:.0f} min left" if seconds >= 90 else f"{seconds:.0f} s left"


def _best(history: Sequence[Iteration]) -> str:
    """The best iteration so far, which is what the output holds."""
    from mocap2ctrl.samcon.learn import best_of

    best = best_of(history)
    return f"best so far: iteration {best.number}, {best.pushed_s:.0f} s"
