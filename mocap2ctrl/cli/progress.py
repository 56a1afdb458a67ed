"""Progress of a fit on the terminal: stage, error, evaluations a second, time left. On stderr, silent when it is no terminal."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from mocap2ctrl.fit.run import FitProgress
from mocap2ctrl.motion.load import LoadedMotion
from mocap2ctrl.video.silhouettes import LoadedSilhouettes


class FitDisplay:
    """A progress bar; a context manager. Without a terminal it prints one line a stage instead."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, soft_wrap=True)
        self._bar = Progress(
            TextColumn("[bold]fit"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.description}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=self._console,
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._task: TaskID | None = None
        self._stage, self._last = 0, ""
        self._step, self._known = "", False

    def __enter__(self) -> FitDisplay:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._bar.disable and self._last:
            self._console.print(self._last, highlight=False)

    def preparation(self, what: str, share: float) -> None:
        """Shows what is being done with a video before the fit."""
        if self._task is None:
            self._task = self._bar.add_task(what, total=1.0)
        self._bar.update(self._task, completed=share, description=what)
        step = what.partition(":")[0]
        if self._bar.disable and step != self._step and self._known:
            self._console.print(f"{step} …", highlight=False)
            self._step = step

    def input(self, loaded: LoadedMotion | LoadedSilhouettes) -> None:
        """Says what was understood of the input."""
        self._known = True
        if isinstance(loaded, LoadedSilhouettes):
            seen = loaded.silhouettes
            self._console.print(f"{seen.name}: {len(seen) / seen.fps:.2f} s", highlight=False)
            for line in loaded.notes:
                self._console.print(f"  {line}", highlight=False)
            return
        clip = loaded.clip
        self._console.print(
            f"{clip.name}: {loaded.kind}, {clip.duration_s:.2f} s at {clip.fps:g} frames a second, "
            f"unit {loaded.unit}, {loaded.up} up",
            highlight=False,
        )
        if self._bar.disable:
            self._console.print("compiling and starting workers …", highlight=False)
        self._task = self._bar.add_task("compiling and starting workers …", total=1.0)

    def progress(self, p: FitProgress) -> None:
        """Shows how far the fit is."""
        rate = p.evaluations / max(p.elapsed_s, 1e-9)
        seen = "" if p.silhouette is None else f"silhouettes {p.silhouette:.2f} · "
        text = f"stage {p.stage}/{p.stages} · {p.states} states · {seen}{p.error_cm:.1f} cm · {rate:,.0f} evaluations/s"
        if self._task is not None:
            self._bar.update(self._task, completed=p.fraction, description=text)
        if self._bar.disable and p.stage != self._stage and self._last:
            self._console.print(self._last, highlight=False)
        self._stage, self._last = p.stage, text
