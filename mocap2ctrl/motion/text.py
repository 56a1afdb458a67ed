"""A text file's bytes as text, whatever program wrote them, and its words with the lines that they stand in."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from mocap2ctrl.errors import MotionFileError

CONFLICT_MARKERS = ("<<<<<<<", "=======", ">>>>>>>")
COMMENT_MARKS = ("#", "//", ";", "%")
_TRAILING_COMMENT = re.compile(r"\s(#|//|;).*$")
_PADDING = "\x00\x1a"
"""What old systems fill a file's end with."""

# The longer marks first: UTF-32's little-endian one begins like UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decoded(data: bytes) -> str:
    """The text of `data`: UTF-8, or UTF-16 or 32 by its mark or its zeros; every line ends in a line feed.

    Bytes that are no text become replacement characters; a name that holds them is still a name.
    """
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    text = data.decode(encoding or _encoding_by_zeros(data[:256]), errors="replace")
    text = text.rstrip(_PADDING)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _encoding_by_zeros(start: bytes) -> str:
    """Every other byte of Latin letters in UTF-16 is zero."""
    even, odd = start[0::2], start[1::2]
    if len(start) >= 8 and odd.count(0) > 0.8 * len(odd):
        return "utf-16-le"
    if len(start) >= 8 and even.count(0) > 0.8 * len(even):
        return "utf-16-be"
    return "utf-8"


class Words:
    """The words of a text, one after another, and the line, from 1, that was read last.

    Empty lines and comments are passed over. Braces are words of their own.
    """

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.line = 0
        self._lines = self._numbered(text)
        self._waiting: list[str] = []

    def fail(self, cause: str, line: int | None = None) -> MotionFileError:
        """An error that names the file and the line, the present one if none is given."""
        return MotionFileError(f"{self.path}, line {self.line if line is None else line}: {cause}")

    def _numbered(self, text: str) -> Iterator[str]:
        """Line by line, without a list of them all: a file may consist of nothing but line ends."""
        start = 0
        while start < len(text):
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            self.line += 1
            line = text[start:end].strip()
            start = end + 1
            if line.startswith(CONFLICT_MARKERS):
                raise self.fail("a version-control conflict marker; resolve the conflict or export the file again")
            if line and not line.startswith(COMMENT_MARKS):
                yield line

    def lines(self) -> Iterator[str]:
        """All lines that are left, the rest of the present one first."""
        if self._waiting:
            yield " ".join(self.rest_of_line())
        yield from self._lines

    def peek(self) -> str | None:
        """The next word, which stays; None at the end."""
        if not self._waiting:
            line = next(self._lines, None)
            if line is None:
                return None
            line = _TRAILING_COMMENT.sub("", line)
            self._waiting = line.replace("{", " { ").replace("}", " } ").split()
        return self._waiting[0]

    def word(self, expected: str) -> str:
        """The next word.

        Raises:
            MotionFileError: there is none; says that what is `expected` is missing.
        """
        if self.peek() is None:
            raise self.fail(f"the file ends where {expected} should follow; it is truncated")
        return self._waiting.pop(0)

    def rest_of_line(self) -> list[str]:
        """The words that are left of the present line."""
        rest, self._waiting = self._waiting, []
        return rest

    def push(self, words: list[str]) -> None:
        """Puts words back in front."""
        self._waiting = words + self._waiting
