"""Fits whose growth is measured on the way to what goes on behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mocap2ctrl import api
from mocap2ctrl.fit.config import FitConfig

Fit = Callable[[FitConfig, bool], api.FitResult]
"""A fit by a configuration; and whether it goes on with what its folder holds."""


def in_parts(fit: Fit, config: FitConfig) -> tuple[api.FitResult | None, api.FitResult]:
    """What growth came to, where more goes on behind it, and the whole, whose times are those of both."""
    if not config.beyond_growth:
        return None, fit(config, False)
    grown = fit(config.grown(), False)
    whole = fit(config, True)
    first, then = grown.outcome, whole.outcome
    both = replace(then, core_s=first.core_s + then.core_s, wall_s=first.wall_s + then.wall_s)
    return grown, replace(whole, outcome=both)


def of_growth(grown: api.FitResult | None) -> dict[str, tuple[float | None, str]]:
    """Quantities of a growth, with their units, where more went on behind it."""
    if grown is None:
        return {}
    seen = grown.capture.silhouettes is not None
    return {
        "growth: joint error": (grown.evaluation.joint_error_cm, "cm"),
        **({"growth: overlap": (grown.evaluation.silhouette_iou, "IoU")} if seen else {}),
        "growth: core time": (grown.outcome.core_s / 60.0, "min"),
    }
