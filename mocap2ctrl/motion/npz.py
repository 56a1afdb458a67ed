"""`motion.npz`: a clip with the names, rate and conventions that make it readable without this package. No pickles."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import Mocap2CtrlError, MotionFileError
from mocap2ctrl.files import write_arrays
from mocap2ctrl.types import MotionClip

FORMAT = 1
CONVENTIONS = "z up, x forward, y left; metres, radians, seconds; quaternions wxyz, world from pelvis"
_ARRAYS = ("root_position", "root_orientation", "angles")


def write_motion(path: Path | str, clip: MotionClip, character: Character) -> None:
    """Write `clip` to an `.npz`, under a temporary name first, so that a reader never sees half a file."""
    write_arrays(
        path,
        {
            "format": FORMAT,
            "conventions": CONVENTIONS,
            "quaternion_order": "wxyz",
            "name": clip.name,
            "character": character.name,
            "height_m": character.height_m,
            "hinge_names": list(character.hinge_names),
            "fps": clip.fps,
            "loop": clip.loop,
            "ends_standing": clip.ends_standing,
            "provenance": json.dumps(dict(clip.provenance)),
            **{name: getattr(clip, name) for name in _ARRAYS},
        },
    )


def read_motion(path: Path | str, character: Character) -> MotionClip:
    """Read a clip that `write_motion` wrote.

    Raises:
        MotionFileError: not such a file, damaged, of another version, or for a character with other hinges.
    """
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            return _clip({key: data[key] for key in data.files}, str(path), character)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise MotionFileError(f"{path}: not a readable motion .npz; give one that mocap2ctrl has written") from error
    except KeyError as error:
        raise MotionFileError(f"{path}: the entry {error} is missing; write the file again") from error
    except (TypeError, AttributeError) as error:
        raise MotionFileError(f"{path}: not a motion .npz but another kind of NumPy file") from error


def _clip(data: dict[str, np.ndarray], path: str, character: Character) -> MotionClip:
    if int(data["format"]) != FORMAT:
        raise MotionFileError(f"{path}: format {int(data['format'])}; this version reads format {FORMAT}")
    names = tuple(str(name) for name in data["hinge_names"])
    if names != character.hinge_names:
        raise MotionFileError(
            f"{path}: its {len(names)} joint angles are not those of character {character.name!r} "
            f"({len(character.hinge_names)}); it was written for {str(data['character'])!r}"
        )
    try:
        return MotionClip(
            name=str(data["name"]),
            fps=float(data["fps"]),
            loop=bool(data["loop"]),
            ends_standing=bool(data["ends_standing"]),
            provenance=json.loads(str(data["provenance"])),
            **{key: data[key] for key in _ARRAYS},
        )
    except Mocap2CtrlError as error:
        raise MotionFileError(f"{path}: {error}") from error
