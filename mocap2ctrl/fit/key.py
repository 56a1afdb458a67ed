"""Keys of work that can be gone on with: the same digest, the same result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Camera, Keypoints


def digest_of(settings: Mapping[str, Any], arrays: Iterable[npt.NDArray[Any]]) -> bytes:
    """Digest of plain settings and of the bytes of arrays, in order."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for array in arrays:
        digest.update(array.tobytes())
    return digest.digest()


def camera_arrays(camera: Camera) -> tuple[npt.NDArray[np.float64], ...]:
    """What silhouettes depend on of the ideal pinhole that sees them."""
    return camera.matrix, camera.rotation, camera.translation


def keypoint_arrays(keypoints: Keypoints | None) -> tuple[npt.NDArray[Any], ...]:
    """What a result depends on of keypoints; nothing without."""
    if keypoints is None:
        return ()
    return np.array(keypoints.names, dtype=np.str_), keypoints.pixels, keypoints.confidence
