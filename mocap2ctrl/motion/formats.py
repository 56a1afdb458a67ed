"""The readers of motion files: how each kind is told by its content, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.motion.amc import looks_like_amc, read_amc
from mocap2ctrl.motion.bvh import parse_bvh
from mocap2ctrl.motion.c3d import looks_like_c3d, parse_c3d
from mocap2ctrl.motion.deepmimic import deepmimic_directory, parse_deepmimic
from mocap2ctrl.motion.kinds import KINDS, KINDS_TEXT, MotionKind
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
class Reader:
    """How one kind of motion file is read.

    Attributes:
        recognises: whether a file's first bytes are of this kind.
        read: (content, path, what the user states) to the motion; raises MotionFileError.
    """

    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, Path, Stated], SourceMotion]


def _begins_with(word: str) -> Callable[[bytes], bool]:
    return lambda head: decoded(head).lstrip()[: len(word)].upper() == word.upper()


READERS: Mapping[str, Reader] = {
    "bvh": Reader(_begins_with("HIERARCHY"), lambda data, file, stated: parse_bvh(decoded(data), str(file), file.stem)),
    "amc": Reader(
        looks_like_amc, lambda data, file, stated: read_amc(decoded(data), file, stated.skeleton, stated.fps)
    ),
    "c3d": Reader(looks_like_c3d, lambda data, file, stated: body_of(parse_c3d(data, str(file), file.stem))),
    "trc": Reader(
        _begins_with("PathFileType"), lambda data, file, stated: body_of(parse_trc(decoded(data), str(file), file.stem))
    ),
    "deepmimic": Reader(
        _begins_with("{"), lambda data, file, stated: parse_deepmimic(decoded(data), str(file), file.stem)
    ),
    "npz": Reader(
        lambda head: head.startswith(b"PK\x03\x04"), lambda data, file, stated: read_own_npz(file, file.stem)
    ),
}
"""By `MotionKind.kind`, in whose order they are asked."""

_VIDEO = "fit and inspect take it by a name that ends as a video's does: .mkv, .avi"
_EXPORT = "export the motion as BVH, for example from Blender"
_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"Kaydara FBX", f"an FBX file; {_EXPORT}"),
    (b"; FBX", f"an FBX file; {_EXPORT}"),
    (b"glTF", f"a glTF binary; {_EXPORT}"),
    (b"BLENDER", f"a Blender file; {_EXPORT}"),
    (b"\x89PNG", "a picture; of a person's silhouettes, give the folder"),
    (b"\xff\xd8\xff", "a picture; give a motion file, or a video of the person"),
    (b"\x1aE\xdf\xa3", f"a video; {_VIDEO}"),
    (b"RIFF", f"a video; {_VIDEO}"),
    (b":version", "an Acclaim skeleton without motion; give the .amc"),
    (b"\x80", f"a pickle, which is never opened; {_EXPORT}"),
)


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


def kind_of(data: bytes, file: Path) -> MotionKind:
    """Which kind of motion file this is: by its content, and only where that says nothing by its name.

    Raises:
        MotionFileError: no kind that can be read; says which can.
    """
    if not data.strip():
        raise MotionFileError(f"{file}: is empty; give a motion file: {KINDS_TEXT}")
    head = data[:HEAD_BYTES]
    for entry in KINDS:
        if READERS[entry.kind].recognises(head):
            return entry
    start = b"".join(line for line in head.lstrip().splitlines(keepends=True) if not line.startswith(b"#"))
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise MotionFileError(f"{file}: is {what}")
    for entry in KINDS:
        if file.suffix.lower() == f".{entry.kind}":  # a .txt may be anything
            return entry
    signs = "; ".join(f"{entry.title} ({entry.sign})" for entry in KINDS)
    raise MotionFileError(f"{file}: not a motion file; allowed are {signs}")


def parse_motion(data: bytes, file: Path, stated: Stated = NOTHING_STATED) -> SourceMotion:
    """The motion in a file's content, by the reader of its kind.

    Raises:
        MotionFileError: no motion can be read from it; says why.
    """
    kind = kind_of(data, file)
    if stated.skeleton is not None and kind.kind != "amc":
        raise MotionFileError(
            f"{file}: is {kind.title}; --skeleton goes with .amc files only, leave it out (an .asf beside its .amc is found)"
        )
    return READERS[kind.kind].read(data, file, stated)
