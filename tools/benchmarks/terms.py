"""What each term, prior and bound of a fit is worth: the same fit with one of them left out (Vondrak 2012, §5)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.motions import CASES, Case, fitted
from benchmarks.rows import FALLS, SPLIT, Row, measured_before
from benchmarks.settings import config_of, named
from mocap2ctrl import api
from mocap2ctrl.evaluation.metrics import fall_time
from mocap2ctrl.fit.config import FitConfig
from mocap2ctrl.fit.run import evaluation_setup
from mocap2ctrl.motion.clips import resample

CLIPS = ("walk", "jump", "spinkick", "cartwheel", "backflip", "run", "kick")
AS_IT_IS = "as it is"
HELD_S = 2.0
"""How long a controller is watched past the end of a clip that ends standing."""
UNBOUND = 100.0
"""Factor on torque bounds that nobody reaches."""


@dataclass(frozen=True)
class Change:
    """What a fit goes without.

    Attributes:
        config: the settings without it.
        fit: other arguments of `api.fit`, given the clip's name.
    """

    config: Callable[[FitConfig], FitConfig] = lambda config: config
    fit: Callable[[str], Mapping[str, str | float]] = lambda clip: {}


def without(term: str) -> Change:
    """A fit whose objective has no such term."""
    return Change(lambda config: replace(config, weights=replace(config.weights, **{term: 0.0})))


CHANGES = {
    AS_IT_IS: Change(),
    "no contact term": without("contact"),
    "no stability term": without("stability"),
    "no momentum term (ours)": without("velocity"),
    "no descent, four times the generations": Change(FitConfig.evolving),
    "targets under a pose prior": Change(fit=lambda clip: {"prior": f"all-but-{clip}"}),
    "no torque bounds": Change(fit=lambda clip: {"torque_scale": UNBOUND}),
}
NOTE = (
    "One change at a time. Contact changes: of the feet, beyond one in each state, as the term counts them. Held: of a clip that\n"
    f"ends standing, how long it stands on its last state past the end, of {HELD_S:g} s; a dash for the others. The prior has not\n"
    "seen the clip."
)


def terms(options: argparse.Namespace) -> Iterator[Row]:
    """Fits each clip with each seed and change, but for those that the file of results has."""
    config, done = config_of(options), measured_before(options.results)
    for clip in options.clips or ("walk", "jump"):
        for what, change in CHANGES.items():
            for seed in options.seeds:
                name = f"{named(clip, options)}, {what}"
                if (name, seed) not in done:
                    changed = change.config(replace(config, seed=seed))
                    yield from _rows(name, CASES[clip], changed, change.fit(clip), options)


def _rows(
    name: str, case: Case, config: FitConfig, arguments: Mapping[str, str | float], options: argparse.Namespace
) -> Iterator[Row]:
    _, result = fitted(case, config, options, **arguments)
    capture, torques = result.capture, np.abs(result.replay.torques)
    hips = [i for i, hinge in enumerate(capture.character.hinge_names) if "thigh" in hinge]
    values = {
        "joint error": (result.evaluation.joint_error_cm, "cm"),
        FALLS: (float(result.evaluation.fell), ""),
        "contact changes": (extra_contact_changes(capture), ""),
        "held": (held_s(capture), "s"),
        "peak hip torque": (float(torques[:, hips].max()), "N m"),
        "core time": (result.outcome.core_s / 60.0, "min"),
    }
    for what, (value, unit) in values.items():
        yield Row(f"{name}{SPLIT}{what}", capture.engine_name, value, unit, config.seed)


def extra_contact_changes(capture: api.Capture) -> float:
    """What the contact term charges the controller for, over the clip."""
    evaluator = evaluation_setup(capture).evaluator()
    rollouts = next(evaluator.rollouts(capture.finished_controller(), len(evaluator.objective.target) - 1))
    return float(evaluator.objective.extra_contact_changes(rollouts)[0])


def held_s(capture: api.Capture) -> float | None:
    """For how long a controller stands past its clip's end, at most `HELD_S`; None where the clip does not end standing."""
    if not capture.reference.ends_standing:
        return None
    end_s = capture.reference.duration_s
    replay = api.simulate(capture, end_s + HELD_S)
    reference = resample(replace(capture.reference, loop=False), replay.clip.fps)
    fell_at = fall_time(capture.character, replay, reference, end_s + HELD_S)
    return HELD_S if fell_at is None else max(fell_at - end_s, 0.0)
