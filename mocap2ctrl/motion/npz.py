"""`motion.npz`: a clip for notebooks, with the names, units and conventions that make it readable by NumPy alone. No pickles.

`docs/export.md` lists the entries. Root and hinge angles are the motion; segments' places, contacts and times follow from them.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tomli_w

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import SIDES, Character, load_character, parse_character
from mocap2ctrl.errors import CharacterError, Mocap2CtrlError, MotionFileError
from mocap2ctrl.files import write_arrays
from mocap2ctrl.motion.contacts import foot_contacts
from mocap2ctrl.types import MotionClip

FORMAT = 2
READABLE = (1, 2)
"""Format 1 holds root and angles only, and no character."""

CONVENTIONS = "z up, x forward, y left; metres, radians, seconds; quaternions wxyz, world from segment"
UNITS = {
    "length_unit": "m",
    "angle_unit": "rad",
    "time_unit": "s",
    "quaternion_order": "wxyz",
    "up": "z",
    "forward": "x",
}
"""Of all arrays that are written for others, by entry."""

UNIT_TOLERANCE = 1e-3
"""How far a quaternion's length may be from 1."""


def write_motion(path: Path | str, clip: MotionClip, character: Character) -> None:
    """Write `clip` to an `.npz`, under a temporary name first, so that a reader never sees half a file."""
    write_arrays(path, motion_arrays(clip, character))


def motion_arrays(clip: MotionClip, character: Character) -> Mapping[str, npt.ArrayLike]:
    """The entries of the file by name."""
    positions, orientations = clip_frames(character, clip)
    return {
        "format": FORMAT,
        "conventions": CONVENTIONS,
        **UNITS,
        "name": clip.name,
        "fps": clip.fps,
        "start_s": clip.start_s,
        "time": clip.times_s,
        "root_position": clip.root_position,
        "root_orientation": clip.root_orientation,
        "hinge_names": list(character.hinge_names),
        "angles": clip.angles,
        "segment_names": list(character.segment_names),
        "segment_parents": [segment.parent for segment in character.segments],
        "segment_positions": positions,
        "segment_orientations": orientations,
        "contact_names": list(SIDES),
        "contacts": foot_contacts(clip, character),
        "loop": clip.loop,
        "ends_standing": clip.ends_standing,
        "character": character.name,
        "height_m": character.height_m,
        "mass_kg": character.mass_kg,
        "character_toml": tomli_w.dumps(dict(character.description)),
        "provenance": json.dumps(dict(clip.provenance)),
    }


def read_motion(path: Path | str, character: Character) -> MotionClip:
    """Read a clip that `write_motion` wrote.

    Raises:
        MotionFileError: not such a file, damaged, of another version, or for a character with other hinges.
    """
    data = _entries(path)
    try:
        return _clip(data, str(path), character)
    except KeyError as error:
        raise _missing(path, error) from error


def read_body(path: Path | str) -> Character:
    """The character whose motion a file holds; of one in format 1, the built-in humanoid of its height.

    Raises:
        MotionFileError: not such a file, damaged, or of another version.
    """
    return _body(_entries(path), path)


def read_body_and_motion(path: Path | str) -> tuple[Character, MotionClip]:
    """`read_body` and its motion, from one reading of the file.

    Raises:
        MotionFileError: not such a file, damaged, or of another version.
    """
    data = _entries(path)
    character = _body(data, path)
    try:
        return character, _clip(data, str(path), character)
    except KeyError as error:
        raise _missing(path, error) from error


def _body(data: Mapping[str, np.ndarray[Any, Any]], path: Path | str) -> Character:
    try:
        if "character_toml" not in data:
            return load_character(height_m=float(data["height_m"]))
        return parse_character(tomllib.loads(str(data["character_toml"])), str(path))
    except KeyError as error:
        raise _missing(path, error) from error
    except (CharacterError, tomllib.TOMLDecodeError, TypeError, ValueError) as error:
        raise MotionFileError(f"{path}: its character cannot be used ({error}); write the file again") from error


def _entries(path: Path | str) -> dict[str, np.ndarray[Any, Any]]:
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            data = {key: archive[key] for key in archive.files}
            version = int(data["format"])
    except KeyError as error:
        raise _missing(path, error) from error
    except (TypeError, AttributeError) as error:
        raise MotionFileError(f"{path}: not a motion .npz but another kind of NumPy file") from error
    except Exception as error:  # a damaged archive raises many kinds
        why = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        raise MotionFileError(
            f"{path}: not a readable motion .npz{why}; give one that mocap2ctrl has written"
        ) from error
    if version not in READABLE:
        raise MotionFileError(f"{path}: format {version}; this version reads format 1 to {FORMAT}")
    return data


def _missing(path: Path | str, error: KeyError) -> MotionFileError:
    return MotionFileError(f"{path}: the entry {error} is missing; give a motion .npz that mocap2ctrl has written")


def _clip(data: Mapping[str, np.ndarray[Any, Any]], path: str, character: Character) -> MotionClip:
    names = tuple(str(name) for name in data["hinge_names"])
    if names != character.hinge_names:
        raise MotionFileError(
            f"{path}: its {len(names)} joint angles are not those of character {character.name!r} "
            f"({len(character.hinge_names)}); it was written for {str(data['character'])!r}. Write it again from its source: "
            "mocap2ctrl convert FILE -o motion.npz"
        )
    try:
        provenance = dict(json.loads(str(data["provenance"])))
    except (TypeError, ValueError) as error:
        raise MotionFileError(
            f"{path}: its entry 'provenance' is no JSON object ({error}); write '{{}}' there, or the file again"
        ) from error
    try:
        clip = MotionClip(
            name=str(data["name"]),
            fps=float(data["fps"]),
            root_position=data["root_position"],
            root_orientation=data["root_orientation"],
            angles=data["angles"],
            loop=bool(data["loop"]),
            ends_standing=bool(data["ends_standing"]),
            provenance=provenance,
            start_s=float(data.get("start_s", 0.0)),
        )
    except (Mocap2CtrlError, TypeError, ValueError) as error:
        raise MotionFileError(f"{path}: {error}") from error
    if clip.angles.shape[1] != len(names):
        raise MotionFileError(f"{path}: angles has {clip.angles.shape[1]} columns for {len(names)} hinge_names")
    if not np.all(np.abs(np.linalg.norm(clip.root_orientation, axis=1) - 1.0) < UNIT_TOLERANCE):
        raise MotionFileError(f"{path}: root_orientation holds no unit quaternions; write the file again")
    return clip
