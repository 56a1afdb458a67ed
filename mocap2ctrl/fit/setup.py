"""What a worker needs before it can judge controllers, as a value that can be sent to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mocap2ctrl.character.model import Character, parse_character
from mocap2ctrl.fit.problem import Elsewhere, Evaluator
from mocap2ctrl.objective.target import MarkerTarget, SilhouetteTarget
from mocap2ctrl.objective.terms import Objective, Weights
from mocap2ctrl.prior.pca import Prior
from mocap2ctrl.simulation.choose import make_engine
from mocap2ctrl.simulation.worlds import World


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
        worlds: other worlds that they have to please, in every engine.
        world_weight: of all costs in other worlds of an engine together; those in its own weigh 1.
    """

    character: Mapping[str, Any]
    engine: str
    torque_scale: float
    target: MarkerTarget
    weights: Weights
    prior: Prior
    silhouettes: SilhouetteTarget | None = None
    also_in: tuple[str, ...] = ()
    worlds: tuple[World, ...] = ()
    world_weight: float = 1.0

    def evaluator(self) -> Evaluator:
        """An evaluator with engines of its own."""
        character = parse_character(self.character, "the character")
        engine, *others = (
            make_engine(name, character, torque_scale=self.torque_scale) for name in (self.engine, *self.also_in)
        )
        stride = round(1.0 / (self.target.fps * engine.time_step_s))
        objective = Objective(engine.character, self.target, self.weights, self.silhouettes)
        elsewhere = tuple(Elsewhere(other) for other in others) + self._worlds(character)
        return Evaluator(engine, objective, self.prior, stride, elsewhere)

    def _worlds(self, character: Character) -> tuple[Elsewhere, ...]:
        """All worlds in all engines."""
        return tuple(
            Elsewhere(
                world.engine(name, character, self.torque_scale),
                world.pushes(character),
                self.world_weight / len(self.worlds),
            )
            for name in (self.engine, *self.also_in)
            for world in self.worlds
        )
