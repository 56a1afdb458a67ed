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
    core_s, wall_s = (getattr(grown.outcome, of) + getattr(whole.outcome, of) for of in ("core_s", "wall_s"))
    return grown, replace(whole, outcome=replace(whole.outcome, core_s=core_s, wall_s=wall_s))
