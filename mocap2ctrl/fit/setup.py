"""What a worker needs before it can judge controllers, as a value that can be sent to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mocap2ctrl.character.model import parse_character
from mocap2ctrl.fit.problem import Evaluator
from mocap2ctrl.objective.target import MarkerTarget, SilhouetteTarget
from mocap2ctrl.objective.terms import Objective, Weights
from mocap2ctrl.prior.pca import Prior
from mocap2ctrl.simulation.choose import make_engine


@dataclass(frozen=True, eq=False)
class EvaluationSetup:
    """Plain values, sent to a worker once; the engine is made there.

    Attributes:
        character: the character's description.
        engine: name of the engine.
        torque_scale: factor on the torque bounds.
        target: the reference's markers.
        weights: lambda.
        prior: decodes target poses.
        silhouettes: what a camera saw, at the target's frames; None for motion capture.
        also_in: names of further engines that controllers have to please.
    """

    character: Mapping[str, Any]
    engine: str
    torque_scale: float
    target: MarkerTarget
    weights: Weights
    prior: Prior
    silhouettes: SilhouetteTarget | None = None
    also_in: tuple[str, ...] = ()

    def evaluator(self) -> Evaluator:
        """An evaluator with engines of its own."""
        character = parse_character(self.character, "the character")
        engine, *others = (
            make_engine(name, character, torque_scale=self.torque_scale) for name in (self.engine, *self.also_in)
        )
        stride = round(1.0 / (self.target.fps * engine.time_step_s))
        objective = Objective(engine.character, self.target, self.weights, self.silhouettes)
        return Evaluator(engine, objective, self.prior, stride, tuple(others))
