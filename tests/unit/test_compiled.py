"""The cache of compiled code: it is named after the sources that compiled code can see, no fewer and not many more."""

from __future__ import annotations

import importlib
import pkgutil
import shutil
from pathlib import Path

import numpy as np
import pytest

import mocap2ctrl
from mocap2ctrl import compiled


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's sources, which the digests are taken of."""
    folder = tmp_path / "mocap2ctrl"
    shutil.copytree(compiled.PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiled, "PACKAGE", folder)
    return folder


@pytest.mark.parametrize(
    ("file", "seen"),
    [
        ("control/law.py", True),  # defines compiled functions
        ("geometry/compiled_rotations.py", True),  # functions that others inline
        ("simulation/engine.py", True),  # constants
        ("cli/fit.py", False),
        ("video/decode.py", False),
    ],
)
def test_a_change_in_what_compiled_code_sees_changes_the_folder(copy: Path, file: str, seen: bool):
    before = compiled.compiled_digest()
    with (copy / file).open("a", encoding="utf-8") as source:
        source.write("\nX = 1\n")
    assert (compiled.compiled_digest() != before) == seen


def test_globals_of_compiled_functions_come_from_modules_that_count(monkeypatch: pytest.MonkeyPatch):
    counted: set[str] = set()
    monkeypatch.setattr(compiled, "_digest", lambda sources: counted.update(sources) or "")
    compiled.compiled_digest()
    functions = 0
    for info in pkgutil.walk_packages(mocap2ctrl.__path__, "mocap2ctrl."):
        if info.name.endswith("__main__") or info.name not in counted:
            continue
        for value in vars(importlib.import_module(info.name)).values():
            inner = getattr(value, "py_func", None)
            if inner is None:
                continue
            functions += 1
            for name in inner.__code__.co_names:
                origin = getattr(inner.__globals__.get(name), "__module__", None) or ""
                assert not origin.startswith("mocap2ctrl") or origin in counted, f"{info.name}: {name} is of {origin}"
    assert functions > 30


def test_eight_numbers_are_added_at_once_as_one_by_one():
    @compiled.numba.njit  # not cached: the function is the test's own
    def added(target, factor, source):  # type: ignore[no-untyped-def]
        compiled.add_scaled_8(target.ctypes.data, factor, source.ctypes.data)

    rng = np.random.default_rng(1)
    target, source = rng.normal(size=8), rng.normal(size=8)
    expected = target + 0.3 * source
    added(target, 0.3, source)
    np.testing.assert_array_equal(target, expected)
