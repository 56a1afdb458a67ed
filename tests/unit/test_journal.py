"""The journal of costs: whole records or none, whatever happens to the file, and a fit resumed from it is the same fit."""

from __future__ import annotations

import contextlib
import random
import resource
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_fit import needs_walk, tiny_capture, tiny_fit

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CaptureError
from mocap2ctrl.fit.capture import CONTROLLER, JOURNAL, prepare_folder
from mocap2ctrl.fit.journal import COLUMNS, Journal
from mocap2ctrl.fit.judgement import TERMS, Judgement
from mocap2ctrl.fit.run import FitProgress, fit_capture
from mocap2ctrl.prior.pca import PosePrior

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
FRONT = 20
"""Bytes of a record before its numbers: length, checksum, search, evaluations, steps."""


def costs(*sizes: int) -> list[Judgement]:
    rng = np.random.default_rng(sum(sizes))
    return [Judgement(rng.normal(size=(n, len(TERMS))), rng.random(n) < 0.3) for n in sizes]


def written(path: Path, records: list[Judgement], key: bytes = KEY) -> bytes:
    with contextlib.closing(Journal(path, key, resume=False)) as journal:
        for record in records:
            journal.append(0, record)
    return path.read_bytes()


def read(path: Path, records: list[Judgement], key: bytes = KEY) -> list[Judgement]:
    """What a resumed fit that asks for `records`' sizes is told before it has to evaluate by itself."""
    told = []
    with contextlib.closing(Journal(path, key, resume=True)) as journal:
        for record in records:
            answer = journal.next(0, len(record))
            if answer is None:
                break
            told.append(answer)
        assert journal.recorded == sum(len(r) for r in told)
    return told


def bits(judgement: Judgement) -> tuple[bytes, list[bool]]:
    return judgement.terms.tobytes(), judgement.diverged.tolist()


def same(a: list[Judgement], b: list[Judgement]) -> bool:
    return [bits(x) for x in a] == [bits(x) for x in b]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "capture" / "checkpoint").mkdir(parents=True)
    return tmp_path / "capture" / JOURNAL


def test_tells_what_was_recorded_to_the_bit(path: Path) -> None:
    records = costs(3, 18, 1)
    records[1].terms[4, :4] = [np.nan, np.inf, -0.0, 5e-324]
    written(path, records)
    assert same(read(path, records), records)


def test_steps_are_kept_in_the_place_of_residuals(path: Path) -> None:
    """A population of neighbours, the steps that followed from it, and what these came to."""
    rng = np.random.default_rng(1)
    around, tried = costs(7, 3)
    steps = rng.normal(size=(3, 6))
    looked = replace(around, residuals=rng.normal(size=(7, 40)), steps=steps)
    written(path, [looked, tried])
    told = read(path, [looked, tried])
    assert same(told, [around, tried])
    assert told[0].residuals is None
    assert told[0].steps is not None
    assert told[0].steps.tobytes() == steps.tobytes()
    assert told[1].steps is None


def test_each_search_finds_its_own_in_whatever_order_they_were_recorded(path: Path) -> None:
    records = costs(2, 3, 4, 5)
    with contextlib.closing(Journal(path, KEY, resume=False)) as journal:
        for search, record in zip((1, 0, 1, 0), records, strict=True):
            journal.append(search, record)
    with contextlib.closing(Journal(path, KEY, resume=True)) as journal:
        told = [journal.next(0, 3), journal.next(1, 2), journal.next(1, 4), journal.next(0, 5)]
        assert same([t for t in told if t is not None], [records[i] for i in (1, 0, 2, 3)])
        assert [journal.next(search, 2) for search in range(3)] == [None] * 3


def test_cut_at_any_byte_it_tells_whole_records_only_and_goes_on(path: Path) -> None:
    """Every length that a crash may leave, inside the head included."""
    records = costs(2, 3, 1)
    data = written(path, records)
    ends = [len(data) - sum(len(r) * 8 * COLUMNS + FRONT for r in records[i:]) for i in range(4)]
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        whole = sum(length >= end for end in ends[1:])
        with contextlib.closing(Journal(path, KEY, resume=True)) as journal:
            assert same([told for r in records[:whole] if (told := journal.next(0, len(r)))], records[:whole])
            assert journal.next(0, 99) is None
            for record in records[whole:]:
                journal.append(0, record)
        assert path.read_bytes() == data, f"cut at byte {length}"


def test_a_damaged_byte_ends_the_record_before_it(path: Path) -> None:
    """No bit flip is ever told as a cost: what is told is a prefix of what was recorded."""
    records = costs(2, 3)
    data = written(path, records)
    head = len(Journal.MAGIC) + 2 * len(KEY) + 1
    first_end = head + FRONT + len(records[0]) * 8 * COLUMNS
    for offset in range(head, len(data)):
        damaged = bytearray(data)
        damaged[offset] ^= 0x41
        path.write_bytes(damaged)
        assert same(read(path, records), records[: 1 if offset >= first_end else 0]), f"damage at byte {offset}"


@pytest.mark.parametrize("tail", [b"\0" * 8, b"\0" * 4096, b"\xff" * 40, b"garbage"])
def test_junk_at_the_end_is_dropped(path: Path, tail: bytes) -> None:
    """Zeros are what a power failure leaves on some file systems; eight of them look like an empty record."""
    records = costs(2, 3)
    data = written(path, records)
    path.write_bytes(data + tail)
    assert same(read(path, [*records, *costs(4)]), records)
    assert path.read_bytes() == data


def test_another_fit_s_journal_is_refused_and_left_alone(path: Path) -> None:
    data = written(path, costs(2))
    with pytest.raises(CaptureError, match=r"other input, settings or version.*--overwrite"):
        Journal(path, OTHER_KEY, resume=True)
    assert path.read_bytes() == data


def test_a_fit_that_goes_on_where_another_ended_takes_its_journal(path: Path) -> None:
    first, second = costs(2, 3)
    written(path, [first])
    with contextlib.closing(Journal(path, OTHER_KEY, resume=True, before=KEY)) as journal:
        assert same([told for r in (first,) if (told := journal.next(0, len(r)))], [first])
        journal.append(0, second)
    with pytest.raises(CaptureError, match="other input, settings or version"):
        Journal(path, KEY, resume=True)
    with contextlib.closing(Journal(path, OTHER_KEY, resume=True, before=KEY)) as journal:
        told = [journal.next(0, 2), journal.next(0, 3)]
    assert same([t for t in told if t is not None], [first, second])


def test_a_journal_of_another_format_is_refused_and_left_alone(path: Path) -> None:
    """Format 3 held no steps."""
    data = written(path, costs(2)).replace(b"journal 4\n", b"journal 3\n", 1)
    path.write_bytes(data)
    with pytest.raises(CaptureError, match=r"format 3.*format 4 only.*--overwrite"):
        Journal(path, KEY, resume=True)
    assert path.read_bytes() == data


def test_without_resume_it_begins_anew(path: Path) -> None:
    written(path, costs(2), OTHER_KEY)
    assert same(read(path, costs(2)) if written(path, []) else [], [])


def test_a_record_of_another_size_is_refused(path: Path) -> None:
    written(path, costs(4))
    with (
        contextlib.closing(Journal(path, KEY, resume=True)) as journal,
        pytest.raises(CaptureError, match="4 costs where 5"),
    ):
        journal.next(0, 5)


@contextlib.contextmanager
def full_disk(bytes_a_file: int) -> Iterator[None]:
    """No file of this process grows beyond `bytes_a_file`: writes fail part-way, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_a_file, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_failed_write_names_the_file_and_loses_nothing(path: Path) -> None:
    records = costs(5, 6, 7)
    whole = written(path, records)
    path.unlink()
    journal = Journal(path, KEY, resume=False)
    journal.append(0, records[0])
    with full_disk(len(whole) - 300):
        with pytest.raises(OSError, match=r"journal\.bin"):  # noqa: PT012  # which of the two fails depends on the limit
            journal.append(0, records[1])
            journal.append(0, records[2])
        journal.close()
    assert whole.startswith(path.read_bytes())
    with contextlib.closing(Journal(path, KEY, resume=True)) as again:
        told = again.recorded
        assert told >= len(records[0])
        for record in records:
            if again.next(0, len(record)) is None:
                again.append(0, record)
    assert path.read_bytes() == whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Path:
    """The folder of a fit that nothing interrupted."""
    folder = tmp_path_factory.mktemp("resume") / "whole"
    tiny_fit(folder, character)
    return folder


@needs_walk
class TestResumedFits:
    """A fit interrupted anywhere and resumed is, bit for bit, the fit that was not."""

    def test_cut_anywhere(self, whole: Path, tmp_path: Path, character: Character) -> None:
        """In the head, at and around the ends of records, in their headers and costs, and at random."""
        data = (whole / JOURNAL).read_bytes()
        for length in every_kind_of_place(data):
            capture = tiny_capture(tmp_path / str(length), character)
            (capture.folder / JOURNAL).write_bytes(data[:length])
            outcome = fit_capture(capture, 1, resume=True)
            assert (capture.folder / JOURNAL).read_bytes() == data, f"cut at byte {length}"
            assert (capture.folder / CONTROLLER).read_bytes() == (whole / CONTROLLER).read_bytes()
            assert outcome.evaluations == fit_size(data)

    def test_with_a_damaged_record(self, whole: Path, tmp_path: Path, character: Character) -> None:
        data = (whole / JOURNAL).read_bytes()
        capture = tiny_capture(tmp_path / "damaged", character)
        damaged = bytearray(data)
        damaged[len(data) // 2] ^= 0x10
        (capture.folder / JOURNAL).write_bytes(damaged)
        fit_capture(capture, 1, resume=True)
        assert (capture.folder / JOURNAL).read_bytes() == data
        assert (capture.folder / CONTROLLER).read_bytes() == (whole / CONTROLLER).read_bytes()

    @pytest.mark.parametrize(
        "settings", [{"seed": 2}, {"generations": 4}, {"seconds": 0.5}, {"prior": "walk"}, {"fps": 60.0}]
    )
    def test_other_settings_are_refused_and_nothing_is_lost(
        self, whole: Path, tmp_path: Path, character: Character, settings: dict[str, object]
    ) -> None:
        folder = tmp_path / "copy"
        capture = tiny_capture(folder, character, **settings)
        shutil.copytree(whole, folder, dirs_exist_ok=True)
        before = {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        with pytest.raises(CaptureError, match="other input, settings or version"):
            fit_capture(capture, 1, resume=True)
        assert {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before

    def test_a_prior_of_the_same_name_but_other_content_is_refused(self, tmp_path: Path, character: Character) -> None:
        capture = tiny_capture(tmp_path / "walk", character, seconds=0.2, prior="walk", generations=1)
        fit_capture(capture, 1, resume=False)
        assert isinstance(capture.prior, PosePrior)
        retrained = replace(capture, prior=replace(capture.prior, mean=capture.prior.mean * 0.99))
        with pytest.raises(CaptureError, match="other input, settings or version"):
            fit_capture(retrained, 1, resume=True)

    def test_a_disk_full_in_the_middle_is_resumed(self, whole: Path, tmp_path: Path, character: Character) -> None:
        data = (whole / JOURNAL).read_bytes()
        capture = tiny_capture(tmp_path / "full", character)
        journal = capture.folder / JOURNAL
        with contextlib.ExitStack() as stack:

            def fill(progress: FitProgress) -> None:
                if journal.stat().st_size > 0.3 * len(data):
                    stack.enter_context(full_disk(journal.stat().st_size + 100))

            stack.enter_context(pytest.raises(OSError, match=r"journal\.bin"))
            fit_capture(capture, 1, False, fill)
        assert data.startswith(journal.read_bytes())
        assert 0.3 * len(data) < journal.stat().st_size < 0.9 * len(data)
        assert not (capture.folder / CONTROLLER).exists()
        fit_capture(capture, 1, resume=True)
        assert (capture.folder / CONTROLLER).read_bytes() == (whole / CONTROLLER).read_bytes()


def record_ends(journal: bytes) -> list[int]:
    """Where the head and each record of a whole journal end, counted by hand."""
    ends = [len(Journal.MAGIC) + 65]
    while ends[-1] < len(journal):
        ends.append(ends[-1] + 8 + int.from_bytes(journal[ends[-1] : ends[-1] + 4], "little"))
    return ends


def fit_size(journal: bytes) -> int:
    """Evaluations in a whole journal."""
    begins = record_ends(journal)[:-1]
    return sum(int.from_bytes(journal[begin + 12 : begin + 16], "little") for begin in begins)


def every_kind_of_place(journal: bytes) -> list[int]:
    """Lengths at which a journal may have been cut off."""
    head, *ends = record_ends(journal)
    middle = ends[len(ends) // 2]
    around = [middle + offset for offset in (-1, 0, 1, 4, 7, 8, 9, 12, FRONT, FRONT + 8 * COLUMNS)]
    draw = random.Random(5)
    return [0, 5, len(Journal.MAGIC), head - 1, head, head + 3, *around, len(journal) - 1, len(journal)] + [
        draw.randrange(len(journal)) for _ in range(3)
    ]


def test_two_fits_do_not_write_one_journal(tmp_path: Path) -> None:
    """Neither a fresh one nor one that resumes; what is recorded stays. The first fit's end frees it."""
    path = tmp_path / "capture" / "checkpoint" / "journal.bin"
    path.parent.mkdir(parents=True)
    for name in ("config.toml", CONTROLLER):
        (tmp_path / "capture" / name).write_text("")
    with contextlib.closing(Journal(path, b"key", resume=False)) as journal:
        journal.append(0, Judgement(np.ones((2, len(TERMS))), np.zeros(2, dtype=bool)))
        before = path.read_bytes()
        for resume in (True, False):
            with pytest.raises(CaptureError, match="another fit is at work in it"):
                Journal(path, b"key", resume=resume)
        for resume, overwrite in ((True, False), (False, True)):
            with pytest.raises(CaptureError, match="another fit is at work in it"):
                prepare_folder(tmp_path / "capture", resume=resume, overwrite=overwrite)
        assert path.read_bytes() == before
    with contextlib.closing(Journal(path, b"key", resume=True)) as journal:
        assert journal.recorded == 2
