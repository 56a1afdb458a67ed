"""MuJoCo's C library as compiled code needs it: addresses of its functions, and where in `mjData` a field stands."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import mujoco

from mocap2ctrl.errors import EngineError


@functools.cache
def library() -> ctypes.CDLL:
    """MuJoCo's C library, the very one that the binding has loaded."""
    folder = Path(mujoco.__file__).parent
    candidates = sorted([*folder.glob("libmujoco.*"), *folder.glob("mujoco.dll")])
    if not candidates:
        raise EngineError(f"MuJoCo {mujoco.__version__}: its C library is not in {folder}")
    return ctypes.CDLL(str(candidates[0]))


def address(function: Any) -> int:
    """The address of one of its functions."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@functools.cache
def mjdata_layout() -> type[ctypes.Structure]:
    """`mjData` as a ctypes structure, built from MuJoCo's own description of its headers."""
    return _ctypes_structure("mjData")


def _ctypes_structure(name: str) -> type[ctypes.Structure]:
    from mujoco.introspect import structs

    fields = [(f.name, _ctypes_type(f.type)) for f in structs.STRUCTS[name].fields]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


_SCALARS: dict[str, Any] = {
    "mjtNum": ctypes.c_double,
    "int": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    "uintptr_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "mjtSize": ctypes.c_int64,
    "mjtBool": ctypes.c_bool,
}


def _ctypes_type(declared: Any) -> Any:
    if hasattr(declared, "extents"):
        element = _ctypes_type(declared.inner_type)
        for extent in reversed(declared.extents):
            element = element * extent
        return element
    text = str(declared)
    if text.endswith("*") or text.endswith("* restrict"):
        return ctypes.c_void_p
    return _SCALARS.get(text) or _ctypes_structure(text)
