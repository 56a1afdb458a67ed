"""Reads a `motion.npz` that this package wrote, as a source motion: the body in it is a skeleton like any other."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Set
from pathlib import Path

import numpy as np

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import MotionFileError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.npz import read_body_and_motion
from mocap2ctrl.motion.source import SourceMotion
from mocap2ctrl.types import Array

MAX_ARRAY_BYTES = 1 << 28
OWN, SMPL = "hinge_names", "poses"
"""Entries by which a clip of ours, and one of the SMPL family (AMASS), are told from archives of masks."""


def is_motion_archive(path: Path | str) -> bool:
    """Whether an .npz holds a motion, and not masks; by the names of its entries."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(_entries(archive) & {OWN, SMPL})
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def read_own_npz(path: Path, name: str) -> SourceMotion:
    """The motion in an .npz that `npz.write_motion` wrote.

    Raises:
        MotionFileError: another kind of archive, damaged, or for another character than the package's own.
    """
    try:
        _check_archive(path)
        character, clip = read_body_and_motion(path)
    except MotionFileError:
        raise
    except Exception as error:  # a damaged archive raises many kinds
        raise MotionFileError(f"{path}: not a readable .npz; it is damaged or cut off") from error
    positions, orientations = clip_frames(character, clip)
    names = [segment.name for segment in character.segments]
    ends = [i for i in range(len(names)) if not any(other.parent == i for other in character.segments)]
    tips = np.stack([_tip(character, positions, orientations, i) for i in ends], axis=1)
    return SourceMotion(
        name=name,
        joint_names=(*names, *(f"{names[i]}:tip" for i in ends)),
        parents=(*(segment.parent for segment in character.segments), *ends),
        offsets=np.array([s.offset for s in character.segments] + [character.segments[i].tip for i in ends]),
        is_tip=(False,) * len(names) + (True,) * len(ends),
        positions=np.concatenate([positions, tips], axis=1),
        orientations=np.concatenate([orientations, orientations[:, ends]], axis=1),
        fps=clip.fps,
        format="npz",
        loop=clip.loop,
        up="z",
        unit_m=1.0,
        start_s=clip.start_s,
    )


def _entries(archive: zipfile.ZipFile) -> Set[str]:
    return {entry.removesuffix(".npy") for entry in archive.namelist()}


def _check_archive(path: Path) -> None:
    """What the archive holds, before any of it is unpacked."""
    with zipfile.ZipFile(path) as archive:
        entries = _entries(archive)
        if SMPL in entries:
            raise MotionFileError(
                f"{path}: a motion of the SMPL family (AMASS); its skeleton is in a licensed body model that is not part "
                "of this package. Convert it to BVH with a tool that has the model, and give that"
            )
        if OWN not in entries:
            raise MotionFileError(
                f"{path}: an .npz without a motion; give a motion.npz that mocap2ctrl wrote, or FILE.npz:KEY for masks"
            )
        for entry in archive.infolist():
            _check_size(archive, entry, path)


def _check_size(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> None:
    """An array's own header may ask for more memory than the archive could fill."""
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise MotionFileError(f"{path}: {entry.filename} is in NumPy's format {version}; write the file again")
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    size = math.prod(shape) * dtype.itemsize
    if size > min(entry.file_size, MAX_ARRAY_BYTES):
        raise MotionFileError(f"{path}: {entry.filename} claims {size:.3g} bytes; the file is damaged or too long")


def _tip(character: Character, positions: Array, orientations: Array, segment: int) -> Array:
    """(T, 3) the far end of a segment."""
    return positions[:, segment] + rotations.rotate(orientations[:, segment], character.segments[segment].tip)
