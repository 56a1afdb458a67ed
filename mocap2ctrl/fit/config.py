"""Settings of a fit, with a sentence, a unit and a default each, and the budgets that users choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from mocap2ctrl.control.controller import EXIT_TIME_RANGE_S
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.fit.problem import Spreads
from mocap2ctrl.objective.terms import Weights
from mocap2ctrl.track.tracker import TRACK_BUDGETS, TrackConfig

Table = Spreads | Weights | TrackConfig
EVOLVING = 4
"""Generations of CMA-ES alone, as a multiple of those before a descent."""

ASTRAY_CM = 5.0
"""`FitConfig.astray_cm` of videos, if nothing else is said. For motion capture it costs more than it brings."""

METHODS = ("incremental", "batch", "growth")

BEYOND_GROWTH = ("refine", "cyclic", "robust")
"""Settings that ask for what goes on where growth ends."""


def video_weights(*, short: bool = False) -> Weights:
    """Lambda of a fit that follows a video's track and is judged by silhouettes.

    How fast a track's centre of mass is, from frame to frame, is seen less well than where it is: its velocity counts a fifth of
    what it does for motion capture. A search of few generations (`short`) loses the track without it.
    """
    return Weights(silhouette=60.0, markers=1.0, velocity=1.0 if short else 0.2, contact=0.2, keypoints=1.0)


def growth_weights() -> Weights:
    """Lambda of growth from silhouettes alone."""
    return Weights(silhouette=60.0, markers=0.0, velocity=0.0, contact=0.2, keypoints=1.0)


@dataclass(frozen=True)
class FitConfig:
    """How a controller is fitted.

    Attributes:
        method: `incremental` (Algorithm 3, new states guessed from the reference), `batch` (Algorithm 2 over a fixed chain), or,
            for videos, `growth` (Algorithm 3 from silhouettes alone: targets under the prior, new states like the last).
        seed: of every random number of the fit.
        fps: frames a second that the objective looks at; a divisor of 120.
        stage_s: T_s of Algorithm 3 in seconds, of stages in the mean; for `batch` the time of each state.
        generations: of CMA-ES in each optimisation of a stage.
        descents: steps of a Gauss-Newton descent from where each CMA-ES has arrived; 0 for none. `batch` and `growth` take none,
            and four times as many generations.
        starts: optimisations with different seeds when a state is added; the best is kept.
        free_states: how many of the last states a stage optimises; one more in stages in which the reference flies.
        try_without: also re-optimise each stage without a new state, once, and keep the smaller structure if it is as good.
        astray_cm: root mean square distance of the markers from the reference's, over the last two stages' time, above which the
            controller is astray: the next stage also opens two states more, in place of the trial without a new state. 0 for
            never; for videos that is `ASTRAY_CM`.
        first_sigma: step size of the first generation, in units of the spreads.
        spreads: of the first generation.
        weights: lambda of Eq. (8).
        stability_s: how long the last pose is to be held past the end of a clip that ends standing (Delta T of Eq. 11).
        tracking: how hard a video's tracker tries.
        refine: whether exits on time are to become exits on contact, and chains that repeat themselves cycles (Algorithm 4).
        sweeps: how often refining opens all states again, a few at a time, and how often robustness chooses each state's gain.
        cyclic: whether a cycle is wanted even where it follows the clip less well than `delta` allows.
        delta: by what share of E a refined controller may be worse than the one that it takes the place of.
        robust: whether the chain gets feedback with which it stands in other worlds too: on other ground, under shoves, with other
            muscles.
    """

    method: str = "incremental"
    seed: int = 1
    fps: float = 30.0
    stage_s: float = 0.2
    generations: int = 30
    descents: int = 12
    starts: int = 2
    free_states: int = 2
    try_without: bool = True
    astray_cm: float = 0.0
    first_sigma: float = 0.5
    spreads: Spreads = field(default_factory=Spreads)
    weights: Weights = field(default_factory=Weights)
    stability_s: float = 0.5
    tracking: TrackConfig = field(default_factory=TrackConfig)
    refine: bool = False
    sweeps: int = 2
    cyclic: bool = False
    delta: float = 0.15
    robust: bool = False

    def __post_init__(self) -> None:
        shortest_s, longest_s = EXIT_TIME_RANGE_S
        for name, allowed, valid in (
            ("method", f"one of {', '.join(METHODS)}", self.method in METHODS),
            ("seed", "a whole number from 0 on", self.seed >= 0),
            ("fps", "a divisor of 120 from 10 to 120", 10 <= self.fps <= 120 and (120 / self.fps) % 1 == 0),
            ("stage_s", f"{shortest_s:g} to {longest_s:g} s", shortest_s <= self.stage_s <= longest_s),
            ("generations", "1 or more", self.generations >= 1),
            ("descents", "0 or more", self.descents >= 0),
            ("starts", "1 or more", self.starts >= 1),
            ("free_states", "1 or more", self.free_states >= 1),
            ("astray_cm", "0 or more", self.astray_cm >= 0),
            ("first_sigma", "more than 0", self.first_sigma > 0),
            ("stability_s", "0 to 5 s", 0 <= self.stability_s <= 5),
            ("sweeps", "0 or more", self.sweeps >= 0),
            ("delta", "0 or more", 0 <= self.delta < float("inf")),
            ("refine", f"false with method {self.method}", self.method == "incremental" or not self.refine),
            ("robust", f"false with method {self.method}", self.method == "incremental" or not self.robust),
            ("robust", "false with cyclic: it is for chains", not (self.robust and self.cyclic)),
            ("cyclic", "true with refine alone", self.refine or not self.cyclic),
        ):
            if not valid:
                value = getattr(self, name)
                told = str(value).lower() if isinstance(value, bool) else repr(value)
                raise ConfigError(f"{name} is {told}; allowed is {allowed}")
        for table, low, allowed in (
            ("spreads", 1e-9, "more than 0"),
            ("weights", 0.0, "0 or more"),
            ("tracking", 0.0, "0 or more"),
        ):
            for name, value in asdict(getattr(self, table)).items():
                if not low <= value < float("inf"):
                    raise ConfigError(f"{table}.{name} is {value!r}; allowed is {allowed}")

    def grown(self) -> FitConfig:
        """The same without what goes on where growth ends."""
        return replace(self, refine=False, cyclic=False, robust=False)

    @property
    def beyond_growth(self) -> tuple[str, ...]:
        """Names of what goes on where growth ends."""
        return tuple(name for name in BEYOND_GROWTH if getattr(self, name))

    def evolving(self) -> FitConfig:
        """The same with CMA-ES alone, as in the paper."""
        return replace(self, generations=EVOLVING * self.generations, descents=0)


BUDGETS: Mapping[str, FitConfig] = {
    "quick": FitConfig(
        generations=20, descents=8, starts=1, try_without=False, sweeps=1, tracking=TRACK_BUDGETS["quick"]
    ),
    "default": FitConfig(tracking=TRACK_BUDGETS["default"]),
    "thorough": FitConfig(generations=60, descents=24, starts=4, sweeps=4, tracking=TRACK_BUDGETS["thorough"]),
}


def budget(name: str) -> FitConfig:
    """The configuration behind a budget's name.

    Raises:
        ConfigError: no such budget.
    """
    if name not in BUDGETS:
        raise ConfigError(f"budget is {name!r}; choose one of {', '.join(BUDGETS)}")
    return BUDGETS[name]


def config_from_mapping(data: Mapping[str, Any]) -> FitConfig:
    """The inverse of `asdict`: a configuration from plain values, for example from a capture's `config.toml`.

    Raises:
        ConfigError: an unknown name or a value of the wrong kind.
    """
    config = FitConfig()
    known = {f.name: getattr(config, f.name) for f in fields(config)}
    changes: dict[str, Any] = {}
    for name, value in data.items():
        if name not in known:
            raise ConfigError(f"setting {name!r} is not known; known are {', '.join(known)}")
        default = known[name]
        if isinstance(default, Table):
            changes[name] = _numbers_from_mapping(name, default, value)
        else:
            try:
                changes[name] = type(default)(value)
            except (TypeError, ValueError) as error:
                raise ConfigError(f"{name} is {value!r}; expected {type(default).__name__}") from error
    return replace(config, **changes)


def _numbers_from_mapping(name: str, default: Table, value: Any) -> Table:
    """A table of numbers, each of the kind that its default is."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is {value!r}; expected a table")
    known = asdict(default)
    for key, number in value.items():
        if key not in known:
            raise ConfigError(f"setting {name}.{key} is not known; known are {', '.join(known)}")
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ConfigError(f"{name}.{key} is {number!r}; expected a number")
    return type(default)(**{**known, **{key: type(known[key])(number) for key, number in value.items()}})
