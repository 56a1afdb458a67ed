"""Without a terminal a stage has one line, when it has ended, and one that was cut short has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap2ctrl.cli import progress
from mocap2ctrl.cli.progress import FitDisplay
from mocap2ctrl.fit.run import FitProgress
from mocap2ctrl.types import Camera, Silhouettes
from mocap2ctrl.video.silhouettes import LoadedSilhouettes


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


def test_the_time_that_is_left_is_told_anew_for_each_step_before_the_fit() -> None:
    with FitDisplay() as display:
        display.preparation("subtracting the background", 1.0)
        (bar,) = display._bar.tasks
        assert bar.finished
        display.preparation("tracking: first pose", 0.1)
        assert not bar.finished
        assert bar.finished_time is None
        assert bar.completed == 0.1
        display.preparation("tracking: 16 hypotheses, forward", 0.2)
        assert bar.completed == 0.2


def test_a_log_is_told_now_and_then_how_far_tracking_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    camera, now = Camera("camera", (8, 8), np.eye(3), np.zeros(3), np.zeros(3)), 0.0
    loaded = LoadedSilhouettes(Silhouettes("walk", 30.0, np.ones((3, 8, 8), bool), camera), None, camera, (), ())
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with FitDisplay() as display:
        display.preparation("subtracting the background", 0.5)  # what the input is comes first
        display.input(loaded)
        capsys.readouterr()
        for moment, what, share in (
            (1.0, "first pose", 0.0),
            (20.0, "16 hypotheses, forward", 0.123),
            (22.0, "16 hypotheses, forward", 0.128),
            (30.0, "shaking", 0.8),
        ):
            now = moment
            display.preparation(f"tracking: {what}", share)
    assert capsys.readouterr().err.splitlines() == ["tracking …", "  tracking: 16 hypotheses, forward, 13%"]
