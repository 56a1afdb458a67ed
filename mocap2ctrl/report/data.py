"""What a report is made of: plain values, checked once. `report/` knows nothing of fits, engines or controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character import Character
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.report.performer import Performer
from mocap2ctrl.report.scene import Scene
from mocap2ctrl.types import Array, MotionClip, frozen_array

EXIT_KINDS = ("time", "left contact", "right contact", "hold")

Value = float | int | bool | str | None


@dataclass(frozen=True)
class StateRow:
    """One state of the controller, as text for the table.

    Attributes:
        name: short, for example `3` or `left swing`.
        target: what pose it aims at.
        alpha: stiffness of each joint group, group name to text.
        balance: the balance feedback's three numbers and the swing leg.
        exit: when it is left, for example `time 0.21 s`.
        exit_kind: one of `EXIT_KINDS`; colours the timeline.
    """

    name: str
    target: str
    alpha: Mapping[str, str]
    balance: str
    exit: str
    exit_kind: str

    def __post_init__(self) -> None:
        if self.exit_kind not in EXIT_KINDS:
            raise Mocap2CtrlError(f"state {self.name}: exit_kind is {self.exit_kind!r}; allowed are {EXIT_KINDS}")


@dataclass(frozen=True)
class TermRow:
    """One cost term of the final motion: value times weight is what it adds to the objective."""

    name: str
    weight: float
    unit: str
    value: float


@dataclass(frozen=True)
class LogRow:
    """The best solution at one moment of the optimisation.

    Attributes:
        evaluations: simulations so far, counted over all stages.
        terms: unweighted value of each cost term.
        weights: of each, at that moment.
        stage: label of the stage, for example `batch` or `incremental 3`.
    """

    evaluations: int
    terms: Mapping[str, float]
    weights: Mapping[str, float]
    stage: str


@dataclass(frozen=True, eq=False)
class VideoEvidence:
    """What a fit to a video adds to a report.

    Attributes:
        scene: silhouettes, and the footage they come from if there is any.
        girth: of the body's shape in the silhouettes (`BodyShape.radii_at`).
        simulated_iou: (T,) intersection over union of the simulated body and each silhouette, NaN without evidence.
        track_iou: (T,) the same of the track.
        facts: tables of name and text, by title.
        notes: sentences on what was understood of the input.
    """

    scene: Scene
    girth: float
    simulated_iou: Array
    track_iou: Array
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("simulated_iou", "track_iou"):
            if np.shape(getattr(self, name)) != (len(self.scene.silhouettes),):
                raise Mocap2CtrlError(
                    f"{name} has shape {np.shape(getattr(self, name))}; expected ({len(self.scene.silhouettes)},)"
                )

    @property
    def times_s(self) -> Array:
        """(T,) of the silhouettes, seconds."""
        return np.arange(len(self.scene.silhouettes)) / self.scene.silhouettes.fps


@dataclass(frozen=True, eq=False)
class ReportData:
    """A finished fit.

    Attributes:
        title: headline, usually the input's name.
        character: the body; its mass scales the human torque limits.
        reference: what was to be reproduced; of a video, the track that was found in it.
        simulated: what the controller did; may run longer.
        times_s: (T,) time of each simulated frame, seconds, increasing.
        state_index: (T,) index into `states` of the state that is active.
        states: in order.
        reference_contacts: (R, 2) bool, left and right foot on the ground at the reference's frames.
        simulated_contacts: (T, 2) bool, likewise at `times_s`.
        torques: (T, J) actuator torques in hinge order, N m.
        terms: cost terms of the final motion.
        log: course of the optimisation; may be empty.
        numbers: headline numbers; the names in `html.NUMBERS` are shown with label and unit, others as they are.
        provenance: name to text: version, command, input hash, seed, prior.
        warnings: sentences, the gravest first.
        next_commands: pairs of a command and what it is good for.
        video: evidence of a fit to a video; None for motion capture.
    """

    title: str
    character: Character
    reference: MotionClip
    simulated: MotionClip
    times_s: Array
    state_index: npt.NDArray[np.int64]
    states: Sequence[StateRow]
    reference_contacts: npt.NDArray[np.bool_]
    simulated_contacts: npt.NDArray[np.bool_]
    torques: Array
    terms: Sequence[TermRow] = ()
    log: Sequence[LogRow] = ()
    numbers: Mapping[str, Value] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    next_commands: Sequence[tuple[str, str]] = ()
    video: VideoEvidence | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "times_s", frozen_array(self.times_s, (None,), "times_s"))
        frames, hinges = len(self.times_s), len(self.character.hinges)
        object.__setattr__(self, "torques", frozen_array(self.torques, (frames, hinges), "torques"))
        shapes = {
            "state_index": (np.shape(self.state_index), (frames,)),
            "simulated_contacts": (np.shape(self.simulated_contacts), (frames, 2)),
            "reference_contacts": (np.shape(self.reference_contacts), (len(self.reference), 2)),
        }
        for name, (shape, expected) in shapes.items():
            if shape != expected:
                raise Mocap2CtrlError(f"{name} has shape {shape}; expected {expected}")
        if frames == 0 or np.any(np.diff(self.times_s) <= 0):
            raise Mocap2CtrlError("times_s must hold at least one time and increase")
        index = np.asarray(self.state_index)
        if index.min() < 0 or index.max() >= len(self.states):
            raise Mocap2CtrlError(
                f"state_index reaches from {index.min()} to {index.max()}; there are {len(self.states)} states"
            )

    @property
    def performer(self) -> Performer:
        """The simulated body as a video's camera would see it."""
        return Performer(self.character, 1.0 if self.video is None else self.video.girth, self.simulated)
