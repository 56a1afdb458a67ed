"""Progress on the terminal: of a fit, of a few named steps. On stderr, a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn

from mocap2ctrl.cli.options import counted, note
from mocap2ctrl.video.silhouettes import LoadedSilhouettes

if TYPE_CHECKING:
    from mocap2ctrl.fit.run import FitProgress
    from mocap2ctrl.motion.load import LoadedMotion

QUIET_S = 2.0
AGAIN_S = 20.0
"""A log, which has no bar, is told how far a long step is each time that so much has passed."""


class _Display:
    """A progress bar as a context manager; it shows nothing where there is no terminal."""

    def __init__(self, title: str, *more: ProgressColumn) -> None:
        self._console = Console(stderr=True, soft_wrap=True)
        self._bar = Progress(
            TextColumn(f"[bold]{title}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.description}"),
            *more,
            console=self._console,
            disable=not sys.stderr.isatty(),
            transient=True,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


class StepDisplay(_Display):
    """Progress of a few named steps; without a terminal a line a step, once two seconds have passed."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._task = self._bar.add_task("", total=1.0)
        self._start, self._said = time.monotonic(), ""

    def step(self, name: str, share: float) -> None:
        """Shows how much of a step is done."""
        self._bar.update(self._task, completed=share, description=name)
        if self._bar.disable and name != self._said and time.monotonic() - self._start > QUIET_S:
            note(f"{name} …")
            self._said = name


class FitDisplay(_Display):
    """Progress of a fit: stage, error, evaluations a second, time left; without a terminal one line a stage.

    Attributes:
        told: warnings of the input, which were shown with it.
    """

    def __init__(self) -> None:
        super().__init__("fit", TimeRemainingColumn(compact=True), TextColumn("left"))
        self.told: tuple[str, ...] = ()
        self._task: TaskID | None = None
        self._step, self._known, self._told_s = "", False, 0.0

    def preparation(self, what: str, share: float) -> None:
        """Shows what is being done before the fit."""
        if self._task is None:
            self._task = self._bar.add_task(what, total=1.0)
        step, now = what.partition(":")[0], time.monotonic()
        if step != self._step:
            self._bar.reset(self._task)  # a bar that was full tells no time left from then on
            self._tell(f"{step} …", now)
        elif now - self._told_s > AGAIN_S:
            self._tell(f"  {what}, {share:.0%}", now)
        self._step = step
        self._bar.update(self._task, completed=share, description=what)

    def _tell(self, line: str, now: float) -> None:
        """A line of a log, once it has been told what the input is."""
        self._told_s = now
        if self._bar.disable and self._known:
            self._console.print(line, highlight=False)

    def input(self, loaded: LoadedMotion | LoadedSilhouettes) -> None:
        """Says what was understood of the input."""
        self._known = True
        if isinstance(loaded, LoadedSilhouettes):
            seen = loaded.silhouettes
            self._console.print(f"{seen.name}: {len(seen) / seen.fps:.2f} s", highlight=False)
            for line in loaded.notes:
                self._console.print(f"  {line}", highlight=False)
            self._warn(loaded.warnings)
            return
        clip = loaded.clip
        self._console.print(
            f"{clip.name}: {loaded.kind}, {clip.duration_s:.2f} s at {clip.fps:g} frames a second, "
            f"unit {loaded.unit}, {loaded.up} up",
            highlight=False,
        )
        errors = [mean for mean, _ in loaded.joint_errors_cm.values()]
        near = [f"{sum(errors) / len(errors):.1f} cm from the file's joints"] if errors else []
        self._console.print(f"  {'; '.join([*near, *filter(None, [str(loaded.feet)])])}", highlight=False)
        self._warn(loaded.warnings)

    def _warn(self, warnings: tuple[str, ...]) -> None:
        """Tells what is doubtful of the input before the long work."""
        self.told = warnings
        for line in warnings:
            self._console.print(f"note: {line}", highlight=False)

    def progress(self, p: FitProgress) -> None:
        """Shows how far the fit is."""
        rate = p.evaluations / max(p.elapsed_s, 1e-9)
        seen = "" if p.silhouette is None else f"silhouettes {p.silhouette:.2f} · "
        where = " over all worlds" if p.in_worlds else ""
        size = counted(p.states, "state")
        text = f"stage {p.stage}/{p.stages} · {size} · {seen}{p.error_cm:.1f} cm{where} · {rate:,.0f} evaluations/s"
        if self._task is not None:
            self._bar.update(self._task, completed=p.fraction, description=text)
        if self._bar.disable and p.ended:
            self._console.print(text, highlight=False)
