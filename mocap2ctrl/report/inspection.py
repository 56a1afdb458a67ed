"""What was understood of an input before a fit: facts, figures, warnings. One page and one picture are made of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mocap2ctrl.errors import ConfigError
from mocap2ctrl.files import refuse_existing, write_bytes, write_text
from mocap2ctrl.report.inspection_sheet import Panel, sheet
from mocap2ctrl.report.page import picture_uri, render_page

PAGE, PICTURE = "index.html", "inspect.png"


@dataclass(frozen=True, eq=False)
class Figure:
    """One picture of a page.

    Attributes:
        title: a few words.
        alt: what it shows, for those who do not see it.
        caption: what to look for.
        picture: PNG, or JPEG for photographs.
        dark: the same for dark screens; None for photographs.
        half: half a page wide.
    """

    title: str
    alt: str
    caption: str
    picture: bytes
    dark: bytes | None = None
    half: bool = False


@dataclass(frozen=True, eq=False)
class Inspection:
    """What was understood of an input.

    What does not apply is None. Another kind of input is another function that makes one of these, and nothing else.

    Attributes:
        source: the input, as it was given.
        name: what a capture of it would be called.
        kind: video, masks, or the format of a motion file.
        error: why it cannot be fitted; None if it can.
        fps: frames a second that a fit would use.
        frames: how many.
        start_s: the first one's time in the input, seconds.
        unit, up: of a motion file: its unit of length and its up axis.
        travels: whether the body leaves its place by more than half a metre.
        facts: tables of name and text, by title.
        figures: in order.
        warnings: what to know before a fit, sentences, the gravest first.
        notes: what was understood, sentences.
        values: more for machines: plain JSON values by name.
        command: that would fit it.
        files: texts to be edited that are written beside the page, by name; those that are there already stay.
    """

    source: str
    name: str
    kind: str
    error: str | None
    fps: float | None
    frames: int | None
    start_s: float | None = None
    unit: str | None = None
    up: str | None = None
    travels: bool | None = None
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    figures: Sequence[Figure] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    command: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether it can be fitted."""
        return self.error is None

    @property
    def duration_s(self) -> float | None:
        """Time from the first frame that is used to the last one, seconds."""
        return None if self.fps is None or self.frames is None else max(self.frames - 1, 0) / self.fps

    @property
    def subtitle(self) -> str:
        """A line below the name."""
        length = "" if self.duration_s is None else f" · {self.frames} frames, {self.duration_s:.2f} s"
        return f"What mocap2ctrl understood of {self.source} · {self.kind}{length}"

    def summary(self) -> dict[str, Any]:
        """All but the figures, as plain JSON values."""
        return {
            "kind": self.kind,
            "fps": self.fps,
            "frames": self.frames,
            "unit": self.unit,
            "up": self.up,
            "travels": self.travels,
            "usable": self.usable,
            "error": self.error,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "start_s": self.start_s,
            "duration_s": self.duration_s,
            **self.values,
        }

    def html(self) -> str:
        """The page, as text; it holds everything and asks the network for nothing."""
        return render_page("inspection.html", seen=self, picture_uri=picture_uri)

    def png(self) -> bytes:
        """The picture: the same figures below each other."""
        panels = [Panel(f.title, f.caption, f.picture, f.half) for f in self.figures]
        return sheet(self.name, self.subtitle, self.error, self.warnings, self.facts, panels)

    def write(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> tuple[Path, Path]:
        """Writes page and picture into `folder`; returns where they are.

        Raises:
            ConfigError: one is there already.
        """
        page, picture = page_and_picture(folder, overwrite=overwrite)
        page.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(picture, self.png())
        write_bytes(page, self.html().encode("utf-8"))
        for name, text in self.files.items():
            if not (page.parent / name).exists():
                write_text(page.parent / name, text)
        return page, picture


def page_and_picture(folder: str | os.PathLike[str], *, overwrite: bool) -> tuple[Path, Path]:
    """Where page and picture go.

    Raises:
        ConfigError: one is there already, and may not be replaced, or the folder cannot be one.
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise ConfigError(f"{place}: is a file; give a folder with -o DIR")
    files = (place / PAGE, place / PICTURE)
    refuse_existing(*files, overwrite=overwrite)
    return files
