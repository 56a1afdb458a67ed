"""Keeps the first simulations of a fit that diverge."""

from __future__ import annotations

import numpy as np

from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.fit.divergence import Divergence, sampled_controller
from mocap2ctrl.fit.divergence_file import divergence_path, save_divergence
from mocap2ctrl.fit.judgement import Judgement, portions
from mocap2ctrl.fit.problem import Problem
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.types import Array

KEPT = 5
"""Divergences a fit that are written; all are counted."""


class DivergenceLog:
    """The witness of an evaluation pool. A fit that is resumed sees the same again, and writes the same files."""

    def __init__(self, capture: Capture) -> None:
        """Writes into `capture`'s folder, not before there is something to write."""
        self._capture = capture
        self._prior = capture.target_prior
        self._kept = 0

    def __call__(self, problem: Problem, values: Array, judgement: Judgement, generation: int, search: int) -> None:
        """Writes what has diverged of the parameter vectors (P, N), until there are enough."""
        for sample in np.flatnonzero(judgement.diverged)[: KEPT - self._kept]:
            self._kept += 1
            divergence = self._divergence(problem, values, int(sample), generation, search)
            save_divergence(divergence_path(self._capture.folder, self._kept), divergence)

    def _divergence(self, problem: Problem, values: Array, sample: int, generation: int, search: int) -> Divergence:
        capture = self._capture
        part = next(part for part in portions(len(values)) if sample < part.stop)
        together, row = values[part], sample - part.start
        controller, begin = sampled_controller(problem, together, row, capture.character, self._prior)
        return Divergence(
            controller=controller,
            begin=begin,
            end_step=problem.end_frame * round(1.0 / (capture.config.fps * TIME_STEP_S)),
            character=capture.character,
            engine=capture.engine_name,
            torque_scale=capture.torque_scale,
            stage=problem.label,
            generation=generation,
            search=search,
            sample=sample,
            config=capture.config,
        )
