"""The kinds of motion files, once: how each is told by its content, who reads it, what it is called in help and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.amc import looks_like_amc, read_amc
from mocap2ctrl.motion.bvh import parse_bvh
from mocap2ctrl.motion.c3d import looks_like_c3d, parse_c3d
from mocap2ctrl.motion.deepmimic import deepmimic_directory, parse_deepmimic
from mocap2ctrl.motion.marker_body import body_of
from mocap2ctrl.motion.own_npz import read_own_npz
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.motion.stated import NOTHING_STATED, Stated
from mocap2ctrl.motion.text import decoded
from mocap2ctrl.motion.trc import parse_trc

MAX_BYTES = 1 << 28
"""Larger files are refused unread: a quarter of an hour of a whole body at 120 Hz is smaller in every format."""

HEAD_BYTES = 4096
"""As much of a file as tells what it is."""


@dataclass(frozen=True)
class MotionFormat:
    """One kind of motion file.

    Attributes:
        kind: as `SourceMotion.format` and `inspect --json` call it.
        title: what people call it.
        suffixes: of its files, in lower case; for help texts; the content decides.
        sign: by what the content is recognised, for error messages.
        recognises: whether a file's first bytes are of this kind.
        read: (content, path, what the user states) to the motion; raises MotionFileError.
    """

    kind: str
    title: str
    suffixes: tuple[str, ...]
    sign: str
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, Path, Stated], SourceMotion]


def _begins_with(word: str) -> Callable[[bytes], bool]:
    return lambda head: decoded(head).lstrip()[: len(word)].upper() == word.upper()


FORMATS: tuple[MotionFormat, ...] = (
    MotionFormat(
        "bvh",
        "BVH",
        (".bvh",),
        "begins with HIERARCHY",
        _begins_with("HIERARCHY"),
        lambda data, file, stated: parse_bvh(decoded(data), str(file), file.stem),
    ),
    MotionFormat(
        "amc",
        "Acclaim",
        (".amc",),
        "begins with :FULLY-SPECIFIED or :DEGREES; its .asf lies beside it",
        looks_like_amc,
        lambda data, file, stated: read_amc(decoded(data), file, stated.skeleton, stated.fps),
    ),
    MotionFormat(
        "c3d",
        "C3D",
        (".c3d",),
        "its second byte is 0x50",
        looks_like_c3d,
        lambda data, file, stated: body_of(parse_c3d(data, str(file), file.stem)),
    ),
    MotionFormat(
        "trc",
        "TRC",
        (".trc",),
        "begins with PathFileType",
        _begins_with("PathFileType"),
        lambda data, file, stated: body_of(parse_trc(decoded(data), str(file), file.stem)),
    ),
    MotionFormat(
        "deepmimic",
        "DeepMimic",
        (".txt", ".json"),
        "JSON that begins with '{'",
        _begins_with("{"),
        lambda data, file, stated: parse_deepmimic(decoded(data), str(file), file.stem),
    ),
    MotionFormat(
        "npz",
        "mocap2ctrl's motion.npz",
        (".npz",),
        "a NumPy archive with hinge_names",
        lambda head: head.startswith(b"PK\x03\x04"),
        lambda data, file, stated: read_own_npz(file, file.stem),
    ),
)

_EXPORT = "export the motion as BVH, for example from Blender"
_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"Kaydara FBX", f"an FBX file; {_EXPORT}"),
    (b"; FBX", f"an FBX file; {_EXPORT}"),
    (b"glTF", f"a glTF binary; {_EXPORT}"),
    (b"BLENDER", f"a Blender file; {_EXPORT}"),
    (b":version", "an Acclaim skeleton without motion; give the .amc"),
    (b"\x80", f"a pickle, which is never opened; {_EXPORT}"),
)

TITLES = {entry.kind: entry.title for entry in FORMATS}
MOTION_SUFFIXES = frozenset(suffix for entry in FORMATS for suffix in entry.suffixes)
KINDS_TEXT = ", ".join(f"{entry.title} ({', '.join(entry.suffixes)})" for entry in FORMATS)
"""For help texts and errors."""


def find_motion(path: Path | str) -> Path:
    """The file that a user means: a path, or the bare name of a DeepMimic clip of pybullet_data.

    Raises:
        MotionFileError: there is none.
    """
    file = Path(path)
    if file.is_file():
        return file
    folder = deepmimic_directory()
    if folder is not None and file.name == str(path):
        for name in (file.name, f"{file.name}.txt", f"humanoid3d_{file.name}.txt"):
            if (folder / name).is_file():
                return folder / name
    if file.is_dir():
        raise MotionFileError(f"{path}: is a folder; give a motion file: {KINDS_TEXT}")
    hint = "" if folder is not None else "; DeepMimic's clips are found by name once pybullet is installed"
    raise MotionFileError(f"{path}: no such file{hint}")


def read_bytes(file: Path) -> bytes:
    """A motion file's content.

    Raises:
        MotionFileError: it cannot be read, or is too large to be a motion.
    """
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise MotionFileError(
                f"{file}: holds {size / 1e6:.0f} MB; a motion file may hold {MAX_BYTES / 1e6:.0f} MB. Cut it into parts"
            )
        return file.read_bytes()
    except OSError as error:
        raise MotionFileError(f"{file}: cannot be read ({error.strerror or error})") from error


def format_of(data: bytes, file: Path) -> MotionFormat:
    """Which kind of motion file this is: by its content, and only where that says nothing by its name.

    Raises:
        MotionFileError: no kind that can be read; says which can.
    """
    head = data[:HEAD_BYTES]
    for entry in FORMATS:
        if entry.recognises(head):
            return entry
    start = b"".join(line for line in head.lstrip().splitlines(keepends=True) if not line.startswith(b"#"))
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise MotionFileError(f"{file}: is {what}")
    for entry in FORMATS:
        if file.suffix.lower() == f".{entry.kind}":  # a .txt may be anything
            return entry
    signs = "; ".join(f"{entry.title} ({entry.sign})" for entry in FORMATS)
    raise MotionFileError(f"{file}: not a motion file; allowed are {signs}")


def parse_motion(data: bytes, file: Path, stated: Stated = NOTHING_STATED) -> SourceMotion:
    """The motion in a file's content, by the reader of its kind.

    Raises:
        MotionFileError: no motion can be read from it; says why.
    """
    return format_of(data, file).read(data, file, stated)
