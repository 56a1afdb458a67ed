"""Camera files: TOML in Pose2Sim's keys, one table a camera; checked at the door, scaled to the video they are for."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from mocap2ctrl.errors import CameraError
from mocap2ctrl.files import write_text
from mocap2ctrl.geometry.camera import cropped
from mocap2ctrl.types import Array, Camera

KEYS = ("size", "matrix", "distortions", "rotation", "translation", "fisheye")
NOT_A_CAMERA = "metadata"
DISTORTION_COUNTS = (0, 4, 5, 8, 12, 14)
FISHEYE_COUNTS = (0, 4)
LARGEST_SIDE = 16384
SAME_ASPECT = 0.02
"""Sizes whose width-to-height ratios differ by less show the same picture."""


def load_camera(spec: str | Path) -> Camera:
    """Reads one camera.

    Args:
        spec: a file with one camera, or `FILE:NAME` to choose one of several. A file of that whole name wins.

    Raises:
        CameraError: the file, the name or the camera cannot be used; says why.
    """
    file, name = _file_and_name(spec)
    cameras = {key: table for key, table in _tables(file).items() if key != NOT_A_CAMERA and isinstance(table, dict)}
    if not cameras:
        raise CameraError(f"{file}: holds no camera; expected a table a camera, with the keys {', '.join(KEYS)}")
    if name is None and len(cameras) > 1:
        raise CameraError(f"{file}: holds several cameras; choose one: {_choices(file, cameras)}")
    if name is None:
        (name,) = cameras
    for key, table in cameras.items():
        if name in (key, table.get("name")):
            return _camera(table, str(table.get("name", key)), f"{file}: camera {key}")
    raise CameraError(f"{file}: has no camera {name!r}; choose one: {_choices(file, cameras)}")


def save_camera(path: str | Path, camera: Camera) -> None:
    """Writes a file that `load_camera` reads.

    Raises:
        OSError: the file cannot be written.
    """
    table = {
        "name": camera.name,
        "size": [float(n) for n in camera.size],
        "matrix": camera.matrix.tolist(),
        "distortions": camera.distortions.tolist(),
        "rotation": camera.rotation.tolist(),
        "translation": camera.translation.tolist(),
        "fisheye": camera.fisheye,
    }
    write_text(path, tomli_w.dumps({camera.name: table}))


def camera_beside(video: str | Path) -> Path | None:
    """The file `<video's name>.toml` in the video's folder, if there is one."""
    path = Path(video).with_suffix(".toml")
    return path if path.is_file() else None


def camera_for_size(camera: Camera, size: tuple[int, int], what: str = "the video") -> Camera:
    """The camera of the same picture at another size; its lens distortion stays.

    Args:
        camera: of images of any size.
        size: width and height of the images it shall see.
        what: whose size it is, for the error.

    Raises:
        CameraError: the pictures are not of the same shape.
    """
    if camera.size == size:
        return camera
    own = camera.size[0] / camera.size[1]
    if abs(math.log(own * size[1] / size[0])) > SAME_ASPECT:
        raise CameraError(
            f"camera {camera.name} is for {camera.size[0]}x{camera.size[1]} pixels, not for the {size[0]}x{size[1]} of {what}, "
            f"another shape; give the camera that recorded it, or calibrate at this size"
        )
    return cropped(camera, 0.0, 0.0, *camera.size, size)


def _file_and_name(spec: str | Path) -> tuple[Path, str | None]:
    whole = Path(spec)
    if whole.is_file():
        return whole, None
    before, colon, name = str(spec).rpartition(":")
    if colon and before and Path(before).is_file():
        if not name:
            raise CameraError(f"{spec}: no name after the colon; give {before} or {before}:NAME")
        return Path(before), name
    if whole.is_dir():
        raise CameraError(f"{spec}: is a folder; give a camera file, FILE.toml or FILE.toml:NAME")
    raise CameraError(f"{spec}: no such camera file; give FILE.toml, or FILE.toml:NAME for one of several cameras")


def _tables(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise CameraError(f"{file}: cannot be read ({error.strerror or error})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CameraError(f"{file}: is not a TOML file ({' '.join(str(error).split())})") from error


def _choices(file: Path, cameras: Mapping[str, Any]) -> str:
    names = [f"{file}:{name}" for name in cameras]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _camera(table: Mapping[str, Any], name: str, where: str) -> Camera:
    missing = [key for key in ("size", "matrix", "rotation", "translation") if key not in table]
    if missing:
        raise CameraError(f"{where}: lacks {', '.join(missing)}; a camera has the keys {', '.join(KEYS)}")
    fisheye = table.get("fisheye", False)
    if not isinstance(fisheye, bool):
        raise CameraError(f"{where}: fisheye is {_short(fisheye)}; expected true or false")
    return Camera(
        name=name,
        size=_size(table["size"], where),
        matrix=_matrix(table["matrix"], where),
        rotation=_numbers(
            table["rotation"], (3,), f"{where}: rotation", "a Rodrigues vector, world to camera, radians"
        ),
        translation=_numbers(table["translation"], (3,), f"{where}: translation", "metres"),
        distortions=_distortions(table.get("distortions", []), fisheye, where),
        fisheye=fisheye,
    )


def _numbers(value: Any, shape: tuple[int, ...], where: str, meaning: str) -> Array:
    wanted = "x".join(map(str, shape))
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.full(1, np.nan)
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise CameraError(f"{where} is {_short(value)}; expected {wanted} finite numbers ({meaning})")
    return array


def _size(value: Any, where: str) -> tuple[int, int]:
    size = _numbers(value, (2,), f"{where}: size", "width and height, pixels")
    if np.any(size < 2) or np.any(size > LARGEST_SIDE) or np.any(size != np.round(size)):
        raise CameraError(f"{where}: size is {_short(value)}; expected whole numbers of pixels, width and height")
    return int(size[0]), int(size[1])


def _matrix(value: Any, where: str) -> Array:
    matrix = _numbers(value, (3, 3), f"{where}: matrix", "focal lengths and principal point, pixels")
    if matrix[0, 0] <= 0 or matrix[1, 1] <= 0:
        raise CameraError(
            f"{where}: focal lengths are {matrix[0, 0]:g} and {matrix[1, 1]:g} pixels; expected positive numbers"
        )
    if matrix[0, 1] != 0 or matrix[1, 0] != 0 or not np.array_equal(matrix[2], (0, 0, 1)):
        raise CameraError(f"{where}: matrix is {_short(value)}; expected [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]")
    return matrix


def _distortions(value: Any, fisheye: bool, where: str) -> Array:
    counts = FISHEYE_COUNTS if fisheye else DISTORTION_COUNTS
    count = len(value) if isinstance(value, list) else -1
    if count not in counts:
        kind = "a fisheye" if fisheye else "a lens"
        raise CameraError(
            f"{where}: distortions is {_short(value)}; {kind} has {' or '.join(map(str, counts))} numbers"
        )
    return _numbers(value, (count,), f"{where}: distortions", "OpenCV's coefficients")


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
