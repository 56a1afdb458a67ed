"""The door to numba: compiled functions that release the GIL and are cached on disk.

Numba keys its cache on one file's time stamp, so a change in a function that another file's function inlines would go unseen.
Here the cache folder's name is a digest of the sources that compiled code can see instead: the files that define it, and whatever
of the package those import.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent
IMPORT = re.compile(rb"^\s*(?:from|import) (mocap2ctrl[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)

CACHE_BYTES = 20_000_000
"""Free space that a cache folder must have; what is compiled takes a few megabytes."""


@functools.cache
def source_digest() -> str:
    """Hexadecimal digest of every source file of the package: the same digest, the same code."""
    return _digest(_sources())


def compiled_digest() -> str:
    """Hexadecimal digest of the source files whose functions and constants compiled code can hold."""
    sources = _sources()
    seen: set[str] = set()
    waiting = [name for name, text in sources.items() if b"@njit" in text]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(_imported(sources[name]) & sources.keys())
    return _digest({name: sources[name] for name in seen})


def _sources() -> dict[str, bytes]:
    """The text of each module of the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts): file.read_bytes() for file in files}


def _imported(text: bytes) -> set[str]:
    """What a module's text imports from the package: modules, and names that may be modules."""
    found = set()
    for place, names in IMPORT.findall(text):
        module = place.decode()
        found |= {module, *(f"{module}.{name.strip()}" for name in names.decode().split(","))}
    return found


def _digest(sources: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(sources[name])
    return digest.hexdigest()[:16]


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "mocap2ctrl" / compiled_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > CACHE_BYTES:
            return folder
    except OSError:
        pass
    private = Path(tempfile.mkdtemp(prefix="mocap2ctrl-"))  # nobody else's: what is cached is executable code
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


if "NUMBA_CACHE_DIR" not in os.environ:  # workers inherit it
    os.environ["NUMBA_CACHE_DIR"] = str(_cache_directory())

import numba  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba.core import types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402


def njit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles `function` on first call: no Python objects, no GIL, IEEE arithmetic, cached on disk."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)  # type: ignore[no-any-return]


@intrinsic  # type: ignore[untyped-decorator]
def call_with_two_pointers(typingctx: Any, function: Any, first: Any, second: Any) -> Any:
    """Calls the C function `void f(void*, void*)` at an address; all three arguments are addresses (int64)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer])
        target = builder.inttoptr(args[0], kind.as_pointer())
        builder.call(target, [builder.inttoptr(arg, pointer) for arg in args[1:]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def double_pointer_at(typingctx: Any, slot: Any) -> Any:
    """The `double*` that is stored at the address `slot` (int64), for use with `numba.carray`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        double_pointer = ir.DoubleType().as_pointer()
        return builder.load(builder.inttoptr(args[0], double_pointer.as_pointer()))

    return types.CPointer(types.float64)(types.int64), codegen  # type: ignore[attr-defined]


@intrinsic  # type: ignore[untyped-decorator]
def add_scaled_8(typingctx: Any, target: Any, factor: Any, source: Any) -> Any:
    """Adds `factor` times 8 doubles to 8 others, as one vector; both arguments are addresses (int64), see `ndarray.ctypes`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        eight = ir.VectorType(ir.DoubleType(), 8)
        into, source = (builder.inttoptr(arg, eight.as_pointer()) for arg in (args[0], args[2]))
        factors = ir.Constant(eight, ir.Undefined)
        for lane in range(8):
            factors = builder.insert_element(factors, args[1], ir.Constant(ir.IntType(32), lane))
        product = builder.fmul(factors, builder.load(source, align=8))
        builder.store(builder.fadd(builder.load(into, align=8), product), into, align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.float64, types.int64), codegen


carray = numba.carray
