"""Masks as files: `FILE.npz:KEY`, a folder of PNGs, or a video. They are taken as they are, after one check at the door."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mocap2ctrl.errors import VideoError
from mocap2ctrl.files import write_arrays
from mocap2ctrl.types import Masks
from mocap2ctrl.video.choice import PersonAt
from mocap2ctrl.video.decode import require_utf8
from mocap2ctrl.video.mask_pictures import (
    SAMPLES,
    Picture,
    chosen_label,
    codes,
    count_labels,
    kind_of,
    person_pixels,
    read_picture,
)
from mocap2ctrl.video.mask_video import is_mask_video, read_mask_video

FPS_KEY = "fps"
RESERVED_KEYS = (FPS_KEY, "file", "allow_pickle")
"""Names that an array in an .npz file written by numpy cannot have."""
SMALLEST_SIDE = 8
MOST_PIXELS = 4_000_000_000
DEFAULT_RATE = 30.0
"""Frames a second by which a moment is found in a folder whose rate is refused later."""
HOW = "give FILE.npz:KEY, a folder of PNGs, or a video in black and white"


@dataclass(frozen=True, eq=False)
class MaskFile:
    """Masks as a user made them.

    Attributes:
        name: the key, or the folder's name.
        masks: (T, H, W), true = person.
        fps: frames a second.
        path: the file or folder.
        source_size: width and height of the pictures that they were made from, pixels.
        notes: what was understood, sentences for the user.
        chosen: whether one of several persons was chosen already.
    """

    name: str
    masks: Masks
    fps: float
    path: Path
    source_size: tuple[int, int]
    notes: tuple[str, ...] = ()
    chosen: bool = False


def is_mask_spec(spec: str | Path) -> bool:
    """Whether `spec` means masks (a folder, an .npz file, or `FILE.npz:KEY`) and not a video."""
    path = Path(spec)
    if path.exists():
        return path.is_dir() or path.suffix.lower() == ".npz"
    return re.search(r"\.npz(:[^/\\]*)?$", str(spec), re.IGNORECASE) is not None


def holds_masks(spec: str | Path, *, insist: bool = False) -> bool:
    """Whether `spec` holds masks; of a video its pictures tell, unless a user insists."""
    return insist or is_mask_spec(spec) or is_mask_video(spec)


def load_masks(spec: str | Path, fps: float | None = None, at: PersonAt | None = None) -> MaskFile:
    """Reads masks.

    Args:
        spec: `FILE.npz:KEY` (a file with one set of masks needs no key), a folder of PNGs in natural order of their names, or
            a video in black and white or with an alpha channel.
        fps: the masks' rate, where the file does not say; the file's own `fps` wins.
        at: which person, where the pictures hold several labels.

    Raises:
        VideoError: the masks cannot be used; says why.
    """
    path, key = _path_and_key(spec)
    notes: tuple[str, ...] = ()
    size: tuple[int, int] | None = None
    if path.is_dir():
        masks, notes = _from_folder(path, fps, at)
        name, own = path.resolve().name, None
    elif path.suffix.lower() == ".npz" or key is not None:
        name, masks, own = _from_npz(path, key)
    else:
        masks, own, size, notes = read_mask_video(path)
        name = path.stem
    where = f"{path}:{name}" if path.suffix.lower() == ".npz" else str(path)
    rate = own if own is not None else fps
    if rate is None:
        raise VideoError(f"{where}: says nothing of frames a second; give them with --fps")
    if not (math.isfinite(rate) and 1.0 <= rate <= 1000.0):
        raise VideoError(f"{where}: fps is {rate:g}; allowed is a number from 1 to 1000")
    if not masks.any():
        raise VideoError(f"{where}: no person in any of {len(masks)} masks; true or white is the person")
    masks.setflags(write=False)
    chosen = at is not None and any("label" in note for note in notes)
    return MaskFile(name, masks, float(rate), path, size or masks.shape[:0:-1], notes, chosen)


def save_masks(path: str | Path, name: str, masks: Masks, fps: float) -> str:
    """Writes an .npz file that `load_masks` reads; returns the key under which the masks lie, which is mostly `name`.

    Raises:
        OSError: the file cannot be written.
    """
    key = f"{name}_masks" if name in RESERVED_KEYS else name
    write_arrays(path, {key: masks, FPS_KEY: np.float64(fps)})
    return key


def natural_order(name: str) -> tuple[tuple[int, str | int], ...]:
    """A key to sort by: numbers in a name count as numbers, so 2.png is before 10.png."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(part)) if part.isdigit() else (1, part.lower()) for part in parts)


def _path_and_key(spec: str | Path) -> tuple[Path, str | None]:
    require_utf8(spec)
    whole = Path(spec)
    if whole.exists():
        return whole, None
    before, colon, key = str(spec).rpartition(":")
    if colon and before and Path(before).is_file():
        return Path(before), key
    raise VideoError(f"{spec}: no such file or folder; {HOW}")


def _from_npz(path: Path, key: str | None) -> tuple[str, Masks, float | None]:
    """Key, masks and fps, if the file has them."""
    try:
        with open(path, "rb") as file:
            data = np.load(file, allow_pickle=False)
            if not isinstance(data, np.lib.npyio.NpzFile):
                raise VideoError(f"{path}: holds a single array without a key; {HOW}")
            name = _chosen(path, key, data.files)
            own = _fps(path, data[FPS_KEY]) if FPS_KEY in data.files else None
            return name, _as_masks(data[name], f"{path}:{name}"), own
    except OSError as error:
        raise VideoError(f"{path}: cannot be read ({error.strerror or 'not an .npz file'})") from error
    except ValueError as error:
        reason = (
            "it is no .npz file, or its arrays hold objects" if "pickle" in str(error) else " ".join(str(error).split())
        )
        raise VideoError(f"{path}: cannot be read as masks ({reason}); {HOW}") from error
    except (KeyError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise VideoError(f"{path}: cannot be read as masks ({' '.join(str(error).split())}); {HOW}") from error


def _chosen(path: Path, key: str | None, files: list[str]) -> str:
    keys = [k for k in files if k != FPS_KEY]
    listed = ", ".join(keys[:10]) + (f" and {len(keys) - 10} more" if len(keys) > 10 else "")
    if not keys:
        raise VideoError(f"{path}: is empty; expected an array of masks (T, H, W)")
    if not key:
        if len(keys) > 1:
            raise VideoError(f"{path}: holds several arrays; choose one with {path}:KEY: {listed}")
        return keys[0]
    if key not in keys:
        raise VideoError(f"{path}: has no key {key!r}; it has {listed}")
    return key


def _fps(path: Path, value: npt.NDArray[np.generic]) -> float:
    if value.size != 1 or value.dtype.kind not in "iuf":
        raise VideoError(f"{path}: fps has shape {value.shape} and type {value.dtype}; expected one number")
    return float(value.reshape(-1)[0].item())


def _as_masks(array: npt.NDArray[np.generic], where: str) -> Masks:
    if array.ndim != 3 or len(array) == 0 or min(array.shape[1:]) < SMALLEST_SIDE:
        raise VideoError(
            f"{where}: has shape {array.shape}; expected masks (frames, height, width) of {SMALLEST_SIDE} pixels a side or more"
        )
    if array.size > MOST_PIXELS:
        raise VideoError(f"{where}: has shape {array.shape}, too large; reduce the masks")
    if array.dtype == np.bool_:
        return np.array(array, dtype=bool)
    values = np.unique(array) if array.dtype.kind in "iuf" else None
    if values is None or not (set(values.tolist()) <= {0, 1} or set(values.tolist()) <= {0, 255}):
        shown = "" if values is None else f", {len(values)} values from {values[0]:g} to {values[-1]:g}"
        raise VideoError(f"{where}: has type {array.dtype}{shown}; expected bool, or only 0 and 1, or only 0 and 255")
    return np.asarray(array != 0)


def _from_folder(folder: Path, fps: float | None, at: PersonAt | None) -> tuple[Masks, tuple[str, ...]]:
    """The masks of a folder of PNGs, and what was understood beside black and white."""
    try:
        files = [f for f in folder.iterdir() if f.suffix.lower() == ".png" and not f.name.startswith(".")]
    except OSError as error:
        raise VideoError(f"{folder}: cannot be read ({error.strerror or error})") from error
    if not files:
        raise VideoError(
            f"{folder}: is a folder that holds no PNG; give a file, or, of masks, {HOW[5:]}, white = person"
        )
    files.sort(key=lambda f: natural_order(f.name))
    first = read_picture(files[0])
    height, width = first.shape[:2]
    if min(height, width) < SMALLEST_SIDE or height * width * len(files) > MOST_PIXELS:
        raise VideoError(f"{files[0]}: is {width}x{height} pixels; masks of a video are expected")
    samples = [files[i] for i in np.unique(np.linspace(0, len(files) - 1, SAMPLES).astype(int))]
    kind = kind_of([read_picture(f) for f in samples], str(folder))
    pictures = partial(_pictures, files, (height, width))
    if kind != "labels":
        masks = np.stack([person_pixels(picture, kind) for picture in pictures()])
        return masks, ("masks: the opaque part of each picture, by its alpha channel",) if kind == "alpha" else ()
    labels = count_labels(pictures())
    rate = fps or DEFAULT_RATE
    moment = labels.fullest if at is None or at.time_s is None else min(round(at.time_s * rate), len(files) - 1)
    label = chosen_label(labels, read_picture(files[moment]), moment / rate, at, str(folder))
    masks = np.stack([codes(picture) == label for picture in pictures()])
    if len(labels.areas) == 1:
        return masks, ()
    which = "the one at the point of --person" if at else "by far the largest"
    return masks, (f"masks: one of {len(labels.areas)} labels, {which}",)


def _pictures(files: Sequence[Path], shape: tuple[int, int]) -> Iterator[Picture]:
    """The pictures, of one size."""
    for file in files:
        picture = read_picture(file)
        if picture.shape[:2] != shape:
            raise VideoError(
                f"{file}: is {picture.shape[1]}x{picture.shape[0]} pixels, {files[0].name} is {shape[1]}x{shape[0]}; "
                f"all must be of one size"
            )
        yield picture
