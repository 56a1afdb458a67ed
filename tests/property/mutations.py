"""Files that something happened to: thousands of them from a few good ones, the same every time.

A format needs good files and an entry: `survive(parse, seeds, count)`, where `parse(data, name)` returns whatever it likes or
raises `MotionFileError`.
"""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mocap2ctrl.errors import MotionFileError

Parse = Callable[[bytes, str], object]
SLOWEST_S = 1.0
MOST_BYTES = 64 * 2**20

AWKWARD = [
    *(b"nan inf -inf 1e400 -1e308 1e-320 -0 0 1 -1 1e6 0x10 1_0 +-3 . - 1,5 1e 99999999999999999999 180 360".split()),
    b"9" * 400, "\u0663".encode(), b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x1a", b"<<<<<<< HEAD",
    *(b"{ } ======= # // ; , \"".split()),
    *(b"HIERARCHY ROOT JOINT End MOTION Frames: OFFSET CHANNELS Xposition Zrotation 3 6".split()),
]  # fmt: skip
"""What stands in files where something else should."""

_WORD = re.compile(rb"[^\s]+")
_NUMBER = re.compile(rb"-?\d+(\.\d*)?([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Tally:
    """What became of the files: how many were read and refused, and the slowest of them."""

    read: int
    refused: int
    slowest_s: float
    slowest: tuple[bytes, ...]


def survive(parse: Parse, seeds: Sequence[bytes], count: int, seed: int = 1) -> Tally:
    """Parses `count` mutants of the good files `seeds`; fails at the first that ends in anything but a motion or a clear line."""
    for data in seeds:
        parse(data, "f.file")  # they are good
    random = np.random.default_rng(seed)
    refused, times = 0, []
    for number in range(count):
        data = mutant(seeds, random)
        begun = time.process_time()
        try:
            parse(data, "f.file")
        except MotionFileError as error:
            refused += 1
            said = str(error)
            assert "f.file" in said, (number, said)
            assert "\n" not in said, (number, said)
            assert len(said) < 3000, (number, len(said))
        except Exception as error:
            raise AssertionError(
                f"mutant {number} of seed {seed}: {type(error).__name__} from {data[:3000]!r}"
            ) from error
        times.append((time.process_time() - begun, number, data))
    slowest = sorted(times, reverse=True)[:5]
    for taken, number, data in slowest:
        assert taken < SLOWEST_S or cpu_seconds(parse, data) < SLOWEST_S, (taken, number, data[:500])
    return Tally(count - refused, refused, slowest[0][0], tuple(data for _, _, data in slowest))


def cpu_seconds(parse: Parse, data: bytes) -> float:
    """Processor time of parsing, the least of three tries: into one may fall the collection of what other tests have left."""
    tries = []
    for _ in range(3):
        begun = time.process_time()
        with suppress(MotionFileError):
            parse(data, "f.file")
        tries.append(time.process_time() - begun)
    return min(tries)


def peak_bytes(parse: Parse, data: bytes) -> int:
    """The most memory that parsing takes at once."""
    tracemalloc.start()
    try:
        with suppress(MotionFileError):
            parse(data, "f.file")
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


def mutant(seeds: Sequence[bytes], random: np.random.Generator) -> bytes:
    """One of the good files with one to three things done to it."""
    data = seeds[random.integers(len(seeds))]
    for _ in range(random.choice([1, 1, 2, 3])):
        change = CHANGES[random.integers(len(CHANGES))]
        data = change(data, random, seeds)
    return data


Change = Callable[[bytes, np.random.Generator, Sequence[bytes]], bytes]


def _span(data: bytes, random: np.random.Generator, longest: int = 60) -> tuple[int, int]:
    start = int(random.integers(len(data) + 1))
    return start, min(len(data), start + int(random.integers(1, longest)))


def _bytes_changed(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for place in random.integers(0, max(len(data), 1), size=random.integers(1, 6)):
        if changed:
            changed[place] = random.integers(256)
    return bytes(changed)


def _bytes_lost(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    start, stop = _span(data, random)
    return data[:start] + data[stop:]


def _bytes_twice(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    start, stop = _span(data, random)
    return data[:stop] + data[start:]


def _cut(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    return data[: random.integers(len(data) + 1)]


def _spliced(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    other = seeds[random.integers(len(seeds))]
    return data[: random.integers(len(data) + 1)] + other[random.integers(len(other) + 1) :]


def _word_replaced(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    return _replaced(data, random, _WORD, AWKWARD[random.integers(len(AWKWARD))])


def _number_replaced(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    return _replaced(data, random, _NUMBER, AWKWARD[random.integers(len(AWKWARD))])


def _replaced(data: bytes, random: np.random.Generator, pattern: re.Pattern[bytes], new: bytes) -> bytes:
    places = [match.span() for match in pattern.finditer(data)]
    if not places:
        return data
    start, stop = places[random.integers(len(places))]
    return data[:start] + new + data[stop:]


def _words_exchanged(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    places = [match.span() for match in _WORD.finditer(data)]
    if len(places) < 2:
        return data
    (a, b), (c, d) = (places[i] for i in sorted(random.choice(len(places), 2, replace=False)))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _lines_changed(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    """Lines lost, repeated, many times repeated, exchanged or moved."""
    lines = data.split(b"\n")
    start = int(random.integers(len(lines)))
    stop = min(len(lines), start + int(random.integers(1, 5)))
    part, kind = lines[start:stop], random.integers(5)
    if kind == 0:
        lines[start:stop] = []
    elif kind == 1:
        lines[start:stop] = part * 2
    elif kind == 2:
        lines[start:stop] = part * int(random.choice([20, 300]))
    elif kind == 3:
        lines[start:stop] = part[::-1]
    else:
        del lines[start:stop]
        place = int(random.integers(len(lines) + 1))
        lines[place:place] = part
    return b"\n".join(lines)


def _written_otherwise(data: bytes, random: np.random.Generator, seeds: Sequence[bytes]) -> bytes:
    """Line ends, encoding, white space, case."""
    kind = random.integers(7)
    if kind < 2:
        return data.replace(b"\n", [b"\r\n", b"\r"][kind])
    if kind < 4:
        return data.decode("latin-1").encode(["utf-16", "utf-16-le"][kind - 2])
    if kind == 4:
        return data.replace(b" ", b"\t \t")
    return data.upper() if kind == 5 else data.replace(b"\n", b" ")


CHANGES: tuple[Change, ...] = (
    *(_bytes_changed, _bytes_lost, _bytes_twice, _cut, _spliced),
    *(_word_replaced, _word_replaced, _number_replaced, _number_replaced, _words_exchanged),
    *(_lines_changed, _lines_changed, _written_otherwise),
)
