"""The controller: a state machine S_M with its parameters, first pose and velocity (Vondrak §4.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.entry_feedback import EntryFeedback, feedback_arrays
from mocap2ctrl.control.law import (
    EXIT_LEFT,
    EXIT_NEVER,
    EXIT_RIGHT,
    EXIT_TIME,
    SWING_AUTO,
    SWING_LEFT,
    SWING_RIGHT,
    Program,
)
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.types import Array, SimState, frozen_array

EXIT_KINDS = {"never": EXIT_NEVER, "time": EXIT_TIME, "left": EXIT_LEFT, "right": EXIT_RIGHT}
EXIT_LETTERS = {"time": "T", "left": "L", "right": "R"}
SWINGS = {"auto": SWING_AUTO, "left": SWING_LEFT, "right": SWING_RIGHT}

ALPHA_RANGE = (0.001, 0.2)
EXIT_TIME_RANGE_S = (0.1, 0.5)
BALANCE_RANGES = ((-1.0, 1.0), (-1.0, 1.0), (0.0, 1.0))
"""Uniform priors of §5: alpha, nu, theta_1, theta_2, theta_3."""


@dataclass(frozen=True)
class Exit:
    """When a state is left (§4.1.3).

    Attributes:
        kind: `time`, `left`, `right` (touchdown of that foot) or `never`.
        time_s: time in the state for `time`; longest time for a contact.
        to: name of the next state; empty for `never`.
    """

    kind: str = "never"
    time_s: float = np.inf
    to: str = ""


@dataclass(frozen=True, eq=False)
class TargetPose:
    """What a state drives the body to.

    Attributes:
        root_rotation: (3,) rotation vector of the pelvis in the heading frame, radians; may be longer than pi.
        angles: (J,) joint angles, radians.
        coefficients: (K,) coefficients under the controller's prior that decode to this pose, or None for a plain pose.
    """

    root_rotation: Array
    angles: Array
    coefficients: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "root_rotation", frozen_array(self.root_rotation, (3,), "root_rotation"))
        object.__setattr__(self, "angles", frozen_array(self.angles, (None,), "angles"))
        if self.coefficients is not None:
            object.__setattr__(self, "coefficients", frozen_array(self.coefficients, (None,), "coefficients"))


@dataclass(frozen=True, eq=False)
class ControlState:
    """One atomic action: target pose, servo rates, balance feedback, exit.

    Attributes:
        name: unique in its controller.
        target: the pose to approach.
        alpha: (G,) fraction of the pose difference removed in 1/120 s, for each of the character's groups, root first.
        balance: (3,) theta.
        swing: `left`, `right`, or `auto` for the less loaded leg.
        exit: when and where to go next.
        feedback: how the targets answer to the body that enters the state; None if they do not.
    """

    name: str
    target: TargetPose
    alpha: Array
    balance: Array
    swing: str = "auto"
    exit: Exit = field(default_factory=Exit)
    feedback: EntryFeedback | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", frozen_array(self.alpha, (None,), "alpha"))
        object.__setattr__(self, "balance", frozen_array(self.balance, (3,), "balance"))


@dataclass(frozen=True, eq=False)
class Controller:
    """A state machine and what it starts from.

    Attributes:
        states: M states; the first is entered first.
        start: first pose and velocity.
        heading: yaw of the capture's heading frame, radians; targets' root rotations are relative to it.
        prior: name of the pose prior behind the targets.
        provenance: version, seed, configuration, input hash; plain JSON values.
    """

    states: tuple[ControlState, ...]
    start: SimState
    heading: float = 0.0
    prior: str = "identity"
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def with_states(self, states: Sequence[ControlState]) -> Controller:
        """The same controller with other states."""
        return replace(self, states=tuple(states))

    @property
    def structure(self) -> str:
        """The paper's notation, for example `⊕→1→T→2→R→3`."""
        text = f"⊕→{self.states[0].name}"
        for state in self.states:
            if state.exit.kind != "never":
                text += f"→{EXIT_LETTERS[state.exit.kind]}→{state.exit.to}"
        return text


def step_alpha(alpha: Array, time_step_s: float) -> Array:
    """The fraction removed in a step of `time_step_s`, of one stated for 1/120 s."""
    return np.asarray(1.0 - (1.0 - alpha) ** (time_step_s / TIME_STEP_S))


def compile_program(controllers: Sequence[Controller], character: Character, time_step_s: float) -> Program:
    """The arrays of controllers that share one structure; see `Program`."""
    first = controllers[0]
    index = {state.name: i for i, state in enumerate(first.states)}

    def table(read: Callable[[ControlState], Any]) -> Array:
        return np.array([[read(s) for s in c.states] for c in controllers], dtype=float)

    headings = np.array([[c.heading] for c in controllers])
    alpha = step_alpha(table(lambda s: s.alpha), time_step_s)
    return Program(
        root_target=root_target_world(table(lambda s: s.target.root_rotation), headings),
        angle_target=table(lambda s: s.target.angles),
        root_alpha=alpha[..., 0].copy(),
        alpha=np.ascontiguousarray(alpha[..., character.hinge_group]),  # another layout is another type to numba
        balance=table(lambda s: s.balance),
        swing=np.array([SWINGS[s.swing] for s in first.states], dtype=np.int64),
        exit_kind=np.array([EXIT_KINDS[s.exit.kind] for s in first.states], dtype=np.int64),
        exit_time_s=table(lambda s: s.exit.time_s),
        next_state=np.array([index.get(s.exit.to, 0) for s in first.states], dtype=np.int64),
        feedback=feedback_arrays([[s.feedback for s in c.states] for c in controllers], headings[:, 0], character),
    )


def root_target_world(root_rotation: Array, heading: npt.ArrayLike) -> Array:
    """World orientation (..., 4) of a root rotation (..., 3) in the heading frame, which is turned by `heading` (...)."""
    return rotations.multiply(rotations.yaw(heading), rotations.from_rotation_vector(root_rotation))
