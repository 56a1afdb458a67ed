"""One batch optimisation as a value: which states of which controller are free, over which window; and its evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import Rollouts, compile_closed_loop, run, start_step, start_vector
from mocap2ctrl.control.controller import (
    ALPHA_RANGE,
    BALANCE_RANGES,
    EXIT_TIME_RANGE_S,
    Controller,
    ControlState,
    TargetPose,
    compile_program,
    root_target_world,
    step_alpha,
)
from mocap2ctrl.control.law import Program
from mocap2ctrl.control.parameters import Parameter, ParameterSpec
from mocap2ctrl.geometry import rotations
from mocap2ctrl.objective.residuals import residuals
from mocap2ctrl.objective.silhouettes import compile_silhouettes
from mocap2ctrl.objective.terms import Objective, TermValue
from mocap2ctrl.prior.pca import IdentityPrior, Prior
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.pushes import Push
from mocap2ctrl.types import Array, Pose, SimState


@dataclass(frozen=True)
class Spreads:
    """Standard deviations of the first generation, before the optimiser's own step size.

    Attributes:
        angle: root and leg angles of targets, radians. Legs and root decide about balance and are searched widely;
        trunk_angle, arm_angle: the same for the spine, and for head and arms, where the first guess is nearly right.
        coefficient: of a PCA prior's coefficients, in sigmas.
        alpha: per step.
        balance: theta.
        exit_time_s: nu.
        position_m, velocity: of the first pose's root (m) and of its velocities (m/s and rad/s).
    """

    angle: float = 0.1
    trunk_angle: float = 0.05
    arm_angle: float = 0.03
    coefficient: float = 0.3
    alpha: float = 0.02
    balance: float = 0.1
    exit_time_s: float = 0.02
    position_m: float = 0.01
    velocity: float = 0.2


@dataclass(frozen=True, eq=False)
class Problem:
    """Algorithm 2's input: optimise `free` states (and the start) of `controller` over frames `first_frame`..`end_frame`.

    Attributes:
        controller: the present guess; states that are not free stay as they are.
        free: indices of the states to optimise, ascending.
        free_start: whether the first pose and velocity are optimised too.
        snapshot: (K,) where the simulation begins: the moment at which the first free state is entered.
        first_frame, end_frame: the window that the objective sees, in the target's frames.
        spreads: of the first generation.
        label: for logs.
        snapshots_elsewhere: (K,) the same moment in each of the evaluator's other places; none where the start is free.
    """

    controller: Controller
    free: tuple[int, ...]
    free_start: bool
    snapshot: Array
    first_frame: int
    end_frame: int
    spreads: Spreads
    label: str
    snapshots_elsewhere: tuple[Array, ...] = ()


@lru_cache(maxsize=16)
def declare(problem: Problem, character: Character, prior: Prior) -> ParameterSpec:
    """All free numbers of `problem`, in order: the start, then state by state target, alpha, balance and exit time."""
    spec = ParameterSpec()
    if problem.free_start:
        _declare_start(spec, problem.controller.start, character, problem.spreads)
    for index in problem.free:
        _declare_state(spec, problem.controller.states[index], character, prior, problem.spreads)
    return spec


def _declare_start(spec: ParameterSpec, start: SimState, character: Character, spreads: Spreads) -> None:
    names = character.hinge_names
    position = [Parameter(f"start.position.{a}", 0.0, spreads.position_m, -0.1, 0.1, "m") for a in "xyz"]
    rotation = [Parameter(f"start.rotation.{a}", 0.0, 0.3 * spreads.angle, -0.5, 0.5, "rad") for a in "xyz"]
    angles = [
        Parameter(f"start.{n}", float(v), 0.3 * spreads.angle, float(lo), float(hi), "rad")
        for n, v, lo, hi in zip(names, start.pose.angles, character.lower_limits, character.upper_limits, strict=True)
    ]
    spec.declare("start.pose", [*position, *rotation, *angles])
    rates = np.concatenate([start.root_velocity, start.root_angular_velocity, start.joint_velocities])
    labels = [f"root_velocity.{a}" for a in "xyz"] + [f"root_angular_velocity.{a}" for a in "xyz"] + list(names)
    units = ["m/s"] * 3 + ["rad/s"] * (3 + len(names))
    scales = [0.5 * spreads.velocity] * 3 + [spreads.velocity] * 3 + [2.0 * spreads.velocity] * len(names)
    spec.declare(
        "start.velocity",
        [
            Parameter(f"start.velocity.{n}", float(v), s, -np.inf, np.inf, u)
            for n, v, s, u in zip(labels, rates, scales, units, strict=True)
        ],
    )


def _declare_state(
    spec: ParameterSpec, state: ControlState, character: Character, prior: Prior, spreads: Spreads
) -> None:
    name = f"state {state.name}"
    target = state.target
    coefficients = target.coefficients
    if coefficients is None:
        coefficients = prior.encode(target.root_rotation, target.angles)
    lower, upper, spread = target_ranges(prior, spreads, character)
    identity = isinstance(prior, IdentityPrior)
    labels = [*(f"root.{a}" for a in "xyz"), *character.hinge_names] if identity else range(1, prior.size + 1)
    unit = "rad" if identity else "1"
    spec.declare(
        f"{name}.target",
        [
            Parameter(f"{name}.target.{n}", float(v), float(s), float(lo), float(hi), unit)
            for n, v, s, lo, hi in zip(labels, coefficients, spread, lower, upper, strict=True)
        ],
    )
    spec.declare(
        f"{name}.alpha",
        [
            Parameter(f"{name}.alpha.{g}", float(a), spreads.alpha, *ALPHA_RANGE, "1/step")
            for g, a in zip(character.groups, state.alpha, strict=True)
        ],
    )
    spec.declare(
        f"{name}.balance",
        [
            Parameter(f"{name}.balance.{i + 1}", float(v), spreads.balance, *BALANCE_RANGES[i], "1")
            for i, v in enumerate(state.balance)
        ],
    )
    if state.exit.kind == "time":
        spec.declare(
            f"{name}.exit",
            [Parameter(f"{name}.exit.time", state.exit.time_s, spreads.exit_time_s, *EXIT_TIME_RANGE_S, "s")],
        )


def target_ranges(prior: Prior, spreads: Spreads, character: Character) -> tuple[Array, Array, Array]:
    """Lower and upper bounds and spreads (K,) of target coefficients: +-4 sigma under a PCA prior (§4.1.2)."""
    sigma = np.asarray(prior.sigma, float)
    if isinstance(prior, IdentityPrior):
        return np.full(len(sigma), -7.0), np.full(len(sigma), 7.0), angle_spreads(spreads, character)
    return -4.0 * sigma, 4.0 * sigma, spreads.coefficient * sigma


def angle_spreads(spreads: Spreads, character: Character) -> Array:
    """(3 + J,) spreads of a plain target's root rotation and angles."""
    arms = dict.fromkeys(("head", "shoulder", "elbow", "wrist"), spreads.arm_angle)
    by_group = {"spine": spreads.trunk_angle, **arms}
    groups = [character.groups[g] for g in character.hinge_group]
    return np.array([spreads.angle] * 3 + [by_group.get(group, spreads.angle) for group in groups])


def decode_start(start: SimState, values: Array, spec: ParameterSpec, joints: int) -> SimState:
    """The start state that a parameter vector (N,) stands for."""
    pose = values[spec.block("start.pose")]
    rates = values[spec.block("start.velocity")]
    orientation = rotations.multiply(rotations.from_rotation_vector(pose[3:6]), start.pose.root_orientation)
    return SimState(
        Pose(start.pose.root_position + pose[:3], rotations.normalise(orientation), pose[6 : 6 + joints]),
        rates[:3],
        rates[3:6],
        rates[6:],
    )


def decode(
    problem: Problem, values: npt.ArrayLike, character: Character, prior: Prior, spec: ParameterSpec
) -> Controller:
    """The controller that one feasible parameter vector (N,) stands for."""
    x = np.asarray(values, float)
    states = list(problem.controller.states)
    for index in problem.free:
        state = states[index]
        coefficients = x[spec.block(f"state {state.name}.target")]
        rotation, angles = prior.decode(coefficients)
        exit_ = state.exit
        if f"state {state.name}.exit" in spec:
            exit_ = replace(exit_, time_s=float(x[spec.block(f"state {state.name}.exit")][0]))
        states[index] = replace(
            state,
            target=TargetPose(rotation, angles, None if isinstance(prior, IdentityPrior) else coefficients),
            alpha=x[spec.block(f"state {state.name}.alpha")],
            balance=x[spec.block(f"state {state.name}.balance")],
            exit=exit_,
        )
    start = problem.controller.start
    if problem.free_start:
        start = decode_start(start, x, spec, len(character.hinges))
    return replace(problem.controller, states=tuple(states), start=start)


def programs(
    problem: Problem, values: Array, character: Character, prior: Prior, spec: ParameterSpec, time_step_s: float
) -> Program:
    """Arrays of the P machines that feasible parameter vectors (P, N) stand for."""
    program = _guess(problem, character, time_step_s).of(np.zeros(len(values), dtype=np.int64))
    group = character.hinge_group
    for index in problem.free:
        name = f"state {problem.controller.states[index].name}"
        rotation, angles = prior.decode(values[:, spec.block(f"{name}.target")])
        program.root_target[:, index] = root_target_world(rotation, problem.controller.heading)
        program.angle_target[:, index] = angles
        alpha = step_alpha(values[:, spec.block(f"{name}.alpha")], time_step_s)
        program.root_alpha[:, index] = alpha[:, 0]
        program.alpha[:, index] = alpha[:, group]
        program.balance[:, index] = values[:, spec.block(f"{name}.balance")]
        if f"{name}.exit" in spec:
            program.exit_time_s[:, index] = values[:, spec.block(f"{name}.exit")][:, 0]
    return program


@lru_cache(maxsize=16)
def _guess(problem: Problem, character: Character, time_step_s: float) -> Program:
    """Arrays of the problem's own controller."""
    return compile_program([problem.controller], character, time_step_s)


def starts(problem: Problem, values: Array, spec: ParameterSpec, joints: int, snapshot: Array | None = None) -> Array:
    """(P, K) start vectors of parameter vectors (P, N); the problem's snapshot, or another, where the start is not free."""
    if not problem.free_start:
        snapshot = problem.snapshot if snapshot is None else snapshot
        return np.broadcast_to(snapshot, (len(values), len(snapshot)))
    return np.array([start_vector(decode_start(problem.controller.start, x, spec, joints)) for x in values])


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """Where else controllers are simulated: an engine, forces from outside, and the weight of what they cost there."""

    engine: Engine
    pushes: tuple[Push, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Evaluator:
    """What turns parameter vectors into costs: one a process.

    Attributes:
        engine: simulates.
        objective: judges.
        prior: decodes target poses.
        stride: simulation steps a frame of the objective.
        others: where controllers have to do too: every cost is the weighted mean over this engine, which weighs 1, and those.
    """

    engine: Engine
    objective: Objective
    prior: Prior
    stride: int
    others: tuple[Elsewhere, ...] = ()

    def spec(self, problem: Problem) -> ParameterSpec:
        """The parameters of `problem`."""
        return declare(problem, self.engine.character, self.prior)

    def simulate(self, problem: Problem, spec: ParameterSpec, x: Array) -> Iterator[Rollouts]:
        """Rollouts of feasible parameter vectors (P, N) of `spec` over the problem's window, in one place after the other."""
        character = self.engine.character
        program = programs(problem, x, character, self.prior, spec, self.engine.time_step_s)
        snapshots = (None, *(problem.snapshots_elsewhere or [None] * len(self.others)))
        for where, snapshot in zip(self.places, snapshots, strict=True):
            begin = starts(problem, x, spec, len(character.hinges), snapshot)
            end = problem.end_frame * self.stride
            yield run(where.engine, program, begin, end, stride=self.stride, pushes=where.pushes)

    def rollouts(self, controller: Controller, end_frame: int, stop_at_state: int = -1) -> Iterator[Rollouts]:
        """`controller` from its start to `end_frame`, or until `stop_at_state` is entered, in one place after the other."""
        program = compile_program([controller], self.engine.character, self.engine.time_step_s)
        steps = end_frame * self.stride
        start = start_vector(controller.start)
        for where in self.places:
            yield run(
                where.engine,
                program,
                start,
                steps,
                stride=self.stride,
                stop_at_state=stop_at_state,
                pushes=where.pushes,
            )

    @property
    def places(self) -> tuple[Elsewhere, ...]:
        """All of them; the first is the one whose divergences are told."""
        return (Elsewhere(self.engine), *self.others)

    @property
    def weights(self) -> Array:
        """(W,) of the costs in each place."""
        return np.array([where.weight for where in self.places])

    def compile(self) -> None:
        """Compiles all that evaluations need, or loads it from the cache."""
        for where in self.places:
            compile_closed_loop(where.engine)
        if self.objective.view is not None:
            compile_silhouettes(self.objective.view)

    def terms(self, problem: Problem, values: npt.ArrayLike) -> tuple[TermValue, ...]:
        """Cost terms of parameter vectors (P, N), which need not be feasible."""
        return self.judge(problem, values)[0]

    def judge(
        self, problem: Problem, values: npt.ArrayLike, *, with_residuals: bool = False
    ) -> tuple[tuple[TermValue, ...], npt.NDArray[np.bool_], Array | None]:
        """Cost terms of parameter vectors (P, N), which need not be feasible, which simulations diverged, (P,), and residuals.

        These, (P, R), are of all places side by side: the sum of their squares is what is a sum of squares in the mean cost.
        """
        x = np.asarray(values, float)
        spec = self.spec(problem)
        runs, penalty = list(self.simulate(problem, spec, spec.feasible(x))), spec.penalty(x)
        found = [self.objective.terms(rollouts, penalty, problem.first_frame, problem.end_frame) for rollouts in runs]
        return (
            mean_terms(found, self.weights),
            runs[0].diverged,
            self._residuals(problem, runs, found) if with_residuals else None,
        )

    def _residuals(self, problem: Problem, runs: Sequence[Rollouts], found: Sequence[tuple[TermValue, ...]]) -> Array:
        parts = [
            residuals(self.objective, rollouts, terms, problem.first_frame, problem.end_frame)
            for rollouts, terms in zip(runs, found, strict=True)
        ]
        shares = self.weights.sum() / self.weights
        return np.concatenate([part / np.sqrt(share) for part, share in zip(parts, shares, strict=True)], axis=1)


def mean_terms(found: Sequence[tuple[TermValue, ...]], weights: Array) -> tuple[TermValue, ...]:
    """Cost terms whose values are the means over W places by `weights` (W,); the first place's details."""
    if len(found) == 1:
        return found[0]
    values = [np.average([term.value for term in same], axis=0, weights=weights) for same in zip(*found, strict=True)]
    return tuple(replace(term, value=value) for term, value in zip(found[0], values, strict=True))


def state_entry_snapshots(
    evaluator: Evaluator, controller: Controller, state: int, end_frame: int
) -> tuple[Array, ...]:
    """(K,) the simulation of `controller`, in each place, at the moment when state number `state` is entered."""
    rollouts = evaluator.rollouts(controller, end_frame, state if state > 0 else -1)
    return tuple(np.array(entered.final[0]) for entered in rollouts)


def states_problem(
    evaluator: Evaluator, controller: Controller, free: tuple[int, ...], end_frame: int, spreads: Spreads, label: str
) -> Problem:
    """Optimise the states `free` from where the first of them is entered to `end_frame`; with the very first, the start as well."""
    first = free[0]
    if first == 0:
        return Problem(controller, free, True, start_vector(controller.start), 0, end_frame, spreads, label)
    snapshot, *elsewhere = state_entry_snapshots(evaluator, controller, first, end_frame)
    # Contacts may end states later elsewhere: the window begins when all are in the state.
    entered = max(frame_after(where, evaluator.stride) for where in (snapshot, *elsewhere))
    frame = min(entered, end_frame)
    return Problem(controller, free, False, snapshot, frame, end_frame, spreads, label, tuple(elsewhere))


def frame_after(snapshot: Array, stride: int) -> int:
    """The first objective frame at or after a snapshot."""
    return -(-start_step(snapshot) // stride)
