"""Without a terminal a stage has one line, when it has ended, and one that was cut short has none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mocap2ctrl.cli.progress import FitDisplay
from mocap2ctrl.fit.run import FitProgress


def test_a_stage_is_told_when_it_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    p = FitProgress(fraction=0.0, stage=1, stages=2, cost=3.0, error_cm=9.0, evaluations=10, elapsed_s=1.0, states=1)
    with FitDisplay() as display:
        display.progress(p)
        display.progress(replace(p, ended=True, error_cm=1.25))
        display.progress(replace(p, stage=2, error_cm=7.0))
        display.progress(replace(p, stage=2, states=2, ended=True, error_cm=2.0, label="robust"))
        display.progress(replace(p, stage=3))
    assert capsys.readouterr().err.splitlines() == [
        "stage 1/2 · 1 state · 1.2 cm · 10 evaluations/s",
        "stage 2/2 · 2 states · 2.0 cm over all worlds · 10 evaluations/s",
    ]
