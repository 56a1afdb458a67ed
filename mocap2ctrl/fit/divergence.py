"""A simulation that diverged, with everything that replays it, and its replay."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import run, start_step
from mocap2ctrl.control.controller import Controller, TargetPose, compile_program
from mocap2ctrl.fit.config import FitConfig
from mocap2ctrl.fit.problem import Problem, declare, decode, starts
from mocap2ctrl.prior.pca import Prior
from mocap2ctrl.simulation.choose import make_engine
from mocap2ctrl.types import Array, MotionClip


@dataclass(frozen=True, eq=False)
class Divergence:
    """One diverged evaluation of a fit.

    Attributes:
        controller: with the sample's parameters; its targets are plain angles, so that no prior is needed to replay it.
        begin: (K,) the state that the simulation began in; what `controller.start` was guessed to be if it began there.
        end_step: number of the step at which it was to stop.
        character, engine, torque_scale: what was simulated, and in what.
        stage: label of the optimisation.
        generation: of the optimisation, from 1.
        search: which of those that run side by side, from 0.
        sample: number in its population, from 0.
        config: of the fit; its seed and these numbers say where the sample came from.
    """

    controller: Controller
    begin: Array
    end_step: int
    character: Character
    engine: str
    torque_scale: float
    stage: str
    generation: int
    search: int
    sample: int
    config: FitConfig


@dataclass(frozen=True, eq=False)
class DivergenceReplay:
    """A diverged simulation, simulated again.

    Attributes:
        diverged: whether it did so again; not to do so takes another version of the engine.
        step: number of the step at which it was stopped, counted from the motion's beginning.
        at_s: the same in seconds.
        fastest: the coordinate with the largest velocity then: a hinge, or `root.velocity.x` and the like.
        velocity: that velocity, rad/s or m/s; infinite when it was no number.
        clip: the motion up to there, a frame a step; None when already the beginning was no finite state.
        final: (K,) the state that the simulation ended in.
    """

    diverged: bool
    step: int
    at_s: float
    fastest: str
    velocity: float
    clip: MotionClip | None
    final: Array


def sampled_controller(
    problem: Problem, values: Array, row: int, character: Character, prior: Prior
) -> tuple[Controller, Array]:
    """The controller and the beginning, (K,), of one of the parameter vectors (P, N) that were evaluated together.

    Targets are decoded with their neighbours, as they were for the simulation: a matrix product's last bits may depend on how many
    rows it has.
    """
    spec = declare(problem, character, prior)
    feasible = spec.feasible(values)
    controller = decode(problem, feasible[row], character, prior, spec)
    plain = [replace(s, target=TargetPose(s.target.root_rotation, s.target.angles)) for s in controller.states]
    for index in problem.free:
        rotation, angles = prior.decode(feasible[:, spec.block(f"state {plain[index].name}.target")])
        plain[index] = replace(plain[index], target=TargetPose(rotation[row], angles[row]))
    begin = starts(problem, feasible[row : row + 1], spec, len(character.hinges))[0]
    return replace(controller.with_states(plain), start=problem.controller.start), begin


def replay_divergence(divergence: Divergence) -> DivergenceReplay:
    """Simulates again what diverged, on an engine like the fit's, and looks at its end.

    Raises:
        EngineError: the engine is not installed.
    """
    character = divergence.character
    engine = make_engine(divergence.engine, character, torque_scale=divergence.torque_scale)
    program = compile_program([divergence.controller], character, engine.time_step_s)
    rollouts = run(engine, program, divergence.begin, divergence.end_step)
    finite = np.isfinite(rollouts.qpos[0]).all(axis=1)
    count = len(finite) if finite.all() else int(np.argmin(finite))
    step = start_step(divergence.begin) + (count if rollouts.diverged[0] else max(count - 1, 0))
    fastest, velocity = _fastest(rollouts.final[0], character)
    return DivergenceReplay(
        diverged=bool(rollouts.diverged[0]),
        step=step,
        at_s=step * engine.time_step_s,
        fastest=fastest,
        velocity=velocity,
        clip=_clip(rollouts.qpos[0, :count], divergence, 1.0 / engine.time_step_s),
        final=rollouts.final[0],
    )


def _fastest(final: Array, character: Character) -> tuple[str, float]:
    """The name and size of the largest velocity in a state (K,): positions come first, then velocities."""
    hinges = len(character.hinges)
    names = [f"root.{kind}.{axis}" for kind in ("velocity", "angular_velocity") for axis in "xyz"]
    sizes = np.abs(final[7 + hinges : 13 + 2 * hinges])
    sizes = np.where(np.isnan(sizes), np.inf, sizes)
    largest = int(np.argmax(sizes))
    return [*names, *character.hinge_names][largest], float(sizes[largest])


def _clip(qpos: Array, divergence: Divergence, fps: float) -> MotionClip | None:
    if not len(qpos):  # stopped before the first step
        qpos = divergence.begin[None, : 7 + len(divergence.character.hinges)]
    if not np.isfinite(qpos).all():
        return None
    return MotionClip("diverged", fps, qpos[:, :3], qpos[:, 3:7], qpos[:, 7:])
