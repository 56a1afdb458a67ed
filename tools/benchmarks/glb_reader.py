"""A GLB file as others see it: parsed by pygltflib, its skin and animation evaluated as the glTF 2.0 specification says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pygltflib import GLTF2

from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array

DTYPES = {5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}


class GlbReader:
    """One file with one skin and one animation.

    Attributes:
        gltf: what pygltflib has parsed.
    """

    def __init__(self, path: Path) -> None:
        self.gltf: Any = GLTF2().load(str(path))
        self._blob = self.gltf.binary_blob()

    def array(self, index: int) -> Array:
        """(N, width) the numbers of an accessor, whose view they must fill."""
        accessor = self.gltf.accessors[index]
        view = self.gltf.bufferViews[accessor.bufferView]
        dtype, count = DTYPES[accessor.componentType], accessor.count * WIDTHS[accessor.type]
        if view.byteLength != count * np.dtype(dtype).itemsize or view.byteOffset % 4:
            raise ValueError(f"accessor {index} does not fill its view, or is not aligned")
        values = np.frombuffer(self._blob, dtype, count, view.byteOffset)
        return values.reshape(accessor.count, -1).astype(float)

    @property
    def joint_names(self) -> list[str]:
        """Of the S joints, in the skin's order."""
        return [self.gltf.nodes[joint].name for joint in self.gltf.skins[0].joints]

    def worlds(self, *, rest: bool = False) -> Array:
        """(T, S, 4, 4) transforms of the joints at the animation's keys; with `rest` (1, S, 4, 4) those without animation."""
        nodes, animation = self.gltf.nodes, self.gltf.animations[0]
        keyed = (
            {}
            if rest
            else {(c.target.node, c.target.path): animation.samplers[c.sampler].output for c in animation.channels}
        )
        parents = {child: i for i, node in enumerate(nodes) for child in node.children or ()}
        found: dict[int, Array] = {}
        for joint in self.gltf.skins[0].joints:  # parents stand before children
            local = [
                self.array(keyed[joint, path])
                if (joint, path) in keyed
                else np.array([getattr(nodes[joint], path)], float)
                for path in ("translation", "rotation")
            ]
            matrix = _matrices(*local)
            found[joint] = found[parents[joint]] @ matrix if parents.get(joint) in found else matrix
        return np.stack(list(found.values()), axis=1)

    def skinned(self, worlds: Array) -> Array:
        """(V, 3) the mesh's vertices, moved by joints (S, 4, 4)."""
        inverse = self.array(self.gltf.skins[0].inverseBindMatrices).reshape(-1, 4, 4).swapaxes(1, 2)
        attributes = self.gltf.meshes[0].primitives[0].attributes
        vertices, joints = self.array(attributes.POSITION), self.array(attributes.JOINTS_0).astype(int)
        placed = np.einsum("vkij,vj->vki", (worlds @ inverse)[joints], np.c_[vertices, np.ones(len(vertices))])
        return np.asarray(np.einsum("vk,vki->vi", self.array(attributes.WEIGHTS_0), placed)[:, :3])


def _matrices(translation: Array, rotation_xyzw: Array) -> Array:
    """(T, 4, 4) of translations (T or 1, 3) and quaternions (T or 1, 4)."""
    matrices = np.tile(np.eye(4), (max(len(translation), len(rotation_xyzw)), 1, 1))
    matrices[:, :3, :3] = rotations.to_matrix(np.roll(rotation_xyzw, 1, axis=-1))
    matrices[:, :3, 3] = translation
    return matrices
