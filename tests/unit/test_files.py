"""Files are whole or absent."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.files import write_arrays, write_bytes, write_json, write_text


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    write_bytes(path, b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"data\.bin"):
            write_bytes(path, b"new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["data.bin"]


def test_a_missing_folder_is_named_as_the_user_gave_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"nowhere/notes\.txt"):
        write_text(tmp_path / "nowhere" / "notes.txt", "hello")


def test_json_has_no_nan_and_a_refused_value_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert not list(tmp_path.iterdir())


def test_arrays_load_without_pickles(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.npz", {"x": np.arange(3), "name": np.array("walk")})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as data:
        np.testing.assert_array_equal(data["x"], [0, 1, 2])
        assert str(data["name"]) == "walk"
    with pytest.raises(ValueError, match="pickle"):
        write_arrays(tmp_path / "b.npz", {"x": np.array([object()])})
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
