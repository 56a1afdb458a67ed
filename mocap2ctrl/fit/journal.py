"""The checkpoint of a fit: a journal of everything that was evaluated.

It makes a fit resumable: searches depend only on seeds and on what evaluations came to, so a resumed fit asks the same questions
and is told the recorded answers, until they run out. Searches that run side by side record in whatever order they end their
populations; each finds its own again. A record that a crash cut short is dropped.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mocap2ctrl.errors import CaptureError
from mocap2ctrl.fit.judgement import TERMS, Judgement
from mocap2ctrl.fit.lock import IN_USE, claim
from mocap2ctrl.types import Array

COLUMNS = len(TERMS) + 1
"""Numbers an evaluation: its cost terms, and 1 where the simulation diverged."""


class Journal:
    """An append-only file of judgements, each record with its length, checksum and search, bound to a fit by a key.

    A fit can go on where another has ended, and begin with all of its judgements: the file is then bound to the new one.

    Attributes:
        recorded: how many evaluations it held when it was opened.
    """

    FORMAT = 4
    MAGIC = b"mocap2ctrl journal %d\n" % FORMAT
    ANY_MAGIC = re.compile(rb"mocap2ctrl journal (\d+)\n")
    HEADER = struct.Struct("<II")
    SIZES = struct.Struct("<III")
    """Of a record: number of the search, evaluations, and steps that follow from them."""

    def __init__(
        self,
        path: Path,
        key: bytes,
        resume: bool,
        other: Callable[[], str] | None = None,
        before: bytes | None = None,
    ) -> None:
        """Opens the journal at `path`; without `resume` it begins anew.

        Args:
            path: of the file.
            key: of the fit.
            resume: whether to go on with what the file holds.
            other: tells what differs in another fit's.
            before: key of a fit where this one goes on.

        Raises:
            CaptureError: it was written by a fit of other input or settings, or by a version with another format; or another fit
                is writing it.
        """
        self._path, self._other = path, other
        head, *others = [self.MAGIC + k.hex().encode() + b"\n" for k in (key, before) if k is not None]
        records, end = self._recorded(head, *others) if resume and path.exists() else ([], len(head))
        self.recorded = sum(len(judgement) for _, judgement in records)
        self._untold: defaultdict[int, deque[Judgement]] = defaultdict(deque)
        for search, judgement in records:
            self._untold[search].append(judgement)
        # Unbuffered, so that after a failed write nothing waits to fail again on closing.
        self._file = open(path, "r+b" if path.exists() else "x+b", buffering=0)  # noqa: SIM115  # lives as long as the fit
        if not claim(self._file):
            self._file.close()
            raise CaptureError(f"{path.parent.parent}: {IN_USE}")
        if records:
            self._write(head)
            self._file.truncate(end)
            self._file.seek(end)
        else:
            self._file.truncate(0)
            self._write(head)

    def next(self, search: int, size: int) -> Judgement | None:
        """What the next `size` evaluations of search number `search` came to, or None when no more of it are recorded.

        Raises:
            CaptureError: the record has another size.
        """
        if not self._untold[search]:
            return None
        judgement = self._untold[search].popleft()
        if len(judgement) != size:
            raise CaptureError(
                f"{self._path}: a record has {len(judgement)} costs where {size} were asked for; use --overwrite"
            )
        return judgement

    def append(self, search: int, judgement: Judgement) -> None:
        """Adds a record of search number `search`, without residuals; it is in the operating system's hands when this returns."""
        rows = np.column_stack([judgement.terms, judgement.diverged])
        steps = np.empty((0, 0)) if judgement.steps is None else judgement.steps
        payload = self.SIZES.pack(search, len(rows), len(steps)) + _bytes(rows) + _bytes(steps)
        self._write(self.HEADER.pack(len(payload), zlib.crc32(payload)) + payload)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def _recorded(self, head: bytes, *others: bytes) -> tuple[list[tuple[int, Judgement]], int]:
        """The whole records of a file with one of these heads, and where they end; none where a crash cut the head short."""
        data, folder = self._path.read_bytes(), self._path.parent.parent
        if data.startswith((head, *others)):
            return self._read(data, len(head))
        magic = self.ANY_MAGIC.match(data)
        if magic is not None and int(magic[1]) != self.FORMAT:
            raise CaptureError(
                f"{folder}: its journal has format {int(magic[1])}, this version goes on from format {self.FORMAT} only; "
                "finish with the version that began it, or use --overwrite"
            )
        if magic is not None and not head.startswith(data):
            raise CaptureError(
                self._other()
                if self._other
                else f"{folder}: was begun with other input, settings or version; resume with the same ones, or use --overwrite"
            )
        return [], len(head)

    @classmethod
    def _read(cls, data: bytes, offset: int) -> tuple[list[tuple[int, Judgement]], int]:
        records = []
        while offset + cls.HEADER.size <= len(data):
            size, checksum = cls.HEADER.unpack_from(data, offset)
            payload = data[offset + cls.HEADER.size : offset + cls.HEADER.size + size]
            if size == 0 or len(payload) < size or zlib.crc32(payload) != checksum:
                break  # zeros after a power failure look like an empty record
            records.append(cls._record(payload))
            offset += cls.HEADER.size + size
        return records, offset

    @classmethod
    def _record(cls, payload: bytes) -> tuple[int, Judgement]:
        """The number of a search, and what one of its populations came to."""
        search, evaluations, count = cls.SIZES.unpack_from(payload)
        numbers = np.frombuffer(payload, "<f8", offset=cls.SIZES.size).copy()
        rows, steps = np.split(numbers, [evaluations * COLUMNS])
        rows = rows.reshape(evaluations, COLUMNS)
        kept = steps.reshape(count, -1) if count else None
        return search, Judgement(rows[:, :-1], rows[:, -1] != 0, steps=kept)


def _bytes(numbers: Array) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<f8").tobytes()
