"""The container of glTF 2.0: arrays in one buffer, and the binary file (.glb) that holds it behind its JSON.

Khronos Group, glTF 2.0 Specification, sections 3.6 (buffers, accessors) and 4 (GLB). What nodes, skins and animations say is the
caller's; this is all that a library would save us.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

COMPONENTS = {np.dtype(np.uint16): 5123, np.dtype(np.uint32): 5125, np.dtype(np.float32): 5126}
SHAPES = {(): "SCALAR", (3,): "VEC3", (4,): "VEC4", (4, 4): "MAT4"}
VERTICES, INDICES = 34962, 34963
"""Targets of buffer views that hold a mesh."""

MAGIC, VERSION, JSON_CHUNK, BINARY_CHUNK = b"glTF", 2, b"JSON", b"BIN\0"


class Buffer:
    """Arrays laid one after the other, with the views and accessors that find them."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, array: npt.NDArray[Any], *, target: int | None = None, bounds: bool = False) -> int:
        """Appends an array of N elements; returns its accessor's index.

        Args:
            array: (N,), (N, 3), (N, 4), or (N, 4, 4) with each matrix column by column; float32, uint16 or uint32.
            target: VERTICES or INDICES for what a mesh holds.
            bounds: whether the format wants the least and greatest values said: of places and of times.
        """
        view = {"buffer": 0, "byteOffset": len(self._data), "byteLength": array.nbytes}
        self.views.append(view if target is None else {**view, "target": target})
        self._data += np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        self._data += bytes(-len(self._data) % 4)
        accessor: dict[str, Any] = {
            "bufferView": len(self.views) - 1,
            "componentType": COMPONENTS[array.dtype],
            "count": len(array),
            "type": SHAPES[array.shape[1:]],
        }
        if bounds:
            accessor |= {
                "min": np.atleast_1d(array.min(axis=0)).tolist(),
                "max": np.atleast_1d(array.max(axis=0)).tolist(),
            }
        self.accessors.append(accessor)
        return len(self.accessors) - 1

    def glb(self, document: dict[str, Any]) -> bytes:
        """The file: `document`, to which buffer, views and accessors are added, and the data. Refuses NaN, which JSON lacks."""
        stored = {"buffers": [{"byteLength": len(self._data)}], "bufferViews": self.views, "accessors": self.accessors}
        text = json.dumps({**document, **stored}, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        chunks = b"".join(
            struct.pack("<I4s", len(chunk), kind) + chunk
            for kind, chunk in ((JSON_CHUNK, text), (BINARY_CHUNK, self._data))
        )
        return struct.pack("<4sII", MAGIC, VERSION, 12 + len(chunks)) + chunks
