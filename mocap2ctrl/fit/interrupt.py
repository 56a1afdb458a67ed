"""Ctrl-C that is heard once and for all: libraries that catch every exception can swallow a KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """A context manager in which Ctrl-C raises KeyboardInterrupt, and `check` raises it again where it was swallowed.

    Only the main thread hears Ctrl-C; in others this does nothing.
    """

    def __init__(self) -> None:
        self._asked = self._waiting = False

    def __enter__(self) -> Interrupts:
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._before)

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was pressed."""
        if self._asked:
            raise KeyboardInterrupt

    def wait(self) -> None:
        """From here on nothing is interrupted: what is being saved is saved."""
        self._waiting = True

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if not self._waiting:
            raise KeyboardInterrupt
