"""The table of other worlds: its worlds are what they are called, and its numbers are those of an evaluation."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_fit import needs_walk, tiny_fit

from mocap2ctrl import api
from mocap2ctrl.character.model import Character
from mocap2ctrl.simulation.choose import has_bullet
from mocap2ctrl.simulation.mujoco import MujocoEngine

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from benchmarks.carry import performance, worlds


def test_worlds_are_what_they_are_called(character: Character) -> None:
    made = {name: make(character) for name, make in worlds().items() if name.startswith("MuJoCo")}
    assert all(isinstance(engine, MujocoEngine) for engine in made.values())
    models = {name: engine.model for name, engine in made.items()}  # type: ignore[attr-defined]
    own = models["MuJoCo"]
    assert models["MuJoCo, step 1/240 s"].opt.timestep == 1 / 240
    np.testing.assert_allclose(models["MuJoCo, friction 0.8"].pair_friction[:, 0], 0.8)
    np.testing.assert_allclose(models["MuJoCo, softer contacts (0.03 s)"].pair_solref[:, 0], 0.03)
    np.testing.assert_allclose(models["MuJoCo, harder contacts (0.99)"].pair_solimp[:, :2], 0.99)
    assert not np.any(own.pair_solref[:, 0] == 0.03)


@needs_walk
def test_numbers_are_those_of_an_evaluation(tmp_path: Path, character: Character) -> None:
    capture = tiny_fit(tmp_path / "walk", character, seconds=0.5).capture
    made = worlds()
    evaluation, _ = api.evaluate(capture)
    error, up_s = performance(capture, made["MuJoCo"](character))
    assert error == pytest.approx(evaluation.joint_error_cm)
    assert up_s == pytest.approx(0.5, abs=0.02)
    errors = [performance(capture, make(character))[0] for make in made.values()]
    assert len(set(errors)) == len(made) == (10 if has_bullet() else 6)
