"""The sample footage that comes with the package: wherever a user is, its name alone finds it."""

from __future__ import annotations

from pathlib import Path

VIDEO = ".mp4"
TRUTH = ".truth.npz"


def footage_directory() -> Path | None:
    """The folder of the sample footage: in the package when installed, beside it in a checkout; None if neither exists."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "footage", package.parent / "video"):
        if next(folder.glob(f"*{VIDEO}"), None) is not None:
            return folder
    return None


def shipped_videos() -> tuple[str, ...]:
    """File names of the videos that come with the package, in alphabetical order."""
    folder = footage_directory()
    return () if folder is None else tuple(sorted(path.name for path in folder.glob(f"*{VIDEO}")))


def shipped_file(name: str | Path, ending: str) -> Path | None:
    """The sample file that a bare name means; None if there is such a file here, or no such sample.

    Args:
        name: `walk.mp4`, or `walk.truth.npz`.
        ending: VIDEO or TRUTH, what is asked for.
    """
    folder, path = footage_directory(), Path(name)
    if folder is None or path.exists() or path.name != str(name) or not path.name.endswith(ending):
        return None
    file = folder / path.name
    return file if file.is_file() else None
