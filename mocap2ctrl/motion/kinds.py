"""What kinds of motion files there are, by name: for help texts, which should not have to load the readers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MotionKind:
    """One kind of motion file.

    Attributes:
        kind: as `SourceMotion.format` and `inspect --json` call it.
        title: what people call it.
        suffixes: of its files, in lower case; for help texts; the content decides.
        sign: by what the content is recognised, for error messages.
    """

    kind: str
    title: str
    suffixes: tuple[str, ...]
    sign: str


KINDS: tuple[MotionKind, ...] = (
    MotionKind("bvh", "BVH", (".bvh",), "begins with HIERARCHY"),
    MotionKind("amc", "Acclaim", (".amc",), "begins with :FULLY-SPECIFIED or :DEGREES; its .asf lies beside it"),
    MotionKind("c3d", "C3D", (".c3d",), "its second byte is 0x50, and its parameters name a processor"),
    MotionKind("trc", "TRC", (".trc",), "begins with PathFileType"),
    MotionKind("deepmimic", "DeepMimic", (".txt", ".json"), "JSON that begins with '{'"),
    MotionKind("npz", "mocap2ctrl's motion.npz", (".npz",), "a NumPy archive with hinge_names"),
)

TITLES = {entry.kind: entry.title for entry in KINDS}
MOTION_SUFFIXES = frozenset(suffix for entry in KINDS for suffix in entry.suffixes)
KINDS_TEXT = ", ".join(f"{entry.title} ({', '.join(entry.suffixes)})" for entry in KINDS)
"""For help texts and errors."""
