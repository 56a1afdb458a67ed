"""The largest push that a controller survives, from each side (Vondrak §6.1, "Robustness to pushes")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mocap2ctrl.control.closed_loop import Rollouts, run, start_vector
from mocap2ctrl.control.controller import Controller, compile_program
from mocap2ctrl.control.watch import seconds_up
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.evaluation.falls import FallRule, fall_rule
from mocap2ctrl.evaluation.metrics import judged_seconds
from mocap2ctrl.evaluation.surroundings import Place, placed
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.fit.structure import cycle_states
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.simulation.pushes import DIRECTIONS, Push, force_from
from mocap2ctrl.types import Array

PUSH_S, PERIOD_S, SECONDS = 0.4, 4.0, 40.0
"""Vondrak §6.1: a force on the torso for 0.4 s, once every 4 s, survived for 40 s."""
PHASES = 3
TORSO = "chest"
"""The paper does not say how its torso is divided; of ours, pelvis, abdomen and chest, the chest bears the shoulders."""
STEP_N, MAX_FORCE_N = 10.0, 1000.0
AT_ONCE = 4
"""Forces a side and phase that are tried together: more waste simulations beyond the first that fails."""
WATCH_FPS = 30.0

Case = tuple[str, int]
"""A side and a phase."""

Stand = Callable[[Sequence[tuple[Case, int]]], Sequence[bool]]
"""Tries so many steps of so many cases; whether each is survived."""


@dataclass(frozen=True)
class PushTest:
    """What a controller survived.

    Attributes:
        front_n, rear_n, left_n, right_n: largest force from that side that was survived at every phase, all smaller steps too, N; 0
            if the first step was not; None if the controller falls without a push.
        protocol: in words.
        cyclic: whether it is the paper's, of a controller that goes on; else a single push within the clip.
        undisturbed_s: time until it falls without a push, or that it was watched: up to `watch_s` for a cycle, seconds.
        seconds: how long it was to survive.
        cycle_s: period of the gait, seconds; None for a chain.
        by_phase_n: the same by side, for each phase.
        environment: its name.
        step_n, max_force_n: of the search; a value of `max_force_n` says that it ended there.
        simulations: how many were run.
    """

    front_n: float | None
    rear_n: float | None
    left_n: float | None
    right_n: float | None
    protocol: str
    cyclic: bool
    undisturbed_s: float
    seconds: float
    cycle_s: float | None
    by_phase_n: Mapping[str, tuple[float, ...]]
    environment: str
    step_n: float
    max_force_n: float
    simulations: int


@dataclass(frozen=True)
class Schedule:
    """When pushes begin: at `starts_s`, one for each phase, every `period_s`; survived is what stands after `seconds`."""

    starts_s: tuple[float, ...]
    period_s: float
    seconds: float
    cycle_s: float | None

    def push(self, segment: int, side: str, phase: int, newtons: float, heading: float) -> Push:
        """The push from a side."""
        return Push(segment, force_from(side, newtons, heading), self.starts_s[phase], PUSH_S, self.period_s)

    @property
    def words(self) -> str:
        """The protocol for people."""
        if self.cycle_s is None:
            moments = ", ".join(f"{t:.2f}" for t in self.starts_s)
            return f"one push of {PUSH_S:g} s on the {TORSO} at {moments} s, survived until {self.seconds:.2f} s"
        return f"{PUSH_S:g} s on the {TORSO} every {self.period_s:g} s for {self.seconds:g} s, at {PHASES} phases of the cycle"


def push_test(
    capture: Capture,
    *,
    engine: str | None = None,
    torque_limit: float | None = None,
    environment: Place | None = None,
    step_n: float = STEP_N,
    max_force_n: float = MAX_FORCE_N,
    watch_s: float = 0.0,
    workers: int = 1,
    on_progress: Callable[[float, str], None] = lambda share, what: None,
) -> PushTest:
    """Pushes a capture's controller from front, rear, left and right, harder and harder, until it falls.

    A controller that comes back to an earlier state, and stands without pushes as long as the paper's test lasts, is tested as the
    paper does. One that ends (a chain), or falls by itself later than the clip ends, gets a single push within the clip, at three
    moments, and must not fall before the clip ends.

    Args:
        capture: whose controller.
        engine: another one than that of the fit.
        torque_limit: factor on the torque bounds of the fit.
        environment: where; level ground if not given.
        step_n: from one force to the next, N.
        max_force_n: where the search ends, N.
        watch_s: how long a cycle is watched without pushes, seconds, if that is longer than the test lasts.
        workers: threads; they do not change the result.
        on_progress: told the share that is done, and of what.

    Raises:
        ConfigError: a setting is outside its range, or there is no such environment.
        EngineError: no such engine, or none that has such an environment.
    """
    check_steps(step_n, max_force_n)
    if TORSO not in capture.character.segment_names:
        raise ConfigError(f"the character has no segment {TORSO!r}, which push-test pushes")
    bodies = [placed(capture, environment, engine, torque_limit) for _ in range(max(workers, 1))]
    crew, controller = [body for body, _ in bodies], bodies[0][1]
    rule = fall_rule(capture)
    on_progress(0.0, "without a push")
    loop = cycle_start(controller)
    clip_s = judged_seconds(capture.reference)
    seconds = clip_s if loop is None else SECONDS
    watched = seconds if loop is None else max(watch_s, seconds)
    undisturbed = _survival(crew[0], controller, rule, [()], watched)[0]
    if undisturbed < seconds:
        loop, seconds = None, clip_s
    result = PushTest(
        None, None, None, None, protocol="", cyclic=loop is not None, undisturbed_s=float(undisturbed), seconds=seconds,
        cycle_s=None, by_phase_n={}, environment=crew[0].environment.name, step_n=step_n, max_force_n=max_force_n, simulations=1,
    )  # fmt: skip
    if undisturbed < seconds:
        return replace(result, protocol=f"none: it falls at {undisturbed:.2f} s without a push")
    schedule = _single(capture.reference.duration_s, seconds) if loop is None else _recurring(crew[0], controller, loop)
    stand = _Pushed(crew, controller, rule, schedule, step_n).stand
    by_phase, simulations = largest_survived(stand, PHASES, step_n, max_force_n, on_progress)
    front, rear, left, right = (min(by_phase[side]) for side in ("front", "rear", "left", "right"))
    return replace(
        result, front_n=front, rear_n=rear, left_n=left, right_n=right, by_phase_n=by_phase, cycle_s=schedule.cycle_s,
        protocol=f"{schedule.words}, steps of {step_n:g} N", simulations=1 + simulations,
    )  # fmt: skip


def cycle_start(controller: Controller) -> int | None:
    """Index of the state that a controller comes back to, over and over; None for a chain, which ends."""
    return next(iter(cycle_states(controller)), None)


def _single(clip_s: float, seconds: float) -> Schedule:
    """One push at three moments, evenly over the part of a clip of `clip_s` in which a whole one fits; watched for `seconds`."""
    room = clip_s - PUSH_S
    if room <= 0.0:
        raise ConfigError(
            f"the clip's {clip_s:.2f} s are less than a push of {PUSH_S:g} s, and its controller is a chain, which ends with "
            "it; fit more of the motion, or a cycle of it"
        )
    return Schedule(tuple(room * k / PHASES for k in range(PHASES)), np.inf, seconds, None)


def _recurring(engine: Engine, controller: Controller, loop: int) -> Schedule:
    """The paper's schedule: the first push one period after the start, then at phases of the cycle that is on."""
    program = compile_program([controller], engine.character, engine.time_step_s)
    state = run(engine, program, start_vector(controller.start), round(SECONDS / engine.time_step_s)).state[0]
    entries = np.flatnonzero((state[1:] == loop) & (state[:-1] != loop)) + 1
    if len(controller.states) == 1:
        entries = np.arange(0, len(state), max(round(controller.states[0].exit.time_s / engine.time_step_s), 1))
    times = entries * engine.time_step_s
    cycle_s = float(np.median(np.diff(times)))
    first = float(times[times >= PERIOD_S - 1e-9][0])
    return Schedule(tuple(first + cycle_s * k / PHASES for k in range(PHASES)), PERIOD_S, SECONDS, cycle_s)


def largest_survived(
    stand: Stand, phases: int, step_n: float, max_force_n: float, on_progress: Callable[[float, str], None]
) -> tuple[dict[str, tuple[float, ...]], int]:
    """Goes up in steps for every side and phase at once, some steps at a time, until one is not survived.

    Args:
        stand: tries some steps of some cases, and tells which are survived.
        phases: how many phases each side is pushed at.
        step_n: from one force to the next, N.
        max_force_n: where the search ends, N.
        on_progress: told the share that is done, and of what.

    Returns:
        For each side the largest force survived at each phase, all smaller steps survived too, N; and how many were tried.
    """
    steps, simulations = int(max_force_n / step_n + 1e-9), 0
    passed: dict[Case, int] = {(side, phase): 0 for side in DIRECTIONS for phase in range(phases)}
    going = list(passed)
    while going:
        on_progress(1.0 - len(going) / len(passed), "pushing")
        tried = [(case, n) for case in going for n in range(passed[case] + 1, min(passed[case] + AT_ONCE, steps) + 1)]
        stood = dict(zip(tried, stand(tried), strict=True))
        simulations += len(tried)
        for case in list(going):
            results = [stood[other, n] for other, n in tried if other == case]
            passed[case] += results.index(False) if False in results else len(results)
            if False in results or passed[case] == steps:
                going.remove(case)
    return {side: tuple(passed[side, phase] * step_n for phase in range(phases)) for side in DIRECTIONS}, simulations


def check_steps(step_n: float, max_force_n: float) -> None:
    """Whether forces can be searched so.

    Raises:
        ConfigError: they cannot.
    """
    if not 0.0 < step_n <= max_force_n:
        raise ConfigError(
            f"the step is {step_n:g} N and the largest force {max_force_n:g} N; the step must be positive, and no more than that"
        )


@dataclass(frozen=True, eq=False)
class _Pushed:
    """A controller that a crew pushes."""

    crew: Sequence[Engine]
    controller: Controller
    rule: FallRule
    schedule: Schedule
    step_n: float

    def stand(self, tried: Sequence[tuple[Case, int]]) -> list[bool]:
        """Whether each is survived; shared out among the crew."""
        heading, torso = self.controller.heading, self.crew[0].character.segment_index(TORSO)
        pushes = [(self.schedule.push(torso, side, phase, n * self.step_n, heading),) for (side, phase), n in tried]
        shares = [pushes[k :: len(self.crew)] for k in range(len(self.crew))]
        with ThreadPoolExecutor(len(self.crew)) as pool:
            times = list(pool.map(self._survived, self.crew, shares))
        stands = [False] * len(tried)
        for k, share in enumerate(times):
            stands[k :: len(self.crew)] = [bool(t >= self.schedule.seconds) for t in share]
        return stands

    def _survived(self, engine: Engine, pushes: Sequence[Sequence[Push]]) -> Array:
        return _survival(engine, self.controller, self.rule, pushes, self.schedule.seconds)


def _survival(
    engine: Engine, controller: Controller, rule: FallRule, pushes: Sequence[Sequence[Push]], seconds: float
) -> npt.NDArray[np.float64]:
    """(P,) time until the fall under each of P sequences of pushes, or `seconds`; whoever has fallen is simulated no further."""
    stride = round(1.0 / (WATCH_FPS * engine.time_step_s))
    program = compile_program([controller] * max(len(pushes), 1), engine.character, engine.time_step_s)
    starts = np.tile(start_vector(controller.start), (len(pushes), 1))
    low: dict[int, npt.NDArray[np.bool_]] = {}

    def falls(rollouts: Rollouts, which: npt.NDArray[np.int64]) -> Array:
        before = np.array([low[int(p)] for p in which]) if low else None
        times, after = rule.first_falls(engine, rollouts, stride * engine.time_step_s, before)
        low.update(zip(map(int, which), after, strict=True))
        return times

    return seconds_up(engine, program, starts, pushes, seconds, stride=stride, falls=falls)
