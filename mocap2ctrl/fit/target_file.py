"""`target.npz`, the evidence of a capture: the reference motion and, of a video, the person's silhouettes. Never a pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mocap2ctrl.character.landmarks import LANDMARKS
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CaptureError, Mocap2CtrlError
from mocap2ctrl.files import write_arrays
from mocap2ctrl.types import Array, Camera, Keypoints, Masks, MotionClip, Silhouettes

FORMAT = 3
READABLE = (1, 2, 3)
"""Format 1 has no silhouettes, format 2 no keypoints."""

GIRTH_RANGE = (0.5, 5.0)
UNIT_TOLERANCE = 1e-3
"""How far a quaternion's length may be from 1."""


@dataclass(frozen=True, eq=False)
class Target:
    """What a controller is fitted to.

    Attributes:
        reference: the motion to follow: a retargeted motion file, or the track of a video.
        source_points: (T, E, 3) the source's own joints at the reference's frames, NaN where it has none.
        silhouettes: what a camera saw, at the video's own rate; None for motion files.
        girth: of the character's shape, as stout as the person in the video (`BodyShape.radii_at`).
    """

    reference: MotionClip
    source_points: Array
    silhouettes: Silhouettes | None = None
    girth: float = 1.0


def save_target(path: Path, target: Target, character: Character) -> None:
    """Writes a target; the silhouettes' camera has a file of its own."""
    clip = target.reference
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "name": clip.name,
        "fps": clip.fps,
        "start_s": clip.start_s,
        "root_position_m": clip.root_position,
        "root_orientation_wxyz": clip.root_orientation,
        "angles_rad": clip.angles,
        "hinge_names": list(character.hinge_names),
        "loop": clip.loop,
        "ends_standing": clip.ends_standing,
        "provenance_json": json.dumps(dict(clip.provenance)),
        "source_points_m": target.source_points,
    }
    if target.silhouettes is not None:
        seen = target.silhouettes
        arrays |= {
            "silhouettes_name": seen.name,
            "silhouettes_fps": seen.fps,
            "silhouettes_shape": seen.masks.shape,
            "silhouettes_bits": np.packbits(seen.masks),
            "silhouettes_provenance_json": json.dumps(dict(seen.provenance)),
            "ground_velocity_m_s": seen.ground_velocity,
            "girth": target.girth,
            **_keypoint_entries(seen.keypoints),
        }
    write_arrays(path, {name: np.array(value) for name, value in arrays.items()})


def load_target(path: Path, character: Character, camera: Camera | None) -> Target:
    """Reads a target.

    Args:
        path: the file.
        character: whose motion it must be.
        camera: that saw the silhouettes; None where there is no camera file.

    Raises:
        CaptureError: missing, damaged, or of another character or version.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            return _target({name: data[name] for name in data.files}, path, character, camera)
    except CaptureError:
        raise
    except Mocap2CtrlError as error:  # a clip's or silhouettes' own check
        raise CaptureError(f"{path}: cannot be read ({error}); restore the file or fit anew") from error
    except KeyError as error:
        raise CaptureError(f"{path}: the entry {error} is missing; restore the file or fit anew") from error
    except Exception as error:  # a damaged archive raises many kinds
        raise CaptureError(f"{path}: cannot be read ({type(error).__name__}); restore the file or fit anew") from error


def _target(data: Mapping[str, Any], path: Path, character: Character, camera: Camera | None) -> Target:
    if int(data["format"]) not in READABLE:
        raise CaptureError(f"{path}: format is {int(data['format'])}; this version reads up to {FORMAT}")
    if tuple(str(n) for n in data["hinge_names"]) != character.hinge_names:
        raise CaptureError(f"{path}: its joints are not those of the character; restore the file or fit anew")
    clip = MotionClip(
        name=str(data["name"]),
        fps=float(data["fps"]),
        start_s=float(data.get("start_s", 0.0)),  # younger than the format
        root_position=data["root_position_m"],
        root_orientation=data["root_orientation_wxyz"],
        angles=data["angles_rad"],
        loop=bool(data["loop"]),
        ends_standing=bool(data["ends_standing"]),
        provenance=_mapping(data, "provenance_json", path),
    )
    if not np.all(np.abs(np.linalg.norm(clip.root_orientation, axis=1) - 1.0) < UNIT_TOLERANCE):
        raise CaptureError(f"{path}: root_orientation_wxyz holds no unit quaternions; restore the file or fit anew")
    points, shape = np.asarray(data["source_points_m"], float), (len(clip), len(character.evaluation_points), 3)
    if points.shape != shape:
        raise CaptureError(f"{path}: source_points_m has shape {points.shape}; expected {shape}")
    if "silhouettes_bits" not in data:
        return Target(clip, points)
    if camera is None:
        raise CaptureError(f"{path}: holds silhouettes, but the camera that saw them is missing; restore camera.toml")
    girth = float(data["girth"])
    if not GIRTH_RANGE[0] <= girth <= GIRTH_RANGE[1]:
        raise CaptureError(f"{path}: girth is {girth}; allowed is {GIRTH_RANGE[0]:g} to {GIRTH_RANGE[1]:g}")
    seen = _silhouettes(data, path, camera)
    expected = round(clip.duration_s * seen.fps) + 1
    if len(seen) != expected:
        raise CaptureError(
            f"{path}: holds {len(seen)} masks where the track's {clip.duration_s:.2f} s at {seen.fps:g} frames a second have "
            f"{expected}; restore the file or fit anew"
        )
    return Target(clip, points, seen, girth)


def _silhouettes(data: Mapping[str, Any], path: Path, camera: Camera) -> Silhouettes:
    masks = _unpacked(data["silhouettes_bits"], data["silhouettes_shape"], path)
    width, height = camera.size
    if masks.shape[1:] != (height, width):
        raise CaptureError(f"{path}: its masks are {masks.shape[2]}x{masks.shape[1]}, the camera's {width}x{height}")
    if not masks.any():
        raise CaptureError(f"{path}: no mask holds a pixel; restore the file or fit anew")
    provenance = _mapping(data, "silhouettes_provenance_json", path)
    start_s = provenance.get("start_s", 0.0)
    if isinstance(start_s, bool) or not isinstance(start_s, int | float) or not np.isfinite(start_s):
        raise CaptureError(f"{path}: start_s is {start_s!r}; allowed is a finite number of seconds")
    return Silhouettes(
        name=str(data["silhouettes_name"]),
        fps=float(data["silhouettes_fps"]),
        masks=masks,
        camera=camera,
        provenance=provenance,
        ground_velocity=data.get("ground_velocity_m_s", np.zeros(2)),
        keypoints=_keypoints(data, path) if "keypoints_names" in data else None,
    )


def _keypoint_entries(seen: Keypoints | None) -> dict[str, Any]:
    if seen is None:
        return {}
    return {
        "keypoints_names": list(seen.names),
        "keypoints_px": seen.pixels,
        "keypoints_confidence": seen.confidence,
        "keypoints_scale": seen.scale,
        "keypoints_provenance_json": json.dumps(dict(seen.provenance)),
    }


def _keypoints(data: Mapping[str, Any], path: Path) -> Keypoints:
    names = tuple(str(name) for name in data["keypoints_names"])
    unknown = [name for name in names if name not in LANDMARKS]
    if unknown:
        raise CaptureError(f"{path}: keypoints_names holds {unknown[0]!r}; known are {', '.join(LANDMARKS)}")
    return Keypoints(
        names=names,
        pixels=data["keypoints_px"],
        confidence=data["keypoints_confidence"],
        scale=float(data["keypoints_scale"]),
        provenance=_mapping(data, "keypoints_provenance_json", path),
    )


def _mapping(data: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    value = json.loads(str(data[name]))
    if not isinstance(value, dict):
        raise CaptureError(f"{path}: {name} is no JSON object; restore the file or fit anew")
    return value


def _unpacked(bits: Any, shape: Any, path: Path) -> Masks:
    sizes = tuple(int(n) for n in shape)
    count = int(np.prod(sizes, dtype=np.int64))
    if len(sizes) != 3 or min(sizes) < 1 or bits.dtype != np.uint8 or bits.shape != (-(-count // 8),):
        raise CaptureError(f"{path}: silhouettes of shape {sizes} do not fit their {bits.size} bytes; fit anew")
    return np.unpackbits(bits, count=count).reshape(sizes).astype(bool)
