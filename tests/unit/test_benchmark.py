"""What the benchmark adds to the package: the camera that is assumed for uncalibrated masks, and how tables are printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from mocap2ctrl.geometry.camera import project
from mocap2ctrl.types import Masks

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import benchmark
from benchmarks.rows import FALLS, cell
from benchmarks.weizmann import PERSON_M, SEQUENCES, assumed_camera


def somebody(top: int, bottom: int, frames: int = 5) -> Masks:
    """Masks of somebody who covers the rows from `top` to `bottom`."""
    masks = np.zeros((frames, 144, 180), bool)
    masks[:, top : bottom + 1, 80:100] = True
    return masks


@pytest.mark.parametrize(("top", "bottom"), [(40, 114), (10, 60), (90, 140)])
def test_the_assumed_camera_sees_a_standing_person_where_the_masks_are(top: int, bottom: int) -> None:
    camera = assumed_camera(somebody(top, bottom))
    soles, crown = project(camera, np.array([[0.0, 0.0, 0.0], [0.0, 0.0, PERSON_M]]))
    np.testing.assert_allclose(soles, [89.5, bottom + 0.5], atol=1e-9)
    np.testing.assert_allclose(crown, [89.5, top - 0.5], atol=1e-9)


def test_crouching_jumping_and_empty_frames_do_not_move_the_assumed_camera() -> None:
    usual = somebody(40, 114, 20)
    odd = np.concatenate([usual, somebody(80, 114, 2), somebody(30, 100, 2), np.zeros((3, 144, 180), bool)])
    for name in ("matrix", "translation"):
        np.testing.assert_allclose(getattr(assumed_camera(odd), name), getattr(assumed_camera(usual), name))


@pytest.mark.parametrize(
    ("quantity", "values", "printed"),
    [
        ("joint error", [3.0, 9.0, 4.0], "4 (9)"),
        ("track: overlap", [0.9, 0.7, 0.8], "0.8 (0.7)"),
        ("joint error", [None, 5.25], "5.25"),
        ("core time", [2016.0], "2,020"),
        ("joint error", [None], "–"),
        ("joint error", [], "–"),
        (FALLS, [0.0, 1.0, 0.0], "1 of 3"),
    ],
)
def test_a_cell_is_the_median_and_the_worst(quantity: str, values: list[float | None], printed: str) -> None:
    assert cell(quantity, values) == printed


def test_rows_of_several_runs_become_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for seed, error in ((1, 5.0), (2, 7.0)):
        rows = [
            {"name": f"{clip} | joint error", "engine": "mujoco", "value": error, "unit": "cm", "seed": seed}
            for clip in ("walk", "jump")[: 3 - seed]
        ]
        files.append(tmp_path / f"{seed}.jsonl")
        files[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert benchmark.main(["video", "--table-of", *map(str, files)]) == 0
    assert "|  | walk | jump |\n| --- | --- | --- |\n| joint error, cm | 6 (7) | 5 |\n" in capsys.readouterr().out


def test_clips_of_another_table_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmark.main(["weizmann", "--clips", "cartwheel"])
    assert ", ".join(SEQUENCES) in capsys.readouterr().err
