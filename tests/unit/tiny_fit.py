"""A capture small enough to be fitted within a test: the beginning of a walk, a few generations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mocap2ctrl.character.model import Character
from mocap2ctrl.fit.capture import Capture, prepare_folder
from mocap2ctrl.fit.config import budget
from mocap2ctrl.fit.run import FitOutcome, evaluation_setup, fit_capture
from mocap2ctrl.fit.setup import EvaluationSetup
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.prior.choose import load_prior

WALK = "humanoid3d_walk"

needs_walk = pytest.mark.skipif(
    deepmimic_directory() is None, reason="DeepMimic's clips come with pybullet, which is not installed"
)


def tiny_capture(
    folder: Path, character: Character, *, seconds: float = 0.4, prior: str = "identity", **settings: Any
) -> Capture:
    """A capture of the first `seconds` of a walk, not yet fitted, its folder ready."""
    loaded = load_motion(WALK, character, time_range=(0.0, seconds))
    prepare_folder(folder, resume=False, overwrite=False)
    return Capture(
        folder=folder,
        character=character,
        prior=load_prior(prior, character),
        reference=loaded.clip,
        source_points=loaded.source_points,
        config=replace(budget("quick"), **{"generations": 3, "descents": 1, **settings}),
        run={"engine": "mujoco", "torque_scale": 1.0, "command": "a test"},
    )


def tiny_fit(folder: Path, character: Character, workers: int = 1, **settings: Any) -> FitOutcome:
    """`tiny_capture`, fitted."""
    return fit_capture(tiny_capture(folder, character, **settings), workers, resume=False)


def tiny_setup(capture: Capture) -> EvaluationSetup:
    """What the capture's fit would hand to its workers."""
    return evaluation_setup(capture)
